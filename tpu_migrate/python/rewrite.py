"""Rewriting one Python file: from its bytes to new bytes and findings."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst

from tpu_migrate.config import Settings
from tpu_migrate.findings import Edit, FileResult, Finding, Outcome, Part, Safety, Span, TextEdit
from tpu_migrate.programs import Overview
from tpu_migrate.python import guards, transforms
from tpu_migrate.python.edits import (
    SPACED,
    Delete,
    EditConflict,
    Rendered,
    close_gaps,
    delete_statements,
    merge_deletions,
    render,
    replacement,
)
from tpu_migrate.python.helpers import Helper, fit
from tpu_migrate.python.imports import Imports, NameTaken, Need, helper_place, import_edits
from tpu_migrate.python.index import SPAWN
from tpu_migrate.python.literals import (
    argument_references,
    found_inf_references,
    keyword_references,
    literal_references,
    wrapper_method_references,
)
from tpu_migrate.python.match import Match, Matcher
from tpu_migrate.python.names import (
    REPOSITORY,
    ImportUse,
    Names,
    Reference,
    Repository,
    dotted_name,
    is_departing,
    resolve,
)
from tpu_migrate.python.processes import grouped_functions
from tpu_migrate.python.site import Dedent, FileContext, Refused, Rewrite, Site, shorten
from tpu_migrate.python.source import Source, SourceError
from tpu_migrate.python.suppress import Suppressions
from tpu_migrate.python.tree import Tree, TreeError, walk

NOT_PARSED, IMPORT_KEPT, OTHER_VENDOR, BROKEN = "PY001", "TX990", "VN001", "PY002"


@dataclass(frozen=True)
class Engine:
    """What rewriting any file of a run takes. Picklable, apart from the matcher made from it."""

    matcher: Matcher
    settings: Settings
    overview: Overview
    helpers_directory: Path
    applied: bool = False
    """Findings give the lines of the new file."""
    prefix: str = ""
    """What leads from the configuration's directory to the run's, with a slash at its end."""

    @property
    def environment(self) -> frozenset[str]:
        return frozenset(name[4:] for name in self.matcher.known_names if name.startswith("env."))


@dataclass
class Rewritten:
    """The result for one file, and what it still needs of the repository's other modules."""

    result: FileResult
    needs: frozenset[tuple[str, str]] = frozenset()
    """(path, name): re-exports that this file still imports after the rewrite."""


@dataclass(eq=False)
class _Place:
    """One reference on its way to a finding."""

    reference: Reference
    match: Match
    site: Site
    rewrite: Rewrite | None = None
    refusal: str = ""
    outcome: Outcome = Outcome.OPEN
    silent: bool = False
    """Carried by another finding, or left out by --select and --ignore."""


def rewrite_file(
    engine: Engine, path: str, data: bytes, wanted_exports: frozenset[str] = frozenset()
) -> Rewritten:
    """Rewrite one file.

    Args:
        engine: rules, settings, and the repository as a whole.
        path: repository path of the file.
        data: its bytes.
        wanted_exports: names that other files still import from it, and that therefore stay.
    """
    try:
        source = Source.decode(data)
        tree = Tree(source)
    except (SourceError, TreeError) as error:
        return Rewritten(_wanted(engine, _not_parsed(path, data, error)))
    if vendor := engine.overview.vendors.get(path):
        return Rewritten(_wanted(engine, _vendor(path, data, source, vendor)))
    file = _File(engine, path, data, tree, wanted_exports)
    try:
        return file.run()
    finally:
        file.names.release()


def _wanted(engine: Engine, result: FileResult) -> FileResult:
    """A result without the findings that --select, --ignore or per-file-ignores leave out."""
    ignored = engine.settings.ignored_in(engine.prefix + result.path)
    result.findings = [
        finding
        for finding in result.findings
        if engine.settings.selects(finding.code) and not (ignored and finding.code.startswith(ignored))
    ]
    return result


def _not_parsed(path: str, data: bytes, error: SourceError | TreeError) -> FileResult:
    mentions = [
        n
        for n, line in enumerate(re.split(rb"\r\n|\n|\r", data), 1)
        if re.search(rb"torch_xla|xla_model", line)
    ]
    count = len(mentions)
    if not count:
        return FileResult(path, data, data)
    line, column = (error.line, error.column) if isinstance(error, TreeError) else (1, 1)
    lines = "1 line with torch_xla was" if count == 1 else f"{count} lines with torch_xla were"
    finding = Finding(
        NOT_PARSED, "not-parsed", path, line, column, line, column, Safety.MANUAL, Outcome.OPEN,
        f"not migrated: {error}. Its {lines} not changed. "
        f'Make it Python 3 first, or leave it out: [tool.tpu-migrate] exclude = ["{path}"]',
        references=count,
    )  # fmt: skip
    return FileResult(path, data, data, [finding], count, 0)


