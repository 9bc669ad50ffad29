"""FSDP wrappers: ``XlaFullyShardedDataParallel`` and the SPMD one."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Part
from tpu_migrate.python.pattern import is_literal
from tpu_migrate.python.site import Refused, Rewrite, Site, shorten
from tpu_migrate.python.transforms.sharding import mesh_axes

_DROPPED = frozenset(
    "flatten_parameters execute_sharding_on_init optimization_barrier_in_forward "
    "optimization_barrier_in_backward mark_step_freq pin_layout_in_collective_ops shard_param_on_dim_0 "
    "disable_reshard_on_root use_all_gather_via_all_reduce reduce_scatter_bucket_size_mb "
    "all_gather_bucket_size_mb coalesce_all_gather_ops shard_output opt_flatten_overlap".split()
)
"""Arguments that tune torch_xla's implementation and say nothing about the result."""
_PRECISION = ("compute_dtype", "buffer_dtype", "fp32_reduce_scatter")


def fully_shard(site: Site) -> Rewrite:
    """Shard a module in place with FSDP2.

    model = FSDP(model, compute_dtype=torch.bfloat16)
        ->  model = fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    """
    assert site.call is not None
    tree = site.tree
    module = site.capture("module").node
    assert module is not None
    kept: list[tuple[Part, ...]] = []
    precision: dict[str, cst.BaseExpression] = {}
    mesh = site.captures.single.get("mesh")
    if mesh is not None and mesh.node is not None:
        kept.append(("mesh=", *_sharding_mesh(site, mesh.node)))
    for argument in site.captures.rest.get("rest", ()):
        name = argument.keyword.value if argument.keyword is not None else ""
        if name == "reshard_after_forward":
            kept.append((f"{name}=", tree.outer_span(argument.value)))
        elif name in _PRECISION:
            precision[name] = argument.value
        elif name not in _DROPPED and not any(is_literal(argument.value, off) for off in (None, False)):
            raise Refused(
                f"{name or 'an argument given by position'}={shorten(tree.text(argument.value), 40)} "
                "needs a decision: apply fully_shard to each block, then to the model"
            )
    if policy := _policy(site, precision):
        kept.append(("mp_policy=", *policy))
    parts: tuple[Part, ...] = (site.spell("torch.distributed.fsdp.fully_shard"), "(", tree.outer_span(module))
    for argument_parts in kept:
        parts += (", ", *argument_parts)
    return site.replace((*parts, ")"))


def _sharding_mesh(site: Site, node: cst.BaseExpression) -> tuple[Part, ...]:
    """The mesh dimension to shard over: torch_xla takes the axis called "fsdp", FSDP2 the last of two."""
    span = site.tree.outer_span(node)
    axes = mesh_axes(site, node)
    if len(axes) == 1:
        return (span,)
    if "fsdp" in axes:
        return (span, f"[{site.quote}fsdp{site.quote}]")
    raise Refused(f"the mesh has the axes {', '.join(axes)}, none called fsdp; name the one to shard over")


def _policy(site: Site, given: dict[str, cst.BaseExpression]) -> tuple[Part, ...] | None:
    compute = given.get("compute_dtype")
    if compute is None or is_literal(compute, None):
        return None
    tree = site.tree
    parts: tuple[Part, ...] = (site.spell("torch.distributed.fsdp.MixedPrecisionPolicy"), "(param_dtype=")
    parts += (tree.outer_span(compute),)
    reduce = given.get("fp32_reduce_scatter")
    if reduce is not None and is_literal(reduce, True):
        parts += (f", reduce_dtype={site.spell('torch.float32')}",)
    elif reduce is not None and not is_literal(reduce, False):
        raise Refused("fp32_reduce_scatter is no literal; write reduce_dtype= yourself")
    buffers = given.get("buffer_dtype")
    if buffers is not None and not is_literal(buffers, None) and tree.text(buffers) != tree.text(compute):
        raise Refused("fully_shard leaves buffers as they are; cast them to buffer_dtype yourself")
    return (*parts, ")")


def clip_grad_norm(site: Site) -> Rewrite:
    """Clip with torch's function, which knows sharded gradients.

    model.clip_grad_norm_(1.0)  ->  torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    """
    function = site.reference.node
    assert isinstance(function, cst.Attribute) and site.call is not None
    parts: tuple[Part, ...] = (
        site.spell("torch.nn.utils.clip_grad_norm_"),
        "(",
        site.tree.outer_span(function.value),
        ".parameters()",
    )
    for argument in site.call.args:
        parts += (", ", f"{argument.keyword.value}=" if argument.keyword is not None else "")
        parts += (site.tree.outer_span(argument.value),)
    return site.replace((*(part for part in parts if part != ""), ")"))
