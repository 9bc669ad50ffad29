"""Running the rewriters of launch files on texts."""

from __future__ import annotations

import functools

from tpu_migrate.config import Settings
from tpu_migrate.formats.dockerfile import DOCKERFILE
from tpu_migrate.formats.markdown import MARKDOWN
from tpu_migrate.formats.shell import MAKEFILE, SHELL
from tpu_migrate.formats.yaml_files import YAML
from tpu_migrate.programs import Overview
from tpu_migrate.python.match import Matcher
from tpu_migrate.python.rewrite import Engine
from tpu_migrate.rules import load_rules, rules_directory

FORMATS = (SHELL, MAKEFILE, DOCKERFILE, YAML, MARKDOWN)


@functools.cache
def matcher():
    return Matcher(load_rules())


def migrate(path, text, overview=None, **settings):
    """The FileResult for one file, as after ``--apply``."""
    kind = next(one for one in FORMATS if path.endswith(one.endings) and one.accepts(path))
    engine = Engine(
        matcher(), Settings(**settings), overview or Overview(), rules_directory() / "helpers", applied=True
    )
    data = text if isinstance(text, bytes) else text.encode()
    return kind.rewrite(engine, path, data, frozenset()).result


def becomes(path, text, **settings):
    """The new text, after a second run has changed nothing."""
    result = migrate(path, text, **settings)
    again = migrate(path, result.new, **settings)
    assert again.new == result.new
    return result.new.decode()


def told(path, text, **settings):
    """(code, outcome, before) of each finding."""
    return [
        (finding.code, finding.outcome.value, finding.before)
        for finding in migrate(path, text, **settings).findings
    ]
