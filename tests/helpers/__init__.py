"""Are the functions that the tool copies into programs what torch_xla's were?

``scenarios`` run on both sides: with the real torch_xla once (``record``, into ``golden.json``), and with the
helpers in every test run. torch_xla on a CPU has one rank only; what it means on more is written down, in plain
torch, in ``together``. ``alone`` holds what torch_xla has no counterpart for. The helpers run in the environment
they are made for (.venv-tpu), in processes joined by gloo: see ``processes`` and ``worker``.
"""
