"""Rules: what becomes what, why, and how safe. Loaded from TOML, validated, never executed.

A rule file holds one table a code:

    [TX101]
    name = "xla-device"
    match = ["torch_xla.device()"]
    replace = "@device"
    safety = "safe"
    why = "..."

``docs/adding-a-rule.md`` describes every key.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tpu_migrate.findings import Safety

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = ("single-process", "multi-process", "spmd", "library")

_KEYS: dict[str, type] = {
    "name": str,
    "match": list,
    "replace": str,
    "without_group": str,
    "imports": list,
    "transform": str,
    "options": dict,
    "helper": str,
    "programs": list,
    "safety": str,
    "why": str,
    "review": str,
    "action": str,
    "since": str,
    "until": str,
    "source": str,
    "example": list,
}
_PSEUDO_ROOTS = frozenset("string env call member argument value package command image setting".split())
"""First parts of the names that strings and calls get instead of a qualified name."""

_EXAMPLE_KEYS = {"before", "after", "keep", "because", "program", "settings", "file"}

_TPU = (b"_tpu", b"tpu_", b"'tpu'", b'"tpu"', b".tpu", b" tpu")
"""What the names and strings of libraries hold that say nothing of xla: is_tpu_available, optimum.tpu, ..."""


class RuleError(Exception):
    """A rule file can't be used; the message names file, code and key."""


@dataclass(frozen=True)
class Example:
    """A worked case of a rule: it is test, help text and documentation page at once."""

    before: str = ""
    after: str = ""
    keep: str = ""
    """Code the rule leaves as it is (with an open finding, or none)."""
    because: str = ""
    program: str = ""
    """The kind of program the code belongs to; empty: told from the code, as for any file."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    """Name of the file the example stands in, where that is no Python file."""


@dataclass(frozen=True)
class Rule:
    """One rule, as its TOML table says it."""

    code: str
    name: str
    match: tuple[str, ...]
    safety: Safety
    why: str
    replace: str = ""
    without_group: str | None = None
    """What the replacement is worth in a process without a process group."""
    imports: tuple[str, ...] = ()
    """Top-level modules of the user's own that the replacement names."""
    transform: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    helper: str = ""
    programs: tuple[str, ...] = ()
    review: str = ""
    action: str = ""
    since: str = ""
    until: str = ""
    source: str = ""
    examples: tuple[Example, ...] = ()
    file: str = ""
    own: bool = False
    """From a file of the user's own: asked before those that ship with the tool."""

    @property
    def family(self) -> str:
        """The letters and first digit: TX1, EN, VN, ..."""
        found = re.match(r"[A-Z]+\d?", self.code)
        return found.group() if found else self.code


@dataclass(frozen=True)
class RuleBook:
    """All rules of a run, by code, and the other names of what they match."""

    rules: tuple[Rule, ...]
    aliases: Mapping[str, str]
    """Dotted prefix -> the canonical dotted prefix rules are written for."""

    def get(self, code: str) -> Rule | None:
        return self._by_code.get(code)

    @functools.cached_property
    def roots(self) -> frozenset[str]:
        """Top-level modules all of whose names are followed: torch_xla, and those of the user's own rules."""
        named = {pattern.partition(".")[0] for rule in self.rules if rule.own for pattern in rule.match}
        return frozenset((named | {"torch_xla", "torch_xla_py"}) - _PSEUDO_ROOTS)

    def follows(self, qualified_name: str) -> bool:
        """Whether a dotted name is of a root, or leads to what a rule matches, or to something below that.

        Most of what a file imports from transformers is no rule's business, and isn't looked at further.
        """
        if qualified_name.partition(".")[0] in self.roots or qualified_name in self._leading:
            return True
        parts = qualified_name.split(".")
        return any(".".join(parts[:count]) in self._matched for count in range(1, len(parts)))

    @functools.cached_property
    def _matched(self) -> frozenset[str]:
        """What patterns and aliases name, without what they say of a call."""
        patterns = (pattern.partition("(")[0] for rule in self.rules for pattern in rule.match)
        names = {pattern.removesuffix(".*") for pattern in (*patterns, *self.aliases)}
        return frozenset(name for name in names if name.partition(".")[0] not in _PSEUDO_ROOTS)

    @functools.cached_property
    def _leading(self) -> frozenset[str]:
        """The matched names, and the modules they are in."""
        parts = [name.split(".") for name in self._matched]
        return frozenset(".".join(name[:count]) for name in parts for count in range(1, len(name) + 1))

    def mentions(self, data: bytes) -> bool:
        """Whether a file's bytes can be about anything a rule is about.

        Asked of every file of a repository: a few plain searches, which are ten times faster than a
        regular expression with alternatives.
        """
        lower = data.lower()
        return (
            b"xla" in lower
            or (b"rt_" in lower and re.search(b"xrt_|pjrt_", lower) is not None)
            or b"(tpu-migrate" in lower
            or any(word in lower for word in _TPU)
            or any(word in lower for word in self._own_roots)
        )

    @functools.cached_property
    def _own_roots(self) -> tuple[bytes, ...]:
        return tuple(sorted(root.lower().encode() for root in self.roots if "xla" not in root.lower()))

    @functools.cached_property
    def speaks(self) -> re.Pattern[bytes]:
        """Matches files that may hold something to rewrite, not just the letters xla somewhere."""
        words = b"|".join(re.escape(root.encode()) for root in sorted(self.roots))
        return re.compile(
            words
            + rb"|(?i:_tpu|tpu_|['\"]tpu['\"]|[. ]tpu\b)"
            + rb"|['\"][^'\"\n]*(?:xla|XLA|XRT_|PJRT_)|environ[^\n]*(?:XLA|XRT_|PJRT_)|TODO\(tpu-migrate"
        )

    @functools.cached_property
    def _by_code(self) -> dict[str, Rule]:
        return {rule.code: rule for rule in self.rules}

    def emitted_names(self) -> set[str]:
        """Every qualified name outside the standard library that a rewrite can emit."""
        from tpu_migrate.python.emitted import emitted_names

        return emitted_names(self)


