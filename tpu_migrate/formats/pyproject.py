"""pyproject.toml (PEP 621, PEP 735, Poetry, PDM, uv, Hatch) and Pipfile: edited, never printed anew."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.specifiers import SpecifierSet

from tpu_migrate.findings import Edit, Span
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.packages import (
    Document,
    Entry,
    Target,
    canonical,
    links_symbol,
    mentions,
    parse_requirement,
    read_versions,
    rewrite_packages,
)
from tpu_migrate.formats.toml_text import TomlText, Value, check_toml, read_toml
from tpu_migrate.python.rewrite import Engine, Rewritten
from tpu_migrate.python.source import Source

_LISTS = frozenset(
    (
        "dependencies extra-dependencies dev-dependencies requires"
        " constraint-dependencies override-dependencies"
    ).split()
)
_LISTS_BY_GROUP = frozenset("optional-dependencies dependency-groups dev-dependencies features".split())
_MOVABLE = frozenset("version extras optional markers python".split())
"""Keys of a Poetry or Pipfile dependency that can go with it to another package."""


def read(source: Source) -> Document:
    """Find what a pyproject.toml or Pipfile asks for."""
    toml = read_toml(source.text)
    document = Document(comments=list(toml.comments))
    for value in toml.values:
        if value.in_array and value.kind == "string":
            _read_element(document, source, toml, value)
        elif not value.in_array:
            _read_pair(document, source, toml, value)
    return document


def _read_element(document: Document, source: Source, toml: TomlText, value: Value) -> None:
    path = value.path
    last, above = path[-1], path[-2] if len(path) > 1 else ""
    element = _Element(source, toml, value)
    group = ".".join(path)
    if last == "find-links":
        document.entries.append(
            Entry(
                links_symbol(value.text),
                value.span,
                element.gone,
                _never,
                element.more,
                element.at,
                group,
                url=value.text,
            )
        )
    elif path[:3] == ("tool", "poetry", "extras"):
        name = canonical(value.text)
        document.entries.append(
            Entry(
                f"package.{name}", value.span, element.gone, element.write_name, element.more_name,
                element.at, group,
            )
        )  # fmt: skip
    elif (last in _LISTS and path[0] != "build-system") or above in _LISTS_BY_GROUP or path == _BUILD:
        start = value.span.start + 1
        raw = source.text[start : value.span.end - 1]
        parsed = parse_requirement(raw, start)
        if parsed is None:
            return
        inner = parsed.body
        document.entries.append(
            Entry(
                f"package.{parsed.name}",
                value.span,
                element.gone,
                lambda target: (Edit(inner, (target.text,)),),
                element.more,
                element.at,
                group,
                is_base=path == ("project", "dependencies"),
                extras=parsed.extras,
                versions=parsed.versions,
                is_pinned=parsed.is_pinned,
                marker=parsed.marker.replace('\\"', '"'),
                url=parsed.url,
                fixed=parsed.fixed,
            )
        )


_BUILD = ("build-system", "requires")


def _never(target: Target) -> tuple[Edit, ...]:
    raise AssertionError(target)


class _Element:
    """One string in an array: how it goes, and how another one comes before it."""

    def __init__(self, source: Source, toml: TomlText, value: Value) -> None:
        text, span = source.text, value.span
        self.value, self.quote = value, text[span.start]
        self.at = span.start
        line = Span(source.line_start(span.start), source.line_end(max(span.start, span.end - 1)))
        before = text[line.start : span.start]
        comma = re.match(r"[ \t]*,[ \t]*", text[span.end : line.end])
        after = text[span.end + (comma.end() if comma else 0) : line.end]
        self.alone = not before.strip() and (not after.strip() or after.lstrip().startswith("#"))
        if self.alone:
            self.gone = line
            self.between = "," + (re.search(r"[\r\n]*$", text[line.start : line.end]) or [""])[0] + before
        else:
            self.between = ", "
            leading = re.search(r",[ \t]*$", before)
            if comma:
                self.gone = Span(span.start, span.end + comma.end())
            else:
                self.gone = Span(span.start - (len(leading.group()) if leading else 0), span.end)

    def more(self, target: Target) -> str:
        return f"{self.quote}{target.text}{self.quote}{self.between}"

    def more_name(self, target: Target) -> str:
        return f"{self.quote}{target.name}{self.quote}{self.between}"

    def write_name(self, target: Target) -> tuple[Edit, ...]:
        return (Edit(Span(self.value.span.start + 1, self.value.span.end - 1), (target.name,)),)


def _table_of(path: Sequence[str]) -> str | None:
    """The group that a key of a dependency table belongs to; None for other keys."""
    if len(path) < 2:
        return None
    table = tuple(path[:-1])
    if table in (("packages",), ("dev-packages",)):
        return table[0]
    if table in (("tool", "poetry", "dependencies"), ("tool", "poetry", "dev-dependencies")):
        return ".".join(table)
    if len(table) == 5 and table[:3] == ("tool", "poetry", "group") and table[4] == "dependencies":
        return ".".join(table)
    return None


def _read_pair(document: Document, source: Source, toml: TomlText, value: Value) -> None:
    path = value.path
    if path in (("project", "name"), ("tool", "poetry", "name")):
        document.project = canonical(value.text)
    if path in (("project", "requires-python"), ("requires", "python_version")):
        _add_python(document, source, value, is_whole=path[0] == "project")
        return
    group = _table_of(path)
    if group is None:
        _read_subtable(document, source, value)
        return
    name, table = canonical(path[-1]), group
    if name == "python":
        _add_python(document, source, value, is_whole=True)
        return
    key = Span(value.pair.start, value.span.start)
    line = Span(source.line_start(value.pair.start), source.line_end(max(0, value.span.end - 1)))
    newline = source.newline
    keys = {inner.path[-1]: inner for inner in toml.values if _is_under(inner, value)}
    version = value if value.kind == "string" else keys.get("version")
    extras = keys.get("extras")
    fixed = ""
    if value.kind == "table" and set(keys) - _MOVABLE:
        fixed = f"it says where it comes from ({', '.join(sorted(set(keys) - _MOVABLE))})"
    elif value.kind == "array" or "." in source.text[key.start : key.end].split("=")[0]:
        fixed = "it is written in a form that the tool doesn't change"
    elif value.kind == "table" and version is None:
        fixed = "it has no version"
    versions, is_pinned = _poetry_versions(version.text, path[0] == "packages") if version else (None, False)
    names = re.findall(r"[\w-]+", extras.text) if extras else []
    optional = keys.get("optional")
    is_optional = optional is not None and optional.text == "true"
    if is_optional and group == "tool.poetry.dependencies":
        group += " optional"
    assignment = re.search(r"\s*=\s*$", source.text[key.start : key.end])
    assert assignment is not None
    spaced = assignment.group()

    def write(target: Target) -> tuple[Edit, ...]:
        assert version is not None
        spelt = Span(key.start, key.end - len(spaced))
        quote = source.text[version.span.start]
        edits = [Edit(version.span, (f"{quote}{target.versions or '*'}{quote}",))]
        if canonical(target.name) != name:
            edits.insert(0, Edit(spelt, (target.name,)))
            if extras is not None:
                edits.append(_without(source, extras))
        return tuple(edits)

    def more(target: Target) -> str:
        wanted = f'"{target.versions or "*"}"'
        wanted = f"{{version = {wanted}, optional = true}}" if is_optional else wanted
        return f"{target.name}{spaced}{wanted}{newline}"

    document.entries.append(
        Entry(
            f"package.{name}",
            value.pair,
            line,
            write,
            more,
            line.start,
            group,
            is_base=group in ("packages", "tool.poetry.dependencies"),
            extras=frozenset(map(canonical, names)),
            versions=versions,
            is_pinned=is_pinned,
            marker=next((keys[word].text for word in ("markers", "python") if word in keys), ""),
            url=next((keys[word].text for word in ("url", "git", "path", "file") if word in keys), ""),
            fixed=fixed,
            table=table,
        )
    )


def _is_under(inner: Value, value: Value) -> bool:
    return (
        inner is not value
        and not inner.in_array
        and inner.path[:-1] == value.path
        and inner.span in value.span
        and value.kind == "table"
    )


def _without(source: Source, pair: Value) -> Edit:
    """Take a key and one of the commas around it out of an inline table."""
    text, span = source.text, pair.pair
    if after := re.match(r"\s*,\s*", text[span.end :]):
        return Edit(Span(span.start, span.end + after.end()))
    before = re.search(r"\s*,\s*$", text[: span.start])
    return Edit(Span(span.start - (len(before.group()) if before else 0), span.end))


def _add_python(document: Document, source: Source, value: Value, is_whole: bool) -> None:
    if value.kind != "string":
        return
    versions, _ = _poetry_versions(value.text, bare_is_exact=False)
    document.entries.append(
        Entry("package.python", value.pair, value.pair, _never, lambda target: "", value.pair.start, "python",
              True, versions=versions, is_whole=is_whole)
    )  # fmt: skip


def _read_subtable(document: Document, source: Source, value: Value) -> None:
    """``[tool.poetry.dependencies.torch-xla]``: a table of its own, which is named and left."""
    path = value.path
    if path[-1] not in ("version", "url", "git", "path", "file"):
        return
    group = _table_of(path[:-1])
    if group is None or path[0] not in ("tool", "packages", "dev-packages"):
        return
    line_start = source.line_start(value.pair.start)
    if source.text[line_start : value.pair.start].strip():
        return  # in an inline table
    versions, is_pinned = _poetry_versions(value.text, False) if path[-1] == "version" else (None, False)
    header = source.text.rfind("[", 0, value.pair.start)
    document.entries.append(
        Entry(f"package.{canonical(path[-2])}", value.pair, Span(header, value.pair.end), _never,
              lambda target: "", value.pair.start, group, True, versions=versions, is_pinned=is_pinned,
              url="" if path[-1] == "version" else value.text,
              fixed="it is a table of its own, which the tool doesn't change", table=group)
    )  # fmt: skip


def _poetry_versions(text: str, bare_is_exact: bool = True) -> tuple[SpecifierSet | None, bool]:
    """``read_versions`` for Poetry's and Pipfile's own spellings: ``^2.5``, ``~2.5``, ``2.5``."""
    parts = [part.strip() for part in text.split(",")]
    pinned = len(parts) == 1
    done = []
    exact = False
    for part in parts:
        if found := re.fullmatch(r"([~^])\s*(\d+(?:\.\d+)*)", part):
            numbers = [int(number) for number in found[2].split(".")]
            keep = 1 if found[1] == "^" else min(2, len(numbers))
            if found[1] == "^" and numbers[0] == 0:
                keep = min(2, len(numbers))
            upper = [*numbers[: keep - 1], numbers[keep - 1] + 1]
            done += [f">={found[2]}", "<" + ".".join(map(str, upper))]
            exact = found[1] == "~"
        elif re.fullmatch(r"\d[\w.*+]*", part):
            done.append(f"=={part}")
            if not bare_is_exact and part.count(".") < 2 and "*" not in part:
                done[-1] += ".*"
            exact = True
        else:
            done.append(part)
    versions, is_pinned = read_versions(",".join(done))
    return versions, is_pinned or (pinned and exact and versions is not None)


def rewrite(engine: Engine, path: str, data: bytes, wanted: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite one pyproject.toml or Pipfile."""
    return rewrite_packages(read, check_toml, engine, path, data)


def accepts(path: str) -> bool:
    """Whether a path is one of the two, and doesn't just end like one."""
    return path.rpartition("/")[2] in ("pyproject.toml", "Pipfile")


PYPROJECT = Format("pyproject", ("pyproject.toml",), rewrite, accepts, mentions)
PIPFILE = Format("pipfile", ("Pipfile",), rewrite, accepts, mentions)
