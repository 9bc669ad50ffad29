def write_to_summary(summary_writer, global_step=None, dict_to_write=None):
    """Write each value of ``dict_to_write`` as a scalar; do nothing without a writer."""
    if summary_writer is not None:
        for name, value in (dict_to_write or {}).items():
            summary_writer.add_scalar(name, value, global_step)
