"""Strings that mean something to torch_xla: device strings, backends, module names, environment names.

Each gets a pseudo-qualified name that rules match like any other: ``string.device``, ``env.PJRT_DEVICE``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import libcst as cst

from tpu_migrate.python.names import Names, Reference
from tpu_migrate.python.pattern import literal_value
from tpu_migrate.python.tree import walk

_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{3,}")
_DEVICE_CALLS = re.compile(
    r"(?:^|\.)(?:device|to|to_empty|set_default_device|Generator|get_default_backend_for_device|fork_rng|"
    r"get_module|autocast|is_autocast_enabled|get_autocast_dtype|custom_fwd|custom_bwd|init_device_mesh|DeviceMesh|"
    r"device_type|GradScaler|type|load|map_location|full|zeros|ones|empty|tensor|rand|randn|randint|arange|eye|"
    r"as_tensor|scalar_tensor|full_like|zeros_like|ones_like|empty_like|rand_like|randn_like|linspace)$"
)
_DEVICE_KEYWORDS = frozenset(
    ("device", "device_type", "map_location", "devices", "device_map", "target_device")
)
_DEVICE_TYPES = frozenset(("cuda", "cpu", "mps", "tpu", "xpu", "npu", "hpu", "meta", "mlu", "musa"))
_TYPE_CALLS = re.compile(
    r"(?:^|\.)(?:autocast|\w*autocast_(?:enabled|dtype|available)|init_device_mesh|DeviceMesh|custom_fwd|custom_bwd|"
    r"fork_rng|GradScaler)$"
)
_TRAINER_BACKENDS = ("torch_compile_backend", "dynamo_backend")
"""Keywords that take only such names of compilers as accelerate lists."""
_KEYWORD = re.compile(r"\b(?:XLA|XRT|PJRT|PT_XLA|TPU|LIBTPU|USE|COLAB)_\w+\s*=[^=]")
_MODULE_NAME = re.compile(r"(?:torch_xla|optimum\.tpu)(?:\.\w+)*")


def literal_references(
    names: Names, environment: Collection[str], known: Collection[str] = ()
) -> Iterable[Reference]:
    """References for the strings of a file.

    Args:
        names: the file, resolved.
        environment: names of environment variables that rules are about.
        known: all names that rules are about; ``value.adamw_torch_xla`` is that string, wherever it stands.
    """
    for node in names.strings:
        meaning = (
            _meaning(names, node, environment, known)
            if isinstance(node, cst.SimpleString)
            else _formatted(node)
        )
        if meaning is not None and not _is_docstring(names, node):
            yield Reference(node, meaning, names.scope_of(node), ())


def keyword_references(names: Names, environment: Collection[str]) -> Iterable[Reference]:
    """Environment variables named by a keyword: ``os.environ.update(XLA_USE_BF16="1")``."""
    if "environ" not in names.tree.source.text or not _KEYWORD.search(names.tree.source.text):
        return
    for node in walk(names.tree.module):
        if isinstance(node, cst.Call) and "environ" in names.tree.text(node):
            for argument in node.args:
                if argument.keyword is not None and argument.keyword.value in environment:
                    yield Reference(
                        argument.keyword, f"env.{argument.keyword.value}", names.scope_of(node), ()
                    )


def argument_references(names: Names, known: Collection[str]) -> Iterable[Reference]:
    """Keywords whose name alone says what they are: ``tpu_num_cores=8``, whichever call they are in."""
    wanted = {name.partition(".")[2] for name in known if name.startswith("argument.")}
    text = names.tree.source.text
    wanted = {name for name in wanted if name in text}
    if not wanted:
        return
    for node in walk(names.tree.module):
        if isinstance(node, cst.Call):
            for argument in node.args:
                if argument.keyword is not None and argument.keyword.value in wanted:
                    names.tree.parents[id(argument.keyword)] = argument  # resolving names passes keywords by
                    yield Reference(
                        argument.keyword, f"argument.{argument.keyword.value}", names.scope_of(node), ()
                    )


_FSDP_METHODS = {
    "clip_grad_norm_": "member.clip_grad_norm_",
    "get_shard_metadata": "member.get_shard_metadata",
}


def wrapper_method_references(names: Names) -> Iterable[Reference]:
    """Calls of methods that only torch_xla's FSDP wrappers have, in files that wrap models in them."""
    noted = (
        "TODO(tpu-migrate TX52" in names.tree.source.text
    )  # by an earlier run, which took the wrapper away
    if not noted and not any("FullyShardedDataParallel" in r.qualified_name for r in names.references):
        return
    for node in walk(names.tree.module):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            receiver = _last_names(node.func.value)
            if method in _FSDP_METHODS and receiver.rpartition(".")[2] not in ("utils", "clip_grad"):
                yield Reference(node.func, _FSDP_METHODS[method], names.scope_of(node), ())


