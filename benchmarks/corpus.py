"""Run the tool over checked-out repositories and hold the result against the silence check.

    python benchmarks/corpus.py ~/checkouts/*/

Each repository is migrated in a scratch copy; yours is not touched. "Rewritten", "flagged" and "silent" are
not the tool's own count: benchmarks/silence.py counts the references before and after the run, so that a
reference the tool doesn't see counts against it. Exit code 1 when one of the columns that must be 0 is not.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import shutil
import sys
import tempfile
import time
import tokenize
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.silence import lost_names, parses, references, silent_references
from tpu_migrate.config import Settings
from tpu_migrate.findings import Finding, Outcome, RunResult
from tpu_migrate.pipeline import run
from tpu_migrate.workspace.walk import is_generated, walk

SUFFIXES = (".py", ".pyi")
MUST_BE_ZERO = ("silent", "lost", "unparsable", "second_run", "crashes")


@dataclasses.dataclass
class Row:
    """What one repository came to; the fields are the columns."""

    repository: str
    references: int = 0
    rewritten: int = 0
    flagged: int = 0
    silent: int = 0
    lost: int = 0
    """Names that nothing binds any more: an import dropped too early, or one that is missing."""
    unparsable: int = 0
    """Files that parsed before and don't after."""
    second_run: int = 0
    """Files that a second run changes, and open findings that it reports otherwise than the first."""
    crashes: int = 0
    vendor: bool = False
    """Its torch_xla is another vendor's: to be left alone."""
    skipped: int = 0
    """Files with references that the walk left out: vendored, generated, ignored."""
    seconds: float = 0.0

    @property
    def share(self) -> float:
        return self.rewritten / self.references if self.references else 0.0


@dataclasses.dataclass
class Detail:
    """What lies behind a row's numbers, one line each."""

    silent: list[str] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)
    unparsable: list[str] = dataclasses.field(default_factory=list)
    second_run: list[str] = dataclasses.field(default_factory=list)
    crashes: list[str] = dataclasses.field(default_factory=list)
    open: collections.Counter[tuple[str, str]] = dataclasses.field(default_factory=collections.Counter)
    """Open findings by code and symbol: what to fix by kind."""


def measure(repository: Path, settings: Settings, jobs: int = 1) -> tuple[Row, Detail]:
    """Migrate a scratch copy of the repository twice, and judge it."""
    row, detail = Row(repository.name), Detail()
    with tempfile.TemporaryDirectory(prefix="tpu-migrate-corpus-") as scratch:
        root = Path(scratch) / repository.name
        shutil.copytree(
            repository, root, symlinks=True, ignore=shutil.ignore_patterns(".git", ".tpu-migrate")
        )
        before = dict(_sources(root))
        left_out = _left_out(root)

        started = time.perf_counter()
        first = _run(root, settings, jobs, detail)
        row.seconds = time.perf_counter() - started
        if first is not None:
            findings: dict[str, list[Finding]] = collections.defaultdict(list)
            for finding in first.findings:
                findings[finding.path].append(finding)
            row.vendor = not first.changed and any(
                finding.code.startswith("VN") for finding in first.findings
            )
            for path, old in before.items():
                if path in left_out:
                    row.skipped += bool(references(old))
                else:
                    _judge(path, old, _read(root / path), findings[path], row, detail)
            detail.open.update(
                (finding.code, finding.symbol)
                for finding in first.findings
                if finding.outcome is Outcome.OPEN
            )
            second = _run(root, settings, jobs, detail)
            if second is not None:
                detail.second_run += _differences(first, second)
    row.silent, row.lost, row.unparsable = len(detail.silent), len(detail.lost), len(detail.unparsable)
    row.second_run, row.crashes = len(detail.second_run), len(detail.crashes)
    return row, detail


def _run(root: Path, settings: Settings, jobs: int, detail: Detail) -> RunResult | None:
    try:
        return run([root], settings, apply=True, jobs=jobs)
    except Exception:
        detail.crashes.append(traceback.format_exc())
        return None


def _judge(path: str, old: str, new: str, findings: list[Finding], row: Row, detail: Detail) -> None:
    """Add one file to the row."""
    silent = silent_references(new, findings)
    detail.silent += [f"{path}:{line}: {text}" for line, text in silent]
    if parses(old):
        counted, remaining = len(references(old)), len(references(new))
        row.references += counted
        row.rewritten += max(counted - remaining, 0)
        row.flagged += remaining - len(silent)
        if not parses(new):
            detail.unparsable.append(path)
        detail.lost += [f"{path}:{line}: {name}" for line, name in lost_names(old, new)]


