"""What a name stands for: one scope-aware pass over a tree.

``resolve`` finds every use of a torch_xla name, through any import form at any depth, re-exports of
the repository's own modules, assignments (``sync = xm.mark_step``), star imports and class
attributes, and leaves out whatever a parameter, a local or a class shadows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import libcst as cst

from tpu_migrate.python.tree import Tree, children, walk

ROOTS = frozenset(("torch_xla", "torch_xla_py"))
"""Top-level modules whose names are followed, unless a rule book names more."""


def is_departing(qualified_name: str) -> bool:
    """Whether a name belongs to a package that a migrated program doesn't use any more."""
    return qualified_name.partition(".")[0] in ROOTS or f"{qualified_name}.".startswith("optimum.tpu.")


@dataclass(eq=False)
class Scope:
    """A module, class, function, lambda or comprehension, and what is bound in it."""

    node: cst.CSTNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    redirected: dict[str, Scope] = field(default_factory=dict)
    """Names declared global or nonlocal, and the scope they are bound in."""

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, cst.ClassDef)

    @property
    def is_module(self) -> bool:
        return self.parent is None

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Where a name used in this scope is bound, by Python's rules."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.redirected:
                scope = scope.redirected[name]
                return (scope, scope.bindings[name]) if name in scope.bindings else None
            if name in scope.bindings and (scope is self or not scope.is_class):
                return scope, scope.bindings[name]
            scope = scope.parent
        return None


@dataclass(eq=False)
class Binding:
    """One place where a name gets a value."""

    name: str
    scope: Scope
    node: cst.CSTNode
    """The import alias, the assignment, the parameter, the definition ..."""
    statement: cst.CSTNode
    qualified_name: str | None = None
    """For imports: what is imported."""
    value: cst.BaseExpression | None = None
    """For plain assignments: the expression assigned."""

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, (cst.ImportAlias, cst.ImportStar))


@dataclass(eq=False)
class Reference:
    """One use of a torch_xla name: the longest attribute chain that is part of its qualified name."""

    node: cst.BaseExpression
    """The Name or Attribute chain."""
    qualified_name: str
    scope: Scope
    bindings: tuple[Binding, ...]
    """The bindings the first name of the chain may come from."""
    ambiguous: Binding | None = None
    """A binding of the same name that is something else, where there is one."""
    quoted: bool = False
    """Inside a quoted annotation; ``node`` is the string."""


@dataclass(eq=False)
class ImportUse:
    """One imported torch_xla name: a clause of an import statement."""

    statement: cst.Import | cst.ImportFrom
    alias: cst.ImportAlias | cst.ImportStar
    local_name: str
    qualified_name: str
    scope: Scope
    binding: Binding | None
    from_repository: str | None = None
    """For re-exports: the repository path of the module it is imported from."""


@dataclass(eq=False)
class Names:
    """All that ``resolve`` found in one file."""

    tree: Tree
    module_scope: Scope
    scopes: dict[int, Scope]
    """By ``id`` of the node that opens the scope."""
    references: list[Reference]
    imports: list[ImportUse]
    strings: list[cst.SimpleString | cst.FormattedString]
    """String literals that mention xla, in source order."""
    loads: Mapping[str, list[tuple[cst.Name, Scope]]]
    """Every use of a plain name, by name."""
    prefers_single_quotes: bool = False
    _qualify: Callable[[cst.BaseExpression, Scope], str | None] = lambda node, scope: None

    def release(self) -> None:
        """Take scopes and bindings apart, so that the tree is freed without the cyclic collector."""
        for scope in self.scopes.values():
            scope.bindings.clear()
            scope.redirected.clear()

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope a node stands in."""
        for ancestor in self.tree.ancestors(node):
            if (scope := self.scopes.get(id(ancestor))) is not None:
                return scope
        return self.module_scope

    def qualified_name(self, node: cst.BaseExpression) -> str | None:
        """The qualified name an expression stands for, when it is an imported name or a chain on one."""
        return self._qualify(node, self.scope_of(node))


Exports = Mapping[str, str]
"""Names a repository module re-exports, and their qualified names."""


@dataclass(frozen=True)
class Repository:
    """What the resolver knows about the repository's other modules."""

    find_module: Callable[[str, int, str], str | None] = lambda path, level, dotted: None
    """(importing path, number of leading dots, dotted name) -> path of the module, if it is ours."""
    exports: Mapping[str, Exports] = field(default_factory=dict)
    """Path of a module -> the torch_xla names it re-exports."""


