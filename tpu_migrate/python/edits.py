"""From edits to text: deletions of statements, nested edits, and where old offsets went."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from tpu_migrate.findings import Edit, Part, Span
from tpu_migrate.python.tree import Tree, walk


@dataclass(frozen=True)
class Delete:
    """Delete a whole statement. Blocks that lose all their statements get ``pass``."""

    statement: cst.BaseSmallStatement | cst.BaseCompoundStatement


class EditConflict(Exception):
    """Two edits want different things of the same text."""


def delete_statements(tree: Tree, deletions: Iterable[Delete]) -> list[Edit]:
    """Turn deletions into edits.

    A comment that stands behind a deleted statement stays, on a line of its own. An ``if`` that is
    left with nothing to do goes too when its condition can't have an effect.
    """
    doomed = {id(deletion.statement): deletion.statement for deletion in deletions}
    emptied: dict[int, cst.BaseSmallStatement] = {}
    pending = list(doomed.values())
    while pending:
        statement = pending.pop()
        line = tree.parent(statement) if isinstance(statement, cst.BaseSmallStatement) else statement
        assert line is not None
        if isinstance(line, cst.SimpleStatementLine) and not all(id(small) in doomed for small in line.body):
            continue
        block = line if isinstance(line, cst.SimpleStatementSuite) else tree.parent(line)
        if isinstance(block, cst.IndentedBlock):
            gone = all(
                all(id(small) in doomed for small in item.body)
                if isinstance(item, cst.SimpleStatementLine)
                else id(item) in doomed
                for item in block.body
            )
        else:
            gone = isinstance(block, cst.SimpleStatementSuite) and all(
                id(small) in doomed for small in block.body
            )
        if not gone:
            continue
        owner = tree.parent(block) if block is not None else None
        if isinstance(owner, cst.If) and _removable(tree, owner):
            if id(owner) not in doomed:
                doomed[id(owner)] = owner
                pending.append(owner)
        elif isinstance(statement, cst.BaseSmallStatement):
            emptied.setdefault(id(block), statement)
        else:
            emptied.setdefault(id(block), statement)  # type: ignore[arg-type]
    kept_as_pass = {id(statement) for statement in emptied.values()}
    inside = {
        id(inner)
        for statement in doomed.values()
        if isinstance(statement, cst.BaseCompoundStatement)
        for inner in walk(statement)
        if inner is not statement
    }
    edits: list[Edit] = []
    lines: dict[int, list[cst.BaseSmallStatement]] = defaultdict(list)
    for key, statement in doomed.items():
        if key in inside:
            continue
        if key in kept_as_pass:
            edits.append(Edit(tree.span(statement), ("pass",)))
        elif isinstance(statement, cst.BaseSmallStatement):
            lines[id(tree.parent(statement))].append(statement)
        else:
            edits.append(Edit(_line_span(tree, tree.span(statement))))
    for small in lines.values():
        edits.extend(_delete_small(tree, small))
    return edits


def _removable(tree: Tree, statement: cst.If) -> bool:
    """Whether an ``if`` that does nothing may go: no other branch, and a condition without effects."""
    parent = tree.parent(statement)
    if statement.orelse is not None or (
        isinstance(parent, (cst.If, cst.Else))
        and parent is not None
        and (isinstance(parent, cst.If) and parent.orelse is statement)
    ):
        return False
    effects = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr, cst.Subscript)
    if any(isinstance(node, effects) for node in walk(statement.test)):
        return False
    return _comments(tree, tree.span(statement)) == []


def _comments(tree: Tree, span: Span) -> list[str]:
    """Comments inside a span that may hold strings: good enough to know that there are none."""
    text = tree.source.text[span.start : span.end]
    return [line for line in text.splitlines() if "#" in line]


def _line_span(tree: Tree, span: Span) -> Span:
    return Span(tree.source.line_start(span.start), tree.source.line_end(max(span.start, span.end - 1)))


def _delete_small(tree: Tree, statements: list[cst.BaseSmallStatement]) -> list[Edit]:
    """Delete statements that share one line, all of them or some."""
    line = tree.parent(statements[0])
    assert isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
    text = tree.source.text
    if len(statements) < len(line.body):
        edits = []
        for statement in statements:
            span = tree.span(statement)
            position = next(index for index, item in enumerate(line.body) if item is statement)
            if position + 1 < len(line.body):
                edits.append(Edit(Span(span.start, tree.span(line.body[position + 1]).start)))
            else:
                edits.append(Edit(Span(tree.span(line.body[position - 1]).end, span.end)))
        return edits
    first, last = tree.span(line.body[0]), tree.span(line.body[-1])
    whole = Span(tree.source.line_start(first.start), tree.source.line_end(last.end))
    comment = text[last.end : whole.end].strip().lstrip(";").strip()
    if comment.startswith("#") and not _is_pragma(comment):
        return [Edit(Span(first.start, last.end + text[last.end : whole.end].index("#")))]
    return [Edit(whole)]


def _is_pragma(comment: str) -> bool:
    """A comment that speaks to a tool about the line it stands on, and is pointless without it."""
    return (
        comment.lstrip("# ")
        .lower()
        .startswith(("noqa", "type:", "pylint", "pyright", "fmt:", "isort", "pragma"))
    )


@dataclass(frozen=True)
class Rendered:
    """New text, and where the old text went."""

    text: str
    copies: tuple[tuple[int, int, int], ...]
    """(old start, old end, new start) of each range that was copied, by old start."""
    starts: tuple[tuple[int, int], ...]
    """(old start of an edit, new start of what replaced it), by old start."""

    def new_offset(self, old: int) -> int:
        """Where the text at an old offset is now; for replaced text, where its replacement begins."""
        index = bisect.bisect_right(self.copies, (old, len(self.text) + old + 1, 0)) - 1
        if index >= 0:
            start, end, new = self.copies[index]
            if start <= old < end or (old == end and index == len(self.copies) - 1):
                return new + old - start
        index = bisect.bisect_right(self.starts, (old, len(self.text) + 1)) - 1
        return self.starts[index][1] if index >= 0 else old


def _order(edit: Edit) -> tuple[int, bool, int, int]:
    """Insertions before replacements at the same place, wider replacements before those inside them."""
    return (edit.span.start, edit.span.start < edit.span.end, -edit.span.end, edit.order)


def close_gaps(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Where whole lines go, let the blank lines around them go too that only set them apart."""
    lines = sorted(
        edit.span
        for edit in edits
        if not edit.parts and edit.span.start < edit.span.end and _is_whole_lines(text, edit.span)
    )
    inserted = {edit.span.start for edit in edits if edit.span.start == edit.span.end}
    merged: list[Span] = []
    for span in lines:
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    extra: list[Edit] = []
    for span in merged:
        if any(span.start <= offset <= span.end for offset in inserted):
            continue
        before = re.search(r"(?:^|(?<=\n))(?:[ \t]*\r?\n)*$", text[: span.start])
        after = re.match(r"(?:[ \t]*\r?\n)*", text[span.end :])
        assert before is not None and after is not None
        above, below = before.group().count("\n"), after.group().count("\n")
        if span.start == before.end() - len(before.group()) == 0 or (before.start() == 0 and below):
            extra.append(Edit(Span(span.end, span.end + after.end())))
        elif above and below:
            if below <= above:
                extra.append(Edit(Span(span.end, span.end + after.end())))
            else:
                extra.append(Edit(Span(before.start(), span.start)))
    return [*edits, *(edit for edit in extra if edit.span.start < edit.span.end)]


