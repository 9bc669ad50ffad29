"""The examples of the rules are tests: what they say comes out, byte for byte, and a second run changes nothing."""

import ast
import re

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.findings import Outcome
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
    settings = Settings(**example.settings)
    before = (example.before or example.keep).lstrip("\n")
    after = (example.after or example.keep).lstrip("\n")
    result = migrate_source(before, settings, kind=example.program)
    new = result.new.decode()
    assert without_comments(new) == after
    ast.parse(new)
    codes = {finding.code for finding in result.findings}
    if example.keep:
        assert codes, "left without a word"
        assert all(f.outcome is Outcome.OPEN for f in result.findings)
    else:
        assert rule.code in codes, f"no finding of {rule.code}, only {sorted(codes)}"
    again = migrate_source(new, settings, kind=example.program)
    assert again.new == result.new
