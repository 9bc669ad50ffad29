"""Patterns: what a rule matches, written as the code it matches.

    torch_xla.core.xla_model.mark_step()                       a call without arguments
    torch_xla.core.xla_model.mark_step(wait=True, ...)         ... with this argument, and any others
    torch_xla.core.xla_model.save($data, $path, $master_only=True)
                                                               a call that fits this signature
    torch_xla.core.xla_model.REDUCE_SUM                        any other use of the name
    torch_xla._XLAC.*                                          any use of any name below

A call's arguments are bound to the pattern as Python binds them to a signature, so positional and
keyword spellings are one pattern. ``$name`` captures an argument, ``$name=default`` one that may be
left out, ``name=literal`` wants that literal there, ``*$rest`` captures what is left over and
``...`` accepts what is left over without capturing it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

_MARK = "_capture_"


class PatternError(ValueError):
    """The text is not a pattern; the message says what is wrong with it."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a call pattern."""

    name: str
    captured: bool
    default: str | None = None
    """Source of the value a missing argument stands for; None where it has to be given."""
    literal: object = None
    """For ``name=literal``: the value that has to be there."""
    keyword_only: bool = False
    """Written behind ``*$rest``: takes no positional argument."""


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern. ``parameters`` is None for patterns that aren't about a call."""

    text: str
    qualified_name: str
    prefix: bool = False
    parameters: tuple[Parameter, ...] | None = None
    rest: str | None = None
    """Name that ``*$rest`` captures leftover arguments under."""
    open_ended: bool = False
    """Ends in ``...``: leftover arguments are accepted and not captured."""

    @property
    def is_call(self) -> bool:
        return self.parameters is not None


@dataclass(frozen=True)
class Capture:
    """What a ``$name`` stands for at one call."""

    node: cst.BaseExpression | None
    """The argument's expression, or None where the pattern's default stands in."""
    default: str = ""

    @property
    def given(self) -> bool:
        return self.node is not None


@dataclass(frozen=True)
class Captures:
    """All captures of one call: single arguments by name, and leftover arguments in order."""

    single: dict[str, Capture]
    rest: dict[str, tuple[cst.Arg, ...]]


def parse_pattern(text: str) -> Pattern:
    """Parse a pattern.

    Raises:
        PatternError: the text isn't a dotted name with an optional call signature.
    """
    text = text.strip()
    if "(" not in text:
        prefix = text.endswith(".*")
        name = text[:-2] if prefix else text
        if not re.fullmatch(r"\w+(\.\w+)*", name):
            raise PatternError(f"{text!r} is not a dotted name")
        return Pattern(text, name, prefix)
    if not text.endswith(")"):
        raise PatternError(f"{text!r} has no closing parenthesis at its end")
    name, _, inside = text[:-1].partition("(")
    inside = inside.strip()
    open_ended = inside == "..." or bool(re.search(r",\s*\.\.\.$", inside))
    if open_ended:
        inside = inside[: inside.rindex("...")].rstrip().rstrip(",")
    try:
        call = ast.parse(f"f({re.sub(r'[$](?=[A-Za-z_])', _MARK, inside)})", mode="eval").body
    except SyntaxError as error:
        raise PatternError(f"{text!r}: {error.msg}") from None
    assert isinstance(call, ast.Call)
    parameters: list[Parameter] = []
    rest = None
    star_at = len(inside) + 1000
    for argument in call.args:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name):
            rest = _captured(argument.value.id)
            star_at = argument.col_offset
            if rest is None:
                raise PatternError(f"{text!r}: write *$rest to capture leftover arguments")
        elif isinstance(argument, ast.Name) and (captured := _captured(argument.id)):
            parameters.append(Parameter(captured, captured=True))
        else:
            raise PatternError(f"{text!r}: {ast.unparse(argument)!r} is neither $capture nor name=literal")
    for keyword in call.keywords:
        if keyword.arg is None:
            raise PatternError(f"{text!r}: ** is not supported, use *$rest")
        if captured := _captured(keyword.arg):
            default = ast.unparse(keyword.value)
            parameters.append(Parameter(captured, True, default, keyword_only=keyword.col_offset > star_at))
        else:
            try:
                literal = ast.literal_eval(keyword.value)
            except ValueError:
                raise PatternError(f"{text!r}: {keyword.arg}= wants a literal") from None
            parameters.append(Parameter(keyword.arg, captured=False, literal=literal))
    if not re.fullmatch(r"\w+(\.\w+)*", name):
        raise PatternError(f"{name!r} is not a dotted name")
    return Pattern(text, name, False, tuple(parameters), rest, open_ended)


def _captured(name: str) -> str | None:
    return name[len(_MARK) :] if name.startswith(_MARK) else None


def match_call(pattern: Pattern, arguments: Sequence[cst.Arg]) -> Captures | None:
    """Bind a call's arguments to a call pattern; None where they don't fit."""
    assert pattern.parameters is not None
    by_name: dict[str, cst.BaseExpression] = {}
    leftover: list[cst.Arg] = []
    positional = [parameter for parameter in pattern.parameters if not parameter.keyword_only]
    position = 0
    for argument in arguments:
        if argument.star:
            leftover.append(argument)
            position = len(positional)  # what a star fills can't be told
        elif argument.keyword is not None:
            if any(parameter.name == argument.keyword.value for parameter in pattern.parameters):
                by_name[argument.keyword.value] = argument.value
            else:
                leftover.append(argument)
        elif position < len(positional):
            by_name[positional[position].name] = argument.value
            position += 1
        else:
            leftover.append(argument)
    if leftover and pattern.rest is None and not pattern.open_ended:
        return None
    single: dict[str, Capture] = {}
    for parameter in pattern.parameters:
        value = by_name.get(parameter.name)
        if parameter.captured:
            if value is None and parameter.default is None:
                return None
            single[parameter.name] = Capture(value, parameter.default or "")
        elif value is None or not is_literal(value, parameter.literal):
            return None
    return Captures(single, {pattern.rest: tuple(leftover)} if pattern.rest else {})


def literal_value(node: cst.CSTNode) -> object:
    """The value of a literal expression; ``...`` where it isn't one."""
    try:
        return ast.literal_eval(cst.Module([]).code_for_node(node).strip())
    except (ValueError, SyntaxError, TypeError, MemoryError):
        return ...


def is_literal(node: cst.CSTNode, value: object) -> bool:
    """Whether the expression is this literal (``True`` and ``1`` are told apart)."""
    found = literal_value(node)
    return type(found) is type(value) and found == value
