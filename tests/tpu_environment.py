"""The Python that has torch_tpu and the torch it is made for, and the one that has the Hugging Face libraries.

``TPU_MIGRATE_TPU_PYTHON`` and ``TPU_MIGRATE_HF_PYTHON`` name Pythons of environments that are already
there; otherwise ``make`` builds .venv-tpu and .venv-hf, once.
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
    return _built(".venv-tpu")


def find_hf_python() -> str:
    """The path of a Python beside which the sources of the Hugging Face libraries lie."""
    return os.environ.get("TPU_MIGRATE_HF_PYTHON") or _built(".venv-hf")


def _built(folder: str) -> str:
    """The Python of an environment, after ``make`` has built it."""
    # The recipe stands in the Makefile, once. MAKEFLAGS would tie this make to the one that runs the tests.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    command = ["make", "--no-print-directory", f"PYTHON={sys.executable}", f"{folder}/.ready"]
    built = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return str(REPOSITORY / folder / "bin" / "python")
