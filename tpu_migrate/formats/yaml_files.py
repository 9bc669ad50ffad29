"""YAML that starts programs: compose, Kubernetes, SkyPilot, GitHub workflows, accelerate's configuration.

Read line by line and edited in place: a parser would lose comments, quotes and layout, and the forms that can
be edited safely are few. Everything else that mentions torch_xla gets a finding.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from tpu_migrate.findings import Edit, Span
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.launching import Found, Page, mentions, migrate
from tpu_migrate.formats.shell import scan
from tpu_migrate.python.rewrite import Engine, Rewritten

_ENVIRONMENTS = frozenset(("env", "environment", "envs", "variables", "env_vars", "env_variables"))
_COMMANDS = frozenset(
    "run script setup command cmd args entrypoint before_script after_script install test".split()
)
_KEY = re.compile(
    r"(?P<dashes>(?:-[ ]+)*)(?P<key>[A-Za-z_][\w.-]*|'[\w.-]+'|\"[\w.-]+\")[ \t]*:(?=[ \t]|$)[ \t]*"
)
_ITEM = re.compile(r"(?:-[ ]+)+")
_BLOCK = re.compile(r"([|>])[-+\d]*[ \t]*(?:#.*)?$")
_PAIR = re.compile(r"-[ ]+(['\"]?)([A-Z]\w*)=([^'\"\s#&*!]*)\1[ \t]*(?:#.*)?$")
_NAMED = re.compile(r"-[ ]+name:[ \t]+(['\"]?)([A-Z]\w*)\1[ \t]*$")
_VALUE = re.compile(r"value:[ \t]+(['\"]?)([\w.;:/-]+)\1[ \t]*$")
_NAMED_INLINE = re.compile(
    r"-[ ]+\{[ ]*name:[ ]*(['\"]?)([A-Z]\w*)\1,[ ]*value:[ ]*(['\"]?)([\w.;:/-]+)\3[ ]*\}[ \t]*$"
)
_SCALAR = re.compile(r"(['\"]?)([\w.;:/-]*)\1[ \t]*(?:[ \t]#.*)?$")
_DEFAULTS = frozenset(("", "null", "~", "false", "no", "[]", "main"))


@dataclass(frozen=True)
class _Line:
    start: int
    end: int
    """Just past its newline."""
    indent: int
    content: str
    """Without indentation and newline; empty for blank lines."""

    @property
    def at(self) -> int:
        """Where its content begins."""
        return self.start + self.indent

    @property
    def is_text(self) -> bool:
        return bool(self.content) and not self.content.startswith("#")


def rewrite_yaml(engine: Engine, path: str, data: bytes, _: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite a YAML file.

    Args:
        engine: rules and settings.
        path: repository path of the file.
        data: its bytes.
    """
    return migrate(engine, path, data, _read)


def _read(page: Page) -> None:
    _Yaml(page).run()


