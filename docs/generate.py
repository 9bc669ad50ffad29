"""Generate the parts of the documentation that follow from the code.

    python docs/generate.py            write them
    python docs/generate.py --check    write nothing; name what isn't current, exit 1 if anything isn't

All of ``docs/rules/`` is generated, and files there that belong to no rule are removed. In README.md and
``docs/*.md`` it is what stands between ``<!-- generated: WHAT -->`` and ``<!-- /generated -->``:

    first-run, apply        real output of the tool over docs/example/
    example CODE NUMBER     a rule's example, as a diff or as the code that stays
    rule CODE               the rule's TOML, as it stands in its file
    migrated NAME           what becomes of docs/snippets/NAME.py, as a diff
    transform NAME          a transform's source
    families, transforms, helpers, literals
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tpu_migrate.cli.families import FAMILIES, family_of
from tpu_migrate.findings import Safety
from tpu_migrate.pipeline import migrate_source
from tpu_migrate.python.builtin import BUILT_IN, BuiltIn
from tpu_migrate.python.helpers import first_line, load_helper
from tpu_migrate.python.transforms import TRANSFORMS
from tpu_migrate.report.diff import example_diff
from tpu_migrate.rules import Example, Rule, RuleBook, load_rules, rules_directory

ROOT = Path(__file__).resolve().parent.parent
SAFETY = {
    Safety.SAFE: "rewritten; behaviour is kept",
    Safety.REVIEW: "rewritten; usually right, and a person should look",
    Safety.MANUAL: "never rewritten; a person has to write it",
}
COLUMNS = 100
"""Width of the terminal in the output shown."""


# --- the whole --------------------------------------------------------------------------------------------


def expected(root: Path = ROOT) -> dict[Path, str]:
    """What every generated file, and every file with a generated part, should hold."""
    book = load_rules()
    files = {root / "docs" / "rules" / name: text for name, text in rule_pages(book).items()}
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        files[path] = fill(path.read_text("utf-8"), book, path.relative_to(root).as_posix())
    return files


def differences(files: dict[Path, str], root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """What isn't current: (path, ``missing``, ``outdated`` or ``stale``)."""
    for path, text in files.items():
        if not path.exists():
            yield path, "missing"
        elif path.read_bytes() != text.encode():
            yield path, "outdated"
    for path in sorted((root / "docs" / "rules").glob("*")):
        if path not in files:
            yield path, "stale"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write what isn't current, or with ``--check`` name it."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if anything isn't current"
    )
    check = parser.parse_args(arguments).check
    files = expected(root)
    found = list(differences(files, root))
    for path, what in found:
        print(f"{path.relative_to(root).as_posix()}: {what}")
        if check:
            continue
        if what == "stale":
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[path].encode())
    if check and found:
        print("Write them: python docs/generate.py")
        return 1
    return 0


# --- docs/rules -------------------------------------------------------------------------------------------


def rule_pages(book: RuleBook) -> dict[str, str]:
    """File name in docs/rules -> text."""
    pages = {f"{rule.code}.md": rule_page(rule) for rule in book.rules}
    pages |= {f"{entry.code}.md": built_in_page(entry) for entry in BUILT_IN}
    return {"README.md": index(book), **pages}


def index(book: RuleBook) -> str:
    """The list of all codes, by family."""
    count = Counter(rule.safety for rule in book.rules)
    parts = [
        "# Rules",
        _GENERATED,
        f"{len(book.rules)} rules: {count[Safety.SAFE]} safe, {count[Safety.REVIEW]} review, "
        f"{count[Safety.MANUAL]} manual; and {len(BUILT_IN)} codes for what the tool finds without a rule.",
        "\n".join(f"- **{safety.value}**: {text}." for safety, text in SAFETY.items()),
        "The same in a terminal: `tpu-migrate rules`, `tpu-migrate rules TX2`, `tpu-migrate rules TX201`.",
    ]
    rows: dict[str, list[tuple[str, str, str, str]]] = {family: [] for family in FAMILIES}
    for rule in book.rules:
        rows.setdefault(family_of(rule.code), []).append((rule.code, rule.name, rule.safety.value, rule.why))
    for entry in BUILT_IN:
        rows[family_of(entry.code)].append((entry.code, entry.name, "manual", entry.why))
    for family, entries in rows.items():
        if not entries:
            continue
        table = ["| code | name | safety | why |", "|---|---|---|---|"]
        table += [
            f"| [{code}]({code}.md) | {name} | {safety} | {cell(_first_sentence(why))} |"
            for code, name, safety, why in sorted(entries)
        ]
        parts += [f"## {family} · {FAMILIES.get(family, '')}", "\n".join(table)]
    return "\n\n".join(parts) + "\n"


