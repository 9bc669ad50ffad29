import os

import torch
import torch.distributed as dist


def _launched(rank, fn, args):
    """Join the process group as ``rank``, then call the worker function."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group(dist.get_default_backend_for_device(torch.accelerator.current_accelerator()))
    fn(rank, *args)
    dist.destroy_process_group()


def launch(fn, args=(), nprocs=None):
    """Start one process per chip of this host; each calls ``fn(rank, *args)`` in a process group."""
    if hasattr(torch, "tpu"):
        torch.tpu.distributed.set_tpu_launch_env(nproc_per_node=nprocs)
    count = nprocs or torch.accelerator.device_count()
    os.environ["WORLD_SIZE"] = str(count)
    torch.multiprocessing.spawn(_launched, args=(fn, args), nprocs=count)
