"""The group of commands: one of them is the default, and every way to fail ends here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from tpu_migrate import __version__
from tpu_migrate.cli import failures

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 90}


class DefaultGroup(click.Group):
    """A click group in which ``tool ARGS`` means ``tool DEFAULT ARGS`` unless ARGS name a command.

    Its help shows the options of the default command too.
    """

    def __init__(
        self, *, default: click.Command, commands: Sequence[click.Command], **attributes: Any
    ) -> None:
        super().__init__(
            name="tpu-migrate",
            commands=[default, *commands],
            no_args_is_help=False,
            context_settings=CONTEXT,
            **attributes,
        )
        self.default = default
        self.params.append(_version_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit(0)
        own = {"-h", "--help", "--version"}
        if args[0] not in self.commands and args[0] not in own:
            args = [self.default.name or "", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "PATH... [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, str] = {}
        for parameter in (*self.default.params, *self.get_params(ctx)):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                rows.setdefault(*record)
        with formatter.section("Options"):
            formatter.write_dl(list(rows.items()))
        self.format_commands(ctx, formatter)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """As click's, with our exit codes: every failure is 2, an interrupt 130, a closed pipe 141."""
        extra["standalone_mode"] = False
        arguments = list(sys.argv[1:] if args is None else args)
        _never_fail_to_encode()
        try:
            code = super().main(arguments, *rest, **extra)
            sys.stdout.flush()
        except click.exceptions.Abort:
            click.echo("tpu-migrate: interrupted. Each file is either as it was or done.", err=True)
            code = 130
        except click.ClickException as error:
            error.show()
            code = 2
        except failures.ClosedPipe:
            code = 141
        except BrokenPipeError:
            failures.silence_stdout()
            code = 141
        except Exception as error:
            failures.explain(error, arguments)
            code = 2
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Here and not in main: click would make exit code 1 of it, which means open findings.
            failures.silence_stdout()
            raise failures.ClosedPipe from error


def _never_fail_to_encode() -> None:
    """Source code may hold what this terminal's encoding lacks: show an escape, don't crash."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _version_option() -> click.Option:
    def show(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(f"tpu-migrate {__version__}")
            ctx.exit(0)

    return click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Show the version.",
    )


def wants_colour(choice: str) -> bool:
    """Whether to colour standard output. ``auto``: on a terminal, unless NO_COLOR is set."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Columns to wrap text at: the terminal's, 80 where there is none, and never too wide to read."""
    import shutil

    return min(shutil.get_terminal_size((80, 24)).columns, 110)
