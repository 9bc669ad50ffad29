"""``torch_xla.compile`` of functions, blocks and decorators."""

import pytest

from ..check import assert_rewritten, assert_unchanged

HEAD = "import torch\nimport torch_xla\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f = torch_xla.compile(g)\n", "f = torch.compile(g)\n"),
        ("f = torch_xla.compile(g, name='g')\n", "f = torch.compile(g)\n"),
        ("f = torch_xla.compile(g, False)\n", "f = torch.compile(g)\n"),
        ("f = torch_xla.compile(m.forward)\n", "f = torch.compile(m.forward)\n"),
        (
            "def g(x):\n    return x + 1\nf = torch_xla.compile(g, full_graph=True)\n",
            "def g(x):\n    return x + 1\nf = torch.compile(g, fullgraph=True)\n",
        ),
        (
            "def g(x):\n    x.backward()\nf = torch_xla.compile(g, full_graph=True)\n",
            "def g(x):\n    x.backward()\nf = torch.compile(g)\n",
        ),
        ("@torch_xla.compile()\ndef g(x):\n    return x\n", "@torch.compile\ndef g(x):\n    return x\n"),
        ("with torch_xla.compile():\n    f()\n", "f()\n"),
    ],
)
def test_dynamo_compiles_functions_and_blocks_run_eagerly(before, after):
    assert_rewritten(HEAD + before, f"import torch\n{after}")


def test_a_bare_decorator_is_a_use_like_any_other():
    assert_rewritten(
        f"{HEAD}@torch_xla.compile\ndef g(x):\n    return x\n",
        "import torch\n@torch.compile\ndef g(x):\n    return x\n",
    )


def test_a_compiled_function_is_no_context_manager():
    assert_unchanged("import torch_xla\nwith torch_xla.compile(f) as g:\n    g()\n", open=["TX210", "TX990"])
