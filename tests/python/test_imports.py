"""Imports: what is added, where and under which name; what goes and what has to stay."""

import pytest

from tpu_migrate.config import Settings

from .check import assert_rewritten, assert_unchanged, migrate

XM = "import torch_xla.core.xla_model as xm\n"


# the file's own spelling is used


@pytest.mark.parametrize(
    ("imported", "spelt"),
    [
        ("import torch\n", "torch.device"),
        ("import torch as T\n", "T.device"),
        ("from torch import device\n", "device"),
        ("from torch import device as D\n", "D"),
        ("import torch, os\n", "torch.device"),
        ("import os, torch as T\n", "T.device"),
        ("import torch.nn as nn\nimport torch\n", "torch.device"),
        ("import torch.nn\n", "torch.device"),
    ],
)
def test_torch_is_spelt_as_the_file_spells_it(imported, spelt):
    assert_rewritten(f"{imported}{XM}d = xm.xla_device()\n", f'{imported}d = {spelt}("tpu")\n')


@pytest.mark.parametrize(
    ("imported", "rank", "initialized"),
    [
        ("import torch.distributed as dist\n", "dist.get_rank", "dist.is_initialized"),
        ("import torch.distributed as td\n", "td.get_rank", "td.is_initialized"),
        ("from torch import distributed as dist\n", "dist.get_rank", "dist.is_initialized"),
        ("from torch import distributed\n", "distributed.get_rank", "distributed.is_initialized"),
        ("from torch.distributed import get_rank, is_initialized\n", "get_rank", "is_initialized"),
    ],
)
def test_torch_distributed_is_spelt_as_the_file_spells_it(imported, rank, initialized):
    assert_rewritten(
        f"{imported}{XM}r = xm.get_ordinal()\n", f"{imported}r = {rank}() if {initialized}() else 0\n"
    )


def test_an_import_that_a_function_made_is_not_used_outside_it():
    assert_rewritten(
        """
        import torch_xla.core.xla_model as xm

        def f():
            import torch as T
            return xm.xla_device()

        d = xm.xla_device()
        """,
        """
        import torch

        def f():
            import torch as T
            return T.device("tpu")

        d = torch.device("tpu")
        """,
    )


def test_an_import_further_down_is_not_used_above_it():
    assert_rewritten(
        """
        import torch_xla.core.xla_model as xm
        d = xm.xla_device()
        import torch as T
        """,
        """
        import torch
        d = torch.device("tpu")
        import torch as T
        """,
    )


def test_an_import_under_a_condition_is_not_relied_upon():
    result = migrate(
        """
        import torch_xla.core.xla_model as xm
        if fast:
            import torch as T
        d = xm.xla_device()
        """
    )
    assert b'd = torch.device("tpu")' in result.new
    assert result.new.startswith(b"import torch\n")


# clashes


def test_dist_that_is_something_else_is_not_used():
    assert_rewritten(
        f"import torch\n{XM}dist = distance(a, b)\nr = xm.get_ordinal()\n",
        "import torch\ndist = distance(a, b)\n"
        "r = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0\n",
    )


def test_dist_that_is_a_parameter_somewhere_is_not_used():
    result = migrate(f"{XM}def f(dist):\n    return xm.get_ordinal() * dist\n")
    assert b"torch.distributed.get_rank()" in result.new
    assert b"as dist" not in result.new


@pytest.mark.parametrize(
    "clash", ["torch = fake\n", "def torch(): pass\n", "from fake import torch\n", "for torch in a: pass\n"]
)
def test_torch_that_is_something_else_is_a_refusal(clash):
    result = assert_unchanged(f"{clash}{XM}d = xm.xla_device()\n", open=["TX101", "TX990"])
    assert "torch means something else in this file; rename it, then run again" in result.findings[-1].message


def test_torch_that_is_a_parameter_is_a_refusal_where_it_is_needed_only():
    assert_rewritten(
        f"{XM}def f(torch):\n    return xm.xla_device()\nxm.mark_step()\n",
        f"{XM}def f(torch):\n    return xm.xla_device()\n",
        open=["TX101", "TX990"],
    )


@pytest.mark.parametrize(
    "taken",
    [
        "def all_reduce(): pass\n",
        "all_reduce = 1\n",
        "print(all_reduce)\n",
        "def f(all_reduce): pass\n",
        "from mine import all_reduce\n",
    ],
)
def test_a_helper_gets_another_name_where_its_own_is_taken(taken):
    new = migrate(f"{taken}{XM}xm.all_reduce(xm.REDUCE_SUM, [x])\n").new.decode()
    assert "\ndef _all_reduce(reduce_type, inputs, scale=1.0):\n" in new
    assert "\n_all_reduce(dist.ReduceOp.SUM, [x])\n" in new


