"""The transform of rules that have none: fill the template, with or without a process group."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit
from tpu_migrate.python.site import Refused, Rewrite, Site, parts_text

INITIALIZED = "torch.distributed.is_initialized()"


def fill(site: Site) -> Rewrite:
    """Replace the site by the rule's template, or the function's name by the rule's helper.

    xm.xla_device()               ->  torch.device("tpu")
    xm.get_ordinal()              ->  (dist.get_rank() if dist.is_initialized() else 0)
    xm.rendezvous("saved")        ->  if dist.is_initialized():
                                          dist.barrier()
    """
    rule = site.match.rule
    for word in rule.options.get("unless", ()):
        if word in site.tree.source.text:
            raise Refused(f"the file reads {word!r} from it, which has no counterpart")
    if rule.helper and site.match.captures is None:
        if site.call is not None and rule.replace:
            raise Refused("its arguments are of a form no rule knows")
        argument = site.tree.parent(site.node)
        if isinstance(argument, cst.Arg) and isinstance(site.tree.parent(argument), cst.ClassDef):
            raise Refused("a class is derived from it")
        return helper_call(site, rule.helper)
    if rule.helper and not rule.replace:
        return helper_call(site, rule.helper)
    extra = {}
    if rule.helper:
        extra["helper"] = (site.use_helper(rule.helper),)
    if rule.without_group is None or site.has_group:
        if site.call is None and site.match.captures is not None:
            raise Refused("it is not called here")
        return site.replace(site.template(rule.replace, **extra), site.is_loose(rule.replace))
    if rule.without_group == "":
        return only_with_group(site, rule.replace)
    text = f"{rule.replace} if {INITIALIZED} else {rule.without_group}"
    return site.replace(site.template(text, **extra), loose=True)


def helper_call(site: Site, helper: str) -> Rewrite:
    """Put a helper's name in the place of the matched function's name; the arguments stay as they are."""
    name = site.use_helper(helper)
    return Rewrite((Edit(site.tree.span(site.reference.node), (name,)),))


def only_with_group(site: Site, replace: str) -> Rewrite:
    """Replace a whole statement by one that runs where there is a process group."""
    if not site.is_whole_statement:
        raise Refused("its value is used, and without a process group there would be none")
    statement = site.small_statement
    assert statement is not None
    body = site.template(f"if {INITIALIZED}:\n    {replace}")
    line = site.tree.parent(statement)
    if site.is_loose(replace) or line is None:
        raise Refused(f"`{parts_text(body, site.tree.source.text)}` does not fit here")
    return site.statements(f"if {INITIALIZED}:\n    {replace}", statement)
