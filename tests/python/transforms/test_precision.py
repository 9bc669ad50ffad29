"""Autocast and matrix-multiplication precision."""

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.findings import Safety

from ..check import migrate

HEAD = "import torch\nimport torch_xla.core.xla_model as xm\nfrom torch_xla.amp import autocast\n"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("autocast(xm.xla_device())", "torch.autocast('tpu', dtype=torch.bfloat16)"),
        ("autocast(d, dtype=torch.bfloat16)", "torch.autocast('tpu', dtype=torch.bfloat16)"),
        ("autocast(d, enabled=flag)", "torch.autocast('tpu', enabled=flag, dtype=torch.bfloat16)"),
        (
            "autocast(d, enabled=flag, dtype=torch.float16)",
            "torch.autocast('tpu', enabled=flag, dtype=torch.float16)",
        ),
    ],
)
def test_autocast_keeps_its_dtype(call, result):
    new = migrate(f"{HEAD}a = 'b', 'c'\nwith {call}:\n    f()\n").new.decode()
    assert f"with {result}:\n" in new


def test_autocast_in_float16_is_to_be_looked_at():
    findings = migrate(f"{HEAD}with autocast(d, dtype=torch.float16):\n    f()\n").findings
    (finding,) = [f for f in findings if "autocast" in f.symbol]
    assert finding.safety is Safety.REVIEW
    assert "float16" in finding.message


def test_autocast_of_device_agnostic_code_asks_for_the_type():
    new = migrate(f"{HEAD}with autocast(d):\n    f()\n", Settings(device="accelerator")).new.decode()
    assert "'tpu'" not in new
    assert '"tpu"' not in new
    compile(new, "new", "exec")


@pytest.mark.parametrize(("xla", "torch"), [("default", "medium"), ("high", "high"), ("highest", "highest")])
def test_a_matmul_precision_gets_torchs_name(xla, torch):
    new = migrate(
        f"import torch\nimport torch_xla.backends as b\nb.set_mat_mul_precision('{xla}')\n"
    ).new.decode()
    assert f"torch.set_float32_matmul_precision('{torch}')\n" in new


def test_a_matmul_precision_that_is_no_literal_is_refused():
    text = "import torch_xla.backends as b\nb.set_mat_mul_precision(level)\n"
    assert b"b.set_mat_mul_precision(level)" in migrate(text).new
