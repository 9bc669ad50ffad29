"""The command as a process: speed, pipes, terminals."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
import time

import pytest

COMMAND = [sys.executable, "-m", "tpu_migrate"]
STAND_IN = """
import sys, time, types
sys.path.insert(0, {tests!r})
from report import samples
pipeline = types.ModuleType("tpu_migrate.pipeline")
sys.modules["tpu_migrate.pipeline"] = pipeline
def run(paths, settings, *, apply, jobs, progress):
{body}
pipeline.run = run
from tpu_migrate.cli import main
main(sys.argv[1:])
"""


def program(body: str) -> list[str]:
    """The command with a run that does what `body` says."""
    tests = os.path.dirname(os.path.dirname(__file__))
    code = STAND_IN.format(tests=tests, body=textwrap.indent(textwrap.dedent(body), "    "))
    return [sys.executable, "-c", code]


def on_a_terminal(command: list[str], **environment: str) -> str:
    """What a command writes when all its streams are a terminal."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **environment}
    for name in ("NO_COLOR", "COLUMNS"):
        if name not in environment:
            env.pop(name, None)
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(leader)
    process.wait(timeout=60)
    return written.decode()


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom tpu_migrate.cli import cli\n"
        "try: cli.main(['--help'], prog_name='tpu-migrate')\nexcept SystemExit: pass\n"
        "print('LOADED', *sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    heavy = {
        "rich",
        "libcst",
        "jsonschema",
        "pathspec",
        "tomllib",
        "tpu_migrate.rules",
        "tpu_migrate.pipeline",
    }
    assert not loaded & heavy
    assert "torch" not in loaded


def test_help_answers_at_once():
    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([*COMMAND, "--help"], capture_output=True, check=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.2


def test_a_reader_that_stops_is_no_error():
    command = [*program("sys.stdin.read()\nreturn samples.usual()"), "."]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **streams)
    process.stdout.close()
    process.stdin.close()  # only now the run ends, and finds nobody reading
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


def test_what_the_encoding_lacks_is_escaped():
    command = program("return samples.hostile()")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([*command, "."], capture_output=True, env=env, check=False)
    assert done.returncode == 1
    assert rb"\U0001f600" in done.stdout
    assert done.stderr == b""


def test_colour_needs_a_terminal_that_wants_it():
    command = [*program("return samples.usual()"), "."]
    assert "\x1b[32m+import torch" in on_a_terminal(command)
    assert "\x1b[" not in on_a_terminal(command, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(command, TERM="dumb")


LONG = """
    for done in range(4):
        time.sleep({pause})
        progress(done, 4)
    return samples.usual()
"""


@pytest.mark.parametrize(
    ("pause", "options", "shown"), [("0.5", [], True), ("0.5", ["--quiet"], False), ("0.01", [], False)]
)
def test_a_bar_shows_on_long_runs_only(pause, options, shown):
    text = on_a_terminal([*program(LONG.format(pause=pause)), ".", "--color", "never", *options])
    assert ("3/4" in text) is shown


def test_a_bar_needs_a_terminal():
    done = subprocess.run([*program(LONG.format(pause="0.5")), "."], capture_output=True, check=False)
    assert done.stderr == b""
