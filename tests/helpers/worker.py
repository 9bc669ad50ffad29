"""Runs inside the native environment: the helpers through scenarios or checks; prints what came out as JSON.

    python -m helpers.worker scenarios          what each scenario gave
    python -m helpers.worker together|alone     for each check "", or the traceback of its failure

In a process group if RANK is set.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import traceback
import types
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from helpers.values import encode

HELPERS = Path(__file__).resolve().parent.parent.parent / "rules" / "helpers"


def load() -> types.SimpleNamespace:
    """Return every function and class of rules/helpers/, each executed as it stands, by name."""
    side = types.SimpleNamespace(SUM=dist.ReduceOp.SUM, device=torch.device("cpu"))
    package = types.ModuleType("helper_files")  # helpers import each other as modules of a package
    package.__path__ = [str(HELPERS)]
    sys.modules[package.__name__] = package
    for path in sorted(HELPERS.glob("*.py")):
        module = importlib.import_module(f"{package.__name__}.{path.stem}")
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__:
                setattr(side, name, value)
    return side


def functions(module: types.ModuleType) -> dict[str, Callable[[Any], Any]]:
    """The functions of a module that take a side, in the order they stand in."""
    own = [value for value in vars(module).values() if inspect.isfunction(value)]
    found = [value for value in own if [*inspect.signature(value).parameters] == ["side"]]
    return {function.__name__: function for function in found}


def attempt(function: Callable[[Any], Any], side: types.SimpleNamespace) -> tuple[Any, str]:
    """What a function gave, and the traceback if it raised."""
    try:
        return function(side), ""
    except Exception:
        return None, traceback.format_exc()


def main() -> None:
    what = sys.argv[1]
    side = load()
    if "RANK" in os.environ:
        dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    chosen = functions(importlib.import_module(f"helpers.{what}"))
    results: dict[str, Any] = {}
    for name, function in chosen.items():
        value, failure = attempt(function, side)
        results[name] = encode(value) if what == "scenarios" and not failure else failure
        if failure and what == "together":
            break  # the other ranks may wait in a collective this one never came to
    print("\n" + json.dumps(results), flush=True)
    os._exit(0)  # a group whose ranks parted in the middle would hang here


if __name__ == "__main__":
    main()
