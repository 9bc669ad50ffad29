"""The numbers of a run, and what the user has to do about a finding: counted once, shown by every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tpu_migrate.findings import Finding, Outcome, RunResult, Safety


@dataclass(frozen=True)
class Summary:
    """What a run came to."""

    applied: bool
    scanned: int
    """Files looked at."""
    affected: int
    """Files with a finding or a torch_xla reference."""
    changed: int
    """Files that were changed, or would be."""
    rewritten_safe: int
    rewritten_review: int
    open_manual: int
    """Open: there is no rewrite, a person has to write it."""
    open_refused: int
    """Open: there is a rewrite, and it was not safe to make here."""
    suppressed: int
    references: int
    """torch_xla references found."""
    references_rewritten: int
    seconds: float

    @property
    def rewritten(self) -> int:
        return self.rewritten_safe + self.rewritten_review

    @property
    def open(self) -> int:
        return self.open_manual + self.open_refused

    @property
    def share(self) -> float | None:
        """The part of the references that is rewritten, 0 to 1; None when there are none."""
        return self.references_rewritten / self.references if self.references else None

    @property
    def clean(self) -> bool:
        """Nothing is left: nothing open and, in a dry run, nothing that would change."""
        return self.open == 0 and (self.applied or (self.changed == 0 and self.rewritten == 0))


def summarize(result: RunResult) -> Summary:
    """Count a run."""
    counts = Counter((finding.outcome, finding.safety) for finding in result.findings)
    open_all = sum(count for (outcome, _), count in counts.items() if outcome is Outcome.OPEN)
    open_manual = counts[Outcome.OPEN, Safety.MANUAL]
    return Summary(
        applied=result.applied,
        scanned=result.scanned,
        affected=sum(1 for file in result.files if file.findings or file.references),
        changed=len(result.changed),
        rewritten_safe=counts[Outcome.REWRITTEN, Safety.SAFE],
        rewritten_review=counts[Outcome.REWRITTEN, Safety.REVIEW],
        open_manual=open_manual,
        open_refused=open_all - open_manual,
        suppressed=sum(count for (outcome, _), count in counts.items() if outcome is Outcome.SUPPRESSED),
        references=sum(file.references for file in result.files),
        references_rewritten=sum(file.rewritten for file in result.files),
        seconds=result.seconds,
    )


def root_of(result: RunResult) -> Path | None:
    """The directory that paths in the result are relative to, when the run tells it."""
    root: Path | None = result.root
    return root


def skipped_of(result: RunResult) -> tuple[tuple[str, str], ...]:
    """(path, reason) of what the user may have expected to be looked at, when the run tells it."""
    skipped: tuple[tuple[str, str], ...] = result.skipped
    return skipped


def label(finding: Finding) -> str:
    """In a word, what a finding asks for: ``manual``, ``not rewritten``, ``review``; or ``safe``, nothing."""
    if finding.outcome is Outcome.SUPPRESSED:
        return "suppressed"
    if finding.outcome is Outcome.OPEN:
        return "manual" if finding.safety is Safety.MANUAL else "not rewritten"
    return "review" if finding.safety is Safety.REVIEW else "safe"


def needs_a_person(finding: Finding) -> bool:
    """Whether somebody has to write or look at something."""
    return label(finding) in ("manual", "not rewritten", "review")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as they stand in the files."""
    return sorted(
        findings, key=lambda found: (found.path, found.cell or 0, found.line, found.column, found.code)
    )


def percent(share: float | None) -> str:
    """``82 %``; 100 % only when nothing is missing, ``-`` when there was nothing to share."""
    if share is None:
        return "-"
    return f"{int(share * 100 + 1e-9)} %"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 file``, ``2 files``, ``1,200 files``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
