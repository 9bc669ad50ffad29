"""Device strings, and torch_xla modules used as a flag."""

from __future__ import annotations

import re

import libcst as cst

from tpu_migrate.findings import Edit, Safety
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.pattern import is_literal, literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, shorten
from tpu_migrate.python.transforms.arguments import argument_deletion
from tpu_migrate.python.tree import walk


def replace_string(site: Site) -> Rewrite:
    """Replace a string literal by what it stands for now; the file's quotes are kept.

    torch.device("xla")          ->  torch.device("tpu")
    t.device.type == "xla"       ->  t.device.type == "tpu"

    ``to`` is a template; where it is a plain string, only the text between the quotes changes.
    """
    node = site.node
    if not isinstance(node, cst.SimpleString):
        raise Refused("it is not a plain string")
    parts = site.template(str(site.match.rule.options["to"]))
    if len(parts) == 1 and isinstance(parts[0], str) and parts[0][:1] in "'\"":
        parts = (f"{node.prefix}{node.quote}{parts[0][1:-1]}{node.quote}",)
    if isinstance(site.tree.parent(node), cst.ConcatenatedString):
        raise Refused("it is part of a longer string")
    return site.replace(parts)


def device_string(site: Site) -> Rewrite:
    """Name the device in a string, or put the device itself there in device-agnostic code.

    x.to("xla")   ->  x.to("tpu")
    x.to("xla")   ->  x.to(torch.accelerator.current_accelerator() or torch.device("cpu"))
    """
    if site.context.settings.device == "tpu":
        return _same_quotes(site, "tpu")
    argument = site.tree.parent(site.node)
    call = site.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(call, cst.Call) and len(call.args) == 1 and site.text(call.func).endswith("device"):
        return site.replace(site.template("@device"), True, call)
    return site.replace(site.template("@device_string"), True)


def device_comparison(site: Site) -> Rewrite:
    """Compare with the new device type; device-agnostic code asks whether it isn't the CPU.

    x.device.type == "xla"   ->  x.device.type == "tpu"
    x.device.type == "xla"   ->  x.device.type != "cpu"
    """
    source = site.tree.source.text
    if site.context.settings.device == "tpu" or re.search("['\"]cuda", source):
        return _same_quotes(site, "tpu")  # other devices have branches of their own
    target = site.tree.parent(site.node)
    if not isinstance(target, cst.ComparisonTarget) or not isinstance(
        target.operator, (cst.Equal, cst.NotEqual)
    ):
        return site.replace(site.template("@type"))
    operator = "!=" if isinstance(target.operator, cst.Equal) else "=="
    rewrite = _same_quotes(site, "cpu")
    span = site.tree.outer_span(target.operator)
    written = site.tree.source.text[span.start : span.end]
    return Rewrite((*rewrite.edits, Edit(span, (written.replace(written.strip(), operator),))))


def process_group(site: Site) -> Rewrite:
    """Name TorchTPU's process-group backend; device-agnostic code leaves the choice to torch.

    dist.init_process_group("xla")  ->  dist.init_process_group("tpu_dist")
    dist.init_process_group("xla")  ->  dist.init_process_group()
    """
    if site.context.settings.device == "tpu":
        return _same_quotes(site, "tpu_dist")
    argument = site.tree.parent(site.node)
    call = site.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(argument, cst.Arg) and isinstance(call, cst.Call):
        later = call.args[list(call.args).index(argument) + 1 :]
        if all(other.keyword is not None for other in later):
            return Rewrite((Edit(argument_deletion(site.tree, call, argument)),))
    raise Refused(
        "which backend device-agnostic code has depends on the device; ask torch.distributed.get_backend()"
    )


def _same_quotes(site: Site, text: str) -> Rewrite:
    """Change what stands between a string's quotes."""
    node = site.node
    if not isinstance(node, cst.SimpleString) or isinstance(site.tree.parent(node), cst.ConcatenatedString):
        raise Refused("it is part of a longer string")
    return Rewrite((Edit(site.tree.span(node), (f"{node.prefix}{node.quote}{text}{node.quote}",)),))


def drop_string_argument(site: Site) -> Rewrite:
    """Delete the keyword argument a string is given to.

    init_process_group("tpu_dist", init_method="xla://")  ->  init_process_group("tpu_dist")
    """
    argument = site.tree.parent(site.node)
    call = site.tree.parent(argument) if argument is not None else None
    if not isinstance(argument, cst.Arg) or argument.keyword is None or not isinstance(call, cst.Call):
        raise Refused(f"`{shorten(site.text(site.node))}` is not a keyword argument here")
    return Rewrite((Edit(argument_deletion(site.tree, call, argument)),))


def module_flag(site: Site) -> Rewrite:
    """Rewrite a module that is used to tell whether torch_xla is there.

    if xm is not None:    ->  if torch.accelerator.is_available() and ...:
    if xm is None:        ->  if not (torch.accelerator.is_available() and ...):
    """
    node = site.reference.node
    tree = site.tree
    parent = tree.parent(node)
    if isinstance(parent, cst.Comparison) and parent.left is node and len(parent.comparisons) == 1:
        target = parent.comparisons[0]
        if isinstance(target.comparator, cst.Name) and target.comparator.value == "None":
            if isinstance(target.operator, (cst.IsNot, cst.NotEqual)):
                return site.replace(site.template("@available"), site.is_loose("@available"), parent)
            if isinstance(target.operator, (cst.Is, cst.Equal)):
                return site.replace(site.template("not @available"), True, parent)
    if _is_tested(node, parent):
        return site.replace(site.template("@available"), site.is_loose("@available"), node)
    if isinstance(parent, cst.Expr):
        return Rewrite((Delete(parent),))
    raise Refused("the module itself is used as a value")


