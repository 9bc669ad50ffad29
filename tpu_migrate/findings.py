"""The words everything else speaks: Span, Edit, Finding and the two scales a finding is placed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Safety(str, Enum):
    """How far a rule's rewrite can be trusted."""

    SAFE = "safe"
    """Behaviour is kept."""
    REVIEW = "review"
    """Usually right; applied, and a person should look."""
    MANUAL = "manual"
    """Never rewritten; the finding says what to write."""


class Outcome(str, Enum):
    """What became of a finding in this run."""

    REWRITTEN = "rewritten"
    OPEN = "open"
    SUPPRESSED = "suppressed"


@dataclass(frozen=True, order=True)
class Span:
    """A half-open range of character offsets in a file's decoded text (without its BOM)."""

    start: int
    end: int

    def __contains__(self, other: object) -> bool:
        return isinstance(other, Span) and self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end


Part = str | Span
"""A piece of replacement text: literal, or a range of the old text to copy with its own edits applied."""


@dataclass(frozen=True)
class Edit:
    """Replace ``span`` by ``parts``. An empty span inserts; no parts delete.

    Edits inside ``span`` survive only where a part copies the range they lie in, so that a rewrite
    of ``f(g(x))`` may copy ``g(x)`` and still see it rewritten.
    """

    span: Span
    parts: tuple[Part, ...] = ()
    order: int = 0
    """Among insertions at one offset, lower comes first."""


@dataclass(frozen=True)
class Finding:
    """One thing the user should know about, at one place.

    ``line`` and ``column`` count from 1, in characters; ``end_column`` is exclusive. Before
    ``--apply`` they refer to the old file, after it to the new one.
    """

    code: str
    name: str
    path: str
    """Relative to the directory the command was given, with forward slashes."""
    line: int
    column: int
    end_line: int
    end_column: int
    safety: Safety
    outcome: Outcome
    message: str
    before: str = ""
    """The source of the place before the run."""
    after: str = ""
    """What it was rewritten to; empty when it was deleted or left open."""
    cell: int | None = None
    """In notebooks: the cell, counted from 1."""
    symbol: str = ""
    """The qualified name that was found, such as ``torch_xla.core.xla_model.mark_step``."""
    references: int = 1
    """How many torch_xla references it stands for (grouped findings stand for several)."""
    edits: tuple[TextEdit, ...] = field(default=(), repr=False)
    """The replacements, in terms of the old file, for reports that carry fixes (SARIF)."""


@dataclass(frozen=True)
class TextEdit:
    """A rendered edit of the old file: lines and columns count from 1, ``end_column`` is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Program:
    """What the repository's entry points run as, found once for the whole run."""

    entry: str
    """Path of the entry file, relative, forward slashes."""
    kind: str
    """``single-process``, ``multi-process``, ``spmd`` or ``library``."""
    why: str
    files: tuple[str, ...] = ()


@dataclass
class FileResult:
    """What became of one file."""

    path: str
    old: bytes
    new: bytes
    findings: list[Finding] = field(default_factory=list)
    references: int = 0
    """torch_xla references found, imports included."""
    rewritten: int = 0
    """How many of them are gone after the rewrite."""

    @property
    def changed(self) -> bool:
        return self.old != self.new


@dataclass
class RunResult:
    """What became of the run: what every report is rendered from."""

    files: list[FileResult]
    programs: list[Program]
    scanned: int
    """Files looked at, matching or not."""
    applied: bool = False
    seconds: float = 0.0
    root: Path | None = None
    """The directory that paths are relative to."""
    skipped: tuple[tuple[str, str], ...] = ()
    """(relative path, reason) of what was left out and might be missed."""

    @property
    def findings(self) -> list[Finding]:
        return [finding for file in self.files for finding in file.findings]

    @property
    def changed(self) -> list[FileResult]:
        return [file for file in self.files if file.changed]
