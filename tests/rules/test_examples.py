"""The examples of the rules are tests: what they say comes out, byte for byte, and a second run changes nothing."""

import ast
import re

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.findings import Outcome
from tpu_migrate.formats import format_of
from tpu_migrate.pipeline import migrate_source
from tpu_migrate.rules import load_rules

BOOK = load_rules()
CASES = [
    pytest.param(rule, example, id=f"{rule.code}-{'keep' if example.keep else 'example'}-{number}")
    for rule in BOOK.rules
    for number, example in enumerate(rule.examples)
]


def without_comments(text):
    return re.sub(r"^[ \t]*# TODO\(tpu-migrate \w+\).*\n", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_example(rule, example):
    path = example.file or "example.py"
    if format_of(path) is None:
        pytest.skip(f"no format reads {path}")
    if path.endswith(".ipynb"):
        pytest.skip("the text of one cell: tests/formats/test_notebook.py wraps it")
    settings = Settings(**example.settings)
    before = (example.before or example.keep).lstrip("\n")
    after = (example.after or example.keep).lstrip("\n")
    result = migrate_source(before, settings, kind=example.program, path=path)
    new = result.new.decode()
    assert without_comments(new) == after
    if path.endswith(".py"):
        ast.parse(new)
    codes = {finding.code for finding in result.findings}
    if example.keep:
        assert codes, "left without a word"
        assert all(f.outcome is Outcome.OPEN for f in result.findings)
    else:
        assert rule.code in codes, f"no finding of {rule.code}, only {sorted(codes)}"
    again = migrate_source(new, settings, kind=example.program, path=path)
    assert again.new == result.new
