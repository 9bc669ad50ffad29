"""Environment variables set from Python."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Span
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.pattern import literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site


def drop_env(site: Site) -> Rewrite:
    """Delete the statement that sets or unsets an environment variable.

    os.environ["PJRT_DEVICE"] = "TPU"              ->  (the line goes)
    os.environ.setdefault("PJRT_DEVICE", "TPU")    ->  (the line goes)
    os.environ.get("PJRT_DEVICE")                  ->  refused: its value is read

    ``only = ["TPU"]`` limits it to these values.
    """
    node = site.node
    statement = site.small_statement
    only = site.match.rule.options.get("only")
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        if (
            isinstance(target, cst.Subscript)
            and _inside(site, target, node)
            and _is_environ(site.text(target.value))
        ):
            _check(only, statement.value)
            return Rewrite((Delete(statement),))
    if isinstance(statement, cst.Del) and isinstance(statement.target, cst.Subscript):
        return Rewrite((Delete(statement),))
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        call = statement.value
        function = site.text(call.func)
        if (
            function.rpartition(".")[2] in ("setdefault", "pop", "putenv", "unsetenv")
            and call.args[0].value is node
        ):
            if len(call.args) > 1 and not function.endswith("pop"):
                _check(only, call.args[1].value)
            return Rewrite((Delete(statement),))
    element = site.tree.parent(node)
    if isinstance(element, cst.DictElement) and element.key is node and (holder := _updated(site, element)):
        _check(only, element.value)
        return _delete_element(site, holder, element)
    raise Refused("its value is read, or it is set in a way that isn't a statement of its own")


def _updated(site: Site, element: cst.DictElement) -> cst.Dict | None:
    """The dict in ``os.environ.update({...})``."""
    holder = site.tree.parent(element)
    argument = site.tree.parent(holder) if isinstance(holder, cst.Dict) else None
    call = site.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(holder, cst.Dict) and isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        if call.func.attr.value == "update" and _is_environ(site.text(call.func.value)):
            return holder
    return None


def _delete_element(site: Site, holder: cst.Dict, element: cst.DictElement) -> Rewrite:
    elements = list(holder.elements)
    index = next(number for number, other in enumerate(elements) if other is element)
    span = site.tree.span(element)
    whole = Span(span.start, site.tree.outer_span(element.value).end)
    if index + 1 < len(elements):
        return Rewrite((Edit(Span(whole.start, site.tree.span(elements[index + 1]).start)),))
    if index:
        before = elements[index - 1]
        return Rewrite((Edit(Span(site.tree.outer_span(before.value).end, whole.end)),))
    return Rewrite((Edit(whole),))


def _check(only: object, value: cst.BaseExpression) -> None:
    if isinstance(only, list) and literal_value(value) not in only:
        raise Refused(f"it is set to something else than {' or '.join(map(repr, only))}")


def _is_environ(text: str) -> bool:
    return text.rpartition(".")[2] in ("environ", "env", "environb")


def _inside(site: Site, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
    return site.tree.span(inner) in site.tree.span(outer)
