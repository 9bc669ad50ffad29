import torch
import torch.distributed as dist


class _AllGatherWithGrad(torch.autograd.Function):
    """Gather along a dimension; backward, each rank keeps its part of its own gradient."""

    @staticmethod
    def forward(ctx, value, dim):
        ctx.dim, ctx.size = dim, value.size(dim)
        value = value.contiguous()
        gathered = [torch.empty_like(value) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, value)
        return torch.cat(gathered, dim=dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.narrow(ctx.dim, dist.get_rank() * ctx.size, ctx.size).clone(), None


def all_gather_with_grad(value, dim=0):
    """Concatenate the tensors of all ranks along a dimension; gradients aren't summed over ranks."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return value.clone()
    return _AllGatherWithGrad.apply(value, dim)
