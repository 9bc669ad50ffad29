"""FSDP wrappers."""

import pytest

from ..check import migrate

HEAD = "import torch\nfrom torch_xla.distributed.fsdp import XlaFullyShardedDataParallel as FSDP\n"


def becomes(call: str) -> str:
    return migrate(f"{HEAD}m = {call}\n").new.decode().splitlines()[-1]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("FSDP(net)", "m = fully_shard(net)"),
        ("FSDP(module=net)", "m = fully_shard(net)"),
        ("FSDP(Net().to(d))", "m = fully_shard(Net().to(d))"),
        ("FSDP(net, reshard_after_forward=False)", "m = fully_shard(net, reshard_after_forward=False)"),
        ("FSDP(net, flatten_parameters=True, pin_layout_in_collective_ops=True)", "m = fully_shard(net)"),
        (
            "FSDP(net, compute_dtype=torch.bfloat16)",
            "m = fully_shard(net, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))",
        ),
        (
            "FSDP(net, compute_dtype=torch.bfloat16, fp32_reduce_scatter=True)",
            "m = fully_shard(net, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))",
        ),
        ("FSDP(net, compute_dtype=None)", "m = fully_shard(net)"),
        ("FSDP(net, auto_wrap_policy=None)", "m = fully_shard(net)"),
    ],
)
def test_a_wrapper_becomes_fully_shard(call, result):
    assert becomes(call) == result


@pytest.mark.parametrize(
    "call",
    [
        "FSDP(net, auto_wrap_policy=policy)",
        "FSDP(net, auto_wrapper_callable=wrap)",
        "FSDP(net, compute_dtype=torch.bfloat16, buffer_dtype=torch.float32)",
        "FSDP(net, compute_dtype=torch.bfloat16, fp32_reduce_scatter=flag)",
        "FSDP(net, **options)",
        "FSDP(*args)",
    ],
)
def test_what_needs_a_decision_is_refused(call):
    assert becomes(call) == f"m = {call}"


def test_a_subclass_is_left_with_a_finding():
    result = migrate(f"{HEAD}class Mine(FSDP):\n    pass\n")
    assert b"class Mine(FSDP)" in result.new
    assert result.findings
