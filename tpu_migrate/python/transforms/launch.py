"""Starting workers: ``xmp.spawn`` and ``torch_xla.launch``."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Part
from tpu_migrate.python.pattern import is_literal, literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, shorten
from tpu_migrate.python.tree import walk


def launch(site: Site) -> Rewrite:
    """Let torchrun start the workers; make the process group, then call the worker function.

    xmp.spawn(train, args=(flags,), nprocs=8)
        ->  dist.init_process_group("tpu_dist")
            train(dist.get_rank(), flags)
            dist.destroy_process_group()

    The index a worker got was its global ordinal (torch_xla 2.9, ``_internal/pjrt.py``), so it is the
    rank here and not LOCAL_RANK, which repeats on every host.

    With ``launcher = "spawn"`` a helper starts the processes from the program itself. One process
    (``nprocs=1``) needs neither: ``train(0, flags)``.
    """
    if not site.is_whole_statement:
        raise Refused("its value is used")
    for name, value in (("join", True), ("daemon", False), ("debug_single_process", False)):
        capture = site.captures.single.get(name)
        if capture is not None and capture.node is not None and not is_literal(capture.node, value):
            raise Refused(f"{name}={shorten(site.text(capture.node))} has no counterpart under torchrun")
    statement = site.small_statement
    worker = site.capture("fn").node
    assert statement is not None and worker is not None
    if (site.context.names.qualified_name(worker) or "").startswith("torch_xla"):
        raise Refused("its worker is a function of torch_xla; write a function around it")
    arguments = _worker_arguments(site)
    processes = site.captures.single.get("nprocs")
    count = processes.node if processes is not None else None
    if count is not None and is_literal(count, None):
        count = None
    if count is not None and is_literal(count, 1):
        text = "$fn(0, $inline)" if arguments else "$fn(0)"
        return Rewrite(
            site.statements(text, statement, inline=arguments).edits,
            message="One process needs no process group and no launcher.",
        )
    if site.context.settings.launcher == "spawn":
        return _from_the_program(site, statement, count)
    before = ""
    given = site.capture("args").node
    if given is not None and any(isinstance(node, cst.Call) for node in walk(given)):
        # evaluated before the process group is made, as it was before the workers were started
        name = "worker_args" if site.context.imports.name_is_free("worker_args") else "_worker_args"
        before, arguments = f"{name} = $args\n", (f"*{name}",)
    rank = "int(os.environ['RANK'])" if site.context.makes_group else "torch.distributed.get_rank()"
    call = f"$fn({rank}, $inline)" if arguments else f"$fn({rank})"
    if site.context.makes_group:
        text = before + call
    else:
        text = before + "\n".join(
            (
                "torch.distributed.init_process_group(@backend)",
                call,
                "torch.distributed.destroy_process_group()",
            )
        )
    rewrite = site.statements(text, statement, inline=arguments)
    return Rewrite(rewrite.edits, _how_to_start(site, count))


def _worker_arguments(site: Site) -> tuple[Part, ...]:
    """The worker function's arguments, as they stand in a call."""
    node = site.capture("args").node
    if node is None:
        return ()
    if isinstance(node, (cst.Tuple, cst.List)) and not any(
        isinstance(element, cst.StarredElement) for element in node.elements
    ):
        spans = [site.tree.outer_span(element.value) for element in node.elements]
        return tuple(part for span in spans for part in (", ", span))[1:]
    return ("*", site.tree.outer_span(node))


def _from_the_program(
    site: Site, statement: cst.BaseSmallStatement, count: cst.BaseExpression | None
) -> Rewrite:
    helper = site.use_helper("launch")
    parts: tuple[Part, ...] = (helper, "(")
    fn = site.capture("fn").node
    assert fn is not None
    parts += (site.tree.outer_span(fn),)
    arguments = site.capture("args").node
    if arguments is not None:
        parts += (", args=", site.tree.outer_span(arguments))
    if count is not None:
        parts += (", nprocs=", site.tree.outer_span(count))
    return Rewrite(site.replace((*parts, ")")).edits)


def _how_to_start(site: Site, count: cst.BaseExpression | None) -> str:
    path = "this program"
    number = literal_value(count) if count is not None else None
    if isinstance(number, int):
        return f"Start {path} with `torchrun --nproc-per-node={number}`."
    if count is not None:
        return (
            f"Start {path} with `torchrun --nproc-per-node=N`, N being what `{shorten(site.text(count))}` "
            "was; it is no longer read here."
        )
    return f"Start {path} with `torchrun --nproc-per-node=N`, N being the number of chips of the host."