def rules_directory() -> Path:
    """Where the rules lie: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).parent
    for candidate in (package / "_rules", package.parent / "rules"):
        if candidate.is_dir():
            return candidate
    raise RuleError(f"no rules found beside {package}: the installation is incomplete, install it again")


def load_rules(extra: Sequence[Path] = ()) -> RuleBook:
    """Load the rules that ship with the tool, and the user's own files after them.

    Raises:
        RuleError: a file is missing, isn't TOML, or holds a rule that can't be used.
    """
    root = rules_directory()
    rules: dict[str, Rule] = {}
    aliases: dict[str, str] = {}
    for path in [*sorted(root.glob("*/*.toml")), *extra]:
        label = path.relative_to(root.parent).as_posix() if path.is_relative_to(root) else str(path)
        try:
            tables = tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise RuleError(f"{label}: no such rule file (named under [tool.tpu-migrate] rules)") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RuleError(f"{label}: not TOML: {error}") from None
        for code, table in tables.items():
            if code == "aliases":
                if not isinstance(table, dict):
                    raise RuleError(f"{label}: aliases is {table!r}; expected a table")
                for name, target in table.items():
                    if not isinstance(target, str) or not re.fullmatch(r"\w+(\.\w+)*", target):
                        raise RuleError(f"{label}: aliases: {name} is {target!r}; expected a dotted name")
                aliases.update(table)
                continue
            if code in rules:
                raise RuleError(f"{label}: {code} is already defined in {rules[code].file}; codes are unique")
            rules[code] = _rule(code, table, label, own=path in extra)
    book = RuleBook(tuple(rules[code] for code in sorted(rules)), aliases)
    if extra:  # our own are checked by the tests
        from tpu_migrate.python.validate import check_rules

        check_rules(book, root / "helpers")
    return book


def _rule(code: str, table: object, file: str, own: bool) -> Rule:
    where = f"{file}: {code}"
    if not re.fullmatch(r"[A-Z]{2}\d{3}", code):
        raise RuleError(f"{where} is no code; expected two capitals and three digits, such as TX101")
    if not isinstance(table, dict):
        raise RuleError(f"{where} is {table!r}; expected a table")
    for key, value in table.items():
        if key not in _KEYS:
            raise RuleError(f"{where}.{key} is not a key; expected one of {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise RuleError(f"{where}.{key} is {value!r}; expected {_SPELT[_KEYS[key]]}")
        if isinstance(value, list) and key != "example" and not all(isinstance(item, str) for item in value):
            raise RuleError(f"{where}.{key} is {value!r}; expected a list of strings")
    for key in ("name", "match", "safety", "why"):
        if not table.get(key):
            raise RuleError(f"{where}.{key} is missing")
    try:
        safety = Safety(table["safety"])
    except ValueError:
        raise RuleError(f'{where}.safety is "{table["safety"]}"; expected safe, review or manual') from None
    rewrites = bool(table.get("replace") or table.get("transform") or table.get("helper"))
    if safety is Safety.MANUAL and rewrites:
        raise RuleError(f"{where}: a manual rule rewrites nothing, yet it has replace, helper or transform")
    if safety is not Safety.MANUAL and not rewrites:
        raise RuleError(f"{where}: a {safety.value} rule needs replace, helper or transform")
    if safety is Safety.REVIEW and not table.get("review"):
        raise RuleError(f"{where}.review is missing: a review rule says what to look at")
    if safety is Safety.MANUAL and not table.get("action"):
        raise RuleError(f"{where}.action is missing: a manual rule says what to write")
    for kind in table.get("programs", ()):
        if kind not in KINDS:
            raise RuleError(f'{where}.programs has "{kind}"; expected some of {", ".join(KINDS)}')
    examples = tuple(_example(where, number, entry) for number, entry in enumerate(table.get("example", ())))
    if not examples:
        raise RuleError(f"{where} has no example; every rule carries at least one")
    plain = {key: table[key] for key in _KEYS if key in table and key not in ("safety", "example")}
    for key in ("match", "programs", "imports"):
        plain[key] = tuple(plain.get(key, ()))
    return Rule(code=code, safety=safety, examples=examples, file=file, own=own, **plain)


def _example(where: str, number: int, entry: object) -> Example:
    where = f"{where}.example[{number}]"
    if not isinstance(entry, dict):
        raise RuleError(f"{where} is {entry!r}; expected a table")
    if unknown := set(entry) - _EXAMPLE_KEYS:
        raise RuleError(
            f"{where} has {', '.join(sorted(unknown))}; expected {', '.join(sorted(_EXAMPLE_KEYS))}"
        )
    if ("keep" in entry) == ("before" in entry):
        raise RuleError(f"{where} needs either before and after, or keep and because")
    if "keep" in entry and not entry.get("because"):
        raise RuleError(f"{where}.because is missing: say why the code is left")
    return Example(**entry)


_SPELT: dict[object, str] = {str: "a string", list: "a list", dict: "a table"}
