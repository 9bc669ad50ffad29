"""`tpu-migrate PATH...`: options, exit codes and where output goes. The run itself is stood in for."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner
from report import samples

from tpu_migrate.cli import cli
from tpu_migrate.config import ConfigError


class Pipeline:
    """Stands in for tpu_migrate.pipeline: keeps how it was called, and returns or raises `answer`."""

    def __init__(self) -> None:
        self.answer = samples.usual()
        self.calls = []

    def run(self, paths, settings, *, apply=False, jobs=1, progress=None):
        self.calls.append(types.SimpleNamespace(paths=paths, settings=settings, apply=apply, jobs=jobs))
        if progress:
            progress(1, 2)
        if isinstance(self.answer, BaseException):
            raise self.answer
        self.answer.applied = apply
        return self.answer

    @property
    def call(self):
        (call,) = self.calls
        return call


@pytest.fixture
def pipeline(monkeypatch) -> Pipeline:
    stand_in = Pipeline()
    module = types.ModuleType("tpu_migrate.pipeline")
    module.run = stand_in.run
    monkeypatch.setitem(sys.modules, "tpu_migrate.pipeline", module)
    return stand_in


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "train.py").write_text("import torch_xla\n")
    return tmp_path


def invoke(*args: str):
    return CliRunner().invoke(cli, args, prog_name="tpu-migrate")


def assert_wrong_use(*args: str, says: str):
    result = invoke(*args)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stdout == ""


# Which command


def test_a_path_means_migrate(pipeline):
    assert invoke(".").stdout == invoke("migrate", ".").stdout != ""


def test_options_may_come_first(pipeline):
    invoke("--safe-only", "train.py")
    assert pipeline.call.paths == [Path("train.py")]
    assert pipeline.call.settings.safe_only


def test_bare_and_help_show_the_same(pipeline):
    bare, asked = invoke(), invoke("--help")
    assert bare.exit_code == asked.exit_code == 0
    assert bare.stdout == asked.stdout
    for word in ("--apply", "--check", "--jobs", "Commands:", "doctor", "undo", "rules", "Exit codes: 0"):
        assert word in asked.stdout
    assert not pipeline.calls


def test_help_of_the_command_has_its_options():
    assert "--no-comments" in invoke("migrate", "--help").stdout


def test_version_is_told():
    assert invoke("--version").stdout == "tpu-migrate 0.1.0\n"


# Options


def test_options_reach_the_run(pipeline):
    invoke(
        "train.py", "--apply", "--safe-only", "--no-comments", "--device", "accelerator", "--launcher", "spawn",
        "--exclude", "a/", "--exclude", "b.py", "--jobs", "3",
    )  # fmt: skip
    call = pipeline.call
    assert (call.apply, call.jobs) == (True, 3)
    assert (call.settings.device, call.settings.launcher) == ("accelerator", "spawn")
    assert (call.settings.safe_only, call.settings.comments) == (True, False)
    assert call.settings.exclude == ("a/", "b.py")


def test_codes_are_lists_and_may_be_repeated(pipeline, monkeypatch):
    assert invoke(".", "--select", "TX1, TX2", "--select", "PY", "--ignore", "PY001").exit_code == 1
    assert pipeline.call.settings.select == ("TX1", "TX2", "PY")
    assert pipeline.call.settings.ignore == ("PY001",)


def test_settings_come_from_the_folder_that_holds_all_paths(pipeline, folder):
    (folder / "pyproject.toml").write_text('[tool.tpu-migrate]\ndevice = "accelerator"\ncomments = false')
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "pyproject.toml").write_text("[project]")
    invoke("a", "b")
    invoke("a")
    assert [call.settings.device for call in pipeline.calls] == ["accelerator", "tpu"]
    assert pipeline.calls[0].settings.comments is False


def test_no_jobs_means_all_cores(pipeline):
    invoke(".")
    assert pipeline.call.jobs >= 1


# Exit codes


@pytest.mark.parametrize(
    ("answer", "args", "code"),
    [
        (samples.clean(), ["."], 0),
        (samples.usual(), ["."], 1),
        (samples.usual(), [".", "--check"], 1),
        (samples.usual(), [".", "--apply"], 1),
        (samples.run(samples.file(samples.safe())), ["."], 1),
        (samples.run(samples.file(samples.safe())), [".", "--check"], 1),
        (samples.run(samples.file(samples.safe(), samples.review())), [".", "--apply"], 0),
        (samples.usual(), [".", "--format", "json"], 1),
    ],
)
def test_the_exit_code_says_whether_something_is_left(pipeline, answer, args, code):
    pipeline.answer = answer
    assert invoke(*args).exit_code == code


def test_check_never_applies(pipeline):
    invoke(".", "--check")
    assert pipeline.call.apply is False


def test_wrong_use_exits_2(pipeline):
    assert_wrong_use(".", "--apply", "--check", says="--apply and --check exclude each other")
    assert_wrong_use("--apply", says="no PATH given. For the current directory: tpu-migrate .")
    assert_wrong_use("nowhere", says="nowhere: no such file or directory.")
    assert_wrong_use("ruels", says="Did you mean the command: tpu-migrate rules?")
    assert_wrong_use(".", "--frmat", "json", says="No such option")
    assert_wrong_use(".", "--format", "yaml", says="'yaml' is not one of")
    assert_wrong_use(".", "--jobs", "-1", says="-1 is not in the range")
    assert_wrong_use(".", "--select", ",", says="no code given")
    assert_wrong_use(".", "--select", "mark-step", says='--select is a list with "mark-step" in it; expected')
    assert_wrong_use(".", "--output", ".", says="--output . is a directory; name a file")
    assert_wrong_use(
        ".", "--output", "no/such/report.json", says="there is no directory no/such; make it first"
    )
    assert not pipeline.calls


def test_a_code_that_no_rule_has_is_refused(pipeline, folder, monkeypatch):
    from tpu_migrate import rules

    (folder / "shipped").mkdir()
    monkeypatch.setattr(rules, "rules_directory", lambda: folder / "shipped")
    (folder / "pyproject.toml").write_text('[tool.tpu-migrate]\nrules = ["ours.toml"]')
    (folder / "ours.toml").write_text(
        '[TX101]\nname = "n"\nmatch = ["m"]\nsafety = "manual"\nwhy = "w"\naction = "a"\n'
        '[[TX101.example]]\nkeep = "x"\nbecause = "b"\n'
    )
    assert_wrong_use(
        ".", "--select", "TX111", says="select names TX111, but no rule has this code. Did you mean TX101?"
    )
    assert_wrong_use(".", "--ignore", "QQ", says="ignore names QQ, but no rule has this code.")
    assert_wrong_use(".", "--ignore", "PY009", says="ignore names PY009, but no rule has this code.")
    assert invoke(".", "--select", "VN001", "--ignore", "TX990,PY001,PY002").exit_code == 1


def test_wrong_settings_are_told_in_one_message(pipeline, folder):
    (folder / "pyproject.toml").write_text("[tool.tpu-migrate]\ndevcie = 1")
    result = invoke(".")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"tpu-migrate: {folder / 'pyproject.toml'}: [tool.tpu-migrate] has no key devcie"
    )
    assert result.stderr.count("\n") == 1


def test_expected_failures_have_no_log(pipeline, folder):
    from tpu_migrate.rules import RuleError
    from tpu_migrate.workspace.errors import UndoConflict, WorkspaceError

    for error in (ConfigError("it"), RuleError("it"), WorkspaceError("it"), UndoConflict("it", ("a",))):
        pipeline.answer = error
        result = invoke(".")
        assert (result.exit_code, result.stderr) == (2, "tpu-migrate: it\n")
    assert not (folder / "cache").exists()


def test_a_bug_of_ours_writes_a_log(pipeline, folder):
    pipeline.answer = KeyError("span\x1b")
    result = invoke(".", "--apply")
    assert result.exit_code == 2
    assert "tpu-migrate: a bug of ours: KeyError: 'span\\x1b'" in result.stderr
    (log,) = (folder / "cache" / "tpu-migrate").iterdir()
    assert f"Log, to paste into an issue: {log}" in result.stderr
    text = log.read_text()
    assert "tpu-migrate . --apply" in text
    assert "Traceback" in text
    assert "`tpu-migrate undo` takes them back" in result.stderr
    assert "undo" not in invoke(".").stderr
    assert "tpu-migrate 0.1.0, Python 3." in text


def test_where_the_cache_cannot_be_written_the_log_goes_elsewhere(pipeline, folder, monkeypatch):
    import tempfile

    (folder / "cache").write_text("in the way")
    (folder / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
    pipeline.answer = RuntimeError("x")
    assert str(folder / "tmp") in invoke(".").stderr
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "cache"))
    assert "No log could be written" in (text := invoke(".").stderr)
    assert "RuntimeError: x" in text


def test_an_interrupt_exits_130(pipeline):
    pipeline.answer = KeyboardInterrupt()
    result = invoke(".")
    assert result.exit_code == 130
    assert "interrupted. Each file is either as it was or done." in result.stderr


# Output


def test_a_dry_run_shows_the_diff_and_apply_and_check_do_not(pipeline):
    assert "+++ b/train.py" in invoke(".").stdout
    assert "+++ b/train.py" not in invoke(".", "--no-diff").stdout
    assert "+++ b/train.py" not in invoke(".", "--check").stdout
    assert "+++ b/train.py" not in invoke(".", "--apply").stdout
    assert "+++ b/train.py" in invoke(".", "--apply", "--diff").stdout


def test_quiet_shows_what_is_open_and_no_more(pipeline):
    text = invoke(".", "--quiet").stdout
    assert "TX702 manual" in text
    assert "scanned" not in text
    assert "+++" not in text
    pipeline.answer = samples.done()
    assert invoke(".", "--quiet", "--apply").output == ""


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("json", "{"),
        ("sarif", "{"),
        ("junit", "<?xml"),
        ("markdown", "## tpu-migrate"),
        ("terminal", "--- a/"),
    ],
)
def test_each_format_has_standard_output_to_itself(pipeline, form, start):
    result = invoke(".", "--format", form)
    assert result.stdout.startswith(start)
    assert result.stderr == ""


def test_output_goes_to_the_file_and_the_summary_to_the_terminal(pipeline, folder):
    result = invoke(".", "--format", "json", "--output", "report.json")
    assert json.loads((folder / "report.json").read_text())["version"] == 1
    assert result.stdout.startswith("12 files scanned, 1 would change.")
    assert invoke(".", "--output", "report.txt", "--quiet").output == ""
    assert "TX702" in (folder / "report.txt").read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a file that is always full")
def test_output_that_cannot_be_written_fails(pipeline):
    result = invoke(".", "--output", "/dev/full")
    assert result.exit_code == 2
    assert "--output /dev/full: can't be written: No space left on device." in result.stderr


def test_colour_can_be_chosen(pipeline):
    assert "\x1b[" not in invoke(".").stdout
    assert "\x1b[" in invoke(".", "--color", "always").stdout
    assert "\x1b[" not in invoke(".", "--color", "never").stdout


def test_paths_are_shown_from_where_the_user_is(pipeline, folder):
    pipeline.answer.root = folder / "repo"
    assert "repo/train.py:6:5: TX702" in invoke(".").stdout


def test_sarif_takes_its_texts_from_the_rules(pipeline):
    log = json.loads(invoke(".", "--format", "sarif").stdout)
    assert log["runs"][0]["tool"]["driver"]["rules"][0]["id"] == "PY001"
