"""Small programs that run with torch_xla and with the helpers, in a process by itself, and must give the same.

Each takes one side (``side.all_reduce`` is xm.all_reduce or the helper; see ``record`` and ``worker`` for the
two) and returns what can be compared. ``side.device`` is the device of that side.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any
from unittest import mock

import torch


def numbers(side: Any, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    count = int(torch.tensor(shape).prod())
    return torch.arange(count, dtype=dtype).reshape(shape).to(side.device)


# Collectives. One rank: nothing to wait for, yet clones, scales and dtypes have to be right.


def all_reduce_does_not_scale_on_one_rank(side):
    return side.all_reduce(side.SUM, numbers(side, 2, 3), scale=0.5)


def all_reduce_of_a_tensor_is_another_tensor(side):
    given = numbers(side, 4)
    result = side.all_reduce(side.SUM, given)
    result.add_(1)
    return given, result, result is given


def all_reduce_of_a_list_is_the_list(side):
    given = [numbers(side, 4), numbers(side, 2)]
    result = side.all_reduce(side.SUM, given, scale=0.5)
    return given, result is given


def all_reduce_of_integers(side):
    return side.all_reduce(side.SUM, numbers(side, 3, dtype=torch.int64))


def all_reduce_lets_gradients_through_on_one_rank(side):
    given = numbers(side, 3).requires_grad_()
    (side.all_reduce(side.SUM, given) * 3).sum().backward()
    return given.grad


def all_gather_along_each_dimension(side):
    return [side.all_gather(numbers(side, 2, 3), dim=dim) for dim in (0, 1, -1, -2)]


def all_gather_keeps_dtypes(side):
    truths = torch.tensor([True, False]).to(side.device)
    return side.all_gather(numbers(side, 3, dtype=torch.int64)), side.all_gather(truths)


def all_gather_lets_gradients_through_on_one_rank(side):
    given = numbers(side, 3).requires_grad_()
    (side.all_gather(given) * 3).sum().backward()
    return given.grad


def reduce_scatter_scales_on_one_rank(side):
    return [side.reduce_scatter(side.SUM, numbers(side, 2, 3), 0.5, dim) for dim in (0, 1)]


def reduce_scatter_leaves_its_input_alone(side):
    given = numbers(side, 2, 3)
    result = side.reduce_scatter(side.SUM, given, 1.0, 0)
    result.add_(1)
    return given, result


def reduce_scatter_keeps_integers(side):
    return side.reduce_scatter(side.SUM, numbers(side, 3, dtype=torch.int64), 1.0, 0)


def reduce_scatter_lets_no_gradient_through(side):
    return side.reduce_scatter(side.SUM, numbers(side, 4).requires_grad_(), 1.0, 0).grad_fn is None


def all_to_all_on_one_rank(side):
    given = numbers(side, 2, 3)
    result = side.all_to_all(given, 0, 1)
    result.add_(1)
    return given, result


def broadcast_on_one_rank(side):
    given = [numbers(side, 3), numbers(side, 2, dtype=torch.int64)]
    return side.broadcast_tensors(given), given


def broadcast_parameters_on_one_rank(side):
    model = torch.nn.BatchNorm1d(2).to(side.device)
    side.broadcast_parameters(model)
    return dict(model.state_dict())


def differentiable_collectives_on_one_rank(side):
    first, second = (numbers(side, 2, 3).requires_grad_() for _ in range(2))
    reduced = side.all_reduce_with_grad(side.SUM, first)
    gathered = side.all_gather_with_grad(second, dim=1)
    (reduced * 3 + gathered * 5).sum().backward()
    return reduced, gathered, first.grad, second.grad


# Python values.


def payloads(side):
    return side.gather_payloads(b"one"), side.gather_payloads(b"")


def mesh_reduce_of_a_number(side):
    return side.mesh_reduce(3, sum), side.mesh_reduce(0.5, max)


def mesh_reduce_of_nested_data(side):
    data = {"loss": [numbers(side, 2), (1, 2.5)], "name": "x", "none": None}
    return side.mesh_reduce(data, lambda gathered: gathered)


def mesh_reduce_gives_cpu_tensors(side):
    return side.mesh_reduce(numbers(side, 2), lambda gathered: gathered[0].device.type)


def do_on_ranks(side):
    def describe(*data):
        return [str(data[0].device.type), data[0], data[1]["b"]]

    return side.do_on_ranks(describe, (numbers(side, 2), {"b": numbers(side, 3)}))


def do_on_ranks_elsewhere(side):
    return side.do_on_ranks(lambda: "called", (), (1,))


def serial_executor(side):
    return side.SerialExecutor().run(lambda: "done")


def optimizer_step_on_one_rank(side):
    weight = torch.nn.Parameter(numbers(side, 3))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    (weight * numbers(side, 3)).sum().backward()
    side.average_gradients(optimizer)
    return weight.grad


# Loading and saving.


def saved_data(side):
    data = {
        "model": {"weight": numbers(side, 2, 2), "steps": torch.tensor(7).to(side.device)},
        "optimizer": {
            "state": {0: {"step": numbers(side, 1)}},
            "param_groups": [{"params": [0, 1], "lr": 0.1}],
        },
        "epoch": 3,
        "tuple": (numbers(side, 1), "text", None),
    }
    stream = io.BytesIO()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "file.pt")
        side.save(data, path)
        side.save(data, stream)
        side.save(data, stream := io.BytesIO(), global_master=True)
        stream.seek(0)
        return torch.load(path, weights_only=True), torch.load(stream, weights_only=True)


def saved_tensors_are_on_the_cpu(side):
    stream = io.BytesIO()
    side.save([numbers(side, 2)], stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)[0].device.type


def to_cpu(side):
    return side.to_cpu({"a": [numbers(side, 2), 5], "b": (numbers(side, 1), "text")})


def to_device(side):
    moved = side.to_device({"a": [torch.arange(2.0), 5], "b": (torch.ones(1), "text")}, side.device)
    return moved, moved["a"][0].device.type == side.device.type


def to_device_puts_a_bare_tensor_in_a_list(side):
    return side.to_device(torch.arange(2.0), side.device)


BATCHES = [
    {"x": torch.arange(4.0), "more": [torch.tensor([1]), (torch.tensor(2.0), "label")]},
    {"x": torch.arange(4.0, 8.0), "more": [torch.tensor([3]), (torch.tensor(4.0), "other")]},
]


def device_loader_gives_the_batches_again_and_again(side):
    loader = side.DeviceLoader(BATCHES, side.device)
    return len(loader), list(loader), list(loader)


def device_loader_moves_nested_tensors(side):
    batch = next(iter(side.DeviceLoader(BATCHES, side.device)))
    tensors = [batch["x"], batch["more"][0], batch["more"][1][0]]
    return [tensor.device.type == side.device.type for tensor in tensors]


def device_loader_starts_over_after_a_break(side):
    loader = side.DeviceLoader(BATCHES, side.device)
    seen = []
    for numbered in enumerate(loader):
        seen.append(numbered)
        break
    return seen, len(list(loader))


def device_loader_over_a_data_loader(side):
    data = torch.utils.data.TensorDataset(torch.arange(10.0).reshape(5, 2), torch.arange(5))
    loader = torch.utils.data.DataLoader(data, batch_size=2, drop_last=True)
    wrapped = side.DeviceLoader(loader, side.device)
    return len(wrapped), [(x, y) for x, y in wrapped]


def sample_generator(side):
    loader = side.SampleGenerator(data=("batch", 1), sample_count=3)
    return len(loader), list(loader), list(loader), next(iter(loader))


def sample_generator_by_itself_ends(side):
    generator = side.SampleGenerator("x", 2)
    got = [next(generator), next(generator)]
    try:
        next(generator)
    except StopIteration:
        got.append("end")
    return got, len(generator), list(generator)


# Output.


def master_print(side):
    stream = io.StringIO()
    side.master_print("epoch", 3, fd=stream)
    side.master_print(fd=stream, local=True, flush=True)
    return stream.getvalue()


def printed(function: Callable[..., None], *arguments: Any, **named: Any) -> str:
    with redirect_stdout(io.StringIO()) as stream:
        function(*arguments, **named)
    return re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", stream.getvalue())


class Writer:
    """Stands in for a TensorBoard writer: remembers what it was told."""

    def __init__(self, log_dir: str = "") -> None:
        self.told: list[Any] = [log_dir]

    def add_scalar(self, name: str, value: Any, global_step: int | None = None) -> None:
        self.told.append([name, value, global_step])

    def flush(self) -> None:
        self.told.append("flush")

    def close(self) -> None:
        self.told.append("close")


def training_updates(side):
    writer = Writer()
    texts = [
        printed(side.print_training_update, "dev", 10, 0.1234567, 12.345, 6.0),
        printed(side.print_training_update, "dev", 10, torch.tensor(0.5), 12.345, 6.0, epoch=0),
        printed(side.print_training_update, "dev", 1, 1, 2, 3, epoch=4, summary_writer=writer),
    ]
    return texts, writer.told


def evaluation_updates(side):
    return [
        printed(side.print_test_update, "dev", 99.126),
        printed(side.print_test_update, "dev", None, epoch=0),
        printed(side.print_test_update, "dev", 50, 3, 7),
    ]


def summaries(side):
    writer = Writer()
    side.write_to_summary(writer, global_step=3, dict_to_write={"a": 1.5, "b": 2})
    side.write_to_summary(writer)
    side.write_to_summary(None, global_step=3, dict_to_write={"a": 1})
    side.close_summary_writer(writer)
    side.close_summary_writer(None)
    return writer.told


def summary_writers(side):
    module = types.SimpleNamespace(SummaryWriter=Writer)
    with mock.patch.dict(sys.modules, {"tensorboardX": module}), mock.patch("time.time", return_value=5.0):
        return (
            side.get_summary_writer("logs").told,
            side.get_summary_writer(None),
            side.get_summary_writer(""),
        )


@contextmanager
def clock(*readings: float) -> Iterator[None]:
    with mock.patch("time.time", mock.Mock(side_effect=readings)):
        yield


def rate_tracker(side):
    with clock(100.0, 101.0, 102.0, 103.0, 103.0, 107.0, 110.0):
        tracker = side.RateTracker()
        tracker.add(10)
        got = [tracker.rate(), tracker.global_rate()]
        tracker.add(30)
        tracker.add(5)
        got += [tracker.rate(), tracker.rate(), tracker.rate()]
        return [*got, tracker.global_rate()]


def rate_tracker_before_time_passes(side):
    with clock(100.0, 100.0, 100.0, 102.0, 104.0):
        tracker = side.RateTracker(smooth_factor=0.9)
        tracker.add(4)
        return tracker.rate(), tracker.global_rate(), tracker.rate(), tracker.rate()


def rate_tracker_without_a_factor(side):
    with clock(0.0, 1.0, 2.0):
        tracker = side.RateTracker(smooth_factor=None)
        tracker.add(1)
        return tracker.rate(), tracker.rate()


# Odds and ends of torch_xla.utils.


def environment(side):
    settings = {"ONE": "1", "ZERO": "0", "TRUE": "true", "WORD": "yes", "EMPTY": "", "FLOAT": "0.5"}
    with mock.patch.dict(os.environ, settings):
        flags = [side.check_env_flag(name) for name in (*settings, "UNSET_NAME")]
        return (
            flags,
            side.check_env_flag("UNSET_NAME", "1"),
            [side.getenv_as(name, bool) for name in ("ONE", "ZERO", "UNSET_NAME")],
            [
                side.getenv_as("FLOAT", float, 1.0),
                side.getenv_as("ONE", int),
                side.getenv_as("EMPTY", str, "x"),
            ],
            [side.getenv_as("UNSET_NAME", int, defval=4), side.getenv_as("UNSET_NAME", int)],
        )


def lists(side):
    nested = (1, [2, (3, [4])], "text", ())
    return side.as_list(3), side.as_list([3]), side.as_list((3, 4)), side.flatten_nested_tuple(nested)


def parallel_work(side):
    def divide(a, b):
        return a / b

    done = side.parallel_work(2, divide, [8, 6, 4], [1, 2, 4])
    try:
        side.parallel_work(2, divide, [1, 1], [1, 0])
    except ZeroDivisionError as error:
        return done, str(error)
    return done, "nothing was raised"


def ports(side):
    found = side.get_free_tcp_ports(2)
    return len(found), all(1024 <= port < 65536 for port in found), len(side.get_free_tcp_ports())


# Loops that torch_xla compiled.


def gradient_accumulation(side):
    model = torch.nn.Linear(2, 1, bias=False).to(side.device)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.5, -1.0]]))

    def step(x, y):
        return ((model(x) - y) ** 2).mean()

    loss = side.gradient_accumulation(step, (numbers(side, 3, 4, 2), numbers(side, 3, 4, 1)), model)
    return loss, model.weight.grad


def gradient_accumulation_carries(side):
    model = torch.nn.Linear(1, 1, bias=False).to(side.device)
    with torch.no_grad():
        model.weight.fill_(2.0)

    def step(x, count):
        return model(x).mean(), count + 10

    count = torch.tensor(1.0).to(side.device)
    loss, count = side.gradient_accumulation(step, (numbers(side, 3, 2, 1),), model, count)
    return loss, count, model.weight.grad


def scan(side):
    def step(carry, x):
        carry = carry + x
        return carry, carry * 2

    start = torch.ones(2).to(side.device).requires_grad_()
    xs = numbers(side, 3, 2).requires_grad_()
    carry, outputs = side.scan(step, start, xs)
    (carry.sum() + outputs.sum()).backward()
    return carry, outputs, start.grad, xs.grad


def scan_of_nested_data(side):
    def step(carry, x):
        a, b = x
        return {"sum": carry["sum"] + a}, (a * b, a - b)

    # all of them with gradients: torch_xla's scan refuses anything else
    start = {"sum": torch.zeros(2).to(side.device).requires_grad_()}
    xs = (numbers(side, 3, 2).requires_grad_(), (numbers(side, 3, 2) + 1).requires_grad_())
    return side.scan(step, start, xs)
