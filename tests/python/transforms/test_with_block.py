"""``with`` blocks that lose their head."""

import pytest

from ..check import assert_rewritten, assert_unchanged, migrate

TX = "import torch_xla\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with torch_xla.step():\n    f()\n    g()\n", "f()\ng()\n"),
        ("with torch_xla.step(): f()\n", "f()\n"),
        ("with torch_xla.step(): f(); g()\n", "f(); g()\n"),
        ("with a, torch_xla.step():\n    f()\n", "with a:\n    f()\n"),
        ("with torch_xla.step(), a as b:\n    f()\n", "with a as b:\n    f()\n"),
        ("with a as b, torch_xla.step():\n    f()\n", "with a as b:\n    f()\n"),
        (
            "for x in y:\n    with torch_xla.step():\n        f()\n\n        g()\n    h()\n",
            "for x in y:\n    f()\n\n    g()\n    h()\n",
        ),
        (
            "with torch_xla.step():\n    if a:\n        f()\n    else:\n        g()\n",
            "if a:\n    f()\nelse:\n    g()\n",
        ),
        ("with torch_xla.step():  # one step\n    f()\n", "# one step\nf()\n"),
        (
            "with torch_xla.step():\n    # first\n    f()  # f\n    # last\ng()\n",
            "# first\nf()  # f\n# last\ng()\n",
        ),
        ("with torch_xla.step():\n    s = '''\n    kept\n'''\n    f(s)\n", "s = '''\n    kept\n'''\nf(s)\n"),
        ("with torch_xla.step():\n    x = f(\n        a,\n    b)\n", "x = f(\n    a,\nb)\n"),
        ("with torch_xla.step():\n    with torch_xla.step():\n        f()\n", "f()\n"),
        ("with torch_xla.step():\n    f()\n    torch_xla.sync()\n", "f()\n"),
        ("with torch_xla.step():\n\tf()\n", "f()\n"),
        ("if a:\n  with torch_xla.step():\n    f()\n  g()\n", "if a:\n  f()\n  g()\n"),
        ("with torch_xla.step():\n    f()", "f()"),
        ("with torch_xla.step():\n    x = 1 + \\\n        2\n", "x = 1 + \\\n    2\n"),
        ("with torch_xla.step():\n    @d\n    def f():\n        pass\n", "@d\ndef f():\n    pass\n"),
        ("with (torch_xla.step()):\n    f()\n", "f()\n"),
    ],
)
def test_a_step_block_is_unwrapped(before, after):
    assert_rewritten(TX + before, after)


def test_a_block_that_is_nothing_but_a_cut_leaves_sound_code():
    assert_rewritten(
        f"{TX}def f():\n    with torch_xla.step():\n        torch_xla.sync()\n", "def f():\n    pass\n"
    )


@pytest.mark.parametrize(
    "use",
    [
        "with torch_xla.step() as s:\n    f(s)\n",
        "stack.enter_context(torch_xla.step())\n",
        "s = torch_xla.step()\nwith s:\n    f()\n",
    ],
)
def test_a_step_that_is_given_a_name_is_refused(use):
    assert_unchanged(TX + use, open=["TX203", "TX990"])


@pytest.mark.parametrize(
    ("statement", "becomes"),
    [
        ("xm.optimizer_step(o)", "average_gradients(o)\no.step()\n"),
        ("xm.rendezvous('x')", "if dist.is_initialized():\n    dist.barrier()\n"),
        (
            "xm.xla_device(1)",
            "# TODO(tpu-migrate TX101): device 1 of a process: a process has one chip now\nxm.xla_device(1)\n",
        ),
    ],
)
def test_lines_that_are_inserted_in_the_block_are_dedented_with_it(statement, becomes):
    before = f"{TX}import torch_xla.core.xla_model as xm\nx = 1\nwith torch_xla.step():\n    {statement}\n"
    new = migrate(before, kind="multi-process").new.decode()
    assert new.endswith(f"\nx = 1\n{becomes}")
