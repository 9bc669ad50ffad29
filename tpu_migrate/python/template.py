"""Templates: what a rule writes, as code with holes.

    torch.distributed.broadcast($tensor, src=$root?)

``$name`` copies a captured argument, with parentheses where they are needed. ``name=$name?`` is left
out where the call left it out. ``*$rest`` copies leftover arguments. ``@device``, ``@type`` and
``@available`` stand for the configured device. Other names are written fully qualified; how the file
at hand spells them (``dist``) is found when the template is rendered.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import libcst as cst

from tpu_migrate.findings import Part
from tpu_migrate.python.pattern import Captures
from tpu_migrate.python.tree import Tree

DEVICE = {
    "tpu": {
        "device": "torch.device('tpu')",
        "device_string": "'tpu'",
        "type": "'tpu'",
        "is": "== 'tpu'",
        "available": (
            "torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == 'tpu'"
        ),
        "backend": "'tpu_dist'",
    },
    "accelerator": {  # None on a machine that has none: such code runs on the CPU there
        "device": "torch.accelerator.current_accelerator() or torch.device('cpu')",
        "device_string": "torch.accelerator.current_accelerator() or torch.device('cpu')",
        "type": "(torch.accelerator.current_accelerator() or torch.device('cpu')).type",
        "is": "!= 'cpu'",
        "available": "torch.accelerator.is_available()",
        "backend": "",
    },
}
"""What ``@name`` stands for, by the ``device`` setting."""

_CAPTURE, _OPTIONAL = "_capture_", "_optional_"
_LOOSE = (
    ast.IfExp,
    ast.BoolOp,
    ast.Compare,
    ast.BinOp,
    ast.UnaryOp,
    ast.Lambda,
    ast.NamedExpr,
    ast.Await,
    ast.Tuple,
)
"""Expressions that need parentheses where something else binds to them."""


class TemplateError(ValueError):
    """The text is not a template; the message says what is wrong with it."""


@dataclass(frozen=True)
class Name:
    """A hole: a qualified name, spelt as the file at hand spells it."""

    qualified_name: str


@dataclass(frozen=True)
class Hole:
    """A hole: a captured argument."""

    capture: str
    tight: bool
    """Parentheses are needed around anything that isn't a single operand."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call of which some may be left out."""

    items: tuple[tuple[str | None, tuple[Piece, ...]], ...]
    """(capture that decides whether the argument is there, its pieces)"""


Piece = str | Name | Hole | Arguments


@dataclass(frozen=True)
class Template:
    """A parsed template."""

    text: str
    pieces: tuple[Piece, ...]
    loose: bool
    """The whole needs parentheses inside a larger expression."""

    @property
    def captures(self) -> tuple[str, ...]:
        return tuple(_captures(self.pieces))

    @property
    def names(self) -> tuple[str, ...]:
        """Qualified names the template writes."""
        return tuple(_names(self.pieces))


def _captures(pieces: tuple[Piece, ...]) -> list[str]:
    found: list[str] = []
    for piece in pieces:
        if isinstance(piece, Hole):
            found.append(piece.capture)
        elif isinstance(piece, Arguments):
            for _, inner in piece.items:
                found.extend(_captures(inner))
    return found


def _names(pieces: tuple[Piece, ...]) -> list[str]:
    found: list[str] = []
    for piece in pieces:
        if isinstance(piece, Name):
            found.append(piece.qualified_name)
        elif isinstance(piece, Arguments):
            for _, inner in piece.items:
                found.extend(_names(inner))
    return found


