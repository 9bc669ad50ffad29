import torch
import torch.distributed as dist


class _AllReduceWithGrad(torch.autograd.Function):
    """Reduce over all ranks; backward, each rank keeps its own gradient."""

    @staticmethod
    def forward(ctx, value, reduce_type, scale):
        reduced = value.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(reduced, op=reduce_type)
        if scale != 1.0:
            reduced.mul_(scale)
        ctx.reduce_type, ctx.scale = reduce_type, scale
        ctx.save_for_backward(value, reduced)
        return reduced

    @staticmethod
    def backward(ctx, grad):
        value, reduced = ctx.saved_tensors
        grad = grad * ctx.scale
        if ctx.reduce_type in (dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            grad = grad.where(value == reduced, 0)
        elif ctx.reduce_type == dist.ReduceOp.PRODUCT:
            grad = grad * (reduced / value).where(value != 0, 0)
        return grad, None, None


def all_reduce_with_grad(reduce_type, value, scale=1.0):
    """Reduce over all ranks, then multiply by ``scale``; gradients aren't summed over ranks."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return value.clone()
    return _AllReduceWithGrad.apply(value, reduce_type, scale)
