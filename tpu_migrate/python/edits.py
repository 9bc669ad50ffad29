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


SPACED = -2
"""``order`` of insertions that bring their own blank lines."""


class EditConflict(Exception):
    """Two edits want different things of the same text."""


def delete_statements(tree: Tree, deletions: Iterable[Delete], kept: Sequence[Span] = ()) -> list[Edit]:
    """Turn deletions into edits.

    A comment that stands behind a deleted statement stays, on a line of its own. An ``if`` that is
    left with nothing to do goes too when its condition can't have an effect.

    Args:
        tree: the file.
        deletions: what to delete.
        kept: places that have to stay, because something is said about them.
    """
    doomed: dict[int, cst.CSTNode] = {id(deletion.statement): deletion.statement for deletion in deletions}
    emptied: dict[int, cst.CSTNode] = {}
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
        whole = _emptied_whole(tree, owner, block)
        if whole is not None and any(span in tree.span(whole) for span in kept):
            whole = None
        if whole is not None:
            if id(whole) not in doomed:
                doomed[id(whole)] = whole
                if isinstance(whole, cst.BaseCompoundStatement):
                    pending.append(whole)
        else:
            emptied.setdefault(id(block), statement)
    kept_as_pass = {id(statement) for statement in emptied.values()}
    inside = {
        id(inner)
        for statement in doomed.values()
        if isinstance(statement, (cst.BaseCompoundStatement, cst.Else))
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


def _emptied_whole(tree: Tree, owner: cst.CSTNode | None, block: cst.CSTNode | None) -> cst.CSTNode | None:
    """What goes with a block that is left empty: its ``if``, ``else`` or ``try``. None: it needs a ``pass``.

    An ``if`` goes when it has no other branch and a condition without effects, a ``try`` when nothing
    is left that its handlers could see fail. Comments inside keep either.
    """
    if owner is None or _comments(tree, tree.span(owner)):
        return None
    if isinstance(owner, cst.Else):
        return owner
    if (
        isinstance(owner, cst.Try)
        and owner.body is block
        and owner.orelse is None
        and owner.finalbody is None
    ):
        return owner
    if not isinstance(owner, cst.If) or owner.body is not block or owner.orelse is not None:
        return None
    parent = tree.parent(owner)
    if isinstance(parent, cst.If) and parent.orelse is owner:
        return None  # an elif
    return owner if _is_pure(owner.test) else None


_EFFECTS = (cst.Await, cst.Yield, cst.NamedExpr, cst.Subscript)
_ASKS = re.compile(
    r"(?:^|_)(?:is|has)_|available|ordinal|rank|world_size"
    r"|^(?:int|str|bool|len|isinstance|hasattr|getenv|get)$"
)


def _is_pure(test: cst.CSTNode) -> bool:
    """Whether a condition only asks: names, comparisons, and calls of functions named for a question."""
    for node in walk(test):
        if isinstance(node, _EFFECTS):
            return False
        if isinstance(node, cst.Call):
            name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            if not isinstance(name, cst.Name) or not _ASKS.search(name.value):
                return False
    return True


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
    imports = all(isinstance(statement, (cst.Import, cst.ImportFrom)) for statement in statements)
    if comment.startswith("#") and not _is_pragma(comment) and not imports:
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
    inserted = {
        edit.span.start for edit in edits if edit.span.start == edit.span.end and edit.order != SPACED
    }
    spaced = {edit.span.start for edit in edits if edit.span.start == edit.span.end and edit.order == SPACED}
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
        if span.end in spaced:
            extra.append(Edit(Span(before.start(), span.start)))
            continue
        if span.start == before.end() - len(before.group()) == 0 or (before.start() == 0 and below):
            extra.append(Edit(Span(span.end, span.end + after.end())))
        elif below and not above and text[: span.start].rstrip(" \t\r\n").endswith(":"):
            extra.append(Edit(Span(span.end, span.end + after.end())))  # it opened its block
        elif above and below:
            if below <= above:
                extra.append(Edit(Span(span.end, span.end + after.end())))
            else:
                extra.append(Edit(Span(before.start(), span.start)))
    return [*edits, *(edit for edit in extra if edit.span.start < edit.span.end)]


def merge_deletions(edits: Sequence[Edit]) -> list[Edit]:
    """Deletions that overlap, such as those of two arguments of one call, become one."""
    deletions = sorted((e for e in edits if not e.parts and e.span.start < e.span.end), key=lambda e: e.span)
    merged: list[Edit] = []
    for edit in deletions:
        last = merged[-1].span if merged else Span(-1, -1)
        if edit.span.start < last.end:
            merged[-1] = Edit(Span(last.start, max(last.end, edit.span.end)))
        else:
            merged.append(edit)
    return [*(edit for edit in edits if edit.parts or edit.span.start == edit.span.end), *merged]


def _is_whole_lines(text: str, span: Span) -> bool:
    return (span.start == 0 or text[span.start - 1] in "\r\n") and (
        span.end == len(text) or text[span.end - 1] in "\r\n"
    )


def replacement(text: str, edit: Edit, edits: Sequence[Edit]) -> str:
    """The text an edit puts in the place of its span, with the edits inside what it copies applied."""
    return "".join(
        part
        if isinstance(part, str)
        else render(
            text[part.start : part.end],
            [_moved(e, -part.start) for e in edits if e.span in part and e != edit],
        ).text
        for part in edit.parts
    )


def _moved(edit: Edit, by: int) -> Edit:
    parts = tuple(p if isinstance(p, str) else Span(p.start + by, p.end + by) for p in edit.parts)
    return Edit(Span(edit.span.start + by, edit.span.end + by), parts, edit.order)


def render(text: str, edits: Sequence[Edit]) -> Rendered:
    """Apply edits to a text.

    Raises:
        EditConflict: two edits overlap and neither contains the other.
    """
    ordered = sorted(dict.fromkeys(edits), key=_order)
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
                    if inner[index].span.end > edit.span.end or inner[index].span == edit.span:
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