@functools.cache
def parse_template(text: str, device: str = "tpu", roots: frozenset[str] = frozenset()) -> Template:
    """Parse a template: an expression, or statements.

    Args:
        text: the template.
        device: the ``device`` setting, which decides what ``@device`` and its kin become.
        roots: top-level modules besides torch and the standard library's that it names.

    Raises:
        TemplateError: it isn't Python once the holes are filled.
    """
    values = DEVICE[device]

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise TemplateError(f"{text!r}: @{found[1]} is unknown; expected @{', @'.join(values)}")
        inserted = values[found[1]]
        if found[1] == "is":
            return inserted
        tight = text.strip() != found[0] and " " in inserted and not inserted.endswith((").type", "')"))
        return f"({inserted})" if tight else inserted

    source = re.sub(r"@(\w+)", value, text.strip("\n"))
    source = re.sub(r"[$](\w+)[?]", _OPTIONAL + r"\1", source)
    source = re.sub(r"[$](\w+)", _CAPTURE + r"\1", source)
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise TemplateError(f"{text!r}: {error.msg}") from None
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    reader = _Reader(source, offsets, _MODULES | roots)
    pieces = tuple(reader.pieces(module, 0, len(source)))
    loose = (
        len(module.body) == 1
        and isinstance(module.body[0], ast.Expr)
        and isinstance(module.body[0].value, _LOOSE)
    )
    return Template(text, pieces, loose)


class _Reader:
    def __init__(self, source: str, offsets: list[int], modules: frozenset[str]) -> None:
        self.source, self.offsets, self.modules = source, offsets, modules

    def span(self, node: ast.expr | ast.keyword | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.offsets[node.lineno - 1] + node.col_offset,
            self.offsets[node.end_lineno - 1] + node.end_col_offset,
        )

    def pieces(self, node: ast.AST, start: int, end: int) -> list[Piece]:
        """Literal text from ``start`` to ``end``, with the holes inside ``node``."""
        found: list[tuple[int, int, list[Piece]]] = []
        self._holes(node, None, found)
        result: list[Piece] = []
        position = start
        for hole_start, hole_end, pieces in sorted(found, key=lambda hole: hole[:2]):
            if hole_start < position:
                continue
            if hole_start > position:
                result.append(self.source[position:hole_start])
            result.extend(pieces)
            position = hole_end
        if position < end:
            result.append(self.source[position:end])
        return result

    def _holes(
        self, node: ast.AST, parent: ast.AST | None, found: list[tuple[int, int, list[Piece]]]
    ) -> None:
        if isinstance(node, (ast.Name, ast.Attribute)):
            dotted = _dotted(node)
            if dotted is not None:
                root = dotted.partition(".")[0]
                start, end = self.span(node)
                if root.startswith((_CAPTURE, _OPTIONAL)):
                    name = root.removeprefix(_CAPTURE).removeprefix(_OPTIONAL)
                    tight = not _roomy(node, parent) or "." in dotted
                    found.append((start, start + len(root), [Hole(name, tight)]))
                elif root in self.modules:
                    found.append((start, end, [Name(dotted)]))
                return
        if isinstance(node, ast.Call) and any(_deciding(argument) for argument in _arguments(node)):
            self._holes(node.func, node, found)
            start = self.span(node.func)[1]
            items: list[tuple[str | None, tuple[Piece, ...]]] = []
            for argument in _arguments(node):
                begin, stop = self.span(argument)
                inner: list[tuple[int, int, list[Piece]]] = []
                if isinstance(argument, ast.Starred):
                    items.append((_deciding(argument), (Hole(_deciding(argument) or "", False),)))
                    continue
                self._holes(argument.value if isinstance(argument, ast.keyword) else argument, node, inner)
                items.append((_deciding(argument), tuple(self._fill(inner, begin, stop))))
            found.append((start, self.span(node)[1], ["(", Arguments(tuple(items)), ")"]))
            return
        for child in ast.iter_child_nodes(node):
            self._holes(child, node, found)

    def _fill(self, found: list[tuple[int, int, list[Piece]]], start: int, end: int) -> list[Piece]:
        result: list[Piece] = []
        for hole_start, hole_end, pieces in sorted(found, key=lambda hole: hole[:2]):
            if hole_start > start:
                result.append(self.source[start:hole_start])
            result.extend(pieces)
            start = hole_end
        if start < end:
            result.append(self.source[start:end])
        return result


