"""Suppression by comments, and the settings that switch codes off."""

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.findings import Outcome
from tpu_migrate.python.suppress import Suppressions

from .check import assert_rewritten, assert_unchanged, codes, migrate, without_todos

XM = "import torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize(
    "comment",
    [
        "# tpu-migrate: ignore",
        "#tpu-migrate:ignore",
        "# noqa  # tpu-migrate: ignore",
        "# tpu-migrate: ignore[TX201]",
        "# tpu-migrate: ignore[TX2]",
        "# tpu-migrate: ignore[TX101, TX201]",
        "# tpu-migrate: ignore[ TX201 ]",
    ],
)
def test_a_comment_on_the_line_switches_the_finding_off(comment):
    text = f"{XM}xm.mark_step()  {comment}\n"
    assert_rewritten(text, text, open=["TX990"], suppressed=["TX201"])


@pytest.mark.parametrize(
    "comment", ["# tpu-migrate: ignore[TX101]", "# tpu-migrate", "# migrate: ignore", "# ignore"]
)
def test_a_comment_about_something_else_does_not(comment):
    assert codes(migrate(f"{XM}xm.mark_step()  {comment}\n").findings, Outcome.REWRITTEN) == ["TX201"]


def test_a_comment_on_any_line_of_the_statement_counts():
    text = f"{XM}x = f(\n    xm.xla_device(),\n    1,  # tpu-migrate: ignore\n)\n"
    assert_rewritten(text, text, open=["TX990"], suppressed=["TX101"])


def test_a_comment_on_another_line_does_not_count():
    result = migrate(f"{XM}# tpu-migrate: ignore\nxm.mark_step()\nx = 1  # tpu-migrate: ignore\n")
    assert codes(result.findings, Outcome.REWRITTEN) == ["TX201"]


def test_a_comment_on_the_head_of_a_block_does_not_reach_into_it():
    result = migrate(f"{XM}for a in b:  # tpu-migrate: ignore\n    xm.mark_step()\n")
    assert codes(result.findings, Outcome.REWRITTEN) == ["TX201"]


def test_a_suppressed_finding_gets_no_comment_and_says_why_the_rule_is_there():
    result = migrate(f"{XM}d = xm.xla_device(1)  # tpu-migrate: ignore[TX101]\n")
    assert b"TODO" not in result.new
    assert [f.outcome for f in result.findings if f.code == "TX101"] == [Outcome.SUPPRESSED]


def test_the_words_in_a_string_do_not_suppress():
    assert migrate(f'{XM}d = f(xm.xla_device(), "# tpu-migrate: ignore")\n').rewritten == 2


def test_both_newlines_are_read():
    found = Suppressions("a\r\nb  # tpu-migrate: ignore[TX1]\r\nc\n")
    assert found.covers("TX101", 2, 2)
    assert not found.covers("TX201", 2, 2)
    assert not found.covers("TX101", 3, 9)


# settings


def test_ignored_codes_are_neither_rewritten_nor_found():
    result = migrate(f"{XM}xm.mark_step()\nd = xm.xla_device()\n", Settings(ignore=("TX2",)))
    assert b"xm.mark_step()" in result.new
    assert b'torch.device("tpu")' in result.new
    assert "TX201" not in codes(result.findings)


def test_only_selected_codes_are_rewritten():
    result = migrate(f"{XM}xm.mark_step()\nd = xm.xla_device()\n", Settings(select=("TX101",)))
    assert b"xm.mark_step()" in result.new
    assert b'torch.device("tpu")' in result.new


def test_the_longer_beginning_decides():
    settings = Settings(select=("TX",), ignore=("TX2",))
    assert b"mark_step" in migrate(f"{XM}xm.mark_step()\n", settings).new
    settings = Settings(select=("TX201",), ignore=("TX2",))
    assert b"mark_step" not in migrate(f"{XM}xm.mark_step()\n", settings).new


