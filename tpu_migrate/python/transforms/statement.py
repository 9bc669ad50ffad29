"""Statements that go: graph cuts, synchronisation, step closures."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tpu_migrate.findings import Edit, Part
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.pattern import is_literal, literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, is_repeatable, shorten
from tpu_migrate.python.tree import walk

SYNCHRONIZE = "torch.accelerator.synchronize()"
_WAITS = ("torch_xla.core.xla_model.wait_device_ops",)
_CLOCKS = frozenset(
    "time perf_counter monotonic process_time perf_counter_ns time_ns monotonic_ns now default_timer "
    "elapsed_time".split()
)


def drop_statement(site: Site) -> Rewrite:
    """Delete the statement that is nothing but the matched call.

    xm.mark_step()             ->  (the line goes)
    if debug: xm.mark_step()   ->  if debug: pass
    t = xm.mark_step()         ->  refused: its value is used

    With ``within = "print"``, the print goes too when it says nothing else; with
    ``assigned = "unused"``, an assignment to a name that nothing reads.
    """
    if site.match.rule.options.get("assigned") == "unused" and (assignment := _unused_assignment(site)):
        return Rewrite((Delete(assignment),))
    within = site.match.rule.options.get("within")
    if within and not site.is_whole_statement:
        argument = site.tree.parent(site.node)
        outer = site.tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if (
            isinstance(outer, cst.Call)
            and _prints(site.text(outer.func), within)
            and _only_says(outer, site.node)
        ):
            statement = site.tree.parent(outer)
            if isinstance(statement, cst.Expr):
                return Rewrite((Delete(statement),))
        raise Refused("its result is used")
    return site.delete_statement()


def _only_says(call: cst.Call, node: cst.BaseExpression) -> bool:
    """Whether a print's other arguments are constants, or keywords such as ``flush=True``."""
    return all(
        argument.value is node or argument.keyword is not None or literal_value(argument.value) is not ...
        for argument in call.args
    )


def _unused_assignment(site: Site) -> cst.Assign | None:
    parent = site.tree.parent(site.node)
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return None
    target = parent.targets[0].target
    if isinstance(target, cst.Name) and not site.context.names.loads.get(target.value):
        return parent
    return None


def _prints(function: str, within: object) -> bool:
    wanted = within if isinstance(within, list) else [within]
    last = function.rpartition(".")[2]
    return last in wanted or (
        last in ("info", "debug", "log", "warning", "master_print") and "print" in wanted
    )


def synchronize_or_drop(site: Site) -> Rewrite:
    """Delete a graph cut; where a clock is read beside it, wait for the device instead.

    xm.mark_step()             ->  (the line goes)
    torch_xla.sync()           ->  torch.accelerator.synchronize()
    seconds = time.time() - t      seconds = time.time() - t
    """
    if not site.is_whole_statement:
        raise Refused(f"the value of `{shorten(site.text(site.node))}` is used; remove it by hand")
    if site.match.rule.options.get("wait"):
        return synchronize(site)
    if reads_clock_beside(site) and not _waits_next(site):
        return Rewrite(
            synchronize(site).edits,
            message="A clock is read beside this line, so it waits for the device now; the old call only "
            "queued the work. Delete it if the time to queue was what you measured.",
        )
    return site.delete_statement()


def synchronize(site: Site) -> Rewrite:
    """Wait for the device; in device-agnostic code, where there is one.

    xm.wait_device_ops()  ->  torch.accelerator.synchronize()
    """
    statement = site.small_statement
    if site.context.settings.device == "accelerator" and site.is_whole_statement and statement is not None:
        line = site.tree.parent(statement)
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            return site.statements(f"if torch.accelerator.is_available():\n    {SYNCHRONIZE}", statement)
        return site.replace(
            site.template(f"{SYNCHRONIZE} if torch.accelerator.is_available() else None"), True
        )
    return site.replace(site.template(SYNCHRONIZE))


def reads_clock_beside(site: Site) -> bool:
    """Whether the statement before or after the site, in its own block, reads a clock."""
    before, after = _neighbours(site)
    return any(statement is not None and _reads_clock(statement) for statement in (before, after))


