"""What a rule emits exists in the real torch_tpu, beside the torch it is made for, and may be called.

The names are resolved in an environment of their own (.venv-tpu, built by ``make`` once). torch_tpu imports
there without a TPU, as long as libtpu is installed; the device itself can't be used, which nothing here needs.
``TPU_MIGRATE_TPU_PYTHON`` names the Python of another environment that has it.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.tpu_environment import find_tpu_python
from tpu_migrate.rules import load_rules

# What torch_tpu 0.2.0 refuses from any caller outside torch, and what it names instead.
REFUSED = {
    "torch.tpu.is_available": "torch.accelerator.is_available",
    "torch.tpu.device_count": "torch.accelerator.device_count",
    "torch.tpu.current_device": "torch.accelerator.current_device_index",
    "torch.tpu.set_device": "torch.accelerator.set_device_index",
    "torch.tpu.synchronize": "torch.accelerator.synchronize",
    "torch.tpu.current_stream": "torch.accelerator.current_stream",
    "torch.tpu.set_stream": "torch.accelerator.set_stream",
    "torch.tpu.device": "torch.accelerator.device_index",
    "torch.tpu.get_rng_state": "torch.accelerator.random.get_rng_state",
    "torch.tpu.initial_seed": "torch.accelerator.random.initial_seed",
}
# torch_tpu 0.2.0 points to them, and torch 2.13.0 doesn't have them: nothing may be sent there.
MISSING = {"torch.accelerator.random.get_rng_state", "torch.accelerator.random.initial_seed"}

RESOLVE = """
def resolve(name):
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for end in range(2, len(parts) + 1):
        if name == "torch.tpu.default_generators" and end == len(parts):
            assert parts[-1] in dir(found)
            return None  # reading it waits for a chip
        try:
            found = getattr(found, parts[end - 1])
        except AttributeError:
            found = importlib.import_module(".".join(parts[:end]))
    return found
"""

UNRESOLVED = """
for name in given:
    try:
        resolve(name)
    except Exception as error:
        answer[name] = f"{type(error).__name__}: {error}"
"""

CALLED = """
arguments = {"torch.tpu.set_device": [0], "torch.tpu.set_stream": [None], "torch.tpu.device": [0]}
for name in given:
    try:
        resolve(name)(*arguments.get(name, []))
    except Exception as error:
        answer[name] = f"{type(error).__name__}: {error}"
    else:
        answer[name] = "was allowed"
"""

INTERNAL = """
import inspect
module = torch.tpu.current_device.__self__
for name in dir(module):
    held = inspect.getattr_static(module, name)
    held = getattr(held, "__func__", held)
    if str(getattr(held, "__tt_api_stage__", "")) == "Internal" and not name.startswith("_"):
        answer[f"torch.tpu.{name}"] = held.__tt_api_prefer__
"""


@pytest.fixture(scope="module")
def tpu_python() -> str:
    """The Python of an environment with torch and the real torch_tpu."""
    return find_tpu_python()


def ask(python: str, question: str, given: list[str]) -> dict[str, str]:
    """Run a question over the given names in the other environment, as user code; its answers by name."""
    script = "\n".join(
        (
            "import importlib, json, sys, torch",
            RESOLVE,
            "given, answer = json.load(sys.stdin), {}",
            question,
            "print('\\n' + json.dumps(answer))",
        )
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
    done = subprocess.run(
        [python, "-c", script],
        env=environment,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,  # some attributes of torch.tpu wait for a chip
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def emitted() -> set[str]:
    return load_rules().emitted_names()


def test_the_rules_emit_what_a_migrated_program_cannot_do_without(emitted: set[str]) -> None:
    assert {"torch.device", "torch.accelerator.synchronize", "torch.distributed.get_rank"} <= emitted


def test_no_rule_emits_what_torch_tpu_refuses(emitted: set[str]) -> None:
    assert emitted.isdisjoint(REFUSED.keys() | MISSING)
    inside = {name for name in emitted if any(name.startswith(f"{refused}.") for refused in REFUSED)}
    assert inside == set()


@pytest.mark.slow
def test_the_environment_is_the_one_that_is_meant(tpu_python: str) -> None:
    question = """
from importlib.metadata import version
answer = {name: version(name).partition("+")[0] for name in given}
"""
    assert ask(tpu_python, question, ["torch", "torch_tpu"]) == {"torch": "2.13.0", "torch_tpu": "0.2.0"}


@pytest.mark.slow
def test_a_name_that_does_not_exist_is_noticed(tpu_python: str) -> None:
    given = [
        "torch.accelerator.synchronize",
        "torch.distributed.get_rank",
        "torch.tpu.distributed.set_tpu_launch_env",
        "torch.tpu.empty_cache",
        "torch.nosuch.thing",
        *MISSING,
    ]
    unresolved = ask(tpu_python, UNRESOLVED, given)
    assert unresolved.keys() == {"torch.tpu.empty_cache", "torch.nosuch.thing", *MISSING}


@pytest.mark.slow
def test_every_name_that_a_rule_emits_exists(tpu_python: str, emitted: set[str]) -> None:
    assert ask(tpu_python, UNRESOLVED, sorted(emitted)) == {}


@pytest.mark.slow
def test_the_refused_calls_raise_and_name_their_successor(tpu_python: str) -> None:
    answers = ask(tpu_python, CALLED, list(REFUSED))
    assert answers.keys() == REFUSED.keys()
    for name, instead in REFUSED.items():
        assert answers[name].startswith("RuntimeError: "), f"{name}: {answers[name]}"
        assert f"Use {instead} instead." in answers[name], f"{name}: {answers[name]}"


@pytest.mark.slow
def test_the_table_of_refused_calls_is_complete(tpu_python: str) -> None:
    assert ask(tpu_python, INTERNAL, []) == REFUSED


@pytest.mark.slow
def test_the_successors_exist_where_we_say_so(tpu_python: str) -> None:
    unresolved = ask(tpu_python, UNRESOLVED, sorted(REFUSED.values()))
    assert unresolved.keys() == MISSING
