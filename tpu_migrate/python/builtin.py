"""The codes that no rule file defines, for what the tool itself finds, and their texts."""

from __future__ import annotations

from dataclasses import dataclass

from tpu_migrate.findings import Safety


@dataclass(frozen=True)
class BuiltIn:
    """One such code."""

    code: str
    name: str
    why: str
    what: str
    """When it is found."""
    action: str
    silence: str
    """How to silence it."""
    example: str = ""

    @property
    def safety(self) -> Safety:
        return Safety.MANUAL


BUILT_IN = (
    BuiltIn(
        "PY001",
        "not-parsed",
        "A file that mentions torch_xla can't be read as Python 3, so the tool can't tell code from text "
        "in it. It stays as it is, and the rest of the run goes on.",
        "The file isn't Python 3 (a print statement, a syntax error), its bytes don't fit its encoding, or "
        "it holds null bytes. Files that can't be read and don't mention torch_xla aren't reported.",
        "Make the file Python 3 and run again. If it is no longer used, exclude it.",
        'Leave the file out: `exclude = ["old/train.py"]`.',
        "import torch_xla.core.xla_model as xm\n\nprint xm.xla_device()",
    ),
    BuiltIn(
        "PY002",
        "rewrite-failed",
        "The tool failed on this file, or what it made of it wouldn't parse. That is a bug in tpu-migrate. "
        "The file stays as it is, and the rest of the run goes on.",
        "An exception while the file was rewritten, two rewrites that overlap, or new text that isn't "
        "Python.",
        "Report it with the file and the message. Meanwhile, migrate the file by hand or exclude it.",
        'Leave the file out: `exclude = ["train.py"]`.',
    ),
    BuiltIn(
        "TX990",
        "import-kept",
        "A torch_xla import goes only when nothing needs it any more. Where one stays, this says why.",
        "After the rewrite something still uses what is imported: a manual finding, a name that other files "
        "import from here, or a guard (`try: import torch_xla`) that could not be replaced.",
        "Close the findings in the lines it names, then run again: the import goes with the last of them.",
        "Write `# tpu-migrate: ignore[TX990]` in the line of the import.",
        "import torch_xla.core.xla_model as xm\n\nxm.send(x, 1)",
    ),
    BuiltIn(
        "VN001",
        "other-vendor",
        "AWS Neuron, Tenstorrent and TorchAcc bring a torch_xla of their own, for their own chips. TorchTPU "
        "does not replace it, so the file is left alone.",
        "The file imports or names one of these, or a good part of the repository's torch_xla files do. "
        "There is one finding a file.",
        "Nothing, if the file is for that vendor's chips: follow the vendor's own guide. If one file serves "
        "both, put the TPU part into a file of its own and run again.",
        'Leave the files out: `exclude = ["neuron/"]`.',
        "import torch_neuronx\nimport torch_xla.core.xla_model as xm\n\ndevice = xm.xla_device()",
    ),
)
