from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tpu_migrate.workspace.errors import WorkspaceError
from tpu_migrate.workspace.lock import Lock

from .trees import TOOL_ENVIRONMENT

HOLD = """
import sys, time
from tpu_migrate.workspace.lock import Lock
lock = Lock(sys.argv[1], "repo")
print("locked", flush=True)
time.sleep(60)
"""


def hold(path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, env=TOOL_ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path):
    process = hold(tmp_path / "lock")
    try:
        with pytest.raises(
            WorkspaceError, match=rf"^repo: another tpu-migrate \(process {process.pid}\) is writing"
        ):
            Lock(str(tmp_path / "lock"), "repo")
    finally:
        process.kill()
        process.communicate()


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    process = hold(tmp_path / "lock")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    Lock(str(tmp_path / "lock"), "repo").release()


def test_a_lock_file_that_names_a_living_process_is_no_lock(tmp_path):
    (tmp_path / "lock").write_text(str(os.getppid()))
    Lock(str(tmp_path / "lock"), "repo").release()


def test_releasing_twice_is_fine_and_frees_it(tmp_path):
    with Lock(str(tmp_path / "lock"), "repo") as lock:
        with pytest.raises(WorkspaceError, match="another tpu-migrate"):
            Lock(str(tmp_path / "lock"), "repo")
        lock.release()
        Lock(str(tmp_path / "lock"), "repo").release()


def test_a_forked_worker_does_not_keep_it(tmp_path):
    lock = Lock(str(tmp_path / "lock"), "repo")
    worker = os.fork()
    if worker == 0:
        time.sleep(60)
        os._exit(0)
    try:
        lock.release()
        Lock(str(tmp_path / "lock"), "repo").release()
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


def test_a_place_that_cannot_be_locked_is_an_error(tmp_path):
    with pytest.raises(WorkspaceError, match=r"gone/lock: can't be locked \(No such file or directory\)"):
        Lock(str(tmp_path / "gone/lock"), "repo")
