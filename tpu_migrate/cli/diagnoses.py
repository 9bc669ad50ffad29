"""What can't live together in an environment, and what to do about it.

Each check reads an ``Environment`` and yields problems; ``diagnose`` runs them all. Sources are the
packages' own metadata first, and what was seen with torch_tpu 0.2.0 where metadata doesn't say it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

NEWEST_ACCELERATE_WITHOUT_TPU = (1, 15)
FIRST_TRANSFORMERS_WITH_TPU = (5,)

VARIABLES = (
    "ACCELERATE_TORCH_DEVICE",
    "PJRT_DEVICE",
    "TORCH_DEVICE_BACKEND_AUTOLOAD",
    "TORCH_TPU_ALLOW_LEGACY_DEVICE_APIS",
    "USE_TORCH_XLA",
    "XLA_DOWNCAST_BF16",
    "XLA_USE_BF16",
    "XLA_USE_SPMD",
    "XRT_TPU_CONFIG",
)
"""Environment variables worth showing."""


@dataclass(frozen=True)
class Package:
    """An installed package, as its metadata describes it."""

    version: str
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    about: str = ""


@dataclass(frozen=True)
class Environment:
    """A Python environment, and the variables a program started in it would see."""

    python: str
    executable: str
    packages: Mapping[str, Package]
    variables: Mapping[str, str]

    def version(self, name: str) -> tuple[int, ...] | None:
        """A package's release as numbers; None when it isn't there."""
        package = self.packages.get(name)
        return release(package.version) if package else None

    def shown(self, name: str) -> str:
        return f"{name} {self.packages[name].version}"


@dataclass(frozen=True)
class Problem:
    """Something that fails or misleads here; ``do`` holds the ways out, each a (what for, command) pair."""

    id: str
    text: str
    do: tuple[tuple[str, str], ...] = ()
    fatal: bool = True
    """False: worth knowing, and no reason for exit code 1."""


def diagnose(environment: Environment) -> list[Problem]:
    """All that is wrong or worth knowing, the worst first."""
    problems = [problem for check in _CHECKS for problem in check(environment)]
    return sorted(problems, key=lambda problem: not problem.fatal)


def _both_sides(env: Environment) -> Iterator[Problem]:
    if "torch_xla" not in env.packages or "torch_tpu" not in env.packages:
        return
    torch = env.version("torch")
    old = _series(env.version("torch_xla"))
    text = f"{env.shown('torch_xla')} (needs torch {old}) and {env.shown('torch_tpu')} are both here."
    if torch is not None:
        text += f" torch here is {env.packages['torch'].version}"
        text += ", so torch_xla will not import." if _series(torch) != old else ", which is torch_xla's."
    switched = [env.shown(name) for name in ("transformers", "accelerate") if name in env.packages]
    if switched and not _off(env.variables.get("USE_TORCH_XLA")):
        text += f" torch_xla merely installed switches {' and '.join(switched)} to XLA."
    yield Problem(
        "torch-xla-beside-torch-tpu",
        text,
        (
            ("Keep the new side here", "pip uninstall torch_xla"),
            ("Or keep both, and switch XLA off in Hugging Face libraries", "export USE_TORCH_XLA=0"),
        ),
    )


def _torch_xla(env: Environment) -> Iterator[Problem]:
    if "torch_xla" not in env.packages or "torch_tpu" in env.packages:
        return
    torch, series = env.version("torch"), _series(env.version("torch_xla"))
    install = f"pip install 'torch=={series}.*'"
    if torch is None:
        yield Problem(
            "torch-xla-without-torch",
            f"{env.shown('torch_xla')} needs torch {series}, and torch is not here.",
            (("Install it", install),),
        )
    elif _series(torch) != series:
        yield Problem(
            "torch-xla-wrong-torch",
            f"{env.shown('torch_xla')} needs torch {series}; torch here is {env.packages['torch'].version}, "
            "so torch_xla will not import.",
            (("For the old programs", install), ("For migrated ones", "pip uninstall torch_xla")),
        )


def _torch_tpu(env: Environment) -> Iterator[Problem]:
    package = env.packages.get("torch_tpu")
    if package is None:
        return
    if "sophgo" in package.about.lower():
        yield Problem(
            "other-torch-tpu",
            f"{env.shown('torch_tpu')} is Sophgo's package of this name, for its own chips, "
            "not Google's TorchTPU.",
            (("For Google's TPUs", "pip uninstall torch_tpu, then pip install torch_tpu"),),
        )
        return
    wanted_python = package.requires_python or ">=3.11"
    if not satisfies(env.python, wanted_python):
        yield Problem(
            "torch-tpu-python",
            f"{env.shown('torch_tpu')} needs Python {wanted_python}; this is {env.python}.",
            (("Make an environment with a newer Python", "python3.12 -m venv .venv"),),
        )
    if "torch" not in env.packages:
        wanted = requirement(package, "torch") or ">=2.11,<=2.15"
        yield Problem(
            "torch-tpu-without-torch",
            f"{env.shown('torch_tpu')} needs torch {wanted}, and torch is not here.",
            (("Install it", f"pip install 'torch{wanted}'"),),
        )
    if "libtpu" not in env.packages:
        yield Problem(
            "torch-tpu-without-libtpu",
            f"{env.shown('torch_tpu')} is here and libtpu is not: `import torch` aborts the process.",
            (
                ("Install it", f"pip install 'libtpu{requirement(package, 'libtpu') or '>=0.0.50'}'"),
                ("Or import torch without it", "export TORCH_DEVICE_BACKEND_AUTOLOAD=0"),
            ),
            fatal=not _off(env.variables.get("TORCH_DEVICE_BACKEND_AUTOLOAD")),
        )
    if _off(env.variables.get("TORCH_DEVICE_BACKEND_AUTOLOAD")):
        yield Problem(
            "autoload-off",
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps `import torch` from loading torch_tpu: "
            'there is no "tpu" device.',
            (("To use TPUs", "unset TORCH_DEVICE_BACKEND_AUTOLOAD"),),
        )


def _requirements(env: Environment) -> Iterator[Problem]:
    """What the packages' metadata says of each other."""
    for name, package in env.packages.items():
        if name == "torch_tpu" and "sophgo" in package.about.lower():
            continue
        for other, installed in env.packages.items():
            wanted = requirement(package, other)
            if name == other or not wanted or satisfies(installed.version, wanted):
                continue
            text = f"{env.shown(name)} needs {other} {wanted}; {other} here is {installed.version}."
            do = [(f"Change {other}", f"pip install '{other}{wanted}'")]
            if name == "optimum-tpu":
                text += " optimum-tpu is made for torch_xla and holds Hugging Face libraries back."
                do.append(("Once migrated, it is not needed", "pip uninstall optimum-tpu"))
            yield Problem(f"{name.replace('_', '-')}-needs-{other}", text, tuple(do))


