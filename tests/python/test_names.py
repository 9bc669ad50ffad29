"""Which names mean torch_xla: import forms, scopes, shadowing, re-binding. What a name stands for decides all else."""

import pytest

from .check import assert_rewritten, assert_unchanged, migrate, source

# what is left alone


@pytest.mark.parametrize(
    "shadow",
    [
        "def f(xm):\n    xm.mark_step()\n",
        "def f(*xm):\n    xm.mark_step()\n",
        "def f(**xm):\n    xm.mark_step()\n",
        "def f(a, /, *, xm=None):\n    xm.mark_step()\n",
        "async def f(xm):\n    await xm.mark_step()\n",
        "f = lambda xm: xm.mark_step()\n",
        "def f():\n    xm = other()\n    xm.mark_step()\n",
        "def f():\n    xm.mark_step()\n    xm = other()\n",
        "def f():\n    for xm in models:\n        xm.mark_step()\n",
        "def f():\n    with open_model() as xm:\n        xm.mark_step()\n",
        "def f():\n    with open_models() as (a, [xm, *b]):\n        xm.mark_step()\n",
        "def f():\n    import fake as xm\n    xm.mark_step()\n",
        "def f():\n    from fake import xm\n    xm.mark_step()\n",
        "def f():\n    def xm(): pass\n    xm.mark_step()\n",
        "def f():\n    class xm: pass\n    xm.mark_step()\n",
        "def f():\n    if (xm := other()):\n        xm.mark_step()\n",
        "def f():\n    any((xm := m) for m in models)\n    xm.mark_step()\n",
        "def f():\n    try:\n        g()\n    except Error as xm:\n        xm.mark_step()\n",
        "def f():\n    xm: Model = other()\n    xm.mark_step()\n",
        "def f():\n    xm: Model\n    xm.mark_step()\n",
        "def f():\n    xm += 1\n    xm.mark_step()\n",
        "def f():\n    a = xm = other()\n    xm.mark_step()\n",
        "def f():\n    (a, xm), b = other()\n    xm.mark_step()\n",
        "def f(xm):\n    def g():\n        xm.mark_step()\n    return g\n",
        "def f(xm):\n    return [xm.mark_step() for _ in xm.all()]\n",
        "def f():\n    xm = None\n    def g():\n        nonlocal xm\n        xm = other()\n        xm.mark_step()\n",
        "[xm.mark_step() for xm in models]\n",
        "{xm.mark_step() for xm in models}\n",
        "{xm.mark_step(): xm for xm in models}\n",
        "list(xm.mark_step() for a in models for xm in a)\n",
        "class C:\n    xm = other\n    xm.mark_step()\n",
        "self.xm.mark_step()\n",
        "xm_.mark_step()\n",
        "model.mark_step(xm=1)\n",
    ],
)
def test_a_shadowed_name_is_never_rewritten(shadow):
    assert_rewritten("import torch_xla.core.xla_model as xm\n" + shadow, shadow)


@pytest.mark.parametrize(
    "capture",
    [
        "case xm:",
        "case [xm]:",
        "case [*xm]:",
        "case {'a': xm}:",
        "case C() as xm:",
        "case {**xm}:",
    ],
)
def test_a_name_captured_by_match_is_never_rewritten(capture):
    shadow = f"def f(value):\n    match value:\n        {capture}\n            xm.mark_step()\n"
    assert_rewritten("import torch_xla.core.xla_model as xm\n" + shadow, shadow)


@pytest.mark.parametrize(
    "rebinding",
    [
        "xm = fake\nxm.mark_step()\n",
        "for xm in models:\n    xm.mark_step()\n",
        "def f():\n    global xm\n    xm = fake\nxm.mark_step()\n",
        "if cpu:\n    import fake as xm\nxm.mark_step()\n",
    ],
)
def test_a_name_that_is_something_else_too_is_left_with_a_finding(rebinding):
    assert_unchanged("import torch_xla.core.xla_model as xm\n" + rebinding, open=["TX201", "TX990"])


def test_a_name_means_nothing_outside_the_function_that_imports_it():
    assert_rewritten(
        """
        def f():
            import torch_xla.core.xla_model as xm
            xm.mark_step()
            return 1
        xm.mark_step()
        """,
        """
        def f():
            return 1
        xm.mark_step()
        """,
    )


def test_a_module_of_the_same_name_is_not_torch_xla():
    assert_unchanged("from . import torch_xla\ntorch_xla.sync()\n")
    assert_unchanged("from .torch_xla import sync\nsync()\n")
    assert_unchanged("import torch_xla_extras\ntorch_xla_extras.sync()\n")
    assert_unchanged("import mine.torch_xla\nmine.torch_xla.sync()\n")


