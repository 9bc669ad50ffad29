import torch
from torch.utils._pytree import tree_map_only


def to_device(data, device):
    """Move all tensors in nested data to a device; a bare tensor comes back in a list."""
    if isinstance(data, torch.Tensor):
        data = [data]
    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), data)
