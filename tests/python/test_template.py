"""Templates: parentheses where they are needed, arguments that are left out, quotes of the file."""

import libcst as cst
import pytest

from tpu_migrate.findings import Span
from tpu_migrate.python.pattern import match_call, parse_pattern
from tpu_migrate.python.source import Source
from tpu_migrate.python.template import TemplateError, parse_template, render
from tpu_migrate.python.tree import Tree


def fill(template: str, pattern: str, call: str, quote: str = '"', device: str = "tpu", **extra: str) -> str:
    """The template, filled with the arguments of a call, every name spelt in full."""
    tree = Tree(Source(call))
    statement = tree.module.body[0]
    assert isinstance(statement, cst.SimpleStatementLine)
    node = statement.body[0].value  # type: ignore[union-attr]
    assert isinstance(node, cst.Call)
    captures = match_call(parse_pattern(pattern), node.args)
    assert captures is not None
    parts = render(
        parse_template(template, device),
        tree,
        captures,
        lambda name: name,
        quote,
        {name: (text,) for name, text in extra.items()},
    )
    return "".join(call[p.start : p.end] if isinstance(p, Span) else p for p in parts)


@pytest.mark.parametrize(
    ("argument", "filled"),
    [
        ("x", "x.device"),
        ("x.y", "x.y.device"),
        ("f(x)", "f(x).device"),
        ("x[0]", "x[0].device"),
        ("(a + b)", "(a + b).device"),
        ("a + b", "(a + b).device"),
        ("-x", "(-x).device"),
        ("not x", "(not x).device"),
        ("a if b else c", "(a if b else c).device"),
        ("lambda: x", "(lambda: x).device"),
        ("await_()", "await_().device"),
        ("(yield)", "(yield).device"),
        ("[1]", "[1].device"),
        ("'s'", "'s'.device"),
        ("a == b", "(a == b).device"),
    ],
)
def test_a_capture_gets_parentheses_where_something_binds_tighter(argument, filled):
    assert fill("$t.device", "f($t)", f"f({argument})") == filled


@pytest.mark.parametrize("argument", ["a + b", "a if b else c", "lambda: x", "not x", "a == b"])
def test_a_capture_gets_none_where_it_has_room(argument):
    assert fill("g($t)", "f($t)", f"f({argument})") == f"g({argument})"
    assert fill("g(k=$t)", "f($t)", f"f({argument})") == f"g(k={argument})"


@pytest.mark.parametrize(
    ("argument", "filled"), [("(y := x)", "g((y := x), k=1)"), ("y := x", "g((y := x), k=1)")]
)
def test_a_walrus_keeps_parentheses(argument, filled):
    assert fill("g($t, k=1)", "f($t)", f"f({argument})") == filled


def test_a_generator_gets_parentheses_beside_other_arguments():
    assert fill("g($t, k=1)", "f($t)", "f(x for x in y)") == "g((x for x in y), k=1)"


def test_a_number_gets_parentheses_before_a_dot():
    text = fill("$t.device", "f($t)", "f(1)")
    compile(text, "filled", "eval")


def test_an_optional_argument_is_left_out_where_the_call_left_it_out():
    pattern = "f($a, $b=1, $c=2)"
    assert fill("g($a, b=$b?, c=$c?)", pattern, "f(x)") == "g(x)"
    assert fill("g($a, b=$b?, c=$c?)", pattern, "f(x, c=3)") == "g(x, c=3)"
    assert fill("g($a, b=$b?, c=$c?)", pattern, "f(x, 5)") == "g(x, b=5)"
    assert fill("g(b=$b?)", pattern, "f(x)") == "g()"


def test_a_default_stands_in_where_the_template_insists():
    assert fill("g($a, b=$b)", "f($a, $b='k')", "f(x)") == 'g(x, b="k")'


def test_leftover_arguments_are_copied_in_order():
    assert fill("g($a, *$rest)", "f($a, *$rest)", "f(x, 1, k=2, *s, **d)") == "g(x, 1, k=2, *s, **d)"
    assert fill("g($a, *$rest)", "f($a, *$rest)", "f(x)") == "g(x)"
    assert fill("g(*$rest, k=1)", "f(*$rest)", "f()") == "g(k=1)"


def test_string_literals_get_the_quotes_of_the_file():
    assert fill("g('a', $x)", "f($x)", "f('b')", quote='"') == "g(\"a\", 'b')"
    assert fill("g('a', $x)", "f($x)", 'f("b")', quote="'") == "g('a', \"b\")"


def test_extra_parts_take_the_place_of_captures():
    assert fill("$helper($a)", "f($a)", "f(x)", helper="mine") == "mine(x)"


def test_a_device_depends_on_the_settings():
    assert fill("g(@device)", "f()", "f()") == 'g(torch.device("tpu"))'
    accelerated = fill("g(@device)", "f()", "f()", device="accelerator")
    assert accelerated == 'g(torch.accelerator.current_accelerator() or torch.device("cpu"))'


def test_an_availability_test_inside_another_expression_gets_parentheses():
    text = fill("not @available", "f()", "f()")
    assert text.startswith("not (")
    assert not fill("@available", "f()", "f()").startswith("(")


def test_names_that_a_template_writes_are_listed():
    assert parse_template("torch.f(os.environ.get('A'), $x.torch)").names == ("torch.f", "os.environ.get")
    assert parse_template("g($a, *$rest, b=$b?)").captures == ("a", "rest", "b")


@pytest.mark.parametrize(
    ("text", "says"), [("g(", "g("), ("@nothing", "@nothing is unknown; expected @device")]
)
def test_this_is_no_template(text, says):
    with pytest.raises(TemplateError) as raised:
        parse_template(text)
    assert says in str(raised.value)