def test_a_helper_takes_the_name_of_the_import_it_replaces():
    new = migrate("from torch_xla.core.xla_model import save\nsave(a, b)\n").new.decode()
    assert "\ndef save(data, file_or_path" in new
    assert new.endswith("\nsave(a, b)\n")


def test_a_helper_gets_another_name_where_that_import_stays():
    new = migrate(
        "from torch_xla.core.xla_model import save\nsave(a, b)\nsave(a, b, sync=True)\n"
    ).new.decode()
    assert "\nfrom torch_xla.core.xla_model import save\n" in new
    assert "\ndef _save(data, file_or_path" in new
    assert "\n_save(a, b)\n" in new
    assert "\nsave(a, b, sync=True)\n" in new


# the place


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '"""Doc."""\n' + XM + "d = xm.xla_device()\n",
            '"""Doc."""\nimport torch\nd = torch.device("tpu")\n',
        ),
        (
            "from __future__ import annotations\n\n" + XM + "d = xm.xla_device()\n",
            'from __future__ import annotations\n\nimport torch\nd = torch.device("tpu")\n',
        ),
        (
            "import os\n\nimport numpy as np\n" + XM + "\nd = xm.xla_device()\n",
            'import os\n\nimport numpy as np\nimport torch\n\nd = torch.device("tpu")\n',
        ),
        (
            "import torch_xla\nimport zlib\n\nd = torch_xla.device()\n",
            'import torch\nimport zlib\n\nd = torch.device("tpu")\n',
        ),
        (
            "#!/bin/env python\n# (c) me\n" + XM + "d = xm.xla_device()\n",
            '#!/bin/env python\n# (c) me\nimport torch\nd = torch.device("tpu")\n',
        ),
        (
            "import torch.nn as nn\n" + XM + "r = xm.get_ordinal()\n",
            "import torch.distributed as dist\nimport torch.nn as nn\nr = dist.get_rank() if dist.is_initialized() else 0\n",
        ),
        (
            XM + "h = xm.get_local_ordinal()\n",
            'import os\nh = int(os.environ.get("LOCAL_RANK", "0"))\n',
        ),
        (
            "import sys\n\nimport torch\n" + XM + "h = xm.get_local_ordinal()\n",
            'import os\nimport sys\n\nimport torch\nh = int(os.environ.get("LOCAL_RANK", "0"))\n',
        ),
        (
            "import torch\n" + XM + "h = xm.get_local_ordinal()\n",
            'import os\n\nimport torch\nh = int(os.environ.get("LOCAL_RANK", "0"))\n',
        ),
    ],
)
def test_an_import_is_added_where_it_belongs(before, after):
    assert_rewritten(before, after)


def test_an_import_is_added_once_for_many_uses():
    assert_rewritten(
        f"{XM}a = xm.xla_device()\nb = xm.xla_device()\ndef f():\n    return xm.xla_device()\n",
        'import torch\na = torch.device("tpu")\nb = torch.device("tpu")\ndef f():\n    return torch.device("tpu")\n',
    )


def test_code_before_the_imports_can_use_what_is_added():
    before = f'"""Doc."""\nrequire("torch")\n{XM}d = xm.xla_device()\n'
    assert_rewritten(before, '"""Doc."""\nrequire("torch")\nimport torch\nd = torch.device("tpu")\n')


def test_two_functions_with_imports_of_their_own_get_one_each():
    assert_rewritten(
        """
        def f():
            import torch_xla.core.xla_model as xm
            return xm.xla_device()

        def g():
            from torch_xla.core.xla_model import xla_device
            return xla_device()
        """,
        """
        def f():
            import torch
            return torch.device("tpu")

        def g():
            import torch
            return torch.device("tpu")
        """,
    )


def test_an_import_that_shares_its_line_is_added_there():
    assert_rewritten(
        "def f(): import torch_xla; return torch_xla.device()\n",
        'def f(): import torch; return torch.device("tpu")\n',
    )


def test_a_name_of_a_module_that_has_to_be_imported_is_imported_by_name():
    result = migrate("import torch_xla.distributed.spmd as xs\nm = xs.Mesh(range(8), (8,), ('x',))\n")
    assert b"from torch.distributed.device_mesh import init_device_mesh\n" in result.new


