"""The families of codes, in the order they are shown."""

from __future__ import annotations

FAMILIES = {
    "TX1": "devices",
    "TX2": "graph sync, step, compile",
    "TX3": "processes and collectives",
    "TX4": "loading and saving",
    "TX5": "SPMD and FSDP",
    "TX6": "precision, AMP, random numbers",
    "TX7": "debugging and profiling",
    "TX8": "kernels and experimental",
    "TX9": "internals",
    "EN": "environment variables",
    "PK": "requirements and packaging",
    "LA": "launching: shell, Docker, YAML, documents",
    "NB": "notebooks",
    "OT": "Optimum TPU",
    "HF": "transformers, accelerate, diffusers, peft",
    "PL": "Lightning, Ignite, Composer, fastai",
    "VN": "other vendors' torch_xla",
    "PY": "files that can't be read",
}


def family_of(code: str) -> str:
    """The family a code belongs to; codes of unknown families (a user's own) are their two letters."""
    return code[:3] if code[:3] in FAMILIES else code[:2]
