"""`tpu-migrate undo`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tpu_migrate.cli import cli
from tpu_migrate.workspace.snapshot import Change, Snapshot
from tpu_migrate.workspace.write import replace_file


def invoke(*args: str):
    return CliRunner().invoke(cli, ["undo", *args], prog_name="tpu-migrate")


@pytest.fixture
def applied(tmp_path, monkeypatch):
    """A folder in which a run has changed a.py and b.py."""
    monkeypatch.chdir(tmp_path)
    changes = [Change("a.py", b"old a\n", b"new a\n"), Change("b.py", b"old b\n", b"new b\n")]
    for change in changes:
        (tmp_path / change.relative).write_bytes(change.old)
    with Snapshot.begin(tmp_path, ["tpu-migrate"]) as snapshot:
        snapshot.plan(changes)
        for change in changes:
            replace_file(tmp_path / change.relative, change.new, within=tmp_path)
        snapshot.finish()
    return tmp_path


def test_files_are_put_back(applied):
    result = invoke()
    assert (result.exit_code, result.stdout) == (
        0,
        "restored a.py\nrestored b.py\nRun 1 is undone: 2 files restored.\n",
    )
    assert (applied / "a.py").read_bytes() == b"old a\n"


def test_a_file_stands_for_its_folder(applied):
    (applied / "b.py").write_bytes(b"old b\n")
    assert invoke("a.py").stdout.endswith("Run 1 is undone: 1 file restored, 1 already as before.\n")


def test_edited_files_need_force(applied):
    (applied / "a.py").write_text("mine\n")
    result = invoke(".")
    assert result.exit_code == 2
    assert "tpu-migrate: run 1 was not undone: 1 file changed since." in result.stderr
    assert (applied / "a.py").read_text() == "mine\n"
    assert invoke(".", "--force").exit_code == 0
    assert (applied / "a.py").read_bytes() == b"old a\n"


def test_nothing_to_undo_is_told(tmp_path):
    result = invoke(str(tmp_path))
    assert result.exit_code == 2
    assert "nothing to undo" in result.stderr
    assert f"{tmp_path / 'x'}: no such file or directory." in invoke(str(tmp_path / "x")).stderr
