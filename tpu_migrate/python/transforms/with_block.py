"""``with`` blocks that lose their head."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Edit, Part, Span
from tpu_migrate.python.site import Refused, Rewrite, Site
from tpu_migrate.python.tree import walk


def unwrap_with(site: Site) -> Rewrite:
    """Delete a ``with`` item; where it is the only one, dedent the block.

    with torch_xla.step():     ->  loss = train(x)
        loss = train(x)
    with a(), torch_xla.step():    ->  with a():
    """
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
    return Rewrite(tuple(_dedent(site, block, block.body)))


def _item_end(site: Site, item: cst.WithItem) -> int:
    return site.tree.outer_span(item.asname.name if item.asname else item.item).end


def _dedent(site: Site, block: cst.With, body: cst.IndentedBlock) -> list[Edit]:
    """Delete the head line; take one level of indentation off each line that doesn't begin in a string."""
    tree, source = site.tree, site.tree.source
    head = source.line_start(tree.span(block).start)
    first = source.line_end(_head_end(site, block))
    last = source.line_end(tree.span(body).end - 1 if tree.span(body).end else 0)
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
