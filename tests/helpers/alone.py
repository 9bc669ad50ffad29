"""What the helpers do in one process, where torch_xla had nothing to compare with or was worse."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pickle
import sys
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Pair(NamedTuple):
    x: torch.Tensor
    name: str


class Movable:
    """A batch that knows how to move itself, as tokenizers and graph libraries return them."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def to(self, device: torch.device) -> Movable:
        return Movable(self.tensor.to(device))


META = torch.device("meta")


def loader(**options: Any) -> DataLoader:
    return DataLoader(
        TensorDataset(torch.arange(10.0).reshape(5, 2), torch.arange(5)), batch_size=2, **options
    )


# DeviceLoader, where torch_xla's had no attributes of the loader


def device_loader_passes_attributes_on(side):
    inner = loader(drop_last=True)
    wrapped = side.DeviceLoader(inner, "cpu")
    assert wrapped.dataset is inner.dataset
    assert wrapped.drop_last is True
    assert wrapped.batch_size == 2
    assert len(wrapped) == 2
    assert not hasattr(wrapped, "no_such_thing")


def device_loader_reaches_the_sampler(side):
    sampler = DistributedSampler(range(5), num_replicas=1, rank=0)
    wrapped = side.DeviceLoader(DataLoader(range(5), sampler=sampler), "cpu")
    wrapped.sampler.set_epoch(3)
    assert sampler.epoch == 3


def device_loader_survives_pickle_and_copy(side):
    wrapped = side.DeviceLoader(loader(), "cpu")
    for other in (pickle.loads(pickle.dumps(wrapped)), copy.copy(wrapped), copy.deepcopy(wrapped)):
        assert type(other) is type(wrapped)
        assert len(other) == 3
        assert other.dataset.tensors[1].tolist() == [0, 1, 2, 3, 4]
    assert copy.copy(wrapped)._loader is wrapped._loader


def device_loader_without_a_loader_says_so(side):
    empty = side.DeviceLoader.__new__(side.DeviceLoader)
    assert not hasattr(empty, "dataset")
    assert not hasattr(empty, "loader")


def device_loader_moves_whatever_can_move(side):
    batch = {
        "a": [torch.ones(1)],
        "b": (torch.ones(1), 3),
        "c": Pair(torch.ones(1), "x"),
        "d": Movable(torch.ones(1)),
    }
    (moved,) = side.DeviceLoader([batch], META)
    assert moved["a"][0].device == META
    assert moved["b"][0].device == META
    assert moved["b"][1] == 3
    assert moved["c"].x.device == META
    assert moved["c"].name == "x"
    assert moved["d"].tensor.device == META
    assert batch["a"][0].device.type == "cpu"


def device_loader_can_be_iterated_twice_at_once(side):
    wrapped = side.DeviceLoader([torch.tensor(1), torch.tensor(2)], "cpu")
    first, second = iter(wrapped), iter(wrapped)
    assert [next(first).item(), next(second).item(), next(first).item()] == [1, 1, 2]
    assert [number for number, _ in enumerate(wrapped)] == [0, 1]


def device_loader_of_an_endless_loader(side):
    def endless():
        while True:
            yield torch.tensor(1)

    assert next(iter(side.DeviceLoader(endless(), "cpu"))) == 1


def device_loader_raises_what_the_loader_raises(side):
    """torch_xla 2.9 waits for ever when ``iter(loader)`` raises in its thread."""

    class Broken:
        def __iter__(self):
            raise ValueError("no data")

    with contextlib.suppress(ValueError):
        list(side.DeviceLoader(Broken(), "cpu"))
        raise AssertionError("nothing was raised")


def to_device_moves_whatever_can_move(side):
    moved = side.to_device({"a": (torch.ones(1), "x"), "b": Movable(torch.ones(1))}, META)
    assert moved["a"][0].device == META
    assert moved["a"][1] == "x"
    assert moved["b"].tensor.device == META
    (single,) = side.to_device(torch.ones(1), META)
    assert single.device == META


# save


