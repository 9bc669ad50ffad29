"""The migrated fixtures run, and compute what the originals computed under the real torch_xla.

They run on the CPU: "tpu" becomes "cpu" and "tpu_dist" becomes "gloo" in a copy, and cpu_stand_in/ answers
the calls that ask for an accelerator. ``losses`` in a fixture.toml were recorded from torch_xla 2.9. A fixture
that is left with open findings has a ``[[finish]]`` for each edit that they ask of a person, made here before
the run. One whose open findings ask for more than edits says ``runs_after = false`` and ``why_not_after``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.regenerate import ROOT, VARIANTS, contents, describe, names, variants
from tests.tpu_environment import find_tpu_python

pytestmark = pytest.mark.slow

STAND_IN = Path(__file__).resolve().parent / "cpu_stand_in"
LOSS = re.compile(r"^step \d+ loss (-?\d+\.\d+)", re.MULTILINE)


def is_started_by_torchrun(name: str) -> bool:
    """Whether the migrated fixture runs in a process group, of one process or of several."""
    fixture = describe(name)
    return bool(fixture["kind"] == "multi-process" and fixture["processes"] > 1)


RUNNING = [
    pytest.param(
        name,
        variant,
        id=f"{name}-{variant}",
        marks=[]
        if describe(name).get("runs_after", True)
        else pytest.mark.skip(describe(name)["why_not_after"]),
    )
    for name in names()
    for variant in variants(name)
]
SEVERAL = [case for case in RUNNING if is_started_by_torchrun(str(case.values[0]))]
ALONE = [case for case in RUNNING if "run_alone" in describe(str(case.values[0]))]


@dataclass(frozen=True)
class Done:
    """What a run printed, and the parameters after each of its optimizer steps, by rank."""

    output: str
    updates: dict[str, list[list[float]]]

    @property
    def losses(self) -> list[float]:
        return [float(value) for value in LOSS.findall(self.output)]


@pytest.fixture(scope="module")
def tpu_python() -> str:
    return find_tpu_python()


def run_on_the_cpu(
    python: str, name: str, variant: str, folder: Path, processes: int, how: str = "run"
) -> Done:
    """Run the migrated fixture by the command line ``how``; ``processes`` 0 means without torchrun."""
    fixture = describe(name)
    program, record = folder / "program", folder / "record"
    record.mkdir()
    sources = {path: data.decode() for path, data in contents(ROOT / name / variant).items()}
    for edit in fixture.get("finish", ()):
        assert edit["find"] in sources[edit["file"]], f"nothing to finish: {edit['find']}"
        sources[edit["file"]] = sources[edit["file"]].replace(edit["find"], edit["replace"])
    for relative, source in sources.items():
        path = program / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        source = re.sub(r"""(["'])tpu\1""", r"\1cpu\1", source)
        path.write_text(re.sub(r"""(["'])tpu_dist\1""", r"\1gloo\1", source), encoding="utf-8")
    command = [python, *fixture[how]]
    if processes and VARIANTS[variant].launcher == "torchrun":
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command[1:1] = torchrun
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
    environment |= {
        "PYTHONPATH": str(STAND_IN),
        "STAND_IN_RECORD": str(record),
        "STAND_IN_PROCESSES": str(processes or 1),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
    }
    for _ in range(2):
        done = subprocess.run(
            command, cwd=program, env=environment, capture_output=True, text=True, timeout=180, check=False
        )
        # gloo's threads sometimes outlive the process group, on a busy machine: that says nothing of the program
        if "terminate called without an active exception" not in done.stderr:
            break
        for path in record.iterdir():
            path.unlink()
    assert "Error in sitecustomize" not in done.stderr, done.stderr
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
    updates = {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(record.iterdir())
    }
    return Done(done.stdout, updates)


@pytest.mark.parametrize(("name", "variant"), RUNNING)
def test_the_losses_are_those_of_torch_xla(tpu_python: str, name: str, variant: str, tmp_path: Path) -> None:
    fixture = describe(name)
    done = run_on_the_cpu(tpu_python, name, variant, tmp_path, int(is_started_by_torchrun(name)))
    if "losses" not in fixture:
        pytest.skip(f"it ran; there is nothing to compare with: {fixture['why_not']}")
    for note in ("numbers_note", "numbers_note_after"):
        if note in fixture:
            assert len(done.losses) == len(fixture["losses"])
            pytest.skip(f"it ran; its numbers are not compared: {fixture[note]}")
    # six decimals were recorded
    assert done.losses == pytest.approx(fixture["losses"], rel=fixture.get("tolerance", 1e-5), abs=1e-6)


@pytest.mark.parametrize(("name", "variant"), ALONE)
def test_it_also_runs_without_a_process_group(
    tpu_python: str, name: str, variant: str, tmp_path: Path
) -> None:
    done = run_on_the_cpu(tpu_python, name, variant, tmp_path, 0, "run_alone")
    assert done.losses == pytest.approx(describe(name)["losses"], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("name", "variant"), SEVERAL)
def test_two_ranks_stay_equal(tpu_python: str, name: str, variant: str, tmp_path: Path) -> None:
    done = run_on_the_cpu(tpu_python, name, variant, tmp_path, 2)
    if not done.updates:  # nothing is trained
        return
    assert done.updates.keys() == {"rank0", "rank1"}
    first, second = done.updates.values()
    assert len(first) > 1
    assert first == second
