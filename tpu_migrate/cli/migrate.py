"""``tpu-migrate PATH...``: show what would change, or change it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tpu_migrate.config import Settings
    from tpu_migrate.findings import RunResult
    from tpu_migrate.rules import RuleBook


def _codes(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    codes = tuple(code.strip() for value in values for code in value.split(",") if code.strip())
    if values and not codes:
        raise click.BadParameter("no code given; expected codes or their beginnings, such as TX1,TX201")
    return codes or None


@click.command(
    short_help="Show what would change, or change it (the default command).",
    epilog="Exit codes: 0 clean, or applied with nothing open; 1 findings remain; 2 wrong use or failure.",
)
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--apply", is_flag=True, help="Write the changes. Without it nothing is written.")
@click.option("--check", is_flag=True, help="For CI: write nothing, list findings, no diff.")
@click.option("--safe-only", is_flag=True, help="Make only rewrites that keep behaviour for certain.")
@click.option(
    "--select",
    metavar="CODES",
    multiple=True,
    callback=_codes,
    help="Only these codes: TX1,TX201. Repeatable.",
)
@click.option(
    "--ignore",
    metavar="CODES",
    multiple=True,
    callback=_codes,
    help="Not these codes: TX1,TX201. Repeatable.",
)
@click.option("--exclude", metavar="GLOB", multiple=True, help="Skip files, as in .gitignore. Repeatable.")
@click.option("--no-comments", is_flag=True, help="No TODO comments above what is to be done by hand.")
@click.option(
    "--device",
    type=click.Choice(["tpu", "accelerator"]),
    help='Write "tpu", or code that asks torch for the device at hand.',
)
@click.option(
    "--launcher",
    type=click.Choice(["torchrun", "spawn"]),
    help="How programs of several processes are started afterwards.",
)
@click.option("--jobs", metavar="N", type=click.IntRange(min=0), default=0, help="Processes; 0: one a core.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json", "sarif", "junit", "markdown"]),
    default="terminal",
    help="The kind of report.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the report there, and show the summary.",
)
@click.option("--diff/--no-diff", default=None, help="Show the diff (default: in a dry run).")
@click.option("--quiet", is_flag=True, help="Only what is open: no diff, summary or progress.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colours; auto: on a terminal.",
)
def migrate(
    paths: tuple[Path, ...],
    apply: bool,
    check: bool,
    safe_only: bool,
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
    exclude: tuple[str, ...],
    no_comments: bool,
    device: str | None,
    launcher: str | None,
    jobs: int,
    form: str,
    output: Path | None,
    diff: bool | None,
    quiet: bool,
    color: str,
) -> int:
    """Rewrite torch_xla code under PATH... into native TorchTPU code.

    Without --apply it is a dry run: a diff, what is open by file, and a summary.
    """
    if apply and check:
        raise click.UsageError("--apply and --check exclude each other: --check writes nothing.")
    _check_paths(paths)
    if output is not None:
        _check_output(output)

    from tpu_migrate.cli.group import terminal_width, wants_colour
    from tpu_migrate.cli.progress import Progress
    from tpu_migrate.config import load_settings
    from tpu_migrate.pipeline import run

    settings = load_settings(
        common_directory(paths),
        {
            "device": device,
            "launcher": launcher,
            "select": select,
            "ignore": ignore,
            "exclude": exclude or None,
            "safe_only": safe_only or None,
            "comments": False if no_comments else None,
        },
    )
    if settings.select or settings.ignore:
        _check_codes(settings)
    with Progress(enabled=not quiet) as progress:
        result = run(list(paths), settings, apply=apply, jobs=jobs or cores(), progress=progress)

    show_diff = diff if diff is not None else not apply and not check
    colour = wants_colour(color) and (output is None or color == "always")
    view = _View(colour, terminal_width() if output is None else 80, show_diff, quiet)
    text = _render(result, form, settings, view)
    if output is None:
        click.echo(text, nl=False, color=True)
    else:
        _write(output, text)
        if not quiet:
            from tpu_migrate.report.terminal import render_summary

            click.echo(
                render_summary(result, colour=wants_colour(color), width=terminal_width()),
                nl=False,
                color=True,
            )

    from tpu_migrate.report.summary import summarize

    return 0 if summarize(result).clean else 1


class _View:
    """How a terminal report is to look."""

    def __init__(self, colour: bool, width: int, diff: bool, quiet: bool) -> None:
        self.colour = colour
        self.width = width
        self.diff = diff
        self.quiet = quiet


def _render(result: RunResult, form: str, settings: Settings, view: _View) -> str:
    from tpu_migrate.report.summary import root_of

    root = root_of(result)
    if form == "json":
        from tpu_migrate.report import json

        return json.render(result)
    if form == "sarif":
        from tpu_migrate.report import sarif

        return sarif.render(result, rules=_load_rules(settings).rules, root=root)
    if form == "junit":
        from tpu_migrate.report import junit

        return junit.render(result)
    if form == "markdown":
        from tpu_migrate.report import markdown

        return markdown.render(result)

    from tpu_migrate.report import terminal

    prefix = path_prefix(root)
    if view.quiet:
        return terminal.render_open(result, colour=view.colour, width=view.width, prefix=prefix)
    return terminal.render(result, colour=view.colour, width=view.width, diff=view.diff, prefix=prefix)


def common_directory(paths: Sequence[Path]) -> Path:
    """Where the search for settings starts: the path, or the deepest directory that holds all of them."""
    absolute = [path.absolute() for path in paths]
    return absolute[0] if len(absolute) == 1 else Path(os.path.commonpath(absolute))


def path_prefix(root: Path | None) -> str:
    """What turns paths relative to ``root`` into paths that can be opened from here."""
    if root is None:
        return ""
    relative = os.path.relpath(root)
    return "" if relative == "." else relative.replace(os.sep, "/") + "/"


def cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _check_paths(paths: Sequence[Path]) -> None:
    if not paths:
        raise click.UsageError("no PATH given. For the current directory: tpu-migrate .")
    for path in paths:
        if not os.path.lexists(path):
            raise click.UsageError(f"{path}: no such file or directory.{_meant_command(str(path))}")


def _meant_command(word: str) -> str:
    import difflib

    ctx = click.get_current_context()
    group = ctx.parent.command if ctx.parent else None
    names = sorted(group.commands) if isinstance(group, click.Group) else []
    close = difflib.get_close_matches(word, names, n=1)
    return f" Did you mean the command: tpu-migrate {close[0]}?" if close else ""


def _check_output(output: Path) -> None:
    """Complain before the run, not after it has written."""
    if output.is_dir():
        raise click.UsageError(f"--output {output} is a directory; name a file.")
    if not output.absolute().parent.is_dir():
        raise click.UsageError(f"--output {output}: there is no directory {output.parent}; make it first.")


def _write(output: Path, text: str) -> None:
    try:
        output.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise click.ClickException(
            f"--output {output}: can't be written: {error.strerror}. The run itself is done."
        ) from None


def _load_rules(settings: Settings) -> RuleBook:
    from tpu_migrate.rules import load_rules

    return load_rules(settings.rules)


def _check_codes(settings: Settings) -> None:
    """Refuse codes that no rule has: a misspelt --select would look like a clean repository."""
    import difflib

    from tpu_migrate.cli.families import FAMILIES
    from tpu_migrate.python.builtin import BUILT_IN

    codes = [rule.code for rule in _load_rules(settings).rules] + [entry.code for entry in BUILT_IN]
    for key, given in (("select", settings.select), ("ignore", settings.ignore)):
        for code in given:
            if not any(name.startswith(code) for name in (*codes, *FAMILIES)):
                close = difflib.get_close_matches(code, codes, n=1, cutoff=0.5)
                hint = f" Did you mean {close[0]}?" if close else ""
                raise click.UsageError(
                    f"{key} names {code}, but no rule has this code.{hint} See: tpu-migrate rules"
                )
