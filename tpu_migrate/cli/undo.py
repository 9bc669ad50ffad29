"""``tpu-migrate undo``: put back what the last --apply changed."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Put back what the last --apply changed.")
@click.argument("path", metavar="[PATH]", default=".", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Also files that were edited since; those edits are lost.")
def undo(path: Path, force: bool) -> None:
    """Put every file that the last --apply on PATH (the current directory) changed back to what it was.

    Run again, it takes back the --apply before that one. PATH is what --apply was given; of several
    paths, the folder that holds them.
    """
    from tpu_migrate.report.summary import counted
    from tpu_migrate.report.text import visible
    from tpu_migrate.workspace import snapshot

    if not path.exists():
        raise click.UsageError(f"{path}: no such file or directory.")
    root = path if path.is_dir() else path.parent
    result = snapshot.undo(root, force=force)
    for name in result.restored:
        click.echo(f"restored {visible(name)}")
    text = f"Run {result.run} is undone: {counted(len(result.restored), 'file')} restored"
    if result.unchanged:
        text += f", {len(result.unchanged):,} already as before"
    click.echo(text + ".")
