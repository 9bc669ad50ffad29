"""Collectives and barriers."""

import pytest

from ..check import assert_rewritten, assert_unchanged, migrate

XM = "import torch_xla.core.xla_model as xm\n"


def last_line(program: str) -> str:
    return migrate(XM + program).new.decode().splitlines()[-1]


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        ("y = xm.all_reduce(xm.REDUCE_SUM, x)", "y = all_reduce(dist.ReduceOp.SUM, x)"),
        ("y = xm.all_reduce('sum', x)", "y = all_reduce(dist.ReduceOp.SUM, x)"),
        ("xm.all_reduce('max', [a, b], scale=0.5)", "all_reduce(dist.ReduceOp.MAX, [a, b], scale=0.5)"),
        ("xm.all_reduce(xm.REDUCE_MIN, [a], 1.0 / n)", "all_reduce(dist.ReduceOp.MIN, [a], 1.0 / n)"),
        ("y = xm.all_reduce(xm.REDUCE_MUL, x, pin_layout=False)", "y = all_reduce(dist.ReduceOp.PRODUCT, x)"),
        (
            "y = xm.all_reduce(reduce_type=xm.REDUCE_SUM, inputs=x)",
            "y = all_reduce(reduce_type=dist.ReduceOp.SUM, inputs=x)",
        ),
        ("y = xm.all_reduce(xm.REDUCE_SUM, x, groups=None)", "y = all_reduce(dist.ReduceOp.SUM, x)"),
        ("y = xm.all_gather(x)", "y = all_gather(x)"),
        ("y = xm.all_gather(x, 1)", "y = all_gather(x, 1)"),
        ("y = xm.all_gather(x, dim=-1, pin_layout=False)", "y = all_gather(x, dim=-1)"),
        (
            "y = xm.reduce_scatter(xm.REDUCE_SUM, x, 1.0, 0, n)",
            "y = reduce_scatter(dist.ReduceOp.SUM, x, 1.0, 0)",
        ),
        ("y = xm.all_to_all(x, 0, 1, n)", "y = all_to_all(x, 0, 1)"),
        ("y = xm.mesh_reduce('tag', x, np.mean)", "y = mesh_reduce(x, np.mean)"),
        (
            "y = xm.mesh_reduce('tag', x, lambda v: sum(v) / len(v))",
            "y = mesh_reduce(x, lambda v: sum(v) / len(v))",
        ),
        ("y = xm.rendezvous('tag', b'payload')", "y = gather_payloads(b'payload')"),
        ("xm.rendezvous('tag', payload=p)", "gather_payloads(p)"),
        ("y = xm.rendezvous('tag')", None),
    ],
)
def test_a_collective_becomes_a_helper_that_means_the_same(call, becomes):
    if becomes is None:
        assert "rendezvous" in last_line(call + "\n")
    else:
        assert last_line(call + "\n") == becomes


@pytest.mark.parametrize(
    "call",
    [
        "xm.all_to_all(x, 0, 1, n, groups=g)",
        "xm.all_gather(x, output=out)",
        "xm.all_reduce('and', x)",
    ],
)
def test_groups_outputs_and_truth_values_are_refused(call):
    result = migrate(f"{XM}{call}\n")
    assert f"{call}\n".encode() in result.new


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        (
            "xm.all_reduce(xm.REDUCE_SUM, [x], groups=[[0, 1]])",
            "all_reduce_in_groups(dist.ReduceOp.SUM, [x], groups=[[0, 1]])",
        ),
        ("xm.all_reduce(op, x, 1.0, groups)", "all_reduce_in_groups(op, x, 1.0, groups)"),
        ("xm.all_gather(x, groups=g)", "all_gather_in_groups(x, groups=g)"),
        ("xm.all_gather(x, groups=None)", "all_gather(x)"),
    ],
)
def test_lists_of_ranks_become_process_groups(call, becomes):
    assert last_line(call + "\n") == becomes


@pytest.mark.parametrize("kind", ["multi-process", "library"])
def test_a_rendezvous_becomes_a_barrier_where_there_is_a_group(kind):
    assert_rewritten(
        f"import torch.distributed as dist\n{XM}if a:\n    xm.rendezvous('x')\n",
        "import torch.distributed as dist\nif a:\n    if dist.is_initialized():\n        dist.barrier()\n",
        kind=kind,
    )


def test_a_rendezvous_that_shares_its_line_is_refused():
    assert_unchanged(f"{XM}if a: xm.rendezvous('x')\n", open=["TX316", "TX990"], kind="library")


def test_masters_are_the_ones_they_were():
    body = (
        "a = xm.is_master_ordinal()\nb = xm.is_master_ordinal(local=True)\nc = xm.is_master_ordinal(local=False)\n"
        "d = xm.is_master_ordinal(False)\n"
    )
    new = migrate(XM + body).new.decode()
    local = 'int(os.environ.get("LOCAL_RANK", "0")) == 0'
    everywhere = "dist.get_rank() == 0 if dist.is_initialized() else True"
    lines = dict(line.split(" = ", 1) for line in new.splitlines() if " = " in line)
    assert (lines["a"], lines["b"]) == (local, local)
    assert lines["c"].strip("()") == lines["d"].strip("()") == everywhere or everywhere in lines["c"]
