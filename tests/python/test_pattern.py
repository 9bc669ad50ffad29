"""Patterns: what they bind, what they leave to another rule, and what is no pattern."""

import libcst as cst
import pytest

from tpu_migrate.python.pattern import (
    Pattern,
    PatternError,
    is_literal,
    literal_value,
    match_call,
    parse_pattern,
)


def bind(pattern: str, call: str) -> dict[str, object] | None:
    """Captures by name, as source; a default in angle brackets; None where the call doesn't fit."""
    node = cst.parse_expression(call)
    assert isinstance(node, cst.Call)
    found = match_call(parse_pattern(pattern), node.args)
    if found is None:
        return None
    code = cst.Module([]).code_for_node
    shown: dict[str, object] = {
        name: code(capture.node) if capture.node is not None else f"<{capture.default}>"
        for name, capture in found.single.items()
    }
    return shown | {name: [code(arg).rstrip(", ") for arg in args] for name, args in found.rest.items()}


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        ("f()", "f(1)"),
        ("f()", "f(*a)"),
        ("f()", "f(**k)"),
        ("f($a)", "f()"),
        ("f($a)", "f(1, 2)"),
        ("f($a)", "f(b=1)"),
        ("f($a)", "f(*a)"),
        ("f($a=1)", "f(**k)"),
        ("f(wait=True)", "f()"),
        ("f(wait=True)", "f(wait=False)"),
        ("f(wait=True)", "f(wait=1)"),
        ("f(wait=True)", "f(wait=flag)"),
        ("f(wait=True)", "f(True, 2)"),
        ("f($a, *$rest, $kw=1)", "f()"),
    ],
)
def test_this_call_does_not_fit(pattern, call):
    assert bind(pattern, call) is None


@pytest.mark.parametrize(
    ("pattern", "call", "captures"),
    [
        ("f()", "f()", {}),
        ("f(...)", "f(1, b=2, *c, **d)", {}),
        ("f($a)", "f(x + 1)", {"a": "x + 1"}),
        ("f($a)", "f(a=x)", {"a": "x"}),
        ("f($a, $b=2)", "f(1)", {"a": "1", "b": "<2>"}),
        ("f($a, $b=2)", "f(b=3, a=1)", {"a": "1", "b": "3"}),
        ("f($a, $b=None, $c=())", "f(1, c=x)", {"a": "1", "b": "<None>", "c": "x"}),
        ("f(wait=True)", "f(True)", {}),
        ("f(wait=True, $scope=1)", "f(wait=True)", {"scope": "<1>"}),
        ("f(wait=True, ...)", "f(wait=True, other=1)", {}),
        ("f(kind='TPU')", "f('TPU')", {}),
        ("f(index=-1)", "f(-1)", {}),
        ("f($a, *$rest)", "f(1, 2, *b, c=3, **d)", {"a": "1", "rest": ["2", "*b", "c=3", "**d"]}),
        ("f($a, *$rest, $kw=1)", "f(1, 2)", {"a": "1", "rest": ["2"], "kw": "<1>"}),
        ("f($a, *$rest, $kw=1)", "f(1, 2, kw=3)", {"a": "1", "rest": ["2"], "kw": "3"}),
    ],
)
def test_arguments_are_bound_as_python_binds_them(pattern, call, captures):
    assert bind(pattern, call) == captures


def test_a_star_ends_what_positions_can_tell():
    assert bind("f($a=1, ...)", "f(*args)") == {"a": "<1>"} or bind("f($a=1, ...)", "f(*args)") is None
    assert bind("f($a=1)", "f(*args)") is None


def test_a_name_and_a_prefix_are_no_calls():
    assert parse_pattern("a.b.C") == Pattern("a.b.C", "a.b.C")
    assert parse_pattern("a.b.*") == Pattern("a.b.*", "a.b", prefix=True)
    assert not parse_pattern("a.b.*").is_call
    assert parse_pattern("a.b()").is_call


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a dotted name"),
        ("a..b", "is not a dotted name"),
        ("a b", "is not a dotted name"),
        ("a.*.b", "is not a dotted name"),
        ("f(", "no closing parenthesis"),
        ("f(x)", "neither $capture nor name=literal"),
        ("f(1)", "neither $capture nor name=literal"),
        ("f(*args)", "write *$rest"),
        ("f(**$k)", "** is not supported"),
        ("f(a=b)", "a= wants a literal"),
        ("f($a $b)", "f($a $b)"),
        ("1 + f($a)", "is not a dotted name"),
    ],
)
def test_this_is_no_pattern(text, says):
    with pytest.raises(PatternError) as raised:
        parse_pattern(text)
    assert says in str(raised.value)


def test_literals_are_told_apart_by_type():
    def node(text: str) -> cst.BaseExpression:
        return cst.parse_expression(text)

    assert is_literal(node("True"), True)
    assert not is_literal(node("1"), True)
    assert not is_literal(node("True"), 1)
    assert is_literal(node("None"), None)
    assert is_literal(node("(1)"), 1)
    assert literal_value(node("name")) is ...
    assert literal_value(node("f()")) is ...
    assert literal_value(node("('a', None)")) == ("a", None)
