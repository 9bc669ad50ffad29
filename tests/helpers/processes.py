"""Running programs in the environment the helpers are made for, alone or as ranks of a gloo process group."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TESTS = REPOSITORY / "tests"

# Set by launchers, and by whatever runs the tests: nothing of it may reach the processes started here.
LAUNCHER = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)

UNEXPLAINED_ABORT = "terminate called without an active exception"


@cache
def native_python() -> str:
    """The Python that has torch and torch_tpu (see tests/test_emitted_names.py); skips where none can be."""
    named = os.environ.get("TPU_MIGRATE_TPU_PYTHON")
    if named:
        return named
    if sys.platform != "linux" or sys.version_info < (3, 11):
        pytest.skip("torch_tpu 0.2.0 has wheels for Linux and Python 3.11 or newer only")
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    command = ["make", "--no-print-directory", f"PYTHON={sys.executable}", ".venv-tpu/.ready"]
    built = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return str(REPOSITORY / ".venv-tpu" / "bin" / "python")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
    return port


def ended_well(returncode: int, out: str, err: str) -> bool:
    """Whether a rank came to its end.

    A rank of a gloo group was once seen to abort after it had printed all it reports: SIGABRT, with the message
    below and no traceback. Why is not known; it happened once, under load. Only that end is let pass, and only
    of a rank that printed something: callers read what a rank reports from its last line.
    """
    if returncode == -signal.SIGABRT:
        return bool(out.strip()) and "Traceback" not in err and err.rstrip().endswith(UNEXPLAINED_ABORT)
    return returncode == 0


def run_ranks(
    arguments: Sequence[str],
    ranks: int,
    *,
    hosts: int = 1,
    cwd: Path = TESTS,
    extra: Mapping[str, str] | None = None,
    timeout: float = 180,
) -> list[str]:
    """Run a Python program and return what each of its processes printed.

    Args:
        arguments: after ``python``.
        ranks: processes, with the environment torchrun would give them; 0: one, with none of it.
        hosts: the hosts that the ranks pretend to be spread over evenly.
        cwd: where they run.
        extra: further environment variables.
        timeout: seconds until all are killed.

    Raises:
        AssertionError: a process failed or didn't end; with its output.
    """
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    # No device is looked for, nothing is compiled in parallel, and a rank that waits for a dead one gives up.
    environment |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
    environment |= extra or {}
    port = str(free_port())
    started = []
    for rank in range(max(ranks, 1)):
        placed = dict(environment)
        if ranks:
            local = ranks // hosts
            placed |= {"RANK": str(rank), "LOCAL_RANK": str(rank % local), "GROUP_RANK": str(rank // local)}
            placed |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(local)}
            placed |= {"MASTER_ADDR": "localhost", "MASTER_PORT": port}
        started.append(
            subprocess.Popen(
                [native_python(), *arguments],
                cwd=cwd,
                env=placed,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    outputs = []
    try:
        for rank, process in enumerate(started):
            out, err = process.communicate(timeout=timeout)
            assert ended_well(process.returncode, out, err), (
                f"rank {rank} of {ranks} ended with {process.returncode}:\n{out}\n{err}"
            )
            outputs.append(out)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{' '.join(arguments)} did not end in {timeout} seconds") from error
    finally:
        for process in started:
            process.kill()
            process.communicate()
    return outputs
