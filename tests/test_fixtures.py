"""The fixtures: real-shaped programs, and byte for byte what the tool makes of them.

When an intended change of the tool alters them: ``python fixtures/regenerate.py``, then read the diff.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks.silence import lost_names, parses, silent_references
from fixtures.regenerate import ROOT, VARIANTS, Migration, contents, describe, migrate, names, variants
from tpu_migrate.findings import Finding

CASES = [(name, variant) for name in names() for variant in variants(name)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case))
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture(scope="module")
def migration(case: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Migration:
    name, variant = case
    return migrate(ROOT / name / "before", VARIANTS[variant], tmp_path_factory.mktemp(name) / "program")


def test_the_files_are_the_expected_ones(case: tuple[str, str], migration: Migration) -> None:
    name, variant = case
    expected = contents(ROOT / name / variant)
    assert migration.files.keys() == expected.keys()
    for path, data in migration.files.items():
        # as text first: pytest shows where two strings differ
        assert data.decode() == expected[path].decode(), path
        assert data == expected[path], path


def test_the_findings_are_the_expected_ones(case: tuple[str, str], migration: Migration) -> None:
    name, variant = case
    if variant != "after":
        pytest.skip("findings.json is that of after/")
    assert migration.findings == json.loads((ROOT / name / "findings.json").read_text(encoding="utf-8"))


def test_the_kind_of_program_is_found(case: tuple[str, str], migration: Migration) -> None:
    name, _ = case
    fixture = describe(name)
    kinds = {program.entry: program.kind for program in migration.result.programs}
    entry = fixture["run"][0]
    found = set(kinds.values()) if fixture["kind"] == "library" else {kinds.get(entry)}
    assert fixture["kind"] in found, kinds


def test_every_file_parses_and_binds_its_names(case: tuple[str, str], migration: Migration) -> None:
    before = contents(ROOT / case[0] / "before")
    for path, data in migration.files.items():
        if path.endswith(".py"):
            assert parses(data.decode()), path
            assert lost_names(before[path].decode(), data.decode()) == [], path


def test_nothing_is_left_in_silence(migration: Migration) -> None:
    findings: dict[str, list[Finding]] = defaultdict(list)
    for finding in migration.result.findings:
        findings[finding.path].append(finding)
    for path, data in migration.files.items():
        if path.endswith(".py"):
            assert silent_references(data.decode(), findings[path]) == [], path


def test_a_second_run_changes_nothing(case: tuple[str, str], migration: Migration, tmp_path: Path) -> None:
    name, variant = case
    again = migrate(ROOT / name / variant, VARIANTS[variant], tmp_path / "program")
    assert again.files == contents(ROOT / name / variant)
    still_open = [finding for finding in migration.findings if finding["outcome"] != "rewritten"]
    assert again.findings == still_open
