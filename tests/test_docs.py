"""What the documentation says: generated parts are current, snippets work, commands, files and codes exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import jsonschema
import pytest

from docs import generate
from tpu_migrate.cli import cli
from tpu_migrate.config import load_settings
from tpu_migrate.findings import Outcome
from tpu_migrate.pipeline import migrate_source
from tpu_migrate.python.transforms import TRANSFORMS
from tpu_migrate.rules import _KEYS, load_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in PAGES}
BOOK = load_rules()
BUILT_IN = {entry.code: entry for entry in generate.BUILT_IN}


def blocks(text: str, language: str = "") -> list[str]:
    """The fenced blocks of a page, of one language or of all."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [code for name, code in found if not language or name == language]


def cases(language: str) -> list[object]:
    return [
        pytest.param(code, id=f"{name}-{number}")
        for name, text in TEXTS.items()
        for number, code in enumerate(blocks(text, language))
    ]


# --- generated parts --------------------------------------------------------------------------------------


def test_generated_parts_are_current() -> None:
    found = [f"{path.relative_to(ROOT)}: {what}" for path, what in generate.differences(generate.expected())]
    assert not found, "run: python docs/generate.py\n" + "\n".join(found)


def test_there_is_a_page_for_every_code_and_no_other() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "rules").iterdir()}
    assert pages == {"README"} | {rule.code for rule in BOOK.rules} | set(BUILT_IN)


def test_the_check_writes_nothing_and_names_what_is_not_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "docs" / "rules"
    rules.mkdir(parents=True)
    (rules / "TX101.md").write_text("old")
    (rules / "TX000.md").write_text("of a rule that is gone")
    files = {rules / "TX101.md": "new", rules / "TX102.md": "another"}
    monkeypatch.setattr(generate, "expected", lambda root: files)

    assert generate.main(["--check"], root=tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        "docs/rules/TX101.md: outdated",
        "docs/rules/TX102.md: missing",
        "docs/rules/TX000.md: stale",
        "Write them: python docs/generate.py",
    ]
    assert sorted(path.name for path in rules.iterdir()) == ["TX000.md", "TX101.md"]

    assert generate.main([], root=tmp_path) == 0
    assert {path.name: path.read_text() for path in rules.iterdir()} == {
        "TX101.md": "new",
        "TX102.md": "another",
    }
    assert generate.main(["--check"], root=tmp_path) == 0


def test_an_unknown_marker_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"page.md: generated: nonsense is unknown; expected first-run, apply"
    ):
        generate.fill("<!-- generated: nonsense -->\n<!-- /generated -->", BOOK, "page.md")


def test_text_is_escaped_outside_of_code_only() -> None:
    assert generate.cell("f(*args) | a < b, _x_y and `f(*a)`") == r"f(\*args) \| a &lt; b, \_x_y and `f(*a)`"


@pytest.mark.parametrize("entry", [e for e in generate.BUILT_IN if e.example], ids=lambda entry: entry.code)
def test_the_examples_of_built_in_codes_are_left_with_their_code(entry: generate.BuiltIn) -> None:
    result = migrate_source(entry.example + "\n", path="train.py", apply=False)
    found = {finding.code: finding.name for finding in result.findings}
    assert found.get(entry.code) == entry.name


def test_the_built_in_codes_are_those_of_the_tool() -> None:
    from tpu_migrate.python import rewrite

    codes = {rewrite.NOT_PARSED, rewrite.BROKEN, rewrite.IMPORT_KEPT, rewrite.OTHER_VENDOR}
    assert codes == set(BUILT_IN)
    assert not codes & {rule.code for rule in BOOK.rules}


# --- the README -------------------------------------------------------------------------------------------


def test_the_readme_opens_on_one_screen() -> None:
    opening = TEXTS["README.md"].partition("\n## ")[0].splitlines()
    assert len(opening) <= 30
    assert any("tpu-migrate . --apply" in line for line in opening)


def test_the_readme_names_every_option() -> None:
    command = cli.commands["migrate"]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    missing = {name for name in options if name.startswith("--") and name not in TEXTS["README.md"]}
    assert missing <= {"--help"}


def test_the_ignore_comments_of_the_readme_silence_their_lines() -> None:
    (code,) = blocks(TEXTS["README.md"], "python")
    head = "import torch_xla.core.xla_model as xm  # tpu-migrate: ignore\n"
    head += "import torch_xla.debug.metrics as met  # tpu-migrate: ignore\n\n"
    result = migrate_source(head + code)
    assert result.new.decode() == head + code
    assert {finding.outcome for finding in result.findings} == {Outcome.SUPPRESSED}
    assert len(result.findings) >= code.count("ignore")


