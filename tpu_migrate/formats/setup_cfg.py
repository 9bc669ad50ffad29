"""setup.cfg: the requirements in its ``[options]``."""

from __future__ import annotations

import configparser
import re

from tpu_migrate.findings import Span
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.packages import (
    Document,
    Entry,
    NotReadable,
    canonical,
    mentions,
    read_versions,
    rewrite_packages,
)
from tpu_migrate.formats.pyproject import _never
from tpu_migrate.formats.requirements import read_line
from tpu_migrate.python.rewrite import Engine, Rewritten
from tpu_migrate.python.source import Source

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_HEADER = re.compile(r"\[(?P<name>[^\]]+)\]")
_KEY = re.compile(r"(?P<key>[^\s=:#;\[][^=:]*?)[ \t]*[=:][ \t]*(?P<value>[^\r\n]*)")
_LISTS = frozenset(("install_requires", "setup_requires", "tests_require", "requires"))


def read(source: Source) -> Document:
    """Find what a setup.cfg asks for."""
    document = Document()
    section = key = ""
    at = 0
    while at < len(source.text):
        found = _LINE.match(source.text, at)
        assert found is not None
        line, start, at = found.group(), at, found.end()
        whole = Span(start, at)
        if re.match(r"\s*[#;]", line):
            document.comments.append(whole)
        elif header := _HEADER.match(line):
            section, key = header["name"].strip(), ""
        elif not line[:1].isspace() and (pair := _KEY.match(line)):
            key = pair["key"].strip().lower().replace("-", "_")
            if section == "metadata" and key == "name":
                document.project = canonical(pair["value"])
            if section == "options" and key == "python_requires":
                versions, _ = read_versions(pair["value"])
                span = Span(start, start + len(line.rstrip()))
                document.entries.append(
                    Entry("package.python", span, span, _never, lambda target: "", start, "python", True,
                          versions=versions, is_whole=True)
                )  # fmt: skip
            elif _is_list(section, key) and pair["value"].strip():
                offset = start + pair.start("value")
                # what stands behind the key goes without the key
                rest = Span(offset, offset + len(pair["value"].rstrip()))
                read_line(document, source, offset, pair["value"], rest, f"{section}.{key}", "    ")
        elif line[:1].isspace() and line.strip() and _is_list(section, key):
            read_line(document, source, start, line, whole, f"{section}.{key}")
    return document


def _is_list(section: str, key: str) -> bool:
    return (section == "options" and key in _LISTS) or section == "options.extras_require"


def check(text: str) -> None:
    """Raise NotReadable when a text is not what setuptools can read."""
    try:
        configparser.RawConfigParser(strict=False).read_string(text)
    except configparser.Error as error:
        raise NotReadable(f"it is no configuration file: {' '.join(str(error).split())}") from None


def rewrite(engine: Engine, path: str, data: bytes, wanted: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite one setup.cfg."""
    return rewrite_packages(read, check, engine, path, data)


def accepts(path: str) -> bool:
    return path.rpartition("/")[2] == "setup.cfg"


SETUP_CFG = Format("setup.cfg", ("setup.cfg",), rewrite, accepts, mentions)
