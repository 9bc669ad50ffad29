"""What a file kind is: how it is told, prefiltered and rewritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tpu_migrate.python.rewrite import Engine, Rewritten
from tpu_migrate.rules import RuleBook

Rewriter = Callable[[Engine, str, bytes, frozenset[str]], Rewritten]


@dataclass(frozen=True)
class Format:
    """One file kind."""

    name: str
    endings: tuple[str, ...]
    """What the names of such files end in; the walk looks for these."""
    rewrite: Rewriter
    accepts: Callable[[str], bool] = lambda path: True
    """Looks closer at a path whose ending fits (``.txt`` may be anything)."""
    mentions: Callable[[RuleBook, bytes], bool] = lambda book, data: book.mentions(data)
    """Whether a file's bytes can hold something to migrate."""
    is_python: bool = False
    """Takes part in the survey of programs and imports."""