# --- snippets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", cases("toml"))
def test_toml_is_a_configuration_or_rules(code: str, tmp_path: Path) -> None:
    tables = tomllib.loads(code)
    if "tool" in tables:
        (tmp_path / "pyproject.toml").write_text(code)
        assert load_settings(tmp_path, {}).root == tmp_path
        return
    known = [code for code in tables if BOOK.get(code)]
    if known:  # a rule that ships, quoted: it has to be what is in its file
        shipped = tomllib.loads((ROOT / BOOK.get(known[0]).file).read_text("utf-8"))  # type: ignore[union-attr]
        assert {name: shipped[name] for name in tables} == tables
        return
    (tmp_path / "own.toml").write_text(code)
    (tmp_path / "pyproject.toml").write_text('[tool.tpu-migrate]\nrules = ["own.toml"]\n')
    settings = load_settings(tmp_path, {})
    for name in tables:
        rule = load_rules(settings.rules).get(name)
        assert rule is not None
        for example in rule.examples:
            before = (example.before or example.keep).lstrip("\n")
            result = migrate_source(before, settings, kind=example.program)
            text = re.sub(r"^[ \t]*# TODO\(tpu-migrate .*\n", "", result.new.decode(), flags=re.MULTILINE)
            assert text == (example.after or example.keep).lstrip("\n")
            assert name in {finding.code for finding in result.findings}


@pytest.mark.parametrize("code", cases("python"))
def test_python_parses(code: str) -> None:
    ast.parse(code)


@pytest.mark.parametrize("code", cases("json"))
def test_json_fits_the_schema(code: str) -> None:
    jsonschema.validate(
        json.loads(code), json.loads((ROOT / "docs" / "report.schema.json").read_text("utf-8"))
    )


@pytest.mark.parametrize("code", cases("yaml"))
def test_yaml_names_hooks_and_commands_that_exist(code: str) -> None:
    yaml = pytest.importorskip("yaml", reason="comes with pre-commit")
    document = yaml.safe_load(code)
    if "repos" in document:
        offered = {
            hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
        }
        named = set(re.findall(r"- id: (\S+)", code))
        assert named == offered
        return
    steps = [step for job in document["jobs"].values() for step in job["steps"]]
    assert any("--format sarif" in step.get("run", "") for step in steps)


# --- commands ---------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, str]]:
    """Every ``tpu-migrate ...`` in the pages: lines of blocks, indented lines, and inline code."""
    for name, text in TEXTS.items():
        lines = [line for block in blocks(text) for line in block.splitlines()]
        lines += re.findall(r"^    (.*)$", text, re.MULTILINE)
        lines += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
        for line in lines:
            line = re.sub(r"^\s*(?:\$ |- run: |entry: )", "", line)
            if line.startswith("tpu-migrate ") and not line.startswith("tpu-migrate:"):
                yield name, line


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_commands_have_the_options_they_are_shown_with(page: str, line: str) -> None:
    words = shlex.split(re.split(r" >> | \| ", line)[0], comments=True)[1:]
    words = [word for word in words if word != "..."]
    command: click.Command = cli.commands["migrate"]
    if words and words[0] in cli.commands:
        command = cli.commands[words.pop(0)]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word.startswith("-"):
            assert word in options, f"{page}: {line}: {command.name} has no {word}"
        elif command.name == "rules" and word.isupper() and word != "CODE":
            assert any(code.startswith(word) for code in (*(rule.code for rule in BOOK.rules), "MY101"))


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for name, text in TEXTS.items():
        for target in re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE):
            assert target in targets, f"{name}: make {target}"


# --- links, files, codes, keys ----------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(file.read_text("utf-8")), f"{page}: {target}"


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_files_that_are_named_exist(page: str) -> None:
    own = {"our_rules.toml", "train.py", "pyproject.toml"}
    for path in re.findall(r"`((?:tpu_migrate|rules|docs|tests|fixtures|benchmarks)/[\w./-]*)`", TEXTS[page]):
        assert path in own or (ROOT / path).exists(), f"{page}: {path}"


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_codes_that_are_named_exist(page: str) -> None:
    # TX205 is the example of a commit's subject; MY101 is a user's.
    known = {rule.code for rule in BOOK.rules} | set(BUILT_IN) | {"MY101", "TX205"}
    named = set(re.findall(r"\b(?:TX|EN|PY|VN|MY)\d{3}\b", TEXTS[page]))
    assert named <= known


def test_every_key_of_a_rule_is_explained() -> None:
    table = TEXTS["docs/adding-a-rule.md"]
    missing = [key for key in _KEYS if not re.search(rf"^\|.*`{key}`", table, re.MULTILINE)]
    assert not missing
    used = {key for rule in BOOK.rules if not rule.transform for key in rule.options}
    assert all(f"`{key} = " in table for key in used)


def test_every_transform_says_what_it_does() -> None:
    for name in TRANSFORMS:
        assert f"| `{name}` | " in TEXTS["docs/adding-a-rule.md"]
        assert f"| `{name}` |  |" not in TEXTS["docs/adding-a-rule.md"]


def test_every_setting_is_explained_where_settings_are() -> None:
    from tpu_migrate.config import _BY_KEY

    assert all(
        f"`{key}`" in TEXTS["docs/configuration.md"] or f"\n{key} = " in TEXTS["docs/configuration.md"]
        for key in _BY_KEY
    )
