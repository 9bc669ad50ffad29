"""``launch`` starts processes of its own, so it is run as a program that imports it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.processes import REPOSITORY, free_port, run_ranks

pytestmark = pytest.mark.slow

PROGRAM = """
import json, os, sys, types
from unittest import mock
import torch
import torch.distributed as dist
from launch_helper import launch

NAMES = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")


def work(rank, directory, word):
    total = torch.tensor(rank + 1)
    dist.all_reduce(total)
    told = {name: os.environ[name] for name in NAMES}
    told |= {"index": rank, "rank": dist.get_rank(), "total": total.item(), "word": word, "backend": str(dist.group.WORLD._get_backend(torch.device("cpu")).name())}
    with open(os.path.join(directory, f"rank{rank}.json"), "w") as file:
        json.dump(told, file)


def fail(rank):
    raise ValueError(f"rank {rank} has no data")


if __name__ == "__main__":
"""


def run(tmp_path: Path, main: str, **extra: str) -> list[dict[str, object]]:
    helper = (REPOSITORY / "rules" / "helpers" / "launch.py").read_text(encoding="utf-8")
    (tmp_path / "launch_helper.py").write_text(helper, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM + f"    {main}\n", encoding="utf-8")
    run_ranks(["program.py"], 0, cwd=tmp_path, extra={"MASTER_PORT": str(free_port()), **extra})
    return [json.loads(path.read_text()) for path in sorted(tmp_path.glob("rank*.json"))]


def test_each_process_gets_its_rank_and_a_group(tmp_path: Path) -> None:
    told = run(tmp_path, f"launch(work, args=({str(tmp_path)!r}, 'x'), nprocs=2)")
    assert [(one["index"], one["rank"], one["total"], one["word"]) for one in told] == [
        (0, 0, 3, "x"),
        (1, 1, 3, "x"),
    ]
    assert {one["backend"] for one in told} == {"gloo"}
    assert [one["LOCAL_RANK"] for one in told] == ["0", "1"]
    assert {(one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"], one["GROUP_RANK"]) for one in told} == {
        ("2", "2", "0")
    }


def test_there_is_one_process_for_each_device(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        "with mock.patch.object(torch.accelerator, 'device_count', lambda: 2):\n"
        f"        launch(work, ({str(tmp_path)!r}, 'x'))",
    )
    assert [one["rank"] for one in told] == [0, 1]


def test_without_a_device_there_is_one_process(tmp_path: Path) -> None:
    (told,) = run(tmp_path, f"launch(work, ({str(tmp_path)!r}, 'x'))")
    assert (told["rank"], told["total"], told["WORLD_SIZE"]) == (0, 1, "1")


def test_ranks_go_on_counting_on_the_second_host(tmp_path: Path) -> None:
    """Two hosts, each started by itself, as on a pod; set_tpu_launch_env sets these variables there."""
    port = str(free_port())
    main = f"launch(work, ({str(tmp_path)!r}, 'x'), nprocs=1)"
    both = (
        "import subprocess\n"
        "    hosts = [subprocess.Popen([sys.executable, 'host.py'], env=os.environ | {'NODE_RANK': str(host)})"
        " for host in range(2)]\n"
        "    assert [host.wait() for host in hosts] == [0, 0]"
    )
    (tmp_path / "host.py").write_text(PROGRAM + f"    {main}\n", encoding="utf-8")
    told = run(tmp_path, both, NNODES="2", MASTER_PORT=port)
    assert [(one["rank"], one["LOCAL_RANK"], one["GROUP_RANK"]) for one in told] == [
        (0, "0", "0"),
        (1, "0", "1"),
    ]
    assert {(one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"], one["total"]) for one in told} == {("2", "1", 3)}


def test_on_a_tpu_the_topology_is_set_first(tmp_path: Path) -> None:
    main = (
        "calls = []\n"
        "    tpu = types.SimpleNamespace(distributed=mock.Mock())\n"
        "    tpu.distributed.set_tpu_launch_env = lambda **given: calls.append(given)\n"
        "    with mock.patch.object(torch, 'tpu', tpu, create=True), \\\n"
        "            mock.patch.object(torch.accelerator, 'current_accelerator', lambda: types.SimpleNamespace(type='tpu')), \\\n"
        "            mock.patch.object(torch.multiprocessing, 'spawn', lambda *given, **named: calls.append(named['nprocs'])):\n"
        "        launch(work, (), nprocs=4)\n"
        "    assert calls == [{'nproc_per_node': 4}, 4], calls"
    )
    assert run(tmp_path, main) == []


def test_what_a_worker_raises_comes_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="rank 0 has no data"):
        run(tmp_path, "launch(fail, nprocs=1)")
