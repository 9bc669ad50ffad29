"""What requirement files of all kinds share: entries that name packages, and what the rules make of them.

A reader (``requirements.py``, ``pyproject.py``, ...) finds the entries of its kind of file and says how one
is written there. Whether an entry is replaced, dropped or only named in a finding is decided here, by the
rules of ``rules/packaging``. Their ``replace`` is a string literal: requirements, separated by spaces, or
none where the entry is dropped. In ``options`` they say:

    fits      versions that may stay; an entry that allows one of them is fine
    beside    only in files that ask for torch_xla, optimum-tpu or torch_tpu too
    unless    packages that make the entry somebody else's, when they are in the file
    url       for ``setting.find_links``: patterns, one of which the address must match
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from packaging.markers import InvalidMarker, Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from tpu_migrate.findings import Edit, FileResult, Finding, Outcome, Safety, Span, TextEdit
from tpu_migrate.python.edits import Rendered, merge_deletions, render
from tpu_migrate.python.rewrite import NOT_PARSED, OTHER_VENDOR, Engine, Rewritten
from tpu_migrate.python.source import Source, SourceError
from tpu_migrate.python.suppress import Suppressions
from tpu_migrate.rules import Rule, RuleBook

LOCK, MENTION = "setting.lock_file", "setting.package_mention"

_MENTION = re.compile(
    r"torch[-_.]?xla|optimum[-_.]tpu|pytorch/xla\b|pytorch-xla-releases|libtpu-releases|libtpu-wheels"
    r"|tpu-pytorch\b",
    re.IGNORECASE,
)
_PREFILTER = re.compile(
    rb"torch[-_.]?xla|torch[-_.]tpu|torchax|optimum[-_.]tpu|libtpu|cloud[-_.]tpu[-_.]client|pytorch/xla"
    rb"|pytorch-xla-releases|tpu-pytorch"
)
_TPU = frozenset(("torch_xla", "optimum_tpu", "torch_tpu"))
_VENDORS = {
    "AWS Neuron": re.compile(r"neuronx|torch[-_]neuron|libneuronxla|optimum[-_]neuron|amazonaws\.com/neuron"),
    "Tenstorrent": re.compile(r"tenstorrent|pjrt[-_]plugin[-_]tt|tt[-_]xla"),
    "TorchAcc": re.compile(r"torchacc\b"),
    "Intel Gaudi": re.compile(r"habana|optimum[-_]habana"),
}
_PYTHONS = tuple(f"3.{minor}" for minor in range(6, 16))
_FIRST_PYTHON = 11
"""torch_tpu has wheels for Python 3.11 and later."""


class NotReadable(Exception):
    """A file isn't what its name says; the message says why."""


@dataclass(frozen=True)
class Target:
    """A requirement to write: ``torch_tpu`` and ``>=0.2.0``."""

    name: str
    versions: str

    @property
    def text(self) -> str:
        return self.name + self.versions


@dataclass(frozen=True)
class Entry:
    """One place that asks for a package, or says where packages come from."""

    symbol: str
    """``package.torch_xla``, ``setting.find_links``."""
    span: Span
    """What a finding shows."""
    gone: Span
    """What goes when the entry is dropped: its line, or itself and a comma."""
    write: Callable[[Target], tuple[Edit, ...]]
    """The edits that make it ask for something else."""
    more: Callable[[Target], str]
    """Another entry, as it is inserted before this one, at ``gone.start`` or ``at``."""
    at: int
    group: str = ""
    """Entries of one group are installed together."""
    is_base: bool = False
    """Of the group that everybody installs."""
    extras: frozenset[str] = frozenset()
    versions: SpecifierSet | None = None
    """What it allows; None where it doesn't say, or can't be read."""
    is_pinned: bool = False
    """Allows one version, or those that differ in the last place."""
    is_whole: bool = False
    """Every version it allows has to fit, not just one (``requires-python``)."""
    marker: str = ""
    url: str = ""
    fixed: str = ""
    """Why it can't be rewritten; empty when it can."""
    table: str = ""
    """Of an entry that is a key: the table in which no other entry may have its name."""

    @property
    def package(self) -> str:
        return self.symbol.removeprefix("package.") if self.symbol.startswith("package.") else ""


