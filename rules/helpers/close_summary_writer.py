def close_summary_writer(summary_writer):
    """Flush and close the writer; do nothing without one."""
    if summary_writer is not None:
        summary_writer.flush()
        summary_writer.close()
