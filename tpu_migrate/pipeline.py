"""The run: walk, read, survey, rewrite, write. What the command line calls, and what scripts can."""

from __future__ import annotations

import gc
import multiprocessing
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tpu_migrate.config import Settings
from tpu_migrate.findings import FileResult, Finding, Outcome, RunResult, Safety
from tpu_migrate.formats import endings, format_of
from tpu_migrate.programs import Overview, survey
from tpu_migrate.python.index import read_facts
from tpu_migrate.python.match import Matcher
from tpu_migrate.python.rewrite import BROKEN, Engine, Rewritten
from tpu_migrate.rules import RuleBook, load_rules, rules_directory
from tpu_migrate.workspace.snapshot import Change, Snapshot
from tpu_migrate.workspace.walk import SourceFile, is_generated, walk
from tpu_migrate.workspace.write import replace_file

Progress = Callable[[int, int], None]
"""Called with (files done, files in all)."""

_ENOUGH_FOR_A_POOL = 24
"""Files below which starting worker processes costs more than they save."""


@dataclass(frozen=True)
class _Job:
    path: str
    data: bytes
    wanted: frozenset[str] = frozenset()


def run(
    paths: Sequence[Path],
    settings: Settings,
    *,
    apply: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> RunResult:
    """Migrate files and directories.

    Args:
        paths: what to migrate; other files under them are read to understand the programs.
        settings: of the run.
        apply: write the result, after keeping the originals in ``.tpu-migrate/``.
        jobs: worker processes; 0 means one a core.
        progress: told how many files are done.

    Raises:
        WorkspaceError: a path doesn't exist, or can't be written.
        RuleError: a rule file can't be used.
    """
    started = time.perf_counter()
    matcher = _matcher(settings)
    tree = walk(paths, settings.exclude, endings(), exclude_base=settings.root)
    contents, unreadable = _read(tree.files, matcher.book)
    with _room_for_trees():
        programs = {path: data for path, data in contents.items() if _is_python(path)}
        facts = [read_facts(path, data, matcher.book) for path, data in programs.items()]
        overview = survey(facts, (file.relative for file in tree.files))
    prefix = _prefix(settings.root, tree.root)
    engine = Engine(matcher, settings, overview, rules_directory() / "helpers", apply, prefix)
    relevant = [
        path
        for path, data in contents.items()
        if not _is_python(path) or path in overview.uses_exports or matcher.book.speaks.search(data)
    ]
    with _room_for_trees():
        results = _rewrite_all(engine, contents, relevant, jobs, progress)
    if apply:
        _write(tree.root, tree.files, results)
    return RunResult(
        results,
        list(overview.programs),
        len(tree.files),
        apply,
        time.perf_counter() - started,
        tree.root,
        (*tree.skipped, *unreadable),
    )


def _is_python(path: str) -> bool:
    kind = format_of(path)
    return kind is not None and kind.is_python


def _matcher(settings: Settings) -> Matcher:
    return Matcher(load_rules(settings.rules))


def _prefix(configured: Path | None, root: Path) -> str:
    """What leads from the configuration's directory to the run's."""
    if configured is None or not root.is_relative_to(configured) or root == configured:
        return ""
    return root.relative_to(configured).as_posix() + "/"


def _read(files: Iterable[SourceFile], book: RuleBook) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    """The files worth a closer look, by path: those that mention xla or import one that does.

    Also what could not be read, and why.
    """
    unreadable: list[tuple[str, str]] = []
    contents: dict[str, bytes] = {}
    others: dict[str, bytes] = {}
    for file in files:
        kind = format_of(file.relative)
        if kind is None:
            continue
        try:
            with open(file.location, "rb") as stream:
                data = stream.read()
        except OSError as error:
            unreadable.append((file.relative, f"can't be read: {error.strerror or error}"))
            continue
        if kind.mentions(book, data):
            if not kind.is_python or not is_generated(data[:2048]):
                contents[file.relative] = data
        elif kind.is_python:
            others[file.relative] = data
    # follow imports backwards, so that entry points and users of re-exports are seen too
    fresh = set(contents)
    while fresh and others:
        names = {part.encode() for path in fresh for part in _importable_names(path)}
        packages = {part.encode() for path in fresh for part in path.split("/")[:-1]}
        fresh = {
            path
            for path, data in others.items()
            if _imports_any(data, names) or (b"__main__" in data and _imports_any(data, packages))
        }
        for path in fresh:
            contents[path] = others.pop(path)
    return dict(sorted(contents.items())), unreadable


def _importable_names(path: str) -> list[str]:
    """The names by which an import statement can mean a file: its own, or its package's."""
    parts = path.rpartition(".")[0].split("/")
    return parts[-2:-1] if parts[-1] == "__init__" else parts[-1:]


def _imports_any(data: bytes, names: set[bytes]) -> bool:
    """Whether an import statement of a file has one of these names in it."""
    position = data.find(b"import")
    while position != -1:
        start, end = data.rfind(b"\n", 0, position) + 1, data.find(b"\n", position)
        line = data[start:end] if end != -1 else data[start:]
        if line.rstrip().endswith(b"(") and (close := data.find(b")", position)) != -1:
            end, line = close, data[start:close]
        if not names.isdisjoint(re.findall(rb"\w+", line)) and line.lstrip().startswith((b"import", b"from")):
            return True
        position = data.find(b"import", end) if end != -1 else -1
    return False


def _rewrite_all(
    engine: Engine,
    contents: Mapping[str, bytes],
    relevant: Sequence[str],
    jobs: int,
    progress: Progress | None,
) -> list[FileResult]:
    """Rewrite importers before the modules they import re-exports from, so that those know what stays."""
    results: dict[str, FileResult] = {}
    wanted: dict[str, set[str]] = {}
    done = 0
    for group in _in_import_order(engine.overview, relevant):
        work = [_Job(path, contents[path], frozenset(wanted.get(path, ()))) for path in group]
        for rewritten in _map(engine, work, jobs):
            results[rewritten.result.path] = rewritten.result
            for path, name in rewritten.needs:
                wanted.setdefault(path, set()).add(name)
            done += 1
            if progress is not None:
                progress(done, len(relevant))
    return [results[path] for path in sorted(results)]


def _in_import_order(overview: Overview, paths: Sequence[str]) -> list[list[str]]:
    """Groups of files such that re-exporting modules come after the files that import from them.

    Modules that import each other in a circle end up together in the last group.
    """
    waiting = set(paths)
    importers = {
        path: {other for other in overview.imported_by.get(path, ()) if other in waiting and other != path}
        for path in paths
        if path in overview.exports
    }
    groups: list[list[str]] = []
    while waiting:
        ready = sorted(path for path in waiting if not importers.get(path, set()) & waiting)
        groups.append(ready or sorted(waiting))
        waiting -= set(groups[-1])
    return groups


def _map(engine: Engine, work: list[_Job], jobs: int) -> Iterator[Rewritten]:
    workers = jobs or multiprocessing.cpu_count()
    if workers == 1 or len(work) < _ENOUGH_FOR_A_POOL:
        for job in work:
            yield _rewrite_one(engine, job)
        return
    # "spawn" is the one start method that every platform has
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start_worker, (engine,)) as pool:
        yield from pool.map(_work, work, chunksize=max(1, len(work) // (workers * 8)))


_worker_engine: Engine | None = None


def _start_worker(engine: Engine) -> None:
    global _worker_engine
    _worker_engine = engine
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 6000))


