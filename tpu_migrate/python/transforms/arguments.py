"""Calls that shrink: to one of their arguments, or by one."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.site import Refused, Rewrite, Site, is_atom
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


def drop_argument(site: Site) -> Rewrite:
    """Delete one argument of a call and leave the rest as it is.

    optimizer.step(found_inf=found)  ->  optimizer.step()
    """
    name = str(site.match.rule.options["argument"])
    if site.call is None:
        raise Refused("it is not called here")
    node = site.capture(name).node
    argument = next((argument for argument in site.call.args if argument.value is node), None)
    if argument is None:
        raise Refused(f"{name} isn't given here")
    return Rewrite((Edit(argument_deletion(site.tree, site.call, argument)),))


def argument_deletion(tree: Tree, call: cst.Call, argument: cst.Arg) -> Span:
    """The span to delete so that a call loses one argument and its comma."""
    arguments = list(call.args)
    index = next(number for number, other in enumerate(arguments) if other is argument)
    if index + 1 < len(arguments):
        return Span(tree.span(argument).start, tree.span(arguments[index + 1]).start)
    if index:
        return Span(tree.outer_span(arguments[index - 1].value).end, tree.outer_span(argument.value).end)
    return tree.span(argument)
