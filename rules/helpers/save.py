import os

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map_only


def save(data, file_or_path, master_only=True, global_master=False):
    """Save CPU copies of the tensors in ``data``, by default once on every host."""
    if global_master:
        master = not dist.is_initialized() or dist.get_rank() == 0
    else:
        master = int(os.environ.get("LOCAL_RANK", "0")) == 0
    if master or not master_only:
        torch.save(tree_map_only(torch.Tensor, torch.Tensor.cpu, data), file_or_path)
