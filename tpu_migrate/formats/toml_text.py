"""Where the values of a TOML text stand, to the character. What is valid TOML, tomllib says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tpu_migrate.findings import Span
from tpu_migrate.formats.packages import NotReadable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_STRING = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?\"{3,5}|'''.*?'{3,5}|\"(?:[^\"\\\r\n]|\\.)*\"|'[^'\r\n]*'", re.DOTALL
)
_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]+")


@dataclass(frozen=True)
class Value:
    """One value of the text, or one element of an array."""

    path: tuple[str, ...]
    """The keys that lead to it; the elements of an array have that of the array."""
    span: Span
    """With its quotes or brackets."""
    pair: Span
    """From the beginning of its key to its end; of an element, the element."""
    kind: str
    """``string``, ``array``, ``table`` or ``other``."""
    text: str
    """What a string says; of other values, their source."""
    in_array: bool = False


@dataclass(frozen=True)
class TomlText:
    """All values, in the order of the text, and the comments."""

    values: tuple[Value, ...]
    comments: tuple[Span, ...]


def check_toml(text: str) -> None:
    """Raise NotReadable when a text is not TOML."""
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotReadable(f"it is not TOML: {error}") from None


def read_toml(text: str) -> TomlText:
    """Find the values of a text that is known to be TOML."""
    scanner = _Scanner(text)
    values = tuple(scanner.document())
    return TomlText(values, tuple(scanner.comments))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.comments: list[Span] = []

    def document(self) -> Iterator[Value]:
        table: tuple[str, ...] = ()
        self.gap()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                brackets = 2 if self.text.startswith("[[", self.at) else 1
                self.at += brackets
                table = self.keys()
                self.at += brackets
            else:
                yield from self.pair(table)
            self.gap()

    def gap(self) -> None:
        """Pass over spaces, newlines and comments."""
        found = _GAP.match(self.text, self.at)
        assert found is not None
        for comment in re.finditer(r"#[^\r\n]*", found.group()):
            self.comments.append(Span(self.at + comment.start(), self.at + comment.end()))
        self.at = found.end()

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def keys(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self.space()
            found = _STRING.match(self.text, self.at) or _BARE.match(self.text, self.at)
            if found is None:
                raise NotReadable(f"no key found at offset {self.at}")
            parts.append(_decoded(found.group()))
            self.at = found.end()
            self.space()
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def pair(self, above: tuple[str, ...]) -> Iterator[Value]:
        start = self.at
        path = above + self.keys()
        self.at += 1  # the equals sign
        self.space()
        yield from self.value(path, start, in_array=False)

    def value(self, path: tuple[str, ...], start: int, in_array: bool) -> Iterator[Value]:
        first, opening = self.at, self.text[self.at]
        inner: list[Value] = []
        if opening in "\"'":
            found = _STRING.match(self.text, self.at)
            kind = "string"
        elif opening in "[{":
            found = None
            kind = "array" if opening == "[" else "table"
            self.at += 1
            self.gap()
            while self.text[self.at] not in "]}":
                if opening == "[":
                    inner.extend(self.value(path, self.at, in_array=True))
                else:
                    inner.extend(self.pair(path))
                self.gap()
                if self.text[self.at] == ",":
                    self.at += 1
                    self.gap()
            self.at += 1
        else:
            found = _SCALAR.match(self.text, self.at)
            kind = "other"
        if found is not None:
            self.at = first + len(found.group().rstrip()) if kind == "other" else found.end()
        source = self.text[first : self.at]
        text = _decoded(source) if kind == "string" else source
        yield Value(path, Span(first, self.at), Span(start, self.at), kind, text, in_array)
        yield from inner


def _decoded(source: str) -> str:
    if source[:1] not in ("'", '"'):
        return source
    found: str = tomllib.loads(f"x = {source}")["x"]
    return found
