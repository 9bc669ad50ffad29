"""Which packages an interpreter has: a file of its own, which any Python from 3.8 on can run.

It reads package metadata and imports none of the packages. Run as a script it prints JSON.
"""

from __future__ import annotations

import sys

PACKAGES = (
    "torch",
    "torch_xla",
    "torch_tpu",
    "jax",
    "jaxlib",
    "libtpu",
    "transformers",
    "accelerate",
    "optimum-tpu",
)


def probe():
    # type: () -> dict[str, object]
    """Python's version and, by name, each installed package's version, requirements and origin."""
    import platform
    from importlib import metadata

    packages = {}
    for name in PACKAGES:
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        about = [found.metadata[key] or "" for key in ("Home-page", "Author", "Author-email", "Summary")]
        about += found.metadata.get_all("Project-URL") or []
        packages[name] = {
            "version": found.version or "",
            "requires": list(found.requires or []),
            "requires_python": found.metadata["Requires-Python"] or "",
            "about": " ".join(about),
        }
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "packages": packages,
    }


if __name__ == "__main__":
    import json

    # The directory of this file is no place where the user's packages are.
    sys.path.pop(0)
    print(json.dumps(probe()))