def _hugging_face(env: Environment) -> Iterator[Problem]:
    if "torch_tpu" not in env.packages:
        return
    accelerate = env.version("accelerate")
    chosen = env.variables.get("ACCELERATE_TORCH_DEVICE", "")
    if (
        accelerate is not None
        and accelerate[:2] <= NEWEST_ACCELERATE_WITHOUT_TPU
        and not chosen.startswith("tpu")
    ):
        yield Problem(
            "accelerate-without-tpu",
            f"{env.shown('accelerate')} does not know the tpu device: Accelerator() chooses the CPU, "
            "and so does transformers' Trainer."
            + (f" ACCELERATE_TORCH_DEVICE is {chosen}." if chosen else ""),
            (("Name the device", "export ACCELERATE_TORCH_DEVICE=tpu"),),
        )
    transformers = env.version("transformers")
    if transformers is not None and transformers < FIRST_TRANSFORMERS_WITH_TPU:
        yield Problem(
            "transformers-without-tpu",
            f"{env.shown('transformers')} is older than the releases that know torch_tpu (5.24 does).",
            (("Move to a newer one", "pip install -U transformers"),),
            fatal=False,
        )
    if "optimum-tpu" in env.packages:
        yield Problem(
            "optimum-tpu-beside-torch-tpu",
            f"{env.shown('optimum-tpu')} drives torch_xla, not torch_tpu.",
            (("Once migrated, it is not needed", "pip uninstall optimum-tpu"),),
            fatal=False,
        )


