"""Devices by call, by index, by kind, and modules used as flags."""

import pytest

from tpu_migrate.config import Settings

from ..check import assert_rewritten, assert_unchanged, migrate

XM = "import torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize(
    "call",
    [
        "xm.xla_device()",
        "xm.xla_device(None)",
        "xm.xla_device(n=None)",
        "xm.xla_device(devkind='TPU')",
        "xm.xla_device(None, 'TPU')",
    ],
)
def test_the_device_of_the_process_is_the_tpu(call):
    assert_rewritten(
        f"import torch\n{XM}d = {call}\n",
        'import torch\nd = torch.device("tpu")\n'
        if "'TPU'" not in call
        else "import torch\nd = torch.device('tpu')\n",
    )


@pytest.mark.parametrize(
    "call", ["xm.xla_device(1)", "xm.xla_device(n=i)", "xm.xla_device(devkind='CPU')", "xm.xla_device(*a)"]
)
def test_a_device_by_index_or_of_another_kind_is_refused(call):
    assert_unchanged(f"{XM}d = {call}\n", open=["TX101", "TX990"])


def test_a_device_by_index_is_manual_in_the_new_api_too():
    assert_unchanged("import torch_xla\nd = torch_xla.device(1)\n", open=["TX102", "TX990"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "if xm.xla_device_hw(d) == 'TPU':\n    f()\n",
            "if torch.accelerator.current_accelerator().type == 'tpu':\n    f()\n",
        ),
        (
            "if xm.xla_device_hw(d) in ('TPU', 'GPU'):\n    f()\n",
            "if torch.accelerator.current_accelerator().type in ('tpu', 'gpu'):\n    f()\n",
        ),
        (
            "if 'TPU' == xm.xla_device_hw(d):\n    f()\n",
            "if 'tpu' == torch.accelerator.current_accelerator().type:\n    f()\n",
        ),
    ],
)
def test_the_kind_of_a_device_is_compared_in_lower_case(before, after):
    assert_rewritten(f"import torch\n{XM}{before}", f"import torch\n{after}")


@pytest.mark.parametrize(
    ("test", "becomes"),
    [
        ("xm.is_xla_tensor(x)", 'x.device.type == "tpu"'),
        ("not xm.is_xla_tensor(x)", 'not x.device.type == "tpu"'),
        ("xm.is_xla_tensor(a + b)", '(a + b).device.type == "tpu"'),
        ("xm.is_xla_tensor(f(x)) and y", 'f(x).device.type == "tpu" and y'),
    ],
)
def test_a_tensors_device_is_asked_for_its_type(test, becomes):
    new = migrate(f"{XM}if {test}:\n    f()\n").new.decode()
    assert new == f"if {becomes}:\n    f()\n"


def test_device_agnostic_code_compares_with_the_accelerators_type():
    new = migrate(
        f"import torch\n{XM}if xm.is_xla_tensor(x):\n    f()\n", Settings(device="accelerator")
    ).new.decode()
    assert 'x.device.type != "cpu"' in new


def test_the_module_as_a_value_is_left():
    assert_unchanged(f"{XM}f(xm)\n", open=[migrate(f"{XM}f(xm)\n").findings[-1].code, "TX990"])
