"""Calls that only change their name, and the names of keywords."""

from __future__ import annotations

from tpu_migrate.findings import Edit
from tpu_migrate.python.site import Refused, Rewrite, Site
from tpu_migrate.python.transforms.arguments import argument_deletion


def rename_call(site: Site) -> Rewrite:
    """Call something else with the same arguments; ``keywords`` renames some, ``drop`` leaves some out.

    xm.master_print("done", fd=log)  ->  print("done", file=log)
    """
    options = site.match.rule.options
    if site.call is None:
        raise Refused("passed on, not called here")
    keywords, drop = options.get("keywords", {}), options.get("drop", [])
    assert isinstance(keywords, dict) and isinstance(drop, list)
    edits = [Edit(site.tree.span(site.reference.node), site.template(str(options["to"])))]
    for argument in site.call.args:
        if argument.star == "**":
            raise Refused("what its ** holds can't be told; name the arguments")
        name = argument.keyword.value if argument.keyword is not None else ""
        if name in drop:
            edits.append(Edit(argument_deletion(site.tree, site.call, argument)))
        elif name in keywords and argument.keyword is not None:
            edits.append(Edit(site.tree.span(argument.keyword), (str(keywords[name]),)))
    return Rewrite(tuple(edits))