def _differences(first: RunResult, second: RunResult) -> Iterator[str]:
    for file in second.changed:
        yield f"{file.path}: changed again"
    places = [
        {
            (finding.path, finding.line, finding.code)
            for finding in result.findings
            if finding.outcome is not Outcome.REWRITTEN
        }
        for result in (first, second)
    ]
    for which, only in (("first", places[0] - places[1]), ("second", places[1] - places[0])):
        for path, line, code in sorted(only):
            yield f"{path}:{line}: {code} only in the {which} run"


def _sources(root: Path) -> Iterator[tuple[str, str]]:
    """Path and text of every Python file that mentions what the tool is for."""
    for path in sorted(root.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"xla" in data or b"optimum" in data:
                yield path.relative_to(root).as_posix(), _decode(data)


def _left_out(root: Path) -> set[str]:
    """Files that are not the tool's to change (vendored, generated, ignored): nothing in them is silent."""
    wanted = {file.relative for file in walk([root]).files if not is_generated(file.path.read_bytes()[:2048])}
    every = (path for path in root.rglob("*") if path.suffix in SUFFIXES)
    return {path.relative_to(root).as_posix() for path in every} - wanted


def _read(path: Path) -> str:
    return _decode(path.read_bytes())


def _decode(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(iter(data.splitlines(keepends=True)).__next__)
    except SyntaxError:
        encoding = "utf-8"
    return data.decode(encoding, "replace").removeprefix("\ufeff")


HEADINGS = {
    "repository": "repository",
    "references": "references",
    "rewritten": "rewritten",
    "share": "share",
    "flagged": "flagged",
    "silent": "silent",
    "lost": "lost names",
    "unparsable": "unparsable",
    "second_run": "2nd run",
    "crashes": "crashes",
    "seconds": "seconds",
}


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table, with a total over those whose torch_xla is not another vendor's."""
    ours = [row for row in rows if not row.vendor]
    total = Row("total without other vendors'")
    for column in dataclasses.fields(Row):
        if column.type in ("int", "float"):
            setattr(total, column.name, sum(getattr(row, column.name) for row in ours))
    lines = [list(HEADINGS.values()), ["---"] + ["---:"] * (len(HEADINGS) - 1)]
    for row in (*rows, total):
        cells = {name: str(getattr(row, name)) for name in HEADINGS}
        cells["share"] = f"{row.share:.1%}"
        cells["seconds"] = f"{row.seconds:.1f}"
        cells["repository"] += " (vendor)" if row.vendor else ""
        lines.append(list(cells.values()))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", metavar="DIR", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="rows and details as JSON instead of the table")
    parser.add_argument("--show-silent", action="store_true", help="list what the zero columns count")
    parser.add_argument("--show-open", action="store_true", help="open findings by code and symbol")
    parser.add_argument("--device", default="tpu", choices=("tpu", "accelerator"))
    parser.add_argument("--launcher", default="torchrun", choices=("torchrun", "spawn"))
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)  # for the judge: some files hold expressions a thousand levels deep

    settings = Settings(device=arguments.device, launcher=arguments.launcher)
    results: list[tuple[Row, Detail]] = []
    for repository in arguments.repositories:
        if not repository.is_dir():
            parser.error(f"{repository} is not a directory; name checked-out repositories")
        print(f"{repository.name} ...", file=sys.stderr, flush=True)
        results.append(measure(repository.resolve(), settings, arguments.jobs))

    if arguments.json:
        print(json.dumps([_as_json(row, detail) for row, detail in results], indent=2))
    else:
        print(table([row for row, _ in results]))
        for row, detail in results:
            for name in MUST_BE_ZERO if arguments.show_silent else ("crashes",):
                for line in getattr(detail, name):
                    print(
                        f"{name}: {row.repository}/{line}"
                        if name != "crashes"
                        else f"\n{row.repository}:\n{line}"
                    )
        if arguments.show_open:
            counts = sum((detail.open for _, detail in results), collections.Counter[tuple[str, str]]())
            print("\nopen  code   symbol")
            for (code, symbol), count in counts.most_common():
                print(f"{count:4}  {code:6} {symbol}")
    return int(any(getattr(row, name) for row, _ in results for name in MUST_BE_ZERO))


def _as_json(row: Row, detail: Detail) -> dict[str, object]:
    counts = [
        {"code": code, "symbol": symbol, "count": count}
        for (code, symbol), count in detail.open.most_common()
    ]
    return {**dataclasses.asdict(row), "share": row.share, "detail": {**vars(detail), "open": counts}}


if __name__ == "__main__":
    sys.exit(main())
