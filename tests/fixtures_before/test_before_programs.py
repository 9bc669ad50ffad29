"""The before side of every fixture: its description is complete, and it runs where it says so.

The programs run only when TPU_MIGRATE_BEFORE_PYTHON names a Python that has torch_xla 2.9.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2] / "fixtures"
KINDS = {"single-process", "multi-process", "spmd", "library"}
LOSS = re.compile(r"^step (\d+) loss (-?\d+\.\d{6})", re.MULTILINE)
BEFORE_PYTHON = os.environ.get("TPU_MIGRATE_BEFORE_PYTHON", "")


def load(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name / "fixture.toml").read_text(encoding="utf-8"))


NAMES = sorted(path.parent.name for path in ROOT.glob("*/fixture.toml"))


def test_there_are_enough_programs() -> None:
    assert len(NAMES) >= 16


@pytest.mark.parametrize("name", NAMES)
def test_description_is_complete(name: str) -> None:
    fixture = load(name)
    before = ROOT / name / "before"
    assert fixture["title"]
    assert fixture["shows"]
    assert fixture["kind"] in KINDS
    assert (before / fixture["run"][0]).is_file()
    assert fixture["processes"] >= 1
    assert fixture["runs_before"] or fixture["why_not"]
    assert fixture["runs_before"] == bool(fixture.get("losses"))
    for note in fixture["expect"]:
        text = (before / note["file"]).read_text(encoding="utf-8")
        assert text.count(note["near"]) == 1, f"{name}: {note['file']}: {note['near']!r}"
        assert note["must"]


@pytest.mark.parametrize("name", NAMES)
def test_sources_parse_and_use_torch_xla(name: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / name / "before").rglob("*.py"))]
    for source in sources:
        ast.parse(source)
    assert any("torch_xla" in source for source in sources)


@pytest.mark.skipif(not BEFORE_PYTHON, reason="TPU_MIGRATE_BEFORE_PYTHON is not set")
@pytest.mark.parametrize("name", [name for name in NAMES if load(name)["runs_before"]])
def test_losses_on_the_real_torch_xla(name: str, tmp_path: Path) -> None:
    fixture = load(name)
    work = tmp_path / name
    shutil.copytree(ROOT / name / "before", work)
    env = {**os.environ, "PJRT_DEVICE": "CPU", **fixture.get("env", {})}
    done = subprocess.run(
        [BEFORE_PYTHON, *fixture["run"]], cwd=work, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    losses = [float(value) for _, value in LOSS.findall(done.stdout)]
    assert losses == pytest.approx(fixture["losses"], abs=2e-5)
