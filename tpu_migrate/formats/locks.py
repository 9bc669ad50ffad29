"""Lock files: made by tools, so that one finding says to make them again."""

from __future__ import annotations

import re

from tpu_migrate.findings import FileResult, Finding, Outcome
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.packages import LOCK
from tpu_migrate.python.rewrite import Engine, Rewritten
from tpu_migrate.rules import RuleBook

COMMANDS = {
    "Pipfile.lock": "pipenv lock",
    "conda-lock.yml": "conda-lock",
    "pdm.lock": "pdm lock",
    "poetry.lock": "poetry lock",
    "pylock.toml": "the tool that wrote it (`uv export` or `pip lock`)",
    "uv.lock": "uv lock",
}
_MENTION = re.compile(rb"torch[-_.]xla|optimum[-_.]tpu|libtpu[-_.]nightly")


def mentions(book: RuleBook, data: bytes) -> bool:
    """Whether a lock file pins what departs."""
    return _MENTION.search(data) is not None


def rewrite(engine: Engine, path: str, data: bytes, wanted: frozenset[str] = frozenset()) -> Rewritten:
    """Say of one lock file that it has to be made again."""
    result = FileResult(path, data, data)
    match = engine.matcher.find(LOCK, None, "")
    places = list(_MENTION.finditer(data))
    ignored = engine.settings.ignored_in(engine.prefix + path)
    if match is None or not places or not engine.settings.selects(match.rule.code):
        return Rewritten(result)
    rule = match.rule
    if ignored and rule.code.startswith(ignored):
        return Rewritten(result)
    start = places[0].start()
    line_start = data.rfind(b"\n", 0, start) + 1
    line, column = data.count(b"\n", 0, start) + 1, len(data[line_start:start].decode("utf-8", "replace")) + 1
    command = COMMANDS[path.rpartition("/")[2]]
    command = f"`{command}`" if " " not in command or "`" not in command else command
    name = places[0].group().decode()
    result.findings.append(
        Finding(
            rule.code, rule.name, path, line, column, line, column + len(name), rule.safety, Outcome.OPEN,
            f"{rule.action} Command: {command}.", before=name, symbol=LOCK,
        )
    )  # fmt: skip
    result.references = 1
    return Rewritten(result)


def accepts(path: str) -> bool:
    return path.rpartition("/")[2] in COMMANDS


LOCKS = Format("lock", tuple(COMMANDS), rewrite, accepts, mentions)
