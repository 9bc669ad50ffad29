"""Shell scripts and Makefiles, and the scanner for shell text wherever it stands."""

from __future__ import annotations

import re

from tpu_migrate.findings import Edit, Span
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.launching import Found, Page, mentions, migrate
from tpu_migrate.formats.shell_commands import find_in_command
from tpu_migrate.formats.shell_words import (
    CLOSERS,
    CONDITIONS,
    OPENERS,
    RESERVED,
    Command,
    Unreadable,
    Word,
    read_shell,
)
from tpu_migrate.python.rewrite import Engine, Rewritten

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?=)")
_WRAPPERS = frozenset(("sudo", "env", "nohup", "exec", "time", "command"))
_EXPORTS = frozenset(("export", "declare", "typeset", "local", "readonly"))
_NESTED = re.compile(r"(?:--command=|-c=)?(['\"])")
_RECIPE = re.compile(r"^\t((?:[^\\\n]|\\(?:\r?\n|.))*)", re.MULTILINE)
_MAKE_VARIABLE = re.compile(
    r"^(?:export[ ]+)?([A-Za-z_]\w*)[ \t]*(?::|\?|::|\+)?=[ \t]*([^\n#]*?)[ \t]*\r?$", re.MULTILINE
)


def scan(
    page: Page,
    start: int,
    end: int,
    *,
    outer: Span | None = None,
    inside: bool = False,
    docker: bool = False,
    folded: bool = False,
) -> None:
    """Find what a region of shell text holds.

    Args:
        page: gets what is found.
        start: where the region begins.
        end: where it ends.
        outer: what goes when no command is left in the region.
        inside: the region is part of something that needs a command, so that ``:`` stays when none is left.
        docker: as in a Dockerfile, comment lines may stand inside continued lines.
        folded: newlines are blanks.
    """
    try:
        shell = read_shell(page.text, start, end, docker=docker, folded=folded)
    except Unreadable:
        return
    page.comments += shell.comments
    region = _Region(page, shell.commands, Span(start, end), outer, inside or folded)
    for command in shell.commands:
        region.command(command)
    region.settle()


