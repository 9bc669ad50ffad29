"""``torch_xla.compile`` of a function."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Part
from tpu_migrate.python.pattern import is_literal
from tpu_migrate.python.site import Refused, Rewrite, Site
from tpu_migrate.python.tree import walk


def compile_function(site: Site) -> Rewrite:
    """Compile with torch.compile.

    torch_xla.compile(model, full_graph=True)  ->  torch.compile(model)

    ``full_graph`` forbade to cut the lazy graph. Dynamo's ``fullgraph`` forbids more: a function that
    calls backward(), an optimizer's step() or item() would fail. So it is written only where the
    function is in view and does none of that.
    """
    function = site.capture("f").node
    full = site.capture("full_graph").node
    assert function is not None
    if isinstance(site.tree.parent(site.node), cst.WithItem):
        raise Refused("torch.compile is no context manager; move the block into a function")
    parts: tuple[Part, ...] = (site.spell("torch.compile"), "(", site.tree.outer_span(function))
    note = ""
    if full is not None and not is_literal(full, False):
        if _is_plain(site, function):
            parts += (", fullgraph=", site.tree.outer_span(full))
        else:
            note = "full_graph went: Dynamo's fullgraph=True fails at backward(), step(), item() and prints."
    return Rewrite((Edit(site.tree.span(site.node), (*parts, ")")),), note)


_BREAKS = frozenset("backward step item tolist cpu numpy print".split())


def _is_plain(site: Site, function: cst.BaseExpression) -> bool:
    """Whether a function of this file, in view, calls nothing that breaks Dynamo's graph."""
    if not isinstance(function, cst.Name):
        return False
    found = site.scope.lookup(function.value)
    definition = found[1][0].node if found is not None and len(found[1]) == 1 else None
    if not isinstance(definition, cst.FunctionDef):
        return False
    for node in walk(definition.body):
        if isinstance(node, cst.Call):
            name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            if isinstance(name, cst.Name) and name.value in _BREAKS:
                return False
    return True
