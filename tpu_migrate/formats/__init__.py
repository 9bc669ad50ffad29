"""File kinds: how each is read, rewritten and written back. Chosen by file name."""

from __future__ import annotations

from collections.abc import Callable

from tpu_migrate.python.rewrite import Engine, Rewritten, rewrite_file

Rewriter = Callable[[Engine, str, bytes, frozenset[str]], Rewritten]

BY_SUFFIX: dict[str, Rewriter] = {".py": rewrite_file, ".pyi": rewrite_file}
"""Another file kind is one entry here, and its suffix in ``workspace.walk``."""


def rewriter_for(path: str) -> Rewriter | None:
    """The rewriter for a file, or None for kinds the tool leaves alone."""
    return BY_SUFFIX.get("." + path.rpartition(".")[2])
