"""`tpu-migrate doctor`: this interpreter and others."""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tpu_migrate.cli import cli, diagnoses, probe


def invoke(*args: str, **environment: str):
    return CliRunner(env=environment).invoke(cli, ["doctor", *args], prog_name="tpu-migrate")


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    for name in diagnoses.VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder in which packages can be put, as pip would, without their code."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def put(name: str, version: str, *lines: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines])
        )

    return put


def test_an_environment_without_any_is_fine(packages):
    result = invoke()
    assert result.exit_code == 0
    assert "  torch_tpu     -\n" in result.stdout
    assert "Nothing is wrong here." in result.stdout
    assert "Rewriting code needs none of these packages" in result.stdout


def test_both_sides_in_one_environment_are_a_problem(packages):
    packages("torch", "2.13.0")
    packages("torch_xla", "2.9.0")
    packages("torch-tpu", "0.2.0", "Requires-Python: >=3.11", "Requires-Dist: torch>=2.11.0,<=2.15.0")
    packages("libtpu", "0.0.51")
    result = invoke()
    assert result.exit_code == 1
    assert "  torch_tpu     0.2.0\n" in result.stdout
    assert "\nproblem: torch_xla 2.9.0 (needs torch 2.9) and torch_tpu 0.2.0 are both here." in result.stdout
    assert "  Keep the new side here:\n      pip uninstall torch_xla\n" in result.stdout
    assert "\n1 problem.\n" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith("Python"))


def test_another_interpreter_is_asked_without_importing_anything(packages, tmp_path):
    packages("torch", "2.9.1+cpu")
    (tmp_path / "torch.py").write_text("raise SystemExit('imported')")
    result = invoke("--python", sys.executable, "--format", "json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["packages"]["torch"] == "2.9.1+cpu"
    assert report["packages"]["jax"] is None
    assert report["python"]["executable"] == sys.executable
    assert report["problems"] == []


def test_json_says_what_to_do(packages):
    packages("torch_xla", "2.9.0")
    report = json.loads(invoke("--format", "json", XLA_USE_BF16="1").stdout)
    assert report["variables"] == {"XLA_USE_BF16": "1"}
    first, second = report["problems"]
    assert (first["id"], first["severity"]) == ("torch-xla-without-torch", "problem")
    assert first["do"] == [{"for": "Install it", "command": "pip install 'torch==2.9.*'"}]
    assert (second["id"], second["severity"]) == ("xla-use-bf16", "note")


def test_what_is_no_interpreter_is_refused(tmp_path):
    result = invoke("--python", str(tmp_path / "python"))
    assert result.exit_code == 2
    assert f"--python {tmp_path / 'python'}: No such file or directory." in result.stderr
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    assert "its answer makes no sense" in invoke("--python", str(silent)).stderr
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho SyntaxError: old >&2\nexit 1\n")
    failing.chmod(0o755)
    assert "SyntaxError: old." in invoke("--python", str(failing)).stderr


def test_an_active_environment_that_is_not_ours_is_named(packages, tmp_path):
    other = os.path.join(tmp_path, "bin", "python")
    assert f"tpu-migrate doctor --python {other}" in invoke(VIRTUAL_ENV=str(tmp_path)).stdout
    assert "active environment" not in invoke(VIRTUAL_ENV=sys.prefix).stdout


def test_the_probe_stays_readable_for_old_pythons():
    source = Path(probe.__file__).read_text("utf-8")
    ast.parse(source, feature_version=(3, 8))
