"""The cells of a notebook in its JSON text: found with their offsets, and written back by themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from tpu_migrate.findings import Span

_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class NotebookError(Exception):
    """The text is no notebook; the message says where and why."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Cell:
    """One cell, of whatever type."""

    number: int
    """Counted from 1, over all cells."""
    type: str
    language: str
    """What the cell itself says it is written in; empty: what the notebook is written in."""
    text: str
    span: Span
    """Of the whole cell in the JSON text."""


@dataclass(frozen=True)
class Place:
    """Where a cell's source stands in the JSON text."""

    span: Span
    items: tuple[tuple[str, Span], ...] | None
    """Text and place of each string of a list; None where the source is one string."""


@dataclass(frozen=True)
class Notebook:
    """A notebook's JSON text, and where its cells are."""

    text: str
    cells: tuple[Cell, ...]
    language: str = ""

    def with_sources(self, sources: Mapping[int, str]) -> str:
        """The JSON text with other sources in some cells, by cell number.

        Lines that a cell keeps are copied as they are spelt; the others are spelt as the file spells its own.
        """
        out: list[str] = []
        position = 0
        for cell in self.cells:
            if cell.number in sources and sources[cell.number] != cell.text:
                place = self.place(cell)
                out += self.text[position : place.span.start], self._source(place, sources[cell.number])
                position = place.span.end
        return "".join([*out, self.text[position:]])

    def place(self, cell: Cell) -> Place:
        """Where a cell's source is; looked up when it is asked for, because few cells change."""
        members = self.members(cell)
        span = members["source" if "source" in members else "input"]
        if self.text[span.start] != "[":
            return Place(span, None)
        reader = _Reader(self.text)
        items: list[tuple[str, Span]] = []

        def element(start: int) -> int:
            value, end = reader.value(start)
            items.append((value, Span(start, end)))
            return end

        reader.elements(span.start, element)
        return Place(span, tuple(items))

    def members(self, cell: Cell) -> dict[str, Span]:
        """Where the values of a cell's members are."""
        reader = _Reader(self.text)
        found: dict[str, Span] = {}

        def member(key: str, start: int) -> int:
            end = reader.value(start)[1]
            found[key] = Span(start, end)
            return end

        reader.members(cell.span.start, member)
        return found

    def _source(self, place: Place, new: str) -> str:
        lines = _LINE.findall(new)
        if place.items is None:
            old = _pieces(self.text, place.span)
            return '"' + "".join(self._aligned(old, lines, "")) + '"'
        if not lines or not place.items:
            return "[" + self._separator(place).join(f'"{self._escaped(line)}"' for line in lines) + "]"
        separator = self._separator(place)
        opening = self.text[place.span.start : place.items[0][1].start]
        closing = self.text[place.items[-1][1].end : place.span.end]
        return opening + separator.join(self._aligned(place.items, lines, '"')) + closing

    def _aligned(self, old: Sequence[tuple[str, Span]], lines: Sequence[str], quote: str) -> Iterator[str]:
        """The new lines as JSON; runs of old ones come as they stand, with what stands between them."""
        matcher = SequenceMatcher(None, [text for text, _ in old], lines, autojunk=False)
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            if tag == "equal":
                yield self.text[old[start][1].start : old[end - 1][1].end]
            else:
                yield from (quote + self._escaped(line) + quote for line in lines[new_start:new_end])

    def _separator(self, place: Place) -> str:
        """What stands between two strings of a list."""
        if place.items and len(place.items) > 1:
            return self.text[place.items[0][1].end : place.items[1][1].start]
        if place.items and place.items[0][1].start > place.span.start + 1:
            return "," + self.text[place.span.start + 1 : place.items[0][1].start]
        return ", " if '", "' in self.text or '": ' in self.text else ","

    def _escaped(self, text: str) -> str:
        raw = json.dumps(text, ensure_ascii=self._ascii)[1:-1]
        for character, escape in self._special.items():
            raw = raw.replace(character, escape)
        return raw

    @cached_property
    def _ascii(self) -> bool:
        """Whether the file spells what isn't ASCII as escapes."""
        return self.text.isascii() and re.search(r"\\u(?!00[0-7])[0-9a-fA-F]{4}", self.text) is not None

    @cached_property
    def _special(self) -> dict[str, str]:
        """Characters that this file escapes though JSON needn't, as writers that think of HTML do."""
        found: dict[str, str] = {}
        for character in "<>&='/":
            for escape in (rf"\u{ord(character):04x}", rf"\u{ord(character):04X}", "\\" + character):
                if escape not in self.text:
                    continue
                if self.text.count(character) == self.text.count("\\" + character):
                    found[character] = escape
        return found


