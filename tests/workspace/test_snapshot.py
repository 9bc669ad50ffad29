from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_migrate.workspace.snapshot import Change, Snapshot, UndoConflict, WorkspaceError, latest_before, undo
from tpu_migrate.workspace.walk import walk
from tpu_migrate.workspace.write import replace_file

from .trees import TOOL_ENVIRONMENT, git, make_tree, read_tree


def apply(root: Path, new: dict[str, bytes], *, finish: bool = True, replaced: int | None = None) -> None:
    """Do what `--apply` does; ``replaced`` stops it after so many files."""
    changes = [Change(path, (root / path).read_bytes(), data) for path, data in new.items()]
    with Snapshot.begin(root, ["tpu-migrate", ".", "--apply"]) as snapshot:
        snapshot.plan(changes)
        for change in changes[:replaced]:
            replace_file(root / change.relative, change.new, within=root)
        if finish:
            snapshot.finish()


def manifest(root: Path, run: int) -> dict:
    return json.loads((root / f".tpu-migrate/runs/{run}/manifest.json").read_bytes())


@pytest.fixture
def root(tmp_path):
    make_tree(tmp_path, {"a.py": "a\n", "pkg/b.py": "b\r\n", "pkg/c.py": "c\n"})
    (tmp_path / "pkg/b.py").chmod(0o755)
    return tmp_path


# Keeping


def test_originals_and_manifest_are_kept(root):
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\r\n"})
    written = manifest(root, 1)
    assert written["state"] == "applied"
    assert written["argv"] == ["tpu-migrate", ".", "--apply"]
    assert [(file["path"], file["mode"]) for file in written["files"]][1] == ("pkg/b.py", "0755")
    assert set(written) == {"version", "run", "state", "tool", "time", "argv", "files"}
    before = latest_before(root)
    assert before == root / ".tpu-migrate/runs/1/before"
    assert read_tree(before) == {"a.py": (b"a\n", 0o644), "pkg/b.py": (b"b\r\n", 0o755)}


def test_the_manifest_is_there_before_any_file_is_replaced(root):
    with Snapshot.begin(root, []) as snapshot:
        assert snapshot.run is None
        snapshot.plan([Change("a.py", b"a\n", b"A\n")])
        assert snapshot.run == 1
        assert manifest(root, 1)["state"] == "applying"
        assert (root / "a.py").read_bytes() == b"a\n"


def test_the_folder_ignores_itself_in_git_and_in_the_walk(root):
    git(root, "init", "-q")
    git(root, "add", "-A")
    apply(root, {"pkg/c.py": b"C\n"})
    assert git(root, "status", "--porcelain", "--untracked-files=all").splitlines() == [
        "A  a.py",
        "A  pkg/b.py",
        "AM pkg/c.py",
    ]
    assert [file.relative for file in walk([root]).files] == ["a.py", "pkg/b.py", "pkg/c.py"]


def test_a_plan_without_changes_makes_no_run(root):
    with Snapshot.begin(root, []) as snapshot:
        snapshot.plan([Change("a.py", b"a\n", b"a\n")])
        snapshot.finish()
    assert not (root / ".tpu-migrate/runs").exists()
    assert latest_before(root) is None


def test_a_file_edited_since_it_was_read_stops_the_plan(root):
    edited = r"^a\.py: it was edited while tpu-migrate ran, so nothing was changed"
    with Snapshot.begin(root, []) as snapshot, pytest.raises(WorkspaceError, match=edited):
        snapshot.plan([Change("pkg/b.py", b"b\r\n", b"B"), Change("a.py", b"other", b"A")])
    assert os.listdir(root / ".tpu-migrate/runs") == []


def test_a_full_disk_stops_the_plan_and_leaves_no_run(root, monkeypatch):
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with Snapshot.begin(root, []) as snapshot:
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(
            WorkspaceError, match=r"can't keep the originals there \(No space left on device\)"
        ):
            snapshot.plan([Change("a.py", b"a\n", b"A")])
    assert os.listdir(root / ".tpu-migrate/runs") == []


