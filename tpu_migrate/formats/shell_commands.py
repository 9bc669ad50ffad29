"""Commands that start programs or install torch_xla."""

from __future__ import annotations

import re

from tpu_migrate.findings import Edit, Span
from tpu_migrate.formats.launching import Found, Page
from tpu_migrate.formats.shell_words import Word, values

_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$")
_PIP = re.compile(r"(?:.*/)?pip[\d.]*$")
_TORCH_XLA = re.compile(r"torch[_-]xla(?![\w-])")
_PIN = re.compile(r"(torch|torchvision|torchaudio)(\[[\w,]+\])?\s*([~=!<>]=?=?.*)?$")
_RELEASES = re.compile(
    r"https?://\S*(?:pytorch-xla-releases|tpu-pytorch)\S*/(torch_xla|torchvision|torch)-[^/]*\.whl$"
)
_FIND_LINKS = re.compile(
    r"https?://\S*(?:libtpu-releases|libtpu-wheels|libtpu_releases|pytorch-xla-releases|jax-releases/jax_nightly)\S*$"
)
_LIBTPU = re.compile(r"libtpu(?:-nightly)?(?:\[\w+\])?(?:\s*[~=<>!]=?.*)?$")


def find_in_command(page: Page, words: list[Word]) -> None:
    """Find what one command does with torch_xla.

    Args:
        page: gets what is found.
        words: of the command, without variables set for it.
    """
    plain = values(words)
    _containers(page, words, plain)
    for index, value in enumerate(plain):
        name = value.rpartition("/")[2]
        if name == "xla_spawn.py":
            _xla_spawn(page, words, plain, index)
        elif value == "-m" and index + 1 < len(plain):
            module = plain[index + 1]
            if module == "torch_xla.distributed.xla_dist":
                page.found.append(Found(words[index + 1].span, "command.xla_dist"))
            elif module.split(".")[0] == "torch_xla":
                page.found.append(Found(words[index + 1].span, "command.torch_xla"))
        elif name == "xla_dist.py":
            page.found.append(Found(words[index].span, "command.xla_dist"))
        elif value == "-c" and index and _PYTHON.match(plain[index - 1]) and index + 1 < len(words):
            if "torch_xla" in words[index + 1].raw:
                page.found.append(Found(words[index + 1].span, "command.torch_xla"))
        elif name == "accelerate" and plain[index + 1 : index + 2] == ["launch"]:
            _accelerate(page, words, plain, index)
        elif name == "accelerate" and plain[index + 1 : index + 2] == ["tpu-config"]:
            page.found.append(Found(_around(words[index : index + 2]), "command.accelerate_launch"))
        elif value == "install" and index and (_PIP.match(plain[index - 1])):
            _pip_install(page, words[index + 1 :], plain[index + 1 :], words[index].span)
        if re.match(r"--tpu_num_cores\b|--tpu_metrics_debug\b", value) or "adamw_torch_xla" in value:
            page.found.append(Found(words[index].span, "command.trainer_argument"))


def _around(words: list[Word]) -> Span:
    return Span(words[0].span.start, words[-1].span.end)


def _containers(page: Page, words: list[Word], plain: list[str]) -> None:
    """``docker run -e X=V`` and its like: the option goes with its value."""
    if not {"docker", "podman", "nerdctl"} & {value.rpartition("/")[2] for value in plain}:
        return
    for index, word in enumerate(words[:-1]):
        found = re.fullmatch(r"(?:(-e|--env)|(?:-e|--env=)(['\"]?)([A-Za-z_]\w*)=.*)", word.raw)
        if found is None:
            continue
        separate = found[1] is not None
        setting = plain[index + 1] if separate else re.sub(r"^(?:--env=|-e)", "", plain[index])
        name, equals, value = setting.partition("=")
        if not page.knows(name):
            continue
        holder = words[index + 1] if separate else word
        start = holder.span.start + holder.raw.index(name)
        span = Span(start, start + len(name))
        following = index + 2 if separate else index + 1
        refusal = page.can_drop(name, value) if equals else "it is handed on from outside"
        if not refusal and following >= len(words):
            refusal = "nothing stands behind it"
        edits = () if refusal else (Edit(Span(word.span.start, words[following].span.start)),)
        page.found.append(Found(span, "env." + name, edits, refusal))


