"""``xmp.spawn`` and ``torch_xla.launch``: who starts the workers now, and with what."""

import pytest

from tpu_migrate.config import Settings

from ..check import assert_rewritten, assert_unchanged, migrate

XMP = "import torch_xla.distributed.xla_multiprocessing as xmp\n"
DIST = "import torch.distributed as dist\n"
MAIN = "def f(*a): pass\nif __name__ == '__main__':\n"


def launched(call: str) -> str:
    return (
        f"{DIST}{MAIN}    dist.init_process_group('tpu_dist')\n    {call}\n    dist.destroy_process_group()\n"
    )


@pytest.mark.parametrize(
    ("spawn", "call"),
    [
        ("xmp.spawn(f)", "f(dist.get_rank())"),
        ("xmp.spawn(f, ())", "f(dist.get_rank())"),
        ("xmp.spawn(f, args=(a, b))", "f(dist.get_rank(), a, b)"),
        ("xmp.spawn(f, args=(a,), nprocs=8)", "f(dist.get_rank(), a)"),
        ("xmp.spawn(f, args=[a])", "f(dist.get_rank(), a)"),
        ("xmp.spawn(f, args=rest, nprocs=None, start_method='fork')", "f(dist.get_rank(), *rest)"),
        ("xmp.spawn(f, args=(a, *rest))", "f(dist.get_rank(), *(a, *rest))"),
        ("xmp.spawn(m.f, args=(a if b else c,))", "m.f(dist.get_rank(), a if b else c)"),
        ("xmp.spawn(partial(f, x))", "partial(f, x)(dist.get_rank())"),
        ("xmp.spawn(lambda i: f(i))", "(lambda i: f(i))(dist.get_rank())"),
        ("xmp.spawn(f, join=True, daemon=False)", "f(dist.get_rank())"),
    ],
)
def test_torchrun_starts_the_workers(spawn, call):
    assert_rewritten(f"{DIST}{XMP}{MAIN}    {spawn}\n", launched(call))


def test_the_finding_says_how_to_start_the_program():
    message = migrate(f"{XMP}{MAIN}    xmp.spawn(f, nprocs=8)\n").findings[-1].message
    assert "`torchrun --nproc-per-node=8`" in message
    message = migrate(f"{XMP}{MAIN}    xmp.spawn(f, nprocs=flags.cores)\n").findings[-1].message
    assert "`flags.cores`" in message


def test_one_process_needs_no_group():
    assert_rewritten(f"{XMP}{MAIN}    xmp.spawn(f, args=(a,), nprocs=1)\n", f"{MAIN}    f(0, a)\n")


@pytest.mark.parametrize(
    "spawn",
    [
        "ctx = xmp.spawn(f)",
        "xmp.spawn(f, join=False)",
        "xmp.spawn(f, daemon=True)",
        "return_(xmp.spawn(f))",
        "xmp.spawn(*args)",
    ],
)
def test_what_torchrun_cannot_do_is_refused(spawn):
    assert_unchanged(f"{XMP}{MAIN}    {spawn}\n", open=["TX303", "TX990"])


def test_a_spawn_that_shares_its_line_is_refused():
    assert_unchanged(
        f"{XMP}def f(i): pass\nif __name__ == '__main__': xmp.spawn(f)\n", open=["TX303", "TX990"]
    )


def test_the_spawn_launcher_starts_the_workers_from_the_program():
    new = migrate(
        f"{XMP}{MAIN}    xmp.spawn(f, args=(a,), nprocs=4)\n", Settings(launcher="spawn")
    ).new.decode()
    assert new.endswith(f"\n{MAIN}    launch(f, args=(a,), nprocs=4)\n")
    assert "\ndef launch(fn, args=(), nprocs=None):\n" in new
    assert new.index("def _launched(") < new.index("def launch(")


@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
def test_device_agnostic_code_takes_the_accelerators_backend(launcher):
    new = migrate(
        f"{XMP}{MAIN}    xmp.spawn(f)\n", Settings(device="accelerator", launcher=launcher)
    ).new.decode()
    assert "tpu_dist" not in new
    assert "dist.init_process_group()" in new or "dist.get_default_backend_for_device(" in new


def test_a_program_that_makes_its_own_group_makes_one():
    new = migrate(
        "import torch_xla\nimport torch.distributed as dist\ndef f(i):\n    dist.init_process_group('xla')\n"
        "if __name__ == '__main__':\n    torch_xla.launch(f)\n"
    ).new.decode()
    assert new.count("init_process_group(") == 1
    assert "dist.init_process_group('tpu_dist')\n" in new
    assert "RANK" in new.partition("__main__")[2]


@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
def test_a_device_made_before_the_spawn_is_flagged(launcher):
    program = f"import torch\nimport torch_xla.core.xla_model as xm\n{XMP}device = xm.xla_device()\nx = torch.ones(2, device=device)\n{MAIN}    xmp.spawn(f)\n"
    result = migrate(program, Settings(launcher=launcher))
    assert "spawn" in next(f.message for f in result.findings if f.code == "TX101")
