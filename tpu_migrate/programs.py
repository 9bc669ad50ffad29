"""What the repository's programs run as, and how its modules import each other.

Whether a program is single-process, multi-process or SPMD decides what ``xm.optimizer_step`` and its
kin mean. It is decided here, once, from the entry points and all they import.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tpu_migrate.findings import Program
from tpu_migrate.python.index import FileFacts, ModuleImport


@dataclass(frozen=True)
class Overview:
    """The repository as a whole. Picklable: worker processes get a copy."""

    programs: tuple[Program, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Path -> kind of the program(s) the file belongs to."""
    exports: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Path -> torch_xla names that other files import from it."""
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Last part of a module's dotted name -> paths that may be it."""
    vendors: Mapping[str, str] = field(default_factory=dict)
    """Path -> maker of the other chip the file is written for."""
    imported_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uses_exports: frozenset[str] = frozenset()
    """Files that may use a torch_xla name which another file re-exports."""
    asked_for: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Path -> names that other files import from it, or may reach through it (``*``)."""
    group_makers: frozenset[str] = frozenset()
    """Entry files whose program calls ``init_process_group`` itself."""

    def kind(self, path: str) -> str:
        return self.kinds.get(path, "library")

    def find_module(self, path: str, level: int, dotted: str) -> str | None:
        """The repository file an import in ``path`` names, if it is one of ours."""
        return find_module(self.modules, path, level, dotted)


def find_module(modules: Mapping[str, tuple[str, ...]], path: str, level: int, dotted: str) -> str | None:
    """Resolve an import to a file.

    Args:
        modules: last part of a dotted name -> candidate paths.
        path: the importing file.
        level: leading dots of a relative import.
        dotted: the module named, may be empty with ``level``.
    """
    folder = path.split("/")[:-1]
    parts = dotted.split(".") if dotted else []
    if level:
        if level - 1 > len(folder):
            return None
        parts = folder[: len(folder) - (level - 1)] + parts
        wanted = "/".join(parts)
        candidates = modules.get(parts[-1] if parts else "", ())
        return next((c for c in candidates if _module_path(c) == wanted), None)
    if not parts:
        return None
    wanted = "/".join(parts)
    fitting = [
        candidate
        for candidate in modules.get(parts[-1], ())
        if _module_path(candidate) == wanted or _module_path(candidate).endswith("/" + wanted)
    ]

    def nearness(candidate: str) -> tuple[int, int]:
        shared = 0
        for ours, theirs in zip(folder, candidate.split("/")[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        return (-shared, len(candidate))

    return min(fitting, key=nearness) if fitting else None


def _module_path(path: str) -> str:
    stem = path.rpartition(".")[0]
    return stem[: -len("/__init__")] if stem.endswith("/__init__") else stem


def module_table(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Index paths by the last part of the dotted name they can be imported under."""
    table: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        table[_module_path(path).rpartition("/")[2]].append(path)
    return {name: tuple(found) for name, found in table.items()}


def survey(facts: Iterable[FileFacts], paths: Iterable[str] = ()) -> Overview:
    """Decide kinds, re-exports and vendors for the whole repository.

    Args:
        facts: of the files that matter.
        paths: all files, so that an import isn't taken for one of another file of the same name.
    """
    by_path = {fact.path: fact for fact in facts}
    ours = module_table(by_path)
    modules = {name: found for name, found in module_table({*by_path, *paths}).items() if name in ours}
    _hand_on_exports(by_path, modules)
    edges = {path: _imported_files(fact, modules, by_path) for path, fact in by_path.items()}
    programs: list[Program] = []
    kinds: dict[str, set[str]] = defaultdict(set)
    for path in sorted(by_path):
        if not by_path[path].entry:
            continue
        reached = _closure(path, edges)
        if not any(by_path[file].uses_xla for file in reached):
            continue
        kind, why = _kind(path, [by_path[file] for file in sorted(reached)])
        programs.append(Program(path, kind, why, tuple(sorted(reached))))
        for file in reached:
            kinds[file].add(kind)
    settled = {path: next(iter(found)) if len(found) == 1 else "library" for path, found in kinds.items()}
    for path, fact in by_path.items():  # a script without a main guard is a program of its own
        if path not in settled and fact.uses_xla and (fact.spmd or fact.spawns or fact.process_group):
            kind, why = _kind(path, [fact])
            settled[path] = kind
            programs.append(Program(path, kind, why, (path,)))
    loose = sorted(
        path for path, fact in by_path.items() if path not in settled and fact.uses_xla and not fact.vendor
    )
    if loose:
        why = "no entry point reaches it, so it has to be right with and without a process group"
        programs.append(Program(loose[0], "library", why, tuple(loose)))
    imported_by: dict[str, list[str]] = defaultdict(list)
    for path, targets in edges.items():
        for target in targets:
            imported_by[target].append(path)
    uses_exports, asked_for = _asked(by_path, modules)
    return Overview(
        programs=tuple(programs),
        kinds=settled,
        exports={path: fact.exports for path, fact in by_path.items() if fact.exports},
        modules=modules,
        vendors=_vendors(by_path),
        imported_by={path: tuple(found) for path, found in imported_by.items()},
        uses_exports=uses_exports,
        asked_for=asked_for,
        group_makers=frozenset(
            path for path in by_path if any(by_path[file].process_group for file in _closure(path, edges))
        ),
    )


