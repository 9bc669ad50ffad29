"""The JSON report: an interface, described by docs/report.schema.json and versioned there."""

from __future__ import annotations

import json
from typing import Any

from tpu_migrate import __version__
from tpu_migrate.findings import Finding, RunResult
from tpu_migrate.report.summary import in_order, summarize

VERSION = 1
"""Raised when a field goes or changes its meaning; a new field doesn't raise it."""


def render(result: RunResult) -> str:
    """The report as JSON text, in ASCII: any terminal, pipe or file carries it."""
    return json.dumps(report(result), indent=2) + "\n"


def report(result: RunResult) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "version": VERSION,
        "tool": {"name": "tpu-migrate", "version": __version__},
        "summary": _summary(result),
        "programs": [
            {"entry": program.entry, "kind": program.kind, "why": program.why, "files": list(program.files)}
            for program in result.programs
        ],
        "findings": [_finding(finding) for finding in in_order(result.findings)],
    }


def _summary(result: RunResult) -> dict[str, Any]:
    summary = summarize(result)
    return {
        "applied": summary.applied,
        "clean": summary.clean,
        "files": {"scanned": summary.scanned, "affected": summary.affected, "changed": summary.changed},
        "rewritten": {
            "total": summary.rewritten,
            "safe": summary.rewritten_safe,
            "review": summary.rewritten_review,
        },
        "open": {"total": summary.open, "manual": summary.open_manual, "refused": summary.open_refused},
        "suppressed": summary.suppressed,
        "references": {
            "total": summary.references,
            "rewritten": summary.references_rewritten,
            "share": None if summary.share is None else round(summary.share, 4),
        },
        "seconds": round(summary.seconds, 3),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    cell = {} if finding.cell is None else {"cell": finding.cell}
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        **cell,
        "safety": finding.safety.value,
        "outcome": finding.outcome.value,
        "message": finding.message,
        "before": finding.before,
        "after": finding.after,
    }
