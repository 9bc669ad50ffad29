"""Whole runs over small repositories: re-exports, vendors, unreadable files, failures, several processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.silence import silent_references
from tpu_migrate import pipeline
from tpu_migrate.config import Settings, load_settings
from tpu_migrate.findings import FileResult, Finding, Outcome, RunResult
from tpu_migrate.pipeline import run
from tpu_migrate.python import transforms
from tpu_migrate.workspace.snapshot import undo

XM = "import torch_xla.core.xla_model as xm\n"
TPU = 'torch.device("tpu")'


def tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def contents(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes().decode("latin-1")
        for path in sorted(root.rglob("*.py"))
        if ".tpu-migrate" not in path.parts
    }


def result_of(result: RunResult, path: str) -> FileResult:
    return next(file for file in result.files if file.path == path)


def apply(
    root: Path, files: Mapping[str, str | bytes], settings: Settings | None = None, jobs: int = 1
) -> dict[str, str]:
    """The files after ``--apply``; a second run changes nothing and nothing is silent."""
    settings = settings or Settings(comments=False)
    tree(root, files)
    first = run([root], settings, apply=True, jobs=jobs)
    after = contents(root)
    for file in first.files:
        assert silent_references(file.new.decode("latin-1"), file.findings) == [], file.path
    second = run([root], settings, apply=True, jobs=jobs)
    assert contents(root) == after
    assert standing(second.findings) == standing(first.findings)
    return after


def standing(findings: list[Finding]) -> list[tuple[object, ...]]:
    return [
        (f.path, f.code, f.line, f.column, f.end_line, f.end_column, f.message)
        for f in findings
        if f.outcome is not Outcome.REWRITTEN
    ]


# re-exports


def test_a_name_another_file_hands_on_is_followed_and_both_imports_go(tmp_path):
    assert apply(
        tmp_path,
        {
            "compat.py": f"{XM}VERSION = 1\n",
            "train.py": "import torch\nfrom compat import xm, VERSION\nd = xm.xla_device()\n",
        },
    ) == {"compat.py": "VERSION = 1\n", "train.py": f"import torch\nfrom compat import VERSION\nd = {TPU}\n"}


@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("from pkg.compat import xm", "xm"),
        ("from .compat import xm", "xm"),
        ("from .compat import xm as model", "model"),
        ("from . import compat", "compat.xm"),
        ("from pkg import compat", "compat.xm"),
        ("import pkg.compat as c", "c.xm"),
        ("from .compat import *", "xm"),
        ("from ..pkg.compat import xm", "xm"),
    ],
)
def test_every_way_to_a_re_export_is_followed(tmp_path, statement, use):
    after = apply(
        tmp_path,
        {
            "top/__init__.py": "",
            "top/pkg/__init__.py": "",
            "top/pkg/compat.py": f"{XM}VERSION = 1\n",
            "top/pkg/train.py": f"import torch\n{statement}\nd = {use}.xla_device()\n",
        },
    )
    assert f"d = {TPU}\n" in after["top/pkg/train.py"]
    assert after["top/pkg/compat.py"] == "VERSION = 1\n"


def test_a_dotted_import_of_a_re_export_is_followed(tmp_path):
    after = apply(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/compat.py": f"{XM}VERSION = 1\n",
            "train.py": "import torch\nimport pkg.compat\nd = pkg.compat.xm.xla_device()\n",
        },
    )
    assert f"d = {TPU}\n" in after["train.py"]


def test_a_re_export_that_another_file_still_uses_stays(tmp_path):
    after = apply(
        tmp_path,
        {"compat.py": XM, "train.py": "from compat import xm\nxm.mark_step()\nd = xm.xla_device(1)\n"},
    )
    assert after == {"compat.py": XM, "train.py": "from compat import xm\nd = xm.xla_device(1)\n"}


def test_a_re_export_that_another_file_reaches_through_the_module_stays(tmp_path):
    after = apply(
        tmp_path,
        {"compat.py": XM, "train.py": "import compat\nd = compat.xm.xla_device(1)\n"},
    )
    assert after["compat.py"] == XM


def test_a_function_that_is_handed_on_under_another_name_is_followed(tmp_path):
    after = apply(
        tmp_path,
        {
            "compat.py": f"{XM}sync = xm.mark_step\nX = 1\n",
            "train.py": "from compat import sync, X\nsync()\nf(X)\n",
        },
    )
    assert after["train.py"] == "from compat import X\nf(X)\n"
    assert "sync" not in after["compat.py"] or "sync = xm.mark_step\n" in after["compat.py"]


def test_a_chain_of_re_exports_is_followed(tmp_path):
    after = apply(
        tmp_path,
        {
            "a.py": f"{XM}X = 1\n",
            "b.py": "from a import xm\nY = 1\n",
            "c.py": "import torch\nfrom b import xm\nd = xm.xla_device()\n",
        },
    )
    assert after == {"a.py": "X = 1\n", "b.py": "Y = 1\n", "c.py": f"import torch\nd = {TPU}\n"}


def test_files_that_import_each_other_keep_what_they_need(tmp_path):
    after = apply(
        tmp_path,
        {
            "a.py": f"{XM}from b import g\ndef f():\n    return xm.xla_device(1)\n",
            "b.py": "from a import xm\ndef g():\n    return xm.xla_device(1)\n",
        },
    )
    assert after["a.py"].startswith(XM)
    assert after["b.py"].startswith("from a import xm\n")


def test_a_module_of_the_same_name_elsewhere_is_not_mistaken(tmp_path):
    after = apply(
        tmp_path,
        {
            "one/compat.py": f"{XM}X = 1\n",
            "one/use.py": "import torch\nfrom compat import xm\nd = xm.xla_device()\n",
            "two/compat.py": "xm = object()\n",
            "two/use.py": "from compat import xm\nd = xm.xla_device()\n",
        },
    )
    assert f"d = {TPU}\n" in after["one/use.py"]
    assert after["two/use.py"] == "from compat import xm\nd = xm.xla_device()\n"


# what the program is


def test_the_program_decides_what_a_module_becomes(tmp_path):
    lib = f"{XM}def step(optimizer):\n    xm.optimizer_step(optimizer)\n"
    main = "from lib import step\nif __name__ == '__main__':\n    step(o)\n"
    alone = apply(tmp_path / "alone", {"lib.py": lib, "main.py": main})
    assert alone["lib.py"] == "def step(optimizer):\n    optimizer.step()\n"
    spawned = (
        "import torch_xla\nfrom lib import step\nif __name__ == '__main__':\n    torch_xla.launch(step)\n"
    )
    many = apply(tmp_path / "many", {"lib.py": lib, "main.py": spawned})
    assert "    average_gradients(optimizer)\n    optimizer.step()\n" in many["lib.py"]


def test_a_module_that_other_programs_import_asks_for_the_group(tmp_path):
    after = apply(
        tmp_path,
        {
            "train.py": f"{XM}import torch_xla\ndef worker(i):\n    return xm.get_ordinal()\n"
            "if __name__ == '__main__':\n    torch_xla.launch(worker)\n",
            "evaluate.py": f"{XM}from train import worker\nif __name__ == '__main__':\n    worker(0)\n    xm.mark_step()\n",
        },
    )
    assert "return dist.get_rank() if dist.is_initialized() else 0\n" in after["train.py"]


def test_after_the_spawn_is_gone_a_second_run_still_knows_of_the_workers(tmp_path):
    after = apply(
        tmp_path,
        {
            "train.py": f"{XM}import torch_xla\ndef worker(i):\n    loss.backward(); xm.optimizer_step(o)\n"
            "if __name__ == '__main__':\n    torch_xla.launch(worker)\n"
        },
    )
    assert "xm.optimizer_step(o)" in after["train.py"]


@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
def test_rules_can_be_applied_one_after_the_other(tmp_path, launcher):
    program = (
        f"{XM}import torch_xla\ndef worker(i):\n    loss.backward()\n    clip_(grads)\n    xm.optimizer_step(o)\n"
        "if __name__ == '__main__':\n    torch_xla.launch(worker)\n"
    )
    tree(tmp_path, {"train.py": program})
    settings = Settings(comments=False, launcher=launcher)
    run([tmp_path], replace(settings, select=("TX303",)), apply=True)
    run([tmp_path], settings, apply=True)
    assert "    average_gradients(o)\n    o.step()\n" in contents(tmp_path)["train.py"]


# files that are left


def test_another_makers_files_are_left_with_one_finding_each(tmp_path):
    files = {
        "a.py": f"{XM}import torch_neuronx\nd = xm.xla_device()\nxm.mark_step()\n",
        "b.py": f"{XM}import torch_neuronx\nd = xm.xla_device()\n",
    }
    assert apply(tmp_path, files) == files
    findings = run([tmp_path], Settings()).findings
    assert [(f.path, f.code) for f in findings] == [("a.py", "VN001"), ("b.py", "VN001")]
    assert "AWS Neuron" in findings[0].message


@pytest.mark.parametrize(
    "data",
    [
        b"import torch_xla\nprint 'old'\n",
        b"import torch_xla\ndef f(:\n    pass\n",
        b"import torch_xla\ns = '\xff'\n",
        b"# coding: no-such\nimport torch_xla\n",
        b"import torch_xla\nx = '\0'\n",
        "import torch_xla\n".encode("utf-16"),
        b"import torch_xla\nif x:\n\ty = 1\n        z = 2\n",
        b"<<<<<<< HEAD\nimport torch_xla\n=======\n>>>>>>> other\n",
    ],
)
def test_a_file_that_cannot_be_read_is_one_finding_and_the_rest_goes_on(tmp_path, data):
    good = f"import torch\n{XM}d = xm.xla_device()\n"
    tree(tmp_path, {"bad.py": data, "good.py": good})
    result = run([tmp_path], Settings(), apply=True)
    assert (tmp_path / "bad.py").read_bytes() == data
    assert contents(tmp_path)["good.py"] == f"import torch\nd = {TPU}\n"
    if b"\0i\0m" in data or b"i\0m\0" in data:
        return  # utf-16 without a cookie: nothing in it can be seen to mention torch_xla
    assert [f.code for f in result.findings if f.path == "bad.py"] == ["PY001"]


def test_a_file_that_cannot_be_read_and_says_nothing_of_torch_xla_is_no_finding(tmp_path):
    tree(tmp_path, {"bad.py": b"print 'xla'\n", "good.py": XM})
    assert [f.path for f in run([tmp_path], Settings()).findings if f.code == "PY001"] == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_crash_in_one_file_loses_no_other(tmp_path, monkeypatch, jobs):
    def crash(site):
        if "boom" in site.tree.source.text:
            raise ZeroDivisionError("on purpose")
        return original(site)

    original = transforms.TRANSFORMS["device"]
    monkeypatch.setitem(transforms.TRANSFORMS, "device", crash)
    files = {f"f{n}.py": f"import torch\n{XM}d = xm.xla_device()\n" for n in range(3)}
    bad = f"import torch\n{XM}boom = xm.xla_device()\n"
    tree(tmp_path, files | {"bad.py": bad})
    result = run([tmp_path], Settings(), apply=True, jobs=jobs)
    after = contents(tmp_path)
    assert after.pop("bad.py") == bad
    assert set(after.values()) == {f"import torch\nd = {TPU}\n"}
    (finding,) = [f for f in result.findings if f.path == "bad.py"]
    assert finding.code == "PY002"
    assert "ZeroDivisionError: on purpose" in finding.message
    assert "report it" in finding.message
    assert (finding.line, finding.end_line) == (1, 4)


def test_a_file_without_torch_xla_is_not_even_a_result(tmp_path):
    tree(tmp_path, {"a.py": "x = 1\n", "b.py": "import torch_xla\n"})
    result = run([tmp_path], Settings())
    assert [file.path for file in result.files] == ["b.py"]
    assert result.scanned == 2


def test_generated_files_are_left(tmp_path):
    text = f"# Generated by the protocol buffer compiler.  DO NOT EDIT!\n{XM}xm.mark_step()\n"
    tree(tmp_path, {"a_pb2.py": text})
    run([tmp_path], Settings(), apply=True)
    assert contents(tmp_path)["a_pb2.py"] == text


# bytes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            b"import torch\r\nimport torch_xla\r\nd = torch_xla.device()\r\n",
            b'import torch\r\nd = torch.device("tpu")\r\n',
        ),
        (
            b"\xef\xbb\xbfimport torch\nimport torch_xla\nd = torch_xla.device()\n",
            b'\xef\xbb\xbfimport torch\nd = torch.device("tpu")\n',
        ),
        (
            b"\xef\xbb\xbfimport torch_xla\nd = torch_xla.device()\n",
            b'\xef\xbb\xbfimport torch\nd = torch.device("tpu")\n',
        ),
        (
            b"# -*- coding: latin-1 -*-\nimport torch\nimport torch_xla\ns = '\xe9'; d = torch_xla.device()  # \xe8\n",
            b"# -*- coding: latin-1 -*-\nimport torch\ns = '\xe9'; d = torch.device('tpu')  # \xe8\n",
        ),
        (b"import torch\nimport torch_xla\nd = torch_xla.device()", b'import torch\nd = torch.device("tpu")'),
        (
            b"import torch\nimport torch_xla\n\n\n\nd = torch_xla.device()   \n\n\n",
            b'import torch\n\n\n\nd = torch.device("tpu")   \n\n\n',
        ),
    ],
)
def test_everything_around_the_edits_is_kept_to_the_byte(tmp_path, before, after):
    tree(tmp_path, {"a.py": before})
    run([tmp_path], Settings(), apply=True)
    assert (tmp_path / "a.py").read_bytes() == after
    run([tmp_path], Settings(), apply=True)
    assert (tmp_path / "a.py").read_bytes() == after


# findings


def test_findings_give_old_lines_before_and_new_lines_after(tmp_path):
    tree(
        tmp_path,
        {
            "a.py": f'"""Doc."""\n{XM}xm.mark_step()\nd = xm.xla_device(1)\ne = xm.xla_device()\nop = xm.REDUCE_AND\n'
        },
    )
    dry = {(f.code, f.before): f.line for f in run([tmp_path], Settings()).findings}
    applied = run([tmp_path], Settings(), apply=True)
    lines = contents(tmp_path)["a.py"].splitlines()
    assert dry[("TX201", "xm.mark_step()")] == 3
    assert dry[("TX101", "xm.xla_device(1)")] == 4
    assert dry[("TX324", "xm.REDUCE_AND")] == 6
    for finding in applied.findings:
        assert 1 <= finding.line <= len(lines)
        if finding.outcome is Outcome.OPEN and finding.code != "TX990":
            assert lines[finding.line - 1][finding.column - 1 :].startswith(finding.before)
        if finding.outcome is Outcome.REWRITTEN and finding.after:
            assert lines[finding.line - 1][finding.column - 1 :].startswith(finding.after.splitlines()[0])


def test_a_dry_run_writes_nothing(tmp_path):
    tree(tmp_path, {"a.py": f"{XM}xm.mark_step()\n"})
    before = contents(tmp_path)
    result = run([tmp_path], Settings())
    assert contents(tmp_path) == before
    assert not (tmp_path / ".tpu-migrate").exists()
    assert not result.applied
    assert [file.path for file in result.changed] == ["a.py"]


def test_the_edits_of_a_finding_make_the_new_file(tmp_path):
    text = f"import torch\n{XM}d = f(xm.xla_device(), 1)\n"
    tree(tmp_path, {"a.py": text})
    (finding,) = [f for f in run([tmp_path], Settings()).findings if f.code == "TX101"]
    (edit,) = finding.edits
    lines = text.splitlines()
    line = lines[edit.line - 1]
    assert edit.line == edit.end_line
    assert line[: edit.column - 1] + edit.text + line[edit.end_column - 1 :] == f"d = f({TPU}, 1)"


def test_references_and_what_became_of_them_add_up(tmp_path):
    tree(tmp_path, {"a.py": f"{XM}xm.mark_step()\nd = xm.xla_device(1)\n", "b.py": f"{XM}xm.mark_step()\n"})
    result = run([tmp_path], Settings())
    assert (result_of(result, "a.py").references, result_of(result, "a.py").rewritten) == (3, 1)
    assert (result_of(result, "b.py").references, result_of(result, "b.py").rewritten) == (2, 2)


def test_undo_takes_a_run_back(tmp_path):
    files = {"a.py": f"{XM}xm.mark_step()\n", "sub/b.py": f"{XM}d = xm.xla_device()\n"}
    tree(tmp_path, files)
    run([tmp_path], Settings(), apply=True)
    assert contents(tmp_path) != files
    undo(tmp_path)
    assert contents(tmp_path) == files


# settings


def test_per_file_ignores_are_relative_to_the_pyproject_wherever_the_run_begins(tmp_path):
    tree(
        tmp_path,
        {
            "pyproject.toml": '[tool.tpu-migrate.per-file-ignores]\n"old/*.py" = ["TX2"]\n',
            "old/a.py": f"{XM}xm.mark_step()\n",
            "new/a.py": f"{XM}xm.mark_step()\n",
        },
    )
    for start in (tmp_path, tmp_path / "old"):
        result = run([start], load_settings(start, {}))
        kept = next(file for file in result.files if file.path.endswith("a.py") and b"mark_step" in file.new)
        assert kept.path in ("old/a.py", "a.py")
    assert b"mark_step" not in result_of(run([tmp_path], load_settings(tmp_path, {})), "new/a.py").new


def test_excluded_files_are_left(tmp_path):
    files = {"old/a.py": f"{XM}xm.mark_step()\n", "a.py": f"{XM}xm.mark_step()\n"}
    tree(tmp_path, files)
    run([tmp_path], Settings(exclude=("old/",)), apply=True)
    assert contents(tmp_path) == {"a.py": "", "old/a.py": files["old/a.py"]}


def test_a_single_file_can_be_named(tmp_path):
    tree(tmp_path, {"a.py": f"{XM}xm.mark_step()\n", "b.py": f"{XM}xm.mark_step()\n"})
    run([tmp_path / "a.py"], Settings(), apply=True)
    assert contents(tmp_path) == {"a.py": "", "b.py": f"{XM}xm.mark_step()\n"}


# several processes


def many(count: int) -> dict[str, str]:
    files = {
        f"m{n}.py": f"from compat import xm\n{XM}def f(o):\n    xm.optimizer_step(o)\n    return xm.xla_device({n % 2})\n"
        for n in range(count)
    }
    return files | {
        "compat.py": f"{XM}X = 1\n",
        "main.py": "import torch_xla\nimport m1\nif __name__ == '__main__':\n    torch_xla.launch(m1.f)\n",
        "old.py": "import torch_xla\nprint 'x'\n",
    }


def test_two_jobs_find_and_write_what_one_does(tmp_path):
    one, two = tree(tmp_path / "one", many(30)), tree(tmp_path / "two", many(30))
    calls: list[tuple[int, int]] = []
    first = run([one], Settings(), apply=True, jobs=1)
    second = run([two], Settings(), apply=True, jobs=2, progress=lambda *done: calls.append(done))
    assert contents(one) == contents(two)
    assert first.findings == second.findings
    assert [(f.path, f.references, f.rewritten) for f in first.files] == [
        (f.path, f.references, f.rewritten) for f in second.files
    ]
    assert calls[-1] == (len(second.files), len(second.files))
    assert [done for done, _ in calls] == list(range(1, len(calls) + 1))


def test_the_same_run_twice_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    code = (
        "from tpu_migrate.pipeline import migrate_source\n"
        "import torch_xla_text\n"
        "print(migrate_source(torch_xla_text.TEXT).new.decode())\n"
    )
    text = f"{XM}y = 1\nx = xm.all_reduce(\n    xm.REDUCE_SUM,\n    # one\n    loss,\n    # two\n    scale=1.0,\n    # three\n)\n"
    (tmp_path / "torch_xla_text.py").write_text(f"TEXT = {text!r}\n")
    root = str(Path(pipeline.__file__).parent.parent)
    digests = set()
    for seed in ("0", "1", "2", "3", "4"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join((root, str(tmp_path))),
        }
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        digests.add(hashlib.sha256(done.stdout).hexdigest())
    assert len(digests) == 1


def test_torch_xla_is_followed_in_the_repository_that_holds_it(tmp_path):
    after = apply(
        tmp_path,
        {
            "torch_xla/__init__.py": "from . import core\n",
            "torch_xla/core/xla_model.py": "def xla_device():\n    return None\n",
            "examples/train.py": f"import torch\n{XM}d = xm.xla_device()\n",
        },
    )
    assert after["examples/train.py"] == f"import torch\nd = {TPU}\n"
