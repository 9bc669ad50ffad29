"""What `--apply` keeps in .tpu-migrate/, and how `undo` puts it back.

    .tpu-migrate/.gitignore              "*": the folder ignores itself
    .tpu-migrate/lock                    one writer at a time
    .tpu-migrate/runs/<n>/manifest.json  what run n did, see `_Manifest`
    .tpu-migrate/runs/<n>/before/...     the files as they were

The manifest names every file of the run before the first is replaced, and is itself written last and
at once. So a folder without one is a run that changed nothing, and a run that was killed half way is
undone like any other: each of its files is either the one before or the one after.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from tpu_migrate.workspace.errors import UndoConflict, WorkspaceError, reason
from tpu_migrate.workspace.lock import Lock
from tpu_migrate.workspace.write import remove_leftovers, replace_file, sync_folder

__all__ = ["Change", "Snapshot", "UndoConflict", "UndoResult", "WorkspaceError", "latest_before", "undo"]

FOLDER = ".tpu-migrate"
_VERSION = 1


@dataclass(frozen=True)
class Change:
    """A file that is about to be replaced."""

    relative: str
    """Relative to the root, with forward slashes."""
    old: bytes
    new: bytes


@dataclass(frozen=True)
class UndoResult:
    """What `undo` did."""

    run: int
    restored: tuple[str, ...]
    unchanged: tuple[str, ...]
    """Files that were already as before the run."""


@dataclass(frozen=True)
class _Entry:
    path: str
    mode: int
    before: str
    after: str


@dataclass(frozen=True)
class _Manifest:
    run: int
    state: str
    """``applying``, ``applied`` or ``undone``."""
    tool: str
    time: str
    argv: tuple[str, ...]
    files: tuple[_Entry, ...]


class Snapshot:
    """The record of one `--apply`, from taking the root's lock to giving it back.

    with Snapshot.begin(root, sys.argv) as snapshot:
        snapshot.plan(changes)
        for change in changes:
            replace_file(root / change.relative, change.new, within=root)
        snapshot.finish()
    """

    def __init__(self, root: Path, argv: Sequence[str], lock: Lock) -> None:
        self._root = root
        self._argv = tuple(argv)
        self._lock = lock
        self._manifest: _Manifest | None = None

    @classmethod
    def begin(cls, root: Path, argv: Sequence[str]) -> Snapshot:
        """Lock the root for writing.

        Raises:
            WorkspaceError: another process is writing there, or the folder can't be made.
        """
        lock = _lock(root, create=True)
        try:
            _clear_up(root)
        except BaseException:
            lock.release()
            raise
        return cls(root, argv, lock)

    @property
    def run(self) -> int | None:
        """The number of the run; None until `plan` has something to keep."""
        return self._manifest.run if self._manifest else None

    def plan(self, changes: Iterable[Change]) -> None:
        """Keep the originals and the manifest. From here on the run can be undone.

        Changes that change nothing are left out; if none is left, no run is made.

        Raises:
            WorkspaceError: a file is not (any more) what ``old`` says, or the originals can't be
                stored. Then no run is made, and no file may be replaced.
        """
        wanted = [change for change in changes if change.old != change.new]
        if self._manifest is not None:
            raise ValueError("plan was called twice")
        if not wanted:
            return
        number = max(_numbers(self._root), default=0) + 1
        folder = _run_folder(self._root, number)
        try:
            entries = tuple(self._keep(folder, change) for change in wanted)
            manifest = _Manifest(number, "applying", _tool_version(), _now(), self._argv, entries)
            _store(self._root, manifest)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise WorkspaceError(
                    f"{folder}: can't keep the originals there ({reason(error)}), so nothing was changed.\n"
                    "  Check the free space and your permissions, then run tpu-migrate again."
                ) from error
            raise
        self._manifest = manifest

    def finish(self) -> None:
        """Mark the run as applied, and give the lock back."""
        if self._manifest is not None:
            self._manifest = replace(self._manifest, state="applied")
            _store(self._root, self._manifest)
        self._lock.release()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Without `finish` the run stays "applying", which `undo` takes back all the same.
        self._lock.release()

    def _keep(self, folder: Path, change: Change) -> _Entry:
        path = self._root / _safe(change.relative, "a planned change")
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
            current = path.read_bytes()
        except OSError as error:
            raise WorkspaceError(
                f"{change.relative}: can't be read again ({reason(error)}), so nothing was changed.\n"
                "  Run tpu-migrate once more when nothing else writes here."
            ) from error
        if current != change.old:
            raise WorkspaceError(
                f"{change.relative}: it was edited while tpu-migrate ran, so nothing was changed.\n"
                "  Run tpu-migrate once more."
            )
        copy = folder / "before" / change.relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        # Secret until it has the mode of the original.
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(change.old)
            file.flush()
            os.chmod(copy, mode)
            os.fsync(descriptor)
        sync_folder(str(copy.parent))
        return _Entry(change.relative, mode, _sha256(change.old), _sha256(change.new))


def undo(root: Path, *, force: bool = False) -> UndoResult:
    """Put back every file of the newest run that isn't undone, bytes and mode, and mark it undone.

    Call it again to undo the run before. Stopped half way, it can be run once more.

    Args:
        root: the folder that `--apply` was run on.
        force: put the originals back although files were edited or deleted since. The edits are lost.

    Raises:
        UndoConflict: files were edited since. Nothing was restored.
        WorkspaceError: there is no run to undo, its originals are damaged, or another process is writing.
    """
    if not os.path.isdir(root / FOLDER):
        raise _nothing_to_undo(root, "tpu-migrate has not changed anything here")
    with _lock(root, create=False):
        manifest = _newest(root)
        if manifest is None:
            raise _nothing_to_undo(root, "no run is left that isn't undone")
        originals = {entry.path: _original(root, manifest, entry) for entry in manifest.files}
        restore: list[_Entry] = []
        unchanged: list[str] = []
        edited: list[tuple[str, str]] = []
        for entry in manifest.files:
            now = _look(root, entry)
            if now == "before":
                unchanged.append(entry.path)
                continue
            restore.append(entry)
            if now != "after":
                edited.append((entry.path, now))
        if edited and not force:
            raise UndoConflict(
                f"run {manifest.run} was not undone: {_count(len(edited), 'file')} changed since.\n"
                + "".join(f"    {path} ({what})\n" for path, what in edited)
                + "  Nothing was restored. To put the originals back and lose these changes: "
                "tpu-migrate undo --force",
                tuple(path for path, _ in edited),
            )
        for entry in restore:
            path = root / entry.path
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise WorkspaceError(
                    f"{entry.path}: can't be restored ({reason(error)}).\n"
                    f"  Its original is {_copy(root, manifest, entry)}. Clear the way, then undo again."
                ) from error
            replace_file(path, originals[entry.path], mode=entry.mode, within=root)
        remove_leftovers({(root / entry.path).parent for entry in manifest.files})
        _store(root, replace(manifest, state="undone"))
    return UndoResult(manifest.run, tuple(entry.path for entry in restore), tuple(unchanged))


def latest_before(root: Path) -> Path | None:
    """Return the folder with the originals of the newest run that isn't undone, or None.

    It holds only the files that the run changed, under their relative paths.

    Raises:
        WorkspaceError: a manifest is damaged.
    """
    manifest = _newest(root)
    return _run_folder(root, manifest.run) / "before" if manifest else None


def _lock(root: Path, *, create: bool) -> Lock:
    folder = root / FOLDER
    try:
        if os.path.islink(folder):
            raise WorkspaceError(
                f"{folder}: it is a symlink, and tpu-migrate keeps originals in a folder of its own only.\n"
                "  Remove the link, then run the command again."
            )
        if create:
            folder.mkdir(exist_ok=True)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                replace_file(ignore, b"*\n")
    except OSError as error:
        raise WorkspaceError(
            f"{folder}: can't be made to keep originals in ({reason(error)}). Nothing was changed.\n"
            "  Make the folder writable, or run tpu-migrate on a copy."
        ) from error
    return Lock(str(folder / "lock"), str(root))


def _clear_up(root: Path) -> None:
    """Remove what a killed run left: originals of a plan that never began, and temporary files."""
    for number in _numbers(root):
        if not (_run_folder(root, number) / "manifest.json").exists():
            shutil.rmtree(_run_folder(root, number), ignore_errors=True)
    try:
        manifest = _newest(root)
    except WorkspaceError:
        return  # a damaged manifest is for `undo` to report; it is no reason not to begin a new run
    if manifest and manifest.state == "applying":
        remove_leftovers({(root / entry.path).parent for entry in manifest.files})


def _look(root: Path, entry: _Entry) -> str:
    """Return ``before``, ``after``, or in words what became of the file since."""
    path = root / entry.path
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "not a file any more"
        digest = _sha256(path.read_bytes())
    except FileNotFoundError:
        return "deleted"
    except OSError as error:
        return f"unreadable: {reason(error)}"
    if digest == entry.before:
        # A mode that differs is put back; that loses nothing.
        return "before" if stat.S_IMODE(status.st_mode) == entry.mode else "after"
    return "after" if digest == entry.after else "edited"


def _original(root: Path, manifest: _Manifest, entry: _Entry) -> bytes:
    copy = _copy(root, manifest, entry)
    try:
        data = copy.read_bytes()
    except OSError as error:
        problem = f"can't be read ({reason(error)})"
    else:
        if _sha256(data) == entry.before:
            return data
        problem = "is damaged: its checksum is not the one in the manifest"
    raise WorkspaceError(
        f"{copy}: this original {problem}. Run {manifest.run} was not undone, nothing was restored.\n"
        "  Take the old files from version control."
    )


def _nothing_to_undo(root: Path, why: str) -> WorkspaceError:
    return WorkspaceError(
        f"{root}: nothing to undo, because {why}.\n"
        "  Name the folder that --apply was run on: it has a folder .tpu-migrate in it."
    )


def _newest(root: Path) -> _Manifest | None:
    for number in sorted(_numbers(root), reverse=True):
        manifest = _load(root, number)
        if manifest is not None and manifest.state != "undone":
            return manifest
    return None


def _numbers(root: Path) -> list[int]:
    try:
        names = os.listdir(root / FOLDER / "runs")
    except OSError:
        return []
    return [int(name) for name in names if name.isascii() and name.isdigit()]


def _run_folder(root: Path, number: int) -> Path:
    return root / FOLDER / "runs" / str(number)


def _copy(root: Path, manifest: _Manifest, entry: _Entry) -> Path:
    return _run_folder(root, manifest.run) / "before" / entry.path


def _store(root: Path, manifest: _Manifest) -> None:
    document = {
        "version": _VERSION,
        "run": manifest.run,
        "state": manifest.state,
        "tool": manifest.tool,
        "time": manifest.time,
        "argv": list(manifest.argv),
        "files": [
            {"path": entry.path, "mode": f"{entry.mode:04o}", "before": entry.before, "after": entry.after}
            for entry in manifest.files
        ],
    }
    data = json.dumps(document, indent=1).encode("ascii") + b"\n"
    replace_file(_run_folder(root, manifest.run) / "manifest.json", data)


def _load(root: Path, number: int) -> _Manifest | None:
    """Return a run's manifest, or None when the run has none.

    Raises:
        WorkspaceError: it can't be read, or names a path outside of the root.
    """
    path = _run_folder(root, number) / "manifest.json"
    try:
        document: Any = json.loads(path.read_bytes())
        if document["version"] != _VERSION:
            raise WorkspaceError(
                f"{path}: its version is {document['version']!r}; this tpu-migrate knows {_VERSION}.\n"
                "  Use the tpu-migrate that made it."
            )
        return _Manifest(
            run=number,
            state=str(document["state"]),
            tool=str(document["tool"]),
            time=str(document["time"]),
            argv=tuple(document["argv"]),
            files=tuple(
                _Entry(
                    _safe(file["path"], str(path)),
                    int(file["mode"], 8),
                    str(file["before"]),
                    str(file["after"]),
                )
                for file in document["files"]
            ),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(
            f"{path}: can't be read ({reason(error)}).\n  Check your permissions."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            f"{path}: damaged ({type(error).__name__}: {error}).\n"
            f"  The originals of run {number} are in {path.parent / 'before'}: copy them by hand, then move\n"
            "  the run's folder away to undo the run before it."
        ) from error


def _safe(relative: object, source: str) -> str:
    """Return a path that stays below the root; a manifest may come with a cloned repository."""
    if isinstance(relative, str):
        parts = relative.replace("\\", "/").split("/") if os.sep == "\\" else relative.split("/")
        unsafe = not relative or os.path.isabs(relative) or os.path.splitdrive(relative)[0]
        if not unsafe and not {"", ".", "..", FOLDER}.intersection(parts):
            return relative
    raise WorkspaceError(
        f"{source}: the path {relative!r} does not lie below the root, so nothing was written.\n"
        "  Only relative paths without '..' are taken."
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _tool_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tpu-migrate")
    except PackageNotFoundError:  # run from a checkout
        return "unknown"
