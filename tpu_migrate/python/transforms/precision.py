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