def save_keeps_ties_and_containers(side):
    weight = torch.nn.Parameter(torch.ones(2))
    model = torch.nn.Linear(2, 2)
    data = {"first": weight, "second": weight, "pair": Pair(torch.ones(1), "x"), "state": model.state_dict()}
    side.save(data, stream := io.BytesIO())
    stream.seek(0)
    loaded = torch.load(stream, weights_only=False)
    assert loaded["first"].data_ptr() == loaded["second"].data_ptr()
    assert loaded["pair"].name == "x"
    assert isinstance(loaded["pair"], Pair)
    torch.nn.Linear(2, 2).load_state_dict(loaded["state"])


def save_of_an_optimizer_can_be_loaded(side):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    side.save({"optimizer": optimizer.state_dict()}, stream := io.BytesIO())
    stream.seek(0)
    other = torch.optim.Adam(model.parameters())
    other.load_state_dict(torch.load(stream, weights_only=True)["optimizer"])
    assert other.state_dict()["state"][0]["step"] == 1


def save_leaves_what_it_saves_alone(side):
    data = {"a": [torch.ones(1).requires_grad_()]}
    kept = data["a"][0]
    side.save(data, io.BytesIO())
    assert data["a"][0] is kept


def save_does_not_touch_the_file_elsewhere(side):
    with mock.patch.dict(os.environ, LOCAL_RANK="1"):
        side.save({}, "/no/such/directory/file.pt")


# Output


def master_print_follows_a_redirected_stdout(side):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        side.master_print("a", "b")
    assert stream.getvalue() == "a b\n"


def master_print_flushes_when_told(side):
    stream = mock.Mock(wraps=io.StringIO())
    side.master_print("a", fd=stream)
    assert not stream.flush.called
    side.master_print("a", fd=stream, flush=True)
    assert stream.flush.called


def master_print_of_a_second_local_rank(side):
    with mock.patch.dict(os.environ, LOCAL_RANK="1"), contextlib.redirect_stdout(io.StringIO()) as stream:
        side.master_print("each host", local=True)
        side.master_print("the one and only")
    assert stream.getvalue() == "the one and only\n"


def memory_info_under_its_old_names(side):
    accelerator = mock.Mock()
    accelerator.get_memory_info.return_value = (3, 10)
    accelerator.memory_allocated.return_value = 6
    accelerator.max_memory_allocated.return_value = 9
    with mock.patch.object(torch, "accelerator", accelerator):
        assert side.memory_info() == {"bytes_used": 6, "bytes_limit": 10, "peak_bytes_used": 9}


def helpers_write_nothing_by_themselves(side):
    assert sys.stdout is not None
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        side.save({}, io.BytesIO())
        side.mesh_reduce(1, sum)
        side.gather_payloads(b"")
    assert stream.getvalue() == ""


# Attention, against its definition


def attention(q, k, v, causal, segments, scale, bias):
    scores = q @ k.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias
    scores = scores * scale
    allowed = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        allowed = allowed & torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    if segments is not None:
        allowed = allowed & (segments[:, None, :, None] == segments[:, None, None, :])
    return scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ v


def flash_attention_is_attention(side):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 8, 4) for _ in range(3))
    segments = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, 0, 1, 1]])
    bias = torch.randn(2, 3, 8, 8)
    for causal in (False, True):
        for given in (None, segments):
            for ab in (None, bias):
                for scale in (1.0, 0.5):
                    found = side.flash_attention(q, k, v, causal, given, given, scale, ab=ab)
                    expected = attention(q, k, v, causal, given, scale, ab)
                    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def flash_attention_does_not_scale_by_itself(side):
    q, k, v = (torch.randn(1, 1, 4, 4) for _ in range(3))
    torch.testing.assert_close(side.flash_attention(q, k, v), attention(q, k, v, False, None, 1.0, None))


def gradient_accumulation_keeps_the_order_of_what_it_carries(side):
    """torch_xla 2.9 hands back all but the first in reverse order when there are three or more."""

    def step(x, a, b, c):
        return (x * weight).sum(), a + 1, b + 10, c + 100

    weight = torch.nn.Parameter(torch.ones(1))
    loss, *carried = side.gradient_accumulation(step, (torch.ones(2, 1),), None, *torch.zeros(3))
    assert loss == 1
    assert [value.item() for value in carried] == [2, 20, 200]


def scan_without_outputs(side):
    carry, outputs = side.scan(lambda carry, x: (carry + x, None), torch.zeros(2), torch.ones(3, 2))
    assert carry.tolist() == [3, 3]
    assert outputs is None
