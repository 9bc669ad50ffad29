import time

import torch.distributed as dist


def print_test_update(device, accuracy, epoch=None, step=None):
    """Print one line of test progress."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    fields = [f"Device={device}/{rank}"]
    if step is not None:
        fields.append(f"Step={step}")
    if epoch is not None:
        fields.append(f"Epoch={epoch}")
    if accuracy is not None:
        fields.append(f"Accuracy={accuracy:.2f}")
    print("| Test", *fields, f"Time={time.strftime('%H:%M:%S')}", flush=True)
