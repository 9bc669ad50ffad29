"""What all files about launching share: their words, what was found, and how that becomes a result."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from tpu_migrate.findings import Edit, FileResult, Finding, Outcome, Safety, Span, TextEdit
from tpu_migrate.python.edits import EditConflict, render
from tpu_migrate.python.rewrite import BROKEN, NOT_PARSED, OTHER_VENDOR, Engine, Rewritten
from tpu_migrate.python.source import Source, SourceError
from tpu_migrate.python.suppress import Suppressions
from tpu_migrate.rules import RuleBook

_IMAGES = (
    (r"(?:[\w.-]+/)*tpu-pytorch(?:-releases)?/[\w./-]*xla[\w./:@+${}-]*", "image.pytorch_xla"),
    (
        r"(?<![\w./-])(?:[\w.-]+/)*(?:optimum-tpu(?=:)|huggingface-text-generation-inference-tpu|"
        r"tpu-tgi|huggingface-pytorch-training-tpu)[\w./:@+${}-]*",
        "image.optimum_tpu",
    ),
    (r"(?<![\w-])(?:tpu-vm-pt-[\w.-]+|tpu-vm-v4-pt-[\w.-]+|v2-nightly-?\w*-pt\b)", "image.tpu_vm"),
)
_WORDS = (
    r"torch[_-]xla|torchxla|pytorch[_-]xla|(?<![\w-])pytorch/xla|xla_spawn|xla_dist\b|PJRT_DEVICE|XRT_TPU_CONFIG|"
    r"XLA_(?:USE|DOWNCAST)_(?:BF16|F16|FP16)|XLA_USE_SPMD|optimum[_.-]tpu|tpu-pytorch|"
    r"adamw_torch_xla|tpu_num_cores|tpu_metrics_debug"
)
MENTION = re.compile(
    "|".join(f"(?P<p{number}>{pattern})" for number, (pattern, _) in enumerate(_IMAGES))
    + f"|(?P<word>{_WORDS})",
    re.IGNORECASE,
)
_QUICK = re.compile(
    rb"xla|xrt_|pjrt_|optimum.tpu|tpu-pytorch|libtpu|tpu-vm-(?:v4-)?pt-|-pt\b|tpu-tgi|inference-tpu|training-tpu|"
    rb"tpu_num_cores|tpu_metrics_debug|distributed_type|downcast_bf16|TPU_NUM_DEVICES|accelerate launch",
    re.IGNORECASE,
)
_VENDOR_WORDS = (
    ("AWS Neuron", re.compile(r"neuron(?:x|_|-|\b)", re.IGNORECASE)),
    ("Tenstorrent", re.compile(r"tenstorrent|tt[-_]xla|tt-metal|pjrt_plugin_tt", re.IGNORECASE)),
)
_THEIR_OWN = frozenset(("TPU_NAME", "TPU_IP_ADDRESS", "CPU_NUM_DEVICES", "GPU_NUM_DEVICES"))
"""Variables that scripts have for purposes of their own, such as the name that gcloud is given."""


def mentions(_: RuleBook, data: bytes) -> bool:
    """Whether a file's bytes hold a word that a rule for launching could be about."""
    return _QUICK.search(data) is not None


@dataclass(frozen=True)
class Found:
    """One thing found, on its way to a finding."""

    span: Span
    symbol: str
    """The name that rules match: ``env.PJRT_DEVICE``, ``command.xla_spawn``, ``image.pytorch_xla``."""
    edits: tuple[Edit, ...] = ()
    """What replaces it; they may be shared with others that leave together with it."""
    refusal: str = ""
    """Why it isn't rewritten here, although its rule would."""


@dataclass
class Page:
    """A file being read: its text, and what was found in it so far."""

    engine: Engine
    path: str
    source: Source
    found: list[Found] = field(default_factory=list)
    comments: list[Span] = field(default_factory=list)
    """Comments: what they mention is told once for the file."""

    @property
    def text(self) -> str:
        return self.source.text

    @cached_property
    def variables(self) -> frozenset[str]:
        """Environment variables that rules are about, without those that launch files use for themselves.

        JAX programs set some of them too, so that a file has to mention torch_xla before those count.
        """
        names = self.engine.environment - _THEIR_OWN
        if MENTION.search(self.text):
            return names
        return frozenset(name for name in names if "XLA" in name or name.startswith(("XRT_", "PJRT_")))

    def knows(self, variable: str) -> bool:
        """Whether some rule is about this environment variable."""
        return variable in self.variables

    def reads(self, variable: str) -> bool:
        """Whether the file uses the variable's value."""
        return re.search(_reading(re.escape(variable)), self.text) is not None

    def can_drop(self, variable: str, value: str | None) -> str:
        """Why setting a variable can't be dropped; empty when it can.

        Args:
            variable: an environment variable that a rule is about.
            value: what it is set to, None where that isn't a plain word.
        """
        match = self.engine.matcher.find("env." + variable, None, "library")
        if match is None or match.rule.safety is Safety.MANUAL:
            return "manual"
        only = match.rule.options.get("only")
        if isinstance(only, list) and value not in only:
            return f"it is set to something else than {' or '.join(only)}"
        if value is None:
            return "its value is not a plain word"
        if self.reads(variable):
            return "its value is read in this file"
        return ""


