"""FSDP wrappers: ``XlaFullyShardedDataParallel`` and the SPMD one."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Part, Span
from tpu_migrate.python.edits import Delete
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
    policy_argument: cst.BaseExpression | None = None
    precision: dict[str, cst.BaseExpression] = {}
    mesh = site.captures.single.get("mesh")
    if mesh is not None and mesh.node is not None:
        kept.append(("mesh=", *_sharding_mesh(site, mesh.node)))
    for argument in site.captures.rest.get("rest", ()):
        name = argument.keyword.value if argument.keyword is not None else ""
        if name == "reshard_after_forward":
            kept.append((f"{name}=", tree.outer_span(argument.value)))
        elif name == "auto_wrap_policy" and not is_literal(argument.value, None):
            policy_argument = argument.value
        elif name in _PRECISION:
            precision[name] = argument.value
        elif name not in _DROPPED and not any(is_literal(argument.value, off) for off in (None, False)):
            raise Refused(
                f"{name or 'an argument given by position'}={shorten(tree.text(argument.value), 40)} "
                "needs a decision: apply fully_shard to each block, then to the model"
            )
    if policy := _policy(site, precision):
        kept.append(("mp_policy=", *policy))
    shard = site.spell("torch.distributed.fsdp.fully_shard")
    arguments = tuple(part for argument_parts in kept for part in (", ", *argument_parts))
    whole = site.replace((shard, "(", tree.outer_span(module), *arguments, ")"))
    if policy_argument is None:
        return whole
    classes, deletions = _wrapped_classes(site, policy_argument)
    statement, line = site.small_statement, site.statement_line
    if (
        not isinstance(module, cst.Name)
        or not isinstance(statement, cst.Assign)
        or statement.value is not site.node
    ):
        raise Refused("its auto_wrap_policy becomes a loop, which needs the module to have a name first")
    newline, indent, step = tree.source.newline, site.indent_of(line), tree.module.default_indent
    names = tuple(part for node in classes for part in (", ", tree.outer_span(node)))[1:]
    kinds = names if len(classes) == 1 else ("(", *names, ")")
    start = tree.span(statement).start
    loop: tuple[Part, ...] = (
        f"for layer in list({module.value}.modules()):{newline}{indent}{step}if isinstance(layer, ",
        *kinds,
        f"):{newline}{indent}{step * 2}{shard}(layer",
        *(tree.source.text[p.start : p.end] if isinstance(p, Span) else p for p in arguments),
        f"){newline}{indent}",
    )
    note = "Each block the policy named is sharded first, in a loop."
    return Rewrite((*deletions, Edit(Span(start, start), loop), *whole.edits), note)


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


_TRANSFORMER_POLICY = "torch_xla.distributed.fsdp.wrap.transformer_auto_wrap_policy"


def _wrapped_classes(site: Site, policy: cst.BaseExpression) -> tuple[list[cst.BaseExpression], list[Delete]]:
    """The layer classes that ``functools.partial(transformer_auto_wrap_policy, ...)`` names.

    Returns:
        The classes, and the statement that gave the policy a name, where there is one to delete.

    Raises:
        Refused: the policy is of another kind, or is used elsewhere too.
    """
    refusal = Refused(
        "its auto_wrap_policy has to be written as a loop: apply fully_shard to each block first"
    )
    deletions: list[Delete] = []
    if isinstance(policy, cst.Name):
        found = site.scope.lookup(policy.value)
        uses = site.context.names.loads.get(policy.value, ())
        if found is None or len(found[1]) != 1 or found[1][0].value is None or len(uses) != 1:
            raise refusal
        assert isinstance(found[1][0].statement, cst.Assign)
        deletions.append(Delete(found[1][0].statement))
        policy = found[1][0].value
    if not isinstance(policy, cst.Call) or not site.text(policy.func).endswith("partial") or not policy.args:
        raise refusal
    if site.context.names.qualified_name(policy.args[0].value) != _TRANSFORMER_POLICY:
        raise refusal
    for argument in policy.args[1:]:
        if argument.keyword is not None and argument.keyword.value == "transformer_layer_cls":
            if isinstance(argument.value, (cst.Set, cst.Tuple, cst.List)):
                return [element.value for element in argument.value.elements], deletions
    raise refusal
