"""Two verbs, ``assert_unchanged`` and ``assert_rewritten``: bytes in, bytes out, and what must hold of any run.

Whatever a test is about, both also check that the result parses, that nothing in it is silent, that it uses
no name that nothing binds, that no comment was lost, and that a second run changes and says nothing new.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import sys
import textwrap
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.silence import lost_names, silent_references
from tpu_migrate.config import Settings
from tpu_migrate.findings import FileResult, Finding, Outcome
from tpu_migrate.programs import survey
from tpu_migrate.python.index import read_facts
from tpu_migrate.python.match import Matcher
from tpu_migrate.python.rewrite import Engine, rewrite_file
from tpu_migrate.python.source import Source, SourceError
from tpu_migrate.rules import load_rules, rules_directory

_TODO = re.compile(rb"^[ \t]*# TODO\(tpu-migrate \w+\)[^\r\n]*(?:\r\n|\n)", re.MULTILINE)
_PRAGMA = re.compile(r"#\s*(noqa|type:|pylint|pyright|fmt:|isort|pragma)", re.IGNORECASE)


def source(text: str | bytes) -> bytes:
    """A program as a test writes it: indented, beginning on a line of its own. Bytes stay as they are."""
    return text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()


@functools.cache
def matcher(rules: tuple[Path, ...] = ()) -> Matcher:
    """The rules, loaded once for all tests."""
    return Matcher(load_rules(rules))


def migrate(
    text: str | bytes,
    settings: Settings | None = None,
    *,
    kind: str = "",
    path: str = "example.py",
    applied: bool = True,
) -> FileResult:
    """Rewrite one file by itself; findings are in terms of the new text unless ``applied`` is false.

    ``kind`` says what the program runs as; left empty, it is found from the file as in any run.
    """
    data = source(text)
    settings = settings or Settings()
    rules = matcher(settings.rules)
    overview = survey([read_facts(path, data, rules.book)])
    if kind:
        overview = replace(overview, kinds={path: kind})
    engine = Engine(rules, settings, overview, rules_directory() / "helpers", applied)
    with _room():
        return rewrite_file(engine, path, data).result


def codes(findings: Sequence[Finding], outcome: Outcome = Outcome.OPEN) -> list[str]:
    """Codes of the findings with an outcome, sorted."""
    return sorted(finding.code for finding in findings if finding.outcome is outcome)


def without_todos(data: bytes) -> bytes:
    """The file without the comments that open findings put above statements."""
    return _TODO.sub(b"", data)


def assert_unchanged(
    text: str | bytes, *, open: Sequence[str] = (), kind: str = "", settings: Settings | None = None
) -> FileResult:
    """Not a byte changes, but for TODO comments; ``open`` lists the codes of all findings (default: none)."""
    return assert_rewritten(text, text, open=open, kind=kind, settings=settings)


def assert_rewritten(
    before: str | bytes,
    after: str | bytes,
    *,
    open: Sequence[str] = (),
    suppressed: Sequence[str] = (),
    kind: str = "",
    settings: Settings | None = None,
) -> FileResult:
    """``before`` becomes ``after`` to the byte. TODO comments are left out of the comparison.

    ``open`` and ``suppressed`` list the codes of all findings with that outcome, sorted; import-kept (TX990)
    among them.
    """
    settings = settings or Settings()
    result = migrate(before, replace(settings, comments=False), kind=kind)
    assert result.new.decode("latin-1") == source(after).decode("latin-1")
    assert codes(result.findings) == sorted(open)
    assert codes(result.findings, Outcome.SUPPRESSED) == sorted(suppressed)
    assert_sound(result, settings, kind=kind)
    if settings.comments:
        commented = migrate(before, settings, kind=kind)
        assert without_todos(commented.new) == result.new
        assert_sound(commented, settings, kind=kind)
    return result


def assert_sound(result: FileResult, settings: Settings, *, kind: str = "") -> None:
    """What holds of every result, whatever went in."""
    old, new = _decoded(result.old), _decoded(result.new)
    if old is None or new is None or not _parses(old):
        assert result.new == result.old
        return
    assert _parses(new), f"the result does not parse:\n{new}"
    assert lost_names(old, new) == []
    lost = _comments(old) - _comments(new)
    assert not [text for text in lost if not _PRAGMA.match(text)], f"comments lost: {lost}"
    if not settings.select and not settings.ignore and not settings.per_file_ignores:
        assert silent_references(new, result.findings) == []
    assert_placed(result)
    again = migrate(result.new, settings, kind=kind)
    if _TODO.search(result.new) or not settings.comments or not codes(result.findings):
        assert again.new.decode("latin-1") == result.new.decode("latin-1")
    else:  # the first run was told to write no comments, this one writes them
        assert without_todos(again.new) == result.new
        again = migrate(result.new, replace(settings, comments=False), kind=kind)
    assert [_said(f) for f in _standing(again)] == [_said(f) for f in _standing(result)]
    assert codes(again.findings, Outcome.REWRITTEN) == []


def assert_placed(result: FileResult) -> None:
    """Findings that stand say where: the text at their place is the text they are about."""
    text = Source.decode(result.new).text
    for finding in _standing(result):
        if finding.code[:2] in ("PY", "VN") or not finding.before:
            continue
        if finding.code == "TX990":
            assert text.splitlines()[finding.line - 1 : finding.end_line], finding
            continue
        assert _at(text, finding) == finding.before, finding


def _at(text: str, finding: Finding) -> str:
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    start = sum(map(len, lines[: finding.line - 1])) + finding.column - 1
    end = sum(map(len, lines[: finding.end_line - 1])) + finding.end_column - 1
    return text[start:end]


def _standing(result: FileResult) -> list[Finding]:
    return [finding for finding in result.findings if finding.outcome is not Outcome.REWRITTEN]


def _said(finding: Finding) -> tuple[object, ...]:
    return (
        finding.code,
        finding.line,
        finding.column,
        finding.end_line,
        finding.end_column,
        finding.outcome.value,
        finding.message,
    )


def _decoded(data: bytes) -> str | None:
    try:
        return Source.decode(data).text
    except SourceError:
        return None


def _parses(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


def _comments(text: str) -> Counter[str]:
    """Comments and how often they stand there; those on the lines of imports go with them."""
    imports = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    found: Counter[str] = Counter()
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        if token.type == tokenize.COMMENT and token.start[0] not in imports:
            found[token.string.rstrip()] += 1
    return found


@contextmanager
def _room() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 6000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