def _xla_spawn(page: Page, words: list[Word], plain: list[str], index: int) -> None:
    word = words[index]

    def leave(reason: str) -> None:
        page.found.append(Found(word.span, "command.xla_spawn", refusal=reason))

    first = index
    if index and _PYTHON.match(plain[index - 1]):
        first = index - 1
    elif index:
        return leave("another command than python runs it")
    edits: list[Edit] = []
    position, counted = index + 1, False
    while position < len(words) and plain[position].startswith("-"):
        option, equals, count = plain[position].partition("=")
        if option not in ("--num_cores", "--num-cores") or counted:
            return leave(f"its option {option} is not known")
        last = position if equals else position + 1
        if last >= len(words):
            return leave("its arguments end early")
        if not equals:
            count = words[last].raw
        if not re.fullmatch(r"\d+|\"?\$(?:\w+|\{\w+\}|\(\w+\))\"?", count):
            return leave("the number of cores is not plain")
        edits.append(Edit(_around(words[position : last + 1]), (f"--nproc-per-node={count}",)))
        position, counted = last + 1, True
    if position >= len(words) or not plain[position].endswith(".py"):
        return leave("the script it starts is not named here")
    launcher = "torchrun" if counted else "torchrun --nproc-per-node=1"
    span = Span(words[first].span.start, word.span.end)
    page.found.append(
        Found(
            Span(span.start, words[position - 1].span.end),
            "command.xla_spawn",
            (Edit(span, (launcher,)), *edits),
        )
    )


def _accelerate(page: Page, words: list[Word], plain: list[str], index: int) -> None:
    tpu = [
        value
        for value in plain[index + 2 :]
        if re.match(
            r"--(?:tpu|tpu_\w+|downcast_bf16|no_tpu_cluster)(?:=|$)",
            value.replace("-", "_").replace("__", "--", 1),
        )
    ]
    if not tpu:
        return
    page.found.append(Found(_around(words[index : index + 2]), "command.accelerate_launch"))
    for word, value in zip(words[index + 2 :], plain[index + 2 :], strict=True):
        if value.replace("-", "_").startswith("__downcast_bf16"):
            page.found.append(Found(word.span, "setting.downcast_bf16"))


def _pip_install(page: Page, words: list[Word], plain: list[str], install: Span) -> None:
    """Replace torch_xla among what pip installs, and drop what it needed besides."""
    ours = [
        index
        for index, value in enumerate(plain)
        if _TORCH_XLA.match(value)
        or ((found := _RELEASES.match(value)) and found[1] == "torch_xla")
        or re.match(r"torch[_-]xla\s*(?:\[\w+\]\s*)?@", value)
    ]
    optimum = [
        index for index, value in enumerate(plain) if re.match(r"optimum[_-]tpu|optimum\[.*tpu", value)
    ]
    if not ours and not optimum:
        return
    if optimum:
        for index in optimum:
            page.found.append(Found(words[index].span, "command.pip_install_optimum_tpu"))
        for index in ours:
            page.found.append(Found(words[index].span, "command.pip_install", refusal="optimum-tpu needs it"))
        return
    replaced: dict[int, str] = {}
    dropped: set[int] = set()
    refusal = ""
    index = 0
    while index < len(plain):
        value = plain[index]
        option, equals, inline = value.partition("=") if value.startswith("--") else (value, "", "")
        if option in (
            "-i",
            "--index-url",
            "--extra-index-url",
            "--no-index",
            "--no-deps",
            "-t",
            "--target",
            "-c",
            "--constraint",
        ):
            refusal = f"{option} decides what is found or allowed, or where it goes"
        elif option in ("-f", "--find-links"):
            place = inline if equals else (plain[index + 1] if index + 1 < len(plain) else "")
            if _FIND_LINKS.match(place):
                dropped |= {index} if equals else {index, index + 1}
            index += not equals
        elif option in ("-r", "--requirement"):
            index += 1
        elif index in ours:
            if "torch_tpu" in replaced.values():
                dropped.add(index)
            else:
                replaced[index] = "torch_tpu"
        elif found := _RELEASES.match(value):
            replaced[index] = found[1]
        elif _LIBTPU.match(value):
            dropped.add(index)
        elif found := _PIN.match(value):
            if found[3] and _too_old(found[3]):
                replaced[index] = found[1] + (found[2] or "")
            elif found[3] and "$" in found[3]:
                refusal = "torch is pinned by a variable"
        index += 1
    span = words[ours[0]].span
    if refusal:
        page.found.append(Found(span, "command.pip_install", refusal=refusal))
        return
    edits = [Edit(words[index].span, (text,)) for index, text in replaced.items() if words[index].raw != text]
    for index in sorted(dropped):
        before = words[index - 1].span.end if index else install.end
        edits.append(Edit(Span(before, words[index].span.end)))
    page.found.append(Found(span, "command.pip_install", tuple(edits)))


def _too_old(pin: str) -> bool:
    """Whether a pin of torch or a companion asks for a release from before torch 2.11."""
    found = re.match(r"(?:==|~=|<=?|===)\s*(\d+)\.(\d+)", pin)
    if found is None:
        return False
    major, minor = int(found[1]), int(found[2])
    return (major, minor) < (2, 11) if major else True
