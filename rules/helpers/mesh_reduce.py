import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map_only


def mesh_reduce(data, reduce_fn):
    """Gather data from all ranks, on the CPU, and reduce the list of it."""
    data = tree_map_only(torch.Tensor, torch.Tensor.cpu, data)
    if not dist.is_initialized():
        return reduce_fn([data])
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, data)
    return reduce_fn(gathered)
