"""``pl.ParallelLoader``, whose batches come from ``per_device_loader``."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.site import Refused, Rewrite, Site

_ADVICE = "wrap the DataLoader where it is iterated"


def parallel_loader(site: Site) -> Rewrite:
    """Wrap the loader where ``per_device_loader`` was called.

    pl.ParallelLoader(loader, [dev]).per_device_loader(dev)  ->  DeviceLoader(loader, dev)

    para = pl.ParallelLoader(loader, [dev])   ->  para = loader
    for x in para.per_device_loader(dev):         for x in DeviceLoader(para, dev):
    """
    tree = site.tree
    loader = site.capture("loader").node
    assert loader is not None and site.call is not None
    name = site.use_helper("device_loader")
    if (outer := _per_device_call(site, site.call)) is not None:
        return Rewrite(
            (Edit(tree.span(outer), (f"{name}(", tree.outer_span(loader), ", ", _device(site, outer), ")")),)
        )
    parent = tree.parent(site.call)
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        raise Refused(f"it is neither iterated here nor given a name; {_ADVICE}")
    target = parent.targets[0].target
    bindings = site.scope.bindings.get(target.value, []) if isinstance(target, cst.Name) else []
    if not isinstance(target, cst.Name) or len(bindings) != 1:
        raise Refused(f"what it is assigned to has other values too; {_ADVICE}")
    edits = [*site.replace((tree.outer_span(loader),)).edits]
    for node, _ in site.context.names.loads.get(target.value, ()):
        call = _per_device_call(site, node)
        if call is None:
            raise Refused(f"`{target.value}` is used for more than per_device_loader; {_ADVICE}")
        edits.append(Edit(tree.span(call), (f"{name}({target.value}, ", _device(site, call), ")")))
    return Rewrite(tuple(edits))


def _per_device_call(site: Site, node: cst.BaseExpression) -> cst.Call | None:
    attribute = site.tree.parent(node)
    if not isinstance(attribute, cst.Attribute) or attribute.attr.value != "per_device_loader":
        return None
    call = site.tree.parent(attribute)
    return call if isinstance(call, cst.Call) and len(call.args) == 1 else None


def _device(site: Site, call: cst.Call) -> Span:
    return site.tree.outer_span(call.args[0].value)
