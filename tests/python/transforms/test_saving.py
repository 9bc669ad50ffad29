"""``xm.save`` and copies to the host."""

import pytest

from ..check import assert_unchanged, migrate

XM = "import torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        ("xm.save(a, b)", "save(a, b)"),
        ("xm.save(a, b, master_only=False)", "save(a, b, master_only=False)"),
        ("xm.save(a, b, True, global_master=True)", "save(a, b, True, global_master=True)"),
        ("xm.save(data=a, file_or_path=b)", "save(data=a, file_or_path=b)"),
        ("xm.save(a, path=b)", "save(a, file_or_path=b)"),
        ("xm._maybe_convert_to_cpu(a)", "to_cpu(a)"),
        ("xm._maybe_convert_to_cpu(a, convert=True)", "to_cpu(a)"),
        ("x = xm._maybe_convert_to_cpu(a, convert=b)", "x = to_cpu(a) if b else a"),
        ("x = xm.send_cpu_data_to_device(a, d)", "x = to_device(a, d)"),
    ],
)
def test_the_call_keeps_its_arguments(call, becomes):
    assert migrate(f"{XM}{call}\n").new.decode().splitlines()[-1] == becomes


def test_a_sync_argument_is_refused():
    assert_unchanged(f"{XM}xm.save(a, b, sync=False)\n", open=["TX401", "TX990"])


def test_a_conversion_that_would_evaluate_twice_is_refused():
    assert b"_maybe_convert_to_cpu" in migrate(f"{XM}x = xm._maybe_convert_to_cpu(f(), convert=b)\n").new
