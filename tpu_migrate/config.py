"""Settings: what ``[tool.tpu-migrate]`` in the nearest pyproject.toml says, and the command line over it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

DEVICES = ("tpu", "accelerator")
LAUNCHERS = ("torchrun", "spawn")
CODE = re.compile(r"[A-Z]{1,2}|[A-Z]{2}\d{1,3}")
"""A code or its beginning: TX201, TX2, TX."""

TABLE = "[tool.tpu-migrate]"
_ADDED = ("ignore", "exclude")
"""What the command line adds to; everything else it replaces."""


class ConfigError(Exception):
    """Settings can't be used; the message names file, key, what was found and what is expected."""


@dataclass(frozen=True)
class Settings:
    """What the user chose. Every field has the value that an empty configuration means."""

    device: str = "tpu"
    """``tpu``, or ``accelerator`` for code that asks torch which device there is."""
    launcher: str = "torchrun"
    """How a program of several processes is started afterwards: ``torchrun`` or ``spawn``."""
    select: tuple[str, ...] = ()
    """Beginnings of codes to apply; empty means all."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Globs as in .gitignore, on top of the .gitignore files."""
    safe_only: bool = False
    comments: bool = True
    """Write a TODO comment above what has to be done by hand."""
    rules: tuple[Path, ...] = ()
    """The user's own rule files, absolute."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Glob as in .gitignore -> beginnings of codes ignored in the files it matches."""
    root: Path | None = None
    """The directory of the pyproject.toml that was read, which its globs are relative to."""

    def selects(self, code: str) -> bool:
        """Whether findings of this code are wanted. The longer beginning decides; ignore wins a tie."""
        selected = _longest(code, self.select) if self.select else 0
        return selected is not None and selected > (_longest(code, self.ignore) or -1)

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """The beginnings of codes that ``per-file-ignores`` names for a file.

        Args:
            path: relative to ``root``, with forward slashes.
        """
        if not self.per_file_ignores:
            return ()
        from tpu_migrate.workspace.ignore import IgnoreRules

        return tuple(
            code
            for glob, codes in self.per_file_ignores.items()
            if IgnoreRules([glob]).covers(path)
            for code in codes
        )


def load_settings(start: Path, overrides: Mapping[str, object]) -> Settings:
    """The settings for a run on ``start``: the nearest pyproject.toml upwards, then ``overrides``.

    The nearest file decides, also when it has no ``[tool.tpu-migrate]`` table: the projects above
    it are other projects.

    Args:
        start: a file or directory; it need not exist.
        overrides: names of ``Settings`` fields to values from the command line. ``None`` means not
            given. ``ignore`` and ``exclude`` add to what the file says; the others replace it.

    Raises:
        ConfigError: the file can't be read, or holds an unknown key or a wrong value.
    """
    file = find_pyproject(start)
    values: dict[str, Any] = read_pyproject(file) if file is not None else {}
    for key, value in overrides.items():
        if value is None:
            continue
        parsed = _check(_BY_FIELD[key], value, "--" + _BY_FIELD[key].key, Path())
        values[key] = values.get(key, ()) + parsed if key in _ADDED else parsed
    return Settings(**values)


def find_pyproject(start: Path) -> Path | None:
    """The nearest pyproject.toml, from ``start`` upwards."""
    start = start.absolute()
    for directory in (start, *start.parents):
        candidate = directory / "pyproject.toml"
        if candidate.is_file():
            return candidate
    return None


def read_pyproject(file: Path) -> dict[str, Any]:
    """The ``Settings`` fields that a pyproject.toml sets; empty when it has no table of ours.

    Raises:
        ConfigError: see ``load_settings``.
    """
    try:
        data = file.read_bytes()
        # Most pyproject.toml files don't mention the tool: these need no parser.
        document = _parse(data.decode("utf-8")) if b"tpu-migrate" in data else {}
    except OSError as error:
        raise ConfigError(f"{file}: can't be read: {error.strerror}") from None
    except ValueError as error:  # a TOML error, or bytes that are no UTF-8
        raise ConfigError(f"{file}: not TOML: {error}") from None
    tool = document.get("tool", {})
    table = tool.get("tpu-migrate") if isinstance(tool, dict) else None
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: tool.tpu-migrate is {_shown(table)}; expected a table, {TABLE}")
    values: dict[str, Any] = {"root": file.parent}
    for key, value in table.items():
        known = _BY_KEY.get(key)
        if known is None:
            raise ConfigError(f"{file}: {TABLE} has no key {key}{_did_you_mean(key, _BY_KEY)}")
        values[known.name] = _check(known, value, f"{file}: {TABLE} {key}", file.parent)
    return values


