"""Strings that mean something to torch_xla, and the many that don't."""

import pytest

from tpu_migrate.config import Settings

from .check import assert_rewritten, assert_unchanged, codes, migrate


@pytest.mark.parametrize(
    "text",
    [
        '"""Runs on xla."""\n',
        'def f():\n    """xla"""\n',
        'class C:\n    "xla"\n    x = 1\n',
        'print("compiled with xla")\n',
        'x = "xlarge"\n',
        'jit(f, backend="jax")\n',
        'x = {"tf.xla": 1}\n',
        "# xla\nx = 1\n",
        'x = b"xla"\n',
        'tf.function(jit_compile=True, name="XLA")\n',
    ],
)
def test_this_string_is_left_without_a_word(text):
    assert_unchanged(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('x = "xla"\n', "TX114"),
        ('modes = {"xla": run}\n', "TX114"),
        ('run(mode="xla")\n', "TX114"),
        ('if mode == "xla":\n    go()\n', "TX114"),
        ('d = torch.device("xla:1")\n', "TX113"),
        ('d = torch.device(f"xla:{n}")\n', "TX113"),
        ('x.to("xla:0")\n', "TX113"),
    ],
)
def test_this_string_is_left_with_a_finding(text, code):
    assert_unchanged(text, open=[code])


@pytest.mark.parametrize(
    "text",
    [
        'd = torch.device("xla")\n',
        "d = torch.device('xla')\n",
        'x = x.to("xla")\n',
        'x = x.to("xla", torch.float32)\n',
        'x = x.to(device="xla")\n',
        'x = torch.zeros(2, device="xla")\n',
        'm = Net().to("xla").train()\n',
        'def f(device="xla"):\n    pass\n',
        'if x.device.type == "xla":\n    go()\n',
        'if "xla" != device.type:\n    go()\n',
        'if x.device.type in ("cuda", "xla"):\n    go()\n',
        'if device_type not in ["xla"]:\n    go()\n',
        'device = "xla"\n',
        'self.device = "xla"\n',
        'device: str = "xla"\n',
        'with torch.autocast("xla"):\n    go()\n',
        'with torch.autocast(device_type="xla"):\n    go()\n',
        'x = torch.load("f", map_location="xla")\n',
        'x = r"""a""" if torch.device("""xla""") else 1\n',
    ],
)
def test_this_string_means_the_device(text):
    assert_rewritten(text, text.replace("xla", "tpu"))


def test_a_device_string_of_device_agnostic_code_becomes_an_expression():
    assert_rewritten(
        'import torch\nx = torch.ones(2, device="xla")\nif x.device.type == "xla":\n    go()\n',
        'import torch\nx = torch.ones(2, device=torch.accelerator.current_accelerator() or torch.device("cpu"))\n'
        'if x.device.type != "cpu":\n    go()\n',
        settings=Settings(device="accelerator"),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('dist.init_process_group("xla")\n', 'dist.init_process_group("tpu_dist")\n'),
        ('dist.init_process_group(backend="xla")\n', 'dist.init_process_group(backend="tpu_dist")\n'),
        (
            'dist.init_process_group("xla", init_method="xla://")\n',
            'dist.init_process_group("tpu_dist")\n',
        ),
        (
            'dist.init_process_group(init_method="xla://", backend="xla")\n',
            'dist.init_process_group(backend="tpu_dist")\n',
        ),
        ('dist.new_group([0], backend="xla")\n', 'dist.new_group([0], backend="tpu_dist")\n'),
        ('if dist.get_backend() == "xla":\n    go()\n', 'if dist.get_backend() == "tpu_dist":\n    go()\n'),
    ],
)
def test_a_process_group_gets_the_native_backend(before, after):
    assert_rewritten(
        "import torch.distributed as dist\n" + before, "import torch.distributed as dist\n" + after
    )


def test_a_compile_backend_is_renamed():
    assert_rewritten(
        'import torch\nm = torch.compile(m, backend="openxla")\n',
        'import torch\nm = torch.compile(m, backend="tpu")\n',
    )


@pytest.mark.parametrize(
    "text",
    [
        'os.environ["XLA_USE_BF16"] = "1"\n',
        'os.environ["XLA_DOWNCAST_BF16"] = "1"\n',
        'os.environ.setdefault("XLA_USE_BF16", "1")\n',
        'os.environ.update({"XLA_USE_BF16": "1"})\n',
        'os.environ.update(XLA_USE_BF16="1")\n',
        'bf16 = os.environ.get("XLA_USE_BF16")\n',
        'bf16 = os.getenv("XLA_USE_BF16", "0")\n',
        'subprocess.run(cmd, env={**os.environ, "XLA_USE_BF16": "1"})\n',
    ],
)
def test_a_variable_that_changes_numbers_is_never_silently_removed(text):
    result = migrate("import os\n" + text, Settings(comments=False))
    assert text.encode() in result.new
    assert codes(result.findings)


def test_a_variable_that_chose_the_device_goes():
    assert_rewritten('import os\nos.environ["PJRT_DEVICE"] = "TPU"\ngo(os)\n', "import os\ngo(os)\n")
    assert_rewritten(
        'import os\nos.environ.setdefault("PJRT_DEVICE", "TPU")\ngo(os)\n', "import os\ngo(os)\n"
    )


def test_a_variable_that_chose_another_device_stays_with_a_finding():
    result = migrate('import os\nos.environ["PJRT_DEVICE"] = "CPU"\n', Settings(comments=False))
    assert b'"CPU"' in result.new
    assert codes(result.findings)


@pytest.mark.parametrize(
    "text",
    [
        'm = importlib.import_module("torch_xla.core.xla_model")\n',
        'm = __import__("torch_xla")\n',
        'xla = sys.modules.get("torch_xla")\n',
        'mock.patch("torch_xla.core.xla_model.mark_step")\n',
        'REQUIRES = ["torch", "torch_xla"]\n',
        'm = importlib.import_module("optimum.tpu.modeling")\n',
        'x = "optimum.tpu"\n',
    ],
)
def test_a_module_named_in_a_string_is_found(text):
    assert_unchanged(text, open=["TX121"])
