import os

import torch.distributed as dist


def master_print(*args, fd=None, local=False, flush=False):
    """Print on the global master, or on each host's with ``local=True``."""
    if local:
        master = int(os.environ.get("LOCAL_RANK", "0")) == 0
    else:
        master = not dist.is_initialized() or dist.get_rank() == 0
    if master:
        print(*args, file=fd, flush=flush)
