"""Trees of files for the tests of the workspace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import tpu_migrate

# The user's own git settings (a global ignore file, say) must not decide a test.
GIT_ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

# Where a Python started by a test finds the package under test.
TOOL_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tpu_migrate.__file__).parents[1])}


def make_tree(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write files, given by relative path, and return the root."""
    for relative, content in files.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def read_tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and mode of every file below the root, without .tpu-migrate."""
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".tpu-migrate" not in path.relative_to(root).parts
    }


def git(root: Path, *arguments: str) -> str:
    """Run git in the root and return what it printed."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, env=GIT_ENVIRONMENT, check=True, capture_output=True, text=True).stdout