def _variables(env: Environment) -> Iterator[Problem]:
    for name in ("XLA_USE_BF16", "XLA_DOWNCAST_BF16"):
        value = env.variables.get(name)
        if value is not None and not _off(value):
            yield Problem(
                name.lower().replace("_", "-"),
                f"{name}={value}: torch_xla computes in bfloat16 where the program says float32. "
                "torch_tpu does not read it, so a migrated program computes in other numbers.",
                (("Say it in the program instead", 'torch.autocast("tpu", dtype=torch.bfloat16)'),),
                fatal="torch_tpu" in env.packages,
            )
    if "torch_tpu" not in env.packages:
        return
    for name in ("PJRT_DEVICE", "XRT_TPU_CONFIG", "XLA_USE_SPMD"):
        if name in env.variables:
            yield Problem(
                name.lower().replace("_", "-"),
                f"{name}={env.variables[name]} is for torch_xla; torch_tpu does not read it.",
                (("Once migrated", f"unset {name}"),),
                fatal=False,
            )
    legacy = env.variables.get("TORCH_TPU_ALLOW_LEGACY_DEVICE_APIS")
    if legacy is not None and not _off(legacy):
        yield Problem(
            "legacy-device-apis",
            f"TORCH_TPU_ALLOW_LEGACY_DEVICE_APIS={legacy} hides errors for calls such as "
            "torch.tpu.synchronize().",
            (("Migrated code does not need it", "unset TORCH_TPU_ALLOW_LEGACY_DEVICE_APIS"),),
            fatal=False,
        )


_CHECKS: tuple[Callable[[Environment], Iterator[Problem]], ...] = (
    _both_sides,
    _torch_tpu,
    _torch_xla,
    _requirements,
    _hugging_face,
    _variables,
)


def requirement(package: Package, other: str) -> str:
    """What a package's metadata demands of another's version, such as ``>=2.11,<=2.15``; empty when nothing.

    Requirements under a marker are left out: most are for extras, the rest for other systems.
    """
    for line in package.requires:
        found = re.match(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;()]*)\)?\s*(;.*)?$", line)
        if found and _normal(found[1]) == _normal(other) and not found[3]:
            return found[2].replace(" ", "")
    return ""


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version meets a specifier such as ``>=2.11,<=2.15``. What can't be judged counts as met."""
    return all(_meets(release(version), part.strip()) for part in wanted.split(",") if part.strip())


def _meets(have: tuple[int, ...], part: str) -> bool:
    found = re.fullmatch(r"(~=|===?|!=|<=|>=|<|>)\s*v?([\d.]+?)(\.\*)?", part)
    if not found:
        return True
    operator, bound, wildcard = found[1], release(found[2]), bool(found[3])
    if wildcard:
        same = have[: len(bound)] == bound
        return same if operator == "==" else not same
    if operator == "~=":
        return _pad(have) >= _pad(bound) and have[: len(bound) - 1] == bound[:-1]
    left, right = _pad(have), _pad(bound)
    return {
        "==": left == right,
        "===": left == right,
        "!=": left != right,
        "<=": left <= right,
        ">=": left >= right,
        "<": left < right,
        ">": left > right,
    }[operator]


def release(version: str) -> tuple[int, ...]:
    """The numbers a version begins with: ``2.13.0+cpu`` is (2, 13, 0)."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _pad(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers + (0,) * (8 - len(numbers))


def _series(numbers: tuple[int, ...] | None) -> str:
    return ".".join(map(str, (numbers or ())[:2]))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _off(value: str | None) -> bool:
    return value is not None and value.strip().lower() in ("0", "false", "no", "off", "n", "f", "")
