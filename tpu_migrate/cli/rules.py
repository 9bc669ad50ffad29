"""``tpu-migrate rules``: list the rules, or explain one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tpu_migrate.python.builtin import BuiltIn
    from tpu_migrate.rules import Example, Rule, RuleBook

    Entry = Rule | BuiltIn

_SAFETY = {
    "safe": "behaviour is kept",
    "review": "usually right; applied, and a person should look",
    "manual": "never rewritten; a person has to write it",
}
_BUILT_IN = "found by the tool itself, without a rule"


@click.command(short_help="List the rules, or explain one: tpu-migrate rules TX201.")
@click.argument("code", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json"]),
    default="terminal",
    help="The kind of report.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colours; auto: on a terminal.",
)
def rules(code: str | None, form: str, color: str) -> None:
    """List the rules, or explain the one called CODE: why, how safe, versions, examples.

    CODE may also be the rule's name, or the beginning of several codes, such as TX2. Rules of your
    own, named in the nearest pyproject.toml, are there too, and codes that need no rule, such as PY001.
    """
    from tpu_migrate.cli.group import terminal_width, wants_colour
    from tpu_migrate.config import load_settings
    from tpu_migrate.report.terminal import Paint
    from tpu_migrate.rules import load_rules

    book = load_rules(load_settings(Path.cwd(), {}).rules)
    one, chosen = _choose(book, code)
    if form == "json":
        click.echo(_json(chosen))
        return
    paint = Paint(wants_colour(color))
    lines = _explain(chosen[0], paint, terminal_width()) if one else _list(chosen, paint, terminal_width())
    click.echo("\n".join(lines), color=True)


def _choose(book: RuleBook, code: str | None) -> tuple[bool, Sequence[Entry]]:
    """The rules and built-in codes meant, and whether it is one to explain.

    Raises:
        click.UsageError: no rule is called so.
    """
    from tpu_migrate.python.builtin import BUILT_IN

    entries: list[Entry] = sorted((*book.rules, *BUILT_IN), key=lambda entry: entry.code)
    if code is None:
        return False, entries
    one = [entry for entry in entries if code.upper() == entry.code or code == entry.name]
    if one:
        return True, one[:1]
    some = [entry for entry in entries if entry.code.startswith(code.upper())]
    if some:
        return False, some
    import difflib

    known = [entry.code for entry in entries] + [entry.name for entry in entries]
    word = code.upper() if any(character.isdigit() for character in code) else code
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise click.UsageError(f"no rule is called {code}.{hint} All of them: tpu-migrate rules")


def _list(chosen: Sequence[Entry], paint: Any, width: int) -> Iterator[str]:
    from tpu_migrate.cli.families import FAMILIES, family_of
    from tpu_migrate.python.builtin import BuiltIn
    from tpu_migrate.report.summary import counted
    from tpu_migrate.report.text import one_line

    order = list(FAMILIES)
    by_family: dict[str, list[Entry]] = {}
    for entry in chosen:
        by_family.setdefault(family_of(entry.code), []).append(entry)
    for family in sorted(
        by_family, key=lambda name: (order.index(name) if name in order else len(order), name)
    ):
        yield paint(f"{family}  {FAMILIES.get(family, 'your own')}", "bold")
        for entry in by_family[family]:
            # Names aren't padded to a column: at 80 columns that would leave no room for the sentence.
            head = f"  {entry.code}  {entry.safety.value:<6}  "
            text = _cut(f"{entry.name}: {one_line(entry.why)}", width - len(head))
            yield head + text.replace(entry.name, paint(entry.name, "cyan"), 1)
        yield ""
    others = sum(isinstance(entry, BuiltIn) for entry in chosen)
    rules = len(chosen) - others
    counts = [counted(rules, "rule")] if rules else []
    counts += [counted(others, "code") + " without a rule"] if others else []
    yield f"{', '.join(counts)}. One of them: tpu-migrate rules CODE"


def _cut(text: str, most: int) -> str:
    """The beginning of a text, cut between words."""
    if len(text) <= most:
        return text
    return text[: most - 3].rsplit(" ", 1)[0].rstrip(",;:") + " ..."


def _explain(entry: Entry, paint: Any, width: int) -> Iterator[str]:
    import textwrap

    from tpu_migrate.python.builtin import BuiltIn
    from tpu_migrate.report.text import visible

    yield paint(f"{entry.code} {entry.name}", "bold")
    built_in = isinstance(entry, BuiltIn)
    yield f"{entry.safety.value}: {_BUILT_IN if built_in else _SAFETY[entry.safety.value]}"
    yield ""
    yield from textwrap.wrap(visible(entry.why.strip()), width)
    yield ""
    if isinstance(entry, BuiltIn):
        yield from _facts(
            (("Found when", entry.what), ("Do", entry.action), ("Suppress", entry.silence)), width
        )
        if entry.example:
            yield ""
            yield "Left as it is:"
            yield from (f"    {visible(line)}" for line in entry.example.split("\n"))
        return
    yield from _facts(_rule_facts(entry), width)
    for example in entry.examples:
        yield ""
        yield from _example(example, paint)


def _rule_facts(rule: Rule) -> tuple[tuple[str, str], ...]:
    return (
        ("Matches", "\n".join(rule.match)),
        ("Look at", rule.review),
        ("Write", rule.action),
        ("Programs", ", ".join(rule.programs)),
        ("Versions", _versions(rule)),
        ("Source", rule.source),
        ("Rule file", rule.file),
        ("Suppress", f"# tpu-migrate: ignore[{rule.code}]"),
    )


def _facts(facts: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    from tpu_migrate.report.text import visible

    for name, text in facts:
        lines = [line for part in visible(text.strip()).split("\n") for line in _wrap(part, width - 11)]
        for number, line in enumerate(lines):
            yield f"{name if number == 0 else '':<11}{line}"


def _wrap(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _versions(rule: Rule) -> str:
    return " ".join(
        part
        for part in (f"since {rule.since}" if rule.since else "", f"until {rule.until}" if rule.until else "")
        if part
    )


def _example(example: Example, paint: Any) -> Iterator[str]:
    from tpu_migrate.report.diff import example_diff
    from tpu_migrate.report.text import visible

    about = [f"in a {example.program} program"] if example.program else []
    about += [f"with {key} = {value}" for key, value in example.settings.items()]
    suffix = f" ({', '.join(about)})" if about else ""
    if example.keep:
        yield f"Left as it is{suffix}: {visible(example.because)}"
        yield from (f"    {visible(line)}" for line in example.keep.strip("\n").split("\n"))
        return
    yield f"Example{suffix}" + (f": {visible(example.because)}" if example.because else "")
    for line in example_diff(example.before, example.after):
        colour = {"+": "green", "-": "red"}.get(line[:1])
        yield "    " + (paint(visible(line), colour) if colour else visible(line))


def _examples(entry: Entry) -> Sequence[Example]:
    from tpu_migrate.python.builtin import BuiltIn
    from tpu_migrate.rules import Example

    if not isinstance(entry, BuiltIn):
        return entry.examples
    return [Example(keep=entry.example, because=entry.what)] if entry.example else []


def _json(chosen: Sequence[Entry]) -> str:
    import json

    from tpu_migrate import __version__
    from tpu_migrate.cli.families import family_of

    keys: dict[str, object] = {"code": "", "name": "", "match": (), "why": "", "review": "", "action": ""}
    keys |= {"programs": (), "since": "", "until": "", "source": "", "file": ""}
    rows = []
    for entry in chosen:
        row = {key: getattr(entry, key, empty) for key, empty in keys.items()}
        row["family"] = family_of(entry.code)
        row["safety"] = entry.safety.value
        row["examples"] = [
            {
                "before": example.before,
                "after": example.after,
                "keep": example.keep,
                "because": example.because,
                "program": example.program,
                "settings": dict(example.settings),
            }
            for example in _examples(entry)
        ]
        rows.append(row)
    return json.dumps(
        {"version": 1, "tool": {"name": "tpu-migrate", "version": __version__}, "rules": rows}, indent=2
    )
