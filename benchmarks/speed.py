"""How fast the tool is, as ratios to things anybody can measure on the same machine in the same run.

    python benchmarks/speed.py ~/checkouts/pytorch+xla

1. On the files in DIR that mention torch_xla: one process of the tool, against parsing them with libcst
   and generating the code again, and against a stock libcst codemod that resolves names with
   QualifiedNameProvider.
2. On a tree of 10,000 files of which 20 matter: the tool, against reading the files.
3. On one small file: a run as the pre-commit hook does it, against starting Python.

Each measurement is a process of its own, so that none warms up another. They take turns, and a ratio is that
of neighbours; shown are the least and the median. Nothing is asserted: a loaded machine is not a regression.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
FILES, MATTERING = 10_000, 20

SMALL = """\
import torch
import torch_xla.core.xla_model as xm


def train(model, optimizer, loader):
    device = xm.xla_device()
    model.to(device)
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        xm.mark_step()
"""


# --- what is measured: each of these runs in a process of its own and is timed there ---------------------


def tool(root: Path) -> None:
    """A dry run in one process."""
    from tpu_migrate.config import Settings
    from tpu_migrate.pipeline import run

    run([root], Settings())


def parse(root: Path) -> None:
    """What no codemod built on libcst can do without."""
    import libcst

    for source in _sources(root):
        libcst.parse_module(source).code  # noqa: B018 - the property does the work


def stock(root: Path) -> None:
    """The codemod that libcst's documentation leads to, with a single rule: xm.xla_device()."""
    import libcst
    from libcst.codemod import CodemodContext, VisitorBasedCodemodCommand
    from libcst.metadata import QualifiedNameProvider

    class Replace(VisitorBasedCodemodCommand):
        METADATA_DEPENDENCIES = (QualifiedNameProvider,)

        def leave_Call(self, original_node: libcst.Call, updated_node: libcst.Call) -> libcst.BaseExpression:
            names = self.get_metadata(QualifiedNameProvider, original_node, set())
            if any(name.name == "torch_xla.core.xla_model.xla_device" for name in names):
                return libcst.parse_expression("torch.device('tpu')")
            return updated_node

    for source in _sources(root):
        Replace(CodemodContext()).transform_module(libcst.parse_module(source)).code  # noqa: B018


def read(root: Path) -> None:
    """Open and read every file, the list of them being known."""
    for path in (root.parent / "paths.txt").read_text(encoding="utf-8").splitlines():
        with open(path, "rb") as file:
            file.read()


MEASURED: dict[str, Callable[[Path], None]] = {"tool": tool, "parse": parse, "stock": stock, "read": read}


