"""YAML that starts programs."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.launching import becomes, migrate, told
from tests.formats.test_launching_fixture import BEFORE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("env:\n  PJRT_DEVICE: TPU\n  A: 1\n", "env:\n  A: 1\n"),
        ("a: 1\nenv:\n  PJRT_DEVICE: 'TPU'  # c\nb: 2\n", "a: 1\nb: 2\n"),
        ("s:\n  environment:\n    - PJRT_DEVICE=TPU\n    - A=1\n", "s:\n  environment:\n    - A=1\n"),
        ("s:\n  environment:\n  - PJRT_DEVICE=TPU\n  x: 1\n", "s:\n  x: 1\n"),
        ("env:\n- name: PJRT_DEVICE\n  value: TPU\n- name: A\n  value: b\n", "env:\n- name: A\n  value: b\n"),
        ("env:\n- {name: PJRT_DEVICE, value: TPU}\n- name: A\n  value: b\n", "env:\n- name: A\n  value: b\n"),
        ("a: 1\r\nenv:\r\n  PJRT_DEVICE: TPU\r\n", "a: 1\r\n"),
        ("run: |\n  export PJRT_DEVICE=TPU\n  x\n", "run: |\n  x\n"),
        ("run: |\n  export PJRT_DEVICE=TPU\n\n  x\n", "run: |\n\n  x\n"),
        ("run: |\n  export PJRT_DEVICE=TPU\nb: 1\n", "run: |\n  :\nb: 1\n"),
        ("run: PJRT_DEVICE=TPU python a.py # c\n", "run: python a.py # c\n"),
        ('run: "PJRT_DEVICE=TPU python a.py"\n', 'run: "python a.py"\n'),
        (
            "run: >-\n  PJRT_DEVICE=TPU python xla_spawn.py\n  --num_cores 8 a.py\n",
            "run: >-\n  torchrun\n  --nproc-per-node=8 a.py\n",
        ),
        ("script:\n  - pip install torch_xla\n  - x\n", "script:\n  - pip install torch_tpu\n  - x\n"),
        ("args:\n- |\n  PJRT_DEVICE=TPU python a.py\n", "args:\n- |\n  python a.py\n"),
    ],
)
def test_rewritten(before, after):
    new = becomes("a.yaml", before)
    assert new == after
    yaml.safe_load(new)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("env:\n  PJRT_DEVICE: CPU\n", "EN110"),
        ("env:\n  PJRT_DEVICE: TPU\n", "EN110"),  # nothing would be left of the file
        ("env: {PJRT_DEVICE: TPU, A: 1}\n", "EN110"),
        ("x:\n  PJRT_DEVICE: TPU\n  a: 1\n", "EN110"),
        ("env: &e\n  PJRT_DEVICE: TPU\n  a: 1\n", "EN110"),
        ("env:\n  PJRT_DEVICE: ${{ inputs.device }}\n  a: 1\n", "EN110"),
        ("env:\n  PJRT_DEVICE: TPU\n  a: 1\nrun: echo $PJRT_DEVICE\n", "EN110"),
        ("env:\n- name: PJRT_DEVICE\n  valueFrom: x\n", "EN110"),
        ("- env:\n    PJRT_DEVICE: TPU\n  a: 1\n", "EN110"),
        ("env:\n  XLA_USE_BF16: 1\n", "EN101"),
        ("run: export PJRT_DEVICE=TPU\n", "EN110"),
        ("command: [python, -m, torch_xla.distributed.xla_dist]\n", "LA190"),
        ("image: gcr.io/tpu-pytorch/xla:nightly\n", "LA110"),
        ("image: ghcr.io/huggingface/optimum-tpu:v0.2\n", "LA111"),
        ("distributed_type: TPU\n", "LA120"),
        ("distributed_type: 'XLA'\n", "LA120"),
        ("distributed_type: XLA\ndowncast_bf16: 'yes'\n", "LA121"),
        ("fsdp_config:\n  xla: true\n", "LA122"),
        ("run: |\n  export PJRT_DEVICE=TPU\n    x\n", "EN110"),  # the block would begin deeper
        ("env:\n  - PJRT_DEVICE=TPU\n      more\n  - a\n", "EN110"),
        ("data:\n  a: |\n    export PJRT_DEVICE=TPU\n", "EN110"),
    ],
)
def test_left_and_told(text, code):
    assert becomes("a.yml", text) == text
    assert code in [one[0] for one in told("a.yml", text)]


def test_an_accelerate_configuration_for_gpus_is_left_in_peace():
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\ndowncast_bf16: 'no'\ntpu_env: []\ntpu_use_sudo: false\n"
    assert told("a.yaml", text) == []


@pytest.mark.parametrize("path", [path for path in BEFORE if path.endswith((".yml", ".yaml"))])
def test_the_fixtures_are_yaml_afterwards(path):
    before, after = yaml.safe_load(BEFORE[path]), yaml.safe_load(migrate(path, BEFORE[path]).new)
    assert type(before) is type(after)
    assert set(after) <= set(before)


LINES = st.sampled_from(
    [
        *(
            "env:",
            "environment:",
            "PJRT_DEVICE: TPU",
            "- PJRT_DEVICE=TPU",
            "- name: PJRT_DEVICE",
            "value: TPU",
        ),
        *("A: 1", "- B=2", "run: |", "run: PJRT_DEVICE=TPU x", "export PJRT_DEVICE=TPU", "XLA_USE_BF16: 1"),
        *("", "# c", "- run: pip install torch_xla", "script:", "- x", "run: >-", "python xla_spawn.py a.py"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), LINES), max_size=9))
def test_what_was_yaml_stays_yaml(lines):
    text = "".join(f"{'  ' * depth}{line}\n" for depth, line in lines)
    result = migrate("a.yaml", text)
    assert result.new.count(b"XLA_USE_BF16") == text.count("XLA_USE_BF16")
    try:
        yaml.safe_load(text)
    except yaml.YAMLError:
        return
    assert migrate("a.yaml", result.new).new == result.new
    yaml.safe_load(result.new)
