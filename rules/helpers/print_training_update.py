import time

import torch.distributed as dist


def print_training_update(device, step, loss, rate, global_rate, epoch=None, summary_writer=None):
    """Print one line of training progress, and write the rates to ``summary_writer`` if there is one."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    fields = [f"Device={device}/{rank}"]
    if epoch is not None:
        fields.append(f"Epoch={epoch}")
    fields += [f"Step={step}", f"Loss={loss:.5f}", f"Rate={rate:.2f}", f"GlobalRate={global_rate:.2f}"]
    print("| Training", *fields, f"Time={time.strftime('%H:%M:%S')}", flush=True)
    if summary_writer:
        summary_writer.add_scalar("examples/sec", rate)
        summary_writer.add_scalar("average_examples/sec", global_rate)
