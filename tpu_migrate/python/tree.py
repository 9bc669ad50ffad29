"""A libcst tree with offsets and parents.

libcst's own position and parent providers cost more than parsing does. Here one code generation
records every node's offsets, and is at the same time the proof that the tree writes back to the very
text it was parsed from. Edits are then made on the text, so nothing outside them can change.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from tpu_migrate.findings import Span
from tpu_migrate.python.source import Source


class TreeError(Exception):
    """The text can't be parsed; the message says where and why."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


_SKIPPED_FIELDS = frozenset(
    "lpar rpar lbracket rbracket lbrace rbrace leading_lines lines_after_decorators header footer comma "
    "semicolon equal colon dot operator trailing_whitespace indent newline relative star first_line "
    "empty_lines last_line encoding default_indent default_newline has_trailing_newline first_colon "
    "second_colon start end conversion asynchronous leading_whitespace posonly_ind separator "
    "trailing_comma comment".split()
)
_child_fields: dict[type, tuple[str, ...]] = {}


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node's children in source order, without whitespace, commas, operators and parentheses."""
    fields = _child_fields.get(type(node))
    if fields is None:
        names = [field.name for field in dataclasses.fields(node)]
        fields = _child_fields[type(node)] = tuple(
            name for name in names if name not in _SKIPPED_FIELDS and not name.startswith("whitespace")
        )
    for name in fields:
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, cst.CSTNode):
                    yield item


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


class _Recorder(CodegenState):
    """Code generation that notes which tokens each node is made of.

    The hooks are closures and the tokens' own ``append``: they run once a node, over a million times
    in a large repository, and attribute look-ups are most of what they would cost.
    """

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline)
        tokens = self.tokens
        starts: list[int] = []
        self.inner: dict[int, tuple[int, int]] = {}
        self.outer: dict[int, tuple[int, int]] = {}
        outer = self.outer
        push, pop = starts.append, starts.pop

        def before_codegen(node: cst.CSTNode) -> None:
            push(len(tokens))

        def after_codegen(node: cst.CSTNode) -> None:
            outer[id(node)] = (pop(), len(tokens))

        self.add_token = tokens.append  # type: ignore[method-assign, assignment]
        self.before_codegen = before_codegen  # type: ignore[method-assign]
        self.after_codegen = after_codegen  # type: ignore[method-assign]

    def record_syntactic_position(self, node: cst.CSTNode, **ends: Any) -> Any:
        if not ends and not getattr(node, "lpar", True):
            return _SAME  # an expression without parentheses begins and ends where its text does
        return _Recording(self, node, **ends)

    def offsets(self) -> list[int]:
        """Offset of each token's first character, and of the end."""
        return [0, *itertools.accumulate(map(len, self.tokens))]


class _Recording:
    __slots__ = ("end_node", "node", "recorder", "start", "start_node")

    def __init__(
        self,
        recorder: _Recorder,
        node: cst.CSTNode,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> None:
        self.recorder, self.node, self.start_node, self.end_node = recorder, node, start_node, end_node

    def __enter__(self) -> None:
        self.start = len(self.recorder.tokens)

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            return
        recorder = self.recorder
        start, end = self.start, len(recorder.tokens)
        if self.start_node is not None:
            start = recorder.inner.get(id(self.start_node), recorder.outer[id(self.start_node)])[0]
        if self.end_node is not None:
            end = recorder.inner.get(id(self.end_node), recorder.outer[id(self.end_node)])[1]
        recorder.inner[id(self.node)] = (start, end)


def _last_blanks(text: str) -> str:
    """Empty lines at the end, where some of them hold blanks."""
    rest = text[len(text.rstrip()) :]
    _, newline, blanks = rest.partition("\n")
    return blanks if newline and blanks.strip("\r\n") else ""


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_SAME = _Nothing()


def _plainly(error: cst.ParserSyntaxError, text: str) -> str:
    """What is wrong, in a sentence; libcst lists the thirty tokens that it would have taken instead."""
    lines = text.splitlines()
    line = lines[error.raw_line - 1] if 0 < error.raw_line <= len(lines) else ""
    if re.match(r"""\s*(?:[^'"#]*[:;]\s*)?print[ \t]+[\w'"`]""", line):
        return "this is not Python 3 (print statement)"
    return "syntax error"


class Tree:
    """A parsed file. Spans are offsets into ``source.text``."""

    def __init__(self, source: Source) -> None:
        """Parse.

        Raises:
            TreeError: the text isn't Python 3, is nested too deeply, or doesn't write back unchanged.
        """
        self.source = source
        try:
            # blanks at the very end are no part of any node, and libcst may lose them
            text = source.text[: len(source.text) - len(_last_blanks(source.text))]
            self.module = cst.parse_module(text)
            recorder = _Recorder(self.module)
            self.module._codegen(recorder)
        except cst.ParserSyntaxError as error:
            raise TreeError(_plainly(error, source.text), error.raw_line, error.raw_column + 1) from None
        except RecursionError:
            raise TreeError("it is nested too deeply to be read") from None
        except Exception as error:
            # libcst reports a few malformed files by exceptions of other kinds
            raise TreeError(f"libcst can't read it ({type(error).__name__}: {error})") from None
        if "".join(recorder.tokens) != text:
            raise TreeError("libcst does not write it back unchanged")
        self._inner, self._outer, self._offsets = recorder.inner, recorder.outer, recorder.offsets()
        self._parents: dict[int, cst.CSTNode] | None = None

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node stands, without its parentheses, leading lines and trailing comment."""
        start, end = self._inner.get(id(node)) or self._outer[id(node)]
        return Span(self._offsets[start], self._offsets[min(end, len(self._offsets) - 1)])

    def outer_span(self, node: cst.CSTNode) -> Span:
        """Where a node stands with its parentheses; for statements with leading and trailing lines."""
        start, end = self._outer[id(node)]
        return Span(self._offsets[start], self._offsets[min(end, len(self._offsets) - 1)])

    def text(self, node: cst.CSTNode) -> str:
        """The node's source, without its parentheses."""
        span = self.span(node)
        return self.source.text[span.start : span.end]

    @property
    def parents(self) -> dict[int, cst.CSTNode]:
        """Parent of each node, by the child's ``id``. Filled by ``names.resolve``, or here when asked."""
        if self._parents is None:
            self._parents = {id(child): node for node in walk(self.module) for child in children(node)}
        return self._parents

    @parents.setter
    def parents(self, value: dict[int, cst.CSTNode]) -> None:
        self._parents = value

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Parents of a node, nearest first."""
        current = self.parents.get(id(node))
        while current is not None:
            yield current
            current = self.parents.get(id(current))
