"""A progress bar on standard error: on a terminal only, and only for runs that take a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress

PATIENCE = 1.0
"""Seconds before the bar appears."""


class Progress:
    """Called with (files done, files in all); shows a bar once the run takes long."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: rich.progress.Progress | None = None
        self._task: rich.progress.TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        if not self._enabled or (self._bar is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bar is None or self._task is None:
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("files", total=total)
        self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
