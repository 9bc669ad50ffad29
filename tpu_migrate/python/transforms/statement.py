"""Statements that go: graph cuts, synchronisation, step closures."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Safety
from tpu_migrate.python.edits import Delete
from tpu_migrate.python.pattern import literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, shorten
from tpu_migrate.python.template import parse_template
from tpu_migrate.python.tree import walk

SYNCHRONIZE = "torch.accelerator.synchronize()"
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
    if site.match.rule.options.get("wait") or reads_clock_beside(site):
        note = (
            "" if site.match.rule.options.get("wait") else "A clock is read beside it, so the wait is kept."
        )
        return Rewrite(site.replace(site.template(SYNCHRONIZE)).edits, note)
    return site.delete_statement()


def reads_clock_beside(site: Site) -> bool:
    """Whether the statement before or after the site reads a clock."""
    line = site.statement_line
    block = site.tree.parent(line)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return False
    body = list(block.body)
    index = next((number for number, statement in enumerate(body) if statement is line), None)
    if index is None:
        return False
    beside = body[max(0, index - 1) : index] + body[index + 1 : index + 2]
    owner = site.tree.parent(block)
    if index == len(body) - 1 and isinstance(owner, (cst.For, cst.While, cst.With)):
        outer = site.tree.parent(owner)
        if isinstance(outer, (cst.IndentedBlock, cst.Module)):
            after = [number for number, statement in enumerate(outer.body) if statement is owner]
            beside += list(outer.body)[after[0] + 1 : after[0] + 2] if after else []
    return any(_reads_clock(statement) for statement in beside)


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

    xm.add_step_closure(log, args=(step, loss))        ->  log(step, loss)
    xm.add_step_closure(lambda: print(loss.item()))    ->  (lambda: print(loss.item()))()
    """
    closure = site.capture("closure").node
    arguments = site.capture("args").node
    assert closure is not None
    if not site.is_whole_statement:
        raise Refused("its value is used")
    if isinstance(arguments, cst.Tuple):
        elements = arguments.elements
        if any(isinstance(element, cst.StarredElement) for element in elements) or _has_comment(
            site, arguments
        ):
            text, extra = "$closure(*$args)", {}
        else:
            spans = [site.tree.outer_span(element.value) for element in elements]
            parts = [part for span in spans for part in (", ", span)][1:]
            text, extra = "$closure($inline)", {"inline": tuple(parts)}
    elif arguments is None:
        text, extra = "$closure()", {}
    else:
        text, extra = "$closure(*$args)", {}
    if parse_template(text).captures == ("closure", "args"):
        star = ("*", site.tree.outer_span(arguments)) if arguments is not None else ()
        text, extra = "$closure($inline)", {"inline": star}
    run_async = site.captures.single.get("run_async")
    threaded = run_async is not None and run_async.given and site.text(run_async.node) != "False"  # type: ignore[arg-type]
    note = "It ran on a thread of its own; now it runs in line." if threaded else ""
    return Rewrite(site.replace(site.template(text, **extra)).edits, note, Safety.REVIEW)


def _has_comment(site: Site, node: cst.CSTNode) -> bool:
    return "#" in site.text(node)