def _sources(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        yield path.read_text(encoding="utf-8")


def work(name: str, root: Path, warm: Path | None) -> float:
    """Seconds that the function takes; with `warm`, after it ran there (imports done, rules read)."""
    if warm is not None:
        MEASURED[name](warm)
    started = time.perf_counter()
    MEASURED[name](root)
    return time.perf_counter() - started


# --- how it is measured -----------------------------------------------------------------------------------


@dataclass
class Measurement:
    """One thing to time, and the times so far."""

    label: str
    measure: Callable[[], float]
    seconds: list[float]

    @classmethod
    def worker(cls, label: str, name: str, root: Path, warm: Path | None = None) -> Measurement:
        command = [sys.executable, __file__, "--work", name, "--warm", str(warm or ""), str(root)]
        return cls(label, lambda: float(_run(command)), [])

    @classmethod
    def process(cls, label: str, *arguments: str) -> Measurement:
        def measure() -> float:
            started = time.perf_counter()
            _run([sys.executable, *arguments])
            return time.perf_counter() - started

        return cls(label, measure, [])


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    # 1 is the tool saying that there is something to migrate, but Python's for an exception as well.
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def compare(title: str, subject: Measurement, others: Sequence[tuple[Measurement, str]], repeat: int) -> None:
    """Time them in turns and print the subject's ratio to each of the others, beside the reach."""
    for _ in range(repeat):
        for measurement in (subject, *(other for other, _ in others)):
            measurement.seconds.append(measurement.measure())
    print(f"\n{title}")
    for measurement in (subject, *(other for other, _ in others)):
        least, median = min(measurement.seconds), statistics.median(measurement.seconds)
        print(f"  {measurement.label:44} least {least:8.3f} s  median {median:8.3f} s")
    for other, reach in others:
        ratios = [ours / theirs for ours, theirs in zip(subject.seconds, other.seconds, strict=True)]
        print(
            f"  {subject.label} / {other.label}: "
            f"least {min(ratios):.2f}, median {statistics.median(ratios):.2f} ({reach})"
        )


# --- what it is measured on -------------------------------------------------------------------------------


def copy_mattering(source: Path, target: Path) -> int:
    """Copy the files that mention torch_xla and that libcst can parse, so that all see the same; how many."""
    import libcst

    count = 0
    for path in sorted(source.rglob("*.py")):
        data = path.read_bytes() if path.is_file() else b""
        if b"torch_xla" not in data:
            continue
        try:
            libcst.parse_module(data.decode("utf-8"))
        except (libcst.ParserSyntaxError, UnicodeDecodeError):
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
        count += 1
    return count


def generate_tree(root: Path) -> None:
    """10,000 files, 100 to a folder: modules of the standard library, and 20 torch_xla programs."""
    standard = Path(sysconfig.get_path("stdlib"))
    texts = [path.read_bytes() for path in sorted(standard.glob("*.py")) if path.stat().st_size <= 20_000]
    paths = []
    for number in range(FILES):
        path = root / f"package_{number // 1000}" / f"part_{number // 100 % 10}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        matters = number % (FILES // MATTERING) == 0
        path.write_bytes(SMALL.encode() if matters else texts[number % len(texts)])
        paths.append(str(path))
    (root.parent / "paths.txt").write_text("\n".join(paths), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="a checkout of pytorch/xla, or any other")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="turns (default 3)")
    parser.add_argument("--only", choices=("files", "tree", "hook"), help="one of the three parts")
    parser.add_argument("--work", choices=sorted(MEASURED), help=argparse.SUPPRESS)
    parser.add_argument("--warm", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        print(work(arguments.work, arguments.directory, Path(arguments.warm) if arguments.warm else None))
        return
    if not arguments.directory.is_dir():
        parser.error(f"{arguments.directory} is not a directory; name a checkout of pytorch/xla")

    scratch = Path(tempfile.mkdtemp(prefix="tpu-migrate-speed-"))
    try:
        small = scratch / "small" / "train.py"
        small.parent.mkdir()
        small.write_text(SMALL, encoding="utf-8")
        if arguments.only in (None, "files"):
            files = scratch / "files"
            count = copy_mattering(arguments.directory, files)
            compare(
                f"{count} files of {arguments.directory} that mention torch_xla, one process",
                Measurement.worker("tool", "tool", files, small.parent),
                [
                    (
                        Measurement.worker("libcst parse + code", "parse", files, small.parent),
                        "reach: at most 1.6",
                    ),
                    (
                        Measurement.worker("stock codemod", "stock", files, small.parent),
                        "reach: at most 0.25",
                    ),
                ],
                arguments.repeat,
            )
        if arguments.only in (None, "tree"):
            tree = scratch / "tree"
            generate_tree(tree)
            read(tree)  # from here on all files are in the page cache
            compare(
                f"{FILES:,} files of which {MATTERING} matter",
                Measurement.worker("tool", "tool", tree, small.parent),
                [(Measurement.worker("reading the files", "read", tree), "reach: at most 3")],
                2 * arguments.repeat,
            )
            compare(
                "The same, with the tool's imports and the reading of its rules",
                Measurement.worker("tool from the start", "tool", tree),
                [(Measurement.worker("reading the files", "read", tree), "no reach set")],
                arguments.repeat,
            )
        if arguments.only in (None, "hook"):
            compare(
                "One small file, as the pre-commit hook runs (reach: under 0.5 s)",
                Measurement.process("tpu-migrate --check FILE", "-m", "tpu_migrate", "--check", str(small)),
                [(Measurement.process("python -c pass", "-c", "pass"), "no reach set")],
                5 * arguments.repeat,
            )
            compare(
                "The help (reach: under 0.2 s)",
                Measurement.process("tpu-migrate --help", "-m", "tpu_migrate", "--help"),
                [(Measurement.process("python -c pass", "-c", "pass"), "no reach set")],
                5 * arguments.repeat,
            )
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
