"""Unified diffs of files."""

from __future__ import annotations

from report import samples
from tpu_migrate.report.diff import decoded, diff_lines, example_diff


def diff(old: bytes, new: bytes) -> list[str]:
    return list(diff_lines(samples.file(old=old, new=new)))


def test_no_change_has_no_diff():
    assert diff(b"a\n", b"a\n") == []


def test_a_change_shows_both_sides():
    assert diff(b"a\nb\nc\n", b"a\nB\nc\n") == [
        "--- a/train.py",
        "+++ b/train.py",
        "@@ -1,3 +1,3 @@",
        " a",
        "-b",
        "+B",
        " c",
    ]


def test_line_ends_are_not_shown():
    assert diff(b"a\r\nb\r\n", b"a\r\n") == ["--- a/train.py", "+++ b/train.py", "@@ -1,2 +1 @@", " a", "-b"]


def test_a_missing_last_line_end_is_said():
    assert diff(b"a\nb", b"a\nc")[-4:] == [
        "-b",
        r"\ No newline at end of file",
        "+c",
        r"\ No newline at end of file",
    ]
    assert diff(b"a", b"a\n")[-3:] == ["-a", r"\ No newline at end of file", "+a"]


def test_only_line_feeds_end_lines():
    assert diff("a\x0c\u2028b\n".encode(), b"c\n")[-2:] == ["-a\x0c\u2028b", "+c"]


def test_an_emptied_file_has_a_diff():
    assert diff(b"a\n", b"")[-1] == "-a"


def test_text_is_decoded_as_the_file_says():
    assert decoded("# coding: latin-1\n'é'".encode("latin-1")).endswith("'é'")
    assert decoded(b"\xef\xbb\xbfx") == "x"
    assert decoded(b"# coding: nonsense\n\xff") == "# coding: nonsense\n\\xff"
    assert decoded(b"\xff") == "\\xff"


def test_an_example_is_shown_whole():
    assert example_diff("\na\nb\n", "\na\n") == [" a", "-b"]
    assert example_diff("", "x = 1\n") == ["+x = 1"]
