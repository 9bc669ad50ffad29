import torch
import torch.distributed as dist


def all_reduce(reduce_type, inputs, scale=1.0):
    """Reduce over all ranks: a tensor into a new one, a list in place; then multiply by ``scale``."""
    single = isinstance(inputs, torch.Tensor)
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return inputs.clone() if single else inputs
    tensors = [inputs.detach().clone()] if single else [tensor.detach() for tensor in inputs]
    for tensor in tensors:
        dist.all_reduce(tensor, op=reduce_type)
        if scale != 1.0:
            tensor.mul_(scale)
    return tensors[0] if single else inputs
