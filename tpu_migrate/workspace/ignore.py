"""Ignore rules: the patterns of one .gitignore, matched as git does.

A general-purpose matcher answers "is this path, or a folder above it, ignored?". A walk that comes
down from the top asks something narrower and cheaper: "does a rule name this very entry?". Only the
narrow answer lets a folder that the user names be visited although a rule names it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class _NeverMatches(Exception):
    """The pattern is malformed. Git takes such a line for one that matches nothing."""


@dataclass(frozen=True)
class _Rule:
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool
    by_name: bool


class IgnoreRules:
    """The rules of one ignore file, or of one list of globs."""

    def __init__(self, lines: Iterable[str]) -> None:
        names: set[str] = set()
        endings: set[str] = set()
        paths: set[str] = set()
        name_regexes: list[str] = []
        path_regexes: list[str] = []
        rules: list[_Rule] = []
        for line in lines:
            text = _without_trailing_spaces(line)
            if not text or text.startswith("#"):
                continue
            ignores = not text.startswith("!")
            text = text if ignores else text[1:]
            folders_only = text.endswith("/")
            text = text[:-1] if folders_only else text
            if not text:
                continue
            by_name = "/" not in text
            text = text[1:] if text.startswith("/") else text
            try:
                regex = _translate(text)
            except _NeverMatches:
                continue
            rules.append(_Rule(re.compile(regex, re.DOTALL), ignores, folders_only, by_name))
            literal = not _SPECIAL.search(text)
            if by_name and literal:
                names.add(text)
            elif by_name and text.startswith("*") and not _SPECIAL.search(text, 1):
                endings.add(text[1:])
            elif by_name:
                name_regexes.append(regex)
            elif literal:
                paths.add(text)
            else:
                path_regexes.append(regex)

        # Most entries match no rule at all, so that is what has to be answered fast: a set for plain
        # names, str.endswith for "*.log", and one regex for what is left.
        self._names = frozenset(names)
        self._endings = tuple(sorted(endings))
        self._paths = frozenset(paths)
        self._name_regex = _any_of(name_regexes)
        self._path_regex = _any_of(path_regexes)
        self._latest_first = tuple(reversed(rules))
        self.needs_path = bool(paths or path_regexes)
        """Whether `match` looks at ``path``; if not, it may be empty."""
        self.has_negation = any(not rule.ignores for rule in rules)

    def __bool__(self) -> bool:
        return bool(self._latest_first)

    def match(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Return True when the entry is ignored, False when it is re-included, None when no rule names it.

        Args:
            path: relative to the folder of the ignore file, with forward slashes.
            name: the last part of ``path``.
            is_folder: a symlink to a folder is not one.
        """
        if not (
            name in self._names
            or name.endswith(self._endings)
            or (self._name_regex and self._name_regex.fullmatch(name))
            or path in self._paths
            or (self._path_regex and self._path_regex.fullmatch(path))
        ):
            return None
        for rule in self._latest_first:
            if rule.folders_only and not is_folder:
                continue
            if rule.regex.fullmatch(name if rule.by_name else path):
                return rule.ignores
        return None

    def covers(self, path: str) -> bool:
        """Return whether a file, or a folder above it, is ignored.

        Args:
            path: of a file, relative, with forward slashes.
        """
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            verdict = self.match("/".join(parts[:count]), parts[count - 1], count < len(parts))
            if verdict is not None and (verdict or count == len(parts)):
                return verdict
        return False


def parse_ignore_file(data: bytes) -> IgnoreRules:
    """Return the rules in the bytes of a .gitignore (a BOM and CRLF line ends are fine)."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return IgnoreRules(line.removesuffix("\r") for line in text.split("\n"))


def _any_of(regexes: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL) if regexes else None


def _without_trailing_spaces(line: str) -> str:
    """Return the line without the spaces at its end; one that is escaped stays, and ends the line."""
    end, at = 0, 0
    while at < len(line):
        step = 2 if line[at] == "\\" else 1
        if line[at] != " ":
            end = at + step
        at += step
    return line[:end]


def _translate(pattern: str) -> str:
    """Return the regex for a glob without its leading and trailing slash.

    *.py     ->  [^/]*\\.py
    a/**/b   ->  a/(?:.*/)?b
    [!a-c]   ->  (?!/)[^a-c]
    """
    special = _SPECIAL.search(pattern)
    # Git compares the plain start of a pattern apart, so that a "**" right behind it counts as leading.
    plain = special.start() if special else len(pattern)
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            end = at
            while end < len(pattern) and pattern[end] == "*":
                end += 1
            opens = at in (0, plain) or pattern[at - 1] == "/"
            if end - at == 1 or not (opens and _closes(pattern, end)):
                out.append("[^/]*")
            elif pattern.startswith("/", end):
                out.append("(?:.*/)?")
                end += 1
            else:
                out.append(".*")
            at = end
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[":
            regex, at = _translate_set(pattern, at + 1)
            out.append(regex)
        elif char == "\\":
            if at + 1 == len(pattern):
                raise _NeverMatches
            out.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _closes(pattern: str, at: int) -> bool:
    return at == len(pattern) or pattern.startswith(("/", "\\/"), at)


def _translate_set(pattern: str, at: int) -> tuple[str, int]:
    """Return the regex for the bracket whose inside begins at ``at``, and the offset behind the bracket."""
    negated = pattern.startswith(("!", "^"), at)
    at += negated
    members: list[str] = []
    previous = ""
    first = True
    while first or not pattern.startswith("]", at):
        first = False
        char = pattern[at : at + 1]
        if not char:
            raise _NeverMatches
        if char == "-" and previous and pattern[at + 1 : at + 2] not in ("", "]"):
            at += 1
            last, at = _member(pattern, at)
            if previous <= last:
                members.append(f"{_quoted(previous)}-{_quoted(last)}")
            previous = ""
        elif pattern.startswith("[:", at):
            end = pattern.find("]", at + 2)
            if end < 0:
                raise _NeverMatches
            if pattern[end - 1] == ":" and end - 1 >= at + 2:
                if pattern[at + 2 : end - 1] not in _CLASSES:
                    raise _NeverMatches
                members.append(_CLASSES[pattern[at + 2 : end - 1]])
                at, previous = end + 1, ""
            else:
                members.append(_quoted("["))
                at, previous = at + 1, "["
        else:
            previous, at = _member(pattern, at)
            members.append(_quoted(previous))
    if not members:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(members)}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\":
        at += 1
        if at == len(pattern):
            raise _NeverMatches
    return pattern[at], at + 1


def _quoted(char: str) -> str:
    return "\\" + char if char in "\\]^-[&~|" else char
