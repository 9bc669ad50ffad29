"""SPMD: meshes, and partition specs that become DTensor placements."""

from __future__ import annotations

import re

import libcst as cst

from tpu_migrate.findings import Part
from tpu_migrate.python.pattern import literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, is_repeatable, shorten
from tpu_migrate.python.tree import walk

_MESH = "torch_xla.distributed.spmd.Mesh"


def mesh(site: Site) -> Rewrite:
    """Make a DeviceMesh of the same shape and axis names.

    xs.Mesh(np.arange(n), (n, 1), ("data", "model"))
        ->  init_device_mesh("tpu", (n, 1), mesh_dim_names=("data", "model"))

    Refused where the device ids are in another order than 0, 1, 2, ...
    """
    ids = site.capture("device_ids").node
    if ids is not None and not _is_range(site, ids):
        raise Refused(
            f"its device ids, `{shorten(site.text(ids))}`, may be in an order of their own; "
            "write DeviceMesh('tpu', ids.reshape(shape)) with ids of ranks"
        )
    text = "torch.distributed.device_mesh.init_device_mesh(@type, $mesh_shape, mesh_dim_names=$axis_names?)"
    return site.replace(site.template(text))


def _is_range(site: Site, node: cst.BaseExpression) -> bool:
    text = site.text(node)
    if re.fullmatch(
        r"(?:np|numpy|torch)\.arange\([^,]*\)|(?:np\.array\()?(?:list\()?range\([^,]*\)\)?\)?", text
    ):
        return True
    if isinstance(node, cst.Name):
        found = site.scope.lookup(node.value)
        if found is not None and len(found[1]) == 1 and found[1][0].value is not None:
            value = found[1][0].value
            return not isinstance(value, cst.Name) and _is_range(site, value)
    return False


def mark_sharding(site: Site) -> Rewrite:
    """Distribute a tensor as its partition spec says.

    xs.mark_sharding(x, mesh, ("data", None))   ->  x = distribute_tensor(x, mesh, [Shard(0)])

    A partition spec names a mesh axis for each tensor dimension, placements name a tensor dimension
    for each mesh axis. Refused where the mesh's axes or the spec can't be read here.
    """
    tensor_name = "tensor" if "tensor" in site.captures.single else "t"
    tensor, spec = site.capture(tensor_name).node, site.capture("partition_spec").node
    mesh_node = site.capture("mesh").node
    assert tensor is not None and spec is not None and mesh_node is not None
    parent = site.tree.parent(site.node)
    if not site.is_whole_statement and not isinstance(parent, cst.Assign):
        raise Refused("its value is used")
    if not is_repeatable(tensor):
        raise Refused(f"`{shorten(site.text(tensor))}` can't be assigned to")
    inside = next(site.enclosing_functions(), None)
    if isinstance(tensor, cst.Name) and _is_computed(site, tensor, inside):
        raise Refused(
            "only leaf tensors can be distributed; a computed one that is a DTensor takes .redistribute()"
        )
    axes = mesh_axes(site, mesh_node)
    placements = _placements(_literal(site, spec), axes)
    shown: tuple[Part, ...] = ()
    for number, dimension in enumerate(placements):
        shown += (", ",) if number else ()
        name = "Replicate" if dimension is None else "Shard"
        shown += (
            f"{site.spell('torch.distributed.tensor.' + name)}({'' if dimension is None else dimension})",
        )
    call = f"torch.distributed.tensor.distribute_tensor(${tensor_name}, $mesh, [$placements])"
    note = ""
    if isinstance(tensor, cst.Attribute):
        call = f"torch.nn.Parameter({call})"
        note = "It makes a new Parameter: create the optimizer after this line."
    filled = site.template(call, placements=shown)
    if isinstance(parent, cst.Assign):
        note += f" `{shorten(site.text(tensor))}` itself stays as it was; it used to be annotated too."
        return Rewrite(site.replace(filled).edits, note.strip())
    return Rewrite(site.replace((site.tree.outer_span(tensor), " = ", *filled)).edits, note)


def _is_computed(site: Site, tensor: cst.Name, function: cst.FunctionDef | None) -> bool:
    """Whether a tensor is the result of a module or an op, which can't be distributed as a leaf can."""
    if function is not None and function.name.value == "forward":
        return True
    found = site.scope.lookup(tensor.value)
    values = [binding.value for binding in found[1]] if found is not None else []
    return any(
        isinstance(value, cst.Call)
        and re.match(r"(self\.)?(model|module|net|layer|fc|block|head|encoder)", site.text(value))
        for value in values
    )


def _literal(site: Site, node: cst.BaseExpression) -> object:
    """The value of a literal, or of a name that is given one literal value."""
    if isinstance(node, cst.Name):
        found = site.scope.lookup(node.value)
        if found is not None and len(found[1]) == 1 and found[1][0].value is not None:
            return literal_value(found[1][0].value)
    return literal_value(node)


def mesh_axes(site: Site, node: cst.BaseExpression) -> tuple[str, ...]:
    """The axis names of a mesh, from where it is made in this file.

    Raises:
        Refused: they can't be read there.
    """
    names = site.context.names
    values: list[cst.BaseExpression | None] = []
    if isinstance(node, cst.Name):
        found = site.scope.lookup(node.value)
        values = [binding.value for binding in found[1]] if found else []
    elif isinstance(node, cst.Attribute):
        values = [
            statement.value
            for statement in _assignments(site)
            if any(site.text(target.target) == site.text(node) for target in statement.targets)
        ]
    if len(values) == 1 and isinstance(values[0], cst.Call) and names.qualified_name(values[0].func) == _MESH:
        arguments = values[0].args
        given = [a.value for a in arguments if a.keyword is not None and a.keyword.value == "axis_names"]
        if not given and len(arguments) >= 3 and arguments[2].keyword is None:
            given = [arguments[2].value]
        axes = _literal(site, given[0]) if given else None
        if isinstance(axes, (tuple, list)) and all(isinstance(axis, str) for axis in axes):
            return tuple(axes)
    raise Refused(f"the axis names of `{shorten(site.text(node))}` can't be read here")


def _assignments(site: Site) -> list[cst.Assign]:
    return [node for node in walk(site.tree.module) if isinstance(node, cst.Assign)]


def _placements(spec: object, axes: tuple[str, ...]) -> list[int | None]:
    """Tensor dimension for each mesh axis; None for Replicate.

    >>> _placements(("data", None), ("data", "model"))
    [0, None]
    """
    if not isinstance(spec, (tuple, list)):
        raise Refused("its partition spec isn't a literal")
    placements: list[int | None] = [None] * len(axes)
    for dimension, entry in enumerate(spec):
        names = entry if isinstance(entry, (tuple, list)) else () if entry is None else (entry,)
        if len(names) > 1:
            raise Refused("several mesh axes share a tensor dimension, where their order matters")
        for name in names:
            axis = name if isinstance(name, int) else axes.index(name) if name in axes else -1
            if isinstance(name, bool) or not 0 <= axis < len(axes):
                raise Refused(f"its partition spec names {name!r}, which is no axis of the mesh")
            if placements[axis] is not None:
                raise Refused(f"its partition spec gives the mesh axis {name!r} to two dimensions")
            placements[axis] = dimension
    return placements