def test_a_plan_that_never_began_is_cleared_up(root):
    make_tree(root, {".tpu-migrate/runs/1/before/a.py": "half"})
    assert latest_before(root) is None
    apply(root, {"a.py": b"A\n"})
    assert os.listdir(root / ".tpu-migrate/runs") == ["1"]
    assert manifest(root, 1)["state"] == "applied"


def test_names_that_are_not_utf8_survive(root):
    name = os.fsdecode(b"caf\xe9.py")
    try:
        (root / name).write_bytes(b"old")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    apply(root, {name: b"new"})
    assert undo(root).restored == (name,)
    assert (root / name).read_bytes() == b"old"


def test_two_applies_at_once_are_refused(root):
    with Snapshot.begin(root, []):
        with pytest.raises(WorkspaceError, match=rf"another tpu-migrate \(process {os.getpid()}\)"):
            Snapshot.begin(root, [])
        with pytest.raises(WorkspaceError, match="another tpu-migrate"):
            undo(root)
    Snapshot.begin(root, []).finish()


def test_a_symlinked_folder_of_originals_is_refused(root, tmp_path_factory):
    (root / ".tpu-migrate").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(WorkspaceError, match=r"\.tpu-migrate: it is a symlink"):
        Snapshot.begin(root, [])


@pytest.mark.parametrize("path", ["../x.py", "/etc/x.py", "a/../../x.py", "", ".tpu-migrate/lock", "a//b"])
def test_paths_out_of_the_root_are_refused(root, path):
    with (
        Snapshot.begin(root, []) as snapshot,
        pytest.raises(WorkspaceError, match="does not lie below the root"),
    ):
        snapshot.plan([Change(path, b"", b"x")])


# Undoing


def test_undo_restores_bytes_and_mode(root):
    old = read_tree(root)
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n"})
    (root / "pkg/b.py").chmod(0o600)
    result = undo(root)
    assert (result.run, result.restored, result.unchanged) == (1, ("a.py", "pkg/b.py"), ())
    assert read_tree(root) == old
    assert manifest(root, 1)["state"] == "undone"


def test_undo_twice_goes_back_two_runs_then_says_there_is_none(root):
    first = read_tree(root)
    apply(root, {"a.py": b"A1\n", "pkg/b.py": b"B1\n"})
    second = read_tree(root)
    apply(root, {"a.py": b"A2\n", "pkg/c.py": b"C2\n"})
    assert latest_before(root) == root / ".tpu-migrate/runs/2/before"
    assert undo(root).run == 2
    assert read_tree(root) == second
    assert latest_before(root) == root / ".tpu-migrate/runs/1/before"
    assert undo(root).run == 1
    assert read_tree(root) == first
    assert latest_before(root) is None
    with pytest.raises(WorkspaceError, match=r"nothing to undo, because no run is left that isn't undone"):
        undo(root)


def test_a_run_after_an_undo_gets_a_number_of_its_own(root):
    apply(root, {"a.py": b"A1\n"})
    undo(root)
    apply(root, {"a.py": b"A2\n"})
    assert undo(root).run == 2
    assert (root / "a.py").read_bytes() == b"a\n"


def test_without_a_run_there_is_nothing_to_undo(root):
    with pytest.raises(
        WorkspaceError, match="nothing to undo, because tpu-migrate has not changed anything here"
    ):
        undo(root)
    assert not (root / ".tpu-migrate").exists()


@pytest.mark.parametrize("replaced", [0, 1, 2])
def test_a_run_that_stopped_half_way_is_undone(root, replaced):
    old = read_tree(root)
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n", "pkg/c.py": b"C\n"}, finish=False, replaced=replaced)
    make_tree(root, {"pkg/.tpu-migrate-abc.tmp": "half"})
    names = ("a.py", "pkg/b.py", "pkg/c.py")
    result = undo(root)
    assert (result.restored, result.unchanged) == (names[:replaced], names[replaced:])
    assert read_tree(root) == old


