"""Imports: how the file spells a qualified name, and the imports that have to be added for it."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.names import Binding, Names, Scope, dotted_name
from tpu_migrate.python.tree import Tree, walk

EXPLICIT = (
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
    "torch.distributed.checkpoint",
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.device_mesh",
    "torch.distributed.fsdp",
    "torch.distributed.nn.functional",
    "torch.distributed.optim",
    "torch.distributed.tensor",
    "torch.nn.parallel",
    "torch.utils._pytree",
    "torch.utils.data.distributed",
    "diffusers.utils",
    "huggingface_hub",
    "transformers",
    "transformers.testing_utils",
    "transformers.training_args",
    "transformers.utils",
)
"""Modules whose names are imported one by one: ``from module import name``."""

ALIASED = {"torch.distributed": "dist"}
"""Modules that have a customary short name."""


class NameTaken(Exception):
    """A name the new code needs means something else in this file."""


@dataclass(frozen=True, order=True)
class Need:
    """An import to add."""

    module: str
    name: str = ""
    """For ``from module import name``."""
    alias: str = ""


class Imports:
    """Spells qualified names for one file."""

    def __init__(self, names: Names, leaving: frozenset[str] = frozenset()) -> None:
        """Look at a file.

        Args:
            names: the file, resolved.
            leaving: names that only imports bind which the rewrite removes; they are free to use.
        """
        self.names = names
        self.leaving = leaving
        self.tree: Tree = names.tree
        self.spelt: set[str] = set()
        """Names of the file's own imports that new code uses."""
        self._by_qualified: dict[str, list[Binding]] = defaultdict(list)
        self._bound: dict[str, set[str | None]] = defaultdict(set)
        self._plain: set[str] = set()
        for scope in names.scopes.values():
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    self._bound[name].add(binding.qualified_name)
                    if binding.is_import and binding.qualified_name:
                        self._by_qualified[binding.qualified_name].append(binding)
                        if isinstance(binding.statement, cst.Import) and scope.is_module:
                            assert isinstance(binding.node, cst.ImportAlias)
                            self._plain.add(binding.node.evaluated_name)

    def spell(self, qualified_name: str, scope: Scope, offset: int) -> tuple[str, Need | None]:
        """How to write a qualified name at a place, and the import that takes, if any.

        Raises:
            NameTaken: every way to write it is taken by something else.
        """
        parts = qualified_name.split(".")
        least = 1
        for module, alias in ALIASED.items():
            if qualified_name.startswith(module + ".") and self._free(alias, module, scope):
                least = module.count(".") + 1  # `dist.x` reads better than `torch.distributed.x`
        for count in range(len(parts), least - 1, -1):
            prefix = ".".join(parts[:count])
            for binding in self._by_qualified.get(prefix, ()):
                if self._visible(binding, scope, offset) and self._loaded(prefix, qualified_name):
                    self.spelt.add(binding.name)
                    return ".".join([binding.name, *parts[count:]]), None
        return self._new(qualified_name, parts, scope)

    def _visible(self, binding: Binding, scope: Scope, offset: int) -> bool:
        found = scope.lookup(binding.name)
        if found is None or found[0] is not binding.scope:
            return False
        if any(other.qualified_name != binding.qualified_name for other in found[1]):
            return False
        line = self.tree.parent(binding.statement)
        if binding.scope.is_module:
            if not isinstance(self.tree.parent(line) if line is not None else None, cst.Module):
                return False
            return not scope.is_module or self.tree.span(binding.statement).start < offset
        block = self.tree.parent(line) if line is not None else None
        owner = self.tree.parent(block) if block is not None else None
        return owner is binding.scope.node and self.tree.span(binding.statement).start < offset

    def _loaded(self, prefix: str, qualified_name: str) -> bool:
        """Whether importing ``prefix`` makes the module of ``qualified_name`` reachable."""
        module = _explicit_module(qualified_name)
        return module is None or prefix == module or prefix.startswith(module + ".") or module in self._plain

    def _new(self, qualified_name: str, parts: list[str], scope: Scope) -> tuple[str, Need | None]:
        module = _explicit_module(qualified_name)
        if module is not None and module != qualified_name:
            rest = qualified_name[len(module) + 1 :]
            name = rest.partition(".")[0]
            if self._free(name, f"{module}.{name}", scope):
                return rest, Need(module, name)
            if self._free("torch", "torch", scope):
                return qualified_name, Need(module)
        for module, alias in ALIASED.items():
            if qualified_name.startswith(module + ".") and self._free(alias, module, scope):
                return alias + qualified_name[len(module) :], Need(module, alias=alias)
        root = parts[0]
        if self._free(root, root, scope):
            return qualified_name, Need(root)
        raise NameTaken(f"{root} means something else in this file")

    def _free(self, name: str, qualified_name: str, scope: Scope) -> bool:
        """Whether the file binds the name to nothing else, anywhere."""
        return name in self.leaving or all(
            other == qualified_name or (other or "").partition(".")[0] == name == qualified_name
            for other in self._bound.get(name, ())
        )

    def name_is_free(self, name: str) -> bool:
        """Whether nothing in the file is called so, but for imports that are about to go."""
        if name in self.leaving:
            return True
        return name not in self._bound and name not in self.names.loads


