"""Helper functions: read from rules/helpers, and fitted to the file that gets them."""

import ast

import pytest

from tpu_migrate.python.helpers import first_line, fit, load_helper
from tpu_migrate.rules import rules_directory

from .check import migrate

DIRECTORY = rules_directory() / "helpers"
NAMES = sorted(path.stem for path in DIRECTORY.glob("*.py"))
XM = "import torch_xla.core.xla_model as xm\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_helper_is_read_and_written_back_whole(name):
    helper = load_helper(DIRECTORY, name)
    table = {qualified: local for local, qualified in helper.imported}

    def spell(qualified: str) -> str:
        for known, local in sorted(table.items(), reverse=True):
            if qualified == known or qualified.startswith(known + "."):
                return local + qualified[len(known) :]
        raise AssertionError(qualified)

    assert fit(helper, helper.name, spell, "    ", "\n", {}) == helper.body
    assert first_line(helper)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("indent", "newline"), [("\t", "\n"), ("  ", "\r\n")])
def test_a_helper_takes_the_files_indentation_and_newlines(name, indent, newline):
    helper = load_helper(DIRECTORY, name)
    text = fit(helper, "renamed", lambda qualified: "spelt." + qualified, indent, newline, {})
    module = ast.parse(text)
    assert module.body[-1].name == "renamed"  # type: ignore[attr-defined]
    assert (newline == "\r\n") == ("\r\n" in text)
    assert text.count("\r\n") == (text.count("\n") if newline == "\r\n" else 0)
    for line in text.splitlines():
        assert indent != "\t" or not line.startswith("    ")


def test_a_missing_helper_is_an_error():
    with pytest.raises(FileNotFoundError):
        load_helper(DIRECTORY, "nothing_of_the_kind")


def test_a_helper_is_written_once_for_all_its_uses():
    new = migrate(f"{XM}xm.save(a, b)\nxm.save(c, d)\n").new.decode()
    assert new.count("def save(") == 1


def test_several_helpers_stand_in_alphabetical_order_two_lines_apart():
    new = migrate(f"{XM}xm.save(a, b)\nxm.broadcast_master_param(m)\n").new.decode()
    assert new.index("def broadcast_parameters(") < new.index("def save(")
    assert "\n\n\ndef save(" in new
    assert new.endswith("\n\n\nsave(a, b)\nbroadcast_parameters(m)\n")


def test_a_helper_stands_behind_the_imports_and_before_the_code():
    new = migrate(f"import a\n\n{XM}import b\n\nX = 1\nxm.save(X, b)\n").new.decode()
    assert new.index("import b") < new.index("def save(") < new.index("X = 1")


def test_a_helper_stands_behind_guarded_imports_too():
    new = migrate(
        f"{XM}try:\n    import apex\nexcept ImportError:\n    apex = None\n\nxm.save(X, b)\n"
    ).new.decode()
    assert new.index("apex = None") < new.index("def save(")


def test_a_second_run_does_not_bring_the_helper_again():
    first = migrate(f"{XM}xm.save(a, b)\n").new
    more = first + XM.encode() + b"xm.save(c, d)\n"
    new = migrate(more).new.decode()
    compile(new, "new", "exec")
    assert new.count("def save(") == 1 or new.count("def _save(") == 1


def test_a_helper_that_is_there_already_is_used():
    first = migrate(f"{XM}xm.save(a, b)\n").new
    new = migrate(first + XM.encode() + b"xm.save(c, d)\n").new.decode()
    assert new.count("\n    torch.save") + new.count("        torch.save") == 1
    assert new.endswith("save(a, b)\nsave(c, d)\n")


def test_a_helper_stands_before_its_first_use_where_imports_follow():
    new = migrate(
        "import torch_xla.distributed.parallel_loader as pl\nloader = pl.MpDeviceLoader(a, b)\nimport json\n"
    ).new.decode()
    assert new.index("class DeviceLoader") < new.index("loader = DeviceLoader(a, b)")


def test_a_helper_stands_before_a_first_statement_that_becomes_two():
    new = migrate(f"{XM}xm.optimizer_step(o)\n", kind="multi-process").new.decode()
    assert new.index("def average_gradients") < new.index("\naverage_gradients(o)\no.step()\n")
