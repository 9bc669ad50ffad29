import torch
import torch.distributed as dist

from .group_of import group_of


def all_gather_in_groups(value, dim=0, groups=None):
    """Concatenate the tensors of the ranks of each group along a dimension."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return value.clone()
    group = group_of(groups)
    value = value.detach().contiguous()
    gathered = [torch.empty_like(value) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, value, group=group)
    return torch.cat(gathered, dim=dim)
