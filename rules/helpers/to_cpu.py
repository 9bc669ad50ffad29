import torch
from torch.utils._pytree import tree_map_only


def to_cpu(data):
    """Copy all tensors in nested data to the CPU."""
    return tree_map_only(torch.Tensor, torch.Tensor.cpu, data)
