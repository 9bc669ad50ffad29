"""Guarded imports: ``try: import torch_xla`` becomes a test for the device where a flag told the result."""

import pytest

from tpu_migrate.config import Settings

from .check import assert_rewritten, assert_unchanged, migrate

AVAILABLE = 'torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "tpu"'


@pytest.mark.parametrize(
    "guard",
    [
        "try:\n    import torch_xla\n    HAS = True\nexcept ImportError:\n    HAS = False\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept (ImportError, ModuleNotFoundError):\n    HAS = False\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept ImportError as e:\n    HAS = False\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept Exception:\n    HAS = False\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept:\n    HAS = False\n",
        "try:\n    import torch_xla\nexcept ImportError:\n    HAS = False\nelse:\n    HAS = True\n",
        "try:\n    HAS = True\n    import torch_xla\n    import torch_xla.core.xla_model as xm\nexcept ImportError:\n    HAS = False\n",
        "try: import torch_xla; HAS = True\nexcept ImportError: HAS = False\n",
        "try:\n    from torch_xla.core import xla_model as xm\n    HAS = True\nexcept ImportError:\n    xm = None\n    HAS = False\n",
    ],
)
def test_a_flag_becomes_a_test_for_the_device(guard):
    assert_rewritten(
        f"import torch\n{guard}\nif HAS:\n    go()\n",
        f"import torch\nHAS = {AVAILABLE}\n\nif HAS:\n    go()\n",
    )


def test_a_flag_that_says_no_keeps_its_meaning():
    result = migrate(
        """
        import torch
        try:
            import torch_xla
            NO_TPU = False
        except ImportError:
            NO_TPU = True
        """
    )
    assert result.new.decode() == f"import torch\nNO_TPU = not ({AVAILABLE})\n"


def test_a_flag_of_device_agnostic_code_asks_for_any_accelerator():
    assert_rewritten(
        "import torch\ntry:\n    import torch_xla\n    HAS = True\nexcept ImportError:\n    HAS = False\n",
        "import torch\nHAS = torch.accelerator.is_available()\n",
        settings=Settings(device="accelerator"),
    )


def test_two_flags_become_two_tests():
    assert_rewritten(
        "import torch\ntry:\n    import torch_xla\n    A = True\n    B = True\nexcept ImportError:\n    A = False\n    B = False\n",
        f"import torch\nA = {AVAILABLE}\nB = {AVAILABLE}\n",
    )


def test_a_guard_inside_a_function_keeps_its_place():
    result = migrate(
        """
        def has_tpu():
            try:
                import torch_xla
                found = True
            except ImportError:
                found = False
            return found
        """
    )
    assert f"    found = {AVAILABLE}\n    return found\n".encode() in result.new


@pytest.mark.parametrize(
    "handler", ["pass", "raise SystemExit('no TPU')", "print('no TPU')\n    sys.exit(1)"]
)
def test_a_guard_without_flag_goes(handler):
    assert_rewritten(f"try:\n    import torch_xla\nexcept ImportError:\n    {handler}\nx = 1\n", "x = 1\n")


def test_other_imports_of_a_guard_stay_in_it():
    assert_rewritten(
        """
        try:
            import torch_xla
            import apex
        except ImportError:
            apex = None
        """,
        """
        try:
            import apex
        except ImportError:
            apex = None
        """,
    )


def test_names_of_a_guarded_import_that_goes_with_its_flag():
    assert_rewritten(
        """
        import torch
        try:
            import torch_xla.core.xla_model as xm
            HAS = True
        except ImportError:
            HAS = False

        def device():
            if HAS:
                return xm.xla_device()
            return torch.device("cpu")
        """,
        f"""
        import torch
        HAS = {AVAILABLE}

        def device():
            if HAS:
                return torch.device("tpu")
            return torch.device("cpu")
        """,
    )


@pytest.mark.parametrize(
    "guard",
    [
        "try:\n    import torch_xla\nexcept ImportError:\n    print('no TPU')\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept ImportError:\n    HAS = False\nfinally:\n    go()\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept ValueError:\n    HAS = False\n",
        "try:\n    import torch_xla\n    HAS = True\nexcept ImportError:\n    HAS = True\n",
        "try:\n    import torch_xla\nexcept ImportError:\n    HAS = False\n",
    ],
)
def test_a_guard_that_does_more_than_set_a_flag_stays_with_a_finding(guard):
    assert_unchanged(guard, open=["TX990"])


def test_a_guard_stays_while_something_open_uses_its_import():
    guard = "try:\n    import torch_xla.core.xla_model as xm\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
    assert_unchanged(f"{guard}d = xm.xla_device(1)\n", open=["TX101", "TX990"])


@pytest.mark.parametrize(
    ("test", "becomes"),
    [
        ("xm is not None", AVAILABLE),
        ("xm is None", f"not ({AVAILABLE})"),
        ("xm", AVAILABLE),
        ("not xm", f"not ({AVAILABLE})"),
        ("a and xm is not None", f"a and ({AVAILABLE})"),
    ],
)
def test_a_module_that_is_the_flag_becomes_a_test_for_the_device(test, becomes):
    assert_rewritten(
        f"""
        import torch
        try:
            import torch_xla.core.xla_model as xm
        except ImportError:
            xm = None
        if {test}:
            go()
        """,
        f"""
        import torch
        if {becomes}:
            go()
        """,
    )


def test_comments_in_a_guard_are_kept():
    result = migrate(
        """
        import torch
        try:
            # TPU
            import torch_xla
            HAS = True  # found
        except ImportError:  # CPU run
            HAS = False
        """
    )
    assert b"# TPU" in result.new
    assert b"# found" in result.new
    assert b"# CPU run" in result.new
