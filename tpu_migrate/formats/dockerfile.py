"""Dockerfiles: base images, ENV, and the commands of RUN, CMD and ENTRYPOINT."""

from __future__ import annotations

import re

from tpu_migrate.findings import Edit, Span
from tpu_migrate.formats.base import Format
from tpu_migrate.formats.launching import Found, Page, mentions, migrate
from tpu_migrate.formats.shell import scan
from tpu_migrate.formats.shell_words import Unreadable, Word, read_shell
from tpu_migrate.python.rewrite import Engine, Rewritten

_NAME = re.compile(
    r"(?:Dockerfile|Containerfile)(?:[._-][\w.-]+)?$|.*\.(?:dockerfile|containerfile)$", re.IGNORECASE
)
_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)(?=[ \t\\])")
_COMMENT = re.compile(r"[ \t]*#")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_FLAG = re.compile(r"[ \t]*--[\w-]+(?:=\S+)?[ \t]+")


def is_dockerfile(path: str) -> bool:
    """Whether a file is called like a Dockerfile."""
    return _NAME.match(path.rpartition("/")[2]) is not None


def rewrite_dockerfile(engine: Engine, path: str, data: bytes, _: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite a Dockerfile.

    Args:
        engine: rules and settings.
        path: repository path of the file.
        data: its bytes.
    """
    return migrate(engine, path, data, _read)


def _read(page: Page) -> None:
    text = page.text
    if re.search(r"(?im)\A(?:[ \t]*#.*\n)*?[ \t]*#[ \t]*escape[ \t]*=[ \t]*`", text):
        return  # another character continues lines: findings only
    position = 0
    while position < len(text):
        end = page.source.line_end(position)
        line = text[position:end]
        if _COMMENT.match(line):
            page.comments.append(Span(position, end))
        elif line.strip():
            end = _instruction_end(page, position)
            _instruction(page, position, end)
        position = end


def _instruction_end(page: Page, start: int) -> int:
    """Just past the last line of the instruction that begins here, heredocs included."""
    text, position = page.text, start
    while True:
        end = page.source.line_end(position)
        line = text[position:end]
        comment = position != start and (_COMMENT.match(line) or not line.strip())
        if end >= len(text) or not (comment or line.rstrip().endswith("\\")):
            break
        position = end
    for heredoc in _HEREDOC.finditer(text[start:end]):
        closing = re.compile(rf"^\t*{heredoc[2]}[ \t]*(?:\r?\n|$)", re.MULTILINE).search(text, end)
        end = closing.end() if closing else len(text)
    return end


def _instruction(page: Page, start: int, end: int) -> None:
    found = _INSTRUCTION.match(page.text, start, end)
    if found is None:
        return
    keyword, body = found[1].upper(), found.end()
    if keyword == "ENV":
        _env(page, Span(start, end), body)
    elif keyword in ("RUN", "CMD", "ENTRYPOINT"):
        while flag := _FLAG.match(page.text, body, end):
            body = flag.end()
        if page.text[body:end].lstrip().startswith("["):
            return  # a list of arguments, not a command line: findings only
        outer = Span(start, end) if keyword == "RUN" else None
        scan(page, body, end, outer=outer, inside=outer is None, docker=True)


def _env(page: Page, whole: Span, body: int) -> None:
    try:
        shell = read_shell(page.text, body, whole.end, docker=True)
    except Unreadable:
        return
    if len(shell.commands) != 1:
        return
    page.comments += shell.comments
    words = shell.commands[0].words
    if "=" not in words[0].raw:  # ENV NAME the value
        name = words[0].raw
        if page.knows(name) and len(words) > 1:
            refusal = page.can_drop(name, words[1].value if len(words) == 2 else None)
            edits = () if refusal else (Edit(whole),)
            page.found.append(Found(words[0].span, "env." + name, edits, refusal))
        return
    dropped: list[int] = []
    for index, word in enumerate(words):
        name, _, value = (word.value or word.raw).partition("=")
        if not page.knows(name):
            continue
        if refusal := page.can_drop(name, value if word.value is not None else None):
            page.found.append(Found(_name(word, name), "env." + name, refusal=refusal))
        else:
            dropped.append(index)
    for index in dropped:
        edit = Edit(whole)
        if len(dropped) < len(words):
            run = index
            while run in dropped:
                run += 1
            first = index
            while first - 1 in dropped:
                first -= 1
            if run < len(words):
                edit = Edit(Span(words[index].span.start, words[index + 1].span.start))
            else:
                edit = Edit(Span(words[first - 1].span.end, words[-1].span.end))
        name = words[index].raw.partition("=")[0]
        if any(comment in edit.span for comment in page.comments):
            page.found.append(
                Found(_name(words[index], name), "env." + name, refusal="a comment stands beside it")
            )
        else:
            page.found.append(Found(_name(words[index], name), "env." + name, (edit,)))


def _name(word: Word, name: str) -> Span:
    return Span(word.span.start, word.span.start + len(name))


_AFTER_THE_NAME = (
    "tpu xla torch torch_xla torch-xla gpu cpu dev base prod train training serve ubuntu debian".split()
)
"""What commonly follows ``Dockerfile.`` or ``Dockerfile-``: the walk looks for endings."""

DOCKERFILE = Format(
    "dockerfile",
    (
        "Dockerfile",
        "Containerfile",
        ".dockerfile",
        ".containerfile",
        *(f"file{dot}{word}" for word in _AFTER_THE_NAME for dot in ".-_"),
    ),
    rewrite_dockerfile,
    is_dockerfile,
    mentions,
)