class _Region:
    """Commands of one region, some of which leave."""

    def __init__(
        self, page: Page, commands: list[Command], span: Span, outer: Span | None, inside: bool
    ) -> None:
        self.page, self.alive, self.span, self.outer, self.inside = page, list(commands), span, outer, inside
        self.leaving: list[tuple[Command, list[tuple[Span, str]]]] = []

    def command(self, command: Command) -> None:
        words = command.words
        index, exporting, assigned = 0, False, []
        for index, word in enumerate(words):
            if found := _ASSIGNMENT.match(word.raw):
                assigned.append((index, found[1], word))
            elif exporting and (word.raw.startswith("-") or re.fullmatch(r"[A-Za-z_]\w*", word.raw)):
                if not word.raw.startswith("-"):
                    assigned.append((index, word.raw, word))
            elif not exporting and word.value in _EXPORTS:
                exporting = True
            elif exporting or word.value not in _WRAPPERS:
                break
        else:
            index = len(words)
        rest = words[index:]
        self._assignments(command, assigned, rest, exporting)
        if not rest:
            return
        if appended := self._appended(command, rest):
            self.leaving.append((command, appended))
            return
        find_in_command(self.page, rest)
        self._nested(rest)

    def _assignments(
        self, command: Command, assigned: list[tuple[int, str, Word]], rest: list[Word], exporting: bool
    ) -> None:
        dropped: dict[int, tuple[Span, str]] = {}
        for index, name, word in assigned:
            if not self.page.knows(name):
                continue
            span = Span(word.span.start, word.span.start + len(name))
            parts = word.value.partition("=") if word.value is not None else ("", "", None)
            refusal = self.page.can_drop(name, parts[2]) if "=" in word.raw else "it is passed on"
            if refusal:
                self.page.found.append(Found(span, "env." + name, refusal=refusal))
            else:
                dropped[index] = (span, "env." + name)
        if not dropped:
            return
        if len(dropped) == len(assigned) and not rest and not command.redirects:
            self.leaving.append((command, list(dropped.values())))
            return
        words = command.words
        for first, last in _runs(sorted(dropped)):
            edits: tuple[Edit, ...] = ()
            continued = (
                last + 1 < len(words)
                and "\n" in (self.page.text[words[last].span.end : words[last + 1].span.start])
            )
            if last + 1 < len(words) and not (first and continued):
                edits = (Edit(Span(words[first].span.start, words[last + 1].span.start)),)
            elif first:
                edits = (Edit(Span(words[first - 1].span.end, words[last].span.end)),)
            if not first and last + 1 < len(words) and words[last + 1].raw in RESERVED:
                edits = ()
            if edits and not _only_blanks(self.page.text, edits[0].span, words[first : last + 1]):
                edits = ()
            for index in range(first, last + 1):
                self.page.found.append(Found(*dropped[index], edits))

    def _appended(self, command: Command, rest: list[Word]) -> list[tuple[Span, str]]:
        """``echo "export PJRT_DEVICE=TPU" >> ~/.bashrc`` as a whole."""
        if len(rest) != 2 or rest[0].value != "echo" or command.redirects != [">>"]:
            return []
        found = re.fullmatch(r"(['\"])(export[ ]+)([A-Za-z_]\w*)=([\w.;:/-]+)\1", rest[1].raw)
        if found is None or not self.page.knows(found[3]) or self.page.can_drop(found[3], found[4]):
            return []
        start = rest[1].span.start + found.start(3)
        return [(Span(start, start + len(found[3])), "env." + found[3])]

    def _nested(self, rest: list[Word]) -> None:
        """Commands handed on in quotes: to another host, or to another shell."""
        names = {(word.value or "").rpartition("/")[2] for word in rest}
        remote = bool(names & {"gcloud", "ssh", "bash", "sh", "zsh", "eopod", "podrun", "xpk"})
        for previous, word in zip([None, *rest], rest, strict=False):
            flag = previous.value if previous is not None else ""
            opening = _NESTED.match(word.raw)
            if opening is None or not remote or not word.raw.endswith(opening[1]):
                continue
            if not opening.group().startswith("-") and flag not in ("-c", "--command", "-lc", "-ic", "-lic"):
                if "ssh" not in names or word is not rest[-1]:
                    continue
            first, last = word.span.start + opening.end(), word.span.end - 1
            if opening[1] not in self.page.text[first:last].replace("\\" + opening[1], ""):
                scan(self.page, first, last, inside=True)

    def settle(self) -> None:
        """Turn commands that leave into edits."""
        leaving = [command for command, _ in self.leaving]
        if leaving and self.outer is not None and len(leaving) == len(self.alive):
            edit = Edit(self.outer)
            for _, found in self.leaving:
                self.page.found += [Found(*one, (edit,)) for one in found]
            return
        for command, found in self.leaving:
            edit = self._leave(command)
            self.page.found += [Found(*one, (edit,)) for one in found]

    def _leave(self, command: Command) -> Edit:
        index = next(number for number, other in enumerate(self.alive) if other is command)
        previous = self.alive[index - 1] if index else None
        following = self.alive[index + 1] if index + 1 < len(self.alive) else None
        if self._needed(command, following):
            return Edit(Span(command.start, command.end), (":",))
        del self.alive[index]
        if following is not None:
            following.before = (
                command.before if command.before in OPENERS or not previous else following.before
            )
            if command.after == "\n" or following.before not in OPENERS:
                following.before = command.before
        return Edit(self._whole(command, previous, following))

    def _needed(self, command: Command, following: Command | None) -> bool:
        """Whether a command has to stand here for the rest to mean what it means."""
        if command.before in ("||", "|", *CONDITIONS) or command.after in ("||", "|", "|&", "&"):
            return True
        opened = command.before in OPENERS or (self.inside and command is self.alive[0])
        closed = (
            command.after in CLOSERS
            or (following is not None and {following.words[0].raw, following.before} & CLOSERS)
            or (self.inside and following is None)
        )
        return opened and bool(closed)

    def _whole(self, command: Command, previous: Command | None, following: Command | None) -> Span:
        text, start, end = self.page.text, command.start, command.end
        after = text.find("\n", end, self.span.end)
        after = self.span.end if after == -1 else after
        if command.after == "&&" and following is not None:
            return Span(start, following.start)
        if command.after == ";":
            end = command.after_span.end
            if following is not None and not text[end : following.start].strip(" \t"):
                return Span(start, following.start)
        elif command.before == "&&" and previous is not None:
            return Span(previous.end, end)
        line = max(text.rfind("\n", 0, start) + 1, self.span.start)
        whole_lines = line == 0 or text[line - 1] == "\n"
        if not text[line:start].strip() and whole_lines and not text[end:after].strip():
            return Span(line, min(after + 1, self.span.end))
        if not text[line:start].strip() and whole_lines and text[end:after].lstrip().startswith("#"):
            return Span(start, after - len(text[end:after].lstrip()))
        if command.before == ";" and previous is not None and previous.after_span.start >= line:
            return Span(previous.end, end)
        if not text[end:after].strip() and following is not None and not text[line:start].strip():
            return Span(start, following.start)  # the region begins in the middle of a line
        return Span(start, end)


