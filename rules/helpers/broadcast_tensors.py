import torch.distributed as dist


def broadcast_tensors(tensors, root_ordinal=0):
    """Overwrite the tensors of every rank by those of one rank."""
    if dist.is_initialized():
        for tensor in tensors:
            dist.broadcast(tensor.detach(), src=root_ordinal)
