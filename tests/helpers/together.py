"""What the helpers do on several ranks, checked against what torch_xla's collectives mean, in plain torch.

Every rank knows what the others hold (``held(rank)``), so each reference is computed without any collective.
A CPU can't run torch_xla's collectives on more than one rank; the meanings are those of its source
(core/xla_model.py, release 2.9) and of the XLA operations it names.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import time
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist


def held(rank: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The tensor a rank holds: other numbers on every rank and in every place."""
    count = int(torch.tensor(shape).prod())
    return (torch.arange(count).reshape(shape) * 10 + rank + 1).to(dtype)


def everyone(*shape: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [held(rank, *shape, dtype=dtype) for rank in range(dist.get_world_size())]


def mine(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return held(dist.get_rank(), *shape, dtype=dtype)


def equal(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def raises(kind: type[Exception], function: Any, *arguments: Any) -> None:
    try:
        function(*arguments)
    except kind:
        return
    raise AssertionError(f"{function} raised no {kind.__name__}")


# groups of ranks


def _lists() -> list[list[int]]:
    """Rank 0 by itself, all others together."""
    return [[0], list(range(1, dist.get_world_size()))]


def _mates() -> list[int]:
    return next(ranks for ranks in _lists() if dist.get_rank() in ranks)


def all_reduce_in_groups_keeps_groups_apart(side):
    result = side.all_reduce_in_groups(dist.ReduceOp.SUM, mine(3), groups=_lists())
    equal(result, sum(held(rank, 3) for rank in _mates()))
    given = [mine(2)]
    assert side.all_reduce_in_groups(dist.ReduceOp.SUM, given, scale=0.5, groups=_lists()) is given
    equal(given[0], sum(held(rank, 2) for rank in _mates()) * 0.5)
    equal(side.all_reduce_in_groups(dist.ReduceOp.SUM, mine(3)), torch.stack(everyone(3)).sum(0))


def all_gather_in_groups_keeps_groups_apart(side):
    result = side.all_gather_in_groups(mine(2, 3), dim=1, groups=_lists())
    equal(result, torch.cat([held(rank, 2, 3) for rank in _mates()], dim=1))


def group_of_gives_the_group_this_rank_is_in(side):
    assert dist.get_world_size(side.group_of(_lists())) == len(_mates())
    assert side.group_of(_lists()) is side.group_of(_lists())
    assert side.group_of(None) is None


# all_reduce


def all_reduce_of_a_tensor_is_a_new_one(side):
    given = mine(2, 3)
    result = side.all_reduce(dist.ReduceOp.SUM, given)
    equal(result, torch.stack(everyone(2, 3)).sum(0))
    equal(given, mine(2, 3))


def all_reduce_multiplies_by_scale(side):
    result = side.all_reduce(dist.ReduceOp.SUM, mine(3), scale=0.25)
    equal(result, torch.stack(everyone(3)).sum(0) * 0.25)


def all_reduce_of_a_list_works_in_place(side):
    given = [mine(2), mine(1, 3)]
    result = side.all_reduce(dist.ReduceOp.SUM, given, scale=0.5)
    assert result is given
    equal(given[0], torch.stack(everyone(2)).sum(0) * 0.5)
    equal(given[1], torch.stack(everyone(1, 3)).sum(0) * 0.5)


def all_reduce_of_a_tuple_works_in_place(side):
    given = (mine(2),)
    assert side.all_reduce(dist.ReduceOp.SUM, given) is given
    equal(given[0], torch.stack(everyone(2)).sum(0))


def all_reduce_knows_the_other_operations(side):
    stacked = torch.stack(everyone(3))
    for operation, expected in (
        (dist.ReduceOp.MAX, stacked.amax(0)),
        (dist.ReduceOp.MIN, stacked.amin(0)),
        (dist.ReduceOp.PRODUCT, stacked.prod(0)),
    ):
        equal(side.all_reduce(operation, mine(3)), expected)


def all_reduce_keeps_integers(side):
    result = side.all_reduce(dist.ReduceOp.SUM, mine(3, dtype=torch.int64))
    equal(result, torch.stack(everyone(3, dtype=torch.int64)).sum(0))


def all_reduce_of_integers_refuses_a_fraction(side):
    # XLA turned the scale into an integer, 0 for a fraction: an error is the better answer
    raises(RuntimeError, side.all_reduce, dist.ReduceOp.SUM, mine(3, dtype=torch.int64), 0.5)


def all_reduce_of_a_scalar(side):
    equal(side.all_reduce(dist.ReduceOp.SUM, mine()), torch.stack(everyone()).sum())


def all_reduce_takes_tensors_that_need_gradients(side):
    given = mine(3).requires_grad_()
    result = side.all_reduce(dist.ReduceOp.SUM, given, scale=0.5)
    equal(result, torch.stack(everyone(3)).sum(0) * 0.5)
    assert not result.requires_grad, "no gradient flows, as with torch_xla: see gradient_on_two_ranks"
    parameter = torch.nn.Parameter(mine(3))
    side.all_reduce(dist.ReduceOp.SUM, [parameter], scale=0.5)
    equal(parameter.detach(), torch.stack(everyone(3)).sum(0) * 0.5)


def all_reduce_of_a_transposed_tensor(side):
    equal(side.all_reduce(dist.ReduceOp.SUM, mine(2, 3).t()), torch.stack(everyone(2, 3)).sum(0).t())


# all_gather: torch_xla pads with zeros and adds, so the parts stand side by side along the dimension


def all_gather_along_each_dimension(side):
    for dim in (0, 1, 2, -1, -2, -3):
        equal(side.all_gather(mine(2, 3, 2), dim=dim), torch.cat(everyone(2, 3, 2), dim=dim))


def all_gather_keeps_dtypes(side):
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bfloat16, torch.bool):
        result = side.all_gather(mine(3, dtype=dtype))
        assert result.dtype is dtype
        equal(result, torch.cat(everyone(3, dtype=dtype)))


def all_gather_refuses_a_scalar(side):
    # xm.all_gather raised IndexError: it asks for the size of a dimension that isn't there
    raises(RuntimeError, side.all_gather, mine())


def all_gather_of_a_strided_tensor(side):
    equal(side.all_gather(mine(4, 3).t()[:, ::2]), torch.cat([one.t()[:, ::2] for one in everyone(4, 3)]))


def all_gather_takes_tensors_that_need_gradients(side):
    result = side.all_gather(mine(2).requires_grad_())
    equal(result, torch.cat(everyone(2)))


# The differentiable two: backward, torch_xla lets each rank keep its own gradient, nothing is summed over ranks


def all_reduce_with_grad_of_a_sum(side):
    given = mine(3).requires_grad_()
    result = side.all_reduce_with_grad(dist.ReduceOp.SUM, given, scale=0.5)
    equal(result.detach(), torch.stack(everyone(3)).sum(0) * 0.5)
    (result * (dist.get_rank() + 1)).sum().backward()
    equal(given.grad, torch.full((3,), 0.5 * (dist.get_rank() + 1)))


def all_reduce_with_grad_of_a_maximum(side):
    """The gradient goes to the ranks that hold the greatest value."""
    given = mine(3).requires_grad_()
    side.all_reduce_with_grad(dist.ReduceOp.MAX, given).sum().backward()
    equal(given.grad, torch.full((3,), float(dist.get_rank() == dist.get_world_size() - 1)))


def all_reduce_with_grad_of_a_product(side):
    given = mine(3).requires_grad_()
    side.all_reduce_with_grad(dist.ReduceOp.PRODUCT, given).sum().backward()
    torch.testing.assert_close(given.grad, torch.stack(everyone(3)).prod(0) / mine(3))


def all_gather_with_grad_along_each_dimension(side):
    for dim in (0, 1, -1):
        given = mine(2, 3).requires_grad_()
        result = side.all_gather_with_grad(given, dim=dim)
        equal(result.detach(), torch.cat(everyone(2, 3), dim=dim))
        weights = torch.arange(float(result.numel())).reshape(result.shape)
        (result * weights).sum().backward()
        equal(given.grad, weights.chunk(dist.get_world_size(), dim)[dist.get_rank()])


# reduce_scatter: the sum of all, of which each rank keeps its block of a dimension


def reduce_scatter_along_each_dimension(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    for dim in (0, 1, -1):
        shape = [4, 4]
        shape[dim] *= ranks
        total = torch.stack(everyone(*shape)).sum(0) * 0.5
        found = side.reduce_scatter(dist.ReduceOp.SUM, mine(*shape), 0.5, dim)
        equal(found, total.chunk(ranks, dim)[rank])


def reduce_scatter_keeps_integers(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    given = mine(ranks * 2, dtype=torch.int64)
    found = side.reduce_scatter(dist.ReduceOp.SUM, given, 1.0, 0)
    equal(found, torch.stack(everyone(ranks * 2, dtype=torch.int64)).sum(0).chunk(ranks)[rank])
    equal(given, mine(ranks * 2, dtype=torch.int64))


def reduce_scatter_knows_the_maximum(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    found = side.reduce_scatter(dist.ReduceOp.MAX, mine(ranks), 1.0, 0)
    equal(found, torch.stack(everyone(ranks)).amax(0).chunk(ranks)[rank])


# all_to_all: block j of the split dimension goes to rank j; what arrives is joined in rank order


def all_to_all_along_each_pair_of_dimensions(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    for split in (0, 1, 2, -1):
        for concat in (0, 1, 2, -1):
            shape = [2, 3, 2]
            shape[split] *= ranks
            expected = torch.cat([one.chunk(ranks, split)[rank] for one in everyone(*shape)], concat)
            equal(side.all_to_all(mine(*shape), split, concat), expected)


def all_to_all_of_integers(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    expected = torch.cat([one.chunk(ranks)[rank] for one in everyone(ranks, dtype=torch.int64)])
    equal(side.all_to_all(mine(ranks, dtype=torch.int64).requires_grad_(False), 0, 0), expected)


# broadcast


def broadcast_tensors_overwrites_in_place(side):
    root = dist.get_world_size() - 1
    given = [mine(3), mine(2, dtype=torch.int64), mine()]
    assert side.broadcast_tensors(given, root_ordinal=root) is None
    equal(given[0], held(root, 3))
    equal(given[1], held(root, 2, dtype=torch.int64))
    equal(given[2], held(root))


def broadcast_tensors_comes_from_rank_0(side):
    given = [mine(3)]
    side.broadcast_tensors(given)
    equal(given[0], held(0, 3))


def broadcast_parameters_covers_buffers_and_ties(side):
    torch.manual_seed(dist.get_rank())
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
    model[2].weight = model[0].weight
    model[1].num_batches_tracked.fill_(dist.get_rank() + 5)
    side.broadcast_parameters(model)
    torch.manual_seed(0)
    expected = torch.nn.Linear(3, 3)
    equal(model[0].weight, expected.weight)
    assert model[2].weight is model[0].weight
    assert model[1].num_batches_tracked == 5
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in model.parameters())


# Gradients


def average_gradients_of_several_groups(side):
    first, second, unused = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    frozen = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
    optimizer = torch.optim.SGD(
        [{"params": [first, unused]}, {"params": [second, frozen], "lr": 0.5}], lr=0.1
    )
    first.grad, second.grad = mine(2), mine(2) * 2
    side.average_gradients(optimizer)
    mean = torch.stack(everyone(2)).mean(0)
    equal(first.grad, mean)
    equal(second.grad, mean * 2)
    assert unused.grad is None
    assert frozen.grad is None


def average_gradients_of_a_parameter_twice_in_a_model(side):
    shared = torch.nn.Linear(2, 2, bias=False)
    model = torch.nn.Sequential(shared, shared)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shared.weight.grad = mine(2, 2)
    side.average_gradients(optimizer)
    equal(shared.weight.grad, torch.stack(everyone(2, 2)).mean(0))


def average_gradients_given_twice(side):
    # torch_xla listed such a parameter twice and reduced it twice: a mean of equal means
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer = mock.Mock(param_groups=[{"params": [parameter]}, {"params": [parameter]}])
    parameter.grad = mine(2)
    side.average_gradients(optimizer)
    torch.testing.assert_close(parameter.grad, torch.stack(everyone(2)).mean(0))


def average_gradients_of_sparse_gradients(side):
    # gloo can; torch_tpu's process group has no sparse all_reduce, and XLA had no sparse tensors
    rank = dist.get_rank()
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
    embedding(torch.tensor([rank, 3])).sum().backward()
    embedding.weight.grad = embedding.weight.grad.coalesce()
    side.average_gradients(optimizer)
    expected = torch.zeros(4, 2)
    for other in range(dist.get_world_size()):
        expected[other] += 1
        expected[3] += 1
    torch.testing.assert_close(embedding.weight.grad.to_dense(), expected / dist.get_world_size())


# Python values


def mesh_reduce_with_python_functions(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    assert side.mesh_reduce(rank, sum) == sum(range(ranks))
    assert side.mesh_reduce(float(rank), max) == ranks - 1
    assert side.mesh_reduce(rank, lambda values: sum(values) / len(values)) == sum(range(ranks)) / ranks
    assert side.mesh_reduce(f"rank {rank}", list) == [f"rank {other}" for other in range(ranks)]


def mesh_reduce_with_numpy(side):
    import numpy

    ranks, rank = dist.get_world_size(), dist.get_rank()
    assert side.mesh_reduce(rank * 2, numpy.mean) == numpy.mean([other * 2 for other in range(ranks)])
    assert side.mesh_reduce(numpy.float64(rank), numpy.sum) == sum(range(ranks))
    found = side.mesh_reduce(numpy.arange(2) + rank, numpy.concatenate)
    assert found.tolist() == [number for other in range(ranks) for number in (other, other + 1)]


def mesh_reduce_with_tensors(side):
    equal(side.mesh_reduce(mine(3), torch.stack), torch.stack(everyone(3)))
    equal(side.mesh_reduce(mine(), sum), torch.stack(everyone()).sum())
    needs_gradient = (mine(2).requires_grad_() * 1).sum()
    assert side.mesh_reduce(needs_gradient, lambda values: sum(value.item() for value in values)) == sum(
        one.sum() for one in everyone(2)
    )


def mesh_reduce_with_nested_data(side):
    rank = dist.get_rank()
    data = {"loss": mine(2), "counts": [rank, (rank + 1, mine(1))], "name": None}
    found = side.mesh_reduce(data, lambda gathered: gathered)
    assert [one["counts"][0] for one in found] == list(range(dist.get_world_size()))
    for one, loss, last in zip(found, everyone(2), everyone(1), strict=True):
        equal(one["loss"], loss)
        equal(one["counts"][1][1], last)
        assert one["name"] is None


def mesh_reduce_with_data_of_other_sizes(side):
    rank = dist.get_rank()
    found = side.mesh_reduce("x" * 1000 * rank + "end", lambda gathered: [len(one) for one in gathered])
    assert found == [1000 * other + 3 for other in range(dist.get_world_size())]


def gather_payloads_in_rank_order(side):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    assert side.gather_payloads(bytes([rank]) * rank) == [bytes([other]) * other for other in range(ranks)]
    assert side.gather_payloads(b"") == [b""] * ranks


def do_on_ranks_calls_on_rank_0(side):
    result = side.do_on_ranks(lambda tensor, word: (tensor.sum().item(), word), (mine(2), "x"))
    assert result == ((held(0, 2).sum().item(), "x") if dist.get_rank() == 0 else None)


def do_on_ranks_calls_where_it_is_told(side):
    last = dist.get_world_size() - 1
    for ranks in ([last], {last}, (last,)):
        assert side.do_on_ranks(dist.get_rank, ranks=ranks) == (last if dist.get_rank() == last else None)


def do_on_ranks_lets_all_wait(side):
    dist.barrier()
    started = time.monotonic()
    side.do_on_ranks(time.sleep, (0.4,))
    assert time.monotonic() - started > 0.3


def serial_executor_lets_one_after_another(side):
    def turn():
        begin = time.monotonic()
        time.sleep(0.1)
        return begin, time.monotonic()

    ours = side.SerialExecutor().run(turn)
    turns: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(turns, ours)
    for (_, end), (begin, _) in itertools.pairwise(turns):
        assert begin >= end, turns


# One of many writes


def save_writes_on_one_rank(side):
    stream = io.BytesIO()
    side.save({"a": [mine(2)]}, stream)
    assert bool(stream.getvalue()) is (dist.get_rank() == 0)
    if dist.get_rank() == 0:
        stream.seek(0)
        equal(torch.load(stream)["a"][0], mine(2))


def save_writes_once_on_every_host(side):
    with mock.patch.dict(os.environ, LOCAL_RANK="0"):
        side.save(mine(2), local := io.BytesIO())
        side.save(mine(2), once := io.BytesIO(), global_master=True)
    assert local.getvalue(), "the first rank of its host writes"
    assert bool(once.getvalue()) is (dist.get_rank() == 0)


def save_writes_everywhere_when_told(side):
    for global_master in (False, True):
        side.save(mine(2), stream := io.BytesIO(), master_only=False, global_master=global_master)
        assert stream.getvalue()


def master_print_prints_on_rank_0(side):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        side.master_print("epoch", 1, flush=True)
    assert stream.getvalue() == ("epoch 1\n" if dist.get_rank() == 0 else "")


def master_print_prints_once_on_every_host(side):
    with mock.patch.dict(os.environ, LOCAL_RANK="0"):
        side.master_print("here", fd=(stream := io.StringIO()), local=True)
        side.master_print("here", fd=(other := io.StringIO()))
    assert stream.getvalue() == "here\n"
    assert other.getvalue() == ("here\n" if dist.get_rank() == 0 else "")


def updates_name_the_rank(side):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        side.print_training_update("tpu", 1, 0.5, 1, 1)
        side.print_test_update("tpu", 1.0)
    assert stream.getvalue().count(f"Device=tpu/{dist.get_rank()} ") == 2
