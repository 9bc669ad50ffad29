"""The code of other people: every file of the standard library and of the installed packages.

Nothing there changes, nothing crashes, and only files that mention torch_xla can have a finding.
"""

from __future__ import annotations

import re
import site
import sysconfig
import time
from pathlib import Path

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.pipeline import run

OURS = re.compile(rb"torch_xla|\bxla\b|\bXLA_|PJRT_|XRT_|\"xla|'xla")


def trees() -> list[Path]:
    found = [Path(sysconfig.get_path("stdlib")), *map(Path, site.getsitepackages())]
    return [path.resolve() for path in found if path.is_dir()]


@pytest.mark.slow
@pytest.mark.parametrize("root", trees(), ids=lambda path: path.name)
def test_the_code_of_others_is_left_alone(root):
    started = time.perf_counter()
    result = run([root], Settings(root=None, exclude=()))
    seconds = time.perf_counter() - started
    print(f"\n{root}: {result.scanned} files, {len(result.files)} looked at, {seconds:.1f} s")
    assert result.scanned > 100
    for file in result.files:
        crashed = [f for f in file.findings if f.code == "PY002"]
        assert not crashed, (file.path, crashed[0].message)
        if b"torch_xla" in file.old:
            continue
        if not OURS.search(file.old):
            assert not file.changed, file.path
            assert file.findings == [], file.path
        else:
            assert not [f for f in file.findings if f.code.startswith("PY")], file.path
    assert seconds < 120


@pytest.mark.slow
def test_every_file_read_by_itself_is_left_alone():
    """Past the filter on bytes: each file goes through parser, resolver and rules."""
    from python.check import migrate

    started, read = time.perf_counter(), 0
    roots = trees()
    files = sorted(path for root in roots for path in root.rglob("*.py"))
    for path in files[:: max(1, len(files) // 700)]:
        data = path.read_bytes()
        if b"xla" in data.lower() or len(data) > 100_000:
            continue
        result = migrate(data)
        assert not result.changed, path
        assert result.findings == [], path
        read += 1
    seconds = time.perf_counter() - started
    print(f"\n{read} files in {seconds:.1f} s")
    assert read > 300
    assert seconds < 120
