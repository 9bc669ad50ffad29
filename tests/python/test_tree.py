"""Trees: where nodes stand, what surrounds them, and what can't be read."""

import sys

import libcst as cst
import pytest

from tpu_migrate.python.names import resolve
from tpu_migrate.python.source import Source
from tpu_migrate.python.tree import Tree, TreeError, walk

PROGRAM = '''\
# head
@decorator
async def f(a, *b, c=(1), **d) -> int:  # f
    """Doc."""
    x = (a + b) * [i async for i in c if not i]
    if (n := x): pass; y = 1
    elif "s" f"{x!r:>{n}}" "t":
        return (
            # inside
            a[1:2, ...], {**d, 1: 2}, lambda p=1: p,
        )
    with a as (q, w), b: yield
    try: del x
    except (A, B) as e: raise e from None
    finally: pass
    for i, in c: continue
    else: print(*a, end="", **d)
'''


def test_every_span_holds_the_code_of_its_node():
    tree = Tree(Source(PROGRAM))
    seen = 0
    for node in walk(tree.module):
        if isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement)) and "\n" not in tree.text(node):
            code = tree.module.code_for_node(
                node.with_changes(lpar=(), rpar=()) if hasattr(node, "lpar") else node
            )
            assert tree.text(node) == code.removesuffix("; ")
            seen += 1
    assert seen > 60


def test_outer_spans_hold_parentheses():
    tree = Tree(Source("x = ((a + b))\n"))
    node = next(node for node in walk(tree.module) if isinstance(node, cst.BinaryOperation))
    assert tree.text(node) == "a + b"
    outer = tree.outer_span(node)
    assert tree.source.text[outer.start : outer.end] == "((a + b))"


def test_resolving_names_fills_the_same_parents():
    lazily = Tree(Source(PROGRAM))
    resolved = Tree(Source(PROGRAM))
    resolve(resolved, "a.py", {})
    for one, other in zip(walk(lazily.module), walk(resolved.module), strict=True):
        if resolved.parent(other) is None:  # keywords and attribute names stand for nothing of their own
            assert isinstance(other, (cst.Module, cst.Name))
            continue
        ancestors = [[type(node) for node in t.ancestors(n)] for t, n in ((lazily, one), (resolved, other))]
        assert ancestors[0] == ancestors[1]
        assert ancestors[0][-1] is cst.Module


@pytest.mark.parametrize(
    ("text", "line"),
    [("print 'a'\n", 1), ("a = 1\nb = (\n", 2), ("def f():\nreturn 1\n", 2), ("exec 'a' in b\n", 1)],
)
def test_what_is_no_python_3_says_where(text, line):
    with pytest.raises(TreeError) as raised:
        Tree(Source(text))
    assert raised.value.line in (line, line + 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print 'x'\n", "this is not Python 3 (print statement)"),
        ("if a: print  b.c(), 3\n", "this is not Python 3 (print statement)"),
        ("def f():\n    x = 1; print\tu'%d' % x\n", "this is not Python 3 (print statement)"),
        ("def f(:\n", "syntax error"),
        ("x = 'print this' y\n", "syntax error"),
        ("print(1\n", "syntax error"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text, message):
    with pytest.raises(TreeError) as raised:
        Tree(Source(text))
    assert str(raised.value) == message


def test_deep_nesting_is_an_error_of_its_own():
    limit = sys.getrecursionlimit()
    deep = "x = " + "(" * 50 + "+".join(["a"] * 3000) + ")" * 50 + "\n"
    sys.setrecursionlimit(400 + len(__import__("inspect").stack()))
    try:
        with pytest.raises(TreeError, match=r"nested too deeply"):
            Tree(Source(deep))
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n\n  ",
        "a\n\n  \n",
        "a\n\n\t\n\n",
        "a  # b\n\n  \n",
        "\n",
        "\n\n  \n",
        "# only a comment",
        '"""doc"""',
        "\t# c\n",
        "a\r\nb\r\n",
        pytest.param(
            "\x0ca\n",
            marks=pytest.mark.xfail(strict=True, reason="libcst 1.9 drops a form feed before code"),
        ),
        "a = \\\n  1\n",
    ],
)
def test_odd_files_are_written_back_unchanged(text):
    code = Tree(Source(text)).module.code
    assert text.startswith(code)
    assert not text[len(code) :].strip()