def _reading(name: str) -> str:
    return rf"\$\{{?{name}\b|\$\({name}\)|env\.{name}\b|printenv\s+{name}\b|environ[^\n]{{0,8}}['\"]{name}\b"


def migrate(
    engine: Engine, path: str, data: bytes, read: Callable[[Page], None], leftover: str = "setting.mention"
) -> Rewritten:
    """Rewrite a file with what ``read`` finds in it, and report what it left.

    Args:
        engine: rules and settings.
        path: repository path of the file.
        data: its bytes.
        read: fills a page's ``found``.
        leftover: the name under which rules look for mentions that nothing was found about.
    """
    if not mentions(engine.matcher.book, data):
        return Rewritten(FileResult(path, data, data))
    try:
        source = Source.decode(data)
    except SourceError as error:
        return Rewritten(_unreadable(path, data, error))
    page = Page(engine, path, source)
    if vendor := _vendor(engine, path, source.text):
        return Rewritten(_other_vendor(page, data, vendor))
    read(page)
    if leftover == "setting.mention":
        _find_variables(page)
    _find_leftovers(page, leftover)
    return Rewritten(_result(page, data))


def _unreadable(path: str, data: bytes, error: SourceError) -> FileResult:
    if not MENTION.search(data.decode("latin-1")):
        return FileResult(path, data, data)
    finding = Finding(
        NOT_PARSED, "not-parsed", path, 1, 1, 1, 1, Safety.MANUAL, Outcome.OPEN,
        f"not migrated: {error}. It mentions torch_xla and wasn't changed. Save it as UTF-8 or leave it out: "
        f'[tool.tpu-migrate] exclude = ["{path}"]',
    )  # fmt: skip
    return FileResult(path, data, data, [finding], 1, 0)


def _vendor(engine: Engine, path: str, text: str) -> str:
    """The maker of another chip that a file is about: by its words, or by the programs beside it."""
    for vendor, words in _VENDOR_WORDS:
        if words.search(text) and not re.search(r"tpu", text, re.IGNORECASE):
            return vendor
    beside = path.rpartition("/")[0]
    near = {maker for file, maker in engine.overview.vendors.items() if file.rpartition("/")[0] == beside}
    return near.pop() if len(near) == 1 else ""


def _other_vendor(page: Page, data: bytes, vendor: str) -> FileResult:
    found = MENTION.search(page.text)
    if found is None:
        return FileResult(page.path, data, data)
    line, column = page.source.position(found.start())
    finding = Finding(
        OTHER_VENDOR, "other-vendor", page.path, line, column, line, column + len(found.group()),
        Safety.MANUAL, Outcome.OPEN,
        f"left alone: this is written for {vendor}, which brings its own torch_xla. "
        "TorchTPU does not replace it; follow that vendor's own guide.",
        references=0,
    )  # fmt: skip
    return FileResult(page.path, data, data, [finding])


