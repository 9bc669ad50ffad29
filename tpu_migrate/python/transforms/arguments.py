"""Calls that shrink: to one of their arguments, or by one."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.site import Rewrite, Site, is_atom
from tpu_migrate.python.tree import Tree


def unwrap_argument(site: Site) -> Rewrite:
    """Replace a call by one of its arguments.

    xmp.MpModelWrapper(Net())  ->  Net()
    """
    name = str(site.match.rule.options["argument"])
    return site.replace(site.template(f"${name}"), loose=not _is_atom(site, name))


def _is_atom(site: Site, name: str) -> bool:
    node = site.capture(name).node
    return node is None or is_atom(node)


def argument_deletion(tree: Tree, call: cst.Call, argument: cst.Arg) -> Span:
    """The span to delete so that a call loses one argument and its comma."""
    arguments = list(call.args)
    index = next(number for number, other in enumerate(arguments) if other is argument)
    if index + 1 < len(arguments):
        return Span(tree.span(argument).start, tree.span(arguments[index + 1]).start)
    if index:
        return Span(tree.outer_span(arguments[index - 1].value).end, tree.outer_span(argument.value).end)
    return tree.span(argument)


def model_wrapper(site: Site) -> Rewrite:
    """Unwrap a model that forked workers shared; give all ranks the same weights where they share no memory.

    WRAPPED = xmp.MpModelWrapper(Net())   ->  WRAPPED = Net()
    model = WRAPPED.to(device)            ->  model = WRAPPED.to(device)
                                              broadcast_parameters(model)
    """
    unwrapped = site.replace(site.template("$model"), loose=not _is_atom(site, "model"))
    edits: list[Edit | Delete] = list(unwrapped.edits)
    parent = site.tree.parent(site.node)
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    alone = site.context.kind == "single-process"
    if not isinstance(target, cst.Name):
        return Rewrite(tuple(edits))
    for node, _ in site.context.names.loads.get(target.value, ()):
        attribute = site.tree.parent(node)
        if not isinstance(attribute, cst.Attribute):
            continue
        if attribute.attr.value == "_model":
            edits.append(Edit(site.tree.span(attribute), (target.value,)))
        elif attribute.attr.value == "to" and not alone:
            edits.extend(_broadcast_after(site, attribute))
    return Rewrite(tuple(edits))


def _broadcast_after(site: Site, attribute: cst.Attribute) -> list[Edit]:
    """The line that gives every rank rank 0's weights, behind ``model = WRAPPED.to(device)``."""
    tree = site.tree
    call = tree.parent(attribute)
    statement = tree.parent(call) if call is not None else None
    line = tree.parent(statement) if statement is not None else None
    if not isinstance(statement, cst.Assign) or not isinstance(line, cst.SimpleStatementLine):
        return []
    model = statement.targets[0].target
    if len(line.body) != 1 or not isinstance(model, (cst.Name, cst.Attribute)):
        return []
    end = tree.source.line_end(tree.span(line).end)
    helper = site.use_helper("broadcast_parameters")
    text = f"{site.indent_of(line)}{helper}({tree.text(model)}){tree.source.newline}"
    return [Edit(Span(end, end), (text,))]
