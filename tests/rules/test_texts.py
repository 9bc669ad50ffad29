"""What rules say fits where it is shown."""

import pytest

from tpu_migrate.python.rewrite import _first_sentence
from tpu_migrate.rules import load_rules

RULES = [pytest.param(rule, id=rule.code) for rule in load_rules().rules]


@pytest.mark.parametrize("rule", RULES)
def test_the_todo_comment_holds_a_whole_sentence(rule):
    text = _first_sentence(rule.action)
    assert len(text) <= 140
    assert " ".join(rule.action.split()).startswith(text)
    for opening, closing in ("()", "[]", "{}", "``"):
        assert text.count(opening) == text.count(closing)
        assert opening != closing or text.count(opening) % 2 == 0


@pytest.mark.parametrize("rule", RULES)
def test_versions_are_releases_in_order(rule):
    since, until = (version.rpartition(" ")[2] for version in (rule.since, rule.until))
    for version in filter(None, (since, until)):
        assert all(part.isdecimal() for part in version.split("."))
    if since and until:
        assert [*map(int, since.split("."))] <= [*map(int, until.split("."))]
