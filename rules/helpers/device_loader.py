import torch
from torch.utils._pytree import tree_map_only


class DeviceLoader:
    """A loader whose batches are moved to a device, however their tensors are nested."""

    def __init__(self, loader, device):
        self.loader = loader
        self.device = device

    def __iter__(self):
        for batch in self.loader:
            yield tree_map_only(torch.Tensor, lambda tensor: tensor.to(self.device), batch)

    def __len__(self):
        return len(self.loader)

    def __getattr__(self, name):
        return getattr(self.__dict__["loader"], name)
