"""Notebooks: the Python cells are rewritten as one program, and only what changed is written back.

The cells are joined to one text in which a comment marks where each cell begins, and in which every line
that is IPython's (magics, shell escapes, help) is a comment or a ``pass`` with a number. After the rewrite
each mark must still be there, once and in order; then the text is cut at the marks, and the lines come back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tpu_migrate.findings import FileResult, Finding, Outcome, Safety
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.magics import (
    NEWLINE,
    Escape,
    Kind,
    cell_magic,
    find_escapes,
    parses,
    python_words,
    split_lines,
)
from tpu_migrate.formats.notebook_json import Cell, Notebook, NotebookError, read_notebook
from tpu_migrate.formats.pip_lines import NotSimple, is_install, migrated_install
from tpu_migrate.programs import survey
from tpu_migrate.python.index import read_facts, vendor_of
from tpu_migrate.python.rewrite import (
    BROKEN,
    IMPORT_KEPT,
    NOT_PARSED,
    Engine,
    Rewritten,
    _first_sentence,
    rewrite_file,
)
from tpu_migrate.python.suppress import Suppressions
from tpu_migrate.rules import Rule, RuleBook

_MENTION = re.compile(
    r"torch[_-]xla|xla_(?:model|spawn|dist|multiprocessing)|pytorch[-_/]xla|optimum[-.]tpu", re.I
)
_MENTION_BYTES = re.compile(_MENTION.pattern.encode(), re.I)
_SETUP = re.compile(
    r"[!%][ \t]*(?:\w+=\S+[ \t]+)*(?:curl|wget|python3?)\b[^&|;\r\n]*\b(?:pytorch-xla-)?env-setup\.py\b"
    r"[^&|;\r\n]*"
)
_VARIABLE = re.compile(r"%(?:env|set_env)[ \t]+(?P<name>[A-Z][A-Z0-9_]*)(?:[ \t]*=[ \t]*|[ \t]+)\S.*")
_SHOWN = ("torch_xla", "xla:", "'xla'")
"""What outputs of torch_xla hold, and base64 of pictures doesn't."""
_SET = re.compile(r"\b([A-Z][A-Z0-9_]+)=")
_KEPT_LINES = re.compile(r"kept: lines? (?P<lines>[\d, ]+?)(?P<more>, \.\.\.)? still uses? it")
_SEVERAL = re.compile(
    r"notebook_launcher|spawn|init_process_group|fork|multiprocess|Process\b|use_spmd|_mp_fn"
)
"""What notebooks hold that may run its functions in several processes."""
_PYTHON = ("", "python", "python2", "python3", "ipython", "xpython")
_NO_SCRIPT = (
    " A notebook is one process, which torchrun can't start: export it (jupyter nbconvert --to script), "
    "and start what comes out."
)


class _MarksLost(Exception):
    """The rewritten text can't be cut into cells again."""


def mentions(book: RuleBook, data: bytes) -> bool:
    """Whether a notebook can hold something to migrate; outputs in base64 may say so by chance."""
    return book.mentions(data) or _MENTION_BYTES.search(data) is not None


def rewrite_notebook(
    engine: Engine, path: str, data: bytes, wanted_exports: frozenset[str] = frozenset()
) -> Rewritten:
    """Rewrite one notebook.

    Args:
        engine: rules, settings, and the repository as a whole.
        path: repository path of the file.
        data: its bytes.
        wanted_exports: names that other files still import from it.
    """
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    try:
        notebook = read_notebook(data[len(bom) :].decode("utf-8"))
    except UnicodeDecodeError as error:
        return Rewritten(_not_read(path, data, NotebookError(f"byte 0x{data[error.start]:02x} is not utf-8")))
    except NotebookError as error:
        return Rewritten(_not_read(path, data, error))
    file = _File(engine, path, data, notebook, wanted_exports)
    rewritten = file.run()
    if file.sources:
        text = notebook.with_sources(file.sources)
        rewritten.result.new = bom + text.encode("utf-8")
    return rewritten


