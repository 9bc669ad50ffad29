import torch.distributed as dist


class SerialExecutor:
    """Run a function on one rank after another."""

    def run(self, fn):
        if not dist.is_initialized():
            return fn()
        result = None
        for rank in range(dist.get_world_size()):
            if rank == dist.get_rank():
                result = fn()
            dist.barrier()
        return result
