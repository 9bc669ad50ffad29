"""Nothing of torch_xla is passed over: every symbol of its releases, in four import forms, called and as a value.

Many symbols share a file, a function each, so that the whole inventory takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from python.check import migrate

from benchmarks.silence import lost_names, parses, silent_references
from tpu_migrate.findings import Finding, Outcome

LIST = Path(__file__).parent.parent / "data" / "torch_xla_symbols.txt"
A_FILE = 100


def symbols() -> list[str]:
    """Dotted names. Of a prefix (``a.b.*``), a name below it that nobody listed."""
    found = []
    for line in LIST.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name = line.split()[0]
            found.append(name.replace("*", "something_else") if name.endswith(".*") else name)
    return found


SYMBOLS = symbols()
CHUNKS = [SYMBOLS[start : start + A_FILE] for start in range(0, len(SYMBOLS), A_FILE)]


def module_as(module: str, last: str) -> tuple[str, str]:
    return f"import {module} as m", f"m.{last}"


def from_package(module: str, last: str) -> tuple[str, str]:
    package, _, name = module.rpartition(".")
    return (
        (f"from {package} import {name}", f"{name}.{last}")
        if package
        else (f"import {module}", f"{module}.{last}")
    )


def from_module(module: str, last: str) -> tuple[str, str]:
    return f"from {module} import {last}", last


def dotted(module: str, last: str) -> tuple[str, str]:
    return f"import {module}", f"{module}.{last}"


FORMS: list[Callable[[str, str], tuple[str, str]]] = [module_as, from_package, from_module, dotted]


def program(chunk: list[str], form: Callable[[str, str], tuple[str, str]]) -> str:
    """A file with three functions for each symbol: two call it, one passes it on."""
    lines = []
    for number, symbol in enumerate(chunk):
        module, _, last = symbol.rpartition(".")
        if not module:
            module, last = symbol, "__name__"
        statement, use = form(module, last)
        lines += [
            f"def called_{number}(argument):",
            f"    {statement}",
            f"    return {use}(argument)",
            "",
            f"def empty_{number}():",
            f"    {statement}",
            f"    {use}()",
            "",
            f"def passed_{number}(receive):",
            f"    {statement}",
            f"    receive({use})",
            "",
        ]
    return "\n".join(lines)


FILES = [
    pytest.param(form, chunk, id=f"{form.__name__}-{number}")
    for form in FORMS
    for number, chunk in enumerate(CHUNKS)
]


@pytest.mark.parametrize(("form", "chunk"), FILES)
def test_every_symbol_has_an_outcome(form, chunk):
    before = program(chunk, form)
    result = migrate(before, kind="multi-process")
    after = result.new.decode()
    assert not [f for f in result.findings if f.code.startswith("PY")], result.findings
    assert parses(after)
    assert silent_references(after, result.findings) == []
    assert lost_names(before, after) == []
    again = migrate(after, kind="multi-process")
    assert again.new == result.new
    assert _standing(again.findings) == _standing(result.findings)


def _standing(findings: list[Finding]) -> list[tuple[object, ...]]:
    return [
        (finding.code, finding.line, finding.column, finding.message)
        for finding in findings
        if finding.outcome is not Outcome.REWRITTEN
    ]


@pytest.mark.parametrize("kind", ["single-process", "spmd", "library"])
def test_every_symbol_has_an_outcome_in_every_kind_of_program(kind):
    for chunk in CHUNKS:
        result = migrate(program(chunk, module_as), kind=kind)
        assert silent_references(result.new.decode(), result.findings) == []


def test_the_inventory_is_whole():
    assert len(SYMBOLS) > 1200
    assert len(set(SYMBOLS)) == len(SYMBOLS)