def _waits_next(site: Site) -> bool:
    """Whether the next statement waits for the device anyway."""
    after = _neighbours(site)[1]
    return after is not None and any(
        reference.qualified_name in _WAITS and site.tree.span(reference.node) in site.tree.span(after)
        for reference in site.context.names.references
    )


def _neighbours(site: Site) -> tuple[cst.CSTNode | None, cst.CSTNode | None]:
    """The statements before and after the site's own, on its line or in its block."""
    small = site.small_statement
    holder = site.tree.parent(small) if small is not None else None
    if small is None or not isinstance(holder, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return None, None
    before, after = _beside(list(holder.body), small)
    if isinstance(holder, cst.SimpleStatementLine) and (before is None or after is None):
        block = site.tree.parent(holder)
        if isinstance(block, (cst.IndentedBlock, cst.Module)):
            above, below = _beside(list(block.body), holder)
            before, after = before or above, after or below
    return before, after


def _beside(body: Sequence[cst.CSTNode], node: cst.CSTNode) -> tuple[cst.CSTNode | None, cst.CSTNode | None]:
    index = next(number for number, statement in enumerate(body) if statement is node)
    return body[index - 1] if index else None, body[index + 1] if index + 1 < len(body) else None


def _reads_clock(statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.BaseCompoundStatement):
        return False
    for node in walk(statement):
        if isinstance(node, cst.Call):
            name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            if isinstance(name, cst.Name) and name.value in _CLOCKS:
                return True
    return False


def call_now(site: Site) -> Rewrite:
    """Call a step closure where it was registered.

    xm.add_step_closure(log, args=(step, loss))               ->  log(step, loss)
    xm.add_step_closure(lambda l: print(l.item()), (loss,))   ->  print(loss.item())
    """
    closure = site.capture("closure").node
    arguments = site.capture("args").node
    assert closure is not None
    if not site.is_whole_statement:
        raise Refused("its value is used")
    run_async = site.captures.single["run_async"].node
    threaded = run_async is not None and not is_literal(run_async, False)
    note = "It ran on a thread of its own; now it runs in line." if threaded else ""
    values = _tuple_values(arguments)
    if isinstance(closure, cst.Lambda) and values is not None:
        body = _inlined(site, closure, values)
        if body is not None:
            return Rewrite((*site.replace((site.tree.outer_span(closure.body),)).edits, *body), note)
    if values is not None and arguments is not None and "#" not in site.text(arguments):
        spans = [site.tree.outer_span(value) for value in values]
        inline: tuple[Part, ...] = tuple(part for span in spans for part in (", ", span))[1:]
    else:
        inline = ("*", site.tree.outer_span(arguments)) if arguments is not None else ()
    return Rewrite(site.replace(site.template("$closure($inline)", inline=inline)).edits, note)


def _tuple_values(node: cst.BaseExpression | None) -> list[cst.BaseExpression] | None:
    """The elements of a tuple literal; None where it isn't one."""
    if node is None:
        return []
    if not isinstance(node, (cst.Tuple, cst.List)):
        return None
    if any(isinstance(element, cst.StarredElement) for element in node.elements):
        return None
    return [element.value for element in node.elements]


def _inlined(site: Site, closure: cst.Lambda, values: list[cst.BaseExpression]) -> list[Edit] | None:
    """The edits that put arguments in the place of a lambda's parameters, where that is safe and simple."""
    parameters = closure.params
    plain = [parameter.name.value for parameter in parameters.params]
    if (
        len(plain) != len(values)
        or parameters.kwonly_params
        or parameters.posonly_params
        or isinstance(parameters.star_arg, cst.Param)
        or parameters.star_kwarg is not None
        or not all(is_repeatable(value) for value in values)
    ):
        return None
    scope = site.context.names.scopes[id(closure)]
    edits: list[Edit] = []
    for name, value in zip(plain, values, strict=True):
        for node, used_in in site.context.names.loads.get(name, ()):
            found = used_in.lookup(name)
            if found is not None and found[0] is scope and site.text(value) != name:
                edits.append(Edit(site.tree.span(node), (site.tree.outer_span(value),)))
    return edits
