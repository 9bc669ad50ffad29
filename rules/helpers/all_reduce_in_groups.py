import torch
import torch.distributed as dist

from .group_of import group_of


def all_reduce_in_groups(reduce_type, inputs, scale=1.0, groups=None):
    """Reduce over the ranks of each group: a tensor into a new one, a list in place; then scale."""
    single = isinstance(inputs, torch.Tensor)
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return inputs.clone() if single else inputs
    tensors = [inputs.detach().clone()] if single else [tensor.detach() for tensor in inputs]
    for tensor in tensors:
        dist.all_reduce(tensor, op=reduce_type, group=group_of(groups))
        if scale != 1.0:
            tensor.mul_(scale)
    return tensors[0] if single else inputs
