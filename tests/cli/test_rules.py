"""`tpu-migrate rules`: the list and the explanation, over a small book of the user's own rules."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tpu_migrate import rules as rules_module
from tpu_migrate.cli import cli

BOOK = '''
[TX101]
name = "xla-device"
match = ["torch_xla.device()"]
replace = "torch.device('tpu')"
safety = "safe"
why = "The native device has a name of its own."
since = "torch_xla 1.5"
until = "torch_xla 2.9"
source = "pytorch/xla:torch_xla/torch_xla.py"
[[TX101.example]]
before = "d = torch_xla.device()"
after = "d = torch.device('tpu')"
settings = { device = "tpu" }

[TX201]
name = "mark-step"
match = ["torch_xla.core.xla_model.mark_step()", "torch_xla.sync()"]
transform = "drop-statement"
safety = "review"
why = "It cut the lazy graph and ran it. Native eager runs each op as it comes: nothing is left to cut at all."
review = "Is a clock read around this line? Then write torch.accelerator.synchronize() here."
[[TX201.example]]
before = """
for x, y in loader:
    train(x, y)
    xm.mark_step()
"""
after = """
for x, y in loader:
    train(x, y)
"""
program = "single-process"
[[TX201.example]]
keep = "on_step = xm.mark_step"
because = "passed on, not called: left, with a finding"

[ZZ001]
name = "ours"
match = ["ours.sync()"]
safety = "manual"
why = "Ours."
action = "Write theirs."
[[ZZ001.example]]
keep = "x"
because = "manual"
'''


@pytest.fixture(autouse=True)
def book(tmp_path, monkeypatch):
    (tmp_path / "none").mkdir()
    (tmp_path / "ours.toml").write_text(BOOK)
    (tmp_path / "pyproject.toml").write_text('[tool.tpu-migrate]\nrules = ["ours.toml"]')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    # The rules that ship are left out: they change, and these tests are about how rules are shown.
    monkeypatch.setattr(rules_module, "rules_directory", lambda: tmp_path / "none")


def invoke(*args: str):
    return CliRunner().invoke(cli, ["rules", *args], prog_name="tpu-migrate")


def test_the_list_has_a_line_for_each_rule_by_family():
    result = invoke()
    assert result.exit_code == 0
    assert (
        result.stdout
        == """\
TX1  devices
  TX101  safe    xla-device: The native device has a name of its own.

TX2  graph sync, step, compile
  TX201  review  mark-step: It cut the lazy graph and ran it. Native eager ...

TX9  internals
  TX990  manual  import-kept: A torch_xla import goes only when nothing ...

VN  other vendors' torch_xla
  VN001  manual  other-vendor: AWS Neuron, Tenstorrent and TorchAcc bring a ...

PY  files that can't be read
  PY001  manual  not-parsed: A file that mentions torch_xla can't be read as ...
  PY002  manual  rewrite-failed: The tool failed on this file, or what it ...

ZZ  your own
  ZZ001  manual  ours: Ours.

3 rules, 4 codes without a rule. One of them: tpu-migrate rules CODE
"""
    )


def test_a_rule_is_explained():
    result = invoke("TX201")
    assert result.exit_code == 0
    assert (
        result.stdout.replace(str(invoke_file()), "FILE")
        == """\
TX201 mark-step
review: usually right; applied, and a person should look

It cut the lazy graph and ran it. Native eager runs each op as it comes: nothing
is left to cut at all.

Matches    torch_xla.core.xla_model.mark_step()
           torch_xla.sync()
Look at    Is a clock read around this line? Then write
           torch.accelerator.synchronize() here.
Rule file  FILE
Suppress   # tpu-migrate: ignore[TX201]

Example (in a single-process program)
     for x, y in loader:
         train(x, y)
    -    xm.mark_step()

Left as it is: passed on, not called: left, with a finding
    on_step = xm.mark_step
"""
    )


def invoke_file():
    return json.loads(invoke("TX201", "--format", "json").stdout)["rules"][0]["file"]


def test_versions_settings_and_what_to_write_are_told():
    text = invoke("TX101").stdout
    assert "Versions   since torch_xla 1.5 until torch_xla 2.9\n" in text
    assert "Source     pytorch/xla:torch_xla/torch_xla.py\n" in text
    assert "Example (with device = tpu)\n    -d = torch_xla.device()\n    +d = torch.device('tpu')\n" in text
    assert "Write      Write theirs.\n" in invoke("ZZ001").stdout


def test_a_rule_may_be_asked_for_in_other_ways():
    assert invoke("tx201").stdout == invoke("mark-step").stdout == invoke("TX201").stdout
    assert "TX101" in invoke("TX").stdout
    assert "ZZ001" not in invoke("TX").stdout
    assert "2 rules, 1 code without a rule." in invoke("tx").stdout


@pytest.mark.parametrize(
    ("code", "meant"), [("TX202", "TX201"), ("tx102", "TX101"), ("mark-steps", "mark-step")]
)
def test_an_unknown_code_is_refused_with_the_one_that_was_meant(code, meant):
    result = invoke(code)
    assert result.exit_code == 2
    assert f"no rule is called {code}. Did you mean {meant}? All of them: tpu-migrate rules" in result.stderr
    assert result.stdout == ""


def test_json_has_everything():
    report = json.loads(invoke("--format", "json").stdout)
    codes = [rule["code"] for rule in report["rules"]]
    assert codes == ["PY001", "PY002", "TX101", "TX201", "TX990", "VN001", "ZZ001"]
    assert report["version"] == 1
    rule = report["rules"][3]
    assert (rule["family"], rule["safety"], rule["name"]) == ("TX2", "review", "mark-step")
    assert rule["examples"][1]["because"] == "passed on, not called: left, with a finding"
    assert json.loads(invoke("TX201", "--format", "json").stdout)["rules"] == [rule]


def test_a_code_without_a_rule_is_explained():
    text = invoke("py001").stdout
    assert text == invoke("not-parsed").stdout
    assert text.startswith("PY001 not-parsed\nmanual: found by the tool itself, without a rule\n")
    assert "\nFound when The file isn't Python 3" in text
    assert "\nLeft as it is:\n    import torch_xla.core.xla_model as xm\n" in text
    (rule,) = json.loads(invoke("TX990", "--format", "json").stdout)["rules"]
    assert (rule["family"], rule["safety"], rule["match"]) == ("TX9", "manual", [])
    assert rule["examples"][0]["keep"].endswith("xm.send(x, 1)")
    assert json.loads(invoke("PY002", "--format", "json").stdout)["rules"][0]["examples"] == []


def test_a_broken_rule_file_is_told(tmp_path):
    (tmp_path / "ours.toml").write_text("[TX1]\n")
    result = invoke()
    assert result.exit_code == 2
    assert "TX1 is no code" in result.stderr
    assert result.stderr.startswith("tpu-migrate: ")


def test_colour_is_a_choice():
    assert "\x1b[31m-    xm.mark_step()" in invoke("TX201", "--color", "always").stdout
    assert "\x1b[" not in invoke("TX201").stdout
