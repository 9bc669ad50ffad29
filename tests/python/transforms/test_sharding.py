"""SPMD: meshes and partition specs."""

import pytest

from tpu_migrate.python.site import Refused
from tpu_migrate.python.transforms.sharding import _placements

from ..check import migrate

HEAD = "import numpy as np\nimport torch_xla.distributed.spmd as xs\n"


@pytest.mark.parametrize(
    ("spec", "axes", "placements"),
    [
        (("data", None), ("data", "model"), [0, None]),
        ((None, "data"), ("data", "model"), [1, None]),
        (("model", "data"), ("data", "model"), [1, 0]),
        ((0, 1), ("data", "model"), [0, 1]),
        ((None, None), ("data",), [None]),
        (((0,), None), ("data",), [0]),
        (((), "data"), ("data",), [1]),
        ((), ("data",), [None]),
    ],
)
def test_a_partition_spec_is_turned_around(spec, axes, placements):
    assert _placements(spec, axes) == placements


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (("batch",), "no axis of the mesh"),
        ((5,), "no axis of the mesh"),
        ((True,), "no axis of the mesh"),
        ((("data", "model"),), "several mesh axes share a tensor dimension"),
        (..., "isn't a literal"),
        ("data", "isn't a literal"),
    ],
)
def test_a_spec_that_cannot_be_turned_is_refused(spec, says):
    with pytest.raises(Refused, match=says):
        _placements(spec, ("data", "model"))


def test_an_axis_used_twice_is_refused():
    with pytest.raises(Refused):
        _placements(("data", "data"), ("data", "model"))


@pytest.mark.parametrize("ids", ["np.arange(8)", "range(8)", "np.array(range(8))", "list(range(8))", "ids"])
def test_a_mesh_in_plain_order_becomes_a_device_mesh(ids):
    new = migrate(f"{HEAD}ids = np.arange(8)\nm = xs.Mesh({ids}, (4, 2), ('a', 'b'))\n").new.decode()
    assert "m = init_device_mesh('tpu', (4, 2), mesh_dim_names=('a', 'b'))\n" in new


def test_a_mesh_in_an_order_of_its_own_is_refused():
    assert b"xs.Mesh(order" in migrate(f"{HEAD}m = xs.Mesh(order(), (4, 2), ('a', 'b'))\n").new


def test_a_sharding_becomes_placements():
    new = migrate(
        f"{HEAD}m = xs.Mesh(np.arange(8), (4, 2), ('a', 'b'))\nxs.mark_sharding(x, m, ('a', None))\n"
        "xs.mark_sharding(net.w, m, ('b', 'a'))\n"
    ).new.decode()
    assert "x = distribute_tensor(x, m, [Shard(0), Replicate()])\n" in new
    assert "net.w = torch.nn.Parameter(distribute_tensor(net.w, m, [Shard(1), Shard(0)]))\n" in new


def test_a_sharding_over_an_unknown_mesh_is_refused():
    assert (
        b"xs.mark_sharding(x, m, ('a', None))"
        in migrate(f"{HEAD}def f(m):\n    xs.mark_sharding(x, m, ('a', None))\n").new
    )
