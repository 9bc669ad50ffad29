import time


def get_summary_writer(logdir):
    """Return a TensorBoard writer for ``logdir``, or None where there is no logdir."""
    if not logdir:
        return None
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(log_dir=logdir)
    writer.add_scalar("TensorboardStartTimestamp", time.time(), 0)
    return writer