def rule_page(rule: Rule) -> str:
    """One rule: why, how safe, what it matches, versions, source, examples."""
    facts = [
        ("Look at", cell(rule.review)),
        ("Write", cell(rule.action)),
        ("Programs", f"{', '.join(rule.programs)} only" if rule.programs else ""),
        ("Versions", cell(_versions(rule))),
        ("Source", f"`{rule.source}`" if rule.source else ""),
        ("Rule file", f"[{rule.file}](../../{rule.file})"),
        ("Suppress", f"`# tpu-migrate: ignore[{rule.code}]`"),
    ]
    parts = [
        f"# {rule.code} {rule.name}",
        _GENERATED,
        f"**{rule.safety.value}**: {SAFETY[rule.safety]}.",
        prose(rule.why),
        _facts(facts),
        "## What it matches",
        fenced("\n".join(rule.match), "text"),
        "## Examples",
        *(part for example in rule.examples for part in _example(example)),
        _BACK,
    ]
    return "\n\n".join(parts) + "\n"


def built_in_page(entry: BuiltIn) -> str:
    """One code that no rule file defines."""
    parts = [
        f"# {entry.code} {entry.name}",
        _GENERATED,
        "**manual**: found by the tool itself, without a rule.",
        prose(entry.why),
        _facts(
            [
                ("Found when", cell(entry.what)),
                ("Do", cell(entry.action)),
                ("Suppress", cell(entry.silence)),
            ]
        ),
        *(["## Example", "Left as it is:", fenced(entry.example, "python")] if entry.example else []),
        _BACK,
    ]
    return "\n\n".join(parts) + "\n"


_GENERATED = "<!-- Generated by docs/generate.py: change the rule, not this page. -->\n<!-- fmt: off -->"
_BACK = "[All rules](README.md) · [How rules are written](../adding-a-rule.md)"


def _facts(rows: list[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows if text)])


def _versions(rule: Rule) -> str:
    since = f"since {rule.since}" if rule.since else ""
    until = f"until {rule.until}" if rule.until else ""
    return ", ".join(part for part in (since, until) if part)


def _example(example: Example) -> Iterator[str]:
    """An example's heading line and its code."""
    about = [f"in a {example.program} program"] if example.program else []
    about += [f"with {key} = {value!r}" for key, value in example.settings.items()]
    suffix = f" ({', '.join(about)})" if about else ""
    if example.keep:
        yield f"Left as it is{suffix}: {prose(example.because)}."
    else:
        yield f"Rewritten{suffix}" + (f": {prose(example.because)}." if example.because else ":")
    yield example_code(example)


def example_code(example: Example) -> str:
    """An example's code: a diff, or what stays."""
    if example.keep:
        return fenced(example.keep.strip("\n"), "python")
    lines = [line.rstrip() for line in example_diff(example.before, example.after)]
    return fenced("\n".join(lines), "diff")


# --- parts of other pages ---------------------------------------------------------------------------------

_MARKED = re.compile(r"(<!-- generated: ([^>]*?) -->\n).*?(<!-- /generated -->)", re.DOTALL)


def fill(text: str, book: RuleBook, label: str) -> str:
    """Bring the generated parts of a page up to date.

    Raises:
        ValueError: a marker asks for something unknown.
    """

    def part(found: re.Match[str]) -> str:
        what, *arguments = found[2].split()
        if what not in PARTS:
            raise ValueError(f"{label}: generated: {found[2]} is unknown; expected {', '.join(PARTS)}")
        return f"{found[1]}\n{PARTS[what](book, *arguments)}\n\n{found[3]}"

    return _MARKED.sub(part, text)


def _first_run(book: RuleBook) -> str:
    return fenced("\n".join(("$ tpu-migrate .", run_tool([["."]])[0])), "console")


def _apply(book: RuleBook) -> str:
    applied, undone = run_tool([[".", "--apply", "--quiet"], ["undo"]])
    return fenced(
        "\n".join(("$ tpu-migrate . --apply --quiet", applied, "$ tpu-migrate undo", undone)), "console"
    )