@dataclass
class Document:
    """What a reader found in a file."""

    entries: list[Entry] = field(default_factory=list)
    comments: list[Span] = field(default_factory=list)
    ignored: list[Span] = field(default_factory=list)
    """Text that may mention torch_xla without meaning it, such as names of included files."""
    compiled: bool = False
    """A tool wrote it from other files: it has to be made again."""
    project: str = ""
    """The package that the file describes."""


Reader = Callable[[Source], Document]
"""Finds the entries of a file.

Raises:
    NotReadable: the text isn't of this kind.
"""
Checker = Callable[[str], None]
"""Raises NotReadable when text isn't of this kind."""


def mentions(book: RuleBook, data: bytes) -> bool:
    """Whether a file can ask for a package that a rule is about."""
    plain = data.replace(b"\0", b"").lower()  # UTF-16, as PowerShell writes it
    return _PREFILTER.search(plain) is not None or any(
        re.search(re.sub(rb"[-_.]", b"[-_.]", name), plain) for name in _own_packages(book)
    )


def _own_packages(book: RuleBook) -> list[bytes]:
    return [
        pattern.removeprefix("package.").lower().encode()
        for rule in book.rules
        if rule.own
        for pattern in rule.match
        if pattern.startswith("package.")
    ]


def links_symbol(url: str) -> str:
    """What an address to find packages at is called in rules."""
    return "setting.jax_find_links" if "jax-releases" in url else "setting.find_links"


# requirements, as PEP 508 writes them

_REQUIREMENT = re.compile(
    r"""\s*(?P<body>(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)
        \s*(?P<extras>\[[^\]]*\])?
        (?:\s*@\s*(?P<url>\S+)|\s*(?P<versions>\(?\s*(?:[<>=!~]=?=?[^;#]*?)?\)?))?)
        \s*(?P<marker>;.*)?\s*""",
    re.VERBOSE | re.DOTALL,
)
_ADDRESS = re.compile(
    r"\s*(?P<body>(?:git\+|hg\+)?(?:https?|ssh|file|git)://\S+)\s*(?P<marker>;.*)?\s*", re.DOTALL
)


@dataclass(frozen=True)
class Parsed:
    """A requirement that was read from text; ``body`` is everything but the marker."""

    name: str
    body: Span
    extras: frozenset[str]
    versions: SpecifierSet | None
    is_pinned: bool
    marker: str
    url: str
    fixed: str


def parse_requirement(text: str, start: int = 0) -> Parsed | None:
    """Read one requirement, or the address of a wheel or repository.

    Args:
        text: the requirement, without comment and options.
        start: offset of the text in its file.

    Returns:
        None when it is neither.
    """
    found = _ADDRESS.fullmatch(text)
    if found is not None:
        name, url, versions, extras, written = "", found["body"], "", "", True
    else:
        found = _REQUIREMENT.fullmatch(text)
        if found is None:
            return None
        name, url = canonical(found["name"]), found["url"] or ""
        versions, extras = (found["versions"] or "").strip().strip("()"), found["extras"] or ""
        written = False
    fixed = ""
    if url:
        from_url, version = _of_address(url)
        name = name or from_url
        versions = f"=={version}" if version else ""
        if not name:
            return None
    elif re.search(r"[$%{\\]", found["body"]):
        fixed = "part of it is filled in from elsewhere"
    specifiers, is_pinned = read_versions(versions)
    if versions and specifiers is None and not fixed and not url:
        fixed = f"{versions!r} is no version specifier"
    span = Span(start + found.start("body"), start + found.start("body") + len(found["body"].rstrip()))
    names = frozenset(canonical(part) for part in extras.strip("[] ").split(",") if part.strip())
    marker = (found["marker"] or "").lstrip(";").strip()
    return Parsed(name, span, names, specifiers, is_pinned or bool(url) or written, marker, url, fixed)


def canonical(name: str) -> str:
    """``Torch-XLA`` -> ``torch_xla``, which the names of the rules are written in."""
    return re.sub(r"[-_.]+", "_", name.strip()).lower()


