"""SARIF 2.1.0, for code scanning: results with fixes, and the rules they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from tpu_migrate import __version__
from tpu_migrate.findings import Finding, Outcome, RunResult, Safety, TextEdit
from tpu_migrate.report.summary import in_order

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"


class RuleText(Protocol):
    """What the report says of a rule; ``tpu_migrate.rules.Rule`` has it."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def safety(self) -> Safety: ...
    @property
    def why(self) -> str: ...
    @property
    def review(self) -> str: ...
    @property
    def action(self) -> str: ...


def render(result: RunResult, *, rules: Iterable[RuleText] = (), root: Path | None = None) -> str:
    """The run as a SARIF log.

    Args:
        result: the run. Fixes are given for a dry run only: they are in terms of the old files.
        rules: where the texts of the rules come from; only those with a finding are listed.
        root: the directory that paths are relative to, so that a viewer finds the files.
    """
    return json.dumps(log(result, rules=rules, root=root), indent=2) + "\n"


def log(result: RunResult, *, rules: Iterable[RuleText] = (), root: Path | None = None) -> dict[str, Any]:
    """The SARIF log as plain data."""
    findings = in_order(result.findings)
    texts = {rule.code: rule for rule in rules}
    first = {finding.code: finding for finding in reversed(findings)}
    codes = sorted(first)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "tpu-migrate",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(first[code], texts.get(code)) for code in codes],
            }
        },
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code), result.applied) for finding in findings],
    }
    if root is not None:
        uri = root.absolute().as_uri()
        run["originalUriBaseIds"] = {_ROOT: {"uri": uri if uri.endswith("/") else uri + "/"}}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(finding: Finding, text: RuleText | None) -> dict[str, Any]:
    safety = text.safety if text else finding.safety
    rule: dict[str, Any] = {
        "id": finding.code,
        "name": (text.name if text else finding.name) or finding.code,
        "shortDescription": {"text": (text.name if text else finding.name) or finding.code},
        "defaultConfiguration": {"level": _level(safety)},
        "properties": {"safety": safety.value, "tags": [safety.value]},
    }
    if text:
        advice = [part.strip() for part in (text.why, text.review, text.action) if part.strip()]
        if text.why.strip():
            rule["fullDescription"] = {"text": text.why.strip()}
        if advice:
            rule["help"] = {"text": "\n\n".join(advice)}
    return rule


def _result(finding: Finding, rule_index: int, applied: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {"safety": finding.safety.value, "outcome": finding.outcome.value}
    if finding.cell is not None:
        properties["cell"] = finding.cell
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "kind": "fail",
        "level": _level(finding.safety),
        "message": {"text": finding.message or finding.name or finding.code},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(finding.path),
                    "region": _region(finding.line, finding.column, finding.end_line, finding.end_column),
                }
            }
        ],
        "properties": properties,
    }
    if finding.outcome is Outcome.SUPPRESSED:
        result["suppressions"] = [{"kind": "inSource"}]
    if finding.outcome is Outcome.REWRITTEN and applied:
        # Done: no failure any more. SARIF knows "review" for what a person should look at.
        result["kind"] = "review" if finding.safety is Safety.REVIEW else "informational"
        result["level"] = "none"
    if finding.edits and not applied:
        result["fixes"] = [_fix(finding)]
    return result


def _fix(finding: Finding) -> dict[str, Any]:
    return {
        "description": {"text": f"{finding.code} {finding.name} ({finding.safety.value})"},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(finding.path),
                "replacements": [_replacement(edit) for edit in finding.edits],
            }
        ],
    }


def _replacement(edit: TextEdit) -> dict[str, Any]:
    replacement: dict[str, Any] = {
        "deletedRegion": _region(edit.line, edit.column, edit.end_line, edit.end_column)
    }
    if edit.text:
        replacement["insertedContent"] = {"text": edit.text}
    return replacement


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, int]:
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _artifact(path: str) -> dict[str, str]:
    # A file name may hold any bytes; those that are no UTF-8 stay what they are.
    return {"uri": quote(path.encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}


def _level(safety: Safety) -> str:
    return "note" if safety is Safety.SAFE else "warning"