def _imported_files(
    fact: FileFacts, modules: Mapping[str, tuple[str, ...]], known: Collection[str]
) -> set[str]:
    found: set[str] = set()
    for item in fact.imports:
        found.update(target for target in _targets(fact.path, item, modules) if target in known)
    return found - {fact.path}


def _targets(path: str, item: ModuleImport, modules: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    whole = find_module(modules, path, item.level, item.module)
    if whole:
        yield whole
    for imported, _ in item.names:
        dotted = f"{item.module}.{imported}" if item.module else imported
        part = find_module(modules, path, item.level, dotted)
        if part and imported != "*":
            yield part


def _hand_on_exports(by_path: dict[str, FileFacts], modules: Mapping[str, tuple[str, ...]]) -> None:
    """Complete the exports of modules that import a torch_xla name from one of ours and hand it on."""
    changed = True
    while changed:
        changed = False
        for path, fact in by_path.items():
            more: dict[str, str] = {}
            for item in fact.imports:
                target = find_module(modules, path, item.level, item.module) if item.top else None
                theirs = (by_path[target].exports or {}) if target in by_path and target != path else {}
                pairs = tuple((name, name) for name in theirs) if item.star else item.names
                more.update({local: theirs[name] for name, local in pairs if name in theirs})
            known = fact.exports or {}
            if any(name not in known for name in more):
                by_path[path] = replace(fact, exports={**more, **known})
                changed = True


def _asked(
    by_path: Mapping[str, FileFacts], modules: Mapping[str, tuple[str, ...]]
) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Which files use re-exports, and what each file is asked for."""
    users: set[str] = set()
    asked: dict[str, set[str]] = defaultdict(set)
    for path, fact in by_path.items():
        for item in fact.imports:
            target = find_module(modules, path, item.level, item.module)
            whole = item.star or not item.names
            if target is not None and target in by_path and target != path:
                names = {"*"} if whole else {imported for imported, _ in item.names}
                asked[target] |= names
                exports = by_path[target].exports or {}
                if exports and (whole or names & set(exports)):
                    users.add(path)
            for imported, _ in item.names:
                dotted = f"{item.module}.{imported}" if item.module else imported
                part = find_module(modules, path, item.level, dotted)
                if part is not None and part in by_path and part != path:
                    asked[part].add("*")
                    if by_path[part].exports:
                        users.add(path)
    return frozenset(users), {path: frozenset(names) for path, names in asked.items()}


def _closure(path: str, edges: Mapping[str, set[str]]) -> set[str]:
    reached, pending = {path}, [path]
    while pending:
        for target in edges.get(pending.pop(), ()):
            if target not in reached:
                reached.add(target)
                pending.append(target)
    return reached


def _kind(entry: str, files: list[FileFacts]) -> tuple[str, str]:
    def where(found: FileFacts) -> str:
        return "" if found.path == entry else f" in {found.path}"

    for fact in files:
        if fact.spmd:
            return "spmd", f"uses torch_xla's SPMD{where(fact)}"
    for fact in files:
        if fact.spawns:
            return "multi-process", f"starts worker processes{where(fact)}"
    for fact in files:
        if fact.process_group:
            return "multi-process", f"makes a torch.distributed process group{where(fact)}"
    return "single-process", "nothing it imports starts workers, uses SPMD or makes a process group"


def _vendors(by_path: Mapping[str, FileFacts]) -> dict[str, str]:
    """Files written for another maker's torch_xla: all of a repository when a good part is."""
    users = [fact for fact in by_path.values() if fact.uses_xla]
    marked = {fact.path: fact.vendor for fact in users if fact.vendor}
    if users and len(marked) >= max(2, len(users) * 0.3):
        names = list(marked.values())
        vendor = max(set(names), key=names.count)
        return {
            path: marked.get(path, vendor) for path in by_path
        }  # re-exports reach files without a word of xla
    return marked