REPOSITORY = "repository:"
"""Begins the qualified names of the repository's own modules; their path follows."""


def resolve(
    tree: Tree,
    path: str,
    aliases: Mapping[str, str],
    known: Iterable[str] = (),
    repository: Repository | None = None,
    follows: Callable[[str], bool] | None = None,
) -> Names:
    """Find all uses of torch_xla names in a tree.

    Args:
        tree: the file.
        path: its repository path, for relative imports.
        aliases: dotted prefix -> canonical prefix, applied to every qualified name.
        known: qualified names that star imports may bring in.
        repository: other modules, for re-exports.
        follows: whether a dotted name is worth following; by itself, those of torch_xla are.
    """
    collector = _Collector(tree)
    collector.run()
    repository = repository or Repository()
    return _Resolver(tree, path, collector, aliases, known, repository, follows or is_departing).run()


def canonical(qualified_name: str, aliases: Mapping[str, str]) -> str:
    """Replace the longest aliased prefix, until none is left."""
    for _ in range(4):
        prefix = qualified_name
        while prefix and prefix not in aliases:
            prefix = prefix.rpartition(".")[0]
        if not prefix:
            return qualified_name
        qualified_name = aliases[prefix] + qualified_name[len(prefix) :]
    return qualified_name


def dotted_name(node: cst.CSTNode) -> str | None:
    """``a.b.c`` for a chain of plain names, else None."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


_SCOPES = (
    cst.FunctionDef,
    cst.ClassDef,
    cst.Lambda,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
)


class _Collector:
    """The walk: scopes, bindings, uses of names, strings that mention xla, parents."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.parents: dict[int, cst.CSTNode] = {}
        self.scopes: dict[int, Scope] = {}
        self.module_scope = Scope(tree.module, None)
        self.scopes[id(tree.module)] = self.module_scope
        self.loads: dict[str, list[tuple[cst.Name, Scope]]] = defaultdict(list)
        self.imports: list[tuple[cst.Import | cst.ImportFrom, Scope]] = []
        self.attributes: list[tuple[cst.Assign, cst.Attribute, Scope]] = []
        self.strings: list[cst.SimpleString | cst.FormattedString] = []
        self.quoted: list[tuple[cst.SimpleString, Scope]] = []
        self.quotes = {"'": 0, '"': 0}
        self.handlers: dict[type, Callable[[cst.CSTNode, Scope], None]] = {
            cst.FunctionDef: self._function,
            cst.Lambda: self._lambda,
            cst.ClassDef: self._class,
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.DictComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
            cst.Import: self._import,
            cst.ImportFrom: self._import,
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Arg: self._arg,
            cst.Assign: self._assign,
            cst.AnnAssign: self._ann_assign,
            cst.AugAssign: self._aug_assign,
            cst.NamedExpr: self._named,
            cst.For: self._for,
            cst.With: self._with,
            cst.ExceptHandler: self._except,
            cst.ExceptStarHandler: self._except,
            cst.Global: self._global,
            cst.Nonlocal: self._global,
            cst.Del: self._del,
            cst.SimpleString: self._string,
            cst.FormattedString: self._fstring,
            cst.MatchAs: self._match_capture,
            cst.MatchStar: self._match_capture,
            cst.MatchMapping: self._match_rest,
            cst.Annotation: self._annotation,
        }

    def run(self) -> None:
        for child in children(self.tree.module):
            self._visit(child, self.tree.module, self.module_scope)
        self.tree.parents = self.parents
        self.handlers.clear()  # they hold the collector, and that the tree

    def _visit(self, node: cst.CSTNode, parent: cst.CSTNode, scope: Scope) -> None:
        self.parents[id(node)] = parent
        handler = self.handlers.get(type(node))
        if handler is not None:
            handler(node, scope)
        else:
            for child in children(node):
                self._visit(child, node, scope)

    def _rest(self, node: cst.CSTNode, scope: Scope, *done: cst.CSTNode | None) -> None:
        for child in children(node):
            if not any(child is other for other in done):
                self._visit(child, node, scope)

    def _bind(
        self,
        name: str,
        scope: Scope,
        node: cst.CSTNode,
        statement: cst.CSTNode,
        value: cst.BaseExpression | None = None,
    ) -> None:
        owner = scope.redirected.get(name, scope)
        owner.bindings[name].append(Binding(name, owner, node, statement, value=value))

    # definitions

    def _open(self, node: cst.CSTNode, scope: Scope) -> Scope:
        inner = self.scopes[id(node)] = Scope(node, scope)
        return inner

    def _function(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.FunctionDef)
        self._bind(node.name.value, scope, node, node)
        inner = self._open(node, scope)
        for decorator in node.decorators:
            self._visit(decorator, node, scope)
        if node.returns is not None:
            self._visit(node.returns, node, scope)
        self._parameters(node.params, node, scope, inner)
        self._visit(node.body, node, inner)

    def _lambda(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.Lambda)
        inner = self._open(node, scope)
        self._parameters(node.params, node, scope, inner)
        self._visit(node.body, node, inner)

    def _parameters(self, params: cst.Parameters, owner: cst.CSTNode, outer: Scope, inner: Scope) -> None:
        self.parents[id(params)] = owner
        for parameter in (
            *params.posonly_params,
            *params.params,
            params.star_arg,
            *params.kwonly_params,
            params.star_kwarg,
        ):
            if isinstance(parameter, cst.Param):
                self.parents[id(parameter)] = params
                self._bind(parameter.name.value, inner, parameter, owner)
                for part in (parameter.annotation, parameter.default):
                    if part is not None:
                        self._visit(part, parameter, outer)

    def _class(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.ClassDef)
        self._bind(node.name.value, scope, node, node)
        for part in (*node.decorators, *node.bases, *node.keywords):
            self._visit(part, node, scope)
        self._visit(node.body, node, self._open(node, scope))

    def _comprehension(self, node: cst.CSTNode, scope: Scope) -> None:
        inner = self._open(node, scope)
        loops = node.for_in  # type: ignore[attr-defined]
        self.parents[id(loops)] = node
        first: cst.CompFor | None = loops
        while first is not None:
            self._targets(first.target, first, inner, node)
            self._visit(first.iter, first, scope if first is loops else inner)
            for condition in first.ifs:
                self._visit(condition, first, inner)
            if first.inner_for_in is not None:
                self.parents[id(first.inner_for_in)] = first
            first = first.inner_for_in
        self._rest(node, inner, loops)

    # bindings

    def _import(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, (cst.Import, cst.ImportFrom))
        self.imports.append((node, scope))
        if isinstance(node.names, cst.ImportStar):
            self.parents[id(node.names)] = node
            return
        for alias in node.names:
            self.parents[id(alias)] = node
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._bind(alias.asname.name.value, scope, alias, node)
            else:
                self._bind(alias.evaluated_name.partition(".")[0], scope, alias, node)

    def _targets(
        self, target: cst.CSTNode, parent: cst.CSTNode, scope: Scope, statement: cst.CSTNode
    ) -> None:
        """Bind what an assignment target binds; visit the expressions inside it."""
        self.parents[id(target)] = parent
        if isinstance(target, cst.Name):
            self._bind(target.value, scope, target, statement)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self.parents[id(element)] = target
                self._targets(element.value, element, scope, statement)
        else:
            self._visit(target, parent, scope)

    def _assign(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.Assign)
        for target in node.targets:
            self.parents[id(target)] = node
            if isinstance(target.target, cst.Name):
                self.parents[id(target.target)] = target
                self._bind(target.target.value, scope, target.target, node, node.value)
            else:
                self._targets(target.target, target, scope, node)
                if isinstance(target.target, cst.Attribute):
                    self.attributes.append((node, target.target, scope))
        self._visit(node.value, node, scope)

    def _ann_assign(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.AnnAssign)
        if isinstance(node.target, cst.Name):
            self.parents[id(node.target)] = node
            self._bind(node.target.value, scope, node.target, node, node.value)
        else:
            self._visit(node.target, node, scope)
        self._rest(node, scope, node.target)

    def _aug_assign(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.AugAssign)
        if isinstance(node.target, cst.Name):
            self._bind(node.target.value, scope, node.target, node)
        self._rest(node, scope)

    def _named(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.NamedExpr)
        owner = scope
        while (
            isinstance(owner.node, (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp))
            and owner.parent
        ):
            owner = owner.parent
        self._targets(node.target, node, owner, node)
        self._visit(node.value, node, scope)

    def _for(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.For)
        self._targets(node.target, node, scope, node)
        self._rest(node, scope, node.target)

    def _with(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.With)
        for item in node.items:
            self.parents[id(item)] = node
            self._visit(item.item, item, scope)
            if item.asname is not None:
                self.parents[id(item.asname)] = item
                self._targets(item.asname.name, item.asname, scope, node)
        self._visit(node.body, node, scope)

    def _except(self, node: cst.CSTNode, scope: Scope) -> None:
        name = node.name  # type: ignore[attr-defined]
        if name is not None:
            self.parents[id(name)] = node
            self._targets(name.name, name, scope, node)
        self._rest(node, scope, name)

    def _match_capture(self, node: cst.CSTNode, scope: Scope) -> None:
        name = node.name  # type: ignore[attr-defined]
        if name is not None:
            self.parents[id(name)] = node
            self._bind(name.value, scope, name, node)
        self._rest(node, scope, name)

    def _match_rest(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.MatchMapping)
        if node.rest is not None:
            self.parents[id(node.rest)] = node
            self._bind(node.rest.value, scope, node.rest, node)
        self._rest(node, scope, node.rest)

    def _annotation(self, node: cst.CSTNode, scope: Scope) -> None:
        for inner in walk(node):
            if isinstance(inner, cst.SimpleString):
                self.quoted.append((inner, scope))
        self._rest(node, scope)

    def _global(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, (cst.Global, cst.Nonlocal))
        for item in node.names:
            name = item.name.value
            if isinstance(node, cst.Global):
                scope.redirected[name] = self.module_scope
            else:
                found = scope.parent.lookup(name) if scope.parent else None
                scope.redirected[name] = found[0] if found else self.module_scope

    def _del(self, node: cst.CSTNode, scope: Scope) -> None:
        for child in children(node):
            self._visit(child, node, scope)

    # uses

    def _name(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.Name)
        self.loads[node.value].append((node, scope))

    def _attribute(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.Attribute)
        self._visit(node.value, node, scope)

    def _arg(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.Arg)
        self._visit(node.value, node, scope)

    def _string(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.SimpleString)
        if len(node.quote) == 1:
            self.quotes[node.quote] += 1
        value = node.value
        if "xla" in value.lower() or any(word in value for word in ("XRT", "PJRT", "TPU", "tpu_", ".tpu")):
            self.strings.append(node)

    def _fstring(self, node: cst.CSTNode, scope: Scope) -> None:
        assert isinstance(node, cst.FormattedString)
        if any(isinstance(part, cst.FormattedStringText) and "xla" in part.value for part in node.parts):
            self.strings.append(node)
        self._rest(node, scope)


