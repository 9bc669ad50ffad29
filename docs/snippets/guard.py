import torch

try:
    import torch_xla.core.xla_model as xm

    HAS_XLA = True
except ImportError:
    HAS_XLA = False


def default_device():
    if HAS_XLA:
        return xm.xla_device()
    return torch.device("cpu")
