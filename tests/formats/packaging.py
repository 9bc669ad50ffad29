"""Running one packaging file through the tool, as the pipeline would."""

from __future__ import annotations

import functools
import textwrap
from dataclasses import replace

from tpu_migrate.config import Settings
from tpu_migrate.findings import FileResult, Outcome
from tpu_migrate.formats.conda import CONDA
from tpu_migrate.formats.locks import LOCKS
from tpu_migrate.formats.pyproject import PIPFILE, PYPROJECT
from tpu_migrate.formats.requirements import REQUIREMENTS
from tpu_migrate.formats.setup_cfg import SETUP_CFG
from tpu_migrate.programs import survey
from tpu_migrate.python.match import Matcher
from tpu_migrate.python.rewrite import Engine
from tpu_migrate.rules import load_rules, rules_directory

PACKAGING = (LOCKS, PYPROJECT, PIPFILE, SETUP_CFG, CONDA, REQUIREMENTS)


@functools.cache
def matcher() -> Matcher:
    return Matcher(load_rules())


def kind_of(path: str):
    return next((kind for kind in PACKAGING if path.endswith(kind.endings) and kind.accepts(path)), None)


def source(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()


def migrate(
    path: str,
    text: str | bytes,
    settings: Settings | None = None,
    applied: bool = True,
    vendors: dict[str, str] | None = None,
) -> FileResult:
    overview = replace(survey([]), vendors=vendors or {})
    engine = Engine(matcher(), settings or Settings(), overview, rules_directory() / "helpers", applied)
    kind = kind_of(path)
    assert kind is not None, path
    return kind.rewrite(engine, path, source(text), frozenset()).result


def codes(result: FileResult) -> list[str]:
    return [f"{finding.code} {finding.outcome.value}" for finding in result.findings]


def assert_rewritten(path: str, before: str | bytes, after: str | bytes, **more) -> FileResult:
    """The file becomes ``after``; a second run changes nothing and still says what is open."""
    result = migrate(path, before, **more)
    assert result.new.decode() == source(after).decode()
    again = migrate(path, result.new, **more)
    assert again.new == result.new
    still = [f for f in result.findings if f.outcome is not Outcome.REWRITTEN]
    assert [(f.code, f.line, f.message) for f in again.findings] == [
        (f.code, f.line, f.message) for f in still
    ]
    return result


def assert_unchanged(path: str, text: str | bytes, *expected: str, **more) -> FileResult:
    """The file stays, byte for byte, with these findings."""
    result = migrate(path, text, **more)
    assert result.new == source(text)
    assert codes(result) == [f"{code} open" for code in expected]
    return result
