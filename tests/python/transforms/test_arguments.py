"""Calls that shrink."""

import pytest

from ..check import migrate

XMP = "import torch_xla.distributed.xla_multiprocessing as xmp\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = xmp.MpModelWrapper(Net())\n", "m = Net()\n"),
        ("m = xmp.MpModelWrapper(a or b)\n", "m = a or b\n"),
        ("m = xmp.MpModelWrapper(a or b).x\n", "m = (a or b).x\n"),
        ("m = xmp.MpModelWrapper(\n    Net(\n        1,\n    )\n)\n", "m = Net(\n        1,\n    )\n"),
        ("m = f(xmp.MpModelWrapper(Net()), 1)\n", "m = f(Net(), 1)\n"),
    ],
)
def test_a_call_is_replaced_by_its_argument(before, after):
    assert migrate(XMP + before).new.decode() == after


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        ("dist.init_process_group('xla', init_method='xla://')", "dist.init_process_group('tpu_dist')"),
        (
            "dist.init_process_group('xla', init_method='xla://', rank=r)",
            "dist.init_process_group('tpu_dist', rank=r)",
        ),
        (
            "dist.init_process_group(init_method='xla://', backend='xla')",
            "dist.init_process_group(backend='tpu_dist')",
        ),
        (
            "dist.init_process_group(\n    'xla',\n    init_method='xla://',\n)",
            "dist.init_process_group(\n    'tpu_dist',\n)",
        ),
    ],
)
def test_an_argument_goes_with_its_comma(call, becomes):
    new = migrate(f"import torch.distributed as dist\n{call}\n").new.decode()
    assert new == f"import torch.distributed as dist\n{becomes}\n"
