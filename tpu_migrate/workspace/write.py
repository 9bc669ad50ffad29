"""Replace one file at once: whatever happens, it is the old one or the new one."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tpu_migrate.workspace.errors import WorkspaceError, reason

_TEMPORARY = ".tpu-migrate-", ".tmp"


def replace_file(path: Path, data: bytes, *, mode: int | None = None, within: Path | None = None) -> None:
    """Make ``data`` the whole content of a file, which may be new, by renaming a finished copy over it.

    A killed process leaves the old file or the new one, and at worst a temporary file beside it
    (`remove_leftovers`). Permissions stay; the owner too, where the system lets us. A symlink stays
    a symlink: the file it points to is replaced. A hard link is cut from its other names.

    Args:
        path: the file, or a symlink to it.
        data: the new content.
        mode: permission bits to set; None keeps those of the file.
        within: a folder that the file has to lie in once symlinks are followed.

    Raises:
        WorkspaceError: the file can't be written, is not a regular file, or lies outside of ``within``.
            It keeps its content.
    """
    target = os.path.realpath(path)
    if within is not None and not _lies_in(target, os.path.realpath(within)):
        raise WorkspaceError(
            f"{path}: not written, because it lies at {target}, outside of {within}.\n"
            "  A symlink leads there. Replace it by a file, or run tpu-migrate on its target."
        )
    try:
        _replace(target, data, mode)
    except OSError as error:
        raise WorkspaceError(
            f"{path}: can't be written ({reason(error)}). It keeps its old content.\n"
            "  Check the free space and your permissions in its folder, then run tpu-migrate again."
        ) from error


def remove_leftovers(folders: Iterable[str | Path]) -> None:
    """Delete the temporary files that a killed process left in these folders; needs the root's lock."""
    start, end = _TEMPORARY
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                names = [entry.path for entry in entries if entry.name.startswith(start)]
            for name in names:
                if name.endswith(end):
                    os.unlink(name)
        except OSError:
            continue  # gone, or not ours to clean


def _replace(target: str, data: bytes, mode: int | None) -> None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(0, "it is not a regular file")
    folder = os.path.dirname(target)
    start, end = _TEMPORARY
    descriptor, temporary = tempfile.mkstemp(prefix=start, suffix=end, dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                _keep_owner(temporary, old)
            # After the owner: changing that clears the set-user bits.
            os.chmod(temporary, _mode_for(old) if mode is None else mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        # Also on Ctrl-C, which may come between the two: then the rename has been done.
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make renames in a folder last through a power cut, where the system offers that."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # a folder that may be written to but not listed
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # not every file system has it
    finally:
        os.close(descriptor)


def _mode_for(old: os.stat_result | None) -> int:
    if old is not None:
        return stat.S_IMODE(old.st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _keep_owner(temporary: str, old: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    new = os.stat(temporary)
    # One by one: a user may often give a file to a group of theirs, but not to another user.
    for uid, gid in ((-1, old.st_gid), (old.st_uid, -1)):
        if (uid, gid) not in ((-1, new.st_gid), (new.st_uid, -1)):
            with suppress(OSError):
                os.chown(temporary, uid, gid)


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))
