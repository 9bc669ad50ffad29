import torch


def memory_info():
    """Bytes in use, in all and at the most on the current device."""
    _, total = torch.accelerator.get_memory_info()
    return {
        "bytes_used": torch.accelerator.memory_allocated(),
        "bytes_limit": total,
        "peak_bytes_used": torch.accelerator.max_memory_allocated(),
    }
