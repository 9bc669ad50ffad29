"""Moves PyTorch/XLA programs to native TorchTPU."""

__version__ = "0.1.0"