def test_an_undo_that_stopped_half_way_can_be_run_again(root, monkeypatch):
    old = read_tree(root)
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n"})
    real, calls = os.replace, []

    def fail_second(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(os, "replace", fail_second)
    with pytest.raises(KeyboardInterrupt):
        undo(root)
    monkeypatch.undo()
    result = undo(root)
    assert (result.restored, result.unchanged) == (("pkg/b.py",), ("a.py",))
    assert read_tree(root) == old


def test_an_apply_over_a_half_way_run_keeps_both(root):
    first = read_tree(root)
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n"}, finish=False, replaced=1)
    second = read_tree(root)
    make_tree(root, {".tpu-migrate-abc.tmp": "half"})
    apply(root, {"pkg/b.py": b"B\n"})
    undo(root)
    assert read_tree(root) == second
    undo(root)
    assert read_tree(root) == first


def test_edited_files_are_refused_and_nothing_is_restored(root):
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n", "pkg/c.py": b"C\n"})
    (root / "pkg/b.py").write_bytes(b"mine\n")
    (root / "pkg/c.py").unlink()
    now = read_tree(root)
    with pytest.raises(UndoConflict, match=r"tpu-migrate undo --force$") as caught:
        undo(root)
    assert caught.value.files == ("pkg/b.py", "pkg/c.py")
    assert "run 1 was not undone: 2 files changed since" in str(caught.value)
    assert "pkg/b.py (edited)" in str(caught.value)
    assert "pkg/c.py (deleted)" in str(caught.value)
    assert read_tree(root) == now
    assert manifest(root, 1)["state"] == "applied"


def test_force_restores_edited_and_deleted_files(root):
    old = read_tree(root)
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n", "pkg/c.py": b"C\n"})
    (root / "a.py").write_bytes(b"mine\n")
    (root / "pkg/b.py").unlink()
    (root / "pkg/c.py").unlink()
    (root / "pkg").rmdir()
    assert undo(root, force=True).restored == ("a.py", "pkg/b.py", "pkg/c.py")
    assert read_tree(root) == old


def test_a_file_the_user_put_back_counts_as_unchanged(root):
    apply(root, {"a.py": b"A\n", "pkg/c.py": b"C\n"})
    (root / "a.py").write_bytes(b"a\n")
    assert undo(root).unchanged == ("a.py",)


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damaged_originals_are_not_restored_even_by_force(root, damage):
    apply(root, {"a.py": b"A\n", "pkg/b.py": b"B\n"})
    copy = root / ".tpu-migrate/runs/1/before/pkg/b.py"
    copy.unlink() if damage == "gone" else copy.write_bytes(b"")
    with pytest.raises(WorkspaceError, match=r"before/pkg/b\.py: this original .* nothing was restored"):
        undo(root, force=True)
    assert (root / "a.py").read_bytes() == b"A\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "files": 3}', "\xff"])
def test_a_damaged_manifest_is_said_and_does_not_stop_a_new_run(root, text):
    apply(root, {"a.py": b"A\n"})
    (root / ".tpu-migrate/runs/1/manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(WorkspaceError, match=r"runs/1/manifest\.json: damaged"):
        undo(root)
    apply(root, {"pkg/c.py": b"C\n"})
    assert undo(root).run == 2


def test_a_manifest_of_a_later_version_is_refused(root):
    apply(root, {"a.py": b"A\n"})
    path = root / ".tpu-migrate/runs/1/manifest.json"
    path.write_text(json.dumps({**manifest(root, 1), "version": 9}))
    with pytest.raises(WorkspaceError, match=r"its version is 9; this tpu-migrate knows 1"):
        undo(root)


def test_a_manifest_that_came_with_a_repository_writes_nothing_outside(root, tmp_path_factory):
    outside = make_tree(tmp_path_factory.mktemp("outside"), {"x.py": "mine\n"})
    apply(root, {"a.py": b"A\n"})
    document = manifest(root, 1)
    document["files"][0]["path"] = os.path.relpath(outside / "x.py", root)
    (root / ".tpu-migrate/runs/1/manifest.json").write_text(json.dumps(document))
    with pytest.raises(WorkspaceError, match="does not lie below the root"):
        undo(root, force=True)


def test_undo_does_not_write_through_a_folder_that_became_a_symlink(root, tmp_path_factory):
    outside = make_tree(tmp_path_factory.mktemp("outside"), {"c.py": "C\n"})
    apply(root, {"pkg/c.py": b"C\n"})
    os.rename(root / "pkg", root / "moved")
    (root / "pkg").symlink_to(outside)
    with pytest.raises(WorkspaceError, match="outside of"):
        undo(root)
    assert (outside / "c.py").read_bytes() == b"C\n"


MODES = st.sampled_from([0o644, 0o755, 0o600, 0o444])
FILES = st.dictionaries(
    st.sampled_from(["a.py", "b.py", "p/a.py", "p/q/c.py"]),
    st.tuples(st.binary(max_size=80), st.binary(max_size=80), MODES),
    min_size=1,
)


@settings(max_examples=25, deadline=None)
@given(files=FILES, replaced=st.none() | st.integers(0, 4))
def test_write_and_undo_round_trip(tmp_path_factory, files, replaced):
    root = make_tree(tmp_path_factory.mktemp("repo"), {path: old for path, (old, _, _) in files.items()})
    for path, (_, _, mode) in files.items():
        (root / path).chmod(mode)
    old = read_tree(root)
    apply(root, {path: new for path, (_, new, _) in files.items()}, replaced=replaced)
    if replaced is None:
        assert read_tree(root) == {path: (new, mode) for path, (_, new, mode) in sorted(files.items())}
    if any(before != new for before, new, _ in files.values()):
        undo(root)
    assert read_tree(root) == old


# Killed

APPLY = """
import sys
from pathlib import Path
from tpu_migrate.workspace.snapshot import Change, Snapshot
from tpu_migrate.workspace.write import replace_file
root = Path(sys.argv[1])
names = sorted(path.name for path in root.glob("*.py"))
changes = [Change(name, (root / name).read_bytes(), b"new " + name.encode() * 500) for name in names]
print("begin", flush=True)
with Snapshot.begin(root, sys.argv) as snapshot:
    snapshot.plan(changes)
    print("planned", flush=True)
    for change in changes:
        replace_file(root / change.relative, change.new, within=root)
    print("replaced", flush=True)
    snapshot.finish()
"""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("moment", ["begin", "planned"])
def test_a_kill_leaves_every_file_old_or_new_and_undo_restores_all(tmp_path, moment, seed):
    names = [f"f{number:03}.py" for number in range(150)]
    make_tree(tmp_path, {name: f"old {name}\r\n" * 50 for name in names})
    old = read_tree(tmp_path)
    command = [sys.executable, "-c", APPLY, str(tmp_path)]
    process = subprocess.Popen(command, env=TOOL_ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline().strip() != moment:
        assert process.poll() is None
    time.sleep(random.Random(seed).uniform(0, 0.06))
    process.send_signal(signal.SIGKILL)
    process.communicate()

    now = read_tree(tmp_path)
    changed = 0
    for name in names:
        content, mode = now[name]
        assert mode == 0o644
        assert content in (old[name][0], b"new " + name.encode() * 500)
        changed += content != old[name][0]
    if latest_before(tmp_path) is None:
        assert changed == 0
        Snapshot.begin(tmp_path, []).finish()
    else:
        assert len(undo(tmp_path).restored) == changed
    assert read_tree(tmp_path) == old