def _not_read(path: str, data: bytes, error: NotebookError) -> FileResult:
    count = sum(_MENTION_BYTES.search(line) is not None for line in data.splitlines())
    if not count:
        return FileResult(path, data, data)
    finding = Finding(
        NOT_PARSED, "not-parsed", path, error.line, error.column, error.line, error.column, Safety.MANUAL,
        Outcome.OPEN,
        f"not migrated: {error}. It mentions torch_xla, and was not changed. Open it in Jupyter and save it, "
        f'or leave it out: [tool.tpu-migrate] exclude = ["{path}"]',
        references=count,
    )  # fmt: skip
    return FileResult(path, data, data, [finding], count, 0)


@dataclass
class _Mark:
    """A line of IPython's in the joined text, and what it is to be afterwards."""

    number: int
    cell: Cell
    escape: Escape
    line: int
    """Of the cell, counted from 0."""
    hidden: str
    """What stands for it, without indentation; for timed statements the mark behind them."""
    shown: str
    """What it is written back as, without indentation and newline."""
    above: str = ""
    """A comment to be put above it."""
    dropped: bool = False


@dataclass
class _Line:
    """A line of the rewritten text."""

    out: str
    """The lines of the cell that it becomes: none, one, or two."""
    mark: _Mark | None = None

    @property
    def count(self) -> int:
        return len(split_lines(self.out))


@dataclass
class _Note:
    """A finding about something beside the Python code."""

    rule: Rule
    cell: Cell
    line: int
    """Of the cell, counted from 0, before the rewrite."""
    message: str
    outcome: Outcome
    before: str
    after: str = ""
    mark: _Mark | None = None
    references: int = 1
    symbol: str = ""


@dataclass
class _Joined:
    """The Python cells as one text."""

    text: str
    cells: list[Cell]
    marks: list[_Mark]
    places: list[tuple[Cell, int]]
    """Of each line of the text: the cell, and the line in it counted from 1."""


@dataclass
class _Cut:
    """The rewritten text, divided into cells again."""

    cells: dict[int, list[_Line]]
    """By cell number, in the order they are written back in."""
    sequence: list[tuple[Cell, _Line | None]]
    """The lines of the text itself; None: where a cell begins."""

    @cached_property
    def numbers(self) -> dict[int, int]:
        """By ``id`` of a line, its number in its cell; of the last one where it becomes two."""
        found = {}
        for lines in self.cells.values():
            number = 1
            for line in lines:
                found[id(line)] = number + max(0, line.count - 1)
                number += line.count
        return found


