"""Markdown and reStructuredText: findings, and never a change."""

import pytest

from tests.formats.launching import migrate, told


def test_each_line_that_mentions_it_is_told():
    text = (
        "Use torch_xla.\n\n```sh\n# torch_xla\nPJRT_DEVICE=TPU python xla_spawn.py a.py\n```\nXLA is fine.\n"
    )
    result = migrate("README.md", text)
    assert result.new == text.encode()
    assert [(one.code, one.line) for one in result.findings] == [("LA180", 1), ("LA180", 4), ("LA180", 5)]


@pytest.mark.parametrize("path", ["a.md", "a.rst"])
def test_images_are_named_as_such(path):
    assert told(path, "docker pull gcr.io/tpu-pytorch/xla:nightly\n") == [
        ("LA110", "open", "gcr.io/tpu-pytorch/xla:nightly")
    ]
