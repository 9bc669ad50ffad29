"""JUnit XML: a test case for each file, which fails while something in the file is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tpu_migrate.findings import FileResult, Finding, Outcome, RunResult
from tpu_migrate.report.summary import counted, in_order, label, needs_a_person
from tpu_migrate.report.text import visible


def render(result: RunResult) -> str:
    """The run as one test suite, which any CI shows."""
    suite = ElementTree.Element("testsuite", name="tpu-migrate")
    failures = 0
    for file in sorted(result.files, key=lambda file: file.path):
        failures += _case(suite, file, result.applied)
    if not result.files:  # some readers take a suite without a case for a broken run
        ElementTree.SubElement(
            suite, "testcase", classname="tpu-migrate", name="no torch_xla found", time="0"
        )
    counts = {
        "tests": str(len(suite)),
        "failures": str(failures),
        "errors": "0",
        "time": f"{result.seconds:.3f}",
    }
    suite.attrib.update(counts)
    root = ElementTree.Element("testsuites", {"name": "tpu-migrate", **counts})
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, file: FileResult, applied: bool) -> bool:
    """Add a file's test case; returns whether it fails."""
    path = visible(file.path)
    case = ElementTree.SubElement(suite, "testcase", classname="tpu-migrate", name=path, file=path, time="0")
    left = [finding for finding in in_order(file.findings) if _is_left(finding, applied)]
    would_change = file.changed and not applied
    if left or would_change:
        opened = sum(1 for finding in left if finding.outcome is Outcome.OPEN)
        message = f"{opened:,} open" + (", and the file would change" if would_change else "")
        failure = ElementTree.SubElement(
            case, "failure", message=message, type="open" if opened else "would-change"
        )
        failure.text = _text(left) or f"{path} would change: run tpu-migrate with --apply"
    looks = [
        finding for finding in in_order(file.findings) if needs_a_person(finding) and finding not in left
    ]
    if looks:
        ElementTree.SubElement(case, "system-out").text = (
            counted(len(looks), "place") + " to review\n" + _text(looks)
        )
    return bool(left or would_change)


def _is_left(finding: Finding, applied: bool) -> bool:
    return finding.outcome is Outcome.OPEN or (finding.outcome is Outcome.REWRITTEN and not applied)


def _text(findings: Sequence[Finding]) -> str:
    return visible("\n".join(map(_line, findings)))


def _line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.line}:{finding.column}"
    return f"{place}: {finding.code} {label(finding)}: {finding.message}"
