"""A site: one use of a name that a rule is about, and the edits a transform can make there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import libcst as cst

from tpu_migrate.config import Settings
from tpu_migrate.findings import Edit, Part, Safety, Span
from tpu_migrate.python.comments import comments_in
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.helpers import Helper, first_line, load_helper
from tpu_migrate.python.imports import Imports, Need
from tpu_migrate.python.match import Match
from tpu_migrate.python.names import Names, Reference, Scope
from tpu_migrate.python.pattern import Capture, Captures
from tpu_migrate.python.template import ATOMS, Template, parse_template, render
from tpu_migrate.python.tree import Tree


@dataclass(frozen=True)
class Dedent:
    """Lines that lose a level of indentation; text that other rewrites put there has to lose it too."""

    span: Span
    inner: str
    outer: str


@dataclass(frozen=True)
class Rewrite:
    """What a transform does at a site."""

    edits: tuple[Edit | Delete, ...]
    note: str = ""
    """Said in the finding, after the rule's own text."""
    safety: Safety | None = None
    """Where this rewrite is less safe than the rule says."""
    dedents: tuple[Dedent, ...] = ()
    message: str = ""
    """Said in the finding in the place of the rule's own text."""


class Refused(Exception):
    """Raised to decline; the reason becomes the finding's text."""


@dataclass
class FileContext:
    """What all sites of one file share."""

    names: Names
    imports: Imports
    settings: Settings
    kind: str
    """Of the program the file belongs to: single-process, multi-process, spmd or library."""
    helpers_directory: Path
    grouped: frozenset[int] = frozenset()
    """``id`` of the functions that only run inside an initialised process group."""
    helper_names: dict[str, str] = field(default_factory=dict)
    """What helpers are called in this file, where their own name is taken."""
    makes_group: bool = False
    """Whether the program initialises torch.distributed itself."""

    @property
    def tree(self) -> Tree:
        return self.names.tree

    def helper_name(self, name: str) -> str:
        """What a helper is called in this file: its own, or with an underscore where that is taken."""
        if name not in self.helper_names:
            chosen = name
            if self.has_helper(name):
                self.helper_names[name] = name
                return name
            while not self.imports.name_is_free(chosen):
                chosen = f"_{chosen}" if not chosen.startswith("_") else f"{chosen}_"
            self.helper_names[name] = chosen
        return self.helper_names[name]

    def has_helper(self, name: str) -> bool:
        """Whether an earlier run has put a helper of this name into the file: told by its docstring."""
        bindings = self.names.module_scope.bindings.get(name, [])
        if len(bindings) != 1 or not isinstance(bindings[0].node, (cst.FunctionDef, cst.ClassDef)):
            return False
        docstring = bindings[0].node.get_docstring()
        return docstring is not None and docstring.partition("\n")[0] in self.known_docstrings.get(name, ())

    @cached_property
    def known_docstrings(self) -> dict[str, set[str]]:
        """Helpers' names, and the first lines of their docstrings."""
        known: dict[str, set[str]] = {}
        for path in sorted(self.helpers_directory.glob("*.py")):
            helper = load_helper(self.helpers_directory, path.stem)
            known.setdefault(helper.name, set()).add(first_line(helper))
        return known


_COMFORTABLE = (
    cst.Arg,
    cst.AnnAssign,
    cst.Annotation,
    cst.Assign,
    cst.AugAssign,
    cst.Return,
    cst.Expr,
    cst.Element,
    cst.DictElement,
    cst.Index,
    cst.If,
    cst.While,
    cst.Assert,
    cst.Param,
    cst.WithItem,
    cst.FormattedStringExpression,
    cst.Yield,
    cst.NamedExpr,
    cst.Decorator,
)
"""Parents under which any expression can stand without parentheses."""