def find_spec(site: Site) -> Rewrite:
    """Ask for the device instead of the package.

    importlib.util.find_spec("torch_xla") is not None   ->  torch.accelerator.is_available() and ...
    """
    argument = site.tree.parent(site.node)
    call = site.tree.parent(argument) if argument is not None else None
    parent = site.tree.parent(call) if call is not None else None
    assert isinstance(call, cst.Call)
    if isinstance(parent, cst.Comparison) and parent.left is call and len(parent.comparisons) == 1:
        target = parent.comparisons[0]
        if isinstance(target.comparator, cst.Name) and target.comparator.value == "None":
            if isinstance(target.operator, (cst.IsNot, cst.NotEqual)):
                return site.replace(site.template("@available"), site.is_loose("@available"), parent)
            if isinstance(target.operator, (cst.Is, cst.Equal)):
                return site.replace(site.template("not @available"), True, parent)
    if _is_tested(call, parent):
        return site.replace(site.template("@available"), site.is_loose("@available"), call)
    if isinstance(parent, cst.Arg):
        outer = site.tree.parent(parent)
        if isinstance(outer, cst.Call) and site.text(outer.func) == "bool":
            return site.replace(site.template("@available"), site.is_loose("@available"), outer)
    raise Refused("what is found is used as a value")


def _is_tested(node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
    """Whether an expression is only asked for its truth."""
    if isinstance(parent, cst.UnaryOperation):
        return isinstance(parent.operator, cst.Not)
    if isinstance(parent, cst.IfExp):
        return parent.test is node
    return isinstance(parent, (cst.If, cst.While, cst.Assert, cst.BooleanOperation))


def device(site: Site) -> Rewrite:
    """Name the process's one device.

    xm.xla_device()   ->  torch.device("tpu")
    xm.xla_device(1)  ->  refused: a process has one chip
    """
    index = site.captures.single.get("n")
    if index is not None and index.node is not None and not is_literal(index.node, None):
        raise Refused(f"device {shorten(site.text(index.node))} of a process: a process has one chip now")
    kind = site.captures.single.get("devkind")
    if kind is not None and kind.node is not None and literal_value(kind.node) not in (None, "TPU"):
        raise Refused(
            f"it asks for a {shorten(site.text(kind.node))} device; write torch.device() of that type"
        )
    if (probe := _probe(site)) is not None:
        raise Refused(probe)
    if site.is_whole_statement:
        message = "It was called to start the runtime or to fail without a TPU; naming a device does neither."
        return Rewrite(site.delete_statement().edits, message=message, safety=Safety.REVIEW)
    rewrite = site.replace(site.template("@device"), site.is_loose("@device"))
    if site.scope.is_module and site.context.kind == "multi-process":
        note = (
            "It stands at module level, before any spawn: nothing may touch the device until a worker runs."
        )
        return Rewrite(rewrite.edits, note, Safety.REVIEW)
    return rewrite


def _probe(site: Site) -> str | None:
    """Why naming the device here would answer a question that the old call answered by failing."""
    inner: cst.CSTNode = site.node
    for ancestor in site.tree.ancestors(site.node):
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            break
        if (
            isinstance(ancestor, cst.Try)
            and ancestor.body is inner
            and any(map(_falls_back, ancestor.handlers))
        ):
            return (
                "its except branch is for machines without a TPU, and torch.device('tpu') never fails; "
                "ask torch.accelerator.is_available()"
            )
        inner = ancestor
    return None


def _falls_back(handler: cst.ExceptHandler) -> bool:
    """Whether a handler goes on in another way, instead of stopping."""
    return not any(isinstance(node, cst.Raise) for node in walk(handler.body))


def device_kind(site: Site) -> Rewrite:
    """Ask torch for the device type, and compare with it in lower case.

    xm.xla_device_hw(device) == "TPU"   ->  torch.accelerator.current_accelerator().type == "tpu"
    kind = xm.xla_device_hw(device)     ->  kind = torch.accelerator.current_accelerator().type.upper()
    """
    parent = site.tree.parent(site.node)
    if isinstance(parent, cst.ComparisonTarget):
        parent = site.tree.parent(parent)
    text = "torch.accelerator.current_accelerator().type"
    if not isinstance(parent, cst.Comparison):  # compared elsewhere, where capitals are expected
        return site.replace(site.template(f"{text}.upper()"))
    edits = list(site.replace(site.template(text)).edits)
    if isinstance(parent, cst.Comparison):
        sides = [parent.left, *(target.comparator for target in parent.comparisons)]
        for side in sides:
            for node in walk(side):
                if isinstance(node, cst.SimpleString):
                    edits.append(Edit(site.tree.span(node), (site.tree.text(node).lower(),)))
    return Rewrite(tuple(edits))


def set_device_type(site: Site) -> Rewrite:
    """Delete the choice of the TPU; refuse any other.

    xr.set_device_type("TPU")  ->  (the line goes)
    """
    kind = site.capture("pjrt_device").node
    assert kind is not None
    if literal_value(kind) != "TPU":
        raise Refused(f"it chooses {shorten(site.text(kind))}; name that device where tensors are made")
    return site.delete_statement()


def compile_backend(site: Site) -> Rewrite:
    """Name TorchTPU's Dynamo backend, or leave the choice to torch in device-agnostic code.

    torch.compile(f, backend="openxla")  ->  torch.compile(f, backend="tpu")
    """
    if site.context.settings.device == "accelerator":
        return drop_string_argument(site)
    return _same_quotes(site, "tpu")
