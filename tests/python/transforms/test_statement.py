"""Graph cuts, waits and step closures."""

import pytest

from ..check import assert_rewritten, assert_unchanged, migrate

XM = "import torch_xla.core.xla_model as xm\n"
WAIT = "torch.accelerator.synchronize()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in y:\n    f(x)\n    xm.mark_step()\n", "for x in y:\n    f(x)\n"),
        ("xm.mark_step(wait=True)\n", WAIT),
        ("xm.mark_step(wait=False)\n", ""),
        ("xm.wait_device_ops()\n", WAIT),
        ("xm.wait_device_ops([d])\n", WAIT),
        ("xm.unlazy([a])\nf()\n", "f()\n"),
        (
            "t = time.time()\nf()\nxm.mark_step()\nprint(time.time() - t)\n",
            f"t = time.time()\nf()\n{WAIT}print(time.time() - t)\n",
        ),
        ("f()\nxm.mark_step()\nend = perf_counter()\n", f"f()\n{WAIT}end = perf_counter()\n"),
        ("xm.mark_step()\nt0 = time.perf_counter()\nf()\n", f"{WAIT}t0 = time.perf_counter()\nf()\n"),
        (
            "for x in y:\n    f(x)\n    xm.mark_step()\nt = time.time()\n",
            "for x in y:\n    f(x)\nt = time.time()\n",
        ),
        ("xm.mark_step()\nf()\nt = time.time()\n", "f()\nt = time.time()\n"),
        ("xm.mark_step()\ndef g():\n    return time.time()\n", "def g():\n    return time.time()\n"),
    ],
)
def test_a_graph_cut_goes_unless_a_clock_is_read_beside_it(before, after):
    assert_rewritten(f"import torch\nimport time\n{XM}{before}", f"import torch\nimport time\n{after}")


@pytest.mark.parametrize(
    "use",
    ["x = xm.mark_step()\n", "f(xm.mark_step())\n", "a and xm.mark_step()\n", "lambda: xm.mark_step()\n"],
)
def test_a_graph_cut_whose_value_is_used_is_refused(use):
    assert_unchanged(XM + use, open=["TX201", "TX990"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("xm.add_step_closure(f)\n", "f()\n"),
        ("xm.add_step_closure(f, args=(a, b))\n", "f(a, b)\n"),
        ("xm.add_step_closure(f, (a,))\n", "f(a)\n"),
        ("xm.add_step_closure(f, args=())\n", "f()\n"),
        ("xm.add_step_closure(f, args=rest)\n", "f(*rest)\n"),
        ("xm.add_step_closure(f, args=(a, *rest))\n", "f(*(a, *rest))\n"),
        ("xm.add_step_closure(f, args=(a,), run_async=True)\n", "f(a)\n"),
        ("xm.add_step_closure(self.log, args=(a.b, c[0]))\n", "self.log(a.b, c[0])\n"),
        ("xm.add_step_closure(lambda: print(1))\n", "print(1)\n"),
        ("xm.add_step_closure(lambda x: print(x), args=(a,))\n", "print(a)\n"),
        ("xm.add_step_closure(f, args=((a, b),))\n", "f((a, b))\n"),
    ],
)
def test_a_step_closure_runs_where_it_was_registered(before, after):
    assert_rewritten(XM + before, after)


@pytest.mark.parametrize(
    ("call", "must", "must_not"),
    [
        ("xm.add_step_closure(lambda x: f(x, x), args=(g(),))", "g()", "f(g(), g())"),
        ("xm.add_step_closure(lambda x: x.item(), args=(a + b,))", "(a + b)", "a + b.item"),
        ("xm.add_step_closure(lambda x: [x for x in x], args=(a,))", "a", "[a for a in"),
        ("xm.add_step_closure(lambda x: f(lambda x: x), args=(a,))", "a", "lambda a"),
        ("xm.add_step_closure(lambda x: f(x=x), args=(a,))", "x=", "a=a"),
        ("xm.add_step_closure(lambda x: f(y.x), args=(a,))", "y.x", "y.a"),
        ("xm.add_step_closure(lambda x, y: f(y, x), args=(g(), h()))", "g()", "f(h(), g())"),
        ("xm.add_step_closure(lambda: f(), args=(g(),))", "g()", "XX"),
        ("xm.add_step_closure(lambda x=1: f(x))", "1", "f(x)\\n"),
        ("xm.add_step_closure(lambda *x: f(x), args=(a, b))", "a, b", "f(a, b)"),
        ("xm.add_step_closure(lambda x: f'{x}', args=(a['b'],))", "a['b']", "f'{a['"),
    ],
)
def test_a_lambda_is_put_in_line_only_where_that_means_the_same(call, must, must_not):
    new = migrate(f"{XM}{call}\n").new.decode()
    compile(new, "new", "exec")
    assert must in new
    assert must_not.replace("\\n", "\n") not in new


def test_a_step_closure_whose_value_is_used_is_refused():
    assert_unchanged(f"{XM}x = xm.add_step_closure(f)\n", open=["TX204", "TX990"])


def test_a_comment_in_the_arguments_of_a_closure_is_kept():
    new = migrate(f"{XM}x = 1\nxm.add_step_closure(\n    log,  # later\n    args=(a, b),  # both\n)\n").new
    assert b"# later" in new
    assert b"# both" in new
