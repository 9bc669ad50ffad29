"""What the programs of these tests import: a model, batches that differ by rank, and training written plainly.

The references run in one process and see the batches of all ranks, so nothing in them is distributed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

RATE = 0.1
STEPS = 4
Batch = tuple[torch.Tensor, torch.Tensor]


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def batches(rank: int) -> Iterator[Batch]:
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(STEPS):
        yield torch.randn(6, 4, generator=generator), torch.randn(6, 1, generator=generator) * 3


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def report(**values: Any) -> None:
    """Print values as the last line: tensors and models as nested lists."""

    def plain(value: Any) -> Any:
        if isinstance(value, nn.Module):
            return [parameter.tolist() for parameter in value.parameters()]
        return value.tolist() if isinstance(value, torch.Tensor) else value

    print(json.dumps({name: plain(value) for name, value in values.items()}), flush=True)


def gradients(model: nn.Module, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


def clipped(found: list[torch.Tensor], most: float) -> list[torch.Tensor]:
    norm = torch.sqrt(sum((one**2).sum() for one in found))
    return [one * min(1.0, (most / (norm + 1e-6)).item()) for one in found]


def train(ranks: int, gradients_of_step: Callable[[nn.Module, list[Batch]], list[torch.Tensor]]) -> nn.Module:
    """Plain gradient descent; each step's gradients come from the batches of all ranks."""
    model = make_model()
    for step in zip(*(batches(rank) for rank in range(ranks)), strict=True):
        found = gradients_of_step(model, list(step))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), found, strict=True):
                parameter -= RATE * gradient
    return model


def mean_loss(model: nn.Module, step: list[Batch]) -> list[torch.Tensor]:
    return gradients(model, sum(loss_of(model, batch) for batch in step) / len(step))


def mean_then_clip(model: nn.Module, step: list[Batch]) -> list[torch.Tensor]:
    return clipped(mean_loss(model, step), 0.5)


def clip_then_mean(model: nn.Module, step: list[Batch]) -> list[torch.Tensor]:
    each = [clipped(gradients(model, loss_of(model, batch)), 0.5) for batch in step]
    return [torch.stack(of_ranks).mean(0) for of_ranks in zip(*each, strict=True)]


def references() -> None:
    """Print what each way of training leads to on two ranks, and mean_loss on one."""
    report(
        mean_loss=train(2, mean_loss),
        mean_then_clip=train(2, mean_then_clip),
        clip_then_mean=train(2, clip_then_mean),
        one_rank=train(1, mean_loss),
    )
