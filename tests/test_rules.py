"""Loading rules: the user's own files, and what is wrong with one that can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from python.check import assert_rewritten, migrate

from tpu_migrate.config import Settings
from tpu_migrate.findings import Safety
from tpu_migrate.python.match import Matcher
from tpu_migrate.rules import RuleError, load_rules

GOOD = """
[ZZ101]
name = "mine"
match = ["torch_xla.mine.f($x, $y=1)"]
replace = "torch.mine($x, y=$y?)"
safety = "safe"
why = "Ours."

[[ZZ101.example]]
before = "a"
after = "b"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    return path


def message(tmp_path: Path, text: str) -> str:
    path = write(tmp_path, text)
    with pytest.raises(RuleError) as raised:
        Matcher(load_rules([path]))
    said = str(raised.value)
    assert said.startswith(f"{path}: ")
    return said.removeprefix(f"{path}: ")


def test_a_rule_of_the_users_own_is_used(tmp_path):
    path = write(tmp_path, GOOD)
    assert load_rules([path]).get("ZZ101").name == "mine"  # type: ignore[union-attr]
    assert_rewritten(
        "import torch\nimport torch_xla\na = torch_xla.mine.f(1)\nb = torch_xla.mine.f(1, y=2)\n",
        "import torch\na = torch.mine(1)\nb = torch.mine(1, y=2)\n",
        settings=Settings(rules=(path,)),
    )


def test_a_rule_of_the_users_own_for_code_of_the_users_own(tmp_path):
    path = write(tmp_path, GOOD.replace("torch_xla.mine.f", "mylib.tpu.f"))
    assert_rewritten(
        "import torch\nimport mylib.tpu\na = mylib.tpu.f(1)\n",
        "import torch\na = torch.mine(1)\n",
        settings=Settings(rules=(path,)),
    )


def test_a_rule_of_the_users_own_comes_before_ours(tmp_path):
    path = write(
        tmp_path,
        GOOD.replace("torch_xla.mine.f($x, $y=1)", "torch_xla.core.xla_model.mark_step(wait=True)").replace(
            "torch.mine($x, y=$y?)", "torch.mine()"
        ),
    )
    new = migrate(
        "import torch\nimport torch_xla.core.xla_model as xm\nxm.mark_step(wait=True)\n",
        Settings(rules=(path,)),
    ).new
    assert b"torch.mine()" in new


def test_aliases_of_the_users_own_are_used(tmp_path):
    path = write(tmp_path, '[aliases]\n"torch_xla.ours" = "torch_xla.core.xla_model"\n')
    assert_rewritten(
        "import torch\nimport torch_xla.ours as o\nd = o.xla_device()\n",
        'import torch\nd = torch.device("tpu")\n',
        settings=Settings(rules=(path,)),
    )


def test_rules_come_sorted_and_unique():
    rules = load_rules().rules
    codes = [rule.code for rule in rules]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in rules}) == len(rules)


def test_every_pattern_of_ours_can_be_read():
    Matcher(load_rules())


def test_an_unknown_code_is_none():
    assert load_rules().get("XX999") is None


def test_a_family_is_the_letters_and_the_first_digit():
    assert load_rules().get("TX101").family == "TX1"  # type: ignore[union-attr]


# what can't be used


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RuleError, match=r"gone\.toml: no such rule file"):
        load_rules([tmp_path / "gone.toml"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("[ZZ101]", "[ZZ101"), "not TOML: "),
        (("ZZ101", "Z1"), "Z1 is no code; expected two capitals and three digits"),
        (("ZZ101", "TX101"), "TX101 is already defined in rules/torch_xla/devices.toml"),
        (('name = "mine"', 'nome = "mine"'), "ZZ101.nome is not a key; expected one of name, match"),
        (('name = "mine"\n', ""), "ZZ101.name is missing"),
        (('why = "Ours."\n', ""), "ZZ101.why is missing"),
        (('safety = "safe"\n', ""), "ZZ101.safety is missing"),
        (('match = ["torch_xla.mine.f($x, $y=1)"]\n', "match = []\n"), "ZZ101.match is missing"),
        (('"safe"', '"maybe"'), 'ZZ101.safety is "maybe"; expected safe, review or manual'),
        (('"safe"', "1"), "ZZ101.safety is 1; expected a string"),
        (
            ('match = ["torch_xla.mine.f($x, $y=1)"]', 'match = "torch_xla.f()"'),
            "ZZ101.match is 'torch_xla.f()'; expected a list",
        ),
        (('"safe"', '"manual"'), "ZZ101: a manual rule rewrites nothing, yet it has replace"),
        (('"safe"', '"review"'), "ZZ101.review is missing"),
        (
            ('replace = "torch.mine($x, y=$y?)"\n', ""),
            "ZZ101: a safe rule needs replace, helper or transform",
        ),
        (
            ('safety = "safe"', 'safety = "safe"\nprograms = ["cluster"]'),
            'ZZ101.programs has "cluster"; expected some of single-process',
        ),
        (("[[ZZ101.example]]", "[[ZZ101.sample]]"), "ZZ101.sample is not a key"),
        (('[[ZZ101.example]]\nbefore = "a"\nafter = "b"\n', ""), "ZZ101 has no example"),
        (('before = "a"', 'befor = "a"'), "ZZ101.example[0] has befor; expected after, because, before"),
        (
            ('before = "a"', 'keep = "a"\nbefore = "a"\nbecause = "b"'),
            "ZZ101.example[0] needs either before and after, or keep and because",
        ),
        (('before = "a"\nafter = "b"', 'keep = "a"'), "ZZ101.example[0].because is missing"),
        (("f($x, $y=1)", "f($x"), "ZZ101.match: "),
        (("f($x, $y=1)", "f(x)"), "ZZ101.match: "),
        (("[ZZ101]", "ZZ102 = 1\n[ZZ101]"), "ZZ102 is 1; expected a table"),
    ],
)
def test_the_message_names_file_code_and_key(tmp_path, change, says):
    before, after = change
    assert before in GOOD
    assert says in message(tmp_path, GOOD.replace(before, after))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('replace = "torch.mine($x, y=$y?)"', 'replace = "torch.mine("'), "ZZ101.replace"),
        (('replace = "torch.mine($x, y=$y?)"', 'replace = "torch.mine($z)"'), "ZZ101.replace"),
        (('replace = "torch.mine($x, y=$y?)"', 'replace = "@nothing"'), "ZZ101.replace"),
        (('replace = "torch.mine($x, y=$y?)"', 'transform = "no-such"'), "ZZ101.transform"),
        (('replace = "torch.mine($x, y=$y?)"', 'helper = "no_such"'), "ZZ101.helper"),
        (('match = ["torch_xla.mine.f($x, $y=1)"]', "match = [1]"), "ZZ101.match"),
        (("[ZZ101]", "[aliases]\na = 1\n[ZZ101]"), "aliases"),
    ],
)
def test_a_rule_that_would_fail_later_is_refused_when_it_is_loaded(tmp_path, change, says):
    before, after = change
    assert says in message(tmp_path, GOOD.replace(before, after))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RuleError, match="not TOML"):
        load_rules([path])


def test_every_rule_that_is_not_safe_says_what_to_do():
    for rule in load_rules().rules:
        if rule.safety is Safety.REVIEW:
            assert rule.review, rule.code
        if rule.safety is Safety.MANUAL:
            assert rule.action, rule.code
