"""Migrated programs compute on two ranks what they computed with torch_xla.

Device and back-end are swapped for cpu and gloo, and nothing else. What torch_xla computed is written down in
``support`` for training (optimizer_step averages the gradients of all ranks), and in each test otherwise.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import run_ranks

from tpu_migrate.config import Settings
from tpu_migrate.pipeline import migrate_source

pytestmark = pytest.mark.slow

TRAINER = """
import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
from torch import nn
from semantics.support import RATE, batches, make_model, report


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_model()

    def forward(self, x):
        return self.layers(x)


def train(index, flags):
    device = xm.xla_device()
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for x, y in batches(xm.get_ordinal()):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        STEP
    report(model=model, index=index)


if __name__ == "__main__":
    xmp.spawn(train, args=({},))
"""


def migrated(source: str, kind: str, **settings: Any) -> str:
    """Migrate a program and swap the device and the back-end; nothing of torch_xla may be left."""
    new = migrate_source(source.lstrip("\n"), Settings(**settings), kind=kind).new.decode()
    assert "torch_xla" not in new
    assert "xm." not in new
    return new.replace('"tpu_dist"', '"gloo"').replace('torch.device("tpu")', 'torch.device("cpu")')


def run(source: str, directory: Path, ranks: int = 2, hosts: int = 1) -> list[dict[str, Any]]:
    """What each rank reported in its last line."""
    (directory / "program.py").write_text(source, encoding="utf-8")
    outputs = run_ranks(["program.py"], ranks, hosts=hosts, cwd=directory, timeout=90)
    return [json.loads(output.splitlines()[-1]) for output in outputs]


@cache
def references() -> dict[str, Any]:
    """The parameters that each way of training leads to, computed in one process."""
    (output,) = run_ranks(["-c", "from semantics.support import references; references()"], 0)
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def flat(value: Any) -> list[float]:
    return [number for item in value for number in flat(item)] if isinstance(value, list) else [value]


def assert_trained_as(name: str, reports: list[dict[str, Any]]) -> None:
    for found in reports:
        assert flat(found["model"]) == pytest.approx(flat(references()[name]), rel=0, abs=1e-6)


def test_the_ways_of_training_differ() -> None:
    """Otherwise the tests below could not tell a wrong order from the right one."""
    found = [
        flat(references()[name]) for name in ("mean_loss", "mean_then_clip", "clip_then_mean", "one_rank")
    ]
    for index, first in enumerate(found):
        for second in found[index + 1 :]:
            assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > 1e-3


# The optimizer step


def test_optimizer_step_under_ddp_follows_the_mean_loss(tmp_path: Path) -> None:
    source = TRAINER.replace(
        "model=model,", "model=[parameter.tolist() for parameter in model.parameters()],"
    )
    program = migrated(source.replace("STEP", "xm.optimizer_step(optimizer)"), kind="")
    assert "DistributedDataParallel(" in program
    assert "average_gradients" not in program
    reports = run(program, tmp_path)
    assert_trained_as("mean_loss", reports)
    assert [found["index"] for found in reports] == [0, 1]


def test_optimizer_step_with_averaging_follows_the_mean_loss(tmp_path: Path) -> None:
    source = TRAINER.replace("Net().to(device)", "make_model().to(device)")
    program = migrated(source.replace("STEP", "xm.optimizer_step(optimizer)"), kind="multi-process")
    assert "average_gradients(optimizer)" in program
    assert "DistributedDataParallel" not in program
    assert_trained_as("mean_loss", run(program, tmp_path))


@pytest.mark.parametrize(
    ("step", "reference"),
    [
        (
            """nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        xm.optimizer_step(optimizer)""",
            "clip_then_mean",
        ),
        (
            """xm.reduce_gradients(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()""",
            "mean_then_clip",
        ),
        (
            """xm.reduce_gradients(optimizer)
        xm.optimizer_step(optimizer, barrier=True)""",
            "mean_loss",
        ),
        (
            """gradients = xm._fetch_gradients(optimizer)
        xm.all_reduce(xm.REDUCE_SUM, gradients, scale=1.0 / xm.xrt_world_size())
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()""",
            "mean_then_clip",
        ),
    ],
    ids=["clip then step", "reduce then clip", "reduce twice", "reduce by hand"],
)
def test_reducing_and_clipping_keep_their_order(step: str, reference: str, tmp_path: Path) -> None:
    program = migrated(TRAINER.replace("STEP", step), kind="multi-process")
    assert "DistributedDataParallel" not in program
    assert_trained_as(reference, run(program, tmp_path))


def test_accumulated_gradients_are_averaged_once(tmp_path: Path) -> None:
    """Two backward passes of half the loss: the sum of both halves, averaged over ranks."""
    source = TRAINER.replace(
        "loss.backward()", "(loss / 2).backward(retain_graph=True)\n        (loss / 2).backward()"
    )
    program = migrated(source.replace("STEP", "xm.optimizer_step(optimizer)"), kind="multi-process")
    assert_trained_as("mean_loss", run(program, tmp_path))


def test_a_program_for_any_accelerator_runs_on_the_cpu_as_it_is(tmp_path: Path) -> None:
    program = migrated(
        TRAINER.replace("STEP", "xm.optimizer_step(optimizer)"), kind="multi-process", device="accelerator"
    )
    assert "gloo" not in program, "the default of whatever accelerator there is"
    assert_trained_as("mean_loss", run(program, tmp_path))


def test_one_process_needs_no_group(tmp_path: Path) -> None:
    source = TRAINER.replace("STEP", "xm.optimizer_step(optimizer)").replace(
        "args=({},)", "args=({},), nprocs=1"
    )
    program = migrated(source, kind="multi-process")
    assert "init_process_group" not in program
    reports = run(program, tmp_path, ranks=0)
    assert_trained_as("one_rank", reports)
    assert reports[0]["index"] == 0


def test_a_program_started_by_itself_spawns_its_ranks(tmp_path: Path) -> None:
    source = TRAINER.replace("STEP", "xm.optimizer_step(optimizer)")
    source = source.replace("report(model=model, index=index)", "collect(model, index)").replace(
        "from torch import nn", "from torch import nn\nfrom program_support import collect"
    )
    (tmp_path / "program_support.py").write_text(
        "import json\n\n\ndef collect(model, index):\n"
        "    values = [parameter.tolist() for parameter in model.parameters()]\n"
        f"    with open(f'{tmp_path}/rank{{index}}.json', 'w') as file:\n"
        "        json.dump({'model': values, 'index': index}, file)\n"
    )
    program = migrated(source, kind="", launcher="spawn")
    (tmp_path / "program.py").write_text(
        program.replace("launch(train, args=({},))", "launch(train, ({},), nprocs=2)")
    )
    run_ranks(["program.py"], 0, cwd=tmp_path)
    reports = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("rank*.json"))]
    assert [found["index"] for found in reports] == [0, 1]
    assert_trained_as("mean_loss", reports)


# Ranks and masters


WHO = """
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
from semantics.support import report


def work(index):
    report(
        index=index,
        ordinal=xm.get_ordinal(),
        local=xm.get_local_ordinal(),
        world=xm.xrt_world_size(),
        master=xm.is_master_ordinal(),
        local_master=xm.is_master_ordinal(local=True),
        global_master=xm.is_master_ordinal(local=False),
        negated=not xm.is_master_ordinal(local=False),
    )


if __name__ == "__main__":
    xmp.spawn(work)
"""


@pytest.mark.parametrize(
    ("hosts", "local", "master"),
    [(1, [0, 1], [True, False]), (2, [0, 0], [True, True])],
    ids=["one host", "two hosts"],
)
def test_every_host_has_a_master_and_all_have_one(
    hosts: int, local: list[int], master: list[bool], tmp_path: Path
) -> None:
    reports = run(migrated(WHO, kind=""), tmp_path, hosts=hosts)
    assert [found["index"] for found in reports] == [0, 1]
    assert [found["ordinal"] for found in reports] == [0, 1]
    assert [found["local"] for found in reports] == local
    assert [found["world"] for found in reports] == [2, 2]
    assert [found["master"] for found in reports] == master
    assert [found["local_master"] for found in reports] == master
    assert [found["global_master"] for found in reports] == [True, False]
    assert [found["negated"] for found in reports] == [False, True]


LIBRARY = """
import torch
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr


def describe():
    mean = xm.mesh_reduce("mean", float(xm.get_ordinal()), lambda values: sum(values) / len(values))
    total = xm.all_reduce(xm.REDUCE_SUM, torch.ones(1))
    xm.rendezvous("described")
    gathered = xm.rendezvous("names", f"rank {xr.global_ordinal()}".encode())
    return {
        "ordinal": xm.get_ordinal(),
        "world": xr.world_size(),
        "seed": 42 + xm.get_ordinal() * 10,
        "mean": mean,
        "total": total.item(),
        "names": [name.decode() for name in gathered],
        "global_master": xm.is_master_ordinal(local=False),
    }
"""
USE_WITH_GROUP = """

if __name__ == "__main__":
    dist.init_process_group("gloo")
    print("\\n" + __import__("json").dumps(describe()), flush=True)
    dist.destroy_process_group()
"""
USE_WITHOUT = USE_WITH_GROUP.replace('    dist.init_process_group("gloo")\n', "").replace(
    "    dist.destroy_process_group()\n", ""
)


@pytest.mark.parametrize("kind", ["library", "multi-process"])
def test_a_library_knows_whether_there_is_a_group(kind: str, tmp_path: Path) -> None:
    program = migrated(LIBRARY, kind)
    (alone,) = run(program + USE_WITHOUT, tmp_path, ranks=0)
    assert alone == {
        "ordinal": 0,
        "world": 1,
        "seed": 42,
        "mean": 0.0,
        "total": 1.0,
        "names": ["rank 0"],
        "global_master": True,
    }
    reports = run(program + USE_WITH_GROUP, tmp_path)
    for rank, found in enumerate(reports):
        assert found == {
            "ordinal": rank,
            "world": 2,
            "seed": 42 + rank * 10,
            "mean": 0.5,
            "total": 2.0,
            "names": ["rank 0", "rank 1"],
            "global_master": rank == 0,
        }


# Barriers


MEETING = """
import os
import time
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
from semantics.support import report


def work(index):
    BODY
    report(index=index, seen=open("written").read())


if __name__ == "__main__":
    xmp.spawn(work)
"""


@pytest.mark.parametrize(
    "body",
    [
        """if xm.is_master_ordinal(local=False):
        time.sleep(0.5)
        with open("written", "w") as file:
            file.write("by the master")
    xm.rendezvous("written")""",
        """if not xm.is_master_ordinal(local=False):
        xm.rendezvous("download")
    if xm.is_master_ordinal(local=False):
        time.sleep(0.5)
        with open("written", "w") as file:
            file.write("by the master")
        xm.rendezvous("download")""",
        """if xm.is_master_ordinal(local=False):
        time.sleep(0.5)
        with open("written", "w") as file:
            file.write("by the master")
    else:
        xm.rendezvous("download")
    if xm.is_master_ordinal(local=False): xm.rendezvous("download")""",
        """def write():
        time.sleep(0.5)
        with open("written", "w") as file:
            file.write("by the master")
    xm.do_on_ordinals(write)""",
    ],
    ids=["after the branch", "the others wait first", "else and one line", "do_on_ordinals"],
)
def test_ranks_wait_for_the_one_that_writes(body: str, tmp_path: Path) -> None:
    reports = run(migrated(MEETING.replace("BODY", body), kind=""), tmp_path)
    assert [found["seen"] for found in reports] == ["by the master", "by the master"]