def _vendor(path: str, data: bytes, source: Source, vendor: str) -> FileResult:
    found = re.search(r"torch_xla|['\"]xla['\":]", source.text)
    if found is None:
        return FileResult(path, data, data)
    line, column = source.position(found.start())
    finding = Finding(
        OTHER_VENDOR, "other-vendor", path, line, column, line, column + len(found.group()), Safety.MANUAL,
        Outcome.OPEN,
        f"left alone: this is written for {vendor}, which brings its own torch_xla. "
        "TorchTPU does not replace it; follow that vendor's own guide.",
        references=0,
    )  # fmt: skip
    return FileResult(path, data, data, [finding])


class _File:
    def __init__(self, engine: Engine, path: str, data: bytes, tree: Tree, wanted: frozenset[str]) -> None:
        self.engine, self.path, self.data, self.tree, self.wanted = engine, path, data, tree, wanted
        self.source = tree.source
        self.settings = engine.settings
        book = engine.matcher.book
        self.names: Names = resolve(
            tree,
            path,
            book.aliases,
            engine.matcher.known_names,
            Repository(engine.overview.find_module, engine.overview.exports),
            book.follows,
        )
        grouped = grouped_functions(self.names, SPAWN)
        if engine.overview.imported_by.get(path):
            grouped = frozenset()  # what it defines may be called from other programs
        self.context = FileContext(
            self.names,
            Imports(self.names),
            self.settings,
            engine.overview.kind(path),
            engine.helpers_directory,
            grouped,
            makes_group=path in engine.overview.group_makers,
        )
        self.suppressions = Suppressions(self.source.text)
        self.unmatched: set[int] = set()
        self.ignored = self.settings.ignored_in(engine.prefix + path)

    def run(self) -> Rewritten:
        references = [
            *self.names.references,
            *literal_references(self.names, self.engine.environment, self.engine.matcher.known_names),
            *keyword_references(self.names, self.engine.environment),
            *argument_references(self.names, self.engine.matcher.known_names),
            *found_inf_references(self.names),
            *wrapper_method_references(self.names),
        ]
        if not references and not self.names.imports:
            return Rewritten(FileResult(self.path, self.data, self.data))
        leaving = self._names_of_imports()
        while True:
            self.context = replace(self.context, imports=Imports(self.names, leaving), helper_names={})
            result, kept = self._attempt(references)
            if result is not None:
                return result
            leaving -= kept  # they don't all leave: the new code must do without these names

    def _names_of_imports(self) -> frozenset[str]:
        """Names that nothing but torch_xla imports binds."""
        ours = {id(use.alias) for use in self.names.imports}
        scopes = self.names.scopes.values()
        return frozenset(
            use.local_name
            for use in self.names.imports
            if use.local_name not in ("*", "torch_xla")
            and all(id(b.node) in ours for scope in scopes for b in scope.bindings.get(use.local_name, ()))
        )

    def _attempt(self, references: list[Reference]) -> tuple[Rewritten | None, frozenset[str]]:
        """One try at the rewrite, and the names of the imports that it keeps.

        There is no result where one of these names was counted on to leave.
        """
        places = self._places(references)
        # whether workers get a process group has to be known before what runs in them is rewritten
        places.sort(key=lambda place: place.reference.qualified_name not in SPAWN)
        for place in places:
            if place.reference.qualified_name not in SPAWN and any(
                spawn.reference.qualified_name in SPAWN and spawn.outcome is not Outcome.REWRITTEN
                for spawn in places
            ):
                self.context.grouped = frozenset()
            if not place.silent:
                self._decide(place)
        places.sort(key=lambda place: self.tree.span(place.reference.node).start)
        self._settle_constants(places)
        self._settle_definitions(places)
        self._settle_dropped(places)
        self._settle_ambiguous(places)
        removed, kept = self._imports(places)
        guard = guards.plan(self.context, removed)
        kept += [use for use in removed if id(use.alias) in guard.kept]
        removed = [use for use in removed if id(use.alias) not in guard.kept]
        kept_names = frozenset(use.local_name for use in kept)
        if kept_names & self.context.imports.leaving:
            return None, kept_names
        self._settle_dropped(places, guard.edits)
        edits: list[Edit | Delete] = []
        needs: list[tuple[Need, int, cst.CSTNode | None]] = []
        helpers: dict[str, Helper] = {}
        for place in places:
            if place.rewrite is not None and place.outcome is Outcome.REWRITTEN:
                edits.extend(place.rewrite.edits)
                helpers.update(place.site.helpers)
        edits.extend(guard.edits)
        needs.extend((need, offset, None) for need, offset in guard.needs)
        edits.extend(self._comments(places))
        helper_edits, helper_needs = self._helpers(helpers, places)
        needs.extend(helper_needs)
        edits.extend(self._orphans(edits))
        deletions = [edit for edit in edits if isinstance(edit, Delete)]
        dedents = [
            dedent for place in places if place.rewrite is not None for dedent in place.rewrite.dedents
        ]
        plain = [self._dedented(edit, dedents) for edit in edits if isinstance(edit, Edit)]
        gone = [use.statement for use in removed if self._whole(use.statement, removed)]
        open_places = [
            self.tree.span(place.site.node) for place in places if place.outcome is not Outcome.REWRITTEN
        ]
        removals = delete_statements(self.tree, deletions, open_places)
        gone_with = [removal.span for removal in removals if not any(removal.parts)]
        for place in places:  # an `if` that is left empty goes, and its condition needs no import
            if place.outcome is Outcome.REWRITTEN:
                where = self.tree.span(place.reference.node)
                if not any(where in span for span in gone_with):
                    needs.extend((need, offset, self._home(place)) for need, offset in place.site.needs)
        plain += import_edits(self.tree, needs, gone) + helper_edits + removals
        try:
            rendered = render(self.source.text, close_gaps(self.source.text, merge_deletions(plain)))
        except EditConflict as conflict:
            return Rewritten(self._broken(f"two rewrites overlap ({conflict})", places)), frozenset()
        if plain and not self._still_parses(rendered.text):
            return Rewritten(self._broken("the rewritten file would not parse", places)), frozenset()
        findings = self._findings(places, kept, guard.kept, rendered, plain)
        references_found = sum(self._weight(place) for place in places if not place.silent) + len(
            self.names.imports
        )
        rewritten = sum(
            self._weight(place) for place in places if place.outcome is Outcome.REWRITTEN and not place.silent
        )
        rewritten += len(removed)
        new = self.source.encode(rendered.text) if plain else self.data
        still = self._still_needed(places) | frozenset(
            (use.from_repository, use.qualified_name if use.local_name == "*" else self._imported_name(use))
            for use in kept
            if use.from_repository
        )
        result = FileResult(self.path, self.data, new, findings, references_found, rewritten)
        return Rewritten(result, still), kept_names

    # references to places

    def _places(self, references: list[Reference]) -> list[_Place]:
        places = []
        for reference in references:
            parent = self.tree.parent(reference.node)
            call = parent if isinstance(parent, cst.Call) and parent.func is reference.node else None
            match = self.engine.matcher.find(reference.qualified_name, call, self.context.kind)
            if match is None:  # a name below a user's own module that no rule is about
                self.unmatched.update(id(binding.node) for binding in reference.bindings)
                continue
            reference = self._narrow(reference, match)
            parent = self.tree.parent(reference.node)
            call = parent if isinstance(parent, cst.Call) and parent.func is reference.node else None
            place = _Place(reference, match, Site(self.context, reference, match, call))
            place.silent = self._is_silent(place)
            places.append(place)
        return places

    def _narrow(self, reference: Reference, match: Match) -> Reference:
        """Cut attributes that aren't part of the matched symbol off the chain."""
        surplus = reference.qualified_name.count(".") - match.symbol.count(".")
        if match.pattern.prefix or surplus <= 0 or not isinstance(reference.node, cst.Attribute):
            return reference
        node: cst.BaseExpression = reference.node
        for _ in range(surplus):
            if isinstance(node, cst.Attribute):
                node = node.value
        return replace(reference, node=node, qualified_name=match.symbol)

    def _is_silent(self, place: _Place) -> bool:
        code = place.match.rule.code
        if not self.settings.selects(code) or self._is_ignored(code):
            return True
        # a name for a constant (`op = xm.REDUCE_SUM`) is rewritten where it is given, not where it is used
        through_name = place.reference.bindings and not any(b.is_import for b in place.reference.bindings)
        return bool(through_name and not place.match.pattern.is_call and not place.match.refusal)

    def _is_ignored(self, code: str) -> bool:
        """Whether the configuration's per-file-ignores switch a code off here."""
        return code.startswith(self.ignored) if self.ignored else False

    def _decide(self, place: _Place) -> None:
        """Rewrite, refuse or suppress."""
        rule = place.match.rule
        first, last = self._lines(place)
        if self.suppressions.covers(rule.code, first, last):
            place.outcome = Outcome.SUPPRESSED
            return
        if place.match.refusal:
            place.refusal = place.match.refusal
            return
        if rule.safety is Safety.MANUAL:
            return
        if place.reference.quoted:
            place.refusal = "it stands in a quoted annotation"
            return
        if place.reference.ambiguous is not None:
            place.refusal = (
                f"`{place.reference.ambiguous.name}` is given another value too; untangle it first"
            )
            return
        if self.settings.safe_only and rule.safety is not Safety.SAFE:
            place.refusal = "a review rule, and --safe-only is set"
            return
        try:
            place.rewrite = transforms.apply(place.site)
        except Refused as refused:
            place.refusal = str(refused)
            return
        except NameTaken as taken:
            place.refusal = f"{taken}; rename it, then run again"
            return
        if self.settings.safe_only and (place.rewrite.safety or rule.safety) is not Safety.SAFE:
            place.rewrite, place.refusal = None, "the rewrite needs review here, and --safe-only is set"
            return
        place.outcome = Outcome.REWRITTEN

    def _settle_constants(self, places: list[_Place]) -> None:
        """Leave ``xm.REDUCE_SUM`` where it is an argument of a torch_xla call that stays."""
        stays = {
            id(place.site.call): place
            for place in places
            if place.site.call is not None and place.outcome is not Outcome.REWRITTEN
        }
        for place in places:
            argument = self.tree.parent(place.reference.node)
            call = self.tree.parent(argument) if isinstance(argument, cst.Arg) else None
            if place.outcome is Outcome.REWRITTEN and ".REDUCE_" in place.reference.qualified_name:
                if id(call) in stays and stays[id(call)].reference.qualified_name.startswith("torch_xla"):
                    place.rewrite, place.outcome = None, Outcome.OPEN
                    place.refusal = "the call it is given to stays torch_xla's"

    def _settle_definitions(self, places: list[_Place]) -> None:
        """Delete ``sync = xm.mark_step`` once nothing uses ``sync`` any more."""
        used_openly: set[int] = set()
        for place in places:
            for binding in place.reference.bindings:
                if place.outcome is not Outcome.REWRITTEN:
                    used_openly.add(id(binding.node))
        for place in places:
            definition = self._definition(place)
            if definition is None or place.outcome is Outcome.SUPPRESSED or place.silent:
                continue
            target, statement = definition
            users = [p for p in places if any(b.node is target for b in p.reference.bindings)]
            name = target.value if isinstance(target, cst.Name) else target.attr.value  # type: ignore[attr-defined]
            asked = self.engine.overview.asked_for.get(self.path, frozenset()) & {name, "*"}
            if not users and not (asked and isinstance(target, cst.Name)):
                continue
            if place.outcome is Outcome.REWRITTEN or id(target) in used_openly:
                continue
            if name in self.wanted or not self._only_used_by(target, users):
                continue
            place.rewrite, place.refusal, place.outcome = Rewrite((Delete(statement),)), "", Outcome.REWRITTEN

    def _settle_dropped(self, places: list[_Place], others: Sequence[Edit | Delete] = ()) -> None:
        """A use inside text that another rewrite drops, or one of these other edits, is gone with it."""
        spans: list[tuple[_Place | None, Span, tuple[Span, ...]]] = []
        rewrites = [
            (place, edit)
            for place in places
            if place.rewrite is not None and place.outcome is Outcome.REWRITTEN
            for edit in place.rewrite.edits
        ]
        for owner, edit in [*rewrites, *((None, edit) for edit in others)]:
            if isinstance(edit, Edit):
                copied = tuple(part for part in edit.parts if isinstance(part, Span))
                spans.append((owner, edit.span, copied))
            else:
                spans.append((owner, self.tree.span(edit.statement), ()))
        for place in places:
            if place.silent:
                continue
            where = self.tree.span(place.reference.node)
            for owner, span, copied in spans:
                if owner is not place and where in span and not any(where in part for part in copied):
                    place.rewrite, place.refusal, place.outcome = Rewrite(()), "", Outcome.REWRITTEN
                    place.site.needs, place.site.helpers = [], {}
                    break

    def _settle_ambiguous(self, places: list[_Place]) -> None:
        """A use through a name that was rewritten where it got its value needs no rewrite of its own."""
        defined = {
            id(definition[0])
            for place in places
            if place.outcome is Outcome.REWRITTEN and (definition := self._definition(place)) is not None
        }
        for place in places:
            bindings = place.reference.bindings
            if place.reference.ambiguous is not None and place.outcome is Outcome.OPEN and bindings:
                place.silent = place.silent or all(id(binding.node) in defined for binding in bindings)

    def _definition(self, place: _Place) -> tuple[cst.CSTNode, cst.Assign] | None:
        parent = self.tree.parent(place.reference.node)
        if (
            isinstance(parent, cst.Assign)
            and parent.value is place.reference.node
            and len(parent.targets) == 1
        ):
            target = parent.targets[0].target
            if isinstance(target, (cst.Name, cst.Attribute)):
                return target, parent
        return None

    def _only_used_by(self, target: cst.CSTNode, users: list[_Place]) -> bool:
        """Whether a name or attribute has no other uses in the file than these."""
        if isinstance(target, cst.Name):
            nodes = {id(node) for node in walk(self.tree.module) if isinstance(node, cst.Name)}
            loads = [node for node, _ in self.names.loads.get(target.value, ()) if id(node) in nodes]
            covered = {id(inner) for user in users for inner in walk(user.reference.node)}
            if not all(id(node) in covered for node in loads):
                return False
            scope = self.names.scope_of(target)
            return not scope.is_class or self._no_other_attribute(target.value, target, users)
        assert isinstance(target, cst.Attribute)
        return self._no_other_attribute(target.attr.value, target, users)

    def _no_other_attribute(self, name: str, target: cst.CSTNode, users: list[_Place]) -> bool:
        """Whether ``x.name`` occurs only where it is defined and where these uses are."""
        if self.engine.overview.imported_by.get(self.path) and not name.startswith("_"):
            return False  # other files may ask for it
        covered = {id(inner) for user in users for inner in walk(user.reference.node)} | {id(target)}
        return all(
            id(node) in covered
            for node in walk(self.tree.module)
            if isinstance(node, cst.Attribute) and node.attr.value == name
        )

    # imports

    def _imports(self, places: list[_Place]) -> tuple[list[ImportUse], list[ImportUse]]:
        """Which torch_xla imports go and which stay."""
        holders: set[int] = set(self.unmatched)
        used = {id(binding.node) for place in places for binding in place.reference.bindings}
        open_roots: set[str] = set()
        for place in places:
            if place.outcome is Outcome.REWRITTEN:
                continue
            for binding in place.reference.bindings:
                holders.add(id(binding.node))
            if place.reference.ambiguous is not None:
                holders.add(id(place.reference.ambiguous.node))
            if not place.reference.bindings:
                open_roots.add(place.reference.qualified_name)
        exported = self.wanted | self._dunder_all()
        removed: list[ImportUse] = []
        kept: list[ImportUse] = []
        for use in self.names.imports:
            first, last = self._lines_of(use.statement)
            stays = (
                id(use.alias) in holders
                or (id(use.alias) not in used and not is_departing(use.qualified_name))
                or (use.local_name in exported and use.scope.is_module)
                or (use.local_name in self.context.imports.spelt and not is_departing(use.qualified_name))
                or (use.local_name == "*" and bool(open_roots))
                or self.suppressions.covers(IMPORT_KEPT, first, last)
            )
            (kept if stays else removed).append(use)
        return removed, kept

    def _dunder_all(self) -> set[str]:
        """Names listed in ``__all__``, however the list is put together."""
        found: set[str] = set()
        if "__all__" not in self.source.text:
            return found
        for statement in self.tree.module.body:
            nodes = list(walk(statement)) if isinstance(statement, cst.SimpleStatementLine) else []
            if any(isinstance(node, cst.Name) and node.value == "__all__" for node in nodes):
                for node in nodes:
                    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
                        found.add(node.evaluated_value)
        return found

    def _whole(self, statement: cst.Import | cst.ImportFrom, removed: list[ImportUse]) -> bool:
        if isinstance(statement.names, cst.ImportStar):
            return True
        gone = {id(use.alias) for use in removed}
        return all(id(alias) in gone for alias in statement.names)

    def _imported_name(self, use: ImportUse) -> str:
        assert isinstance(use.alias, cst.ImportAlias)
        return use.alias.evaluated_name

    def _home(self, place: _Place) -> cst.CSTNode | None:
        """The function-level import a reference came through, when the file imports torch nowhere else."""
        bindings = place.reference.bindings
        if not bindings or any(binding.scope.is_module or not binding.is_import for binding in bindings):
            return None
        torch_bound = self.names.module_scope.bindings.get("torch", ())
        return None if torch_bound else bindings[0].statement

    def _dedented(self, edit: Edit, dedents: list[Dedent]) -> Edit:
        """An edit whose new lines follow the block they stand in when that loses a level of indentation."""
        for dedent in sorted(dedents, key=lambda dedent: -len(dedent.inner)):
            if edit.span not in dedent.span or not any(isinstance(part, str) for part in edit.parts):
                continue
            at_line_start = self.source.line_start(edit.span.start) == edit.span.start
            parts: list[Part] = []
            for number, part in enumerate(edit.parts):
                if isinstance(part, str):
                    part = part.replace("\n" + dedent.inner, "\n" + dedent.outer)
                    if number == 0 and at_line_start and part.startswith(dedent.inner):
                        part = dedent.outer + part[len(dedent.inner) :]
                parts.append(part)
            edit = Edit(edit.span, tuple(parts), edit.order)
        return edit

    def _orphans(self, edits: list[Edit | Delete]) -> list[Edit | Delete]:
        """The removal of other imports whose every use is dropped, such as ``np`` for ``np.arange``."""
        dropped: list[tuple[Span, tuple[Span, ...]]] = []
        for edit in edits:
            if isinstance(edit, Edit):
                copied = tuple(part for part in edit.parts if isinstance(part, Span))
                dropped.append((edit.span, copied))
            else:
                dropped.append((self.tree.span(edit.statement), ()))
        if not dropped or self.path.endswith("__init__.py"):
            return []
        exported = self.wanted | self._dunder_all() | self.context.imports.spelt
        asked = self.engine.overview.asked_for.get(self.path, frozenset())
        gone: dict[int, tuple[cst.Import | cst.ImportFrom, list[cst.ImportAlias]]] = {}
        ours = {id(use.alias) for use in self.names.imports}
        for name, bindings in self.names.module_scope.bindings.items():
            loads = self.names.loads.get(name, ())
            if len(bindings) != 1 or not loads or name in exported or name in asked:
                continue
            alias, statement = bindings[0].node, bindings[0].statement
            if not isinstance(alias, cst.ImportAlias) or id(alias) in ours:
                continue
            line = self.tree.parent(statement)
            if line is None or self.tree.parent(line) is not self.tree.module:
                continue
            if all(self._is_dropped(self.tree.span(node), dropped) for node, _ in loads):
                assert isinstance(statement, (cst.Import, cst.ImportFrom))
                gone.setdefault(id(statement), (statement, []))[1].append(alias)
        result: list[Edit | Delete] = []
        for statement, aliases in gone.values():
            assert not isinstance(statement.names, cst.ImportStar)
            mixed = any(id(use.statement) == id(statement) for use in self.names.imports)
            if len(aliases) == len(statement.names):
                result.append(Delete(statement))
            elif not mixed:
                result.extend(guards.remove_clauses(self.tree, statement, aliases))
        return result

    @staticmethod
    def _is_dropped(where: Span, dropped: list[tuple[Span, tuple[Span, ...]]]) -> bool:
        return any(where in span and not any(where in part for part in copied) for span, copied in dropped)

    def _still_needed(self, places: list[_Place]) -> frozenset[tuple[str, str]]:
        """(path, name) of re-exports that uses through a module of the repository still need."""
        needed = set()
        for place in places:
            if place.outcome is Outcome.REWRITTEN:
                continue
            for binding in place.reference.bindings:
                if (binding.qualified_name or "").startswith(REPOSITORY):
                    chain = (dotted_name(place.reference.node) or "").split(".")
                    if len(chain) > 1:
                        needed.add(((binding.qualified_name or "")[len(REPOSITORY) :], chain[1]))
        return frozenset(needed)

    # helpers and comments

    def _helpers(
        self, helpers: Mapping[str, Helper], places: list[_Place]
    ) -> tuple[list[Edit], list[tuple[Need, int, cst.CSTNode | None]]]:
        if not helpers:
            return [], []
        needs: list[tuple[Need, int, cst.CSTNode | None]] = []
        place = helper_place(self.tree)
        early = [
            self._top_level_start(where)
            for where in places
            if where.outcome is Outcome.REWRITTEN and where.site.helpers and where.reference.scope.is_module
        ]
        place = min([place, *early])

        def spell(qualified_name: str) -> str:
            text, need = self.context.imports.spell(
                qualified_name, self.names.module_scope, len(self.source.text)
            )
            if need is not None:
                needs.append((need, place, None))
            return text

        newline = self.source.newline
        pieces = []
        for name in sorted(helpers):
            pieces.append(
                fit(
                    helpers[name],
                    self.context.helper_name(helpers[name].name),
                    spell,
                    self.tree.module.default_indent,
                    newline,
                    self.context.helper_names,
                )
            )
        body = (newline * 2).join(pieces)
        before = newline * 2 if place else ""
        after = "" if re.match(r"(\r?\n){2}|\Z", self.source.text[place:]) else newline * 2
        if after and re.match(r"\r?\n", self.source.text[place:]):
            after = newline
        return [Edit(Span(place, place), (before + body + after,), order=SPACED)], needs

    def _top_level_start(self, place: _Place) -> int:
        """Offset of the line that the module's own statement around a place begins on."""
        statement: cst.CSTNode = place.site.node
        for ancestor in self.tree.ancestors(place.site.node):
            if isinstance(ancestor, cst.Module):
                break
            statement = ancestor
        return self.source.line_start(self.tree.span(statement).start)

    def _comments(self, places: list[_Place]) -> list[Edit]:
        """``# TODO(tpu-migrate ...)`` above each statement with an open finding."""
        if not self.settings.comments:
            return []
        edits: list[Edit] = []
        done: set[tuple[int, str]] = set()
        for place in places:
            rule = place.match.rule
            if place.outcome is not Outcome.OPEN or place.silent or not rule.options.get("comment", True):
                continue
            if place.refusal and "--safe-only" in place.refusal:
                continue
            line = place.site.statement_line
            if isinstance(line, cst.Module):
                continue
            start = place.site.statement_start
            if (start, rule.code) in done or self._has_comment(start, rule.code):
                continue
            done.add((start, rule.code))
            advice = _first_sentence(place.refusal or rule.action or rule.review)
            if place.reference.qualified_name.startswith("env."):
                advice = f"{place.reference.qualified_name[4:]}: {_first_sentence(rule.action) or advice}"
            text = f"# TODO(tpu-migrate {rule.code}): {advice}"
            edit = place.site.insert_above([text])
            edits.extend(edit)
        return edits

    def _has_comment(self, line_start: int, code: str) -> bool:
        end = line_start
        while end > 0:
            start = self.source.line_start(end - 1)
            line = self.source.text[start:end].strip()
            if not line.startswith("#"):
                return False
            if f"TODO(tpu-migrate {code})" in line:
                return True
            end = start
        return False

    # results

    def _still_parses(self, text: str) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # compiling is three times faster than ast.parse, which makes objects of what it reads
            try:
                compile(text, self.path, "exec", dont_inherit=True)
                return True
            except (SyntaxError, ValueError):
                pass
            try:
                compile(self.source.text, self.path, "exec", dont_inherit=True)
                return False
            except (SyntaxError, ValueError):
                pass
        try:  # newer syntax than this interpreter's
            cst.parse_module(text)
        except cst.ParserSyntaxError:
            return False
        return True

    def _broken(self, reason: str, places: list[_Place]) -> FileResult:
        count = len(places) + len(self.names.imports)
        finding = Finding(
            BROKEN, "rewrite-failed", self.path, 1, 1, max(1, len(self.source.line_starts)), 1, Safety.MANUAL,
            Outcome.OPEN,
            f"not migrated: {reason}. This is a bug in tpu-migrate: report it with this file. "
            "The file is unchanged.",
            references=count,
        )  # fmt: skip
        return FileResult(self.path, self.data, self.data, [finding], count, 0)

    def _weight(self, place: _Place) -> int:
        return 0 if place.reference.qualified_name == "string.text" else 1

    def _lines(self, place: _Place) -> tuple[int, int]:
        """First and last line of the statement a place stands in, its head only for compound ones."""
        span = self.tree.span(place.site.node)
        first, last = self.source.position(span.start)[0], self.source.position(span.end)[0]
        small = place.site.small_statement
        if small is not None:
            whole_first, whole_last = self._lines_of(small)
            return min(first, whole_first), max(last, whole_last)
        return first, last

    def _lines_of(self, node: cst.CSTNode) -> tuple[int, int]:
        span = self.tree.span(node)
        return self.source.position(span.start)[0], self.source.position(span.end)[0]

    def _findings(
        self,
        places: list[_Place],
        kept: list[ImportUse],
        guarded: Mapping[int, str],
        rendered: Rendered,
        edits: list[Edit],
    ) -> list[Finding]:
        new_source = Source(rendered.text) if self.engine.applied else self.source
        findings = []
        for place in places:
            if place.silent:
                continue
            rule = place.match.rule
            node = place.site.node
            span = self.tree.span(node)
            rewritten = place.outcome is Outcome.REWRITTEN
            after = ""
            text_edits: tuple[TextEdit, ...] = ()
            if rewritten and place.rewrite is not None:
                after = self._after(place.rewrite, span, edits)
                text_edits = self._text_edits(place.rewrite, edits)
            findings.append(
                self._finding(
                    rule.code,
                    rule.name,
                    span,
                    rendered,
                    new_source,
                    safety=(place.rewrite.safety if place.rewrite else None) or rule.safety,
                    outcome=place.outcome,
                    message=self._message(place),
                    before=self.tree.text(node),
                    after=after,
                    symbol=place.reference.qualified_name,
                    references=self._weight(place),
                    edits=text_edits,
                )
            )
        for use in kept if self.settings.selects(IMPORT_KEPT) and not self._is_ignored(IMPORT_KEPT) else ():
            if not is_departing(use.qualified_name) and use.local_name != "*":
                continue  # a user's own module may stay
            findings.append(self._kept_import(use, places, guarded, rendered, new_source))
        findings.sort(key=lambda finding: (finding.line, finding.column, finding.code))
        return findings

    def _kept_import(
        self,
        use: ImportUse,
        places: list[_Place],
        guarded: Mapping[int, str],
        rendered: Rendered,
        new_source: Source,
    ) -> Finding:
        users = [place for place in places if any(b.node is use.alias for b in place.reference.bindings)]
        lines = sorted(
            {
                self._new_position(self.tree.span(place.site.node).start, rendered, new_source)[0]
                for place in users
                if place.outcome is not Outcome.REWRITTEN
            }
        )
        if lines:
            shown = ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")
            message = f"kept: line{'s' * (len(lines) > 1)} {shown} still use{'s' * (len(lines) == 1)} it"
        elif id(use.alias) in guarded:
            message = guarded[id(use.alias)]
        elif use.local_name in self.wanted:
            message = "kept: other files still import it from here"
        else:
            message = "kept: the module exports it; remove it when nothing imports it any more"
        suppressed = self.suppressions.covers(IMPORT_KEPT, *self._lines_of(use.statement))
        return self._finding(
            IMPORT_KEPT,
            "import-kept",
            self.tree.span(use.alias)
            if not isinstance(use.alias, cst.ImportStar)
            else self.tree.span(use.statement),
            rendered,
            new_source,
            safety=Safety.MANUAL,
            outcome=Outcome.SUPPRESSED if suppressed else Outcome.OPEN,
            message=message,
            before=self.tree.text(use.statement),
            symbol=use.qualified_name,
        )

    def _finding(
        self, code: str, name: str, span: Span, rendered: Rendered, new_source: Source, **rest: object
    ) -> Finding:
        line, column = self._new_position(span.start, rendered, new_source)
        end_line, end_column = self._new_position(span.end, rendered, new_source)
        if (end_line, end_column) < (line, column):
            end_line, end_column = line, column
        return Finding(code, name, self.path, line, column, end_line, end_column, **rest)  # type: ignore[arg-type]

    def _new_position(self, offset: int, rendered: Rendered, new_source: Source) -> tuple[int, int]:
        if not self.engine.applied:
            return self.source.position(offset)
        return new_source.position(min(rendered.new_offset(offset), len(rendered.text)))

    def _message(self, place: _Place) -> str:
        rule = place.match.rule
        if place.outcome is Outcome.SUPPRESSED:
            return rule.why
        if place.outcome is Outcome.REWRITTEN:
            if place.rewrite and not place.rewrite.edits:
                return "It went with the code around it."
            if place.rewrite and place.rewrite.message:
                return place.rewrite.message
            note = place.rewrite.note if place.rewrite else ""
            return " ".join(part for part in (rule.review or rule.why, note) if part)
        if place.refusal:
            return f"not rewritten: {place.refusal}" + (
                f". {rule.action or rule.review}" if rule.action or rule.review else ""
            )
        return rule.action

    def _after(self, rewrite: Rewrite, span: Span, edits: Sequence[Edit]) -> str:
        for edit in rewrite.edits:
            if isinstance(edit, Edit) and (edit.span.overlaps(span) or span in edit.span):
                return replacement(self.source.text, edit, edits)
        return ""

    def _text_edits(self, rewrite: Rewrite, edits: Sequence[Edit]) -> tuple[TextEdit, ...]:
        plain = [edit for edit in rewrite.edits if isinstance(edit, Edit)]
        plain += delete_statements(self.tree, [edit for edit in rewrite.edits if isinstance(edit, Delete)])
        return tuple(
            TextEdit(
                *self.source.position(edit.span.start),
                *self.source.position(edit.span.end),
                replacement(self.source.text, edit, edits),
            )
            for edit in sorted(plain, key=lambda edit: edit.span)
        )


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    found = re.match(r"(.+?[.;])(?:\s|$)", line)
    return shorten((found[1] if found else line).rstrip(".;"), 150)
