from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_migrate.workspace.errors import WorkspaceError
from tpu_migrate.workspace.write import remove_leftovers, replace_file

from .trees import make_tree


@pytest.fixture
def folder(tmp_path):
    """A folder that must hold nothing but the files the test names."""
    return make_tree(tmp_path, {"a.py": "old\n"})


@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_written_as_they_are(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("write") / "a.py"
    path.write_bytes(b"old")
    replace_file(path, data)
    assert path.read_bytes() == data


def test_crlf_is_kept(folder):
    replace_file(folder / "a.py", b"a\r\nb\rc\n\x1a")
    assert (folder / "a.py").read_bytes() == b"a\r\nb\rc\n\x1a"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444, 0o664, 0o4711])
def test_mode_bits_are_kept(folder, mode):
    (folder / "a.py").chmod(mode)
    replace_file(folder / "a.py", b"new\n")
    assert stat.S_IMODE((folder / "a.py").stat().st_mode) == mode
    assert os.listdir(folder) == ["a.py"]


def test_a_new_file_gets_the_usual_mode(folder):
    mask = os.umask(0o027)
    try:
        replace_file(folder / "b.py", b"new\n")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((folder / "b.py").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(folder):
    os.chown(folder / "a.py", 1234, 2345)
    replace_file(folder / "a.py", b"new\n")
    status = (folder / "a.py").stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)


def test_an_owner_that_cannot_be_kept_does_not_stop_the_write(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    real = os.stat
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(
        "tpu_migrate.workspace.write.os.stat", lambda path: _owned_by_others(real(path), path)
    )
    replace_file(folder / "a.py", b"new\n")
    assert (folder / "a.py").read_bytes() == b"new\n"


def _owned_by_others(status: os.stat_result, path: object) -> os.stat_result:
    fields = list(status)
    if str(path).endswith("a.py"):
        fields[4:6] = [1234, 2345]
    return os.stat_result(fields)


def test_a_symlink_stays_and_its_target_is_replaced(folder):
    (folder / "sub").mkdir()
    (folder / "sub/link.py").symlink_to("../a.py")
    replace_file(folder / "sub/link.py", b"new\n")
    assert (folder / "sub/link.py").is_symlink()
    assert (folder / "a.py").read_bytes() == b"new\n"
    assert os.listdir(folder / "sub") == ["link.py"]


def test_nothing_is_written_outside_of_the_tree(tmp_path):
    make_tree(tmp_path, {"out/x.py": "old\n", "repo/a.py": ""})
    (tmp_path / "repo/link.py").symlink_to("../out/x.py")
    (tmp_path / "repo/folder").symlink_to("../out")
    for name in ("link.py", "folder/x.py"):
        with pytest.raises(WorkspaceError, match=r"not written, because it lies at .*out/x\.py, outside of"):
            replace_file(tmp_path / "repo" / name, b"new\n", within=tmp_path / "repo")
    assert (tmp_path / "out/x.py").read_bytes() == b"old\n"


def test_a_folder_is_not_replaced(folder):
    (folder / "b.py").mkdir()
    with pytest.raises(WorkspaceError, match=r"b\.py: can't be written \(it is not a regular file\)"):
        replace_file(folder / "b.py", b"new\n")


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_exception_leaves_the_old_file_and_nothing_else(folder, monkeypatch, call, error):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises((WorkspaceError, KeyboardInterrupt)) as caught:
        replace_file(folder / "a.py", b"new\n")
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert "a.py: can't be written (No space left on device). It keeps its old content." in str(
            caught.value
        )
    assert os.listdir(folder) == ["a.py"]
    assert (folder / "a.py").read_bytes() == b"old\n"


def test_a_long_file_name_leaves_room_for_the_temporary_one(folder):
    path = folder / ("n" * 252 + ".py")
    path.write_bytes(b"old\n")
    replace_file(path, b"new\n")
    assert path.read_bytes() == b"new\n"


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(folder):
    make_tree(folder, {".tpu-migrate-x1.tmp": "", ".tpu-migrate-notes": "", "x.tmp": ""})
    remove_leftovers([folder, folder / "missing"])
    assert sorted(os.listdir(folder)) == [".tpu-migrate-notes", "a.py", "x.tmp"]


def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(WorkspaceError, match=r"gone/a\.py: can't be written \(No such file or directory\)"):
        replace_file(Path(tmp_path / "gone/a.py"), b"")
