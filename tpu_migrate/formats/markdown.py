"""Markdown and reStructuredText: what they tell readers about torch_xla is reported, never rewritten."""

from __future__ import annotations

from tpu_migrate.formats.base import Format
from tpu_migrate.formats.launching import Page, mentions, migrate
from tpu_migrate.python.rewrite import Engine, Rewritten


def rewrite_markdown(engine: Engine, path: str, data: bytes, _: frozenset[str] = frozenset()) -> Rewritten:
    """Report what a text says about torch_xla, one finding a line.

    Args:
        engine: rules and settings.
        path: repository path of the file.
        data: its bytes.
    """
    return migrate(engine, path, data, _read, leftover="setting.mention_in_docs")


def _read(page: Page) -> None:
    """Nothing is rewritten, and every mention counts: there are no comments in prose."""


MARKDOWN = Format("markdown", (".md", ".markdown", ".rst"), rewrite_markdown, mentions=mentions)
