"""The report at a terminal."""

from __future__ import annotations

import re
from pathlib import Path

from report import samples
from tpu_migrate.report import terminal


def test_the_whole_report_reads_like_this():
    assert (
        terminal.render(samples.usual())
        == """\
--- a/train.py
+++ b/train.py
@@ -1,6 +1,6 @@
+import torch
 import torch_xla.core.xla_model as xm
\x20
-device = xm.xla_device()
+device = torch.device("tpu")
 loss.backward()
-xm.mark_step()
 w = xm.get_memory_info(device)

old/train.py:41:15: PY001 manual: not migrated: this is not Python 3 (print
  statement).
  Its 3 lines with torch_xla were not changed.
    print 'x'

train.py:5:1: TX201 review: Is a clock read around this line? Then write
  torch.accelerator.synchronize() here.
    xm.mark_step()
train.py:6:5: TX702 manual: Write torch.accelerator.memory_stats(); its keys
  have other names.
    xm.get_memory_info(device)
train.py:9:1: TX201 not rewritten: the value of t = xm.mark_step() is used;
  remove it by hand
    t = xm.mark_step()

12 files scanned, 1 would change. Nothing was written.
  rewritten       2   1 safe, 1 to review
  open            3   2 manual, 1 not rewritten
  suppressed      1
  torch_xla references rewritten: 2 of 7 (28 %)
Programs
  train.py: multi-process: xmp.spawn is called at train.py:88
Next: run it again with --apply to write this.
What a code means: tpu-migrate rules CODE
"""
    )


def test_a_repository_without_torch_xla_has_one_line():
    assert terminal.render(samples.clean()) == "12 files scanned: no torch_xla found, nothing to do.\n"


def test_after_apply_it_says_how_to_take_it_back():
    result = samples.done()
    result.root = Path("../my repo")
    text = terminal.render(result, diff=False)
    assert "12 files scanned, 1 changed." in text
    assert "Take it back: tpu-migrate undo '../my repo'\n" in text
    assert "--apply" not in text


def test_the_quiet_report_holds_only_what_is_open():
    text = terminal.render_open(samples.usual())
    assert re.findall(r"(?m)^\S+: (\w+) ", text) == ["PY001", "TX702", "TX201"]
    assert terminal.render_open(samples.done()) == ""


def test_findings_that_say_the_same_are_told_once():
    findings = [samples.review(line=line, column=9) for line in (5, 8, 30)]
    text = terminal.render(samples.run(samples.file(*findings)), diff=False)
    assert text.count("Is a clock read") == 1
    assert "  also at 8:9, 30:9\n" in text


def test_the_label_is_not_said_twice():
    finding = samples.refused(message="not rewritten: its value is used. Remove it by hand.")
    text = terminal.render(samples.run(samples.file(finding)), diff=False)
    assert "TX201 not rewritten: its value is used." in text
    assert text.count("not rewritten: ") == 1


def test_a_notebook_cell_is_named():
    text = terminal.render_open(samples.run(samples.file(samples.manual(cell=3))))
    assert text.startswith("train.py:cell 3:6:5: TX702 manual:")


def test_paths_can_be_opened_from_where_the_user_is():
    text = terminal.render_open(samples.usual(), prefix="../repo/")
    assert text.startswith("../repo/old/train.py:41:15: PY001")


def test_text_fits_its_columns():
    for width in (60, 80, 110):
        for line in terminal.render(samples.usual(), width=width).splitlines():
            assert len(line) <= width


def test_colour_only_adds_colour():
    coloured = terminal.render(samples.usual(), colour=True)
    assert "\x1b[31m-xm.mark_step()\x1b[0m" in coloured
    assert "\x1b[32m+import torch\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == terminal.render(samples.usual())


def test_source_code_cannot_command_the_terminal():
    text = terminal.render(samples.hostile())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\udcff]", text)
    assert "[red]@user" in text
    assert r"\x1b[31mX\x07" in text


def test_what_was_skipped_is_said():
    result = samples.clean()
    result.skipped = tuple(
        (f"third_party/{n}", "vendored code: name the folder to migrate it too") for n in range(12)
    )
    text = terminal.render(result)
    assert "Not looked at\n  third_party/0: vendored code: name the folder to migrate it too\n" in text
    assert "  and 2 more\n" in text
