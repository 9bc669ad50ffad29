"""Runs to render: built by hand, one for each thing a report has to get right."""

from __future__ import annotations

from typing import Any

from tpu_migrate.findings import FileResult, Finding, Outcome, Program, RunResult, Safety, TextEdit

BEFORE = b"""\
import torch_xla.core.xla_model as xm

device = xm.xla_device()
loss.backward()
xm.mark_step()
w = xm.get_memory_info(device)
"""
AFTER = b"""\
import torch
import torch_xla.core.xla_model as xm

device = torch.device("tpu")
loss.backward()
w = xm.get_memory_info(device)
"""


def finding(code: str = "TX101", **fields: Any) -> Finding:
    values: dict[str, Any] = {
        "name": "xla-device",
        "path": "train.py",
        "line": 3,
        "column": 10,
        "end_line": 3,
        "end_column": 25,
        "safety": Safety.SAFE,
        "outcome": Outcome.REWRITTEN,
        "message": 'xm.xla_device() is torch.device("tpu") now.',
        "before": "xm.xla_device()",
        "after": 'torch.device("tpu")',
    }
    return Finding(code, **{**values, **fields})


def safe(**fields: Any) -> Finding:
    edits = (TextEdit(1, 1, 1, 1, "import torch\n"), TextEdit(3, 10, 3, 25, 'torch.device("tpu")'))
    return finding(**{"edits": edits, **fields})


def review(**fields: Any) -> Finding:
    values: dict[str, Any] = {
        "name": "mark-step",
        "line": 5,
        "column": 1,
        "end_line": 5,
        "end_column": 15,
        "safety": Safety.REVIEW,
        "message": "Is a clock read around this line? Then write torch.accelerator.synchronize() here.",
        "before": "xm.mark_step()",
        "after": "",
        "edits": (TextEdit(5, 1, 6, 1, ""),),
    }
    return finding("TX201", **{**values, **fields})


def manual(**fields: Any) -> Finding:
    values: dict[str, Any] = {
        "name": "memory-info",
        "line": 6,
        "column": 5,
        "end_line": 6,
        "end_column": 31,
        "safety": Safety.MANUAL,
        "outcome": Outcome.OPEN,
        "message": "Write torch.accelerator.memory_stats(); its keys have other names.",
        "before": "xm.get_memory_info(device)",
        "after": "",
    }
    return finding("TX702", **{**values, **fields})


def refused(**fields: Any) -> Finding:
    values: dict[str, Any] = {
        "outcome": Outcome.OPEN,
        "message": "the value of t = xm.mark_step() is used;\nremove it by hand",
        "before": "t = xm.mark_step()",
        "line": 9,
    }
    return review(**{**values, "edits": (), **fields})


def suppressed(**fields: Any) -> Finding:
    return review(**{"outcome": Outcome.SUPPRESSED, "line": 20, "edits": (), **fields})


PROGRAM = Program(
    "train.py", "multi-process", "xmp.spawn is called at train.py:88", ("train.py", "models/layers.py")
)


def file(*findings: Finding, **fields: Any) -> FileResult:
    values: dict[str, Any] = {
        "path": "train.py",
        "old": BEFORE,
        "new": AFTER,
        "references": 4,
        "rewritten": 2,
    }
    return FileResult(findings=list(findings), **{**values, **fields})


def run(*files: FileResult, **fields: Any) -> RunResult:
    values: dict[str, Any] = {"programs": [PROGRAM], "scanned": 12, "seconds": 0.25}
    return RunResult(list(files), **{**values, **fields})


def usual(**fields: Any) -> RunResult:
    """One file with a finding of each kind, and a file that can't be read."""
    broken = finding(
        "PY001",
        name="not-python-3",
        path="old/train.py",
        line=41,
        column=15,
        safety=Safety.MANUAL,
        outcome=Outcome.OPEN,
        message="not migrated: this is not Python 3 (print statement).\nIts 3 lines with torch_xla were not changed.",
        before="print 'x'",
        after="",
    )
    old = b"print 'x'\n"
    return run(
        file(safe(), review(), manual(), refused(), suppressed()),
        file(broken, path="old/train.py", old=old, new=old, references=3, rewritten=0),
        **fields,
    )


def clean() -> RunResult:
    return run(programs=[])


def done() -> RunResult:
    """Applied, with nothing open."""
    return run(file(safe(line=4)), applied=True)


HOSTILE = "]]> | `x` ``y`` <b>&amp;</b> [red]@user #12 \x1b[31mX\x07\x9b \u202e \U0001f600 \x00 \udcff **z**"
"""Text that means something to every format there is."""


def hostile() -> RunResult:
    source = f"x = '{HOSTILE}'\n".encode("utf-8", "replace")
    return run(
        file(
            safe(message=HOSTILE, before=HOSTILE, name=HOSTILE),
            review(message=HOSTILE, before=HOSTILE),
            manual(message=HOSTILE + "\nsecond\r\nline", before=HOSTILE, path="a|b`c<i>\udcff.py"),
            path="a|b`c<i>\udcff.py",
            old=source,
            new=source + source,
        ),
        programs=[Program("a|b.py", "library", HOSTILE)],
    )
