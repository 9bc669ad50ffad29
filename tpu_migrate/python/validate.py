"""Checks of a rule book that need to know templates, transforms and helpers."""

from __future__ import annotations

from pathlib import Path

from tpu_migrate.python.pattern import PatternError, parse_pattern
from tpu_migrate.python.template import TemplateError, parse_template
from tpu_migrate.python.transforms import TRANSFORMS
from tpu_migrate.rules import Rule, RuleBook, RuleError


def check_rules(book: RuleBook, helpers: Path) -> None:
    """Find what would otherwise fail at the first use of a rule.

    Args:
        book: the rules.
        helpers: the directory of helper files.

    Raises:
        RuleError: a transform or helper that doesn't exist, a template that isn't one, or a ``$name``
            in it that no pattern captures.
    """
    for rule in book.rules:
        where = f"{rule.file}: {rule.code}"
        if rule.transform and rule.transform not in TRANSFORMS:
            raise RuleError(
                f'{where}.transform is "{rule.transform}"; expected one of {", ".join(TRANSFORMS)}'
            )
        if rule.helper and not (helpers / f"{rule.helper}.py").is_file():
            raise RuleError(
                f'{where}.helper is "{rule.helper}", but there is no {helpers.name}/{rule.helper}.py'
            )
        for text in rule.match:
            try:
                parse_pattern(text)
            except PatternError as error:
                raise RuleError(f"{where}.match: {error}") from None
        for key in ("replace", "without_group"):
            _check_template(rule, where, key, getattr(rule, key) or "")


def _check_template(rule: Rule, where: str, key: str, text: str) -> None:
    if not text:
        return
    try:
        template = parse_template(text, roots=frozenset(rule.imports))
        patterns = [parse_pattern(pattern) for pattern in rule.match]
    except (TemplateError, PatternError) as error:
        raise RuleError(f"{where}.{key}: {error}") from None
    if template.captures and all(pattern.parameters is None for pattern in patterns):
        raise RuleError(f"{where}.{key} uses ${template.captures[0]}, but no pattern captures anything")
    for pattern in patterns:
        if pattern.parameters is None:
            continue
        known = {parameter.name for parameter in pattern.parameters} | {pattern.rest, "helper"}
        if missing := sorted(set(template.captures) - known):
            raise RuleError(f"{where}.{key} uses ${missing[0]}, which {pattern.text} does not capture")