@dataclass(frozen=True)
class _Key:
    """A key of the table: the field it sets, what it takes, and how a value of it is read."""

    key: str
    expected: str
    read: Callable[[object, Path], Any]
    """Given the value and the directory paths are relative to: the field's value, or ValueError
    with the part that is wrong."""

    @property
    def name(self) -> str:
        return self.key.replace("-", "_")


def _check(key: _Key, value: object, where: str, base: Path) -> Any:
    try:
        return key.read(value, base)
    except ValueError as error:
        raise ConfigError(f"{where} is {error.args[0]}; expected {key.expected}") from None


def _one_of(choices: tuple[str, ...]) -> Callable[[object, Path], str]:
    def read(value: object, base: Path) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise ValueError(_shown(value))

    return read


def _flag(value: object, base: Path) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(_shown(value))


def _strings(value: object, base: Path) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(_shown(value))
    for entry in value:
        if not isinstance(entry, str) or not entry:
            raise ValueError(f"a list with {_shown(entry)} in it")
    return tuple(value)


def _codes(value: object, base: Path) -> tuple[str, ...]:
    codes = _strings(value, base)
    for code in codes:
        if not CODE.fullmatch(code):
            upper = code.strip().upper()
            hint = f" (did you mean {upper}?)" if CODE.fullmatch(upper) else ""
            raise ValueError(f"a list with {_shown(code)}{hint} in it")
    return codes


def _paths(value: object, base: Path) -> tuple[Path, ...]:
    return tuple((base / entry).absolute() for entry in _strings(value, base))


def _codes_by_glob(value: object, base: Path) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ValueError(_shown(value))
    found: dict[str, tuple[str, ...]] = {}
    for glob, codes in value.items():
        try:
            found[glob] = _codes(codes, base)
        except ValueError as error:
            raise ValueError(f"a table in which {_shown(glob)} is {error.args[0]}") from None
    return found


_KEYS = (
    _Key("device", '"tpu" or "accelerator"', _one_of(DEVICES)),
    _Key("launcher", '"torchrun" or "spawn"', _one_of(LAUNCHERS)),
    _Key("select", 'a list of codes or their beginnings, such as ["TX1", "TX201"]', _codes),
    _Key("ignore", 'a list of codes or their beginnings, such as ["TX1", "TX201"]', _codes),
    _Key("exclude", 'a list of globs as in .gitignore, such as ["third_party/"]', _strings),
    _Key("safe-only", "true or false", _flag),
    _Key("comments", "true or false", _flag),
    _Key("rules", 'a list of TOML files, such as ["tools/our-rules.toml"]', _paths),
    _Key("per-file-ignores", 'a table of globs and codes, such as {"tests/*" = ["TX201"]}', _codes_by_glob),
)
_BY_KEY = {key.key: key for key in _KEYS}
_BY_FIELD = {key.name: key for key in _KEYS}
assert {key.name for key in _KEYS} == {item.name for item in fields(Settings)} - {"root"}


def _longest(code: str, beginnings: Iterable[str]) -> int | None:
    """The length of the longest of the beginnings that ``code`` starts with."""
    return max((len(entry) for entry in beginnings if code.startswith(entry)), default=None)


def _shown(value: object) -> str:
    """A TOML value as the user wrote it, with its type where that isn't plain to see."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, (list, tuple)) else f"the {type(value).__name__} {value}"


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib

    known = list(known)
    close = difflib.get_close_matches(word.lower().replace("_", "-"), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; it has {', '.join(known)}"


def _parse(text: str) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)
