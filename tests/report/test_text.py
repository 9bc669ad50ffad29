"""Foreign text, made safe to show."""

from __future__ import annotations

from tpu_migrate.report.text import one_line, visible


def test_plain_text_is_left_alone():
    text = "def f(x):\n\treturn 'grüße 你好 \U0001f600'  # é"
    assert visible(text) == text


def test_what_a_terminal_would_obey_becomes_an_escape():
    assert visible("\x1b[2J\x07\x9b1m\r\x00\x7f") == r"\x1b[2J\x07\x9b1m\x0d\x00\x7f"


def test_what_reorders_hides_or_breaks_text_becomes_an_escape():
    assert visible("a\u202eb\u200bc\u2028d\ufeffe\u2066") == r"a\u202eb\u200bc\u2028d\ufeffe\u2066"


def test_half_characters_become_an_escape():
    assert visible("name\udcff.py") == r"name\udcff.py"


def test_one_line_is_one_line():
    assert one_line("  f(\n    x,\r\n\ty)\x1b ") == r"f( x, y)\x1b"