def run_tool(commands: list[list[str]]) -> list[str]:
    """What the tool prints in a scratch copy of docs/example, for one command after the other."""
    environment = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "LINES")}
    environment |= {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    outputs = []
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "docs" / "example", scratch, dirs_exist_ok=True)
        for arguments in commands:
            done = subprocess.run(
                [sys.executable, "-m", "tpu_migrate", *arguments],
                cwd=scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode > 1:
                raise RuntimeError(f"tpu-migrate {' '.join(arguments)} failed: {done.stderr}")
            outputs.append("\n".join(line.rstrip() for line in done.stdout.strip("\n").split("\n")))
    return outputs


def _numbered_example(book: RuleBook, code: str, number: str) -> str:
    rule = book.get(code)
    if rule is None or not 0 < int(number) <= len(rule.examples):
        raise ValueError(f"there is no example {number} of {code}")
    return example_code(rule.examples[int(number) - 1])


def _rule_source(book: RuleBook, code: str) -> str:
    rule = book.get(code)
    if rule is None:
        raise ValueError(f"there is no rule {code}")
    text = (ROOT / rule.file).read_text("utf-8")
    found = re.search(rf"^\[{code}\]\n.*?(?=^\[[A-Z]{{2}}\d{{3}}\]|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return fenced(found.group().strip("\n"), "toml")


def _migrated(book: RuleBook, name: str) -> str:
    before = (ROOT / "docs" / "snippets" / f"{name}.py").read_text("utf-8")
    after = migrate_source(before).new.decode()
    return fenced("\n".join(line.rstrip() for line in example_diff(before, after)), "diff")


def _families(book: RuleBook) -> str:
    count = Counter(family_of(code) for code in (*(r.code for r in book.rules), *(b.code for b in BUILT_IN)))
    rows = [f"| {family} | {text} | {count[family]} |" for family, text in FAMILIES.items()]
    return "\n".join(["| family | about | codes |", "|---|---|---|", *rows])


def _transforms(book: RuleBook) -> str:
    users: dict[str, list[str]] = {}
    for rule in book.rules:
        if rule.transform:
            users.setdefault(rule.transform, []).append(rule.code)
    rows = []
    for name in sorted(TRANSFORMS):
        text = _first_sentence(inspect.getdoc(TRANSFORMS[name]) or "").replace("``", "`")
        file = Path(inspect.getfile(TRANSFORMS[name])).name
        codes = users.get(name, [])
        shown = ", ".join(f"[{code}](rules/{code}.md)" for code in codes[:3]) + (", ..." if codes[3:] else "")
        rows.append(f"| `{name}` | {cell(text)} | `{file}` | {shown or 'none'} |")
    return "\n".join(["| transform | what it does | file | used by |", "|---|---|---|---|", *rows])


def _transform_source(book: RuleBook, name: str) -> str:
    return fenced(inspect.getsource(TRANSFORMS[name]).strip("\n"), "python")


def _literals(book: RuleBook) -> str:
    rows = [
        f"| `{pattern}` | [{rule.code}](rules/{rule.code}.md) {rule.name} |"
        for rule in book.rules
        for pattern in rule.match
        if pattern.startswith(("string.", "call."))
    ]
    return "\n".join(["| pattern | rule |", "|---|---|", *rows])


def _helpers(book: RuleBook) -> str:
    directory = rules_directory() / "helpers"
    rows = []
    for path in sorted(directory.glob("*.py")):
        helper = load_helper(directory, path.stem)
        text = first_line(helper).replace("``", "`")
        rows.append(f"| `{path.stem}` | `{helper.name}` | {cell(text)} |")
    return "\n".join(["| helper | brings | what it does |", "|---|---|---|", *rows])


PARTS: dict[str, Callable[..., str]] = {
    "first-run": _first_run,
    "apply": _apply,
    "example": _numbered_example,
    "rule": _rule_source,
    "migrated": _migrated,
    "families": _families,
    "transform": _transform_source,
    "transforms": _transforms,
    "literals": _literals,
    "helpers": _helpers,
}


# --- Markdown ---------------------------------------------------------------------------------------------


def fenced(text: str, language: str) -> str:
    """A block of code; its fence is longer than any in the text."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`{3,}", text) or [""]))
    return f"{fence}{language}\n{text}\n{fence}"


def prose(text: str) -> str:
    """Plain text as Markdown: what would be markup is escaped, but not in `code`."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(piece if piece.startswith("`") else _escaped(piece) for piece in pieces)


def cell(text: str) -> str:
    """Plain text as Markdown in a table."""
    return prose(text).replace("|", "\\|")


def _escaped(text: str) -> str:
    text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\*", lambda found: f"\\{found.group()}", text)
    return text.replace("<", "&lt;").replace("](", "]\\(")


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    found = re.match(r"(.+?[.?:])(?=\s|$)", line)
    return found[1] if found else line


if __name__ == "__main__":
    sys.exit(main())
