"""What IPython adds to Python: which lines of a cell are magics, shell escapes or calls for help."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from enum import Enum

NEWLINE = re.compile(r"\r\n|\n|\r")
_TOKEN = re.compile(
    r"""(?P<triple>'''|\"\"\")
      | (?P<string>'(?:[^'\\\r\n]|\\.)*'? | "(?:[^"\\\r\n]|\\.)*"?)
      | (?P<comment>\#[^\r\n]*)
      | (?P<open>[(\[{])
      | (?P<close>[)\]}])
      | (?P<joined>\\(?:\r\n|\n|\r))
      | (?P<newline>\r\n|\n|\r)""",
    re.VERBOSE | re.DOTALL,
)
_CANDIDATE = re.compile(
    r"^[ \t]*(?:[%!?]|pip3?[ \t]|conda[ \t]|\#[ \t]*[%!].*xla)|\?[ \t]*;?[ \t]*(?:\#.*)?$|=[ \t]*[!%]", re.M
)
_HELP = re.compile(r"%{0,2}[A-Za-z_*][\w.*\[\]'\"]*\?{1,2}[ \t]*;?[ \t]*(?:\#.*)?")
_ASSIGNED = re.compile(
    r"(?P<left>[A-Za-z_][\w.\[\]'\", ]*?)[ \t]*=[ \t]*(?P<command>[!%][ \t]*[\w/.{$\"'].*)"
)
_COMMENTED = re.compile(r"(?P<left>#[ \t]*)(?P<command>[!%][ \t]*\w.*(?i:xla).*)")
_BARE = re.compile(r"(?:pip3?|conda)[ \t]+(?:install|uninstall|download|list|show|freeze)\b")
_TIMED = re.compile(r"(?P<prefix>%time[ \t]+)(?P<code>[^-\s].*)")

_WITH_PYTHON = frozenset(
    "capture memit mprun prun scalene snakeviz time timeit wandb heat lprun notify pyinstrument".split()
)
"""Cell magics whose body is run as Python in the notebook's own namespace."""


class Kind(Enum):
    """How a line is hidden from a parser of Python."""

    LINE = "line"
    """All of it is IPython's."""
    ASSIGNED = "assigned"
    """``files = !ls``"""
    COMMENT = "comment"
    """``# !pip install torch_xla``, to be uncommented by those who have a TPU."""
    TIMED = "timed"
    """``%time`` before a statement of Python."""


@dataclass(frozen=True)
class Escape:
    """A logical line that isn't Python."""

    first: int
    last: int
    """Line numbers, counted from 0."""
    kind: Kind
    indent: str
    command: str
    """The text from its first sign on, without the newline; lines joined by backslashes keep them."""
    head: str = ""
    """What stands before the command: ``files = ``, ``%time ``."""


def split_lines(text: str) -> list[str]:
    """The lines of a text with their newlines, as Python counts lines."""
    if "\r" not in text:
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines if lines[-1] else lines[:-1]
    lines, position = [], 0
    for found in NEWLINE.finditer(text):
        lines.append(text[position : found.end()])
        position = found.end()
    return [*lines, text[position:]] if position < len(text) else lines


def cell_magic(text: str) -> str:
    """The name of the ``%%magic`` that takes the whole cell; empty where Python is left to see."""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped:
            continue
        found = re.match(r"%%(\S*)", stripped)
        if found is None:
            return ""
        if found[1] not in _WITH_PYTHON:
            return found[1] or "%%"
    return ""


def find_escapes(text: str, timed: bool = True) -> list[Escape]:
    """The lines of a cell that are not Python, in order.

    A sign only counts at the beginning of a logical line: not in strings, not inside brackets.

    Args:
        text: of the cell.
        timed: tell ``%time statement`` from other magics, because its statement is Python.
    """
    if not _CANDIDATE.search(text):
        return []
    lines = split_lines(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    numbers = {start: number for number, start in enumerate(starts)}
    escapes: list[Escape] = []
    position, depth, fresh = 0, 0, True
    while position < len(text):
        if fresh:
            number = numbers[position]
            escape = _escape(lines, number, timed)
            if escape is not None:
                escapes.append(escape)
                position = starts[escape.last + 1]
                continue
            fresh = False
        found = _TOKEN.search(text, position)
        if found is None:
            break
        position = found.end()
        if found["triple"]:
            closing = re.compile(r"(?:[^\\]|\\.)*?" + found["triple"], re.DOTALL).match(text, position)
            position = closing.end() if closing else len(text)
        elif found["open"]:
            depth += 1
        elif found["close"]:
            depth = max(0, depth - 1)
        elif found["newline"]:
            fresh = depth == 0
    return escapes


def _escape(lines: list[str], first: int, timed: bool) -> Escape | None:
    line = lines[first].rstrip("\r\n")
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)]
    if not body:
        return None
    if not (body[0] in "%!?" or _BARE.match(body) or _HELP.fullmatch(body)):
        if commented := _COMMENTED.fullmatch(body):
            return Escape(first, first, Kind.COMMENT, indent, commented["command"], commented["left"])
        assigned = _ASSIGNED.fullmatch(body)
        if assigned is None:
            return None
        return _joined(lines, first, Kind.ASSIGNED, indent, body[: assigned.start("command")])
    if timed and (found := _TIMED.fullmatch(body)) and not body.endswith("\\") and _is_python(found["code"]):
        return Escape(first, first, Kind.TIMED, indent, found["code"], found["prefix"])
    return _joined(lines, first, Kind.LINE, indent, "")


def _joined(lines: list[str], first: int, kind: Kind, indent: str, head: str) -> Escape:
    last = first
    while lines[last].rstrip("\r\n").endswith("\\") and last + 1 < len(lines):
        last += 1
    text = "".join(lines[first : last + 1]).rstrip("\r\n")
    return Escape(first, last, kind, indent, text[len(indent) + len(head) :], head)


def _is_python(code: str) -> bool:
    return parses(code + "\n")


def parses(text: str) -> bool:
    """Whether IPython could run a text that has no magics: Python, with ``await`` allowed at the top."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def python_words(command: str) -> set[str]:
    """Names of Python that a magic or a shell command uses: its code, ``{expression}`` and ``$name``."""
    words = {
        name for found in re.findall(r"\{([^{}]*)\}", command) for name in re.findall(r"[A-Za-z_]\w*", found)
    }
    words.update(re.findall(r"\$([A-Za-z_]\w*)", command))
    if re.match(r"%{1,2}(?:time|timeit|prun|lprun|mprun|memit|debug|snakeviz|pyinstrument)\b", command):
        words.update(re.findall(r"[A-Za-z_]\w*", command))
    return words
