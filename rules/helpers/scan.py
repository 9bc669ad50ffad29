import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten


def scan(fn, init, xs):
    """Call ``fn(carry, x)`` for each slice of ``xs`` along its first dimension.

    Returns the last carry, and the second results of all calls, stacked.
    """
    leaves, structure = tree_flatten(xs)
    carry, outputs = init, []
    for index in range(len(leaves[0])):
        carry, output = fn(carry, tree_unflatten([leaf[index] for leaf in leaves], structure))
        outputs.append(output)
    return carry, tree_map(lambda *parts: None if parts[0] is None else torch.stack(parts), *outputs)
