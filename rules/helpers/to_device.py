import torch
from torch.utils._pytree import tree_map


def to_device(data, device):
    """Move all tensors in nested data to a device; a bare tensor comes back in a list."""
    if isinstance(data, torch.Tensor):
        data = [data]
    return tree_map(lambda item: item.to(device) if hasattr(item, "to") else item, data)