def _is_whole_lines(text: str, span: Span) -> bool:
    return (span.start == 0 or text[span.start - 1] in "\r\n") and (
        span.end == len(text) or text[span.end - 1] in "\r\n"
    )


def render(text: str, edits: Sequence[Edit]) -> Rendered:
    """Apply edits to a text.

    Raises:
        EditConflict: two edits overlap and neither contains the other.
    """
    ordered = sorted(set(edits), key=_order)
    out: list[str] = []
    copies: list[tuple[int, int, int]] = []
    starts: list[tuple[int, int]] = []
    length = 0

    def put(piece: str) -> None:
        nonlocal length
        out.append(piece)
        length += len(piece)

    def copy(start: int, end: int) -> None:
        if start < end:
            copies.append((start, end, length))
            put(text[start:end])

    def region(start: int, end: int, inner: Sequence[Edit]) -> None:
        position = start
        index = 0
        while index < len(inner):
            edit = inner[index]
            if edit.span.start < position:
                raise EditConflict(f"edits overlap at offset {edit.span.start}")
            copy(position, edit.span.start)
            starts.append((edit.span.start, length))
            nested = []
            index += 1
            if edit.span.start < edit.span.end:
                while index < len(inner) and (
                    inner[index].span.start < edit.span.end
                    and not (inner[index].span.start == inner[index].span.end == edit.span.start)
                ):
                    if inner[index].span.end > edit.span.end:
                        raise EditConflict(f"edits overlap at offset {inner[index].span.start}")
                    nested.append(inner[index])
                    index += 1
            replace(edit.parts, nested)
            position = edit.span.end
        copy(position, end)

    def replace(parts: Sequence[Part], nested: Sequence[Edit]) -> None:
        for part in parts:
            if isinstance(part, Span):
                region(part.start, part.end, [edit for edit in nested if edit.span in part])
            else:
                put(part)

    region(0, len(text), ordered)
    return Rendered("".join(out), tuple(sorted(copies)), tuple(sorted(starts)))
