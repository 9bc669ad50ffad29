"""Every qualified name that a rewrite can emit, so that a test can look each of them up."""

from __future__ import annotations

import inspect
import pkgutil
import re
from typing import TYPE_CHECKING

from tpu_migrate.python import transforms
from tpu_migrate.python.helpers import load_helper
from tpu_migrate.python.template import DEVICE, parse_template

if TYPE_CHECKING:
    from tpu_migrate.rules import RuleBook

_IN_SOURCE = re.compile(r"""["'{( ](torch(?:\.\w+)+)""")


def emitted_names(book: RuleBook) -> set[str]:
    """Names in the templates of rules, in helper files and in the transforms' own code.

    Names in a transform's docstring count too: what it promises there has to exist.
    """
    from tpu_migrate.rules import rules_directory

    found: set[str] = set()
    for device in DEVICE:
        for rule in book.rules:
            texts = [
                rule.replace,
                rule.without_group or "",
                *(v for v in rule.options.values() if isinstance(v, str)),
            ]
            for text in texts:
                if "torch." in text or "@" in text:
                    found.update(parse_template(text, device).names)
        for name in DEVICE[device]:
            found.update(parse_template(f"x @{name}" if name == "is" else f"f(@{name})", device).names)
    for path in (rules_directory() / "helpers").glob("*.py"):
        found.update(load_helper(path.parent, path.stem).qualified_names)
    for module in pkgutil.iter_modules(transforms.__path__):
        source = inspect.getsource(__import__(f"{transforms.__name__}.{module.name}", fromlist=["x"]))
        found.update(_IN_SOURCE.findall(source))
    return {name for name in found if name.startswith("torch.") or name == "torch"}