def test_an_import_stays_for_what_was_not_selected():
    result = migrate(f"{XM}xm.mark_step()\nd = xm.xla_device()\n", Settings(select=("TX101",)))
    assert XM.encode() in result.new


def test_ignoring_the_import_finding_keeps_it_quiet():
    result = migrate(f"{XM}d = xm.xla_device(1)\n", Settings(ignore=("TX990",)))
    assert codes(result.findings) == ["TX101"]


def test_codes_ignored_in_a_file_are_ignored_there_only():
    settings = Settings(per_file_ignores={"old/*.py": ("TX2",)})
    text = f"{XM}xm.mark_step()\n"
    assert migrate(text, settings, path="old/a.py").new.decode() == text
    assert b"mark_step" not in migrate(text, settings, path="new/a.py").new


def test_safe_only_leaves_review_rules_open_and_writes_no_comment_for_them():
    text = f"{XM}xm.mark_step()\nd = xm.xla_device()\n"
    result = migrate(text, Settings(safe_only=True))
    assert result.new.decode() == f'{XM}import torch\nxm.mark_step()\nd = torch.device("tpu")\n'
    assert codes(result.findings) == ["TX201", "TX990"]
    assert "--safe-only" in next(f.message for f in result.findings if f.code == "TX201")


def test_safe_only_leaves_safe_rules_open_where_this_rewrite_is_not_safe():
    text = f"{XM}import torch\nfrom torch_xla.amp import autocast\nwith autocast(xm.xla_device(), dtype=torch.float16):\n    f()\n"
    assert codes(migrate(text, Settings(safe_only=True)).findings, Outcome.OPEN)


def test_without_comments_open_findings_leave_the_file_alone():
    assert_unchanged(
        f"{XM}d = xm.xla_device(1)\n", open=["TX101", "TX990"], settings=Settings(comments=False)
    )


def test_a_comment_stands_above_the_statement_once_for_each_code():
    text = f"{XM}if a:\n    f(xm.xla_device(1), xm.xla_device(2), xm.REDUCE_AND)\n"
    new = migrate(text).new.decode()
    assert without_todos(new.encode()).decode() == text
    assert new.count("    # TODO(tpu-migrate TX101): ") == 1
    assert new.count("    # TODO(tpu-migrate TX324): ") == 1


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("if a: xm.xla_device(1)\n", "# TODO(tpu-migrate TX101): "),
        ("x = [\n    xm.xla_device(1),\n]\n", "# TODO(tpu-migrate TX101): "),
        ("@f(xm.xla_device(1))\ndef g(): pass\n", "# TODO(tpu-migrate TX101): "),
        ("if a:\n    b()\nelif xm.xla_device(1):\n    c()\n", "# TODO(tpu-migrate TX101): "),
        ("def f(a=xm.xla_device(1)):\n    pass\n", "# TODO(tpu-migrate TX101): "),
        ("a(); xm.xla_device(1)\n", "# TODO(tpu-migrate TX101): "),
    ],
)
def test_a_comment_stands_above_the_line_where_the_statement_begins(before, line):
    new = migrate(XM + before).new.decode()
    assert new.startswith(XM + line)
    assert migrate(new).new.decode() == new


def test_a_comment_takes_the_files_newline():
    data = (XM + "if a:\n\txm.xla_device(1)\n").replace("\n", "\r\n").encode()
    new = migrate(data).new
    assert new.count(b"\n") == new.count(b"\r\n")
    assert b"\r\n\t# TODO(tpu-migrate TX101): " in new


def test_comments_are_written_once_over_three_runs():
    data = migrate(f"{XM}d = xm.xla_device(1)\n").new
    assert migrate(migrate(data).new).new == data
    assert data.count(b"TODO") == 1


def test_a_comment_of_the_users_between_ours_and_the_statement_is_no_matter():
    text = f"{XM}# TODO(tpu-migrate TX101): mine now\n# really\nd = xm.xla_device(1)\n"
    assert migrate(text).new.decode() == text
