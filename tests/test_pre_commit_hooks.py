"""The two hooks of .pre-commit-hooks.yaml, as the real pre-commit installs and runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="pre-commit needs git"),
]

REPOSITORY = Path(__file__).resolve().parent.parent

OLD = """\
import torch_xla.core.xla_model as xm

device = xm.xla_device()
"""
NEW = """\
import torch

device = torch.device("tpu")
"""
OPEN = """\
import torch_xla

print(torch_xla._XLAC._xla_tensors_info([]))
"""


@dataclass
class Project:
    """A scratch repository whose .pre-commit-config.yaml names one of our hooks."""

    root: Path
    environment: Mapping[str, str]

    def git(self, *arguments: str) -> str:
        command = ("git", *arguments)
        return subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(text)
        self.git("add", name)
        return path

    def run_hooks(self) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One pre-commit cache for the module, so that the hooks' environment is built once."""
    # Under a git hook GIT_DIR and its kin are set, and every git command here would act on the wrong repository.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = {
        f"GIT_{who}_{what}": "hooks@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {
        **inherited,
        **identity,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit")),
    }


@pytest.fixture(scope="module")
def published(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A clone that holds the working tree as one commit: pre-commit installs only what is committed."""
    clone = Project(tmp_path_factory.mktemp("published"), environment)
    listed = Project(REPOSITORY, environment).git(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    )
    for name in filter(None, listed.split("\0")):
        source, target = REPOSITORY / name, clone.root / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    clone.git("init", "--quiet")
    clone.git("add", "--all", "--force")
    clone.git("commit", "--quiet", "--message", "the working tree")
    return clone


def project(root: Path, published: Project, hook: str) -> Project:
    made = Project(root, published.environment)
    made.git("init", "--quiet")
    config = f"repos:\n- repo: {published.root}\n  rev: {published.git('rev-parse', 'HEAD').strip()}\n"
    made.write(".pre-commit-config.yaml", f"{config}  hooks:\n  - id: {hook}\n")
    return made


def test_the_fixing_hook_rewrites_fails_once_and_passes_then(tmp_path: Path, published: Project) -> None:
    scratch = project(tmp_path, published, "tpu-migrate")
    program = scratch.write("train.py", OLD)
    code, output = scratch.run_hooks()
    assert code == 1, output
    assert "files were modified by this hook" in output
    assert program.read_text() == NEW
    assert "?? " not in scratch.git("status", "--porcelain"), "the hook leaves files that git sees"

    scratch.git("add", "train.py")
    code, output = scratch.run_hooks()
    assert code == 0, output


def test_the_fixing_hook_fails_while_something_is_open(tmp_path: Path, published: Project) -> None:
    scratch = project(tmp_path, published, "tpu-migrate")
    scratch.write("train.py", OPEN)
    scratch.run_hooks()  # writes the TODO comment
    scratch.git("add", "train.py")
    code, output = scratch.run_hooks()
    assert code == 1, output
    assert "files were modified" not in output


def test_the_checking_hook_reports_and_writes_nothing(tmp_path: Path, published: Project) -> None:
    scratch = project(tmp_path, published, "tpu-migrate-check")
    program = scratch.write("train.py", OLD)
    code, output = scratch.run_hooks()
    assert code == 1, output
    assert "train.py" in output
    assert "files were modified" not in output
    assert program.read_text() == OLD


def test_the_checking_hook_passes_on_migrated_code(tmp_path: Path, published: Project) -> None:
    scratch = project(tmp_path, published, "tpu-migrate-check")
    scratch.write("train.py", NEW)
    code, output = scratch.run_hooks()
    assert code == 0, output


def test_a_notebook_is_rewritten_too(tmp_path: Path, published: Project) -> None:
    scratch = project(tmp_path, published, "tpu-migrate")
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": []}
    notebook = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = scratch.write("train.ipynb", json.dumps({"cells": [{**cell, "source": OLD}], **notebook}))
    code, output = scratch.run_hooks()
    assert code == 1, output
    source = json.loads(path.read_text())["cells"][0]["source"]
    assert "".join(source) == NEW


@pytest.mark.parametrize("hook", ["tpu-migrate", "tpu-migrate-check"])
def test_files_of_other_kinds_are_not_handed_over(tmp_path: Path, published: Project, hook: str) -> None:
    scratch = project(tmp_path, published, hook)
    scratch.write("notes.md", "import torch_xla\n")
    code, output = scratch.run_hooks()
    assert code == 0, output
    assert "no files to check" in output
