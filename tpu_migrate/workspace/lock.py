"""One writer at a time in a root."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from tpu_migrate.workspace.errors import WorkspaceError, reason

if sys.platform != "win32":
    import fcntl


class Lock:
    """The right to write under a root, held by a lock file from here to `release`.

    The system takes a dead process's lock away by itself. A file that only names its owner can't be
    taken over without a race, and a process number may have gone to somebody else: the number in the
    file is for the message alone.
    """

    def __init__(self, path: str, root: str) -> None:
        """Take the lock.

        Raises:
            WorkspaceError: another process has it, or the file can't be made.
        """
        self._descriptor = -1
        try:
            descriptor = _open(path)
        except BlockingIOError:
            raise WorkspaceError(
                f"{root}: another tpu-migrate ({_owner(path)}) is writing here. This one changed nothing.\n"
                "  Wait for it to end, then run the command again."
            ) from None
        except OSError as error:
            raise WorkspaceError(
                f"{path}: can't be locked ({reason(error)}), so nothing was written.\n"
                "  tpu-migrate needs to write there: check your permissions and the file system."
            ) from error
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        if sys.platform != "win32":
            # Closing is not enough when a worker process was forked since: it holds a copy.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


if sys.platform == "win32":

    def _open(path: str) -> int:
        try:  # the system deletes the file when its last handle closes, at death too
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_TEMPORARY)
        except (FileExistsError, PermissionError):
            raise BlockingIOError from None

else:

    def _open(path: str) -> int:
        # The file stays when the lock goes: were it deleted, two processes could lock two files of one name.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def _owner(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            number = file.read(20).strip()
    except (OSError, UnicodeDecodeError):
        number = ""
    return f"process {number}" if number.isdigit() else "its process number is not known yet"
