"""What a repository's programs run as, which file an import names, and whose torch_xla it is."""

from __future__ import annotations

import pytest
from python.check import matcher, source

from tpu_migrate.programs import Overview, find_module, module_table, survey
from tpu_migrate.python.index import read_facts

XM = "import torch_xla.core.xla_model as xm\n"
XMP = "import torch_xla.distributed.xla_multiprocessing as xmp\n"
MAIN = "if __name__ == '__main__':\n"


def look(files: dict[str, str]) -> Overview:
    return survey([read_facts(path, source(text), matcher().book) for path, text in files.items()])


# kinds


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{XM}{MAIN}    xm.mark_step()\n", "single-process"),
        (f"{XMP}{MAIN}    xmp.spawn(f)\n", "multi-process"),
        (f"{XMP}def main():\n    xmp.spawn(f)\n{MAIN}    main()\n", "multi-process"),
        (f"{XMP}xmp.spawn(f)\n", "multi-process"),
        (
            f"from torch_xla.distributed.xla_multiprocessing import spawn as go\n{MAIN}    go(f)\n",
            "multi-process",
        ),
        (f"import torch_xla\n{MAIN}    torch_xla.launch(f)\n", "multi-process"),
        (f"import torch_xla\n{MAIN}    dist.init_process_group('xla')\n", "multi-process"),
        (f"import torch_xla\n{MAIN}    dist.init_process_group(backend='xla', rank=0)\n", "multi-process"),
        (f"import torch_xla\n{MAIN}    dist.init_process_group('tpu_dist')\n", "multi-process"),
        (f"import torch_xla.runtime as xr\nxr.use_spmd()\n{MAIN}    f()\n", "spmd"),
        (f"import torch_xla.distributed.spmd as xs\nm = xs.Mesh(a, b, c)\n{MAIN}    f()\n", "spmd"),
        (f"import torch_xla.experimental.xla_sharding as xs\n{MAIN}    xs.mark_sharding(a, b, c)\n", "spmd"),
        (f"import torch_xla\nos.environ['XLA_USE_SPMD'] = '1'\n{MAIN}    f()\n", "spmd"),
        (f"{XM}def f():\n    xm.mark_step()\n", "library"),
        (f"{XM}def f():\n    xm.rendezvous('launch')\n{MAIN}    f()\n", "single-process"),
    ],
)
def test_the_kind_of_a_program_of_one_file(text, kind):
    assert look({"a.py": text}).kind("a.py") == kind


def test_a_shadowed_spawn_starts_nothing():
    assert (
        look({"a.py": f"{XM}import multiprocessing as xmp\n{MAIN}    xmp.spawn(f)\n"}).kind("a.py")
        == "single-process"
    )


def test_modules_belong_to_the_program_that_imports_them():
    overview = look(
        {
            "train.py": f"{XMP}from lib.engine import step\n{MAIN}    xmp.spawn(step)\n",
            "lib/__init__.py": "",
            "lib/engine.py": f"from . import ops\n{XM}def step(i):\n    ops.sync()\n",
            "lib/ops.py": f"{XM}def sync():\n    xm.mark_step()\n",
            "lib/unused.py": f"{XM}def f():\n    xm.mark_step()\n",
        }
    )
    assert overview.programs[-1].files == ("lib/unused.py",)
    assert {
        path: overview.kind(path) for path in ("train.py", "lib/engine.py", "lib/ops.py", "lib/unused.py")
    } == {
        "train.py": "multi-process",
        "lib/engine.py": "multi-process",
        "lib/ops.py": "multi-process",
        "lib/unused.py": "library",
    }
    program, _ = overview.programs
    assert (program.entry, program.kind) == ("train.py", "multi-process")
    assert "lib/ops.py" in program.files
    assert program.why


def test_a_spawn_in_an_imported_module_counts_and_says_where():
    overview = look(
        {
            "train.py": f"import launcher\nimport torch_xla\n{MAIN}    launcher.go()\n",
            "launcher.py": f"{XMP}def go():\n    xmp.spawn(f)\n",
        }
    )
    assert overview.kind("train.py") == "multi-process"
    assert "launcher.py" in overview.programs[0].why


