"""Edits on text: nested copies, order at one place, conflicts, where old offsets went, deleted statements."""

import pytest

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.edits import EditConflict, close_gaps, render

from .check import assert_rewritten


def test_no_edit_is_the_same_text():
    assert render("abc", []).text == "abc"
    assert render("", []).text == ""


def test_edits_apply_in_the_order_of_the_text():
    assert render("a b c", [Edit(Span(4, 5), ("C",)), Edit(Span(0, 1), ("A",))]).text == "A b C"


def test_insertions_at_one_place_follow_their_order():
    edits = [Edit(Span(1, 1), ("2",), order=2), Edit(Span(1, 1), ("1",), order=1), Edit(Span(1, 2), ("B",))]
    assert render("abc", edits).text == "a12Bc"


def test_a_copied_range_keeps_its_own_edits():
    outer = Edit(Span(0, 10), ("F[", Span(2, 9), "]"))
    inner = Edit(Span(2, 6), ("G(", Span(4, 5), ")"))
    innermost = Edit(Span(4, 5), ("X",))
    assert render("f(g(x), y)", [innermost, outer, inner]).text == "F[G(X), y]"


def test_an_edit_inside_a_range_that_is_not_copied_goes_with_it():
    assert render("f(g(x))", [Edit(Span(0, 7), ("h",)), Edit(Span(2, 6), ("g2",))]).text == "h"


def test_a_range_copied_twice_is_edited_twice():
    assert (
        render("f(x)", [Edit(Span(0, 4), (Span(2, 3), " + ", Span(2, 3))), Edit(Span(2, 3), ("y",))]).text
        == "y + y"
    )


def test_the_same_edit_twice_counts_once():
    edit = Edit(Span(0, 1), ("b",))
    assert render("a", [edit, edit]).text == "b"


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(Span(0, 3), ("x",)), Edit(Span(2, 5), ("y",))],
        [Edit(Span(0, 3), ("x",)), Edit(Span(0, 3), ("y",))],
    ],
)
def test_edits_that_want_different_things_are_a_conflict(edits):
    with pytest.raises(EditConflict, match="overlap at offset"):
        render("abcdef", edits)


def test_old_offsets_lead_to_new_places():
    rendered = render("aa bb cc", [Edit(Span(3, 5), ("BBBB",)), Edit(Span(0, 0), ("> ",))])
    assert rendered.text == "> aa BBBB cc"
    assert rendered.new_offset(0) == 2
    assert rendered.new_offset(1) == 3
    assert rendered.new_offset(3) == 5
    assert rendered.new_offset(6) == 10
    assert rendered.new_offset(8) == len(rendered.text)


def test_a_copied_range_can_be_followed_into_its_replacement():
    rendered = render("f(g(x))", [Edit(Span(0, 7), ("h[", Span(2, 6), "]"))])
    assert rendered.text == "h[g(x)]"
    assert rendered.new_offset(2) == 2
    assert rendered.new_offset(4) == 4


# blank lines around deleted lines


def gone(text: str) -> str:
    """The text without its lines that say ``-``."""
    edits, position = [], 0
    for line in text.splitlines(keepends=True):
        if line.strip() == "-":
            edits.append(Edit(Span(position, position + len(line))))
        position += len(line)
    return render(text, close_gaps(text, edits)).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\n-\nb\n", "a\nb\n"),
        ("a\n\n-\n\nb\n", "a\n\nb\n"),
        ("a\n\n-\nb\n", "a\n\nb\n"),
        ("a\n-\n\nb\n", "a\n\nb\n"),
        ("-\n\nb\n", "b\n"),
        ("a\n\n-\n-\n\nb\n", "a\n\nb\n"),
        ("a\n\n-\n\n\nb\n", "a\n\n\nb\n"),
        ("a\n\n\n-\n\nb\n", "a\n\n\nb\n"),
        ("a\r\n\r\n-\r\n\r\nb\r\n", "a\r\n\r\nb\r\n"),
        ("a\n\n\n\nb\n-\nc\n", "a\n\n\n\nb\nc\n"),
    ],
)
def test_blank_lines_that_set_a_line_apart_go_with_it(before, after):
    assert gone(before) == after


