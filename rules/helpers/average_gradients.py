import torch.distributed as dist


def average_gradients(optimizer):
    """Average the gradients an optimizer handles over all ranks."""
    if not dist.is_initialized():
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(dist.get_world_size())
