import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map_only


def do_on_ranks(target, data=(), ranks=(0,)):
    """Call a function on some ranks, with data on the CPU; all ranks wait for it."""
    result = None
    if (dist.get_rank() if dist.is_initialized() else 0) in ranks:
        result = target(*tree_map_only(torch.Tensor, torch.Tensor.cpu, data))
    if dist.is_initialized():
        dist.barrier()
    return result
