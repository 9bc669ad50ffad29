"""The command on a small repository, with nothing stood in for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner
from report.test_json import SCHEMA
from report.test_sarif import schema as sarif_schema

from tpu_migrate.cli import cli

TRAIN = """\
import torch
import torch_xla.core.xla_model as xm


def main():
    device = xm.xla_device()
    model = torch.nn.Linear(4, 4).to(device)
    for _ in range(3):
        loss = model(torch.ones(2, 4, device=device)).sum()
        loss.backward()
        xm.mark_step()


if __name__ == "__main__":
    main()
"""
BROKEN = "import torch_xla\nprint 'Python 2'\n"
PLAIN = "print('nothing of ours')\n"


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    root = tmp_path / "repo"
    (root / "old").mkdir(parents=True)
    (root / "train.py").write_text(TRAIN)
    (root / "old" / "two.py").write_text(BROKEN)
    (root / "plain.py").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return root


def invoke(*args: str):
    result = CliRunner().invoke(cli, args, prog_name="tpu-migrate")
    assert "a bug of ours" not in result.stderr, result.stderr
    return result


def contents(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*.py") if ".tpu-migrate" not in path.parts]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def test_a_dry_run_writes_nothing(repository):
    before = contents(repository)
    result = invoke("repo")
    assert result.exit_code == 1
    assert "-    device = xm.xla_device()" in result.stdout
    assert "old/two.py:2:1: PY001 manual: not migrated" in result.stdout
    assert "3 files scanned, 1 would change. Nothing was written." in result.stdout
    assert contents(repository) == before
    assert not (repository / ".tpu-migrate").exists()


def test_apply_writes_and_undo_takes_it_back(repository):
    before = contents(repository)
    assert invoke("repo", "--apply").exit_code == 1  # old/two.py stays open
    after = contents(repository)
    assert b"torch_xla" not in after["train.py"]
    assert {name for name in before if before[name] != after[name]} == {"train.py"}
    assert invoke("repo", "--check", "--exclude", "old/").exit_code == 0
    assert invoke("undo", "repo").exit_code == 0
    assert contents(repository) == before


def test_apply_with_nothing_open_exits_0(repository):
    assert invoke("repo", "--exclude", "old/", "--apply").exit_code == 0


def test_a_repository_without_torch_xla_is_clean(repository):
    result = invoke("repo/plain.py")
    assert result.exit_code == 0
    assert result.stdout == "1 file scanned: no torch_xla found, nothing to do.\n"


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_the_json_report_is_as_its_schema_says(repository, options):
    report = json.loads(invoke("repo", "--format", "json", *options).stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    assert report["summary"]["applied"] is bool(options)
    assert {found["path"] for found in report["findings"]} == {"train.py", "old/two.py"}
    assert report["programs"][0]["entry"] == "train.py"


def test_the_lines_after_apply_are_those_of_the_new_file(repository):
    (repository / "train.py").write_text(TRAIN + "\n\nxm.send(x, 1)\n")
    report = json.loads(invoke("repo", "--apply", "--format", "json", "--no-comments").stdout)
    lines = (repository / "train.py").read_text().splitlines()
    opened = [
        found for found in report["findings"] if found["outcome"] == "open" and found["path"] == "train.py"
    ]
    assert opened
    for found in opened:
        assert found["before"].split("\n")[0] in lines[found["line"] - 1], found


def test_sarif_fixes_make_the_new_code(repository):
    log = json.loads(invoke("repo", "--format", "sarif", "--no-comments").stdout)
    jsonschema.Draft4Validator(sarif_schema()).validate(log)
    edits = set()
    for result in log["runs"][0]["results"]:
        for fix in result.get("fixes", ()):
            (change,) = fix["artifactChanges"]
            assert change["artifactLocation"]["uri"] == "train.py"
            for item in change["replacements"]:
                region = item["deletedRegion"]
                start, end = (
                    offset(TRAIN, region[f"{side}Line"], region[f"{side}Column"]) for side in ("start", "end")
                )
                edits.add((start, end, item.get("insertedContent", {}).get("text", "")))
    text = TRAIN
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    invoke("repo", "--apply", "--no-comments")
    # Fixes are applied one by one, so that none of them may take the import from the others.
    text = text.replace("import torch_xla.core.xla_model as xm\n", "")
    assert text == (repository / "train.py").read_text()


def offset(text: str, line: int, column: int) -> int:
    return sum(len(row) for row in text.splitlines(keepends=True)[: line - 1]) + column - 1


def test_other_reports_are_well_formed(repository):
    root = ElementTree.fromstring(invoke("repo", "--format", "junit").stdout)
    assert root.attrib["failures"] == "2"
    assert invoke("repo", "--format", "markdown").stdout.startswith("## tpu-migrate\n")


def test_it_runs_as_a_module_from_inside_the_repository(repository):
    command = [sys.executable, "-m", "tpu_migrate", ".", "--check"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "\nold/two.py:" in "\n" + done.stdout
