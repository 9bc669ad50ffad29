"""Whether DistributedDataParallel can take over the averaging of gradients, and how the model is wrapped.

Only when everything is in view: the model and its one optimizer are made in the worker function, every
use of the model is a call or a harmless method, and nothing stands between ``backward`` and the step
that could read or change a gradient.
"""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.names import Binding, Scope
from tpu_migrate.python.site import Site
from tpu_migrate.python.tree import walk

_DDP = "torch.nn.parallel.DistributedDataParallel"
_HARMLESS = frozenset(("train", "eval", "parameters", "zero_grad", "modules"))
_MOVED = frozenset(("state_dict", "load_state_dict"))
"""Methods whose keys get a ``module.`` prefix, and are therefore asked of the wrapped module."""


def plan_ddp(site: Site) -> list[Edit] | None:
    """The edits that wrap the model, or None where DDP's conditions don't hold."""
    tree, names = site.tree, site.context.names
    functions = list(site.enclosing_functions())
    if not functions or not site.has_group:
        return None
    worker = functions[-1]
    scope = names.scopes[id(worker)]
    if sum(reference.qualified_name == site.reference.qualified_name for reference in names.references) != 1:
        return None
    if any(
        reference.qualified_name.endswith((".reduce_gradients", "FullyShardedDataParallel"))
        for reference in names.references
    ):
        return None
    optimizer = site.capture("optimizer").node
    if not isinstance(optimizer, cst.Name):
        return None
    model = _model_of(scope, optimizer.value)
    if model is None:
        return None
    assignments = scope.bindings.get(model, [])
    if not assignments or not all(_makes_model(binding, model) for binding in assignments):
        return None
    last = assignments[-1].statement
    line = tree.parent(last)
    if line is None or tree.parent(line) is not worker.body:
        return None
    wrapped_at = tree.span(last).end
    edits: list[Edit] = []
    loop = next(
        (a for a in tree.ancestors(site.node) if isinstance(a, (cst.For, cst.While, cst.FunctionDef))), worker
    )
    called = False
    for node, used_in in names.loads.get(model, ()):
        if _owner(used_in, model) is not scope:
            continue
        parent = tree.parent(node)
        if isinstance(parent, cst.Arg) and _broadcasts(site, parent):
            continue
        if isinstance(parent, cst.Call) and parent.func is node:
            if tree.span(node).start < wrapped_at:
                return None
            called = called or tree.span(node) in tree.span(loop)
            continue
        if not isinstance(parent, cst.Attribute) or parent.value is not node:
            return None
        method = parent.attr.value
        if tree.span(node).start < wrapped_at:
            continue
        if method in _MOVED:
            edits.append(Edit(Span(tree.span(node).end, tree.span(node).end), (".module",)))
        elif method not in _HARMLESS:
            return None
    if not called or not _backward_just_before(site, optimizer.value, model):
        return None
    indent = site.indent_of(last)
    end = tree.source.line_end(wrapped_at)
    text = f"{indent}{model} = {site.spell(_DDP)}({model}, broadcast_buffers=False){tree.source.newline}"
    return [*edits, Edit(Span(end, end), (text,))]


def _broadcasts(site: Site, argument: cst.Arg) -> bool:
    """Whether an argument is that of ``xm.broadcast_master_param``."""
    call = site.tree.parent(argument)
    if not isinstance(call, cst.Call):
        return False
    return (site.context.names.qualified_name(call.func) or "").endswith(".broadcast_master_param")


def _owner(scope: Scope, name: str) -> Scope | None:
    found = scope.lookup(name)
    return found[0] if found else None


def _model_of(scope: Scope, optimizer: str) -> str | None:
    """The model whose parameters the optimizer updates, when that is plain to see."""
    bindings = scope.bindings.get(optimizer, [])
    if len(bindings) != 1 or not isinstance(bindings[0].value, cst.Call):
        return None
    call = bindings[0].value
    if not call.args:
        return None
    argument = call.args[0].value
    if (
        isinstance(argument, cst.Call)
        and isinstance(argument.func, cst.Attribute)
        and argument.func.attr.value == "parameters"
        and isinstance(argument.func.value, cst.Name)
    ):
        return argument.func.value.value
    return None


def _makes_model(binding: Binding, model: str) -> bool:
    """``model = Net(...)``, ``model = Net().to(device)`` or ``model = model.to(device)``."""
    value = binding.value
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute) and value.func.attr.value in ("to", "train"):
        inner = value.func.value
        return isinstance(inner, cst.Call) or (isinstance(inner, cst.Name) and inner.value == model)
    return True


def _backward_just_before(site: Site, optimizer: str, model: str) -> bool:
    """Whether ``backward()`` runs in the same block, and nothing after it touches gradients."""
    line = site.statement_line
    block = site.tree.parent(line)
    if not isinstance(block, cst.IndentedBlock):
        return False
    body = list(block.body)
    index = next((number for number, statement in enumerate(body) if statement is line), 0)
    for statement in reversed(body[:index]):
        if _is_backward(statement):
            return True
        for node in walk(statement):
            name = node.value if isinstance(node, cst.Name) else ""
            if "grad" in name or name in (optimizer, model):
                return False
    return False


def _is_backward(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    return (
        isinstance(small, cst.Expr)
        and isinstance(small.value, cst.Call)
        and isinstance(small.value.func, cst.Attribute)
        and small.value.func.attr.value == "backward"
        and not small.value.args
    )
