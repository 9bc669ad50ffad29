"""Suppression: ``# tpu-migrate: ignore`` and ``# tpu-migrate: ignore[TX201, TX3]``."""

from __future__ import annotations

import re

from tpu_migrate.python.comments import comments_in

_COMMENT = re.compile(r"#\s*tpu-migrate:\s*ignore(?:\[([^\]]*)\])?")


class Suppressions:
    """Which codes are switched off on which lines of a file."""

    def __init__(self, text: str) -> None:
        self._lines: dict[int, tuple[str, ...]] = {}
        if "tpu-migrate" not in text:
            return
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
            comment = next(iter(comments_in(line)), "")
            if found := _COMMENT.match(comment) or _COMMENT.search(comment):
                self._lines[number] = tuple(
                    code.strip() for code in (found[1] or "").split(",") if code.strip()
                )

    def covers(self, code: str, first: int, last: int) -> bool:
        """Whether a comment on one of these lines switches the code off."""
        for line in range(first, last + 1):
            if line in self._lines and (not self._lines[line] or code.startswith(self._lines[line])):
                return True
        return False
