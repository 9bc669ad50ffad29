"""Autocast and matrix-multiplication precision."""

from __future__ import annotations

import libcst as cst

from tpu_migrate.findings import Part, Safety
from tpu_migrate.python.pattern import literal_value
from tpu_migrate.python.site import Refused, Rewrite, Site, shorten

_NAMES = {"default": "medium", "high": "high", "highest": "highest"}
"""XLA's name of a precision -> torch's."""


def autocast(site: Site) -> Rewrite:
    """Use torch.autocast with the device's type; without a dtype, in bfloat16 as torch_xla did.

    autocast(xm.xla_device(), dtype=torch.float16)
        ->  torch.autocast("tpu", dtype=torch.float16)       (torch_xla turned float16 off: a note says so)
    """
    parts: tuple[Part, ...] = (site.spell("torch.autocast"), "(", *site.template("@type"))
    for name in ("enabled", "dtype", "cache_enabled"):
        node = site.capture(name).node
        if node is not None:
            parts += (f", {name}=", site.tree.outer_span(node))
        elif name == "dtype":
            parts += (f", dtype={site.spell('torch.bfloat16')}",)
    dtype = site.capture("dtype").node
    if (
        dtype is not None
        and site.text(dtype).endswith(("float16", "half"))
        and not site.text(dtype).endswith("bfloat16")
    ):
        note = (
            "torch_xla switched autocast off for float16 on a TPU; now it computes in float16. Use bfloat16."
        )
        return Rewrite(site.replace((*parts, ")")).edits, note, Safety.REVIEW)
    return site.replace((*parts, ")"))


def matmul_precision(site: Site) -> Rewrite:
    """Set the precision under torch's name for it.

    set_mat_mul_precision("default")  ->  torch.set_float32_matmul_precision("medium")
    """
    node = site.capture("precision").node
    assert node is not None
    name = literal_value(node)
    if not isinstance(name, str) or name not in _NAMES:
        raise Refused(
            f"`{shorten(site.text(node))}` is no literal; torch's names are medium, high and highest"
        )
    quote = site.quote
    if isinstance(node, cst.SimpleString):
        quote = node.quote
    parts = (site.spell("torch.set_float32_matmul_precision"), f"({quote}{_NAMES[name]}{quote})")
    return site.replace(parts)


def seed(site: Site) -> Rewrite:
    """Seed the device's generator, unless the line before does that already; or give it a state back.

    xm.set_rng_state(args.seed)  ->  torch.tpu.manual_seed(args.seed)
    xm.set_rng_state(saved)      ->  torch.tpu.set_rng_state(saved)      (saved by get_rng_state)
    """
    value = site.capture("seed").node
    assert value is not None
    agnostic = site.context.settings.device == "accelerator"
    text = site.text(value)
    if not _is_seed(value, text):
        references = site.context.names.references
        if agnostic or not any(r.qualified_name.endswith(".get_rng_state") for r in references):
            raise Refused(f"`{shorten(text)}` may be a seed, or a state that get_rng_state gave")
        return site.replace(site.template("torch.tpu.set_rng_state($seed)"))
    before = _statement_before(site) if site.is_whole_statement else None
    if before is not None and site.text(before).strip() == f"torch.manual_seed({text})":
        return site.delete_statement()
    if agnostic:
        note = "torch.manual_seed seeds the CPU's generator too, which this call left alone."
        return Rewrite(site.replace(site.template("torch.manual_seed($seed)")).edits, note)
    return site.replace(site.template("torch.tpu.manual_seed($seed)"))


def _is_seed(node: cst.BaseExpression, text: str) -> bool:
    """Whether an expression is a seed by its looks: a number, arithmetic, or named so."""
    return isinstance(node, (cst.Integer, cst.BinaryOperation)) or "seed" in text.lower()


def get_rng_state(site: Site) -> Rewrite:
    """Read the state of the device's generator.

    state = xm.get_rng_state()  ->  state = torch.tpu.default_generators[0].get_state()
    """
    if site.context.settings.device == "accelerator":
        raise Refused("torch has no device-agnostic call for it before 2.14; use torch.random.fork_rng")
    return site.replace(site.template("torch.tpu.default_generators[0].get_state()"))


def _statement_before(site: Site) -> cst.CSTNode | None:
    line = site.statement_line
    block = site.tree.parent(line)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    before = None
    for statement in block.body:
        if statement is line:
            return before
        before = statement
    return None
