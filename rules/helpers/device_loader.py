from torch.utils._pytree import tree_map


class DeviceLoader:
    """A loader whose batches are moved to a device, however their tensors are nested."""

    def __init__(self, loader, device):
        self._loader = loader
        self.device = device

    def __iter__(self):
        for batch in self._loader:
            yield tree_map(lambda item: item.to(self.device) if hasattr(item, "to") else item, batch)

    def __len__(self):
        return len(self._loader)

    def __getattr__(self, name):
        if name == "_loader" or name.startswith("__"):  # looked up while unpickling, before there is a loader
            raise AttributeError(name)
        return getattr(self._loader, name)
