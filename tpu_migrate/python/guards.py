"""Removing imports: whole statements, single clauses, and ``try: import torch_xla`` guards.

    try:                                        ->  HAS_XLA = (torch.accelerator.is_available() and ...)
        import torch_xla.core.xla_model as xm
        HAS_XLA = True
    except ImportError:
        HAS_XLA = False

A flag told whether the code may use a TPU; that torch_xla can be imported was only how it was asked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.comments import comments_in
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.imports import NameTaken, Need
from tpu_migrate.python.names import ImportUse
from tpu_migrate.python.site import FileContext, parts_text
from tpu_migrate.python.template import parse_template, render
from tpu_migrate.python.tree import Tree

_IMPORT_ERRORS = {
    "ImportError",
    "ModuleNotFoundError",
    "Exception",
    "BaseException",
    "RuntimeError",
    "OSError",
}


@dataclass
class GuardPlan:
    """What becomes of the imports that nothing uses any more."""

    edits: list[Edit | Delete] = field(default_factory=list)
    needs: list[tuple[Need, int]] = field(default_factory=list)
    kept: dict[int, str] = field(default_factory=dict)
    """``id`` of an import alias that has to stay after all -> why."""


def plan(context: FileContext, removed: Sequence[ImportUse]) -> GuardPlan:
    """Plan the removal of imports."""
    result = GuardPlan()
    by_statement: dict[int, list[ImportUse]] = defaultdict(list)
    for use in removed:
        by_statement[id(use.statement)].append(use)
    by_guard: dict[int, list[ImportUse]] = defaultdict(list)
    guards: dict[int, cst.Try] = {}
    for uses in by_statement.values():
        statement = uses[0].statement
        if not isinstance(statement.names, cst.ImportStar) and len(uses) < len(statement.names):
            result.edits.extend(remove_clauses(context.tree, statement, [use.alias for use in uses]))
            continue
        guard = _guard(context.tree, statement)
        if guard is None:
            result.edits.append(Delete(statement))
        else:
            guards[id(guard)] = guard
            by_guard[id(guard)].extend(uses)
    for key, guard in guards.items():
        _remove_guard(context, guard, by_guard[key], result)
    return result


def remove_clauses(
    tree: Tree, statement: cst.Import | cst.ImportFrom, clauses: Sequence[cst.CSTNode]
) -> list[Edit]:
    """The edits that take some clauses out of an import statement."""
    assert not isinstance(statement.names, cst.ImportStar)
    gone = {id(clause) for clause in clauses}
    aliases = list(statement.names)
    edits = []
    for index, alias in enumerate(aliases):
        if id(alias) not in gone:
            continue
        span = tree.span(alias)
        if (line := _own_line(tree, alias)) is not None:
            edits.append(Edit(line))
        elif any(id(later) not in gone for later in aliases[index + 1 :]):
            edits.append(Edit(Span(span.start, tree.span(aliases[index + 1]).start)))
        else:
            edits.append(Edit(Span(_clause_end(tree, aliases[index - 1]), _clause_end(tree, alias))))
    return edits


def _own_line(tree: Tree, alias: cst.ImportAlias) -> Span | None:
    """The line of a clause that has one to itself, with its comma and comment."""
    source, span = tree.source, tree.span(alias)
    start, end = source.line_start(span.start), source.line_end(span.end)
    before, after = source.text[start : span.start], source.text[_clause_end(tree, alias) : end]
    return Span(start, end) if not before.strip() and re.fullmatch(r"\s*,?\s*(#.*)?\s*", after) else None


def _clause_end(tree: Tree, alias: cst.ImportAlias) -> int:
    """Where the clause ends, without its comma."""
    if alias.asname is not None:
        return tree.outer_span(alias.asname).end
    return tree.outer_span(alias.name).end


def _guard(tree: Tree, statement: cst.CSTNode) -> cst.Try | None:
    """The ``try`` whose body the import stands in directly."""
    line = tree.parent(statement)
    block = (
        line
        if isinstance(line, cst.SimpleStatementSuite)
        else tree.parent(line)
        if line is not None
        else None
    )
    owner = tree.parent(block) if block is not None else None
    return owner if isinstance(owner, cst.Try) and owner.body is block and owner.handlers else None


def _small(block: cst.BaseSuite) -> list[cst.BaseSmallStatement] | None:
    """The simple statements of a block, or None where it holds others."""
    if isinstance(block, cst.SimpleStatementSuite):
        return list(block.body)
    found: list[cst.BaseSmallStatement] = []
    for statement in block.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        found.extend(statement.body)
    return found


def _flags(statements: Sequence[cst.BaseSmallStatement]) -> dict[str, str] | None:
    """``NAME = constant`` assignments by name, or None where there is anything else."""
    flags: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, cst.Pass):
            continue
        if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Name):
            return None
        if statement.value.value not in ("True", "False", "None"):
            return None
        for target in statement.targets:
            if not isinstance(target.target, cst.Name):
                return None
            flags[target.target.value] = statement.value.value
    return flags


def _remove_guard(context: FileContext, guard: cst.Try, uses: Sequence[ImportUse], result: GuardPlan) -> None:
    gone = {id(use.statement) for use in uses}
    body = _small(guard.body)
    others = [s for s in body if id(s) not in gone] if body is not None else None
    good = _flags(others) if others is not None else None
    if good is None:  # the rest of the body keeps the guard meaningful
        result.edits.extend(
            Delete(use.statement) for use in {id(use.statement): use for use in uses}.values()
        )
        return
    orelse = _flags(_small(guard.orelse.body) or []) if guard.orelse is not None else {}
    if not good and orelse == {} and guard.finalbody is None and all(map(_gives_up, guard.handlers)):
        result.edits.append(Delete(guard))  # it only insisted on torch_xla
        return
    bad: dict[str, str] | None = {}
    for handler in guard.handlers:
        statements = _small(handler.body)
        flags = _flags(statements) if statements is not None else None
        if flags is None or not _catches_import_error(handler):
            bad = None
            break
        assert bad is not None
        bad.update(flags)
    if (
        bad is None
        or orelse is None
        or guard.finalbody is not None
        or (guard.orelse is not None and not _small(guard.orelse.body))
    ):
        reason = (
            "kept: its except branch does more than set a flag; test for the device instead: "
            "torch.accelerator.is_available()"
        )
        result.kept.update((id(use.alias), reason) for use in uses)
        return
    good.update(orelse)
    modules = {use.local_name for use in uses}
    names = [name for name in good if name not in modules]
    fallbacks = {name: value for name, value in bad.items() if name not in modules and name not in good}
    if (
        fallbacks
        or any(good[name] == bad.get(name) for name in names)
        or any(v == "None" for v in good.values())
    ):
        result.kept.update(
            (
                id(use.alias),
                "kept: what its except branch sets can't be told from a flag; rewrite the guard by hand",
            )
            for use in uses
        )
        return
    if not names:
        result.edits.append(Delete(guard))
        return
    scope = context.names.scope_of(guard)
    offset = context.tree.span(guard).start

    def spell(qualified_name: str) -> str:
        text, need = context.imports.spell(qualified_name, scope, offset)
        if need is not None:
            result.needs.append((need, offset))
        return text

    quote = "'" if context.names.prefers_single_quotes else '"'
    template = parse_template("@available", context.settings.device)
    try:
        test = parts_text(render(template, context.tree, None, spell, quote), "")
    except NameTaken as taken:
        result.kept.update((id(use.alias), f"kept: {taken}; rename it, then run again") for use in uses)
        return
    start = context.tree.source.line_start(offset)
    indent = context.tree.source.text[start:offset]
    lines = [f"{name} = {test}" if good[name] == "True" else f"{name} = not ({test})" for name in names]
    span = context.tree.span(guard)
    lines = [*comments_in(context.tree.source.text[span.start : span.end]), *lines]
    result.edits.append(Edit(span, (f"{context.tree.source.newline}{indent}".join(lines),)))


def _gives_up(handler: cst.ExceptHandler) -> bool:
    """Whether a handler does nothing but complain and stop."""
    last = handler.body.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    if isinstance(last, (cst.Raise, cst.Assert)):
        return True
    if isinstance(last, cst.Expr) and isinstance(last.value, cst.Call):
        function = last.value.func
        name = function.attr if isinstance(function, cst.Attribute) else function
        return isinstance(name, cst.Name) and name.value in ("exit", "_exit", "quit", "fail")
    return False


def _catches_import_error(handler: cst.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = (
        [e.value for e in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    )
    return all(isinstance(node, cst.Name) and node.value in _IMPORT_ERRORS for node in caught)