def found_inf_references(names: Names) -> Iterable[Reference]:
    """Calls with a ``found_inf`` argument, in files that use the optimizers which took one."""
    noted = "TODO(tpu-migrate TX608)" in names.tree.source.text  # by an earlier run
    if not noted and not any(r.qualified_name.startswith("torch_xla.amp.syncfree") for r in names.references):
        return
    for node in walk(names.tree.module):
        if isinstance(node, cst.Call):
            for argument in node.args:
                if argument.keyword is not None and argument.keyword.value == "found_inf":
                    yield Reference(node, "call.found_inf", names.scope_of(node), ())


def _formatted(node: cst.FormattedString) -> str | None:
    first = node.parts[0] if node.parts else None
    if isinstance(first, cst.FormattedStringText) and re.match(r"xla:\d*$", first.value):
        return "string.indexed_device"
    return None


def _meaning(
    names: Names, node: cst.SimpleString, environment: Collection[str], known: Collection[str]
) -> str | None:
    try:
        value = node.evaluated_value
    except Exception:  # a malformed escape is the file's own affair
        return None
    if not isinstance(value, str):
        return None
    if _ENVIRONMENT.fullmatch(value) and value in environment:
        return f"env.{value}"
    if f"value.{value}" in known:
        return f"value.{value}"
    if re.fullmatch(r"xla:\d+", value):
        return "string.indexed_device"
    if value == "xla":
        return _xla(names, node)
    if value == "xla://":
        return "string.init_method"
    if value == "openxla" or value in ("openxla_eval", "aot_torchxla_trace_once", "torchxla_trace_once"):
        argument = names.tree.parent(node)
        keyword = argument.keyword if isinstance(argument, cst.Arg) else None
        if keyword is not None and keyword.value in _TRAINER_BACKENDS:
            return "string.trainer_backend"
        return "string.compile_backend"
    if _MODULE_NAME.fullmatch(value):
        argument = names.tree.parent(node)
        call = names.tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if isinstance(call, cst.Call) and _last_names(call.func).endswith("find_spec"):
            return "string.find_spec"
        return "string.module"
    if "torch_xla" in value:
        return "string.text"
    return None


def _xla(names: Names, node: cst.SimpleString) -> str:
    parent = names.tree.parent(node)
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        comparison = names.tree.parent(parent) if isinstance(parent, cst.ComparisonTarget) else parent
        return _comparison(names, comparison)
    if isinstance(parent, cst.Element):
        holder = names.tree.parent(parent)
        target = names.tree.parent(holder) if holder is not None else None
        if isinstance(target, cst.ComparisonTarget):
            return _comparison(names, names.tree.parent(target))
    if isinstance(parent, cst.Arg):
        call = names.tree.parent(parent)
        if isinstance(call, cst.Call):
            function = _last_names(call.func)
            keyword = parent.keyword.value if parent.keyword is not None else ""
            if function.endswith(("init_process_group", "new_group")) or keyword == "backend":
                return "string.compile_backend" if function.endswith("compile") else "string.process_group"
            if keyword == "device_type" or _TYPE_CALLS.search(function):
                return "string.device_type"
            if keyword in _DEVICE_KEYWORDS or (not keyword and _DEVICE_CALLS.search(function)):
                return "string.device"
    if isinstance(parent, cst.Param) and parent.name.value in _DEVICE_KEYWORDS:
        return "string.device"
    if isinstance(parent, (cst.Assign, cst.AnnAssign)):
        targets = (
            [target.target for target in parent.targets]
            if isinstance(parent, cst.Assign)
            else [parent.target]
        )
        if any(_last_names(target).rpartition(".")[2].lower().endswith("device") for target in targets):
            return "string.device"
    return "string.xla"


def _comparison(names: Names, comparison: cst.CSTNode | None) -> str:
    if isinstance(comparison, cst.Comparison):
        sides = [comparison.left, *(target.comparator for target in comparison.comparisons)]
        for side in sides:
            if isinstance(side, (cst.Tuple, cst.List, cst.Set)):
                strings = {literal_value(element.value) for element in side.elements}
                if strings & _DEVICE_TYPES:
                    return "string.device_comparison"
            text = _last_names(side)
            last = text.rpartition(".")[2].lower()
            if "device" in text.lower() or text.endswith(".type") or last in ("type", "dev"):
                return "string.device_comparison"
            if isinstance(side, cst.Call) and _last_names(side.func).endswith(("get_backend", "backend")):
                return "string.process_group"
    return "string.xla"


def _last_names(node: cst.CSTNode) -> str:
    """The attribute names of a chain, as far as they can be told: ``x.to`` for ``f(a).x.to``."""
    parts: list[str] = []
    while True:
        if isinstance(node, cst.Attribute):
            parts.append(node.attr.value)
            node = node.value
        elif isinstance(node, (cst.Call, cst.Subscript)):
            node = node.func if isinstance(node, cst.Call) else node.value
        else:
            break
    if isinstance(node, cst.Name):
        parts.append(node.value)
    return ".".join(reversed(parts))


def _is_docstring(names: Names, node: cst.CSTNode) -> bool:
    parent = names.tree.parent(node)
    while isinstance(parent, cst.ConcatenatedString):
        parent = names.tree.parent(parent)
    return isinstance(parent, cst.Expr)
