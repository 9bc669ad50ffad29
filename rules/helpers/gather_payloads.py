import torch.distributed as dist


def gather_payloads(payload):
    """Gather the payloads of all ranks, in rank order; also a barrier."""
    if not dist.is_initialized():
        return [payload]
    payloads = [None] * dist.get_world_size()
    dist.all_gather_object(payloads, payload)
    return payloads