def read_versions(text: str) -> tuple[SpecifierSet | None, bool]:
    """The versions a specifier allows (None: any, or it can't be read), and whether it pins one."""
    text = text.strip()
    if not text or text == "*":
        return None, False
    try:
        found = SpecifierSet(text)
    except InvalidSpecifier:
        return None, False
    return found, len(found) == 1 and next(iter(found)).operator in ("==", "===", "~=")


def _of_address(url: str) -> tuple[str, str]:
    """Package and version that the address of a wheel, an archive or a repository speaks of."""
    if egg := re.search(r"[#&]egg=([\w.-]+)", url):
        return canonical(egg[1]), ""
    if re.search(r"github\.com[:/]pytorch/xla\b", url):
        return "torch_xla", ""
    last = url.split("#")[0].split("?")[0].rstrip("/").rpartition("/")[2]
    if wheel := re.match(r"([A-Za-z0-9_.]+)-([^-]+)-.*\.whl$", last):
        return canonical(wheel[1]), re.sub(r"%2[Bb]", "+", wheel[2])
    if archive := re.match(r"([A-Za-z][\w.-]*?)-(\d[\w.+]*)\.(?:tar\.gz|zip)$", last):
        return canonical(archive[1]), archive[2]
    name = re.match(r"([\w.-]+?)(?:\.git)?(?:@.*)?$", last)
    return (canonical(name[1]), "") if name and url.startswith(("git+", "git:", "ssh:")) else ("", "")


# whether versions fit


def fits(entry: Entry, wanted: str) -> bool:
    """Whether an entry allows a version that is wanted; of ``is_whole`` ones, whether it allows no other."""
    versions = entry.versions
    if versions is None:
        return not entry.url
    allowed = SpecifierSet(wanted)
    if entry.is_whole:
        return not any(versions.contains(p) and not allowed.contains(p) for p in _PYTHONS)
    candidates = {near for spec in (*versions, *allowed) for near in _near(spec.version)}
    return any(
        versions.contains(v, prereleases=True) and allowed.contains(v, prereleases=True) for v in candidates
    )


def _near(text: str) -> list[Version]:
    """A version that a specifier names, and those just above and below it."""
    try:
        version = Version(text.removesuffix(".*"))
    except InvalidVersion:
        return []
    major, minor, micro = version.major, version.minor, version.micro
    near = [f"{major}.{minor}.{micro + 1}", f"{major}.{minor + 1}", f"{major + 1}.0"]
    near += [f"{major}.{minor}.{micro - 1}"] * bool(micro) + [f"{major}.{minor - 1}.9"] * bool(minor)
    return [version, *map(Version, near)]


def _only_old_python(marker: str) -> bool:
    """Whether a marker holds for Pythons that torch_tpu has no wheels for, and for none that it has."""
    if "python" not in marker:
        return False
    try:
        parsed = Marker(marker)
    except InvalidMarker:
        return False
    holds = {}
    for version in _PYTHONS:
        environment = {"python_version": version, "python_full_version": f"{version}.0"}
        holds[int(version[2:])] = any(
            parsed.evaluate({**environment, "sys_platform": platform, "platform_system": system, "extra": ""})
            for platform, system in (("linux", "Linux"), ("darwin", "Darwin"))
        )
    return any(holds.values()) and not any(value for minor, value in holds.items() if minor >= _FIRST_PYTHON)


# the rewrite


def rewrite_packages(read: Reader, check: Checker, engine: Engine, path: str, data: bytes) -> Rewritten:
    """Rewrite one file that asks for packages.

    Args:
        read: finds the entries.
        check: looks at the new text before it is taken.
        engine: rules and settings.
        path: repository path of the file.
        data: its bytes.
    """
    try:
        source = Source.decode(data)
        check(source.text)
        document = read(source)
    except (SourceError, NotReadable) as error:
        return Rewritten(_not_parsed(engine, path, data, str(error)))
    return Rewritten(_File(engine, path, data, source, document, check).run())


