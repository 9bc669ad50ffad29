"""Shell text as commands and words, with offsets. What can't be read plainly is not read at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tpu_migrate.findings import Span

OPENERS = frozenset(("then", "do", "else", "{", "(", ")", "if", "while", "until", "elif", "!"))
"""What a command can stand behind, apart from operators; ``)`` ends the pattern of a case."""
CONDITIONS = frozenset(("if", "while", "until", "elif", "!"))
CLOSERS = frozenset(("fi", "done", "}", "else", "elif", "esac", "then", "do", ")", ";;", ";&", ";;&"))
RESERVED = OPENERS | CLOSERS | frozenset("case for select function in time coproc [[".split())
"""Words that mean something else at the beginning of a command."""

_KEYWORDS = frozenset(("then", "do", "else", "{", "if", "while", "until", "elif", "!"))
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&(?!>)|\(|\)")
_REDIRECT = re.compile(r"(?:\d*(?:<<<|<<-?|<>|<&|>>|>&|>\||<|>)|&>>?)")
_PLAIN_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\}|[@*#?])")


class Unreadable(Exception):
    """Quotes or brackets that don't close."""


@dataclass(frozen=True)
class Word:
    """One word of a command."""

    span: Span
    raw: str
    value: str | None
    """Without quotes; simple variables stay as they are written. None where a command is run in it."""


@dataclass
class Command:
    """One simple command."""

    words: list[Word] = field(default_factory=list)
    before: str = ""
    """The operator or keyword it stands behind; empty at the start of the region."""
    after: str = ""
    """The operator that follows; a newline, or empty at the end of the region."""
    after_span: Span = field(default_factory=lambda: Span(0, 0))
    end: int = 0
    """Just past its last word or redirection."""
    redirects: list[str] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.words[0].span.start


@dataclass(frozen=True)
class Shell:
    """A region of shell text, read."""

    commands: list[Command]
    comments: list[Span]


def read_shell(text: str, start: int, end: int, *, docker: bool = False, folded: bool = False) -> Shell:
    """Read a region of a text as shell.

    Args:
        text: the whole text.
        start: where the region begins.
        end: where it ends.
        docker: comment lines may stand inside continued lines, as in a Dockerfile.
        folded: newlines are blanks, as in folded YAML text.

    Raises:
        Unreadable: quotes or brackets don't close.
    """
    return _Reader(text, start, end, docker, folded).read()


