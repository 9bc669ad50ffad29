"""What a failure looks like: one message for the user's mistakes, a log to send in for ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click


class ClosedPipe(Exception):
    """Whoever read our output stopped reading, as ``head`` does."""


def explain(error: Exception, arguments: Sequence[str]) -> None:
    """Say on standard error what happened, and what to do now."""
    from tpu_migrate.report.text import visible

    if isinstance(error, expected()):
        click.echo(f"tpu-migrate: {visible(str(error))}", err=True)
        return
    what = visible(f"{type(error).__name__}: {error}".strip())
    click.echo(f"tpu-migrate: a bug of ours: {what}", err=True)
    try:
        log = write_log(error, arguments)
    except OSError as failure:
        click.echo(f"  No log could be written ({failure}). This is what it would say:", err=True)
        click.echo(log_text(error, arguments), err=True)
    else:
        click.echo(f"  Log, to paste into an issue: {log}", err=True)
    if "--apply" in arguments:
        click.echo("  Files may have been written before this: `tpu-migrate undo` takes them back.", err=True)


def expected() -> tuple[type[Exception], ...]:
    """The exceptions whose message is for the user. A class counts once its module is loaded: before,
    nothing can have raised it."""
    places = (
        ("tpu_migrate.config", "ConfigError"),
        ("tpu_migrate.rules", "RuleError"),
        ("tpu_migrate.workspace.errors", "WorkspaceError"),
    )
    found = (getattr(sys.modules.get(module), name, None) for module, name in places)
    return tuple(kind for kind in found if kind is not None)


def write_log(error: Exception, arguments: Sequence[str]) -> Path:
    """Write the log of a crash outside the user's repository; returns where.

    Raises:
        OSError: neither the cache directory nor the temporary one can be written to.
    """
    import tempfile
    import time

    name = time.strftime("crash-%Y%m%d-%H%M%S-") + f"{os.getpid()}.log"
    text = log_text(error, arguments)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tpu-migrate"
    for directory in (cache, Path(tempfile.gettempdir())):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8", errors="backslashreplace")
            return directory / name
        except OSError as failure:
            last = failure
    raise last


def log_text(error: Exception, arguments: Sequence[str]) -> str:
    """What we need to know about a crash, in Markdown."""
    import platform
    import shlex
    import traceback

    from tpu_migrate import __version__

    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return (
        f"tpu-migrate {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"libcst {_version('libcst')}, click {_version('click')}\n\n"
        f"    tpu-migrate {shlex.join(arguments)}\n\n"
        f"```\n{trace}```\n"
    )


def silence_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe again when it flushes at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # no real file underneath, as in tests
        pass


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