# what is found


DEVICE = 'import torch\nd = torch.device("tpu")\n'


@pytest.mark.parametrize(
    "program",
    [
        "import torch_xla\nd = torch_xla.device()\n",
        "import torch_xla as tx\nd = tx.device()\n",
        "import torch_xla.core.xla_model as xm\nd = xm.xla_device()\n",
        "import torch_xla.core.xla_model\nd = torch_xla.core.xla_model.xla_device()\n",
        "import torch_xla.runtime\nd = torch_xla.core.xla_model.xla_device()\n",
        "import torch_xla\nd = torch_xla.core.xla_model.xla_device()\n",
        "import torch_xla.core as c\nd = c.xla_model.xla_device()\n",
        "from torch_xla import core\nd = core.xla_model.xla_device()\n",
        "from torch_xla.core import xla_model\nd = xla_model.xla_device()\n",
        "from torch_xla.core import xla_model as xm\nd = xm.xla_device()\n",
        "from torch_xla.core.xla_model import xla_device\nd = xla_device()\n",
        "from torch_xla.core.xla_model import xla_device as dev\nd = dev()\n",
        "from torch_xla.core.xla_model import *\nd = xla_device()\n",
        "from torch_xla import *\nd = device()\n",
        "from torch_xla.core.xla_model import (\n    xla_device,\n)\nd = xla_device()\n",
        "import torch_xla.core.xla_model as xm, torch_xla.runtime as xr\nd = xm.xla_device()\n",
        "import torch_xla; import torch_xla.core.xla_model as xm\nd = xm.xla_device()\n",
        "import torch_xla_py.xla_model as xm\nd = xm.xla_device()\n",
        "import torch_xla\nfrom torch_xla import xm\nd = xm.xla_device()\n",
    ],
)
def test_every_import_form_leads_to_the_same_code(program):
    assert_rewritten(program, DEVICE)


def test_a_package_reached_through_any_of_its_modules_is_followed():
    assert_rewritten(
        """
        import torch
        import torch_xla.core.xla_model
        import torch_xla.distributed.parallel_loader

        torch_xla.sync()
        d = torch_xla.device()
        """,
        """
        import torch

        d = torch.device("tpu")
        """,
    )


@pytest.mark.parametrize(
    "program",
    [
        "class C:\n    {import_}\n    d = xm.xla_device()\n",
        "async def f():\n    {import_}\n    return xm.xla_device()\n",
        "def f():\n    if a:\n        {import_}\n        return xm.xla_device()\n",
        "def f():\n    def g():\n        {import_}\n        return lambda: xm.xla_device()\n",
    ],
)
def test_imports_inside_definitions_are_followed(program):
    before = "import torch\n" + program.format(import_="import torch_xla.core.xla_model as xm")
    lines = [line for line in before.splitlines(keepends=True) if "import torch_xla" not in line]
    assert_rewritten(before, "".join(lines).replace("xm.xla_device()", 'torch.device("tpu")'))


def test_a_function_level_import_leaves_torch_where_it_was():
    assert_rewritten(
        """
        def f():
            import torch_xla.core.xla_model as xm

            return xm.xla_device()
        """,
        """
        def f():
            import torch

            return torch.device("tpu")
        """,
    )


def test_a_global_declaration_is_followed():
    assert_rewritten(
        """
        import torch
        def setup():
            global xm
            import torch_xla.core.xla_model as xm
        def f():
            return xm.xla_device()
        """,
        """
        import torch
        def setup():
            global xm
        def f():
            return torch.device("tpu")
        """,
    )


def test_a_class_attribute_does_not_shadow_in_the_methods():
    assert_rewritten(
        """
        import torch
        import torch_xla.core.xla_model as xm
        class C:
            xm = other
            def f(self):
                return xm.xla_device()
        """,
        """
        import torch
        class C:
            xm = other
            def f(self):
                return torch.device("tpu")
        """,
    )


def test_defaults_annotations_decorators_and_bases_belong_to_the_scope_around():
    assert_rewritten(
        """
        import torch
        import torch_xla.core.xla_model as xm
        @register(xm.xla_device())
        def f(xm=xm.xla_device(), *, b: g(xm.wait_device_ops())) -> h(xm.wait_device_ops()):
            return xm.xla_device()
        class C(make(xm.xla_device()), metaclass=meta(xm.xla_device())):
            xm = 1
        k = lambda xm=xm.xla_device(): xm
        """,
        """
        import torch
        @register(torch.device("tpu"))
        def f(xm=torch.device("tpu"), *, b: g(torch.accelerator.synchronize())) -> h(torch.accelerator.synchronize()):
            return xm.xla_device()
        class C(make(torch.device("tpu")), metaclass=meta(torch.device("tpu"))):
            xm = 1
        k = lambda xm=torch.device("tpu"): xm
        """,
    )


