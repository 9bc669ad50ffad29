"""``pip install`` lines of notebooks: torch_xla out, torch_tpu in, where the line is plain enough."""

from __future__ import annotations

import re

_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
_INSTALL = re.compile(
    r"(?:[!%][ \t]*)?(?:\S+[ \t]+-m[ \t]+)?(?:uv[ \t]+)?pip3?[ \t]+install\b(?P<rest>.*)", re.DOTALL
)
_XLA = re.compile(r"(?:[\w.+-]+://\S*/)?torch[_-]xla(?![\w.])", re.IGNORECASE)
_TORCH = re.compile(r"(?:[\w.+-]+://\S*/)?torch(?:[=<>~!\s@]|-\d)", re.IGNORECASE)
_COMPANION = re.compile(r"(?:[\w.+-]+://\S*/)?torch(?:vision|audio|text)(?=[=<>~!-])", re.IGNORECASE)
_OBSOLETE = re.compile(r"(?:cloud-tpu-client|libtpu|libtpu-nightly)(?=[=<>~!\s@]|$)", re.IGNORECASE)
_RELEASES = re.compile(r"libtpu|tpu-pytorch|pytorch-xla", re.IGNORECASE)
TARGET = "torch_tpu"


class NotSimple(Exception):
    """The line has to be changed by hand; the message says why."""


def is_install(command: str) -> bool:
    """Whether a line installs torch_xla with pip."""
    found = _INSTALL.match(command)
    return (
        found is not None and re.search(r"torch[_-]xla|pytorch/xla", found["rest"], re.IGNORECASE) is not None
    )


def migrated_install(command: str) -> str:
    """A ``pip install`` line with torch_tpu in the place of torch_xla.

    Find-links to libtpu's and torch_xla's releases go, as do libtpu and cloud-tpu-client; a pin of torch
    goes too, because torch_tpu needs a newer one. Everything else stays as it is spelt.

    Raises:
        NotSimple: several lines or commands, or something beside it that pins an old torch.
    """
    found = _INSTALL.match(command)
    assert found is not None
    if "\n" in command or "\r" in command:
        raise NotSimple("it goes over several lines")
    offset = found.start("rest")
    words = [
        (offset + word.start(), offset + word.end(), word.group()) for word in _WORD.finditer(found["rest"])
    ]
    changes: list[tuple[int, int, str]] = []
    installed = "torch_tpu" in command or "torch-tpu" in command
    index = 0
    while index < len(words):
        start, end, word = words[index]
        plain = word.strip("'\"")
        index += 1
        if re.match(r"\d?>|&>|#", word):
            break
        if re.search(r"&&|[|;]$|^[|;]|^&$", plain) or (";" in plain and word == plain):
            raise NotSimple("it runs several commands")
        if word in ("-f", "--find-links"):
            if index < len(words) and _RELEASES.search(words[index][2]):
                changes.append((start, words[index][1], ""))
            index += 1
        elif word.startswith("--find-links="):
            if _RELEASES.search(word):
                changes.append((start, end, ""))
        elif word in ("-r", "-c", "-i", "--requirement", "--constraint", "--index-url", "--extra-index-url"):
            index += 1
        elif word.startswith("-"):
            continue
        elif "pytorch/xla" in plain or re.search(r"[{$]", plain):
            if re.search(r"xla", plain, re.IGNORECASE):
                raise NotSimple("what it installs is built from source or put together from variables")
        elif _XLA.match(plain):
            if re.search(r"cuda|gpu", plain, re.IGNORECASE):
                raise NotSimple("it installs torch_xla for GPUs")
            changes.append((start, end, "" if installed else TARGET))
            installed = True
        elif _COMPANION.match(plain):
            raise NotSimple(
                f"{re.split('[=<>~!]', plain.rpartition('/')[2])[0]} is pinned beside it, to an old torch"
            )
        elif _TORCH.match(plain):
            changes.append((start, end, "torch"))
        elif _OBSOLETE.match(plain):
            changes.append((start, end, ""))
    if not any(text == TARGET for _, _, text in changes) and not installed:
        raise NotSimple("torch_xla is no plain word of it")
    for start, end, text in reversed(changes):
        if not text:  # with the blanks before it
            start = len(command[:start].rstrip(" \t"))
        command = command[:start] + text + command[end:]
    return command
