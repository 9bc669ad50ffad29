import torch.distributed as dist


def reduce_scatter(reduce_type, input, scale, scatter_dim):
    """Reduce over all ranks, multiply by ``scale``, and keep this rank's share of a dimension."""
    if not dist.is_initialized():
        return input * scale
    source = input.detach().movedim(scatter_dim, 0).contiguous()
    mine = source.new_empty(source.shape[0] // dist.get_world_size(), *source.shape[1:])
    dist.reduce_scatter_tensor(mine, source, op=reduce_type)
    return mine.movedim(0, scatter_dim) * scale