@dataclass(frozen=True)
class _Meaning:
    qualified_name: str
    bindings: tuple[Binding, ...]
    ambiguous: Binding | None = None


class _Resolver:
    """Second half: which of the collected names mean torch_xla."""

    def __init__(
        self,
        tree: Tree,
        path: str,
        collected: _Collector,
        aliases: Mapping[str, str],
        known: Iterable[str],
        repository: Repository,
        follows: Callable[[str], bool],
    ) -> None:
        self.tree, self.path, self.collected, self._is_ours = tree, path, collected, follows
        self.aliases, self.repository = aliases, repository
        self.known = known
        self.meanings: dict[tuple[int, str], _Meaning | None] = {}
        self.stars: list[ImportUse] = []

    def run(self) -> Names:
        imports = self._read_imports()
        names = Names(
            self.tree,
            self.collected.module_scope,
            self.collected.scopes,
            [],
            imports,
            self.collected.strings,
            self.collected.loads,
            self.collected.quotes["'"] > self.collected.quotes['"'],
            self._qualify,
        )
        if imports or self.stars or self._imports_from_repository():
            names.references = self._references()
        return names

    def _find_module(self, path: str, level: int, dotted: str) -> str | None:
        """The repository's module an import means; torch_xla stays torch_xla in its own repository too."""
        if not level and self._is_ours(dotted):
            return None
        return self.repository.find_module(path, level, dotted)

    def _imports_from_repository(self) -> bool:
        for statement, _ in self.collected.imports:
            if isinstance(statement, cst.Import):
                for alias in statement.names:
                    module = self._find_module(self.path, 0, alias.evaluated_name)
                    if module is not None and self.repository.exports.get(module):
                        return True
        return any(
            (binding.qualified_name or "").startswith(REPOSITORY)
            for scope in self.collected.scopes.values()
            for bindings in scope.bindings.values()
            for binding in bindings
        )

    # imports

    def _read_imports(self) -> list[ImportUse]:
        uses: list[ImportUse] = []
        for statement, scope in self.collected.imports:
            if isinstance(statement, cst.Import):
                for alias in statement.names:
                    uses.extend(self._plain_import(statement, alias, scope))
            else:
                uses.extend(self._from_import(statement, scope))
        return uses

    def _plain_import(
        self, statement: cst.Import, alias: cst.ImportAlias, scope: Scope
    ) -> Iterable[ImportUse]:
        dotted = alias.evaluated_name
        ours = self._find_module(self.path, 0, dotted)
        if alias.asname is not None:
            local = alias.evaluated_alias or dotted
            qualified = REPOSITORY + ours if ours else dotted
        else:
            local = qualified = dotted.partition(".")[0]
            if ours and "." not in dotted:
                qualified = REPOSITORY + ours
        binding = self._name_binding(scope, local, alias, qualified)
        if self._is_ours(dotted):
            yield ImportUse(statement, alias, local, canonical(dotted, self.aliases), scope, binding)

    def _from_import(self, statement: cst.ImportFrom, scope: Scope) -> Iterable[ImportUse]:
        module = dotted_name(statement.module) or "" if statement.module is not None else ""
        level = len(statement.relative)
        repository_path = self._find_module(self.path, level, module)
        exports = self.repository.exports.get(repository_path or "", {})
        if isinstance(statement.names, cst.ImportStar):
            if not level and self._is_ours(module):
                use = ImportUse(statement, statement.names, "*", canonical(module, self.aliases), scope, None)
                self.stars.append(use)
                yield use
            elif exports and repository_path:
                use = ImportUse(statement, statement.names, "*", "", scope, None, repository_path)
                self.stars.append(use)
            return
        for alias in statement.names:
            imported = alias.evaluated_name
            local = alias.evaluated_alias or imported
            qualified = f"{module}.{imported}"
            if not level and self._is_ours(qualified):
                binding = self._name_binding(scope, local, alias, qualified)
                yield ImportUse(statement, alias, local, canonical(qualified, self.aliases), scope, binding)
            elif imported in exports:
                qualified = exports[imported]
                binding = self._name_binding(scope, local, alias, qualified)
                yield ImportUse(statement, alias, local, qualified, scope, binding, repository_path)
            else:
                submodule = self._find_module(
                    self.path, level, f"{module}.{imported}" if module else imported
                )
                qualified = REPOSITORY + submodule if submodule else f"{'.' * level}{module}.{imported}"
                self._name_binding(scope, local, alias, qualified)

    def _name_binding(
        self, scope: Scope, local: str, alias: cst.ImportAlias, qualified: str
    ) -> Binding | None:
        owner = scope.redirected.get(local, scope)
        for binding in owner.bindings.get(local, ()):
            if binding.node is alias:
                binding.qualified_name = qualified
                return binding
        return None

    # meanings

    def _lookup(self, name: str, scope: Scope) -> _Meaning | None:
        found = scope.lookup(name)
        if found is None:
            return self._from_star(name)
        owner, bindings = found
        key = (id(owner), name)
        if key not in self.meanings:
            self.meanings[key] = None  # an assignment in terms of itself means nothing
            self.meanings[key] = self._meaning(bindings, owner)
        return self.meanings[key]

    def _meaning(self, bindings: list[Binding], owner: Scope) -> _Meaning | None:
        qualified: str | None = None
        fitting: list[Binding] = []
        other: Binding | None = None
        for binding in bindings:
            meaning = binding.qualified_name
            if (
                meaning is None
                and binding.value is not None
                and isinstance(binding.value, (cst.Name, cst.Attribute))
            ):
                meaning = self._qualify(binding.value, owner)
            if meaning is None:
                if not _is_none(binding.value):
                    other = other or binding
                continue
            if not meaning.startswith(REPOSITORY):
                meaning = canonical(meaning, self.aliases)
            if qualified is None or (not self._is_ours(qualified) and self._is_ours(meaning)):
                qualified, fitting, other = meaning, [binding], other or (fitting[0] if fitting else None)
            elif meaning == qualified:
                fitting.append(binding)
            else:
                other = other or binding
        if qualified is None:
            return None
        return _Meaning(qualified, tuple(fitting), other)

    def _from_star(self, name: str) -> _Meaning | None:
        for star in self.stars:
            if star.from_repository is not None:
                exports = self.repository.exports.get(star.from_repository, {})
                if name in exports:
                    return _Meaning(exports[name], ())
            elif not name.startswith("_") and f"{star.qualified_name}.{name}" in self.known:
                return _Meaning(f"{star.qualified_name}.{name}", ())
        return None

    def _qualify(self, node: cst.BaseExpression, scope: Scope) -> str | None:
        """Qualified name of a Name or Attribute chain, or None."""
        attributes: list[str] = []
        current: cst.BaseExpression = node
        while isinstance(current, cst.Attribute):
            attributes.append(current.attr.value)
            current = current.value
        if not isinstance(current, cst.Name):
            return None
        meaning = self._lookup(current.value, scope)
        if meaning is None:
            return None
        return self._extend(meaning.qualified_name, list(reversed(attributes)))

    def _extend(self, qualified: str, attributes: list[str]) -> str:
        if qualified.startswith(REPOSITORY) and attributes:
            exports = self.repository.exports.get(qualified[len(REPOSITORY) :], {})
            if attributes[0] in exports:
                return self._extend(exports[attributes[0]], attributes[1:])
        if attributes and not self._is_ours(qualified) and not qualified.startswith(REPOSITORY):
            for count in range(1, len(attributes)):
                module = self._find_module(self.path, 0, ".".join([qualified, *attributes[:count]]))
                exports = self.repository.exports.get(module or "", {})
                if attributes[count] in exports:
                    return self._extend(exports[attributes[count]], attributes[count + 1 :])
        result = ".".join([qualified, *attributes])
        return result if result.startswith(REPOSITORY) else canonical(result, self.aliases)

    # references

    def _references(self) -> list[Reference]:
        references: list[Reference] = []
        for name, uses in list(self.collected.loads.items()):
            for node, scope in uses:
                meaning = self._lookup(name, scope)
                if meaning is None:
                    continue
                chain, attributes = self._chain(node)
                qualified = self._extend(meaning.qualified_name, attributes)
                if self._is_ours(qualified):
                    references.append(Reference(chain, qualified, scope, meaning.bindings, meaning.ambiguous))
        references.extend(self._attribute_references())
        references.extend(self._quoted_references())
        references.sort(key=lambda reference: self.tree.span(reference.node).start)
        return references

    def _quoted_references(self) -> Iterable[Reference]:
        for node, scope in self.collected.quoted:
            for dotted in re.findall(r"[^\W\d]\w*(?:\.\w+)*", node.value):
                root, *attributes = dotted.split(".")
                meaning = self._lookup(root, scope)
                if meaning is not None:
                    qualified = self._extend(meaning.qualified_name, attributes)
                    if self._is_ours(qualified):
                        yield Reference(
                            node, qualified, scope, meaning.bindings, meaning.ambiguous, quoted=True
                        )

    def _chain(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, list[str]]:
        """The longest attribute chain that starts at ``node``."""
        attributes: list[str] = []
        parent = self.tree.parent(node)
        while isinstance(parent, cst.Attribute) and parent.value is node:
            attributes.append(parent.attr.value)
            node, parent = parent, self.tree.parent(parent)
        return node, attributes

    def _attribute_references(self) -> Iterable[Reference]:
        """Uses of ``self.name`` where the class binds ``name`` to a torch_xla name, once."""
        held: dict[tuple[int, str], list[tuple[str | None, Binding]]] = defaultdict(list)
        for statement, target, scope in self.collected.attributes:
            owner = self._instance_class(target, scope)
            if owner is None:
                continue
            value = statement.value
            meaning = self._qualify(value, scope) if isinstance(value, (cst.Name, cst.Attribute)) else None
            if not _is_none(value):
                binding = Binding(target.attr.value, owner, target, statement, value=value)
                held[id(owner), target.attr.value].append((meaning, binding))
        for scope in self.collected.scopes.values():
            if scope.is_class:
                for name, bindings in scope.bindings.items():
                    for binding in bindings:
                        meaning = binding.qualified_name or (
                            self._qualify(binding.value, scope)
                            if isinstance(binding.value, (cst.Name, cst.Attribute))
                            else None
                        )
                        held[id(scope), name].append((meaning, binding))
        meanings = {
            key: found[0]
            for key, found in held.items()
            if len(found) == 1 and found[0][0] and self._is_ours(found[0][0])
        }
        if not meanings:
            return
        for receiver in ("self", "cls"):
            for node, scope in self.collected.loads.get(receiver, ()):
                chain, attributes = self._chain(node)
                owner = self._enclosing_class(scope)
                if not attributes or owner is None or (id(owner), attributes[0]) not in meanings:
                    continue
                meaning, binding = meanings[id(owner), attributes[0]]
                if any(chain is target.target for target in getattr(binding.statement, "targets", ())):
                    continue
                assert meaning is not None
                qualified = self._extend(meaning, attributes[1:])
                yield Reference(chain, qualified, scope, (binding,))

    def _instance_class(self, target: cst.Attribute, scope: Scope) -> Scope | None:
        if isinstance(target.value, cst.Name) and target.value.value in ("self", "cls"):
            return self._enclosing_class(scope)
        return None

    def _enclosing_class(self, scope: Scope | None) -> Scope | None:
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope


def _is_none(value: cst.BaseExpression | None) -> bool:
    return isinstance(value, cst.Name) and value.value == "None"