# deleted statements, through a rule that deletes

XM = "import torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("xm.mark_step()\n", ""),
        ("xm.mark_step(); a()\n", "a()\n"),
        ("a(); xm.mark_step()\n", "a()\n"),
        ("a(); xm.mark_step();\n", "a();\n"),
        ("a(); xm.mark_step(); b()\n", "a(); b()\n"),
        ("xm.mark_step(); a(); xm.mark_step()\n", "a()\n"),
        ("xm.mark_step(); xm.mark_step()\na()\n", "a()\n"),
        ("a()\nxm.mark_step()  # cut here\nb()\n", "a()\n# cut here\nb()\n"),
        ("a()\nxm.mark_step()  # noqa\nb()\n", "a()\nb()\n"),
        ("# above\nxm.mark_step()\nb()\n", "# above\nb()\n"),
        ("a()\nxm.mark_step()", "a()\n"),
        ("if a: xm.mark_step()\nb()\n", "b()\n"),
        ("if a:\n    xm.mark_step()\nb()\n", "b()\n"),
        ("if a:\n    if b.c:\n        xm.mark_step()\nb()\n", "b()\n"),
        ("if a and not b > 1:\n    xm.mark_step()\n    xm.mark_step()\nb()\n", "b()\n"),
        ("if f():\n    xm.mark_step()\nb()\n", "if f():\n    pass\nb()\n"),
        ("if a[0]:\n    xm.mark_step()\nb()\n", "if a[0]:\n    pass\nb()\n"),
        ("if a:  # why\n    xm.mark_step()\nb()\n", "if a:  # why\n    pass\nb()\n"),
        ("if a:\n    xm.mark_step()\nelse:\n    b()\n", "if a:\n    pass\nelse:\n    b()\n"),
        ("if a:\n    b()\nelse:\n    xm.mark_step()\n", "if a:\n    b()\n"),
        ("if a:\n    b()\nelif c:\n    xm.mark_step()\n", "if a:\n    b()\nelif c:\n    pass\n"),
        ("if a: xm.mark_step()\nelse: b()\n", "if a: pass\nelse: b()\n"),
        ("for a in b: xm.mark_step()\n", "for a in b: pass\n"),
        ("while a:\n    xm.mark_step()\n", "while a:\n    pass\n"),
        ("with a:\n    xm.mark_step()\n", "with a:\n    pass\n"),
        ("def f():\n    xm.mark_step()\n", "def f():\n    pass\n"),
        ('def f():\n    """Doc."""\n    xm.mark_step()\n', 'def f():\n    """Doc."""\n'),
        ("class C:\n    xm.mark_step()\n", "class C:\n    pass\n"),
        ("def f(): xm.mark_step()\n", "def f(): pass\n"),
        ("try:\n    xm.mark_step()\nexcept E:\n    a()\nb()\n", "b()\n"),
        ("try:\n    a()\nfinally:\n    xm.mark_step()\n", "try:\n    a()\nfinally:\n    pass\n"),
        ("try:\n    a()\nexcept E:\n    xm.mark_step()\n", "try:\n    a()\nexcept E:\n    pass\n"),
        ("while a:\n    # why\n    xm.mark_step()  # cut\n", "while a:\n    # why\n    pass  # cut\n"),
        ("match a:\n    case 1:\n        xm.mark_step()\n", "match a:\n    case 1:\n        pass\n"),
        ("if a:\n\txm.mark_step()\n\tb()\n", "if a:\n\tb()\n"),
        ("if a:\n  xm.mark_step()\n  b()\n", "if a:\n  b()\n"),
    ],
)
def test_a_deleted_statement_leaves_sound_code(before, after):
    assert_rewritten(XM + before, after)
