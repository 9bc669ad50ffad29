"""What an installed tpu-migrate is: a wheel that carries its rules, and modules that load little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

PROGRAM = """\
import torch_xla.core.xla_model as xm

device = xm.xla_device()
"""


def run(*command: str, cwd: Path, expect: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


# --- what is loaded --------------------------------------------------------------------------------------


def loaded_by(code: str, cwd: Path) -> set[str]:
    """The top-level modules that the code tried to load, also where it was ready for their absence."""
    recorder = """
        import json, sys

        class Recorder:
            tried = set()

            def find_spec(self, name, path=None, target=None):
                self.tried.add(name.partition(".")[0])

        sys.meta_path.insert(0, Recorder())
        {code}
        print("\\n" + json.dumps(sorted(Recorder.tried)))
        """
    script = dedent(recorder).replace("{code}", dedent(code))
    return set(json.loads(run(sys.executable, "-c", script, cwd=cwd).splitlines()[-1]))


def test_the_whole_tool_loads_without_torch_and_jax(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    loaded = loaded_by(
        """
        import importlib, pathlib, pkgutil
        import tpu_migrate

        for module in pkgutil.walk_packages(tpu_migrate.__path__, "tpu_migrate."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        from tpu_migrate.config import Settings
        from tpu_migrate.pipeline import run
        assert run([pathlib.Path.cwd()], Settings()).changed
        """,
        tmp_path,
    )
    assert "libcst" in loaded, "the recorder records nothing"
    assert loaded.isdisjoint({"torch", "torch_xla", "torch_tpu", "jax", "libtpu", "numpy"})


def test_help_loads_neither_libcst_nor_rich(tmp_path: Path) -> None:
    loaded = loaded_by(
        """
        from tpu_migrate.cli import main
        try:
            main(["--help"])
        except SystemExit as exit:
            assert not exit.code
        """,
        tmp_path,
    )
    assert "click" in loaded, "the recorder records nothing"
    assert loaded.isdisjoint(
        {"libcst", "rich", "pathspec", "tomllib", "tomli", "jsonschema", "multiprocessing"}
    )


# --- what is shipped -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target))
    run(*pip, str(REPOSITORY), cwd=target)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of a fresh environment with the wheel and what it asks for, nothing else."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", str(environment), cwd=environment)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    constraints = str(REPOSITORY / "requirements" / "constraints.txt")
    run(
        str(scripts / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "-c",
        constraints,
        str(wheel),
        cwd=environment,
    )
    return scripts


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_rules_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in names} == {"tpu_migrate"}
    shipped = {name.removeprefix("tpu_migrate/_rules/") for name in names if "/_rules/" in name}
    rules = REPOSITORY / "rules"
    ours = {
        path.relative_to(rules).as_posix() for suffix in ("toml", "py") for path in rules.rglob(f"*.{suffix}")
    }
    assert shipped == ours
    assert any(name.endswith(".toml") for name in shipped)


@pytest.mark.slow
def test_the_installed_command_helps_and_migrates(installed: Path, tmp_path: Path) -> None:
    command = str(installed / "tpu-migrate")
    assert "--apply" in run(command, "--help", cwd=tmp_path)
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    run(command, str(tmp_path), "--apply", cwd=tmp_path)
    assert program.read_text() == 'import torch\n\ndevice = torch.device("tpu")\n'
    run(command, "undo", cwd=tmp_path)
    assert program.read_text() == PROGRAM
    assert "TX1" in run(command, "rules", cwd=tmp_path)
