"""Reports: a module a format, each with ``render``; all read the same RunResult and Summary."""

from __future__ import annotations

FORMATS = ("terminal", "json", "sarif", "junit", "markdown")
