"""The command line: ``tpu-migrate PATH...`` and its commands.

Only click is imported at the top of these modules, so that ``--help`` answers at once; what a
command needs is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpu_migrate.cli.doctor import doctor
from tpu_migrate.cli.group import DefaultGroup
from tpu_migrate.cli.migrate import migrate
from tpu_migrate.cli.rules import rules
from tpu_migrate.cli.undo import undo

cli = DefaultGroup(
    default=migrate,
    commands=[rules, undo, doctor],
    help="""Moves PyTorch/XLA programs to native TorchTPU code.

    \b
    tpu-migrate .            shows what would change; writes nothing
    tpu-migrate . --apply    writes it; tpu-migrate undo takes it back
    tpu-migrate ./rules      a folder that is called like a command
    """,
    epilog="""\b
    Exit codes: 0 clean, or applied with nothing open; 1 findings remain (in
    a dry run also: something would change); 2 wrong use or failure.""",
)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    cli.main(args=args, prog_name="tpu-migrate")
