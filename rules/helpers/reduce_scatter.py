import torch.distributed as dist


def reduce_scatter(reduce_type, input, scale, scatter_dim):
    """Reduce over all ranks, multiply by ``scale``, and keep this rank's share of a dimension."""
    source = input.detach().movedim(scatter_dim, 0).contiguous()
    if dist.is_initialized():
        mine = source.new_empty(source.shape[0] // dist.get_world_size(), *source.shape[1:])
        dist.reduce_scatter_tensor(mine, source, op=reduce_type)
    else:
        mine = source.clone()
    if scale != 1.0:
        mine.mul_(scale)
    return mine.movedim(0, scatter_dim)
