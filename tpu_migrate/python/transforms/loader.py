"""``pl.ParallelLoader``, whose batches come from ``per_device_loader``."""

from __future__ import annotations

import re

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
        if isinstance(tree.parent(node), cst.Del):
            continue
        call = _per_device_call(site, node)
        if call is None:
            raise Refused(f"`{target.value}` is used for more than per_device_loader; {_ADVICE}")
        edits.append(Edit(tree.span(call), (f"{name}({target.value}, ", _device(site, call), ")")))
    return Rewrite(tuple(edits))


def _per_device_call(site: Site, node: cst.BaseExpression) -> cst.Call | None:
    attribute = site.tree.parent(node)
    if attribute is not None and _is_stepped(site, attribute):
        raise Refused("next() is called on it; call iter() on the loader first")
    if not isinstance(attribute, cst.Attribute) or attribute.attr.value != "per_device_loader":
        return None
    call = site.tree.parent(attribute)
    return call if isinstance(call, cst.Call) and len(call.args) == 1 else None


def _is_stepped(site: Site, attribute: cst.CSTNode) -> bool:
    """Whether ``per_device_loader(...)`` is given a name that ``next`` is then called on."""
    call = site.tree.parent(attribute)
    statement = site.tree.parent(call) if call is not None else None
    if isinstance(statement, cst.Arg):
        outer = site.tree.parent(statement)
        return isinstance(outer, cst.Call) and site.text(outer.func) == "next"
    if not isinstance(statement, cst.Assign) or not isinstance(statement.targets[0].target, cst.Name):
        return False
    name = statement.targets[0].target.value
    return bool(re.search(rf"\bnext\(\s*{name}\b|\b{name}\.next\(", site.tree.source.text))


def _device(site: Site, call: cst.Call) -> Span:
    return site.tree.outer_span(call.args[0].value)
