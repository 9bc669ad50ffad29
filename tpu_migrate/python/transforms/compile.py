"""``torch_xla.compile`` of a function."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Part
from tpu_migrate.python.pattern import is_literal
from tpu_migrate.python.site import Refused, Rewrite, Site


def compile_function(site: Site) -> Rewrite:
    """Compile with torch.compile; ``full_graph`` becomes ``fullgraph``.

    torch_xla.compile(step, full_graph=True, name="s")  ->  torch.compile(step, fullgraph=True)
    """
    function = site.capture("f").node
    full = site.capture("full_graph").node
    assert function is not None
    if isinstance(site.tree.parent(site.node), cst.WithItem):
        raise Refused("torch.compile is no context manager; move the block into a function")
    parts: tuple[Part, ...] = (site.spell("torch.compile"), "(", site.tree.outer_span(function))
    if full is not None and not is_literal(full, False):
        parts += (", fullgraph=", site.tree.outer_span(full))
    return Rewrite((Edit(site.tree.span(site.node), (*parts, ")")),))
