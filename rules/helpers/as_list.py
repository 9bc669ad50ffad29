def as_list(value):
    """Return a list or tuple as it is, anything else as a list of one."""
    return value if isinstance(value, (list, tuple)) else [value]