def test_the_first_iterable_of_a_comprehension_belongs_to_the_scope_around():
    assert_rewritten(
        """
        import torch
        import torch_xla.core.xla_model as xm
        a = [xm.mark_step() for xm in f(xm.xla_device())]
        """,
        """
        import torch
        a = [xm.mark_step() for xm in f(torch.device("tpu"))]
        """,
    )


def test_a_type_checking_import_is_followed():
    assert_rewritten(
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import torch_xla.core.xla_model as xm
        x = 1
        """,
        """
        from typing import TYPE_CHECKING
        x = 1
        """,
    )


def test_an_annotation_in_quotes_is_a_use():
    assert_unchanged(
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import torch_xla.core.xla_model as xm
        def f(context: "xm.DeviceContext"):
            return context
        """,
        open=["TX116", "TX990"],
    )


# names for names


def test_a_name_given_to_a_function_is_followed_and_goes():
    assert_rewritten(
        """
        import torch_xla.core.xla_model as xm
        sync = xm.mark_step
        for x in xs:
            f(x)
            sync()
        """,
        """
        for x in xs:
            f(x)
        """,
    )


def test_a_name_given_to_a_function_stays_when_it_is_passed_on():
    assert_rewritten(
        """
        import torch_xla.core.xla_model as xm
        sync = xm.mark_step
        for x in xs:
            f(x)
            sync()
        run(on_end=sync)
        """,
        """
        import torch_xla.core.xla_model as xm
        sync = xm.mark_step
        for x in xs:
            f(x)
        run(on_end=sync)
        """,
        open=["TX201", "TX201", "TX990"],
    )


def test_a_second_name_for_a_module_is_followed_and_goes():
    assert_rewritten(
        """
        import torch
        import torch_xla.core.xla_model as xm
        m = xm
        d = m.xla_device()
        """,
        """
        import torch
        d = torch.device("tpu")
        """,
    )


def test_a_chain_of_names_is_followed():
    result = migrate("import torch_xla\nxm = torch_xla.core.xla_model\nm = xm\nd = m.xla_device()\n")
    assert b'd = torch.device("tpu")\n' in result.new


def test_a_name_in_terms_of_itself_ends():
    assert_unchanged("a = b\nb = a\na.mark_step()\ntorch_xla = torch_xla\ntorch_xla.sync()\n")


def test_a_name_that_is_none_elsewhere_is_still_followed():
    result = migrate(
        "import torch_xla.core.xla_model as xm\nsync = None\nif a:\n    sync = xm.mark_step\nsync(wait=True)\n"
    )
    assert b"torch.accelerator.synchronize()\n" in result.new


def test_a_name_with_another_value_is_left_with_a_finding():
    assert_unchanged(
        """
        import torch_xla.core.xla_model as xm
        sync = noop
        sync = xm.mark_step
        sync()
        """,
        open=["TX201", "TX201", "TX990"],
    )


def test_the_line_in_a_message_is_that_of_the_new_file():
    assert_unchanged(
        """
        import torch_xla.core.xla_model as xm
        sync = xm.mark_step
        sync = noop
        sync()
        """,
        open=["TX201", "TX201", "TX990"],
    )


# class attributes


def test_a_class_attribute_is_followed_through_self():
    result = migrate(
        """
        import torch_xla.core.xla_model as xm
        class Trainer:
            def __init__(self):
                self.sync = xm.mark_step
            def step(self):
                self.sync()
                return 1
        """
    )
    assert b"self.sync()" not in result.new


def test_a_class_attribute_with_two_values_is_not_followed():
    assert_unchanged(
        """
        import torch_xla.core.xla_model as xm
        class Trainer:
            def __init__(self):
                self.sync = xm.mark_step
            def cpu(self):
                self.sync = noop
            def step(self):
                self.sync()
        """,
        open=["TX201", "TX990"],
    )


@pytest.mark.parametrize(
    "use",
    [
        "Trainer().sync()\n",
        "run(trainer.sync)\n",
        "class B(Trainer):\n    def f(self):\n        self.sync()\n",
    ],
)
def test_an_attribute_that_others_use_stays(use):
    trainer = """
        import torch_xla.core.xla_model as xm
        class Trainer:
            def __init__(self):
                self.sync = xm.mark_step
            def step(self):
                self.sync()
                return 1
        """
    result = migrate(source(trainer) + use.encode())
    assert b"self.sync = xm.mark_step" in result.new
