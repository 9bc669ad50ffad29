"""Bytes to text and back: byte-order marks, cookies, newlines, offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_migrate.python.source import Source, SourceError


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a = 1\n",
        b"a = 1",
        b"a = 1\r\nb = 2\r\n",
        b"a = 1\rb = 2\r",
        b"\xef\xbb\xbfa = 1\n",
        "s = 'é'\n".encode(),
        "# -*- coding: latin-1 -*-\ns = 'é'\n".encode("latin-1"),
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\ns = '€'\n".encode("cp1252"),
        b"\xef\xbb\xbf# coding: utf-8\n",
        "# coding: euc-jp\ns = '日本'\n".encode("euc-jp"),
        b"a = '\x0c'\n",
    ],
)
def test_decoding_and_encoding_give_the_same_bytes(data):
    source = Source.decode(data)
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a = 1\ns = '\xff'\n", "line 2"),
        (b"# coding: nonsense\n", "nonsense"),
        (b"a\0b", "null bytes"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem"),
        ("a = 1\n".encode("utf-16"), ""),
    ],
)
def test_bytes_that_are_no_source_are_refused_with_a_reason(data, says):
    with pytest.raises(SourceError) as raised:
        Source.decode(data)
    assert says in str(raised.value)


def test_a_byte_order_mark_is_not_part_of_the_text():
    assert Source.decode(b"\xef\xbb\xbfa").text == "a"


def test_the_newline_is_that_of_most_lines():
    assert Source("a\nb\n").newline == "\n"
    assert Source("a\r\nb\r\n").newline == "\r\n"
    assert Source("a\r\nb\nc\n").newline == "\n"
    assert Source("a\r\nb\r\nc\n").newline == "\r\n"
    assert Source("").newline == "\n"


@given(st.text(alphabet="a\n\r\t é", max_size=30))
def test_positions_count_lines_and_characters(text):
    source = Source(text)
    line, column = 1, 1
    for offset, character in enumerate(text):
        assert source.position(offset) == (line, column)
        if character == "\n" or (character == "\r" and text[offset + 1 : offset + 2] != "\n"):
            line, column = line + 1, 1
        else:
            column += 1
    assert source.position(len(text)) == (line, column)


@given(st.text(alphabet="a\n\r", max_size=20), st.integers(0, 20))
def test_a_line_begins_and_ends_around_each_of_its_offsets(text, offset):
    source = Source(text)
    offset = min(offset, len(text))
    start, end = source.line_start(offset), source.line_end(offset)
    assert start <= offset <= end
    assert start == 0 or text[start - 1] in "\r\n"
    assert end == len(text) or text[end - 1] in "\r\n"
