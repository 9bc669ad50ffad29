"""The silence check: which references to torch_xla stand in a file without a finding that covers them.

It is the judge of the tool and shares nothing with it: no rule, no resolver, no libcst. It reads the file as
it lies on disk after a run with the standard library's ``ast``, lists what refers to torch_xla or
optimum.tpu, and holds the list against the findings' lines. Where the tool is clever it is plain: every
binding of a scope counts, whatever the order of the statements.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tpu_migrate.findings import Finding, Outcome

ROOTS = ("torch_xla", "optimum.tpu")
_DOTTED = re.compile(r"(torch_xla|optimum\.tpu)(\.\w+)*")
_MENTION = re.compile(r"\btorch_xla\b|\boptimum\.tpu\b|\bfrom\s+optimum\s+import\b.*\btpu\b")
_DEVICE = re.compile(r"xla(:.*)?", re.DOTALL)


@dataclass(frozen=True, order=True)
class Reference:
    """One reference to torch_xla: the lines it stands on, and what it is."""

    line: int
    end_line: int
    text: str
    statement_line: int = 0
    """Of a name in an import: the line of its ``import`` or ``from``, which may carry the finding."""


def silent_references(source: str, findings: Iterable[Finding]) -> list[tuple[int, str]]:
    """Line and text of every reference that no open or suppressed finding covers.

    Args:
        source: the file after the run, decoded, without a BOM.
        findings: those of this file after the run, in terms of this source.

    Returns:
        In the order of the file; empty when nothing is silent. A file that can't be parsed gives an entry
        unless it has exactly one PY finding, or says nothing of torch_xla. A VN finding (another vendor's
        torch_xla) stands for the whole file.
    """
    standing = [finding for finding in findings if finding.outcome is not Outcome.REWRITTEN]
    tree = _parse(source)
    if tree is None:
        unreadable = sum(finding.code.startswith("PY") for finding in standing)
        if unreadable == 1 or not _MENTION.search(source):
            return []
        return [(1, f"the file can't be parsed and has {unreadable} PY findings instead of one")]
    if any(finding.code.startswith("VN") for finding in standing):
        return []
    covered = {line for finding in standing for line in range(finding.line, finding.end_line + 1)}
    return [
        (reference.line, reference.text)
        for reference in _references(tree)
        if reference.statement_line not in covered
        and covered.isdisjoint(range(reference.line, reference.end_line + 1))
    ]


def references(source: str) -> list[Reference]:
    """Everything in the source that refers to torch_xla; empty when it can't be parsed."""
    tree = _parse(source)
    return [] if tree is None else _references(tree)


def parses(source: str) -> bool:
    """Whether the running Python can parse the source."""
    return _parse(source) is not None


def lost_names(before: str, after: str) -> list[tuple[int, str]]:
    """Line and name of what nothing binds after the run, and was bound (or not used) before it.

    It finds an import that was dropped too early, and emitted code whose own import is missing.
    """
    old, new = _parse(before), _parse(after)
    if old is None or new is None:
        return []
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(new)):
        return []  # a star may bind anything
    known = {name for _, name in _unbound(old)}
    return [(line, name) for line, name in _unbound(new) if name not in known]


