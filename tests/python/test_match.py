"""Which rule is about a use: the more exact pattern, the kind of program, the longest name."""

import libcst as cst
import pytest

from tpu_migrate.findings import Safety
from tpu_migrate.python.match import Match, Matcher
from tpu_migrate.rules import Rule, RuleBook, RuleError


def rule(code: str, *match: str, programs: tuple[str, ...] = ()) -> Rule:
    return Rule(code, code.lower(), match, Safety.MANUAL, "why", programs=programs, action="act")


MATCHER = Matcher(
    RuleBook(
        (
            rule("AA001", "m.f($x, $y=1)"),
            rule("AA002", "m.f(x=2, ...)"),
            rule("AA003", "m.f(...)"),
            rule("AA004", "m.g()", programs=("spmd",)),
            rule("AA005", "m.g"),
            rule("AA006", "m.*"),
            rule("AA007", "m.deep.*"),
            rule("AA008", "m.h($x)"),
        ),
        {},
    )
)


def find(name: str, call: str = "", kind: str = "library") -> Match | None:
    node = cst.parse_expression(call) if call else None
    assert node is None or isinstance(node, cst.Call)
    return MATCHER.find(name, node, kind)


@pytest.mark.parametrize(
    ("name", "call", "code"),
    [
        ("m.f", "f(1)", "AA001"),
        ("m.f", "f(2)", "AA002"),
        ("m.f", "f(x=2, z=1)", "AA002"),
        ("m.f", "f(1, 2, 3)", "AA003"),
        ("m.f", "f(*a)", "AA003"),
        ("m.g", "g()", "AA005"),
        ("m.g", "", "AA005"),
        ("m.other", "", "AA006"),
        ("m.other.more", "f()", "AA006"),
        ("m.deep.x", "", "AA007"),
        ("m.deep", "", "AA006"),
        ("m.f.attribute", "", "AA001"),
    ],
)
def test_the_most_exact_rule_is_taken(name, call, code):
    found = find(name, call)
    assert found is not None
    assert found.rule.code == code


def test_a_rule_for_a_kind_of_program_is_taken_in_it_only():
    assert find("m.g", "g()", "spmd").rule.code == "AA004"  # type: ignore[union-attr]
    assert find("m.g", "g()", "library").rule.code == "AA005"  # type: ignore[union-attr]


def test_a_function_known_by_calls_only_is_refused_where_it_is_used_otherwise():
    passed, odd = find("m.h"), find("m.h", "h(1, 2)")
    assert passed is not None
    assert odd is not None
    assert (passed.rule.code, odd.rule.code) == ("AA008", "AA008")
    assert passed.refusal == "passed on, not called here"
    assert odd.refusal == "its arguments are of a form no rule knows"


def test_what_no_rule_is_about_is_none():
    assert find("other.f") is None


def test_a_pattern_that_cannot_be_read_names_file_and_code():
    with pytest.raises(RuleError, match=r"AA009\.match: "):
        Matcher(RuleBook((rule("AA009", "m.f(("),), {}))