class _Reader:
    def __init__(self, text: str, start: int, end: int, docker: bool, folded: bool) -> None:
        self.text, self.position, self.end, self.folded = text, start, end, folded
        self.docker = docker
        self.continued = re.compile(r"\\[ \t]*\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*" if docker else r"\\\r?\n")
        self.commands: list[Command] = []
        self.comments: list[Span] = []
        self.heredocs: list[tuple[str, bool]] = []
        self.current = Command()
        self.redirected = start
        """Where the first redirection of the current command begins."""

    def read(self) -> Shell:
        while self.position < self.end:
            self._step()
        self._finish("", Span(self.end, self.end))
        return Shell(self.commands, self.comments)

    def _step(self) -> None:
        text, at = self.text, self.position
        char = text[at]
        if char in " \t\r" or (char == "\n" and self.folded):
            self.position += 1
        elif found := self.continued.match(text, at, self.end):
            self._comments_inside(found.group(), at)
            self.position = found.end()
        elif char == "\n":
            self.position += 1
            self._finish("\n", Span(at, at + 1))
            self._skip_heredocs()
        elif char == "#":
            stop = text.find("\n", at, self.end)
            self.position = self.end if stop == -1 else stop
            self.comments.append(Span(at, self.position))
        elif found := _REDIRECT.match(text, at, self.end):
            self._redirect(found)
        elif found := _OPERATOR.match(text, at, self.end):
            self.position = found.end()
            self._finish(found.group(), Span(*found.span()))
        else:
            word = self._word()
            if not self.current.words and word.value == word.raw and word.value in _KEYWORDS:
                self.current.before = word.raw
            else:
                self.current.words.append(word)
                self.current.end = word.span.end

    def _comments_inside(self, continuation: str, at: int) -> None:
        if self.docker:
            for found in re.finditer(r"#[^\n]*", continuation):
                self.comments.append(Span(at + found.start(), at + found.end()))

    def _finish(self, operator: str, span: Span) -> None:
        current = self.current
        if current.redirects and not current.words:  # a redirection alone is a command too
            whole = Span(self.redirected, current.end)
            current.words.append(Word(whole, self.text[whole.start : whole.end], None))
        if current.words:
            current.after, current.after_span = operator, span
            self.commands.append(current)
            self.current = Command(before=operator)
        elif operator not in ("\n", ";") or not current.before:
            self.current.before = operator

    def _redirect(self, found: re.Match[str]) -> None:
        operator = found.group().lstrip("0123456789")
        if not self.current.redirects:
            self.redirected = found.start()
        self.position = found.end()
        if self.text[self.position : self.position + 1] == "(":  # process substitution
            self._balanced("(", ")")
            self.current.end = self.position
            return
        while self.position < self.end and self.text[self.position] in " \t":
            self.position += 1
        if self.position >= self.end or self.text[self.position] in "\r\n;|&":
            raise Unreadable
        word = self._word()
        self.current.redirects.append(operator)
        self.current.end = word.span.end
        if operator in ("<<", "<<-"):
            if word.value is None:
                raise Unreadable
            self.heredocs.append((word.value, operator == "<<-"))

    def _skip_heredocs(self) -> None:
        for mark, tabs in self.heredocs:
            while True:
                if self.position >= self.end:
                    raise Unreadable
                stop = self.text.find("\n", self.position, self.end)
                stop = self.end if stop == -1 else stop
                line = self.text[self.position : stop].rstrip("\r")
                self.position = min(stop + 1, self.end)
                if (line.lstrip("\t") if tabs else line.strip()) == mark:
                    break
        self.heredocs = []

    def _word(self) -> Word:
        start = self.position
        literal: list[str] = []
        runs_commands = False
        while self.position < self.end:
            text, at = self.text, self.position
            char = text[at]
            if char in " \t\r\n" or self.continued.match(text, at, self.end):
                break
            if char == "(" and text[at - 1] == "=" and at > start:  # an array
                self._balanced("(", ")")
                runs_commands = True
            elif char in ";|&()<>":
                break
            elif char == "'":
                stop = text.find("'", at + 1, self.end)
                if stop == -1:
                    raise Unreadable
                literal.append(text[at + 1 : stop])
                self.position = stop + 1
            elif char == '"':
                part, runs = self._double_quoted()
                literal.append(part)
                runs_commands |= runs
            elif char == "\\":
                literal.append(text[at + 1 : at + 2])
                self.position += 2
            elif char == "`" or (char == "$" and text[at + 1 : at + 2] in ("(", "{")):
                part, runs = self._expansion()
                literal.append(part)
                runs_commands |= runs
            else:
                literal.append(char)
                self.position += 1
        if self.position > self.end or self.position == start:
            raise Unreadable
        raw = self.text[start : self.position]
        return Word(Span(start, self.position), raw, None if runs_commands else "".join(literal))

    def _double_quoted(self) -> tuple[str, bool]:
        literal: list[str] = []
        runs_commands = False
        self.position += 1
        while self.position < self.end:
            char = self.text[self.position]
            if char == '"':
                self.position += 1
                return "".join(literal), runs_commands
            if char == "\\":
                literal.append(self.text[self.position : self.position + 2])
                self.position += 2
            elif char == "`" or (
                char == "$" and self.text[self.position + 1 : self.position + 2] in ("(", "{")
            ):
                part, runs = self._expansion()
                literal.append(part)
                runs_commands |= runs
            else:
                literal.append(char)
                self.position += 1
        raise Unreadable

    def _expansion(self) -> tuple[str, bool]:
        """``${name}``, ``$(command)`` or a command in backquotes; whether it may run something."""
        start = self.position
        if self.text[start] == "`":
            stop = self.text.find("`", start + 1, self.end)
            if stop == -1:
                raise Unreadable
            self.position = stop + 1
            return self.text[start : stop + 1], True
        self.position += 1
        opening = self.text[self.position]
        self._balanced(opening, ")" if opening == "(" else "}")
        raw = self.text[start : self.position]
        return raw, _PLAIN_VARIABLE.fullmatch(raw) is None

    def _balanced(self, opening: str, closing: str) -> None:
        """Go past a bracket and what it holds."""
        depth = 0
        while self.position < self.end:
            char = self.text[self.position]
            if char == "\\":
                self.position += 1
            elif char == "'":
                stop = self.text.find("'", self.position + 1, self.end)
                if stop == -1:
                    raise Unreadable
                self.position = stop
            elif char == '"':
                self._double_quoted()
                continue
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
            self.position += 1
            if depth == 0:
                return
        raise Unreadable


def values(words: Iterable[Word]) -> list[str]:
    """What words are worth, empty for those that aren't plain."""
    return [word.value or "" for word in words]