def _runs(indices: list[int]) -> list[tuple[int, int]]:
    """Neighbouring numbers, as (first, last)."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


def _only_blanks(text: str, span: Span, words: list[Word]) -> bool:
    """Whether a span holds nothing but these words, blanks and continued lines."""
    rest = text[span.start : span.end]
    for word in words:
        rest = rest.replace(word.raw, "", 1)
    return not re.sub(r"\\\r?\n", "", rest).strip()


def _read_script(page: Page) -> None:
    scan(page, 0, len(page.text))


def _read_makefile(page: Page) -> None:
    """Recipes are shell, line by line; variables are the make's own."""
    text = page.text
    for found in re.finditer(r"(?m)^[ ]*#.*$", text):
        page.comments.append(Span(*found.span()))
    for found in _RECIPE.finditer(text):
        start = found.start(1)
        while start < found.end(1) and text[start] in "@-+ \t":
            start += 1
        scan(page, start, found.end(1), inside=True)
    for found in _MAKE_VARIABLE.finditer(text):
        name, value = found[1], found[2]
        if not page.knows(name):
            continue
        span = Span(found.start(1), found.end(1))
        refusal = page.can_drop(name, value if not re.search(r"[$\\]", value) else None)
        if not refusal and not found.group().startswith("export"):
            refusal = "make uses it for itself, or hands it on elsewhere"
        end = min(found.end() + 1, len(text))
        edits = () if refusal else (Edit(Span(found.start(), end)),)
        page.found.append(Found(span, "env." + name, edits, refusal))


def is_makefile(path: str) -> bool:
    """Whether a file is called like a Makefile."""
    name = path.rpartition("/")[2]
    return name in ("Makefile", "makefile", "GNUmakefile") or name.endswith(".mk")


def rewrite_shell(engine: Engine, path: str, data: bytes, _: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite a shell script or a Makefile.

    Args:
        engine: rules and settings.
        path: repository path of the file.
        data: its bytes.
    """
    return migrate(engine, path, data, _read_makefile if is_makefile(path) else _read_script)


SHELL = Format("shell", (".sh", ".bash"), rewrite_shell, mentions=mentions)
MAKEFILE = Format(
    "makefile", ("Makefile", "makefile", "GNUmakefile", ".mk"), rewrite_shell, is_makefile, mentions
)
