import os

import torch
import torch.distributed as dist


def _launched(index, fn, args):
    """Join the process group as process ``index`` of this host, then call the worker function."""
    rank = int(os.environ["GROUP_RANK"]) * int(os.environ["LOCAL_WORLD_SIZE"]) + index
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(index))
    dist.init_process_group()  # the back-end of this accelerator
    fn(rank, *args)
    dist.destroy_process_group()


def launch(fn, args=(), nprocs=None):
    """Start one process per chip of this host; each calls ``fn(rank, *args)`` in a process group."""
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None and accelerator.type == "tpu":
        torch.tpu.distributed.set_tpu_launch_env(nproc_per_node=nprocs)  # and NNODES, NODE_RANK on a pod
    count = nprocs or torch.accelerator.device_count() or 1
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    os.environ["WORLD_SIZE"] = str(count * int(os.environ.get("NNODES", "1")))
    os.environ.update(LOCAL_WORLD_SIZE=str(count), GROUP_RANK=os.environ.get("NODE_RANK", "0"))
    torch.multiprocessing.spawn(_launched, args=(fn, args), nprocs=count)
