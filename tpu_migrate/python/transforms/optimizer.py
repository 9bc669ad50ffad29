"""``xm.optimizer_step``: the mean of the gradients over all replicas, then the update."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Part, Span
from tpu_migrate.python.pattern import is_literal, literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, is_repeatable, shorten
from tpu_migrate.python.transforms.ddp import plan_ddp

ALONE = ("single-process", "spmd")


def optimizer_step(site: Site) -> Rewrite:
    """Write the reduction out, unless the process is alone or DistributedDataParallel can do it.

    xm.optimizer_step(optimizer)   ->  optimizer.step()                  (one process)
    xm.optimizer_step(optimizer)   ->  average_gradients(optimizer)      (several)
                                       optimizer.step()
    """
    groups = site.captures.single["groups"].node
    if groups is not None and not is_literal(groups, None):
        raise Refused(
            "it reduces over groups of ranks; make a process group for each and reduce the gradients in it"
        )
    step = ("$optimizer.step(", *_step_arguments(site), ")")
    if site.context.kind in ALONE:
        alone = "One process has nothing to average; started with several, it would have to."
        return Rewrite(
            site.replace(_filled(site, step)).edits, message=alone if site.context.kind != "spmd" else ""
        )
    if (ddp := plan_ddp(site)) is not None:
        edits = site.replace(_filled(site, step)).edits
        return Rewrite(
            (*edits, *ddp), "The model is wrapped in DistributedDataParallel, which averages the gradients."
        )
    optimizer = site.capture("optimizer").node
    assert optimizer is not None
    if not is_repeatable(optimizer):
        raise Refused(f"`{shorten(site.text(optimizer))}` would be evaluated twice; give it a name first")
    statement = site.small_statement
    if statement is None:
        raise Refused("it stands in the head of a statement; put it on a line of its own")
    helper = site.use_helper("average_gradients")
    line = site.tree.parent(statement)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise Refused("it shares its line with another statement; put it on a line of its own")
    start = site.tree.span(statement).start
    above = Edit(
        Span(start, start),
        (f"{helper}(", site.tree.outer_span(optimizer), f"){site.tree.source.newline}{site.indent_of(line)}"),
    )
    return Rewrite((above, *site.replace(_filled(site, step)).edits))


def _filled(site: Site, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    head, rest = parts[0], parts[1:]
    assert isinstance(head, str)
    optimizer = site.template("$optimizer.x")[:-1]
    return (*optimizer, head.removeprefix("$optimizer"), *rest)


def _step_arguments(site: Site) -> tuple[Part, ...]:
    node = site.captures.single["optimizer_args"].node
    if node is None:
        return ()
    if isinstance(node, cst.Dict):
        parts: list[Part] = []
        for element in node.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(literal_value(element.key), str):
                return ("**", site.tree.outer_span(node))
            parts.extend([", "] if parts else [])
            parts.extend([f"{literal_value(element.key)}=", site.tree.outer_span(element.value)])
        return tuple(parts)
    return ("**", site.tree.outer_span(node))
