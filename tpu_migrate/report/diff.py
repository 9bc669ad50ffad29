"""A file's change as unified diff lines, as text."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterator

from tpu_migrate.findings import FileResult


def diff_lines(file: FileResult, context: int = 3) -> Iterator[str]:
    """The lines of a unified diff, without line ends; none when nothing changed."""
    if not file.changed:
        return
    old, new = _lines(file.old), _lines(file.new)
    path = file.path
    # difflib marks its own header and hunk lines with "\n"; ours carry none, so that all look alike.
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=context, lineterm=""):
        yield from line.split("\n")


def example_diff(before: str, after: str) -> list[str]:
    """A whole example as diff lines, without headers."""
    lines = difflib.unified_diff(
        before.strip("\n").split("\n") if before.strip() else [],
        after.strip("\n").split("\n") if after.strip() else [],
        n=1000,
        lineterm="",
    )
    return list(lines)[3:]


def _lines(data: bytes) -> list[str]:
    """Source lines for the eye: line ends are dropped, and a missing last one is said as diff says it."""
    lines = decoded(data).split("\n")
    lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


def decoded(data: bytes) -> str:
    """Source text by its BOM or coding cookie; bytes that don't fit are shown as escapes."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return data.decode("utf-8", "backslashreplace")
