"""Markdown for a comment on a pull request: the numbers, what is open, what to review."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tpu_migrate.findings import Finding, Outcome, RunResult
from tpu_migrate.report.summary import counted, in_order, label, percent, summarize
from tpu_migrate.report.text import one_line, visible

LIMIT = 60_000
"""Characters. GitHub refuses comments over 65,536."""

_MARKUP = re.compile(r"[\\`*_{}\[\]<>()!|~$&\"']")
_REFERENCE = re.compile("([@#])(?=\\w)")


def render(result: RunResult, *, limit: int = LIMIT) -> str:
    """The report as Markdown (GitHub's), cut at a row when it would be longer than ``limit``."""
    summary = summarize(result)
    wrote = "changed" if summary.applied else "would change"
    blocks = [
        "## tpu-migrate",
        f"{counted(summary.scanned, 'file')} scanned, {summary.changed:,} {wrote}.",
        "| | findings | |\n|---|---:|---|\n"
        f"| rewritten | {summary.rewritten:,} | {summary.rewritten_safe:,} safe, "
        f"{summary.rewritten_review:,} to review |\n"
        f"| open | {summary.open:,} | {summary.open_manual:,} manual, "
        f"{summary.open_refused:,} not rewritten |\n"
        f"| suppressed | {summary.suppressed:,} | |",
    ]
    if summary.references:
        blocks.append(
            f"torch\\_xla references rewritten: {summary.references_rewritten:,} of {summary.references:,}"
            f" ({percent(summary.share)})."
        )
    if result.programs:
        rows = [f"| {code(p.entry)} | {plain(p.kind)} | {plain(p.why)} |" for p in result.programs]
        blocks.append(_table("| program | kind | why |\n|---|---|---|", rows, limit // 4))
    findings = in_order(result.findings)
    used = sum(map(len, blocks))
    for title, wanted in _SECTIONS:
        rows = [_row(finding) for finding in findings if wanted(finding)]
        if rows:
            table = _table("| where | code | what | source |\n|---|---|---|---|", rows, (limit - used) // 2)
            blocks.append(f"### {title} ({len(rows):,})\n\n{table}")
            used += len(blocks[-1])
    return "\n\n".join(blocks) + "\n"


_SECTIONS: tuple[tuple[str, Callable[[Finding], bool]], ...] = (
    ("Open", lambda finding: finding.outcome is Outcome.OPEN),
    ("To review", lambda finding: label(finding) == "review"),
)


def _row(finding: Finding) -> str:
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    where = code(f"{finding.path}:{cell}{finding.line}:{finding.column}")
    word = label(finding)
    said = word in ("review", "manual") or finding.message.startswith(f"{word}: ")
    text = finding.message if said else f"{word}: {finding.message}"
    return f"| {where} | {plain(finding.code)} | {plain(text)} | {code(_short(finding.before))} |"


def _table(head: str, rows: Sequence[str], room: int) -> str:
    """A table, cut at ``room`` characters with a line that says what is missing."""
    kept = [head]
    for number, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            left = counted(len(rows) - number, "more row")
            return "\n".join(kept) + f"\n\n{left} left out: the comment would be too long."
        kept.append(row)
    return "\n".join(kept)


def plain(text: str) -> str:
    """Text that Markdown takes for nothing but text, in one line of a table.

    An empty comment after ``@`` and ``#`` keeps decorators and numbers from notifying people and
    linking issues.
    """
    lines = [_entities(line.strip()) for line in visible(text.strip()).split("\n")]
    return "<br>".join(lines)


def code(text: str) -> str:
    """Source code in one line of a table. Entities, since no fence of backticks keeps a ``|`` in a cell."""
    shown = _MARKUP.sub(_entity, one_line(text))
    return f"<code>{shown}</code>" if shown else ""


def _entities(text: str) -> str:
    """Each character that Markdown could read something into, as an entity."""
    pieces = _REFERENCE.split(text)
    return "".join(
        piece + "<!-- -->" if odd % 2 else _MARKUP.sub(_entity, piece) for odd, piece in enumerate(pieces)
    )


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found.group())};"


def _short(text: str, most: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + " ..."