class _Yaml:
    def __init__(self, page: Page) -> None:
        self.page = page
        starts = [*page.source.line_starts, len(page.text)]
        self.lines: list[_Line] = []
        for start, end in itertools.pairwise(starts):
            raw = page.text[start:end].rstrip("\r\n")
            content = raw.lstrip(" ")
            self.lines.append(_Line(start, end, len(raw) - len(content), content.rstrip()))
        self.dropped: dict[int, list[tuple[int, Span, str]]] = {}
        """By number of the parent's line: (line, span, symbol) of entries that can go."""
        self.also: dict[int, int] = {}
        """The last line of entries that take several."""

    def run(self) -> None:
        number = 0
        while number < len(self.lines):
            number = self._line(number)
        for parent, entries in self.dropped.items():
            self._drop(parent, entries)
        self._accelerate()

    def _line(self, number: int) -> int:
        """Read what begins on a line; the number of the next line to read."""
        line = self.lines[number]
        if not line.is_text:
            if line.content:
                self.page.comments.append(Span(line.at, line.end))
            return number + 1
        if comment := re.search(r"(?<=[ \t])#[^'\"]*$", line.content):
            self.page.comments.append(Span(line.at + comment.start(), line.end))
        self._entry(number)
        key = _KEY.match(line.content)
        item = _ITEM.match(line.content)
        name = key["key"].strip("'\"") if key else ""
        opening = key or item
        if opening is None:
            return number + 1
        value = line.content[opening.end() :]
        if not key:
            parent = self._parent(number)
            name = self._key(parent) if parent is not None else ""
        if block := _BLOCK.match(value):
            return self._block(number, line.indent, name, folded=block[1] == ">")
        if name in _COMMANDS and value and value[0] not in "[{&*!|>%@`":
            self._inline(line, opening.end(), value)
        return number + 1

    def _block(self, number: int, indent: int, name: str, folded: bool) -> int:
        last = number + 1
        while last < len(self.lines) and (not self.lines[last].content or self.lines[last].indent > indent):
            last += 1
        while last > number + 1 and not self.lines[last - 1].content:
            last -= 1
        if name in _COMMANDS and last > number + 1:
            body = Span(self.lines[number + 1].start, self.lines[last - 1].end)
            first = self.lines[number + 1].content
            if not first.startswith("#!") or re.match(r"#!.*\b(?:ba|z)?sh\b", first):
                before = len(self.page.found)
                scan(self.page, body.start, body.end, inside=True, folded=folded)
                self._keep_indentation(before, body.start, self.lines[number + 1].indent)
        return last

    def _keep_indentation(self, before: int, start: int, indent: int) -> None:
        """Take back deletions after which a block would begin deeper: YAML reads it by its first line."""
        spans = {edit.span for one in self.page.found[before:] for edit in one.edits if not edit.parts}
        position = start
        while span := next((span for span in spans if span.start == position), None):
            position = span.end
        found = re.compile(r"(?:[ \t]*\r?\n)*([ ]*)").match(self.page.text, position)
        if position == start or found is None or len(found[1]) == indent:
            return
        self.page.found[before:] = [
            Found(one.span, one.symbol, (), "the block would begin with other indentation")
            if any(start <= edit.span.start < position for edit in one.edits)
            else one
            for one in self.page.found[before:]
        ]

    def _inline(self, line: _Line, offset: int, value: str) -> None:
        start = line.at + offset
        if value[0] in "'\"":
            closing = value.rfind(value[0])
            inner = value[1:closing]
            if closing == 0 or value[0] in inner or "\\" in inner:
                return
            scan(self.page, start + 1, start + closing, inside=True)
        elif (": " not in value) and not self._continues(line):
            before = len(self.page.found)
            scan(self.page, start, start + len(value), inside=True)
            # a lone colon is no plain YAML text
            self.page.found[before:] = [
                Found(one.span, one.symbol, (), "nothing else is run here")
                if any(":" in edit.parts for edit in one.edits)
                else one
                for one in self.page.found[before:]
            ]

    def _continues(self, line: _Line) -> bool:
        """Whether a plain value goes on in the next line."""
        following = next((other for other in self.lines if other.start >= line.end and other.content), None)
        if following is None or following.indent <= line.indent:
            return False
        dashes = _ITEM.match(line.content)
        return following.indent > line.indent + (len(dashes.group()) if dashes else 0)

    def _parent(self, number: int) -> int | None:
        """The line whose block a line is an entry of."""
        line = self.lines[number]
        listed = line.content.startswith("- ")
        for index in range(number - 1, -1, -1):
            other = self.lines[index]
            if not other.is_text:
                continue
            if other.indent < line.indent:
                return index
            if listed and other.indent == line.indent and not other.content.startswith("-"):
                return index
        return None

    def _key(self, number: int) -> str:
        found = _KEY.match(self.lines[number].content)
        return found["key"].strip("'\"") if found else ""

    def _entry(self, number: int) -> None:
        """An environment variable, in one of the forms in which it can be dropped."""
        line = self.lines[number]
        last, value = number, ""
        if found := _NAMED.match(line.content):
            name, offset = found[2], found.start(2)
            following = self.lines[number + 1] if number + 1 < len(self.lines) else None
            plain = _VALUE.match(following.content) if following else None
            inner = line.indent + len(_ITEM.match(line.content).group())  # type: ignore[union-attr]
            if (
                following is None
                or plain is None
                or following.indent != inner
                or self._longer(number + 1, inner)
            ):
                return
            value, last = plain[2], number + 1
        elif found := _NAMED_INLINE.match(line.content):
            name, offset, value = found[2], found.start(2), found[4]
        elif found := _PAIR.match(line.content):
            name, offset, value = found[2], found.start(2), found[3]
        elif found := _KEY.match(line.content):
            name, offset = (
                found["key"].strip("'\""),
                found.start("key") + found["key"].index(found["key"].strip("'\"")),
            )
            scalar = _SCALAR.match(line.content, found.end())
            if found["dashes"] or scalar is None:
                return
            value = scalar[2]
        else:
            return
        if not self.page.knows(name):
            return
        span = Span(line.at + offset, line.at + offset + len(name))
        parent = self._parent(number)
        refusal = self.page.can_drop(name, value)
        if last == number and self._longer(number, line.indent + 1):
            refusal = "its value goes on in the next line"
        if not refusal and (parent is None or self._key(parent) not in _ENVIRONMENTS):
            refusal = "it stands in a block that is not known to set variables"
        elif not refusal and parent is not None and not self._opens(parent):
            refusal = "the block it stands in is written in a way no rule knows"
        if refusal:
            self.page.found.append(Found(span, "env." + name, refusal=refusal))
            return
        assert parent is not None
        self.also[number] = last
        self.dropped.setdefault(parent, []).append((number, span, "env." + name))

    def _longer(self, number: int, inner: int) -> bool:
        """Whether an item has more keys after this line."""
        following = next((line for line in self.lines[number + 1 :] if line.is_text), None)
        return following is not None and following.indent >= inner

    def _opens(self, parent: int) -> bool:
        """Whether a line holds a key alone, with nothing but a block below."""
        content = self.lines[parent].content
        found = _KEY.match(content)
        return found is not None and not re.sub(r"#.*$", "", content[found.end() :]).strip()

    def _drop(self, parent: int, entries: list[tuple[int, Span, str]]) -> None:
        """Delete entries; their parent too when none is left and it is no item's first key."""
        gone = {line for number, _, _ in entries for line in range(number, self.also[number] + 1)}
        rest = self._children(parent) - gone
        refusal = ""
        if not rest:
            head = self.lines[parent]
            if head.content.startswith("-") or self._only_child(parent):
                refusal = "nothing would be left in the block around it"
        for number, span, symbol in entries:
            made = [Edit(Span(self.lines[number].start, self.lines[self.also[number]].end))]
            if not rest and not refusal:
                made.append(Edit(Span(self.lines[parent].start, self.lines[parent].end)))
            self.page.found.append(Found(span, symbol, () if refusal else tuple(made), refusal))

    def _children(self, parent: int) -> set[int]:
        """Lines with text below a key."""
        head = self.lines[parent]
        indent = head.indent
        if head.content.startswith("-"):
            found = _ITEM.match(head.content)
            indent += len(found.group()) if found else 0
        inside = set()
        for index in range(parent + 1, len(self.lines)):
            line = self.lines[index]
            if not line.is_text:
                continue
            if line.indent > indent or (line.indent == indent and line.content.startswith("- ")):
                inside.add(index)
            else:
                break
        return inside

    def _only_child(self, number: int) -> bool:
        """Whether the block around a key holds nothing else."""
        above = self._parent(number)
        if above is None:
            others = {
                index for index, line in enumerate(self.lines) if line.is_text and line.content != "---"
            }
        else:
            others = self._children(above)
            if self.lines[above].content.startswith("-"):
                return False  # the item has its first key beside it
        return not others - self._children(number) - {number}

    def _accelerate(self) -> None:
        """Keys of accelerate's and the Trainer's configuration."""
        text = self.page.text
        kind = re.search(r"^distributed_type:[ \t]*['\"]?(?P<value>TPU|XLA)\b", text, re.MULTILINE)
        for found in re.finditer(
            r"^(?P<indent>[ ]*)(?:-[ ]+)?"
            r"(?P<key>distributed_type|tpu_\w+|downcast_bf16|xla|xla_fsdp_\w+)[ \t]*:"
            r"[ \t]*(?P<value>[^\n#]*?)[ \t]*\r?$",
            text,
            re.MULTILINE,
        ):
            key, value = found["key"], found["value"].strip("'\"").lower()
            span = Span(*found.span("key"))
            is_config = (
                re.search(r"^(?:distributed_type|compute_environment):", text, re.MULTILINE) is not None
            )
            if key == "distributed_type":
                if value in ("tpu", "xla") and not found["indent"]:
                    self.page.found.append(Found(span, "setting.accelerate_tpu"))
            elif key == "downcast_bf16":
                if is_config and value not in _DEFAULTS:
                    self.page.found.append(Found(span, "setting.downcast_bf16"))
            elif key == "xla" and value not in ("true", "yes", "on"):
                continue
            elif key.startswith("xla"):
                if key != "xla" or re.search(r"fsdp", text, re.IGNORECASE):
                    self.page.found.append(Found(span, "setting.xla_fsdp"))
            elif is_config and (value not in _DEFAULTS or (kind and value == "true")):
                if not any(one.span == span for one in self.page.found):
                    self.page.found.append(Found(span, "setting.accelerate_tpu"))


YAML = Format("yaml", (".yml", ".yaml"), rewrite_yaml, mentions=mentions)
