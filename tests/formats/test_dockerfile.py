"""Dockerfiles."""

import pytest

from tests.formats.launching import becomes, migrate, told
from tpu_migrate.formats.dockerfile import is_dockerfile


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ENV PJRT_DEVICE=TPU\nUSER a\n", "USER a\n"),
        ("ENV PJRT_DEVICE TPU\nUSER a\n", "USER a\n"),
        ('env A=1 PJRT_DEVICE="TPU" B=2\n', "env A=1 B=2\n"),
        ("ENV A=1 \\\n    PJRT_DEVICE=TPU\nUSER a\n", "ENV A=1\nUSER a\n"),
        ("ENV PJRT_DEVICE=TPU \\\n    PT_XLA_DEBUG=1\nUSER a\n", "USER a\n"),
        ("ENV A=1 PJRT_DEVICE=TPU PT_XLA_DEBUG=1\n", "ENV A=1\n"),
        ("RUN pip install torch_xla\r\nUSER a\r\n", "RUN pip install torch_tpu\r\nUSER a\r\n"),
        (
            "RUN --mount=type=cache,target=/c pip install torch_xla\n",
            "RUN --mount=type=cache,target=/c pip install torch_tpu\n",
        ),
        (
            "RUN a && \\\n    # why\n    pip install torch_xla && \\\n    b\n",
            "RUN a && \\\n    # why\n    pip install torch_tpu && \\\n    b\n",
        ),
        ('RUN echo "export PJRT_DEVICE=TPU" >> ~/.bashrc\nUSER a\n', "USER a\n"),
        ("RUN a && export PJRT_DEVICE=TPU && b\n", "RUN a && b\n"),
        ("CMD python xla_spawn.py --num_cores 8 a.py\n", "CMD torchrun --nproc-per-node=8 a.py\n"),
    ],
)
def test_rewritten(before, after):
    assert becomes("Dockerfile", before) == after


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("FROM gcr.io/tpu-pytorch/xla:r2.0_3.8_tpuvm AS base\n", "LA110"),
        ("FROM us-central1-docker.pkg.dev/tpu-pytorch-releases/docker/xla:nightly\n", "LA110"),
        (
            "FROM us-docker.pkg.dev/deeplearning-platform-release/gcr.io/huggingface-text-generation-inference-tpu.0\n",
            "LA111",
        ),
        ("ENV XLA_USE_BF16=1\n", "EN101"),
        ("ENV XLA_USE_BF16 1\n", "EN101"),
        ("ARG PJRT_DEVICE=TPU\n", "EN110"),
        ("ENV PJRT_DEVICE=$WHICH\n", "EN110"),
        ("ENV A=1 \\\n# why\n PJRT_DEVICE=TPU\n", "EN110"),
        ('CMD ["python", "xla_spawn.py", "a.py"]\n', "LA190"),
        ("RUN <<EOF\nimport torch_xla\nEOF\n", "LA190"),
        ("# escape=`\nENV PJRT_DEVICE=TPU\n", "EN110"),
        ("RUN git clone https://github.com/huggingface/optimum-tpu\n", "LA190"),
    ],
)
def test_left_and_told(text, code):
    assert becomes("Dockerfile", text) == text
    assert code in [one[0] for one in told("Dockerfile", text)]


@pytest.mark.parametrize(
    "path",
    ["Dockerfile", "a/Dockerfile", "Dockerfile.tpu", "Containerfile", "a/x.dockerfile", "Dockerfile-xla"],
)
def test_names(path):
    assert is_dockerfile(path)
    assert migrate(path, "ENV PJRT_DEVICE=TPU\n").new == b""


def test_other_names():
    assert not is_dockerfile("notes/my-dev.tpu")
    assert not is_dockerfile("dockerfiles/readme.txt")