def _arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    return [*call.args, *call.keywords]


def _deciding(argument: ast.expr | ast.keyword) -> str | None:
    """The capture that decides whether an argument is written."""
    value = argument.value if isinstance(argument, (ast.keyword, ast.Starred)) else argument
    if isinstance(value, ast.Name):
        if value.id.startswith(_OPTIONAL):
            return value.id[len(_OPTIONAL) :]
        if isinstance(argument, ast.Starred) and value.id.startswith(_CAPTURE):
            return value.id[len(_CAPTURE) :]
    return None


_ROOMY = (
    ast.Call,
    ast.keyword,
    ast.Expr,
    ast.Assign,
    ast.Return,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.Subscript,
    ast.For,
    ast.If,
    ast.With,
    ast.withitem,
    ast.Module,
)
"""Nodes below which any expression can stand without parentheses."""


def _roomy(node: ast.AST, parent: ast.AST | None) -> bool:
    """Whether any expression can stand in a node's place without parentheses."""
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    return parent is None or isinstance(parent, _ROOMY)


_MODULES = frozenset(
    "torch os time sys math contextlib functools itertools collections copy io random warnings".split()
)
"""Top-level modules that templates name."""

assert not _MODULES & set(dir(builtins))


def _dotted(node: ast.AST) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.SimpleString,
    cst.FormattedString,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.ListComp,
    cst.DictComp,
    cst.SetComp,
    cst.Ellipsis,
)
"""Expressions that never need parentheses."""


def render(
    template: Template,
    tree: Tree,
    captures: Captures | None,
    spell: Callable[[str], str],
    quote: str,
    extra: Mapping[str, tuple[Part, ...]] | None = None,
) -> tuple[Part, ...]:
    """Fill a template's holes.

    Args:
        template: what to write.
        tree: the file the captures come from.
        captures: of the matched call.
        spell: qualified name -> how the file spells it.
        quote: the quote character string literals get.
        extra: more captures, as finished parts.
    """
    parts: list[Part] = []

    def write(pieces: tuple[Piece, ...]) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                parts.append(_quoted(piece, quote))
            elif isinstance(piece, Name):
                parts.append(spell(piece.qualified_name))
            elif isinstance(piece, Hole):
                hole(piece)
            else:
                first = True
                for decider, inner in piece.items:
                    if decider is not None and not given(decider):
                        continue
                    if not first:
                        parts.append(", ")
                    first = False
                    write(inner)

    def given(name: str) -> bool:
        if extra is not None and name in extra:
            return True
        if captures is None:
            return False
        return bool(captures.rest.get(name)) or (name in captures.single and captures.single[name].given)

    def hole(piece: Hole) -> None:
        if extra is not None and piece.capture in extra:
            parts.extend(extra[piece.capture])
            return
        assert captures is not None, f"{template.text!r} has captures, but matched no call"
        if piece.capture in captures.rest:
            for number, argument in enumerate(captures.rest[piece.capture]):
                parts.extend([", "] if number else [])
                span = tree.span(argument)
                parts.append(span)
            return
        capture = captures.single[piece.capture]
        if capture.node is None:
            parts.append(_quoted(capture.default, quote))
            return
        bare = not getattr(capture.node, "lpar", ())
        walrus = isinstance(capture.node, (cst.NamedExpr, cst.GeneratorExp, cst.Yield))
        if bare and (walrus or (piece.tight and not isinstance(capture.node, ATOMS))):
            parts.extend(["(", tree.outer_span(capture.node), ")"])
        else:
            parts.append(tree.outer_span(capture.node))

    write(template.pieces)
    return tuple(parts)


def _quoted(text: str, quote: str) -> str:
    other = '"' if quote == "'" else "'"
    return text.replace(other, quote) if quote not in text else text