# what goes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch_xla\n", ""),
        ("import torch_xla", ""),
        ("import os, torch_xla, sys\n", "import os, sys\n"),
        ("import torch_xla, os\n", "import os\n"),
        ("import os, torch_xla\n", "import os\n"),
        ("import os, torch_xla.core.xla_model as xm  # why\n", "import os  # why\n"),
        ("import os; import torch_xla; import sys\n", "import os; import sys\n"),
        ("import torch_xla; import torch_xla.runtime as xr\nx = 1\n", "x = 1\n"),
        ("import os\nimport torch_xla\n\nx = 1\n", "import os\n\nx = 1\n"),
        ("import torch_xla\n\n\nclass C: pass\n", "class C: pass\n"),
        ("if tpu:\n    import torch_xla\nx = 1\n", "x = 1\n"),
        ("if tpu():\n    import torch_xla\nx = 1\n", "if tpu():\n    pass\nx = 1\n"),
        ("def f():\n    import torch_xla\n", "def f():\n    pass\n"),
        ("from torch_xla.core.xla_model import *\nx = 1\n", "x = 1\n"),
        ("from torch_xla.core.xla_model import (\n    mark_step,\n    xla_device,\n)\nx = 1\n", "x = 1\n"),
        ("import torch_xla  # noqa: F401\nx = 1\n", "x = 1\n"),
        ("import torch_xla  # registers the device\nx = 1\n", "x = 1\n"),
    ],
)
def test_an_import_that_nothing_uses_goes(before, after):
    assert_rewritten(before, after)


def test_only_the_unused_names_of_an_import_go():
    assert_rewritten(
        """
        from torch_xla.core.xla_model import (
            mark_step,
            xla_device,
            all_gather,
        )
        mark_step()
        d = xla_device(1)
        """,
        """
        from torch_xla.core.xla_model import (
            xla_device,
        )
        d = xla_device(1)
        """,
        open=["TX101", "TX990"],
    )


def test_a_comment_stays_with_the_name_it_is_about():
    result = migrate(
        """
        from torch_xla.core.xla_model import (
            xla_device,  # dev
            mark_step,  # cut
        )
        mark_step()
        d = xla_device(1)
        """,
        Settings(comments=False),
    )
    assert b"    xla_device,  # dev\n" in result.new


# what stays


def test_an_import_that_something_open_uses_stays_and_says_so():
    result = assert_rewritten(
        f"{XM}xm.mark_step()\nd = xm.xla_device(1)\n", f"{XM}d = xm.xla_device(1)\n", open=["TX101", "TX990"]
    )
    assert result.findings[0].message == "kept: line 2 still uses it"


def test_a_package_import_stays_while_a_chain_on_it_is_used():
    assert_rewritten(
        "import torch_xla\nimport torch_xla.core.xla_model\n"
        "torch_xla.core.xla_model.mark_step()\nd = torch_xla.core.xla_model.xla_device(1)\n",
        "import torch_xla\nimport torch_xla.core.xla_model\nd = torch_xla.core.xla_model.xla_device(1)\n",
        open=["TX101", "TX990", "TX990"],
    )


def test_a_star_import_stays_while_something_it_brings_is_used():
    assert_rewritten(
        "from torch_xla.core.xla_model import *\nmark_step()\nd = xla_device(1)\n",
        "from torch_xla.core.xla_model import *\nd = xla_device(1)\n",
        open=["TX101", "TX990"],
    )


def test_an_import_that_the_module_exports_stays():
    assert_unchanged(f'{XM}__all__ = ["xm"]\n', open=["TX990"])
    assert_unchanged(f'{XM}__all__ = ("f", "xm")\n', open=["TX990"])


@pytest.mark.parametrize("more", ['__all__ += ["xm"]\n', '__all__.extend(["xm"])\n'])
def test_an_import_that_the_module_exports_later_stays(more):
    assert_unchanged(f"{XM}__all__ = []\n{more}", open=["TX990"])


def test_an_import_that_is_suppressed_stays():
    assert_rewritten(
        "import torch_xla  # tpu-migrate: ignore[TX990]\n",
        "import torch_xla  # tpu-migrate: ignore[TX990]\n",
        suppressed=["TX990"],
    )


def test_an_import_that_only_ignored_findings_use_stays():
    result = migrate(f"{XM}xm.mark_step()\n", Settings(ignore=("TX201",)))
    assert result.new.decode() == f"{XM}xm.mark_step()\n"
