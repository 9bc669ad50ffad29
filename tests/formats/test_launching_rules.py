"""The examples of the rules for launching are tests."""

import pytest

from tests.formats.launching import becomes, migrate
from tpu_migrate.rules import load_rules

CASES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in load_rules().rules
    if rule.code.startswith("LA")
    for number, example in enumerate(rule.examples)
]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_example(rule, example):
    before = (example.before or example.keep).lstrip("\n")
    assert becomes(example.file, before) == (example.after or example.keep).lstrip("\n")
    assert rule.code in [finding.code for finding in migrate(example.file, before).findings]
