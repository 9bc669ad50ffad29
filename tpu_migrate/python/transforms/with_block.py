"""``with`` blocks that lose their head."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Part, Span
from tpu_migrate.python.site import Dedent, Refused, Rewrite, Site
from tpu_migrate.python.tree import walk


def unwrap_with(site: Site) -> Rewrite:
    """Delete a ``with`` item; where it is the only one, dedent the block.

    with torch_xla.step():     ->  loss = train(x)
        loss = train(x)
    with a(), torch_xla.step():    ->  with a():
    """
    if isinstance(site.tree.parent(site.node), cst.Decorator):
        return compile_decorator(site)
    item = site.tree.parent(site.node)
    block = site.tree.parent(item) if isinstance(item, cst.WithItem) else None
    if not isinstance(item, cst.WithItem) or not isinstance(block, cst.With):
        raise Refused("it isn't the head of a with statement")
    if item.asname is not None:
        raise Refused("its value is given a name")
    tree = site.tree
    if len(block.items) > 1:
        index = next(number for number, other in enumerate(block.items) if other is item)
        if index + 1 < len(block.items):
            span = Span(tree.span(item).start, tree.span(block.items[index + 1]).start)
        else:
            span = Span(_item_end(site, block.items[index - 1]), _item_end(site, item))
        return Rewrite((Edit(span),))
    if not isinstance(block.body, cst.IndentedBlock):
        start = tree.span(block).start
        return Rewrite((Edit(Span(start, tree.span(block.body.body[0]).start)),))
    outer = site.indent_of(block)
    inner = min((site.indent_of(statement) for statement in block.body.body), key=len)
    return Rewrite(
        tuple(_dedent(site, block, block.body)), dedents=(Dedent(tree.outer_span(block.body), inner, outer),)
    )


def compile_decorator(site: Site) -> Rewrite:
    """``@torch_xla.compile(full_graph=True)`` above a function  ->  ``@torch.compile``."""
    if not isinstance(site.tree.parent(site.node), cst.Decorator):
        raise Refused("passed on, not called here")
    if site.match.symbol != "torch_xla.compile":
        raise Refused("it isn't the head of a with statement")
    note = "full_graph went: Dynamo's fullgraph=True fails at backward(), step(), item() and prints."
    told = site.call is not None and any(
        a.keyword is not None and a.keyword.value == "full_graph" for a in site.call.args
    )
    message = (
        "The function is compiled by torch.compile now; read its graph breaks (TORCH_LOGS=graph_breaks)."
    )
    return Rewrite(
        (Edit(site.tree.span(site.node), (site.spell("torch.compile"),)),),
        message=f"{message} {note}" if told else message,
    )


def _item_end(site: Site, item: cst.WithItem) -> int:
    return site.tree.outer_span(item.asname.name if item.asname else item.item).end


def _dedent(site: Site, block: cst.With, body: cst.IndentedBlock) -> list[Edit]:
    """Delete the head line; take one level of indentation off each line that doesn't begin in a string."""
    tree, source = site.tree, site.tree.source
    head = source.line_start(tree.span(block).start)
    first = source.line_end(_head_end(site, block))
    last = tree.outer_span(body).end  # with the comments below its last statement
    inside = [
        tree.span(node) for node in walk(body) if isinstance(node, (cst.SimpleString, cst.FormattedString))
    ]
    outer = len(site.indent_of(block))
    inner = min(len(site.indent_of(statement)) for statement in body.body)
    comment = source.text[_head_end(site, block) : first].strip()
    kept: tuple[Part, ...] = ()
    if comment.startswith("#"):
        kept = (source.text[head : head + outer], comment, source.newline)
    edits = [Edit(Span(head, first), kept)]
    start = first
    while start < last:
        end = source.line_end(start)
        line = source.text[start:end]
        depth = len(line) - len(line.lstrip(" \t"))
        in_string = any(span.start < start < span.end for span in inside)
        if line.strip() and not in_string and depth > outer:
            edits.append(Edit(Span(start + outer, start + min(inner, depth))))
        if end <= start:
            break
        start = end
    return edits


def _head_end(site: Site, block: cst.With) -> int:
    """The offset of the colon that ends the head."""
    text = site.tree.source.text
    end = site.tree.outer_span(block.items[-1]).end
    return text.index(":", end) + 1
