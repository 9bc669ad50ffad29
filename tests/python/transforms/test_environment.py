"""Environment variables set from Python."""

import pytest

from tpu_migrate.config import Settings

from ..check import assert_rewritten, migrate


@pytest.mark.parametrize(
    "statement",
    [
        'os.environ["PJRT_DEVICE"] = "TPU"\n',
        "os.environ['PJRT_DEVICE'] = 'TPU'\n",
        'environ["PJRT_DEVICE"] = "TPU"\n',
        'os.environ.setdefault("PJRT_DEVICE", "TPU")\n',
        'os.putenv("PJRT_DEVICE", "TPU")\n',
        'os.environ.pop("PJRT_DEVICE", None)\n',
        'del os.environ["PJRT_DEVICE"]\n',
    ],
)
def test_setting_the_device_goes(statement):
    assert_rewritten(f"import os\n{statement}f(os)\n", "import os\nf(os)\n")


@pytest.mark.parametrize(
    "statement",
    [
        'x = os.environ["PJRT_DEVICE"]\n',
        'if os.environ.get("PJRT_DEVICE") == "TPU":\n    f()\n',
        'x = os.environ.pop("PJRT_DEVICE")\n',
        'os.environ["PJRT_DEVICE"] = "CPU"\n',
        'os.environ["PJRT_DEVICE"] = device\n',
        'a = os.environ["PJRT_DEVICE"] = "TPU"\n',
        'env = {"PJRT_DEVICE": "TPU"}\n',
    ],
)
def test_a_variable_that_is_read_or_set_otherwise_stays_with_a_finding(statement):
    result = migrate(f"import os\n{statement}", Settings(comments=False))
    assert result.new.decode() == f"import os\n{statement}"
    assert result.findings


def test_a_del_of_several_keeps_the_others():
    new = migrate('import os\ndel os.environ["PJRT_DEVICE"], cache["a"]\n').new.decode()
    assert 'cache["a"]' in new


def test_an_import_that_only_the_dropped_line_used_goes_with_it():
    assert_rewritten('import os\nimport sys\nos.environ["PJRT_DEVICE"] = "TPU"\nf()\n', "import sys\nf()\n")
