import torch
import torch.distributed as dist


def all_gather(value, dim=0):
    """Concatenate the tensors of all ranks along a dimension."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return value.clone()
    value = value.detach().contiguous()
    gathered = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, value)
    return torch.cat(gathered, dim=dim)