class _Cover:
    """Answers whether an offset lies in one of many spans."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans)
        self.starts = [span.start for span in self.spans]

    def has(self, span: Span) -> bool:
        index = bisect.bisect_right(self.starts, span.start)
        return any(other.start <= span.start < other.end for other in self.spans[max(0, index - 8) : index])


def _find_variables(page: Page) -> None:
    """Uses of the variables rules are about, where nothing was found about them yet."""
    covered = _Cover([*(found.span for found in page.found), *page.comments])
    for found in re.finditer(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", page.text):
        span = Span(*found.span())
        if not page.knows(found.group()) or covered.has(span):
            continue
        before = page.text[max(0, span.start - 12) : span.start]
        is_read = re.search(r"(?:\$\{?|\$\(|env\.|printenv\s+)$", before) is not None
        refusal = "its value is read" if is_read else "it is written in a way no rule knows"
        page.found.append(Found(span, "env." + found.group(), refusal=refusal))


def _find_leftovers(page: Page, symbol: str) -> None:
    """Every mention of the vocabulary that nothing was found about; those in comments once a file."""
    told = _Cover(
        [*(found.span for found in page.found), *(edit.span for found in page.found for edit in found.edits)]
    )
    comments = _Cover(page.comments)
    noted = False
    last = 0
    for found in MENTION.finditer(page.text):
        span = Span(*found.span())
        if told.has(span):
            continue
        name = symbol
        for number, (_, image) in enumerate(_IMAGES):
            if found[f"p{number}"]:
                name = image
        if comments.has(span):
            if noted:
                continue
            noted, name = True, symbol
        elif name == symbol:  # once a line
            line = page.source.position(span.start)[0]
            if line == last:
                continue
            last = line
        page.found.append(Found(span, name))


def _result(page: Page, data: bytes) -> FileResult:
    settings = page.engine.settings
    suppressions = Suppressions(page.text)
    ignored = settings.ignored_in(page.engine.prefix + page.path)
    kept: list[tuple[Found, Outcome, str]] = []
    page.found.sort(key=lambda found: found.span)
    reserved: list[Span] = []
    for found in page.found:
        match = page.engine.matcher.find(found.symbol, None, "library")
        if (
            match is None
            or not settings.selects(match.rule.code)
            or match.rule.code.startswith(ignored or "\0")
        ):
            reserved.append(found.span)
            continue
        rule = match.rule
        first, last = page.source.position(found.span.start)[0], page.source.position(found.span.end)[0]
        if suppressions.covers(rule.code, first, last):
            reserved.append(found.span)
            kept.append((found, Outcome.SUPPRESSED, rule.why))
        elif rule.safety is Safety.MANUAL:
            reserved.append(found.span)
            kept.append((found, Outcome.OPEN, rule.action))
        elif found.refusal or not found.edits or (settings.safe_only and rule.safety is not Safety.SAFE):
            reserved.append(found.span)
            reason = found.refusal or (
                "a review rule, and --safe-only is set"
                if found.edits
                else "it is written in a way no rule knows"
            )
            kept.append((found, Outcome.OPEN, f"not rewritten: {reason}. {rule.action}"))
        else:
            kept.append((found, Outcome.REWRITTEN, rule.review))
    # an edit that would take along what has to stay is not made
    for index, (found, outcome, _) in enumerate(kept):
        if outcome is Outcome.REWRITTEN and any(e.span.overlaps(r) for e in found.edits for r in reserved):
            rule = page.engine.matcher.find(found.symbol, None, "library").rule  # type: ignore[union-attr]
            kept[index] = (
                found,
                Outcome.OPEN,
                f"not rewritten: it would take along what has to stay. {rule.action}",
            )
    edits = [edit for found, outcome, _ in kept if outcome is Outcome.REWRITTEN for edit in found.edits]
    try:
        rendered = render(page.text, edits)
    except EditConflict as error:
        broken = Finding(
            BROKEN, "rewrite-failed", page.path, 1, 1, max(1, len(page.source.line_starts)), 1, Safety.MANUAL,
            Outcome.OPEN,
            f"not migrated: {error}. This is a bug in tpu-migrate: report it with this file. "
            "The file is unchanged.",
            references=len(kept),
        )  # fmt: skip
        return FileResult(page.path, data, data, [broken], len(kept), 0)
    new_source = Source(rendered.text) if page.engine.applied else page.source

    def position(offset: int) -> tuple[int, int]:
        if page.engine.applied:
            offset = min(rendered.new_offset(offset), len(rendered.text))
        return new_source.position(offset)

    findings = []
    for found, outcome, message in kept:
        rule = page.engine.matcher.find(found.symbol, None, "library").rule  # type: ignore[union-attr]
        start, end = position(found.span.start), position(found.span.end)
        made = found.edits if outcome is Outcome.REWRITTEN else ()
        findings.append(
            Finding(
                rule.code,
                rule.name,
                page.path,
                *start,
                *max(start, end),
                rule.safety,
                outcome,
                message,
                before=page.text[found.span.start : found.span.end],
                after=" ".join(part for edit in made for part in edit.parts if isinstance(part, str)),
                symbol=found.symbol,
                edits=tuple(
                    TextEdit(
                        *page.source.position(edit.span.start),
                        *page.source.position(edit.span.end),
                        "".join(part for part in edit.parts if isinstance(part, str)),
                    )
                    for edit in made
                ),
            )
        )
    findings.sort(key=lambda finding: (finding.line, finding.column, finding.code))
    rewritten = sum(outcome is Outcome.REWRITTEN for _, outcome, _ in kept)
    new = page.source.encode(rendered.text) if edits else data
    return FileResult(page.path, data, new, findings, len(kept), rewritten)