@dataclass
class _File:
    engine: Engine
    path: str
    data: bytes
    notebook: Notebook
    wanted: frozenset[str]
    sources: dict[int, str] = field(default_factory=dict)
    """New sources, by cell number."""
    notes: list[_Note] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    """Names that lines and cells use which are not read as Python."""

    def run(self) -> Rewritten:
        book = self.engine.matcher.book
        code = [cell for cell in self.notebook.cells if cell.type == "code" and cell.text.strip()]
        everything = "\n".join(cell.text for cell in code)
        told = everything.encode("utf-8", "replace")
        if not mentions(book, told):
            self._prose()
            return self._result(Rewritten(FileResult(self.path, self.data, self.data)), None, None)
        if vendor := vendor_of(told):
            return self._vendor(vendor, code)
        self.ignored = self.engine.settings.ignored_in(self.engine.prefix + self.path)
        self.token = "nbmark"
        while self.token in everything:
            self.token += "_"
        for timed in (True, False):
            self.notes.clear()
            self.findings.clear()
            self.words.clear()
            joined = self._join(code, timed)
            rewritten = self._rewrite(joined)
            new = rewritten.result.new.decode("utf-8")
            if any(finding.code in (BROKEN, NOT_PARSED) for finding in rewritten.result.findings):
                self._withdraw()
                self._prose()
                return self._result(rewritten, joined, None)
            try:
                cut = self._cut(joined, new)
            except _MarksLost:
                continue
            self._write(joined, cut)
            self._prose()
            return self._result(rewritten, joined, cut if self.engine.applied else None)
        finding = Finding(
            BROKEN, "rewrite-failed", self.path, 1, 1, 1, 1, Safety.MANUAL, Outcome.OPEN,
            "not migrated: the rewritten program can't be divided into its cells again. This is a bug in "
            "tpu-migrate: report it with this file. The file is unchanged.",
        )  # fmt: skip
        return Rewritten(FileResult(self.path, self.data, self.data, [finding], 1, 0))

    # from cells to one text

    def _join(self, code: Sequence[Cell], timed: bool) -> _Joined:
        marks: list[_Mark] = []
        parts: list[tuple[Cell, list[str]]] = []
        for cell in code:
            if not self._is_python(cell):
                self._left_out(cell)
                continue
            lines = split_lines(cell.text)
            mine: list[_Mark] = []
            for escape in find_escapes(cell.text, timed):
                mine += self._hide(cell, lines, escape, len(marks) + len(mine))
            if self._cell_parses(lines):  # one by one: strings left open may close each other
                parts.append((cell, lines))
                marks += mine
            else:
                self._not_parsed(cell)
        for mark in marks:
            if mark.escape.kind in (Kind.LINE, Kind.ASSIGNED):
                self.words |= python_words(mark.escape.command)
        self._look_at(marks)
        text: list[str] = []
        places: list[tuple[Cell, int]] = []
        for cell, lines in parts:
            text.append(f"{self._boundary(cell)}\n")
            places.append((cell, 1))
            text += map(self._ended, lines)
            places += ((cell, number) for number in range(1, len(lines) + 1))
        return _Joined("".join(text), [cell for cell, _ in parts], marks, places)

    def _is_python(self, cell: Cell) -> bool:
        language = cell.language or self.notebook.language
        return (
            language in _PYTHON
            and not cell_magic(cell.text)
            and "\0" not in cell.text
            and _encodes(cell.text)
        )

    def _boundary(self, cell: Cell) -> str:
        return f"# {self.token} cell {cell.number}"

    @staticmethod
    def _ended(line: str) -> str:
        return line if line.endswith(("\n", "\r")) else line + "\n"

    def _cell_parses(self, lines: Sequence[str]) -> bool:
        text = "".join(map(self._ended, lines))
        if parses(text):
            return True
        import libcst

        try:  # newer syntax than this interpreter's
            libcst.parse_module(text)
        except (libcst.ParserSyntaxError, RecursionError):
            return False
        return True

    def _hide(self, cell: Cell, lines: list[str], escape: Escape, number: int) -> Iterator[_Mark]:
        """Put marks in the place of an escape's lines."""
        for line in range(escape.first, escape.last + 1):
            newline = lines[line][len(lines[line].rstrip("\r\n")) :]
            first = line == escape.first
            mark = f"# {self.token} {number}"
            shown = lines[line].rstrip("\r\n")[len(escape.indent) if first else 0 :]
            hidden, indent = mark, escape.indent if first else ""
            if first and escape.kind is Kind.TIMED:
                lines[line] = f"{indent}{escape.command}  {mark}{newline}"
            else:
                if first and escape.kind is Kind.ASSIGNED:
                    hidden = f"{escape.head}None  {mark}"
                elif first and escape.indent and escape.kind is not Kind.COMMENT:
                    hidden = f"pass  {mark}"
                lines[line] = f"{indent}{hidden}{newline}"
            yield _Mark(number, cell, escape, line, hidden, shown)
            number += 1

    # what isn't Python

    def _rule(self, name: str) -> Rule | None:
        match = self.engine.matcher.find(name, None, "library")
        if match is None or not self._selected(match.rule.code):
            return None
        return match.rule

    def _selected(self, code: str) -> bool:
        ignored = bool(self.ignored) and code.startswith(self.ignored)
        return self.engine.settings.selects(code) and not ignored

    def _look_at(self, marks: Sequence[_Mark]) -> None:
        """Judge the lines that are IPython's."""
        for mark in marks:
            escape = mark.escape
            if mark.line != escape.first or escape.kind is Kind.TIMED:
                continue
            self._judge(mark, escape.command)

    def _judge(self, mark: _Mark, command: str) -> None:
        if variable := _VARIABLE.fullmatch(command):
            name = f"env.{variable['name']}"
            rule = self._rule(name)
            if rule is not None and rule.transform == "drop-env":
                self._note(mark, rule, name, drop=True)
            elif rule is not None:
                self._note(mark, rule, name)
            return
        if _SETUP.fullmatch(command):
            self._note(mark, self._rule("command.notebook.env_setup"), "env-setup.py", drop=True)
        elif is_install(command):
            rule = self._rule("command.notebook.pip_install")
            try:
                new = migrated_install(command)
            except NotSimple as error:
                self._note(mark, rule, "torch_xla", refusal=str(error))
            else:
                self._note(mark, rule, "torch_xla", new=new)
        elif re.search(r"\binstall\b.*optimum[-_]tpu", command, re.DOTALL):
            self._note(mark, self._rule("command.notebook.optimum_tpu"), "optimum_tpu")
        elif found := _MENTION.search(command):
            self._note(mark, self._rule("command.notebook.other"), found.group())
        for name in self._variables(command):
            rule = self._rule(name)
            if rule is not None:
                self._note(mark, rule, name, refusal="" if rule.action else "it stands in a shell command")

    def _variables(self, text: str) -> list[str]:
        """The variables of torch_xla that a shell command sets, as rules call them."""
        known = self.engine.environment
        return [f"env.{name}" for name in dict.fromkeys(_SET.findall(text)) if name in known]

    def _note(
        self,
        mark: _Mark,
        rule: Rule | None,
        symbol: str,
        *,
        new: str = "",
        drop: bool = False,
        refusal: str = "",
    ) -> None:
        """Settle what becomes of one line, and say so."""
        if rule is None:
            return
        escape, settings = mark.escape, self.engine.settings
        outcome = Outcome.OPEN
        rewrites = bool(new or drop)
        if rewrites and settings.safe_only and rule.safety is not Safety.SAFE:
            rewrites, refusal = False, "a review rule, and --safe-only is set"
        if drop and (escape.first != escape.last or escape.kind is Kind.ASSIGNED):
            rewrites, refusal = False, "it goes over several lines"
        if Suppressions(mark.cell.text).covers(rule.code, escape.first + 1, escape.last + 1):
            outcome, rewrites = Outcome.SUPPRESSED, False
        elif rewrites:
            outcome = Outcome.REWRITTEN
            if not drop:
                mark.shown = escape.head + new
            else:
                mark.dropped = True
        advice = " ".join(part for part in (rule.action or rule.review,) if part)
        message = advice or rule.why
        if refusal and outcome is Outcome.OPEN:
            message = f"not rewritten: {refusal}. {advice}"
        if outcome is Outcome.OPEN and settings.comments and "--safe-only" not in refusal:
            if rule.options.get("comment", True) and escape.kind is not Kind.COMMENT:
                mark.above += self._comment(mark, rule, refusal)
        self.notes.append(
            _Note(
                rule,
                mark.cell,
                mark.line,
                message,
                outcome,
                escape.head + escape.command,
                "" if drop else new,
                mark,
                symbol=symbol,
            )
        )

    def _comment(self, mark: _Mark, rule: Rule, refusal: str) -> str:
        """The TODO comment for a line, or nothing where it stands there already."""
        lines = split_lines(mark.cell.text)
        above = mark.line - 1
        while above >= 0 and lines[above].lstrip().startswith("#"):
            if f"TODO(tpu-migrate {rule.code})" in lines[above]:
                return ""
            above -= 1
        newline = lines[mark.line][len(lines[mark.line].rstrip("\r\n")) :] or "\n"
        advice = _first_sentence(refusal or rule.action or rule.review)
        return f"{mark.escape.indent}# TODO(tpu-migrate {rule.code}): {advice}{newline}"

    def _left_out(self, cell: Cell) -> None:
        """A cell in another language, or one that a cell magic takes."""
        for name in self._variables(cell.text):
            rule = self._rule(name)
            place = re.search(rf"\b{name[4:]}=", cell.text)
            if rule is not None and place is not None:
                self._about(rule, cell, place, 1, name)
        rule = self._rule("command.notebook.other")
        found = _MENTION.search(cell.text)
        if rule is None or found is None:
            return
        count = sum(_MENTION.search(line) is not None for line in cell.text.splitlines())
        self._about(rule, cell, found, count)

    def _about(self, rule: Rule, cell: Cell, found: re.Match[str], count: int, symbol: str = "") -> None:
        """Report a place in a cell that isn't Python."""
        line = len(NEWLINE.findall(cell.text[: found.start()]))
        covered = Suppressions(cell.text).covers(rule.code, line + 1, line + 1)
        outcome = Outcome.SUPPRESSED if covered else Outcome.OPEN
        before = split_lines(cell.text)[line].strip()
        self.notes.append(
            _Note(
                rule,
                cell,
                line,
                rule.action or rule.review,
                outcome,
                before,
                references=count,
                symbol=symbol or found.group(),
            )
        )

    def _not_parsed(self, cell: Cell) -> None:
        self.words |= set(re.findall(r"[A-Za-z_]\w*", cell.text))
        found = _MENTION.search(cell.text)
        if found is None:
            return
        line = len(NEWLINE.findall(cell.text[: found.start()])) + 1
        count = sum(_MENTION.search(text) is not None for text in cell.text.splitlines())
        self.findings.append(
            Finding(
                NOT_PARSED, "not-parsed", self.path, line, 1, line, 1, Safety.MANUAL, Outcome.OPEN,
                "not migrated: this cell can't be read as Python. It was not changed; the other cells were "
                "migrated without it.",
                before=split_lines(cell.text)[line - 1].strip(),
                cell=cell.number,
                references=count,
            )
        )  # fmt: skip

    def _prose(self) -> None:
        """Findings about markdown and outputs."""
        self.ignored = self.engine.settings.ignored_in(self.engine.prefix + self.path)
        rule = self._rule("command.notebook.markdown")
        for cell in self.notebook.cells:
            if rule is not None and cell.type != "code" and (found := _MENTION.search(cell.text)):
                self._about(rule, cell, found, 0)
        rule = self._rule("command.notebook.outputs")
        stale = [cell for cell in self.notebook.cells if rule is not None and self._shows_xla(cell)]
        if rule is not None and stale:
            numbers = ", ".join(str(cell.number) for cell in stale[:6]) + (", ..." if len(stale) > 6 else "")
            message = f"cell{'s' * (len(stale) > 1)} {numbers}: {rule.action}"
            self.notes.append(_Note(rule, stale[0], 0, message, Outcome.OPEN, "", references=0))

    def _shows_xla(self, cell: Cell) -> bool:
        """Whether a cell's outputs were made by torch_xla."""
        text = self.notebook.text
        if not any(text.find(word, cell.span.start, cell.span.end) != -1 for word in _SHOWN):
            return False
        outputs = self.notebook.members(cell).get("outputs")
        return outputs is not None and any(
            text.find(word, outputs.start, outputs.end) != -1 for word in _SHOWN
        )

    # the rewrite

    def _rewrite(self, joined: _Joined) -> Rewritten:
        data = joined.text.encode("utf-8")
        overview = self.engine.overview
        if not self._speaks(joined.text, data):
            return Rewritten(FileResult(self.path, data, data))
        local = survey([read_facts(self.path, data, self.engine.matcher.book)])
        kind = overview.kinds.get(self.path) or local.kind(self.path)
        if kind == "library" and not _SEVERAL.search(joined.text):
            kind = "single-process"  # nobody imports a notebook
        overview = replace(
            overview,
            kinds={**overview.kinds, self.path: kind},
            group_makers=overview.group_makers | local.group_makers,
        )
        engine = replace(self.engine, overview=overview)
        return rewrite_file(engine, self.path, data, self.wanted | frozenset(self.words))

    def _speaks(self, text: str, data: bytes) -> bool:
        """Whether there may be something to rewrite in the Python, or something that a module re-exports."""
        if self.engine.matcher.book.speaks.search(data):
            return True
        names = (path.rpartition(".")[0].removesuffix("/__init__") for path in self.engine.overview.exports)
        return any(name.rpartition("/")[2] in text for name in names)

    def _vendor(self, vendor: str, code: Sequence[Cell]) -> Rewritten:
        for cell in code:
            if found := re.search(r"torch_xla|['\"]xla['\":]", cell.text):
                line = len(NEWLINE.findall(cell.text[: found.start()])) + 1
                finding = Finding(
                    "VN001", "other-vendor", self.path, line, 1, line, 1, Safety.MANUAL, Outcome.OPEN,
                    f"left alone: this is written for {vendor}, which brings its own torch_xla. "
                    "TorchTPU does not replace it; follow that vendor's own guide.",
                    cell=cell.number,
                    references=0,
                )  # fmt: skip
                return Rewritten(FileResult(self.path, self.data, self.data, [finding]))
        return Rewritten(FileResult(self.path, self.data, self.data))

    # back to cells

    def _cut(self, joined: _Joined, new: str) -> _Cut:
        """The lines of each cell after the rewrite.

        Raises:
            _MarksLost: a mark is missing, doubled, moved or changed.
        """
        boundaries = {self._boundary(cell): cell for cell in joined.cells}
        marks = {mark.number: mark for mark in joined.marks}
        found: dict[int, list[_Line]] = {}
        prelude: list[_Line] = []
        cell: Cell | None = None
        sequence: list[tuple[Cell, _Line | None]] = []
        seen: list[int] = []
        for line in split_lines(new):
            bare = line.rstrip("\r\n")
            if bare in boundaries:
                cell = boundaries[bare]
                if cell.number in found:
                    raise _MarksLost
                found[cell.number] = []
                sequence.append((cell, None))
                continue
            entry = _Line(line)
            if self.token in line:
                number = re.search(rf"# {self.token} (\d+)$", bare)
                mark = marks.get(int(number[1])) if number else None
                if mark is None or cell is None or mark.cell is not cell:
                    raise _MarksLost
                seen.append(mark.number)
                entry = self._shown(mark, line)
            if cell is None:
                prelude.append(entry)
            else:
                found[cell.number].append(entry)
                sequence.append((cell, entry))
        gone = {mark.number for mark in joined.marks if mark.escape.kind is Kind.TIMED} - set(seen)
        kept = [number for number in marks if number not in gone]
        if list(found) != [cell.number for cell in joined.cells] or seen != kept:
            raise _MarksLost
        if prelude:  # what the rewrite put at the very top
            found[joined.cells[0].number][:0] = prelude
            sequence[:0] = [(joined.cells[0], entry) for entry in prelude]
        for lines in found.values():
            _drop_passes(lines)
        for cell in joined.cells:
            self._tidy(cell, found[cell.number])
        return _Cut(found, sequence)

    def _shown(self, mark: _Mark, line: str) -> _Line:
        """A marked line as it is written back."""
        bare = line.rstrip("\r\n")
        newline = line[len(bare) :]
        body = bare.lstrip(" \t")
        indent = bare[: len(bare) - len(body)]
        if mark.escape.kind is Kind.TIMED:
            code = body.removesuffix(f"# {self.token} {mark.number}").rstrip()
            if code and not parses(code + "\n"):
                raise _MarksLost
            return _Line(f"{indent}{mark.escape.head}{code}{newline}" if code else "", mark)
        if body != mark.hidden:
            raise _MarksLost
        if mark.dropped:
            needed = (
                indent and mark.escape.kind is Kind.LINE
            )  # as long as nobody knows what else the block has
            return _Line(f"{indent}pass{newline}" if needed else "", mark)
        above = mark.above
        return _Line(f"{above}{indent}{mark.shown}{newline}", mark)

    def _tidy(self, cell: Cell, lines: list[_Line]) -> None:
        """Take blank lines from the ends of a changed cell that it did not have before."""
        old = split_lines(cell.text)
        if [line.out for line in lines] == [self._ended(line) for line in old]:
            return
        for end, side in ((0, lines), (-1, lines[::-1])):
            if old[end].strip():
                for line in side:
                    if line.out.strip():
                        break
                    line.out = ""

    def _write(self, joined: _Joined, cut: _Cut) -> None:
        for cell in joined.cells:
            text = "".join(line.out for line in cut.cells[cell.number])
            if not cell.text.endswith(("\n", "\r")):
                text = re.sub(r"(?:\r\n|\n|\r)\Z", "", text)
            if text != cell.text:
                self.sources[cell.number] = text

    def _withdraw(self) -> None:
        """Leave the lines that aren't Python too, where the Python around them stays."""
        for note in self.notes:
            if note.outcome is Outcome.REWRITTEN:
                note.outcome, note.after = Outcome.OPEN, ""
                note.message = f"not rewritten: the Python of this notebook isn't either. {note.message}"

    # findings

    def _result(self, rewritten: Rewritten, joined: _Joined | None, cut: _Cut | None) -> Rewritten:
        """The result for the file.

        Args:
            rewritten: that of the joined text.
            joined: the text; None where there was nothing to rewrite.
            cut: what it became, where findings speak of that.
        """
        inner = rewritten.result
        findings = list(self.findings)
        table = self._table(joined, cut) if inner.findings else []
        findings += (self._placed(finding, table, joined) for finding in inner.findings)
        findings += (self._noted(note, cut) for note in self.notes)
        findings.sort(key=lambda finding: (finding.cell or 0, finding.line, finding.column, finding.code))
        extra = sum(note.references for note in self.notes) + sum(f.references for f in self.findings)
        gone = sum(note.references for note in self.notes if note.outcome is Outcome.REWRITTEN)
        result = FileResult(
            self.path, self.data, self.data, findings, inner.references + extra, inner.rewritten + gone
        )
        return replace(rewritten, result=result)

    def _table(self, joined: _Joined | None, cut: _Cut | None) -> list[tuple[Cell, int, _Mark | None]]:
        """Of each line of the text that findings speak of: the cell, the line in it, and its mark."""
        if joined is None:
            return []
        if cut is None:
            marks = {(mark.cell.number, mark.line + 1): mark for mark in joined.marks}
            return [(cell, line, marks.get((cell.number, line))) for cell, line in joined.places]
        return [
            (cell, 1, None) if line is None else (cell, cut.numbers[id(line)], line.mark)
            for cell, line in cut.sequence
        ]

    def _placed(
        self, finding: Finding, table: Sequence[tuple[Cell, int, _Mark | None]], joined: _Joined | None
    ) -> Finding:
        """A finding about the joined text, as one about its cell."""
        if not table or finding.code == BROKEN:
            return replace(finding, line=1, end_line=1)
        cell, line, mark = table[min(finding.line, len(table)) - 1]
        end_cell, end_line, _ = table[min(finding.end_line, len(table)) - 1]
        if end_cell is not cell:
            end_line = line
        shift = len(mark.escape.head) if mark is not None and mark.escape.kind is Kind.TIMED else 0
        message = finding.message
        if finding.code == IMPORT_KEPT:
            message = self._kept(message, table, finding)
        if "torchrun" in message and finding.outcome is Outcome.REWRITTEN:
            message += _NO_SCRIPT
        return replace(
            finding,
            line=line,
            end_line=end_line,
            column=finding.column + shift,
            end_column=finding.end_column + shift,
            cell=cell.number,
            message=message,
            before=self._unmarked(finding.before, joined),
            after=self._unmarked(finding.after, joined),
            edits=(),
        )

    def _kept(self, message: str, table: Sequence[tuple[Cell, int, _Mark | None]], finding: Finding) -> str:
        if "other files still import it" in message and not self.wanted:
            return "kept: a magic command, or a cell that isn't read as Python, still uses it"

        def say(found: re.Match[str]) -> str:
            places = [table[int(number) - 1] for number in found["lines"].split(", ")]
            told = ", ".join(f"cell {cell.number} line {line}" for cell, line, _ in places)
            return f"kept: {told}{found['more'] or ''} still use{'s' * (len(places) == 1)} it"

        return _KEPT_LINES.sub(say, message)

    def _unmarked(self, text: str, joined: _Joined | None) -> str:
        if joined is None or self.token not in text:
            return text
        for mark in joined.marks:
            if mark.escape.kind is Kind.TIMED:
                text = re.sub(rf"[ ]*{re.escape(mark.hidden)}(?!\d)", "", text)
            else:
                line = split_lines(mark.cell.text)[mark.line].strip()
                text = re.sub(rf"{re.escape(mark.hidden)}(?!\d)", line.replace("\\", r"\\"), text)
        return text

    def _noted(self, note: _Note, cut: _Cut | None) -> Finding:
        line = note.line + 1
        if cut is not None and note.mark is not None:
            line = next(cut.numbers[id(e)] for e in cut.cells[note.cell.number] if e.mark is note.mark)
        width = len(note.before.splitlines()[0]) if note.before else 0
        column = 1 + (len(note.mark.escape.indent) if note.mark is not None else 0)
        return Finding(
            note.rule.code,
            note.rule.name,
            self.path,
            line,
            column,
            line,
            column + width,
            note.rule.safety,
            note.outcome,
            note.message,
            note.before,
            note.after,
            note.cell.number,
            note.symbol,
            note.references,
        )


def _drop_passes(lines: Sequence[_Line]) -> None:
    """Take out each ``pass`` left by a dropped line below a statement of the same block."""
    above = ""
    for line in lines:
        bare = line.out.strip()
        if line.mark is not None and line.mark.dropped and bare and _indent(above) == _indent(line.out):
            if not re.search(r":\s*(?:#.*)?$", above.rstrip()):  # the end of a long head
                line.out = ""
        if line.out.strip() and not bare.startswith("#"):
            above = split_lines(line.out)[-1]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


NOTEBOOK = Format("notebook", (".ipynb",), rewrite_notebook, mentions=mentions)
