"""The report for people at a terminal: diffs, then what a person has to do by file, then the summary."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tpu_migrate.findings import Finding, RunResult
from tpu_migrate.report.diff import diff_lines
from tpu_migrate.report.summary import (
    Summary,
    counted,
    in_order,
    label,
    needs_a_person,
    percent,
    root_of,
    skipped_of,
    summarize,
)
from tpu_migrate.report.text import one_line, visible

_MOST_SKIPPED = 10
Wanted = Callable[[Finding], bool]

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_LABEL_COLOURS = {"manual": "red", "not rewritten": "red", "review": "yellow"}


class Paint:
    """Colours text, or leaves it as it is."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, *styles: str) -> str:
        if not self.colour or not text:
            return text
        return "".join(f"\x1b[{_COLOURS[style]}m" for style in styles) + text + "\x1b[0m"


def render(
    result: RunResult, *, colour: bool = False, width: int = 80, diff: bool = True, prefix: str = ""
) -> str:
    """The whole report.

    Args:
        result: the run.
        colour: use ANSI colours.
        width: columns to wrap text at; source lines are never wrapped.
        diff: show the change of every file.
        prefix: put before every path, so that paths can be opened from where the user is.
    """
    paint = Paint(colour)
    blocks = list(_diffs(result, paint)) if diff else []
    blocks += _findings(result, paint, width, prefix, needs_a_person)
    if not diff and not result.applied and result.changed:
        blocks.append("".join(f"would change: {prefix}{visible(file.path)}\n" for file in result.changed))
    blocks.append(render_summary(result, colour=colour, width=width))
    return "\n".join(blocks)


def render_open(result: RunResult, *, colour: bool = False, width: int = 80, prefix: str = "") -> str:
    """Only what is open: the quiet report. Empty when nothing is."""
    blocks = _findings(result, Paint(colour), width, prefix, lambda finding: finding.outcome.value == "open")
    return "\n".join(blocks)


def render_summary(result: RunResult, *, colour: bool = False, width: int = 80) -> str:
    """The numbers, the kinds of program found, and the next step."""
    paint = Paint(colour)
    summary = summarize(result)
    lines = [_headline(summary, paint)]
    rows = [
        (
            "rewritten",
            summary.rewritten,
            f"{summary.rewritten_safe:,} safe, {summary.rewritten_review:,} to review",
        ),
        ("open", summary.open, f"{summary.open_manual:,} manual, {summary.open_refused:,} not rewritten"),
        ("suppressed", summary.suppressed, ""),
    ]
    if summary.rewritten or summary.open or summary.suppressed:
        for name, number, detail in rows:
            if number or name != "suppressed":
                lines.append(f"  {name:<10} {number:>6,}" + (f"   {detail}" if number and detail else ""))
    if summary.references:
        lines.append(
            f"  torch_xla references rewritten: {summary.references_rewritten:,} of {summary.references:,}"
            f" ({percent(summary.share)})"
        )
    if result.programs:
        lines.append(paint("Programs", "bold"))
        for program in result.programs:
            text = f"{visible(program.entry)}: {program.kind}: {one_line(program.why)}"
            lines += _wrapped(text, width, "  ", "    ")
    skipped = skipped_of(result)
    if skipped:
        lines.append(paint("Not looked at", "bold"))
        for path, why in skipped[:_MOST_SKIPPED]:
            lines += _wrapped(f"{visible(path)}: {one_line(why)}", width, "  ", "    ")
        if len(skipped) > _MOST_SKIPPED:
            lines.append(f"  and {len(skipped) - _MOST_SKIPPED:,} more")
    for text in _next_steps(summary, root_of(result)):
        lines += _wrapped(text, width, "", "  ")
    return "\n".join(lines) + "\n"


def _headline(summary: Summary, paint: Paint) -> str:
    text = f"{counted(summary.scanned, 'file')} scanned"
    if not summary.affected:
        return paint(f"{text}: no torch_xla found, nothing to do.", "bold")
    if summary.applied:
        return paint(f"{text}, {summary.changed:,} changed.", "bold")
    return paint(f"{text}, {summary.changed:,} would change. Nothing was written.", "bold")


def _next_steps(summary: Summary, root: Path | None) -> Iterator[str]:
    if summary.changed and not summary.applied:
        yield "Next: run it again with --apply to write this."
    if summary.changed and summary.applied:
        where = "PATH" if root is None else shlex.quote(visible(str(root)))
        yield f"Take it back: tpu-migrate undo {where}"
    if summary.open:
        yield "What a code means: tpu-migrate rules CODE"


def _diffs(result: RunResult, paint: Paint) -> Iterator[str]:
    for file in result.files:
        lines = [_diff_line(visible(line), paint) for line in diff_lines(file)]
        if lines:
            yield "\n".join(lines) + "\n"


def _diff_line(line: str, paint: Paint) -> str:
    if line.startswith(("--- ", "+++ ")):
        return paint(line, "bold")
    if line.startswith("@@"):
        return paint(line, "cyan")
    if line.startswith("+"):
        return paint(line, "green")
    return paint(line, "red") if line.startswith("-") else line


def _findings(result: RunResult, paint: Paint, width: int, prefix: str, wanted: Wanted) -> list[str]:
    blocks = []
    for file in sorted(result.files, key=lambda file: file.path):
        findings = in_order(finding for finding in file.findings if wanted(finding))
        if findings:
            lines = [line for group in _alike(findings) for line in _group(group, paint, width, prefix)]
            blocks.append("\n".join(lines) + "\n")
    return blocks


def _alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings that say the same, together, at the place of the first."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, label(finding), finding.message), []).append(finding)
    return list(groups.values())


def _group(group: list[Finding], paint: Paint, width: int, prefix: str) -> Iterator[str]:
    first, *others = group
    where = f"{visible(prefix + first.path)}:{_place(first)}:"
    word = label(first)
    # "not rewritten: its value is used" is the label and the reason in one
    message = visible(first.message).strip().removeprefix(f"{word}: ")
    head, *rest = message.split("\n")
    lines = _wrapped(f"{where} {first.code} {word}: {head}", width, "", "  ")
    # Painted after wrapping: colour codes have no width. A long path may leave the code for the second line.
    if lines[0].startswith(where):
        marked = f"{first.code} {word}:"
        colours = _LABEL_COLOURS.get(word, "bold")
        lines[0] = lines[0].replace(where, paint(where, "bold"), 1).replace(marked, paint(marked, colours), 1)
    yield from lines
    for line in rest:
        yield from _wrapped(line.strip(), width, "  ", "  ")
    source = one_line(first.before)
    if source:
        yield (
            paint(f"    {source}", "dim")
            if len(source) <= width - 4
            else paint(f"    {source[: width - 8]} ...", "dim")
        )
    if others:
        yield from _wrapped("also at " + ", ".join(_place(other) for other in others), width, "  ", "  ")


def _place(finding: Finding) -> str:
    place = f"{finding.line}:{finding.column}"
    return place if finding.cell is None else f"cell {finding.cell}:{place}"


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
