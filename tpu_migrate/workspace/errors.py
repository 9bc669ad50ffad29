"""What can go wrong on the user's disk."""

from __future__ import annotations


class WorkspaceError(Exception):
    """A path, a write or a snapshot failed; the message says what to do now."""


class UndoConflict(WorkspaceError):
    """Undo refused, because files were edited after the run; ``files`` names them (relative to the root)."""

    def __init__(self, message: str, files: tuple[str, ...]) -> None:
        super().__init__(message)
        self.files = files


def reason(error: OSError) -> str:
    """Return the operating system's words for an error, without its number and path."""
    return error.strerror or str(error) or type(error).__name__
