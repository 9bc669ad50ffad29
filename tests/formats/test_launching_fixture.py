"""The launching fixture: a repository's launch files, what becomes of them, and what is said about them.

After an intended change: ``python -m tests.formats.test_launching_fixture``, then read the diff.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.formats.launching import FORMATS, migrate
from tpu_migrate import formats
from tpu_migrate.config import Settings
from tpu_migrate.formats.launching import MENTION
from tpu_migrate.pipeline import run

ROOT = Path(__file__).resolve().parents[2] / "fixtures" / "launching"
BEFORE = {
    path.relative_to(ROOT / "before").as_posix(): path.read_bytes()
    for path in sorted((ROOT / "before").rglob("*"))
    if path.is_file()
}


def findings(path, data):
    return [
        {
            "code": finding.code,
            "line": finding.line,
            "outcome": finding.outcome.value,
            "before": finding.before,
            "symbol": finding.symbol,
        }
        for finding in migrate(path, data).findings
    ]


@pytest.mark.parametrize("path", BEFORE)
def test_it_becomes_what_is_kept(path):
    result = migrate(path, BEFORE[path])
    assert result.new == (ROOT / "after" / path).read_bytes()
    assert migrate(path, result.new).new == result.new


@pytest.mark.parametrize("path", BEFORE)
def test_it_is_told_what_is_kept(path):
    kept = json.loads((ROOT / "findings.json").read_text("utf-8"))
    assert findings(path, BEFORE[path]) == kept[path]


@pytest.mark.parametrize("path", BEFORE)
def test_what_still_mentions_torch_xla_has_a_finding_on_its_line(path):
    result = migrate(path, BEFORE[path])
    told = {finding.line for finding in result.findings if finding.outcome.value == "open"}
    for number, line in enumerate(result.new.decode().splitlines(), 1):
        if MENTION.search(line):
            assert number in told, line


def test_every_format_is_there():
    for kind in FORMATS:
        assert any(path.endswith(kind.endings) and kind.accepts(path) for path in BEFORE), kind.name


def test_a_run_over_the_repository_gives_the_same(tmp_path, monkeypatch):
    others = [kind for kind in formats.FORMATS if kind not in FORMATS]
    monkeypatch.setattr(formats, "FORMATS", (*others, *FORMATS))
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "before", copy)
    result = run([copy], Settings(), apply=True)
    assert {path: (copy / path).read_bytes() for path in BEFORE} == {
        path: (ROOT / "after" / path).read_bytes() for path in BEFORE
    }
    kept = json.loads((ROOT / "findings.json").read_text("utf-8"))
    assert len(result.findings) == sum(map(len, kept.values()))
    assert run([copy], Settings(), apply=True).changed == []


def _write():
    kept = {}
    for path, data in BEFORE.items():
        target = ROOT / "after" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(migrate(path, data).new)
        kept[path] = findings(path, data)
    (ROOT / "findings.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    _write()