@dataclass
class Site:
    """One use of a name that a rule is about."""

    context: FileContext
    reference: Reference
    match: Match
    call: cst.Call | None
    """The call whose function the name is, if it is called."""
    needs: list[tuple[Need, int]] = field(default_factory=list)
    helpers: dict[str, Helper] = field(default_factory=dict)

    @property
    def tree(self) -> Tree:
        return self.context.tree

    @property
    def node(self) -> cst.BaseExpression:
        """The call where the pattern is about one, else the name."""
        return self.call if self.call is not None and self.match.pattern.is_call else self.reference.node

    @property
    def captures(self) -> Captures:
        return self.match.captures or Captures({}, {})

    def capture(self, name: str) -> Capture:
        return self.captures.single[name]

    @property
    def scope(self) -> Scope:
        return self.reference.scope

    def text(self, node: cst.CSTNode) -> str:
        return self.tree.text(node)

    @property
    def is_whole_statement(self) -> bool:
        """Whether the site is an expression statement of its own."""
        return isinstance(self.tree.parent(self.node), cst.Expr)

    @property
    def small_statement(self) -> cst.BaseSmallStatement | None:
        """The simple statement the site stands in; None in the head of a compound one."""
        for ancestor in self.tree.ancestors(self.node):
            if isinstance(ancestor, cst.BaseSmallStatement):
                return ancestor
            if isinstance(ancestor, (cst.BaseCompoundStatement, cst.Lambda)):
                return None
        return None

    def enclosing_functions(self) -> Iterator[cst.FunctionDef]:
        """Functions around the site, nearest first."""
        for ancestor in self.tree.ancestors(self.node):
            if isinstance(ancestor, cst.FunctionDef):
                yield ancestor

    @property
    def has_group(self) -> bool:
        """Whether a process group is certain to exist when this runs."""
        if any(id(function) in self.context.grouped for function in self.enclosing_functions()):
            return True
        return self._follows_initialization()

    def _follows_initialization(self) -> bool:
        """Whether ``init_process_group`` is called before, in this block or one around it."""
        inner: cst.CSTNode = self.node
        for ancestor in self.tree.ancestors(self.node):
            if isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
                for statement in ancestor.body:
                    if statement is inner:
                        break
                    if _initializes(statement):
                        return True
            if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                return False
            inner = ancestor
        return False

    # what replacements are made of

    def spell(self, qualified_name: str) -> str:
        """How this file writes a qualified name here; notes the import that takes.

        Raises:
            NameTaken: it can't be written here.
        """
        offset = self.tree.span(self.node).start
        text, need = self.context.imports.spell(qualified_name, self.scope, offset)
        if need is not None:
            self.needs.append((need, offset))
        return text

    @property
    def quote(self) -> str:
        """The quote for strings here: the file's own, inside an f-string the other one, "" for none."""
        taken = {
            ancestor.start[-1]
            for ancestor in self.tree.ancestors(self.node)
            if isinstance(ancestor, cst.FormattedString)
        }
        own = ("'", '"') if self.context.names.prefers_single_quotes else ('"', "'")
        return next((quote for quote in own if quote not in taken), "")

    def template(self, text: str, **extra: tuple[Part, ...]) -> tuple[Part, ...]:
        """Fill a template with this site's captures."""
        template = self._parse(text)
        self._check_repeats(template.captures)
        quote = self.quote
        parts = render(template, self.tree, self.match.captures, self.spell, quote or "'", extra)
        if not quote and any(isinstance(part, str) and re.search("['\"]", part) for part in parts):
            raise Refused("both kinds of quotes are taken by the f-strings around it; take it out of them")
        return parts

    def _check_repeats(self, captures: tuple[str, ...]) -> None:
        for name in set(captures):
            if captures.count(name) > 1 and name in self.captures.single:
                node = self.captures.single[name].node
                if node is not None and not is_repeatable(node):
                    raise Refused(f"`{self.text(node)}` would be evaluated twice; give it a name first")

    def is_loose(self, text: str) -> bool:
        return self._parse(text).loose

    def _parse(self, text: str) -> Template:
        return parse_template(text, self.context.settings.device, frozenset(self.match.rule.imports))

    def use_helper(self, name: str) -> str:
        """Bring a helper function along; returns what it is called in this file."""
        helper = load_helper(self.context.helpers_directory, name)
        if not self.context.has_helper(helper.name):
            self.helpers[name] = helper
        for other in helper.uses:
            self.use_helper(other)
        return self.context.helper_name(helper.name)

    # edits

    def replace(
        self, parts: tuple[Part, ...], loose: bool = False, node: cst.BaseExpression | None = None
    ) -> Rewrite:
        """Replace the site (or another expression) by an expression."""
        target = node or self.node
        parent = self.tree.parent(target)
        bare = not getattr(target, "lpar", ())
        if isinstance(target, cst.Call):
            parts = keep_layout(self.tree, target, parts)
        if loose and bare and not isinstance(parent, _COMFORTABLE) and not _fits_inside(parent, parts):
            parts = ("(", *parts, ")")
        if isinstance(parent, cst.Arg) and parent.star and loose:
            parts = ("(", *parts, ")")
        return Rewrite((*self._comments(target, parts), Edit(self.tree.span(target), parts)))

    def _comments(self, target: cst.CSTNode, parts: tuple[Part, ...]) -> list[Edit]:
        """Comments between arguments that the replacement would lose, moved above the statement."""
        span = self.tree.span(target)
        text = self.tree.source.text
        copied = [part for part in parts if isinstance(part, Span)]
        position, lost = span.start, []
        for part in [*sorted(copied), Span(span.end, span.end)]:
            lost.extend(comments_in(text[position : part.start]))
            position = max(position, part.end)
        return self.insert_above(lost, order=7) if lost else []

    def insert_above(self, lines: list[str], order: int = 6) -> list[Edit]:
        """Insert lines above the statement the site stands in."""
        start = self.statement_start
        indent = self.indent_of(self.statement_line)
        newline = self.tree.source.newline
        return [Edit(Span(start, start), ("".join(f"{indent}{line}{newline}" for line in lines),), order)]

    @property
    def statement_line(self) -> cst.CSTNode:
        """The nearest statement around the site that begins a line."""
        for ancestor in self.tree.ancestors(self.node):
            if isinstance(ancestor, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                if isinstance(ancestor, cst.If):
                    parent = self.tree.parent(ancestor)
                    if isinstance(parent, cst.If) and parent.orelse is ancestor:
                        continue  # an elif
                return ancestor
        return self.tree.module

    @property
    def statement_start(self) -> int:
        """Offset of the line the statement around the site begins on, with its decorators."""
        first = self.statement_line
        if isinstance(first, (cst.FunctionDef, cst.ClassDef)) and first.decorators:
            first = first.decorators[0]
        return self.tree.source.line_start(self.tree.span(first).start)

    def indent_of(self, statement: cst.CSTNode) -> str:
        """The white space a statement's line begins with."""
        start = self.tree.span(statement).start
        line = self.tree.source.text[self.tree.source.line_start(start) : start]
        return line[: len(line) - len(line.lstrip())]

    def delete_statement(self) -> Rewrite:
        """Delete the expression statement the site is.

        Raises:
            Refused: the value is used.
        """
        parent = self.tree.parent(self.node)
        if not isinstance(parent, cst.Expr):
            raise Refused(f"the value of `{shorten(self.text(self.node))}` is used; remove it by hand")
        return Rewrite((*self._comments(self.node, ()), Delete(parent)))

    def statements(self, text: str, replaced: cst.BaseSmallStatement, **extra: tuple[Part, ...]) -> Rewrite:
        """Replace a simple statement that has its line to itself by statements.

        Raises:
            Refused: it shares its line with others.
        """
        line = self.tree.parent(replaced)
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise Refused("it shares its line with another statement; put it on a line of its own")
        indent, step = self.indent_of(line), self.tree.module.default_indent
        newline = self.tree.source.newline
        parts: list[Part] = []
        for part in self.template(text, **extra):
            if isinstance(part, str):
                lines = part.split("\n")
                fitted = [lines[0], *(indent + _restep(rest, step) for rest in lines[1:])]
                part = newline.join(fitted)
            parts.append(part)
        result = tuple(parts)
        return Rewrite((*self._comments(replaced, result), Edit(self.tree.span(replaced), result)))


def _initializes(statement: cst.CSTNode) -> bool:
    """Whether a statement is a call of ``init_process_group``."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            function = small.value.func
            name = function.attr if isinstance(function, cst.Attribute) else function
            if isinstance(name, cst.Name) and name.value == "init_process_group":
                return True
    return False


def _restep(line: str, step: str) -> str:
    stripped = line.lstrip(" ")
    return step * ((len(line) - len(stripped)) // 4) + stripped


def is_repeatable(node: cst.CSTNode) -> bool:
    """Whether an expression may be evaluated twice: names, attributes of names, literals."""
    if isinstance(node, cst.Attribute):
        return is_repeatable(node.value)
    return isinstance(node, (cst.Name, cst.Integer, cst.Float, cst.SimpleString))


def is_atom(node: cst.CSTNode) -> bool:
    """Whether an expression never needs parentheses."""
    return isinstance(node, ATOMS) or bool(getattr(node, "lpar", ()))


def shorten(text: str, width: int = 60) -> str:
    """The text on one line, cut to a width."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 3] + "..."


def keep_layout(tree: Tree, call: cst.Call, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Where arguments are copied in their old order, keep the line breaks and comments between them."""
    if "\n" not in tree.text(call) or not call.args:
        return parts
    text = tree.source.text
    spans = [tree.outer_span(argument.value) for argument in call.args]
    result = list(parts)
    layout: dict[int, tuple[Part, ...]] = {}
    for index in range(1, len(result) - 1):
        separator, left, right = result[index], result[index - 1], result[index + 1]
        if not (isinstance(separator, str) and isinstance(left, Span) and isinstance(right, Span)):
            continue
        if left not in spans or right not in spans or spans.index(right) != spans.index(left) + 1:
            continue
        found = re.fullmatch(r", (\w+=)?", separator)
        if found:
            gap = text[left.end : right.start]
            keyword = re.search(r"\w+\s*=\s*$", gap)
            kept = Span(left.end, left.end + keyword.start()) if keyword else Span(left.end, right.start)
            layout[index] = (kept, *([found[1]] if found[1] else []))
    opening: Part = Span(tree.outer_span(call.func).end, tree.span(call.args[0]).start)
    closing: Part = Span(spans[-1].end, tree.span(call).end)
    copied = [part for part in result if isinstance(part, Span)]
    if copied and copied[0] == spans[0] and copied[-1] == spans[-1]:
        first, last = result.index(spans[0]), len(result) - 1 - result[::-1].index(spans[-1])
        head, tail = result[first - 1] if first else "", result[last + 1] if last + 1 < len(result) else ""
        if (
            isinstance(head, str)
            and isinstance(tail, str)
            and tail == ")"
            and re.search(r"[(](\w+=)?$", head)
        ):
            keyword_part = re.search(r"(\w+=)?$", head)
            assert keyword_part is not None
            layout[first - 1] = (head[: keyword_part.start() - 1], opening, keyword_part.group())
            layout[last + 1] = (closing,)
    return tuple(
        part
        for index, old in enumerate(result)
        for part in layout.get(index, (old,))
        if part not in ("", None)
    )


def _fits_inside(parent: cst.CSTNode | None, parts: tuple[Part, ...]) -> bool:
    """Whether a comparison, the one loose expression that is common, needs no parentheses there."""
    text = "".join(part if isinstance(part, str) else "x" for part in parts)
    try:
        expression = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    if isinstance(expression, ast.Compare):
        if isinstance(parent, cst.UnaryOperation):
            return isinstance(parent.operator, cst.Not)
        return isinstance(parent, (cst.BooleanOperation, cst.IfExp))
    return isinstance(expression, ast.BoolOp) and isinstance(parent, cst.IfExp)


def parts_text(parts: tuple[Part, ...], source: str) -> str:
    """Replacement parts as text, copied ranges as they are in the old text."""
    return "".join(part if isinstance(part, str) else source[part.start : part.end] for part in parts)
