"""``tpu-migrate rules``: list the rules, or explain one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tpu_migrate.rules import Example, Rule, RuleBook

_SAFETY = {
    "safe": "behaviour is kept",
    "review": "usually right; applied, and a person should look",
    "manual": "never rewritten; a person has to write it",
}


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
    own, named in the nearest pyproject.toml, are there too.
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


def _choose(book: RuleBook, code: str | None) -> tuple[bool, Sequence[Rule]]:
    """The rules meant, and whether it is one rule to explain.

    Raises:
        click.UsageError: no rule is called so.
    """
    if code is None:
        return False, book.rules
    rule = book.get(code.upper()) or next((rule for rule in book.rules if rule.name == code), None)
    if rule is not None:
        return True, [rule]
    some = [rule for rule in book.rules if rule.code.startswith(code.upper())]
    if some:
        return False, some
    import difflib

    known = [rule.code for rule in book.rules] + [rule.name for rule in book.rules]
    word = code.upper() if any(character.isdigit() for character in code) else code
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise click.UsageError(f"no rule is called {code}.{hint} All of them: tpu-migrate rules")


def _list(chosen: Sequence[Rule], paint: Any, width: int) -> Iterator[str]:
    from tpu_migrate.cli.families import FAMILIES, family_of
    from tpu_migrate.report.summary import counted
    from tpu_migrate.report.text import one_line

    order = list(FAMILIES)
    by_family: dict[str, list[Rule]] = {}
    for rule in chosen:
        by_family.setdefault(family_of(rule.code), []).append(rule)
    for family in sorted(
        by_family, key=lambda name: (order.index(name) if name in order else len(order), name)
    ):
        yield paint(f"{family}  {FAMILIES.get(family, 'your own')}", "bold")
        for rule in by_family[family]:
            # Names aren't padded to a column: at 80 columns that would leave no room for the sentence.
            head = f"  {rule.code}  {rule.safety.value:<6}  "
            text = _cut(f"{rule.name}: {one_line(rule.why)}", width - len(head))
            yield head + text.replace(rule.name, paint(rule.name, "cyan"), 1)
        yield ""
    yield f"{counted(len(chosen), 'rule')}. One of them: tpu-migrate rules CODE"


def _cut(text: str, most: int) -> str:
    """The beginning of a text, cut between words."""
    if len(text) <= most:
        return text
    return text[: most - 3].rsplit(" ", 1)[0].rstrip(",;:") + " ..."


def _explain(rule: Rule, paint: Any, width: int) -> Iterator[str]:
    import textwrap

    from tpu_migrate.report.text import visible

    yield paint(f"{rule.code} {rule.name}", "bold")
    yield f"{rule.safety.value}: {_SAFETY[rule.safety.value]}"
    yield ""
    yield from textwrap.wrap(visible(rule.why.strip()), width)
    yield ""
    facts = (
        ("Matches", "\n".join(rule.match)),
        ("Look at", rule.review),
        ("Write", rule.action),
        ("Programs", ", ".join(rule.programs)),
        ("Versions", _versions(rule)),
        ("Source", rule.source),
        ("Rule file", rule.file),
        ("Suppress", f"# tpu-migrate: ignore[{rule.code}]"),
    )
    for name, text in facts:
        lines = [line for part in visible(text.strip()).split("\n") for line in _wrap(part, width - 11)]
        for number, line in enumerate(lines):
            yield f"{name if number == 0 else '':<11}{line}"
    for example in rule.examples:
        yield ""
        yield from _example(example, paint)


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


def _json(chosen: Sequence[Rule]) -> str:
    import json

    from tpu_migrate import __version__
    from tpu_migrate.cli.families import family_of

    keys = (
        "code",
        "name",
        "match",
        "why",
        "review",
        "action",
        "programs",
        "since",
        "until",
        "source",
        "file",
    )
    rows = []
    for rule in chosen:
        row = {key: getattr(rule, key) for key in keys}
        row["family"] = family_of(rule.code)
        row["safety"] = rule.safety.value
        row["examples"] = [
            {
                "before": example.before,
                "after": example.after,
                "keep": example.keep,
                "because": example.because,
                "program": example.program,
                "settings": dict(example.settings),
            }
            for example in rule.examples
        ]
        rows.append(row)
    return json.dumps(
        {"version": 1, "tool": {"name": "tpu-migrate", "version": __version__}, "rules": rows}, indent=2
    )
