"""The Python that has torch_tpu and the torch it is made for, for the tests that need to run torch.

``TPU_MIGRATE_TPU_PYTHON`` names the Python of an environment that is already there; otherwise ``make``
builds .venv-tpu, once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def find_tpu_python() -> str:
    """The path of that Python; skips the test where torch_tpu has no wheel."""
    named = os.environ.get("TPU_MIGRATE_TPU_PYTHON")
    if named:
        return named
    if sys.platform != "linux" or sys.version_info < (3, 11):
        pytest.skip("torch_tpu 0.2.0 has wheels for Linux and Python 3.11 or newer only")
    # The recipe stands in the Makefile, once. MAKEFLAGS would tie this make to the one that runs the tests.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    command = ["make", "--no-print-directory", f"PYTHON={sys.executable}", ".venv-tpu/.ready"]
    built = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return str(REPOSITORY / ".venv-tpu" / "bin" / "python")
