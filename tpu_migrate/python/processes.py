"""Worker functions: which functions of a file only ever run inside a process group."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tpu_migrate.python.names import Names
from tpu_migrate.python.pattern import is_literal


def grouped_functions(names: Names, spawners: Collection[str]) -> frozenset[int]:
    """Functions that run only in workers the file starts.

    Args:
        names: the file, resolved.
        spawners: qualified names that start workers with a function.

    Returns:
        ``id`` of each such function: those given to a spawner, and those called from them and from
        nowhere else. A function that is also called directly, passed on or exported by a decorator
        is not among them.
    """
    tree = names.tree
    functions = {
        node.name.value: node
        for node in tree.module.body
        if isinstance(node, cst.FunctionDef)
        and not node.decorators
        and len(names.module_scope.bindings[node.name.value]) == 1
    }
    workers: set[str] = set()
    spawn_arguments: set[int] = set()
    for reference in names.references:
        call = tree.parent(reference.node)
        if reference.qualified_name in spawners and isinstance(call, cst.Call) and call.args:
            if any(
                a.keyword is not None and a.keyword.value == "nprocs" and is_literal(a.value, 1)
                for a in call.args
            ):
                continue  # one process gets no process group
            target = call.args[0].value
            if isinstance(target, cst.Name):
                spawn_arguments.add(id(target))
                workers.add(target.value)
    grouped = {
        name
        for name in workers
        if name in functions and _called_from(names, name, functions, spawn_arguments) == set()
    }
    while True:
        more = {
            name
            for name in functions
            if name not in grouped
            and (callers := _called_from(names, name, functions, spawn_arguments))
            and callers <= grouped
        }
        if not more:
            break
        grouped |= more
    return frozenset(id(functions[name]) for name in grouped)


def _called_from(
    names: Names, name: str, functions: dict[str, cst.FunctionDef], spawn_arguments: set[int]
) -> set[str]:
    """Names of the module's functions that call a function; ``"?"`` for any other kind of use."""
    callers: set[str] = set()
    for node, _ in names.loads.get(name, ()):
        if id(node) in spawn_arguments:
            continue
        parent = names.tree.parent(node)
        if not (isinstance(parent, cst.Call) and parent.func is node):
            callers.add("?")
            continue
        owners = [a for a in names.tree.ancestors(node) if isinstance(a, cst.FunctionDef)]
        outermost = owners[-1] if owners else None
        if outermost is None or functions.get(outermost.name.value) is not outermost:
            callers.add("?")
        else:
            callers.add(outermost.name.value)
    return callers - {name}