def test_a_module_of_programs_of_two_kinds_is_a_library():
    overview = look(
        {
            "one.py": f"{XM}import lib\n{MAIN}    lib.f()\n",
            "many.py": f"{XMP}import lib\n{MAIN}    xmp.spawn(lib.f)\n",
            "lib.py": f"{XM}def f(i=0):\n    xm.mark_step()\n",
        }
    )
    assert (overview.kind("one.py"), overview.kind("many.py"), overview.kind("lib.py")) == (
        "single-process",
        "multi-process",
        "library",
    )


def test_a_program_without_torch_xla_is_no_program_of_ours():
    assert look({"a.py": f"import torch\n{MAIN}    f()\n"}).programs == ()


def test_modules_that_import_each_other_end():
    overview = look({"a.py": f"import b\n{XM}{MAIN}    f()\n", "b.py": "import a\n"})
    assert overview.kind("b.py") == "single-process"


def test_a_file_that_cannot_be_parsed_stops_nobody():
    overview = look({"a.py": f"import b\n{XM}{MAIN}    f()\n", "b.py": "print 'x'\n"})
    assert overview.kind("a.py") == "single-process"


# modules

TREE = module_table(
    [
        "train.py",
        "pkg/__init__.py",
        "pkg/a.py",
        "pkg/sub/__init__.py",
        "pkg/sub/b.py",
        "other/pkg/a.py",
        "src/app/c.py",
    ]
)


@pytest.mark.parametrize(
    ("path", "level", "dotted", "found"),
    [
        ("train.py", 0, "pkg", "pkg/__init__.py"),
        ("train.py", 0, "pkg.a", "pkg/a.py"),
        ("train.py", 0, "pkg.sub.b", "pkg/sub/b.py"),
        ("train.py", 0, "app.c", "src/app/c.py"),
        ("train.py", 0, "pkg.nothing", None),
        ("train.py", 0, "torch", None),
        ("pkg/a.py", 1, "", "pkg/__init__.py"),
        ("pkg/a.py", 1, "sub", "pkg/sub/__init__.py"),
        ("pkg/sub/b.py", 1, "", "pkg/sub/__init__.py"),
        ("pkg/sub/b.py", 2, "a", "pkg/a.py"),
        ("pkg/sub/__init__.py", 1, "b", "pkg/sub/b.py"),
        ("pkg/sub/b.py", 9, "a", None),
        ("other/main.py", 0, "pkg.a", "other/pkg/a.py"),
        ("pkg/main.py", 0, "pkg.a", "pkg/a.py"),
    ],
)
def test_an_import_leads_to_a_file_of_the_repository(path, level, dotted, found):
    assert find_module(TREE, path, level, dotted) == found


# vendors


@pytest.mark.parametrize(
    ("text", "vendor"),
    [
        (f"{XM}import torch_neuronx\n", "AWS Neuron"),
        (f"{XM}from neuronx_distributed import parallel\n", "AWS Neuron"),
        (f"{XM}import torchacc as ta\n", "TorchAcc"),
        (f"{XM}import tt_torch\n", "Tenstorrent"),
        (f"{XM}xr.set_device_type('TT')\n", "Tenstorrent"),
    ],
)
def test_another_makers_torch_xla_is_recognised(text, vendor):
    assert look({"a.py": text}).vendors == {"a.py": vendor}


@pytest.mark.parametrize("text", [XM, f"{XM}# runs on Neuron too\n", f"{XM}neuron = Neuron()\n"])
def test_a_tpu_file_has_no_vendor(text):
    assert look({"a.py": text}).vendors == {}


def test_one_file_of_a_vendor_leaves_the_others_alone():
    files = {f"f{n}.py": XM for n in range(9)} | {"neuron.py": f"{XM}import torch_neuronx\n"}
    assert look(files).vendors == {"neuron.py": "AWS Neuron"}


def test_a_vendors_repository_is_the_vendors_whole():
    files = {f"f{n}.py": XM for n in range(4)} | {f"n{n}.py": f"{XM}import torch_neuronx\n" for n in range(2)}
    assert set(look(files).vendors) == set(files)


# re-exports


def test_what_a_module_hands_on_is_known():
    overview = look(
        {
            "compat.py": f"try:\n    {XM}except ImportError:\n    xm = None\nimport torch_xla\nsync = xm.mark_step\n"
            "def f():\n    import torch_xla.runtime as xr\n"
        }
    )
    assert overview.exports["compat.py"] == {
        "xm": "torch_xla.core.xla_model",
        "torch_xla": "torch_xla",
        "sync": "torch_xla.core.xla_model.mark_step",
    }
