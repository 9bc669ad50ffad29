"""Run the scenarios with the real torch_xla and keep what came out in golden.json.

In tests/, with a Python that has torch 2.9.0 and torch_xla 2.9.0:  PJRT_DEVICE=CPU python -m helpers.record
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import sys
import types
import warnings
from pathlib import Path

os.environ["PJRT_DEVICE"] = "CPU"

import torch
import torch_xla
import torch_xla.core.functions as xf
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from torch_xla.distributed.parallel_loader import MpDeviceLoader
from torch_xla.distributed.xla_multiprocessing import MpSerialExecutor
from torch_xla.experimental.gradient_accumulation import gradient_accumulation
from torch_xla.experimental.scan import scan
from torch_xla.test import test_utils
from torch_xla.utils import utils

from helpers import scenarios
from helpers.values import encode

GOLDEN = Path(__file__).with_name("golden.json")

TORCH_XLA = types.SimpleNamespace(
    SUM=xm.REDUCE_SUM,
    all_reduce=xm.all_reduce,
    all_gather=xm.all_gather,
    reduce_scatter=lambda reduce_type, value, scale, dim: xm.reduce_scatter(
        reduce_type, value, scale, dim, 1
    ),
    all_to_all=lambda value, split, concat: xm.all_to_all(value, split, concat, 1),
    all_reduce_with_grad=xf.all_reduce,
    all_gather_with_grad=xf.all_gather,
    broadcast_tensors=xm.collective_broadcast,
    broadcast_parameters=xm.broadcast_master_param,
    average_gradients=xm.reduce_gradients,
    gather_payloads=lambda payload: xm.rendezvous("tag", payload),
    mesh_reduce=lambda data, reduce_fn: xm.mesh_reduce("tag", data, reduce_fn),
    do_on_ranks=xm.do_on_ordinals,
    SerialExecutor=MpSerialExecutor,
    save=xm.save,
    to_cpu=xm._maybe_convert_to_cpu,
    to_device=xm.send_cpu_data_to_device,
    DeviceLoader=MpDeviceLoader,
    SampleGenerator=utils.SampleGenerator,
    master_print=xm.master_print,
    print_training_update=test_utils.print_training_update,
    print_test_update=test_utils.print_test_update,
    write_to_summary=test_utils.write_to_summary,
    get_summary_writer=test_utils.get_summary_writer,
    close_summary_writer=test_utils.close_summary_writer,
    RateTracker=xm.RateTracker,
    check_env_flag=utils.check_env_flag,
    getenv_as=utils.getenv_as,
    as_list=utils.as_list,
    flatten_nested_tuple=utils.flatten_nested_tuple,
    parallel_work=utils.parallel_work,
    get_free_tcp_ports=utils.get_free_tcp_ports,
    gradient_accumulation=gradient_accumulation,
    scan=scan,
)


def gradient_through(collective: str) -> bool:
    """Whether a gradient reaches the input of a collective on two ranks, by the graph torch_xla builds for two."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says here that there is no autograd kernel
        given = torch.ones(4, device=TORCH_XLA.device, requires_grad=True)
        result = getattr(xm, collective)(
            *((xm.REDUCE_SUM, given) if collective == "all_reduce" else (given,))
        )
        result.sum().backward()
    return given.grad is not None


def main() -> None:
    TORCH_XLA.device = torch_xla.device()
    golden = {}
    for name, scenario in inspect.getmembers(scenarios, inspect.isfunction):
        if [*inspect.signature(scenario).parameters] == ["side"]:
            print(name, flush=True)
            golden[name] = encode(scenario(TORCH_XLA))
    xr._WORLD_SIZE = 2  # graphs are built for two ranks from here on; no CPU can run them
    document = {
        "provenance": {
            "made_by": "tests/helpers/record.py",
            "torch": torch.__version__,
            "torch_xla": torch_xla.__version__,
            "python": platform.python_version(),
            "device": f"PJRT_DEVICE=CPU, {platform.machine()}, one rank",
        },
        "scenarios": golden,
        "gradient_on_two_ranks": {name: gradient_through(name) for name in ("all_reduce", "all_gather")},
    }
    GOLDEN.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # collectives that can't run are still queued


if __name__ == "__main__":
    main()