def _parse(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@dataclass
class _Scope:
    """What one scope binds. ``bound`` maps a name to the dotted torch_xla names its imports give it."""

    parent: _Scope | None
    kind: Literal["module", "class", "function", "comprehension"] = "module"
    bound: dict[str, set[str]] = field(default_factory=dict)
    elsewhere: dict[str, _Scope] = field(default_factory=dict)
    """Names declared ``global`` or ``nonlocal`` here, and the scope that has them."""

    def bind(self, name: str, target: str | None = None) -> None:
        scope = self.elsewhere.get(name, self)
        targets = scope.bound.setdefault(name, set())
        if target is not None:
            targets.add(target)

    def root(self) -> _Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def lookup(self, name: str) -> set[str] | None:
        """The torch_xla names behind a name (empty: bound to something else); None when nothing binds it."""
        if name in self.elsewhere:
            return self.elsewhere[name].bound.get(name)
        if name in self.bound:
            return self.bound[name]
        outer = self.parent
        while outer is not None and outer.kind == "class":
            outer = outer.parent  # a class body is invisible to the functions in it
        return outer.lookup(name) if outer is not None else None


_Use = tuple[ast.Name, tuple[str, ...], _Scope]
"""A name, the attributes read from it, and where it stands."""


class _Names(ast.NodeVisitor):
    """Collects scopes and uses in one walk; they are put together afterwards, when all is bound."""

    def __init__(self, tree: ast.Module) -> None:
        self.scope = _Scope(None)
        self.uses: list[_Use] = []
        self.visit(tree)

    # --- what binds ---------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if alias.asname:
                self.scope.bind(alias.asname, alias.name if _is_ours(alias.name) else None)
            elif _is_ours(alias.name):
                self.scope.bind(top, top if top == "torch_xla" else "optimum")
            else:
                self.scope.bind(top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = f"{node.module or ''}.{alias.name}"
            ours = node.level == 0 and _is_ours(name)
            self.scope.bind(alias.asname or alias.name, name if ours else None)

    def visit_Global(self, node: ast.Global) -> None:
        for name in node.names:
            self.scope.elsewhere[name] = self.scope.root()

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            outer = self.scope.parent
            while outer is not None and (outer.kind == "class" or name not in outer.bound):
                outer = outer.parent
            if outer is not None:
                self.scope.elsewhere[name] = outer

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scope.bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.scope.bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.scope.bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.scope.bind(node.rest)
        self.generic_visit(node)

    # --- what is used -------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        self._name(node, ())

    def visit_Attribute(self, node: ast.Attribute) -> None:
        attributes: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            attributes.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self._name(inner, tuple(reversed(attributes)))
        else:
            self.visit(inner)

    def _name(self, node: ast.Name, attributes: tuple[str, ...]) -> None:
        if isinstance(node.ctx, ast.Load):
            self.uses.append((node, attributes, self.scope))
        else:
            self.scope.bind(node.id)

    def _annotation(self, node: ast.expr | None) -> None:
        """Annotations in quotes are code too."""
        if node is None:
            return
        self.visit(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                try:
                    quoted = ast.parse(part.value.strip(), mode="eval").body
                except (SyntaxError, ValueError):
                    continue
                for inner in ast.walk(quoted):
                    if isinstance(inner, ast.expr):
                        inner.lineno, inner.end_lineno = part.lineno, part.end_lineno
                self.visit(quoted)

    # --- what opens a scope -------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.bind(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._signature(node.args)
        self._annotation(node.returns)
        self._function(node.args, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._signature(node.args)
        self._function(node.args, [node.body])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name)
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        outer, self.scope = self.scope, _Scope(self.scope, "class")
        for statement in node.body:
            self.visit(statement)
        self.scope = outer

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    visit_SetComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        scope = self.scope
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent  # `:=` binds around the comprehension it stands in
        scope.bind(node.target.id)

    def _signature(self, arguments: ast.arguments) -> None:
        """Defaults and annotations are evaluated outside the function."""
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)
        for argument in _all_arguments(arguments):
            self._annotation(argument.annotation)

    def _function(self, arguments: ast.arguments, body: Sequence[ast.AST]) -> None:
        outer, self.scope = self.scope, _Scope(self.scope, "function")
        for argument in _all_arguments(arguments):
            self.scope.bind(argument.arg)
        for node in body:
            self.visit(node)
        self.scope = outer

    def _comprehension(self, generators: list[ast.comprehension], results: list[ast.expr]) -> None:
        self.visit(generators[0].iter)  # the first iterable belongs to the scope around
        outer, self.scope = self.scope, _Scope(self.scope, "comprehension")
        for number, generator in enumerate(generators):
            self.visit(generator.target)
            for node in ([generator.iter] if number else []) + generator.ifs:
                self.visit(node)
        for result in results:
            self.visit(result)
        self.scope = outer


def _references(tree: ast.Module) -> list[Reference]:
    return sorted([*_imports(tree), *_uses(tree), *_strings(tree)])


def _imports(tree: ast.Module) -> Iterator[Reference]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_ours(alias.name):
                    yield _reference(alias, f"import {alias.name}", node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                if _is_ours(f"{node.module}.{alias.name}"):
                    yield _reference(alias, f"from {node.module} import {alias.name}", node.lineno)


def _uses(tree: ast.Module) -> Iterator[Reference]:
    for name, attributes, scope in _Names(tree).uses:
        targets = scope.lookup(name.id) or ()
        if any(_is_ours(".".join((target, *attributes))) for target in targets):
            yield _reference(name, ".".join((name.id, *attributes)))


def _strings(tree: ast.Module) -> Iterator[Reference]:
    """Module names in strings, and "xla" where it can only be a device, a backend or a process group."""
    idle = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    pieces = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    } - {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in idle | pieces and _DOTTED.fullmatch(node.value):
                yield _reference(node, repr(node.value))
        elif isinstance(node, ast.Call):
            for value in _xla_arguments(node):
                yield _reference(value, ast.unparse(node)[:80])
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr == "type" for side in sides):
                for side in sides:
                    members = side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
                    if any(_is_device(member) for member in members):
                        yield _reference(side, ast.unparse(node)[:80])


def _xla_arguments(call: ast.Call) -> Iterator[ast.expr]:
    function = call.func
    called = (
        function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    )  # torch.device and device, dist.init_process_group and init_process_group
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    positional: list[ast.expr] = []
    if called in ("device", "init_process_group"):
        positional = call.args[:1]
    elif called == "to" and isinstance(function, ast.Attribute):
        positional = call.args
    named = ["device"]
    if called in ("init_process_group", "new_group"):
        named += ["backend", "init_method"]
    for value in (*positional, *(keywords[name] for name in named if name in keywords)):
        if _is_device(value):
            yield value
    backend = keywords.get("backend")
    if called == "compile" and isinstance(backend, ast.Constant) and backend.value == "openxla":
        yield backend


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
        return isinstance(node, ast.Constant) and str(node.value).startswith("xla:")
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _DEVICE.fullmatch(node.value) is not None
    )


def _unbound(tree: ast.Module) -> list[tuple[int, str]]:
    """Names that are read and that no scope in view binds."""
    known = {
        *dir(builtins),
        "__file__",
        "__path__",
        "__class__",
        "__annotations__",
        "__builtins__",
        "WindowsError",
    }
    return [
        (name.lineno, name.id)
        for name, _, scope in _Names(tree).uses
        if name.id not in known and scope.lookup(name.id) is None
    ]


def _reference(node: ast.expr | ast.alias, text: str, statement_line: int = 0) -> Reference:
    return Reference(node.lineno, node.end_lineno or node.lineno, text, statement_line or node.lineno)


def _is_ours(dotted: str) -> bool:
    return any(dotted == root or dotted.startswith(root + ".") for root in ROOTS)


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    stars = [star for star in (arguments.vararg, arguments.kwarg) if star is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]