def _not_parsed(engine: Engine, path: str, data: bytes, reason: str) -> FileResult:
    if not engine.settings.selects(NOT_PARSED):
        return FileResult(path, data, data)
    utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = data.decode("utf-16", "replace") if utf16 else data.decode("utf-8", "replace")
    count = len(_MENTION.findall(text))
    if not count:
        return FileResult(path, data, data)
    if utf16:
        reason = "it is UTF-16 (PowerShell's > writes that); save it as UTF-8"
    finding = Finding(
        NOT_PARSED, "not-parsed", path, 1, 1, 1, 1, Safety.MANUAL, Outcome.OPEN,
        f"not migrated: {reason}. It mentions torch_xla {'once' if count == 1 else f'{count} times'}; "
        f'mend it and run again, or leave it out: [tool.tpu-migrate] exclude = ["{path}"]',
        references=count,
    )  # fmt: skip
    return FileResult(path, data, data, [finding], count, 0)


@dataclass
class _Decision:
    rule: Rule
    symbol: str
    span: Span
    outcome: Outcome = Outcome.OPEN
    refusal: str = ""
    edits: tuple[Edit, ...] = ()
    after: str = ""
    references: int = 1


class _File:
    def __init__(
        self, engine: Engine, path: str, data: bytes, source: Source, document: Document, check: Checker
    ) -> None:
        self.engine, self.path, self.data, self.source = engine, path, data, source
        self.document, self.check = document, check
        self.settings = engine.settings
        self.ignored = self.settings.ignored_in(engine.prefix + path)
        self.suppressions = Suppressions(source.text)
        self.packages = frozenset(entry.package for entry in document.entries)
        self.asks_for_tpu = bool(self.packages & _TPU)
        self.tpu_groups = {entry.group for entry in document.entries if entry.package in _TPU}
        self.taken: set[tuple[str, str, str]] = set()
        """(group or table, package, marker) of what stays or was written."""

    def run(self) -> FileResult:
        if alone := self._own_project() or self._vendor():
            return alone
        for entry in self.document.entries:
            rule = self._rule(entry.symbol)
            stays = rule is None or rule.safety is Safety.MANUAL or self._is_about(rule, entry) is False
            if entry.package and stays:
                self._take(entry, entry.package)
        # where two of a table become one, the one that isn't optional stays
        ordered = sorted(self.document.entries, key=lambda entry: entry.group.endswith(" optional"))
        decisions = [found for entry in ordered if (found := self._decide(entry)) is not None]
        decisions += self._mentions(decisions)
        edits = [edit for decision in decisions for edit in decision.edits]
        rendered = render(self.source.text, merge_deletions(edits))
        if edits:
            try:
                self.check(rendered.text)
            except NotReadable as error:
                raise ValueError(f"the rewritten file could not be read: {error}") from None
        new = self.source.encode(rendered.text) if edits else self.data
        findings = self._findings(decisions, rendered)
        return FileResult(
            self.path,
            self.data,
            new,
            findings,
            sum(decision.references for decision in decisions),
            sum(d.references for d in decisions if d.outcome is Outcome.REWRITTEN),
        )

    def _rule(self, symbol: str) -> Rule | None:
        match = self.engine.matcher.find(symbol, None, "")
        return match.rule if match is not None else None

    def _is_wanted(self, code: str) -> bool:
        return self.settings.selects(code) and not (self.ignored and code.startswith(self.ignored))

    # projects that are left alone

    def _own_project(self) -> FileResult | None:
        """Leave the projects torch_xla and optimum-tpu themselves alone."""
        project = self.document.project
        if not re.fullmatch(r"torch_xla\w*|optimum_tpu", project):
            return None
        rule = self._rule(MENTION)
        findings = []
        places = list(_MENTION.finditer(self.source.text))
        if rule is not None and places and self._is_wanted(rule.code):
            line, column = self.source.position(places[0].start())
            end_line, end_column = self.source.position(places[-1].end())
            findings.append(
                Finding(
                    rule.code, rule.name, self.path, line, column, end_line, end_column, Safety.MANUAL,
                    Outcome.OPEN,
                    f"left alone: this is the project {project} itself, not one that uses it.",
                    symbol=MENTION,
                    references=0,
                )
            )  # fmt: skip
        return FileResult(self.path, self.data, self.data, findings)

    def _vendor(self) -> FileResult | None:
        """Leave files alone that ask for another vendor's torch_xla."""
        found = _MENTION.search(self.source.text)
        if found is None:
            return None
        vendor = next((name for name, sign in _VENDORS.items() if self._has(sign)), "")
        if not vendor:
            return None
        findings = []
        if self._is_wanted(OTHER_VENDOR):
            line, column = self.source.position(found.start())
            findings.append(
                Finding(
                    OTHER_VENDOR, "other-vendor", self.path, line, column, line, column + len(found.group()),
                    Safety.MANUAL, Outcome.OPEN,
                    f"left alone: this is written for {vendor}, which brings its own torch_xla. "
                    "TorchTPU does not replace it; follow that vendor's own guide.",
                    references=0,
                )
            )  # fmt: skip
        return FileResult(self.path, self.data, self.data, findings)

    def _has(self, sign: re.Pattern[str]) -> bool:
        text = self.source.text
        return any(sign.search(text, e.span.start, e.span.end) for e in self.document.entries) or any(
            sign.search(e.url) for e in self.document.entries
        )

    def _vendor_near(self) -> str:
        """The vendor that code in or below the file's directory is written for."""
        directory = self.path.rpartition("/")[0]
        prefix = directory + "/" if directory else ""
        return next(
            (name for path, name in self.engine.overview.vendors.items() if path.startswith(prefix)), ""
        )

    # decisions

    def _is_about(self, rule: Rule, entry: Entry) -> bool:
        """Whether a rule has anything to say of an entry."""
        options = rule.options
        if options.get("beside"):
            if not self.asks_for_tpu or not (entry.group in self.tpu_groups or entry.is_base):
                return False
        if set(options.get("unless", ())) & self.packages and not self.asks_for_tpu:
            return False
        if "url" in options and not any(re.search(pattern, entry.url) for pattern in options["url"]):
            return False
        wanted = options.get("fits", "")
        return not (wanted and not entry.fixed and fits(entry, wanted))

    def _decide(self, entry: Entry) -> _Decision | None:
        rule = self._rule(entry.symbol)
        if rule is None or not self._is_wanted(rule.code) or not self._is_about(rule, entry):
            return None
        decision = _Decision(rule, entry.symbol, entry.span)
        first, last = self.source.position(entry.span.start)[0], self.source.position(entry.span.end)[0]
        if self.suppressions.covers(rule.code, first, last):
            decision.outcome = Outcome.SUPPRESSED
            return decision
        if rule.safety is Safety.MANUAL:
            return decision
        decision.refusal = self._refusal(rule, entry)
        if not decision.refusal:
            decision.outcome = Outcome.REWRITTEN
            decision.edits, decision.after = self._edits(rule, entry)
        return decision

    def _refusal(self, rule: Rule, entry: Entry) -> str:
        """Why an entry is left as it is; empty when it can be rewritten."""
        if self.settings.safe_only and rule.safety is not Safety.SAFE:
            return "a review rule, and --safe-only is set"
        if self.document.compiled:
            return "this file is made from others, and pins all it lists; change those and make it again"
        if entry.fixed:
            return entry.fixed
        if others := sorted(set(rule.options.get("unless", ())) & self.packages):
            return f"{others[0]} is in this file too, and may need it"
        if gpu := sorted(extra for extra in entry.extras if extra.startswith("cuda")):
            return f"[{gpu[0]}] is for GPUs, which torch_tpu is not for"
        if targets_of(rule) and _only_old_python(entry.marker):
            return f"torch_tpu needs Python 3.11 or newer, and this is for older ones ({entry.marker})"
        if rule.options.get("beside") and targets_of(rule):
            if entry.group not in self.tpu_groups:
                return "those install it too who do without the TPU packages"
            if not entry.is_pinned:
                return "it is a range, whose bounds have reasons this file doesn't tell"
        if vendor := self._vendor_near():
            return f"code beside this file is written for {vendor}, which brings its own torch_xla"
        return ""

    def _edits(self, rule: Rule, entry: Entry) -> tuple[tuple[Edit, ...], str]:
        """The edits of an entry, and what it becomes."""
        targets = [target for target in targets_of(rule) if not self._is_taken(entry, target)]
        if not targets:
            return (Edit(entry.gone),), ""
        for target in targets:
            self._take(entry, canonical(target.name))
        *others, last = targets
        inserted = "".join(entry.more(target) for target in others)
        edits = entry.write(last)
        if inserted:
            edits = (Edit(Span(entry.at, entry.at), (inserted,)), *edits)
        return edits, ", ".join(target.text for target in targets)

    def _take(self, entry: Entry, name: str) -> None:
        self.taken.add((entry.table, name, "") if entry.table else (entry.group, name, entry.marker))

    def _is_taken(self, entry: Entry, target: Target) -> bool:
        name = canonical(target.name)
        if name == entry.package:
            return False
        if entry.table:
            return (entry.table, name, "") in self.taken
        return any((entry.group, name, marker) in self.taken for marker in ("", entry.marker))

    def _mentions(self, decisions: Sequence[_Decision]) -> list[_Decision]:
        """What else mentions torch_xla, and isn't a comment."""
        rule = self._rule(MENTION)
        if rule is None or not self._is_wanted(rule.code):
            return []
        known = [
            *self.document.comments,
            *self.document.ignored,
            *(entry.span for entry in self.document.entries),
        ]
        known += [entry.gone for entry in self.document.entries]
        found = []
        lines: set[int] = set()
        for match in _MENTION.finditer(self.source.text):
            span = Span(match.start(), match.end())
            line = self.source.position(span.start)[0]
            if line in lines or any(span in other for other in known):
                continue
            lines.add(line)
            decision = _Decision(rule, MENTION, span)
            if self.suppressions.covers(rule.code, line, line):
                decision.outcome = Outcome.SUPPRESSED
            found.append(decision)
        return found

    # results

    def _findings(self, decisions: Iterable[_Decision], rendered: Rendered) -> list[Finding]:
        shown = Source(rendered.text) if self.engine.applied else self.source
        findings = []
        for decision in decisions:
            rule, span = decision.rule, decision.span
            start, end = span.start, span.end
            if self.engine.applied:
                start = min(rendered.new_offset(start), len(rendered.text))
                end = start if decision.edits else min(rendered.new_offset(end), len(rendered.text))
                if decision.after:
                    end = shown.line_end(start)
                    end -= len(shown.text[start:end]) - len(shown.text[start:end].rstrip())
            line, column = shown.position(start)
            end_line, end_column = shown.position(max(start, end))
            findings.append(
                Finding(
                    rule.code, rule.name, self.path, line, column, end_line, end_column, rule.safety,
                    decision.outcome, _message(decision),
                    before=self.source.text[span.start : span.end],
                    after=decision.after,
                    symbol=decision.symbol,
                    references=decision.references,
                    edits=self._text_edits(decision.edits),
                )
            )  # fmt: skip
        findings.sort(key=lambda finding: (finding.line, finding.column, finding.code))
        return findings

    def _text_edits(self, edits: Iterable[Edit]) -> tuple[TextEdit, ...]:
        return tuple(
            TextEdit(
                *self.source.position(edit.span.start),
                *self.source.position(edit.span.end),
                "".join(part for part in edit.parts if isinstance(part, str)),
            )
            for edit in edits
        )


def _message(decision: _Decision) -> str:
    rule = decision.rule
    if decision.outcome is Outcome.SUPPRESSED:
        return rule.why
    if decision.outcome is Outcome.REWRITTEN:
        return rule.review or rule.why
    if decision.refusal:
        return f"not rewritten: {decision.refusal}. {rule.action or rule.review}".rstrip()
    return rule.action


@functools.cache
def _target(text: str) -> Target:
    parsed = _REQUIREMENT.fullmatch(text)
    assert parsed is not None, text
    return Target(parsed["name"], (parsed["versions"] or "").strip())


def targets_of(rule: Rule) -> list[Target]:
    """The requirements that a rule writes."""
    return [_target(text) for text in ast.literal_eval(rule.replace or "''").split()]
