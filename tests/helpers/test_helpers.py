"""The helpers do what torch_xla's functions did: see the package's docstring for how that is known."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.processes import REPOSITORY, run_ranks

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.slow


def names(module: str) -> list[str]:
    """The functions of a module that take a side; read, not imported: torch is not in this environment."""
    tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.args) == "side"
    ]


@cache
def results(module: str, ranks: int) -> list[dict[str, Any]]:
    """What each rank found, of one run for all tests."""
    outputs = run_ranks(["-m", "helpers.worker", module], ranks)
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def nearly(found: Any, expected: Any) -> bool:
    """Whether two encoded values are equal, but for the last bits of floats."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return found.keys() == expected.keys() and all(nearly(found[key], expected[key]) for key in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(nearly, found, expected))
    if isinstance(expected, float) and isinstance(found, (int, float)):
        return found == pytest.approx(expected, rel=1e-6, abs=1e-7)
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize("name", names("scenarios"))
@pytest.mark.parametrize("ranks", [0, 1], ids=["no group", "a group of one"])
def test_a_helper_gives_what_torch_xla_gave(name: str, ranks: int) -> None:
    (found,) = results("scenarios", ranks)
    assert nearly(found[name], GOLDEN["scenarios"][name]), (found[name], GOLDEN["scenarios"][name])


def test_what_was_recorded_is_what_is_run() -> None:
    assert sorted(GOLDEN["scenarios"]) == sorted(names("scenarios"))


def test_no_gradient_flowed_through_torch_xla_on_two_ranks() -> None:
    assert GOLDEN["gradient_on_two_ranks"] == {"all_reduce": False, "all_gather": False}


@pytest.mark.parametrize("name", names("alone"))
def test_a_helper_alone(name: str) -> None:
    (found,) = results("alone", 0)
    assert found[name] == "", found[name]


@pytest.mark.parametrize("name", names("together"))
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_helper_on_several_ranks(name: str, ranks: int) -> None:
    for rank, found in enumerate(results("together", ranks)):
        assert name in found, f"rank {rank} stopped at {[*found][-1]}: {[*found.values()][-1]}"
        assert found[name] == "", f"rank {rank}: {found[name]}"


def test_every_helper_is_run() -> None:
    texts = " ".join(
        (HERE / f"{module}.py").read_text(encoding="utf-8") for module in ("scenarios", "alone", "together")
    )
    for path in (REPOSITORY / "rules" / "helpers").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        public = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        public = [name for name in public if not name.startswith("_")]
        assert public, path
        for name in public:
            assert f"side.{name}" in texts or name == "launch", f"{name} is in no scenario and no check"
