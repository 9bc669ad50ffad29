"""File kinds: how each is told, prefiltered, rewritten and written back."""

from __future__ import annotations

from tpu_migrate.formats.base import Format
from tpu_migrate.formats.conda import CONDA
from tpu_migrate.formats.dockerfile import DOCKERFILE
from tpu_migrate.formats.locks import LOCKS
from tpu_migrate.formats.markdown import MARKDOWN
from tpu_migrate.formats.notebook import NOTEBOOK
from tpu_migrate.formats.pyproject import PIPFILE, PYPROJECT
from tpu_migrate.formats.requirements import REQUIREMENTS
from tpu_migrate.formats.setup_cfg import SETUP_CFG
from tpu_migrate.formats.shell import MAKEFILE, SHELL
from tpu_migrate.formats.yaml_files import YAML
from tpu_migrate.python.rewrite import rewrite_file

PYTHON = Format("python", (".py", ".pyi"), rewrite_file, is_python=True)

FORMATS: tuple[Format, ...] = (
    PYTHON,
    NOTEBOOK,
    LOCKS,
    PYPROJECT,
    PIPFILE,
    SETUP_CFG,
    CONDA,
    REQUIREMENTS,
    SHELL,
    MAKEFILE,
    DOCKERFILE,
    YAML,
    MARKDOWN,
)
"""Another file kind is one entry here; the first that accepts a path has it."""


def endings() -> tuple[str, ...]:
    """Endings of all file names that some format takes."""
    return tuple(ending for entry in FORMATS for ending in entry.endings)


def format_of(path: str) -> Format | None:
    """The format a file is read with, or None for kinds the tool leaves alone."""
    return next((entry for entry in FORMATS if path.endswith(entry.endings) and entry.accepts(path)), None)
