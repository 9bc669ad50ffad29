"""The examples of the packaging rules are tests."""

import pytest

from formats.packaging import migrate
from tpu_migrate.config import Settings
from tpu_migrate.findings import Outcome
from tpu_migrate.rules import load_rules

CASES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in load_rules().rules
    if rule.code.startswith("PK")
    for number, example in enumerate(rule.examples)
]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_example(rule, example):
    before = (example.before or example.keep).lstrip("\n")
    after = (example.after or example.keep).lstrip("\n")
    result = migrate(example.file, before, Settings(**example.settings))
    assert result.new.decode() == after
    assert rule.code in {finding.code for finding in result.findings}
    if example.keep:
        assert all(finding.outcome is Outcome.OPEN for finding in result.findings)
    assert migrate(example.file, after).new == result.new
