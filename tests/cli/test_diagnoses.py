"""Which environments work, and what is said of those that don't."""

from __future__ import annotations

import pytest

from tpu_migrate.cli.diagnoses import Environment, Package, diagnose, release, requirement, satisfies

TORCH_TPU = Package(
    "0.2.0",
    ("numpy>=2", "libtpu>=0.0.50", "torch>=2.11.0,<=2.15.0"),
    ">=3.11",
    "github.com/google-pytorch/torch_tpu",
)


def environment(
    python: str = "3.12.1", variables: dict[str, str] | None = None, **packages: str | Package
) -> Environment:
    found = {
        name.replace("optimum_tpu", "optimum-tpu"): Package(value) if isinstance(value, str) else value
        for name, value in packages.items()
    }
    return Environment(python, "/env/bin/python", found, variables or {})


def new_side(**changes) -> Environment:
    return environment(**{"torch": "2.13.0", "torch_tpu": TORCH_TPU, "libtpu": "0.0.51", **changes})


def ids(env: Environment, fatal: bool = True) -> list[str]:
    return [problem.id for problem in diagnose(env) if problem.fatal is fatal]


def test_good_environments_have_no_problem():
    assert diagnose(environment()) == []
    assert diagnose(environment(torch="2.13.0")) == []
    assert diagnose(new_side()) == []
    assert diagnose(environment(torch="2.9.0+cpu", torch_xla="2.9.0", transformers="4.50.0")) == []
    assert diagnose(new_side(accelerate="1.15.0", variables={"ACCELERATE_TORCH_DEVICE": "tpu"})) == []
    assert diagnose(new_side(accelerate="1.16.0")) == []


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        (environment(torch_xla="2.9.0"), "torch-xla-without-torch"),
        (environment(torch="2.13.0", torch_xla="2.9.0"), "torch-xla-wrong-torch"),
        (new_side(torch_xla="2.9.0"), "torch-xla-beside-torch-tpu"),
        (new_side(torch="2.10.0"), "torch-tpu-needs-torch"),
        (new_side(torch="2.16.0"), "torch-tpu-needs-torch"),
        (new_side(python="3.10.14"), "torch-tpu-python"),
        (new_side(libtpu="0.0.49"), "torch-tpu-needs-libtpu"),
        (environment(torch="2.13.0", torch_tpu=TORCH_TPU), "torch-tpu-without-libtpu"),
        (environment(libtpu="0.0.50", torch_tpu=TORCH_TPU), "torch-tpu-without-torch"),
        (new_side(torch_tpu=Package("2.1.0", about="SOPHGO")), "other-torch-tpu"),
        (new_side(accelerate="1.15.0"), "accelerate-without-tpu"),
        (new_side(variables={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}), "autoload-off"),
        (new_side(variables={"XLA_USE_BF16": "1"}), "xla-use-bf16"),
        (
            environment(transformers="5.24.0", optimum_tpu=Package("0.2.3", ("transformers==4.49.0",))),
            "optimum-tpu-needs-transformers",
        ),
        (
            environment(jax=Package("0.10.2", ("jaxlib<=0.10.2,>=0.10.2",)), jaxlib="0.9.0"),
            "jax-needs-jaxlib",
        ),
    ],
)
def test_what_cannot_work_is_a_problem(env, problem):
    assert ids(env) == [problem]


@pytest.mark.parametrize(
    ("env", "note"),
    [
        (new_side(transformers="4.57.0"), "transformers-without-tpu"),
        (new_side(variables={"PJRT_DEVICE": "TPU"}), "pjrt-device"),
        (new_side(variables={"TORCH_TPU_ALLOW_LEGACY_DEVICE_APIS": "1"}), "legacy-device-apis"),
        (environment(variables={"XLA_USE_BF16": "1"}), "xla-use-bf16"),
        (new_side(optimum_tpu="0.2.3"), "optimum-tpu-beside-torch-tpu"),
    ],
)
def test_what_is_worth_knowing_is_a_note(env, note):
    assert ids(env) == []
    assert ids(env, fatal=False) == [note]


def test_both_sides_in_one_place_are_told_with_the_way_out():
    (problem,) = diagnose(new_side(torch_xla="2.9.0", transformers="5.24.0"))
    assert problem.text == (
        "torch_xla 2.9.0 (needs torch 2.9) and torch_tpu 0.2.0 are both here. torch here is 2.13.0, so torch_xla "
        "will not import. torch_xla merely installed switches transformers 5.24.0 to XLA."
    )
    assert problem.do[0] == ("Keep the new side here", "pip uninstall torch_xla")


def test_a_switched_off_variable_is_no_problem():
    assert diagnose(new_side(variables={"XLA_USE_BF16": "0"})) == []
    off = {"USE_TORCH_XLA": "0"}
    (problem,) = diagnose(new_side(torch_xla="2.9.0", transformers="5.24.0", variables=off))
    assert "switches" not in problem.text


def test_problems_come_before_notes():
    found = diagnose(new_side(variables={"PJRT_DEVICE": "TPU", "XLA_USE_BF16": "1"}, accelerate="1.15.0"))
    assert [problem.fatal for problem in found] == [True, True, False]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("torch>=2.11,<=2.15", ">=2.11,<=2.15"),
        ("torch (>=2.11)", ">=2.11"),
        ("Torch [extra] == 2.9.*", "==2.9.*"),
        ("torch", ""),
        ("torch>=2; extra == 'dev'", ""),
        ("torchvision>=0.1", ""),
    ],
)
def test_requirements_are_read(line, wanted):
    assert requirement(Package("1", (line,)), "torch") == wanted


@pytest.mark.parametrize(
    ("version", "wanted", "met"),
    [
        ("2.13.0+cpu", ">=2.11.0,<=2.15.0", True),
        ("2.15.1", "<=2.15.0", False),
        ("2.9", "==2.9.0", True),
        ("2.9.1", "==2.9.*", True),
        ("2.10.0", "!=2.10.*", False),
        ("2.9.5", "~=2.9.1", True),
        ("2.10", "~=2.9.1", False),
        ("4.50.1", ">4.50,<5", True),
        ("1.0", "@ file:///x", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_as_pip_does(version, wanted, met):
    assert satisfies(version, wanted) is met


def test_a_release_is_the_numbers_at_the_front():
    assert release("2.13.0rc1+cpu") == (2, 13, 0)
    assert release("unknown") == ()
