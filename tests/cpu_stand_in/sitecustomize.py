"""Lets a migrated program run where there is no TPU; Python loads it by itself from PYTHONPATH.

The test has already put "cpu" where the program said "tpu". What remains are calls that need an accelerator
to be there. Each stand-in does on the CPU what the call means: nothing here changes a number.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

PROCESSES = int(os.environ.get("STAND_IN_PROCESSES", "1"))


def _answer(name: str, answer: object) -> None:
    """Let ``torch.accelerator.<name>`` answer the program; torch itself hears the truth, as Dynamo must."""
    real = getattr(torch.accelerator, name)

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        return real(*args, **kwargs) if caller.partition(".")[0] == "torch" else answer

    setattr(torch.accelerator, name, stand_in)


_answer("synchronize", None)
_answer("is_available", True)
_answer("current_accelerator", torch.device("cpu"))
_answer("current_device_index", 0)
_answer("device_count", PROCESSES)
_answer("get_memory_info", (2**30, 2**31))
_answer("memory_allocated", 2**30)
_answer("max_memory_allocated", 2**30)


def set_tpu_launch_env(*, nnodes: int | None = None, nproc_per_node: int | None = None) -> None:
    os.environ.setdefault("NODE_RANK", "0")
    os.environ.setdefault("WORLD_SIZE", str(nproc_per_node or PROCESSES))


# "cpu" stands where "tpu" stood: torch.random.fork_rng(device_type=...) asks that module.
torch.cpu.get_rng_state = lambda device="cpu": torch.get_rng_state()
torch.cpu.set_rng_state = lambda state, device="cpu": torch.set_rng_state(state)

# The device's generator is the CPU's here. torch.tpu is no attribute of torch while torch_tpu isn't loaded.
torch.tpu = types.SimpleNamespace(
    manual_seed=torch.manual_seed,
    default_generators=(torch.default_generator,),
    set_rng_state=lambda state, device=None: torch.set_rng_state(state),
    get_device_name=lambda device=None: "stand-in",
    distributed=types.SimpleNamespace(set_tpu_launch_env=set_tpu_launch_env),
)


def _compile_on_the_cpu() -> None:
    """torch.compile traces as ever, and runs what it traced without a C++ compiler."""
    compile_for_real = torch.compile

    def compile_eagerly(model: Any = None, **options: Any) -> Any:
        if options.get("backend", "cpu") == "cpu":
            options["backend"] = "eager"
        return compile_for_real(model, **options)

    torch.compile = compile_eagerly


def _record_updates(folder: str) -> None:
    """Write what the parameters are after every optimizer step, a file a rank: ranks must stay equal."""

    def record(optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        sums = [
            parameter.detach().double().abs().sum().item()
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]
        rank = os.environ.get("RANK", "0")
        with open(os.path.join(folder, f"rank{rank}.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(sums) + "\n")

    register_optimizer_step_post_hook(record)


_compile_on_the_cpu()
if "STAND_IN_RECORD" in os.environ:
    _record_updates(os.environ["STAND_IN_RECORD"])