def _explicit_module(qualified_name: str) -> str | None:
    fitting = [
        module for module in EXPLICIT if qualified_name == module or qualified_name.startswith(module + ".")
    ]
    return max(fitting, key=len) if fitting else None


def header(module: cst.Module) -> list[cst.BaseStatement | cst.SimpleStatementLine]:
    """The statements at the top of a module, up to its first definition or ``if __name__``."""
    statements: list[cst.BaseStatement | cst.SimpleStatementLine] = []
    for statement in module.body:
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            break
        if isinstance(statement, cst.If) and "__name__" in {
            node.value for node in walk(statement.test) if isinstance(node, cst.Name)
        }:
            break
        statements.append(statement)
    return statements


def _imported_module(statement: cst.CSTNode) -> str | None:
    """The module a one-statement import line names, or None for any other statement."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    if isinstance(small, cst.Import):
        return small.names[0].evaluated_name
    if isinstance(small, cst.ImportFrom):
        module = dotted_name(small.module) or "" if small.module is not None else ""
        return "." * len(small.relative) + module
    return None


def import_edits(
    tree: Tree, needs: Iterable[tuple[Need, int, cst.CSTNode | None]], removed: Sequence[cst.CSTNode]
) -> list[Edit]:
    """The edits that add imports.

    Args:
        tree: the file.
        needs: each import, the offset it is first used at, and the function-level import statement
            it stands in for, where it has to stay in that function.
        removed: import statements that are deleted whole.
    """
    earliest: dict[tuple[Need, int | None], tuple[int, cst.CSTNode | None]] = {}
    for need, offset, home in needs:
        key = (need, id(home) if home is not None else None)
        known = earliest.get(key)
        earliest[key] = (min(offset, known[0]) if known else offset, home)
    at_module = {need for need, home in earliest if home is None}
    by_place: dict[tuple[int, str], set[Need]] = defaultdict(set)
    for (need, _), (offset, home) in earliest.items():
        if home is not None:
            if need in at_module:
                continue
            span = tree.span(home)
            start = tree.source.line_start(span.start)
            by_place[start, tree.source.text[start : span.start]].add(need)
        else:
            by_place[_module_place(tree, need, offset, removed), ""].add(need)
    edits = []
    for (place, indent), group in by_place.items():
        text = _block(tree, place, indent, group, removed)
        if (
            place == len(tree.source.text)
            and tree.source.text
            and not tree.source.text.endswith(("\n", "\r"))
        ):
            text = tree.source.newline + text
        if indent.strip():  # the home shares its line with other code
            text = "; ".join(_statements(group)) + "; "
            place = place + len(indent)
        edits.append(Edit(Span(place, place), (text,), order=-3))
    return edits


def _block(tree: Tree, place: int, indent: str, group: set[Need], removed: Sequence[cst.CSTNode]) -> str:
    """The lines to insert at a place; a blank line parts the standard library from the rest."""
    newline = tree.source.newline
    standard = {need for need in group if need.module.partition(".")[0] in sys.stdlib_module_names}
    blocks = [
        "".join(f"{indent}{line}{newline}" for line in _statements(part))
        for part in (standard, group - standard)
    ]
    text = newline.join(block for block in blocks if block)
    if not standard and not indent and _ends_standard_imports(tree, place):
        text = newline + text
    if standard == group and not indent:
        gone = {tree.source.line_start(tree.span(statement).start) for statement in removed}
        for statement in header(tree.module):
            module = _imported_module(statement)
            if module is None or tree.source.line_start(tree.span(statement).start) < place:
                continue
            if tree.source.line_start(tree.span(statement).start) in gone:
                continue
            if module.partition(".")[0] not in sys.stdlib_module_names and _adjoins(
                tree, place, statement, gone
            ):
                return text + newline
            break
    return text


def _ends_standard_imports(tree: Tree, place: int) -> bool:
    """Whether the line before a place imports from the standard library."""
    last = None
    for statement in header(tree.module):
        if _imported_module(statement) and _statement_end(tree, statement) == place:
            last = _imported_module(statement)
    return last is not None and last.partition(".")[0] in sys.stdlib_module_names and last != "__future__"


def _adjoins(tree: Tree, place: int, statement: cst.CSTNode, gone: set[int]) -> bool:
    """Whether nothing but deleted imports stands between a place and a statement."""
    start = tree.source.line_start(tree.span(statement).start)
    position = place
    while position < start:
        if position not in gone:
            return False
        position = tree.source.line_end(position)
    return True


def _statements(needs: Iterable[Need]) -> list[str]:
    from_imports: dict[str, set[str]] = defaultdict(set)
    lines: list[tuple[str, int, str]] = []
    for need in needs:
        if need.name:
            from_imports[need.module].add(need.name)
        else:
            lines.append(
                (need.module, 0, f"import {need.module}" + (f" as {need.alias}" if need.alias else ""))
            )
    for module, names in from_imports.items():
        lines.append((module, 1, f"from {module} import {', '.join(sorted(names))}"))
    return [line for _, _, line in sorted(lines)]


def _module_place(tree: Tree, need: Need, first_use: int, removed: Sequence[cst.CSTNode]) -> int:
    """The offset, at a line start, where a module-level import belongs."""
    source = tree.source
    imports: list[tuple[str, cst.CSTNode]] = []
    after_fixed = _after_docstring_and_future(tree)
    for statement in header(tree.module):
        module = _imported_module(statement)
        if module and module != "__future__":
            imports.append((module, statement))
    root = need.module.partition(".")[0]
    if root in sys.stdlib_module_names:
        kin = [
            (module, node) for module, node in imports if module.partition(".")[0] in sys.stdlib_module_names
        ]
        kin = [pair for pair in kin if pair[0] != "torch"]
        place = _among(tree, need, kin)
        if place is None:
            place = source.line_start(tree.span(imports[0][1]).start) if imports else after_fixed
    else:
        kin = [(module, node) for module, node in imports if module.partition(".")[0] == root]
        place = _among(tree, need, kin)
        if place is None:
            gone = {id(tree.parent(statement)) for statement in removed}
            spot = next((node for _, node in imports if id(node) in gone), None)
            if spot is not None:
                place = source.line_start(tree.span(spot).start)
            elif imports:
                place = _statement_end(tree, imports[-1][1])
            else:
                place = after_fixed
    return place if place <= first_use else min(after_fixed, place)


def _among(tree: Tree, need: Need, kin: list[tuple[str, cst.CSTNode]]) -> int | None:
    """Behind the last of its kin that sorts before it, else before the first."""
    # plain imports stand together, before the from-imports
    plain, named = [p for p in kin if _is_plain(p[1])], [p for p in kin if not _is_plain(p[1])]
    if not need.name:
        kin = plain or kin[:1]
    elif named:
        kin = named
    elif plain:
        return _statement_end(tree, plain[-1][1])
    if not kin:
        return None
    before = [node for module, node in kin if module <= need.module]
    if before:
        return _statement_end(tree, before[-1])
    return tree.source.line_start(tree.span(kin[0][1]).start)


def _is_plain(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import)


def _statement_end(tree: Tree, statement: cst.CSTNode) -> int:
    return tree.source.line_end(tree.span(statement).end)


def _after_docstring_and_future(tree: Tree) -> int:
    place = 0
    first = True
    for statement in tree.module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        small = statement.body[0] if statement.body else None
        docstring = (
            first
            and isinstance(small, cst.Expr)
            and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
        )
        if not docstring and _imported_module(statement) != "__future__":
            break
        place = _statement_end(tree, statement)
        first = False
    if place == 0 and tree.module.header:
        # below the shebang and the licence
        first_statement = tree.module.body[0] if tree.module.body else None
        if first_statement is not None:
            place = tree.source.line_start(tree.span(first_statement).start)
    return place


def helper_place(tree: Tree) -> int:
    """The offset behind the imports at the top of a module, where helper functions go."""
    place = _after_docstring_and_future(tree)
    for statement in header(tree.module):
        if _imported_module(statement) is not None or (
            isinstance(statement, (cst.Try, cst.If)) and _holds_import(statement)
        ):
            place = max(place, _statement_end(tree, statement))
    return place


def _holds_import(statement: cst.CSTNode) -> bool:
    return any(isinstance(node, (cst.Import, cst.ImportFrom)) for node in walk(statement))