def _work(job: _Job) -> Rewritten:
    assert _worker_engine is not None
    return _rewrite_one(_worker_engine, job)


def _rewrite_one(engine: Engine, job: _Job) -> Rewritten:
    """Rewrite one file; a bug that one file brings to light costs no other file its result."""
    kind = format_of(job.path)
    if kind is None:
        return Rewritten(FileResult(job.path, job.data, job.data))
    try:
        return kind.rewrite(engine, job.path, job.data, job.wanted)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        finding = Finding(
            BROKEN, "rewrite-failed", job.path, 1, 1, job.data.count(b"\n") + 1, 1, Safety.MANUAL,
            Outcome.OPEN,
            f"not migrated: tpu-migrate failed on this file ({type(error).__name__}: {error}, in "
            f"{Path(last.filename).name}:{last.lineno}). This is a bug: report it with this "
            "file. The file is unchanged.",
        )  # fmt: skip
        return Rewritten(FileResult(job.path, job.data, job.data, [finding], 1, 0))


def _write(root: Path, files: Iterable[SourceFile], results: Sequence[FileResult]) -> None:
    changed = [result for result in results if result.changed]
    if not changed:
        return
    locations = {file.relative: file.location for file in files}
    with Snapshot.begin(root, sys.argv) as snapshot:
        snapshot.plan([Change(result.path, result.old, result.new) for result in changed])
        for result in changed:
            replace_file(Path(locations[result.path]), result.new, within=root)
        snapshot.finish()


@contextmanager
def _room_for_trees() -> Iterator[None]:
    """Long expressions nest deeply, and big trees make the cyclic collector run in vain.

    Both settings are given back afterwards.
    """
    limit, collects = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, 6000))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collects:
            gc.enable()


def migrate_source(
    text: str,
    settings: Settings | None = None,
    *,
    path: str = "example.py",
    kind: str = "",
    apply: bool = True,
) -> FileResult:
    """Migrate one piece of Python source by itself, as the examples of the rules are.

    Args:
        text: the source.
        settings: of the run.
        path: what findings call it.
        kind: of the program it belongs to; empty: told from the source.
        apply: findings give the lines of the new text.
    """
    settings = settings or Settings()
    matcher = _matcher(settings)
    data = text.encode()
    overview = survey([read_facts(path, data, matcher.book)])
    if kind:
        overview = replace(overview, kinds={path: kind})
    engine = Engine(matcher, settings, overview, rules_directory() / "helpers", apply)
    with _room_for_trees():
        return _rewrite_one(engine, _Job(path, data)).result
