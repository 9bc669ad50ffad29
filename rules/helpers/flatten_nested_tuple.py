def flatten_nested_tuple(values):
    """Return the items of nested lists and tuples as one flat tuple."""
    if not isinstance(values, (list, tuple)):
        return (values,)
    return tuple(item for value in values for item in flatten_nested_tuple(value))
