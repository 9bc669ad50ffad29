"""Helper functions that a rewrite brings along: read from rules/helpers, fitted to the user's file.

A helper is ordinary Python: imports at the top, then what it takes, its function or class last. It
stands in the user's file once, behind the imports.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Helper:
    """A helper's source, and the names in it that the imports at its top bind."""

    name: str
    """The function or class that the rewritten code uses: the last one of the file."""
    body: str
    imported: tuple[tuple[str, str], ...]
    """(name in the body, qualified name)"""
    uses: tuple[str, ...]
    """File names of other helpers it calls."""

    @property
    def qualified_names(self) -> tuple[str, ...]:
        """Every qualified name the helper's body uses."""
        table = dict(self.imported)
        found = []
        for node in ast.walk(ast.parse(self.body)):
            dotted = _dotted(node)
            if dotted and dotted.partition(".")[0] in table:
                root, _, rest = dotted.partition(".")
                found.append(f"{table[root]}.{rest}" if rest else table[root])
        return tuple(dict.fromkeys(found))


@functools.cache
def load_helper(directory: Path, name: str) -> Helper:
    """Read a helper file by its name without ``.py``.

    Raises:
        FileNotFoundError: there is no such helper.
    """
    source = (directory / f"{name}.py").read_text("utf-8")
    module = ast.parse(source)
    imported: dict[str, str] = {}
    uses: list[str] = []
    start = 0
    for statement in module.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                imported[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(statement, ast.ImportFrom):
            if statement.module == "__future__":
                pass
            elif statement.level:  # from .other import other: another helper
                uses.append(statement.module or "")
            else:
                for alias in statement.names:
                    imported[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
        elif isinstance(statement, ast.Expr) and not start:
            pass  # the file's own docstring
        else:
            break
        start = statement.end_lineno or 0
    body = "\n".join(source.splitlines()[start:]).strip("\n") + "\n"
    definitions = [node for node in module.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return Helper(definitions[-1].name, body, tuple(imported.items()), tuple(uses))


def fit(
    helper: Helper, name: str, spell: Callable[[str], str], indent: str, newline: str, renamed: dict[str, str]
) -> str:
    """The helper's source for one file.

    Args:
        helper: what to write.
        name: what it is to be called there.
        spell: qualified name -> how the file spells it.
        indent: the file's indentation.
        newline: the file's newline.
        renamed: names that other helpers got in this file.
    """
    table = dict(helper.imported)
    lines = helper.body.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    text = helper.body
    changes: list[tuple[int, int, str]] = []

    def visit(node: ast.AST) -> None:
        dotted = _dotted(node)
        if dotted:
            assert isinstance(node, (ast.Name, ast.Attribute))
            root, _, rest = dotted.partition(".")
            start = offsets[node.lineno - 1] + node.col_offset
            if root in table:
                changes.append(
                    (start, start + len(dotted), spell(f"{table[root]}.{rest}" if rest else table[root]))
                )
            elif root in renamed:
                changes.append((start, start + len(root), renamed[root]))
            return
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and node.name == helper.name
            and name != helper.name
        ):
            found = re.compile(rf"\b{helper.name}\b").search(text, offsets[node.lineno - 1])
            assert found is not None
            changes.append((found.start(), found.end(), name))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(text))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    if indent != "    ":
        text = "".join(_reindent(line, indent) for line in text.splitlines(keepends=True))
    return text.replace("\n", newline)


def _reindent(line: str, indent: str) -> str:
    stripped = line.lstrip(" ")
    depth = (len(line) - len(stripped)) // 4
    return indent * depth + " " * ((len(line) - len(stripped)) % 4) + stripped


def first_line(helper: Helper) -> str:
    """The first line of the helper's docstring."""
    node = ast.parse(helper.body).body[-1]
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    return textwrap.dedent(ast.get_docstring(node) or "").partition("\n")[0]


def _dotted(node: ast.AST) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
