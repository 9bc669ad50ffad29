"""The judge itself: what benchmarks/silence.py takes for a reference, and what it lets pass."""

from __future__ import annotations

from textwrap import dedent

import pytest

from benchmarks.silence import lost_names, references, silent_references
from tpu_migrate.findings import Finding, Outcome, Safety


def finding(
    line: int, end_line: int | None = None, outcome: Outcome = Outcome.OPEN, code: str = "TX101"
) -> Finding:
    return Finding(
        code=code,
        name="name",
        path="a.py",
        line=line,
        column=1,
        end_line=end_line or line,
        end_column=1,
        safety=Safety.MANUAL,
        outcome=outcome,
        message="",
    )


def texts(source: str) -> list[str]:
    return [reference.text for reference in references(dedent(source))]


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "# import torch_xla",
        '"""Needs torch_xla."""',
        'def f():\n    "torch_xla"',
        "import torch_xla_helpers",
        "from .torch_xla import device",
        "from optimum import neuron",
        "import optimum.neuron\noptimum.neuron.f()",
        "message = 'install torch_xla first'",
        "mode = 'xla'",
        "f(backend='xla')",
        "x.kind == 'xla'",
    ],
)
def test_this_is_no_reference(source: str) -> None:
    assert texts(source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch_xla", ["import torch_xla"]),
        ("import torch, torch_xla.core.xla_model as xm", ["import torch_xla.core.xla_model"]),
        ("from torch_xla import runtime as xr", ["from torch_xla import runtime"]),
        ("from torch_xla.amp import *", ["from torch_xla.amp import *"]),
        ("from optimum import tpu", ["from optimum import tpu"]),
        ("if x:\n    def f():\n        import torch_xla", ["import torch_xla"]),
        ("importlib.import_module('torch_xla.runtime')", ["'torch_xla.runtime'"]),
        ("find_spec('torch_xla') and __import__('torch_xla')", ["'torch_xla'", "'torch_xla'"]),
        ("sys.modules['optimum.tpu']", ["'optimum.tpu'"]),
        ("torch.device('xla')", ["torch.device('xla')"]),
        ("torch.device(f'xla:{n}')", ["torch.device(f'xla:{n}')"]),
        ("x.to('xla:1', dtype=d)", ["x.to('xla:1', dtype=d)"]),
        ("torch.ones(2, device='xla')", ["torch.ones(2, device='xla')"]),
        ("x.device.type == 'xla'", ["x.device.type == 'xla'"]),
        ("x.device.type in ('cuda', 'xla')", ["x.device.type in ('cuda', 'xla')"]),
        ("dist.init_process_group(backend='xla')", ["dist.init_process_group(backend='xla')"]),
        ("torch.compile(m, backend='openxla')", ["torch.compile(m, backend='openxla')"]),
    ],
)
def test_this_is_a_reference(source: str, expected: list[str]) -> None:
    assert texts(source) == expected


def test_uses_of_an_imported_name_are_references() -> None:
    assert texts("""
        import torch_xla.core.xla_model as xm
        def f(device=xm.xla_device()) -> "xm.Thing":
            return [xm.mark_step for _ in range(3)]
        class C:
            step = xm.mark_step
            def g(self):
                return lambda: xm
        """) == [
        "import torch_xla.core.xla_model",
        "xm.Thing",
        "xm.xla_device",
        "xm.mark_step",
        "xm.mark_step",
        "xm",
    ]


def test_a_shadowed_name_is_no_reference() -> None:
    assert texts("""
        import torch_xla.core.xla_model as xm
        def parameter(xm): xm.mark_step()
        def local():
            xm = Other()
            return [xm.mark_step() for _ in range(3)]
        first = [xm.a for xm in models]
        second = lambda xm: xm.a
        """) == ["import torch_xla.core.xla_model"]


def test_a_name_bound_in_a_function_means_nothing_outside() -> None:
    assert texts("""
        def f():
            import torch_xla as t
            return t.device()
        t.device()
        """) == ["import torch_xla", "t.device"]


def test_a_name_declared_global_is_bound_in_the_module() -> None:
    assert texts("""
        def f():
            global xm
            import torch_xla.core.xla_model as xm
        xm.mark_step()
        """) == ["import torch_xla.core.xla_model", "xm.mark_step"]


def test_a_class_attribute_does_not_shadow_in_its_methods() -> None:
    assert texts("""
        import torch_xla
        class C:
            torch_xla = None
            def f(self): return torch_xla.device()
        """) == ["import torch_xla", "torch_xla.device"]


SOURCE = "import torch_xla\n\ntorch_xla.device(\n)\n"


def test_open_and_suppressed_findings_cover_their_lines() -> None:
    assert silent_references(SOURCE, [finding(1), finding(3, 4, Outcome.SUPPRESSED)]) == []
    assert silent_references(SOURCE, [finding(1, 4)]) == []


def test_a_rewritten_finding_covers_nothing() -> None:
    assert silent_references(SOURCE, [finding(1), finding(3, 4, Outcome.REWRITTEN)]) == [
        (3, "torch_xla.device")
    ]


def test_a_finding_on_another_line_covers_nothing() -> None:
    assert silent_references(SOURCE, [finding(1, 2)]) == [(3, "torch_xla.device")]


def test_an_import_over_several_lines_is_covered_at_its_start_or_at_the_name() -> None:
    source = "from torch_xla import (\n    runtime,\n    device,\n)\n"
    assert silent_references(source, [finding(1)]) == []
    assert silent_references(source, [finding(2)]) == [(3, "from torch_xla import device")]


def test_a_vendors_file_is_covered_by_one_finding() -> None:
    assert silent_references(SOURCE, [finding(1, code="VN001")]) == []


def test_an_unreadable_file_needs_exactly_one_py_finding() -> None:
    source = "import torch_xla\nprint 'hello'\n"
    assert silent_references(source, [finding(2, code="PY001")]) == []
    for findings in ([], [finding(1, code="TX101")], [finding(2, code="PY001"), finding(1, code="PY001")]):
        assert len(silent_references(source, findings)) == 1
    assert silent_references("print 'hello'\n", []) == []


def test_lost_names_are_those_that_the_run_unbound() -> None:
    before = "import torch_xla.core.xla_model as xm\nprint(missing, xm.xla_device())\n"
    assert lost_names(before, "print(missing, xm.xla_device())\n") == [(1, "xm")]
    assert lost_names(before, "print(missing, torch.device('tpu'))\n") == [(1, "torch")]
    assert lost_names(before, "import torch\nprint(missing, torch.device('tpu'))\n") == []
