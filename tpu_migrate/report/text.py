"""Foreign text made safe to show: source code and file names may hold anything."""

from __future__ import annotations

import re

# What a terminal or a reader could take for something else than text: C0 and C1 controls, the marks
# that turn the reading direction or hide characters, line separators, and what no encoding can carry.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with everything but plain characters, tabs and line feeds written as an escape.

    Example:
        >>> visible("\\x1b[31mred")
        '\\\\x1b[31mred'
    """
    return _UNSAFE.sub(lambda found: _escape(found.group()), text)


def one_line(text: str) -> str:
    """``visible`` text on a single line: runs of white space become one space."""
    return visible(" ".join(text.split()))


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
