"""Comments in a piece of source."""

from __future__ import annotations

import re

_STRING_OR_COMMENT = re.compile(
    r"""[bBrRuUfF]*(?:
        '''.*?''' | \"\"\".*?\"\"\" | '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*"
    ) | (\#[^\r\n]*)""",
    re.DOTALL | re.VERBOSE,
)


def comments_in(text: str) -> list[str]:
    """The comments of a piece of source, in order; a ``#`` in a string is none."""
    return (
        [found[1].rstrip() for found in _STRING_OR_COMMENT.finditer(text) if found[1]] if "#" in text else []
    )
