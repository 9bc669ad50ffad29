"""Collectives whose arguments need a look before a helper takes their place."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Part
from tpu_migrate.python.pattern import is_literal, literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, shorten
from tpu_migrate.python.transforms.optimizer import ALONE
from tpu_migrate.python.transforms.template import INITIALIZED

_OPERATIONS = {"sum": "SUM", "mul": "PRODUCT", "max": "MAX", "min": "MIN"}
_WITHOUT_MEANING = frozenset(
    ("pin_layout", "channel_id", "use_global_device_ids", "split_count", "shard_count")
)


def collective(site: Site) -> Rewrite:
    """Call a helper with those arguments of a collective that it keeps.

    xm.all_gather(x, dim=1, pin_layout=False)  ->  all_gather(x, dim=1)

    Refused where ranks are grouped or an output is given: those need process groups and a copy.
    """
    options = site.match.rule.options
    keep, helper = list(options["keep"]), str(options["helper"])
    assert site.call is not None
    groups = site.captures.single.get("groups")
    if (
        options.get("grouped")
        and groups is not None
        and groups.node is not None
        and not is_literal(groups.node, None)
    ):
        keep, helper = [*keep, "groups"], f"{helper}_in_groups"
    for name, capture in site.captures.single.items():
        if name in keep or capture.node is None or name in _WITHOUT_MEANING:
            continue
        if not is_literal(capture.node, None):
            hint = (
                "make a torch.distributed.new_group of those ranks"
                if name == "groups"
                else "copy the result into it"
            )
            raise Refused(
                f"{name}={shorten(site.text(capture.node), 40)} has no place in the rewrite; {hint}"
            )
    first_argument = site.captures.single[str(keep[0] if keep[0] != "reduce_type" else keep[1])].node
    if isinstance(first_argument, (cst.List, cst.Tuple)) and options["helper"] not in (
        "all_reduce",
        "broadcast_tensors",
    ):
        raise Refused("it is given a list of tensors; call it for each")
    parts: list[Part] = [site.use_helper(helper), "("]
    first = True
    for argument in site.call.args:
        name = next(n for n, capture in site.captures.single.items() if capture.node is argument.value)
        if name not in keep:
            continue
        parts.extend([] if first else [", "])
        first = False
        if argument.keyword is not None:
            parts.append(f"{name}=")
        parts.extend(
            _operation(site, argument.value)
            if name == "reduce_type"
            else (site.tree.outer_span(argument.value),)
        )
    return site.replace((*parts, ")"))


def _operation(site: Site, node: cst.BaseExpression) -> tuple[Part, ...]:
    """A reduction, with torch_xla's strings ("sum") as ReduceOp."""
    value = literal_value(node)
    if isinstance(value, str):
        if value not in _OPERATIONS:
            raise Refused(f"ReduceOp has no {value!r} for truth values; reduce 0/1 values with MIN or MAX")
        return (site.spell(f"torch.distributed.ReduceOp.{_OPERATIONS[value]}"),)
    return (site.tree.outer_span(node),)


def rendezvous(site: Site) -> Rewrite:
    """Make a rendezvous without payload a barrier.

    xm.rendezvous("saved")  ->  dist.barrier()                 (where a process group is certain)
    xm.rendezvous("saved")  ->  if dist.is_initialized():      (elsewhere)
                                    dist.barrier()
    """
    if not site.is_whole_statement:
        raise Refused("its value, the payloads of all ranks, is used; use all_gather_object")
    statement = site.small_statement
    assert statement is not None
    barrier = "torch.distributed.barrier()"
    if site.has_group:
        return site.replace(site.template(barrier))
    if site.context.kind == "single-process":
        return Rewrite(site.delete_statement().edits, message="One process has nobody to wait for.")
    return site.statements(f"if {INITIALIZED}:\n    {barrier}", statement)


def reduce_gradients(site: Site) -> Rewrite:
    """Average gradients in place, where there are several processes.

    xm.reduce_gradients(optimizer)  ->  average_gradients(optimizer)
    """
    groups = site.captures.single["groups"].node
    if groups is not None and not is_literal(groups, None):
        raise Refused(
            "it reduces over groups of ranks; make a process group for each and reduce the gradients in it"
        )
    if site.context.kind in ALONE:
        return Rewrite(site.delete_statement().edits, message="One process has nothing to average.")
    optimizer = site.capture("optimizer").node
    assert optimizer is not None
    return site.replace((site.use_helper("average_gradients"), "(", site.tree.outer_span(optimizer), ")"))


def start_process_group(site: Site) -> Rewrite:
    """Make the process group where SPMD was switched on.

    xr.use_spmd()  ->  dist.init_process_group("tpu_dist")
    """
    if not site.is_whole_statement:
        raise Refused("its value is used")
    if site.context.makes_group:
        return Rewrite(site.delete_statement().edits, "The program makes its process group elsewhere.")
    return site.replace(site.template("torch.distributed.init_process_group(@backend)"))
