"""Which rule is about a use of a name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import libcst as cst

from tpu_migrate.python.pattern import Captures, Pattern, PatternError, match_call, parse_pattern
from tpu_migrate.rules import Rule, RuleBook, RuleError


@dataclass(frozen=True)
class Match:
    """A rule and what it matched."""

    rule: Rule
    pattern: Pattern
    captures: Captures | None
    """Of the call's arguments; None where the pattern isn't about a call's arguments."""
    symbol: str
    """The part of the qualified name that the rule is about."""
    refusal: str = ""
    """Why the rule is named but can't be applied: the use isn't of a form it knows."""


class Matcher:
    """An index over a rule book's patterns."""

    def __init__(self, book: RuleBook) -> None:
        """Index the rules.

        Raises:
            RuleError: a pattern can't be read.
        """
        self.book = book
        self._calls: dict[str, list[tuple[Rule, Pattern]]] = defaultdict(list)
        self._names: dict[str, list[tuple[Rule, Pattern]]] = defaultdict(list)
        self._prefixes: dict[str, list[tuple[Rule, Pattern]]] = defaultdict(list)
        for rule in book.rules:
            for text in rule.match:
                try:
                    pattern = parse_pattern(text)
                except PatternError as error:
                    raise RuleError(f"{rule.file}: {rule.code}.match: {error}") from None
                if pattern.is_call:
                    table = self._calls
                elif pattern.prefix:
                    table = self._prefixes
                else:
                    table = self._names
                table[pattern.qualified_name].append((rule, pattern))
        for calls in self._calls.values():
            calls.sort(key=lambda entry: (_generality(entry[1]), not entry[0].own, entry[0].code))
        for table in (self._names, self._prefixes):
            for entries in table.values():
                entries.sort(key=lambda entry: (not entry[0].own, entry[0].code))

    @property
    def known_names(self) -> set[str]:
        """Qualified names that rules are about, for star imports."""
        return {*self._calls, *self._names}

    def find(self, qualified_name: str, call: cst.Call | None, kind: str) -> Match | None:
        """The first rule that fits: calls by signature, then the name, then its prefixes.

        Args:
            qualified_name: what is used.
            call: the call whose function it is, if it is called.
            kind: of the program the file belongs to.
        """
        if call is not None:
            for rule, pattern in self._calls.get(qualified_name, ()):
                if not self._fits(rule, kind):
                    continue
                captures = match_call(pattern, call.args)
                if captures is not None:
                    return Match(rule, pattern, captures, qualified_name)
        name = qualified_name
        calls = [entry for entry in self._calls.get(qualified_name, ()) if self._asks(entry[0], kind)]
        if calls and not any(self._fits(rule, kind) for rule, _ in self._names.get(qualified_name, ())):
            reason = (
                "passed on, not called here" if call is None else "its arguments are of a form no rule knows"
            )
            return self._passed_on(qualified_name, kind, reason)
        while name:
            for rule, pattern in self._names.get(name, ()):
                exact = rule.options.get("exact") and name != qualified_name
                if self._fits(rule, kind) and not exact:
                    return Match(rule, pattern, None, name)
            if name != qualified_name and any(
                self._asks(rule, kind) for rule, _ in self._calls.get(name, ())
            ):
                return self._passed_on(name, kind, "an attribute of it is used")
            for rule, pattern in self._prefixes.get(name, ()):
                if name != qualified_name and self._fits(rule, kind):
                    return Match(rule, pattern, None, name)
            name = name.rpartition(".")[0]
        return None

    def _passed_on(self, name: str, kind: str, reason: str) -> Match:
        """The rule to name where a function is used in a way that no pattern is about."""
        calls = [entry for entry in self._calls[name] if self._asks(entry[0], kind)]
        rule, _ = next((entry for entry in calls if _generality(entry[1]) == (0, False)), calls[-1])
        return Match(rule, Pattern(name, name), None, name, reason)

    def _asks(self, rule: Rule, kind: str) -> bool:
        """Whether a rule about calls has a say in other uses of the name too.

        With ``only_calls`` it hasn't: most uses of ``transformers.TrainingArguments`` are no rule's business.
        """
        return self._fits(rule, kind) and not rule.options.get("only_calls")

    @staticmethod
    def _fits(rule: Rule, kind: str) -> bool:
        return not rule.programs or kind in rule.programs


def _generality(pattern: Pattern) -> tuple[int, bool]:
    """Patterns that want literals come first, those that take any call last."""
    literals = sum(not parameter.captured for parameter in pattern.parameters or ())
    return (-literals, pattern.open_ended and not pattern.parameters)
