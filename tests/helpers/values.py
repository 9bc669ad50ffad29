"""Values as JSON: what a scenario gave is compared, and kept, in this form."""

from __future__ import annotations

from typing import Any

import torch


def encode(value: Any) -> Any:
    """Return ``value`` as JSON can hold it: tensors with their dtype, bytes as numbers, NumPy numbers as numbers.

    A tuple becomes a list. torch_xla hands out lists where it was given tuples, the helpers keep them: no
    program that ran with lists can tell.

    Raises:
        TypeError: there is no form for a value of this type.
    """
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu()
        return {"dtype": str(plain.dtype).removeprefix("torch."), "values": plain.tolist()}
    if isinstance(value, dict):
        return {"items": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, bytes):
        return {"bytes": list(value)}
    if hasattr(value, "item"):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"encode: no form for {value!r}, a {type(value).__name__}")