def _pieces(text: str, span: Span) -> list[tuple[str, Span]]:
    """The lines inside one JSON string, each with its place."""
    found: list[tuple[str, Span]] = []
    start, end = span.start + 1, span.end - 1
    cuts = [match.end() for match in _ESCAPE.finditer(text, start, end) if match[1] == "n"]
    for cut in [*cuts, end]:
        if start < cut:
            found.append((str(json.loads(f'"{text[start:cut]}"')), Span(start, cut)))
        start = cut
    return found


def read_notebook(text: str) -> Notebook:
    """Find the cells of a notebook, of any nbformat version.

    It costs what ``json.loads`` costs: values that don't matter are read over by the same scanner.

    Raises:
        NotebookError: it isn't JSON, or has no list of cells.
    """
    reader = _Reader(text)
    try:
        reader.read()
    except json.JSONDecodeError as error:
        raise NotebookError(f"it is not valid JSON ({error.msg})", error.lineno, error.colno) from None
    except RecursionError:
        raise NotebookError("its JSON is nested too deeply") from None
    if reader.cells is None:
        raise NotebookError("it is JSON, but has no list of cells")
    return Notebook(text, tuple(reader.cells), reader.language)


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    """What ``json.loads`` reads one value with: C code, told where to begin, telling where it ended."""
    scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
    return scan


@dataclass
class _Reader:
    text: str
    cells: list[Cell] | None = None
    language: str = ""
    scan: Callable[[str, int], tuple[Any, int]] = field(default_factory=_scanner, repr=False)

    def read(self) -> None:
        start = self.space(0)
        end = self.members(start, self.top) if self.text[start : start + 1] == "{" else self.value(start)[1]
        if self.space(end) != len(self.text):
            raise json.JSONDecodeError("extra data", self.text, self.space(end))

    def top(self, key: str, start: int) -> int:
        opening = self.text[start : start + 1]
        if key == "cells" and opening == "[":
            self.cells = []
            return self.elements(start, self.cell)
        if key == "worksheets" and opening == "[":  # nbformat 2 and 3
            self.cells = []
            return self.elements(start, self.worksheet)
        value, end = self.value(start)
        if key == "metadata" and isinstance(value, dict):
            info, kernel = value.get("language_info"), value.get("kernelspec")
            for table, name in ((info, "name"), (kernel, "language"), (kernel, "name")):
                if not self.language and isinstance(table, dict) and isinstance(table.get(name), str):
                    self.language = table[name].lower()
        return end

    def worksheet(self, start: int) -> int:
        if self.text[start : start + 1] != "{":
            return self.value(start)[1]

        def member(key: str, at: int) -> int:
            if key == "cells" and self.text[at : at + 1] == "[":
                return self.elements(at, self.cell)
            return self.value(at)[1]

        return self.members(start, member)

    def cell(self, start: int) -> int:
        assert self.cells is not None
        value, end = self.value(start)
        number = len(self.cells) + 1
        found: dict[str, Any] = value if isinstance(value, dict) else {}
        source = found.get("source" if "source" in found else "input")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str) or not isinstance(found.get("cell_type"), str):
            self.cells.append(Cell(number, "", "", "", Span(start, end)))
            return end
        language = found.get("language")
        metadata = found.get("metadata")
        editor = metadata.get("vscode") if isinstance(metadata, dict) else None
        if isinstance(editor, dict) and "languageId" in editor:
            language = editor["languageId"]
        spoken = language.lower() if isinstance(language, str) else ""
        self.cells.append(Cell(number, found["cell_type"], spoken, source, Span(start, end)))
        return end

    # the grammar

    def space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        assert found is not None
        return found.end()

    def value(self, at: int) -> tuple[Any, int]:
        try:
            return self.scan(self.text, at)
        except StopIteration as stopped:
            raise json.JSONDecodeError("expecting a value", self.text, stopped.value) from None

    def members(self, at: int, visit: Callable[[str, int], int]) -> int:
        """Visit the members of the object at an offset; each visit returns where the value ends."""
        at = self.space(at + 1)
        if self.text[at : at + 1] == "}":
            return at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("expecting a name in double quotes", self.text, at)
            key, at = self.value(at)
            at = self.expect(self.space(at), ":")
            at = self.space(visit(key, self.space(at)))
            if self.text[at : at + 1] == "}":
                return at + 1
            at = self.space(self.expect(at, ","))

    def elements(self, at: int, visit: Callable[[int], int]) -> int:
        """Visit the elements of the array at an offset; each visit returns where the value ends."""
        at = self.space(at + 1)
        if self.text[at : at + 1] == "]":
            return at + 1
        while True:
            at = self.space(visit(at))
            if self.text[at : at + 1] == "]":
                return at + 1
            at = self.space(self.expect(at, ","))

    def expect(self, at: int, character: str) -> int:
        if self.text[at : at + 1] != character:
            raise json.JSONDecodeError(f"expecting {character!r}", self.text, at)
        return at + 1
