"""Calls that shrink: to one of their arguments, or by one."""

from __future__ import annotations

import re

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.comments import comments_in
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.pattern import literal_value, parse_pattern
from tpu_migrate.python.site import Refused, Rewrite, Site, is_atom, shorten
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


def drop_keyword(site: Site) -> Rewrite:
    """Delete a keyword argument that is known by its name, or by the string given to it.

    TrainingArguments("out", tpu_num_cores=8, bf16=True)  ->  TrainingArguments("out", bf16=True)
    """
    argument = site.tree.parent(site.node)
    call = site.tree.parent(argument) if argument is not None else None
    if not isinstance(argument, cst.Arg) or argument.keyword is None or not isinstance(call, cst.Call):
        raise Refused(f"`{shorten(site.text(site.node))}` is not a keyword argument here")
    if any(comments_in(site.tree.source.text[span.start : span.end]) for span in _between(site.tree, call)):
        line = _own_line(site.tree, argument)
        if line is None:
            raise Refused("there are comments between the arguments; take it out by hand")
    names = {pattern.qualified_name for pattern in map(parse_pattern, site.match.rule.match)}
    return Rewrite((Edit(_keyword_deletion(site.tree, call, argument, names)),))


def _between(tree: Tree, call: cst.Call) -> list[Span]:
    """What stands around the arguments of a call, commas and comments among it."""
    spans = [tree.outer_span(argument.value) for argument in call.args]
    ends = [*spans[1:], Span(tree.span(call).end, tree.span(call).end)]
    return [Span(left.end, right.start) for left, right in zip(spans, ends, strict=True)]


def _own_line(tree: Tree, argument: cst.Arg) -> Span | None:
    """The line of an argument that has one to itself; with a comment on it, all but the comment."""
    source, span = tree.source, tree.span(argument)
    start, end = source.line_start(span.start), source.line_end(span.end)
    before, after = source.text[start : span.start], source.text[tree.outer_span(argument.value).end : end]
    found = re.fullmatch(r"(\s*,?\s*)(#.*)?\s*", after)
    if before.strip() or found is None:
        return None
    return Span(start, end) if not found[2] else Span(span.start, end - len(after) + found.end(1))


def _keyword_deletion(tree: Tree, call: cst.Call, argument: cst.Arg, names: set[str]) -> Span:
    """The span to delete; several that are deleted from one call must not overlap."""
    if (line := _own_line(tree, argument)) is not None:
        return line
    arguments = list(call.args)
    index = next(number for number, other in enumerate(arguments) if other is argument)
    goes = [
        a.keyword is not None
        and not names.isdisjoint((f"argument.{a.keyword.value}", f"value.{literal_value(a.value)}"))
        for a in arguments
    ]
    if index and all(goes[index:]):
        return Span(tree.outer_span(arguments[index - 1].value).end, tree.outer_span(argument.value).end)
    if len(arguments) == 1:
        end = tree.outer_span(argument.value).end
        comma = re.match(r"\s*,", tree.source.text[end : tree.span(call).end])
        return Span(tree.span(argument).start, end + (comma.end() if comma else 0))
    return argument_deletion(tree, call, argument)


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
