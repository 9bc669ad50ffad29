import torch.distributed as dist


def broadcast_parameters(model):
    """Give every rank the parameters and buffers of rank 0."""
    if dist.is_initialized():
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor.detach(), src=0)
