"""Workers: which functions run in a process group for certain, and what that makes of the code in them."""

import pytest

from .check import assert_rewritten, migrate

HEAD = "import torch_xla.core.xla_model as xm\nimport torch_xla.distributed.xla_multiprocessing as xmp\n"
CERTAIN, GUARDED = "return dist.get_rank()\n", "return dist.get_rank() if dist.is_initialized() else 0\n"


def rank_in(program: str) -> str:
    """How the program's ``xm.get_ordinal()`` comes out."""
    new = migrate(HEAD + program).new.decode()
    return next(
        line.strip() + "\n" for line in new.splitlines() if "dist.get_rank" in line and "return" in line
    )


MAIN = "if __name__ == '__main__':\n    xmp.spawn(worker)\n"


def test_the_worker_function_has_a_group():
    assert rank_in(f"def worker(i):\n    return xm.get_ordinal()\n{MAIN}") == CERTAIN


def test_a_function_that_only_workers_call_has_a_group():
    program = f"def rank():\n    return xm.get_ordinal()\ndef step():\n    rank()\ndef worker(i):\n    step()\n{MAIN}"
    assert rank_in(program) == CERTAIN


def test_a_function_inside_a_worker_has_a_group():
    program = f"def worker(i):\n    def inner():\n        return xm.get_ordinal()\n    inner()\n{MAIN}"
    assert rank_in(program) == CERTAIN


@pytest.mark.parametrize(
    "program",
    [
        f"def rank():\n    return xm.get_ordinal()\ndef worker(i):\n    rank()\nrank()\n{MAIN}",
        f"def rank():\n    return xm.get_ordinal()\ndef worker(i):\n    f(rank)\n{MAIN}",
        f"def rank():\n    return xm.get_ordinal()\ndef other():\n    rank()\ndef worker(i):\n    rank()\n{MAIN}",
        f"def rank():\n    return xm.get_ordinal()\ndef worker(i):\n    pass\n{MAIN}",
        f"class C:\n    def rank(self):\n        return xm.get_ordinal()\ndef worker(i):\n    C().rank()\n{MAIN}",
        f"def worker(i):\n    return xm.get_ordinal()\nworker(0)\n{MAIN}",
        f"def worker(i):\n    return xm.get_ordinal()\nif a:\n    def worker(i): pass\n{MAIN}",
        "def worker(i):\n    return xm.get_ordinal()\nif __name__ == '__main__':\n    xmp.spawn(worker, nprocs=1)\n",
        f"@export\ndef worker(i):\n    return xm.get_ordinal()\n{MAIN}",
    ],
)
def test_a_function_that_others_may_call_asks_first(program):
    assert rank_in(program) == GUARDED


def test_a_barrier_in_a_worker_needs_no_test():
    result = migrate(f"{HEAD}def worker(i):\n    xm.rendezvous('x')\n{MAIN}")
    assert b"def worker(i):\n    dist.barrier()\n" in result.new


def test_a_barrier_elsewhere_asks_first():
    assert_rewritten(
        "import torch.distributed as dist\n" + HEAD + "def sync():\n    xm.rendezvous('x')\n",
        "import torch.distributed as dist\ndef sync():\n    if dist.is_initialized():\n        dist.barrier()\n",
    )


def test_a_barrier_of_a_single_process_goes():
    assert_rewritten(HEAD + "xm.rendezvous('x')\ngo()\n", "go()\n", kind="single-process")


@pytest.mark.parametrize("indent", ["  ", "\t", "        "])
def test_a_block_is_indented_as_the_file_is(indent):
    before = (
        f"import torch.distributed as dist\n{HEAD}def sync():\n{indent}go()\n{indent}xm.rendezvous('x')\n"
    )
    after = (
        f"import torch.distributed as dist\ndef sync():\n{indent}go()\n"
        f"{indent}if dist.is_initialized():\n{indent * 2}dist.barrier()\n"
    )
    assert_rewritten(before, after)
