"""``tpu-migrate doctor``: what is installed, what can't live together, and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tpu_migrate.cli.diagnoses import Environment, Problem


@click.command(
    short_help="Say what is installed, what can't live together, and what to do.",
    epilog="Exit codes: 0 nothing is wrong; 1 there are problems; 2 wrong use or failure.",
)
@click.option(
    "--python", "executable", metavar="EXE", help="Look at this interpreter's environment, not at ours."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json"]),
    default="terminal",
    help="The kind of report.",
)
def doctor(executable: str | None, form: str) -> int:
    """Say what is installed (torch, torch_xla, torch_tpu, jax, libtpu ...) and what can't live together.

    Only package metadata is read: nothing of what is installed is imported.
    """
    from tpu_migrate.cli.diagnoses import diagnose

    environment = look(executable)
    problems = diagnose(environment)
    if form == "json":
        import json

        click.echo(json.dumps(_data(environment, problems), indent=2))
    else:
        from tpu_migrate.cli.group import terminal_width

        click.echo("\n".join(_lines(environment, problems, terminal_width(), own=executable is None)))
    return 1 if any(problem.fatal for problem in problems) else 0


def look(executable: str | None) -> Environment:
    """What is installed for an interpreter; None is the one that runs this.

    Raises:
        click.UsageError: it can't be run, or is older than Python 3.8.
    """
    from tpu_migrate.cli import probe
    from tpu_migrate.cli.diagnoses import VARIABLES, Environment, Package

    found: Any = probe.probe() if executable is None else _ask(executable, probe.__file__)
    packages = {
        name: Package(
            version=data["version"],
            requires=tuple(data["requires"]),
            requires_python=data["requires_python"],
            about=data["about"],
        )
        for name, data in found["packages"].items()
    }
    variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return Environment(found["python"], found["executable"], packages, variables)


def _ask(executable: str, script: str) -> Any:
    import json
    import subprocess

    try:
        done = subprocess.run([executable, script], capture_output=True, text=True, timeout=60, check=False)
        # Start-up files of the environment may print; the answer is the last line.
        return (
            json.loads(done.stdout.strip().split("\n")[-1])
            if done.returncode == 0
            else _refuse(executable, done.stderr)
        )
    except OSError as error:
        return _refuse(executable, error.strerror or str(error))
    except subprocess.TimeoutExpired:
        return _refuse(executable, "it gave no answer within 60 seconds")
    except ValueError:
        return _refuse(executable, "its answer makes no sense")


def _refuse(executable: str, why: str) -> Any:
    last = why.strip().split("\n")[-1]
    raise click.UsageError(
        f"--python {executable}: {last}.\n"
        "  Name a Python interpreter, 3.8 or newer, such as .venv/bin/python."
    )


def _data(environment: Environment, problems: Sequence[Problem]) -> dict[str, Any]:
    from tpu_migrate import __version__
    from tpu_migrate.cli.probe import PACKAGES

    return {
        "version": 1,
        "tool": {"name": "tpu-migrate", "version": __version__},
        "python": {"version": environment.python, "executable": environment.executable},
        "packages": {
            name: environment.packages[name].version if name in environment.packages else None
            for name in PACKAGES
        },
        "variables": dict(environment.variables),
        "problems": [
            {
                "id": problem.id,
                "severity": "problem" if problem.fatal else "note",
                "text": problem.text,
                "do": [{"for": purpose, "command": command} for purpose, command in problem.do],
            }
            for problem in problems
        ],
    }


def _lines(environment: Environment, problems: Sequence[Problem], width: int, own: bool) -> list[str]:
    import textwrap

    from tpu_migrate.cli.probe import PACKAGES
    from tpu_migrate.report.summary import counted
    from tpu_migrate.report.text import visible

    lines = [f"Python {environment.python}  {visible(environment.executable)}"]
    for name in PACKAGES:
        package = environment.packages.get(name)
        lines.append(f"  {name:<13} {visible(package.version) if package else '-'}")
    for name, value in environment.variables.items():
        lines.append(f"  {name}={visible(value)}")
    for problem in problems:
        lines.append("")
        mark = "problem: " if problem.fatal else "note: "
        lines += textwrap.wrap(
            visible(mark + problem.text), width, break_long_words=False, subsequent_indent="  "
        )
        for purpose, command in problem.do:
            lines += textwrap.wrap(f"{purpose}:", width, initial_indent="  ", subsequent_indent="    ")
            lines.append(f"      {command}")
    lines.append("")
    fatal = sum(1 for problem in problems if problem.fatal)
    lines.append(f"{counted(fatal, 'problem')}." if fatal else "Nothing is wrong here.")
    if own and (other := _other_environment()):
        lines.append(f"The active environment is another one: tpu-migrate doctor --python {other}")
    if not environment.packages.keys() & {"torch", "torch_xla", "torch_tpu"}:
        lines.append("Rewriting code needs none of these packages; running it does.")
    return lines


def _other_environment() -> str:
    """The interpreter of an activated environment that isn't ours, as when tpu-migrate came by pipx."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if not active or os.path.realpath(active) == os.path.realpath(sys.prefix):
        return ""
    return (
        os.path.join(active, "Scripts", "python.exe")
        if os.name == "nt"
        else os.path.join(active, "bin", "python")
    )
