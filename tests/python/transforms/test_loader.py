"""Loaders: batches move where they are used."""

import ast

import pytest

from ..check import migrate

PL = "import torch_xla.distributed.parallel_loader as pl\n"


def body(program: str) -> str:
    """What stands behind the helper."""
    new = migrate(PL + program).new.decode()
    (helper,) = [node for node in ast.parse(new).body if isinstance(node, ast.ClassDef)]
    return "\n".join(new.split("\n")[helper.end_lineno :]).lstrip("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("l = pl.MpDeviceLoader(l, d)\n", "l = DeviceLoader(l, d)\n"),
        ("l = pl.MpDeviceLoader(l, device=d)\n", "l = DeviceLoader(l, d)\n"),
        (
            "l = pl.MpDeviceLoader(l, d, loader_prefetch_size=8, device_prefetch_size=4)\n",
            "l = DeviceLoader(l, d)\n",
        ),
        (
            "p = pl.ParallelLoader(l, [d])\nfor x in p.per_device_loader(d):\n    f(x)\n",
            "p = l\nfor x in DeviceLoader(p, d):\n    f(x)\n",
        ),
        (
            "for x in pl.ParallelLoader(l, [d]).per_device_loader(d):\n    f(x)\n",
            "for x in DeviceLoader(l, d):\n    f(x)\n",
        ),
        (
            "p = pl.ParallelLoader(l, [d])\nf(p.per_device_loader(d))\ng(p.per_device_loader(d))\n",
            "p = l\nf(DeviceLoader(p, d))\ng(DeviceLoader(p, d))\n",
        ),
    ],
)
def test_a_loader_becomes_the_helper(before, after):
    assert body(before) == after


@pytest.mark.parametrize(
    "use",
    [
        "l = pl.MpDeviceLoader(l, d, input_sharding=s)\n",
        "p = pl.ParallelLoader(l, [d])\np.close()\n",
        "f(pl.ParallelLoader(l, [d]))\n",
        "self.p = pl.ParallelLoader(l, [d])\n",
    ],
)
def test_a_loader_that_is_used_otherwise_is_left_with_a_finding(use):
    result = migrate(PL + use)
    assert use.splitlines()[0].encode() in result.new
    assert any(f.code.startswith("TX41") for f in result.findings)


def test_the_helper_keeps_length_and_attributes():
    namespace: dict[str, object] = {}
    new = migrate(f"{PL}l = pl.MpDeviceLoader(l, d)\n").new.decode()
    source = new[: new.index("\nl = DeviceLoader")].replace("import torch", "import types as torch", 1)
    source = source[source.index("class DeviceLoader") :]
    exec(source, namespace)

    class Loader:
        drop_last = True

        def __len__(self) -> int:
            return 3

    loader = namespace["DeviceLoader"](Loader(), "tpu")  # type: ignore[operator]
    assert len(loader) == 3
    assert loader.drop_last
