"""The examples of all rules again, in other surroundings: in a function, a branch, with tabs, CRLF, twice ...

What comes out is checked by the examples themselves, in a file of their own; here, that it stays sound.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.rules import load_rules

from .check import assert_sound, migrate

EXAMPLES = [(rule.code, example) for rule in load_rules().rules for example in rule.examples]


def indented(text: str, indent: str) -> str:
    return "".join(indent + line if line.strip() else line for line in text.splitlines(keepends=True))


def stepped(text: str, step: str) -> str:
    """Four blanks a level become another step."""
    lines = []
    for line in text.splitlines(keepends=True):
        stripped = line.lstrip(" ")
        depth = len(line) - len(stripped)
        lines.append(step * (depth // 4) + " " * (depth % 4) + stripped)
    return "".join(lines)


SURROUNDINGS: dict[str, Callable[[str], str | bytes]] = {
    "function": lambda text: "def outer(self):\n" + indented(text, "    ") + "    return 1\n",
    "method": lambda text: "class C:\n    def m(self):\n" + indented(text, "        "),
    "branches": lambda text: "if a:\n" + indented(text, "    ") + "else:\n" + indented(text, "    "),
    "try": lambda text: "try:\n" + indented(text, "    ") + "finally:\n    done()\n",
    "tabs": lambda text: stepped("def outer():\n" + indented(text, "    "), "\t"),
    "two-blanks": lambda text: stepped("def outer():\n" + indented(text, "    "), "  "),
    "windows": lambda text: text.replace("\n", "\r\n").encode(),
    "byte-order-mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "no-newline-at-the-end": lambda text: text.rstrip("\n"),
    "twice": lambda text: text + "\n" + text,
    "docstring-and-future": lambda text: (
        '#!/usr/bin/env python\n"""Doc."""\nfrom __future__ import annotations\n' + text
    ),
    "single-quotes": lambda text: "Q = " + ", ".join("'q'" for _ in range(20)) + "\n" + text,
}


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
def test_every_example_stays_sound_in_other_surroundings(surrounding):
    tried = 0
    for code, example in EXAMPLES:
        text = (example.before or example.keep).lstrip("\n")
        program = SURROUNDINGS[surrounding](text)
        try:
            ast.parse(program)
        except SyntaxError:
            continue  # a string over several lines, or `from __future__` inside
        settings = Settings(**example.settings)
        result = migrate(program, settings, kind=example.program)
        assert "PY002" not in {finding.code for finding in result.findings}, (code, result.findings)
        assert_sound(result, settings, kind=example.program)
        tried += 1
    assert tried > len(EXAMPLES) * 0.8
