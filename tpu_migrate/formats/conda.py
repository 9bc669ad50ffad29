"""environment.yml of conda: its packages, and those that its ``pip:`` list asks for."""

from __future__ import annotations

import re

from tpu_migrate.findings import Edit, Span
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.packages import (
    Document,
    Entry,
    Target,
    canonical,
    mentions,
    read_versions,
    rewrite_packages,
)
from tpu_migrate.formats.requirements import check, read_line
from tpu_migrate.python.rewrite import Engine, Rewritten
from tpu_migrate.python.source import Source

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_ITEM = re.compile(r"(?P<lead>[ \t]*-[ \t]+)(?P<value>[^\r\n]*)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\r\n]*")
_SPEC = re.compile(r"(?:[\w./-]+::)?(?P<name>[\w.-]+?)\s*(?P<versions>[<>=!~].*)?")
_NAMES = {"pytorch": "torch", "pytorch_cpu": "torch", "pytorch_xla": "torch_xla"}
"""What conda calls packages otherwise than PyPI."""


def accepts(path: str) -> bool:
    """Whether a YAML file is named as conda's are."""
    name = path.rpartition("/")[2]
    return (
        re.fullmatch(r"(?:.*[-_.])?(?:environment|conda)(?:[-_.].*)?\.ya?ml", name, re.IGNORECASE) is not None
    )


def read(source: Source) -> Document:
    """Find what an environment.yml asks for; lists in brackets are passed over."""
    document = Document()
    inside = False
    pip_indent = -1
    at = 0
    while at < len(source.text):
        found = _LINE.match(source.text, at)
        assert found is not None
        line, start, at = found.group(), at, found.end()
        comment = _COMMENT.search(line)
        body = (line[: comment.start()] if comment else line).rstrip()
        if comment:
            document.comments.append(Span(start + comment.start(), start + comment.end()))
        if not body.strip():
            continue
        indent = len(body) - len(body.lstrip())
        item = _ITEM.fullmatch(body)
        if item is None:
            if not indent:
                inside, pip_indent = body.replace(" ", "") == "dependencies:", -1
            continue
        if not inside:
            continue
        if pip_indent >= 0 and indent <= pip_indent:
            pip_indent = -1
        value = item["value"].strip()
        if value == "pip:":
            pip_indent = indent
            continue
        offset = start + item.start("value")
        quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
        if quoted:
            value, offset = value[1:-1], offset + 1
        if pip_indent >= 0:
            read_line(document, source, offset, value, Span(start, at), "pip")
        else:
            _add_package(document, source, value, offset, Span(start, at))
    return document


def _add_package(document: Document, source: Source, value: str, offset: int, line: Span) -> None:
    found = _SPEC.fullmatch(value)
    if found is None:
        return
    name = canonical(found["name"])
    name = _NAMES.get(name, name)
    # name=version=build: one equals sign means "begins with"
    text = (found["versions"] or "").strip()
    if exact := re.fullmatch(r"=(?!=)([\w.*]+)(?:=.*)?", text):
        text = f"=={exact[1].removesuffix('.*').removesuffix('*')}.*"
    elif exact := re.fullmatch(r"==([\w.]+)=.*", text):
        text = f"=={exact[1]}"
    versions, is_pinned = read_versions(text)
    span = Span(offset, offset + len(value))

    def never(target: Target) -> tuple[Edit, ...]:
        raise AssertionError(target)

    document.entries.append(
        Entry(
            f"package.{name}", span, line, never, lambda target: "", line.start, "pip", True,
            versions=versions, is_pinned=is_pinned,
            fixed="" if name in ("libtpu", "libtpu_nightly", "cloud_tpu_client")
            else "torch_tpu and the torch it needs come from PyPI: they belong in the pip: list",
        )
    )  # fmt: skip


def rewrite(engine: Engine, path: str, data: bytes, wanted: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite one environment.yml."""
    return rewrite_packages(read, check, engine, path, data)


CONDA = Format("conda", (".yml", ".yaml"), rewrite, accepts, mentions)
