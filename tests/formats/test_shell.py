"""Shell scripts and Makefiles."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.launching import becomes, migrate, told
from tpu_migrate.formats.shell_words import Unreadable, read_shell
from tpu_migrate.programs import Overview
from tpu_migrate.rules import load_rules

ENV = "EN110"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("export PJRT_DEVICE=TPU\n", ""),
        ("export PJRT_DEVICE='TPU'\necho\n", "echo\n"),
        ("  export PJRT_DEVICE=TPU # why\necho\n", "  # why\necho\n"),
        ("export A=1 PJRT_DEVICE=TPU\n", "export A=1\n"),
        ("export PJRT_DEVICE=TPU A=1\n", "export A=1\n"),
        ("PJRT_DEVICE=TPU python a.py 'x  y'\n", "python a.py 'x  y'\n"),
        ("A=1 PJRT_DEVICE=TPU \\\n  python a.py\n", "A=1 \\\n  python a.py\n"),
        ("PJRT_DEVICE=TPU XRT_WORKERS=a B=2 PT_XLA_DEBUG=1 python a.py\n", "B=2 python a.py\n"),
        ("cd a && export PJRT_DEVICE=TPU && python a.py\n", "cd a && python a.py\n"),
        ("cd a && export PJRT_DEVICE=TPU\n", "cd a\n"),
        ("export PJRT_DEVICE=TPU; python a.py\n", "python a.py\n"),
        ("python a.py; export PJRT_DEVICE=TPU\n", "python a.py\n"),
        ("if x; then\n  export PJRT_DEVICE=TPU\nfi\n", "if x; then\n  :\nfi\n"),
        ("if x; then\n  export PJRT_DEVICE=TPU\n  y\nfi\n", "if x; then\n  y\nfi\n"),
        ("if x; then export PJRT_DEVICE=TPU; else y; fi\n", "if x; then :; else y; fi\n"),
        ("f() { export PJRT_DEVICE=TPU; }\n", "f() { :; }\n"),
        ("f() {\n export PT_XLA_DEBUG=1\n export PJRT_DEVICE=TPU\n}\n", "f() {\n :\n}\n"),
        ("x || export PJRT_DEVICE=TPU\n", "x || :\n"),
        ("env PJRT_DEVICE=TPU python a.py\n", "env python a.py\n"),
        ("sudo PJRT_DEVICE=TPU python a.py\n", "sudo python a.py\n"),
        ("bash -c 'PJRT_DEVICE=TPU python a.py'\n", "bash -c 'python a.py'\n"),
        ("bash -c 'export PJRT_DEVICE=TPU'\n", "bash -c ':'\n"),
        ("ssh host 'export PJRT_DEVICE=TPU; python a.py'\n", "ssh host 'python a.py'\n"),
        ('echo "export PJRT_DEVICE=TPU" >> ~/.bashrc\nx\n', "x\n"),
        ("docker run -e PJRT_DEVICE=TPU -it i x\n", "docker run -it i x\n"),
        ("docker run --env=PJRT_DEVICE=TPU -it i x\n", "docker run -it i x\n"),
        ("export PJRT_DEVICE=TPU\r\nx\r\n", "x\r\n"),
        ("PJRT_DEVICE=TPU && > f\n", "> f\n"),
    ],
)
def test_variables_are_dropped(before, after):
    assert becomes("a.sh", before) == after


@pytest.mark.parametrize(
    "text",
    [
        "export PJRT_DEVICE=CPU\n",
        'export PJRT_DEVICE="$1"\n',
        'export PJRT_DEVICE=TPU\necho "$PJRT_DEVICE"\n',
        "export PJRT_DEVICE\n",
        ': "${PJRT_DEVICE:=TPU}"\n',
        "export XRT_TPU_CONFIG=$(find_it)\n",
        "ARGS=(PJRT_DEVICE=TPU a)\n",
        "cat <<EOF\nexport PJRT_DEVICE=TPU\nEOF\n",
        "sed -i 's/x/PJRT_DEVICE=TPU/' f\n",
        "echo 'not closed PJRT_DEVICE=TPU\n",
        "docker run -e PJRT_DEVICE i x\n",
        "PJRT_DEVICE=TPU > f\n",
        "export XLA_USE_BF16=1\n",
        "XLA_DOWNCAST_BF16=1 XLA_USE_F16=1 python a.py\n",
    ],
)
def test_other_uses_stay_with_a_finding(text):
    assert becomes("a.sh", text) == text
    found = migrate("a.sh", text).findings
    assert found
    assert all(one.outcome.value == "open" and one.message for one in found)


def test_the_text_of_an_environment_rule_is_said():
    found = migrate("a.sh", "export XLA_USE_BF16=1\n").findings
    assert [one.message for one in found] == [load_rules().get("EN101").action]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("python xla_spawn.py --num_cores 8 a.py --x\n", "torchrun --nproc-per-node=8 a.py --x\n"),
        ("python3 e/xla_spawn.py --num_cores=$N a.py\n", "torchrun --nproc-per-node=$N a.py\n"),
        ("python xla_spawn.py a.py\n", "torchrun --nproc-per-node=1 a.py\n"),
        (
            "python xla_spawn.py \\\n  --num_cores 8 \\\n  a.py\n",
            "torchrun \\\n  --nproc-per-node=8 \\\n  a.py\n",
        ),
        (
            "nohup python xla_spawn.py --num_cores 8 a.py > l 2>&1 &\n",
            "nohup torchrun --nproc-per-node=8 a.py > l 2>&1 &\n",
        ),
        ("pip install torch_xla\n", "pip install torch_tpu\n"),
        (
            "pip3 install -U 'torch-xla[tpu]==2.7' torch==2.7 numpy==1.26\n",
            "pip3 install -U torch_tpu torch numpy==1.26\n",
        ),
        ("uv pip install torch_xla libtpu-nightly==0.1\n", "uv pip install torch_tpu\n"),
        ("python -m pip install torch==2.12 torch_xla\n", "python -m pip install torch==2.12 torch_tpu\n"),
        (
            "pip install torch_xla -f https://example.com/x\n",
            "pip install torch_tpu -f https://example.com/x\n",
        ),
    ],
)
def test_commands_are_rewritten(before, after):
    assert becomes("a.sh", before) == after


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("python -u xla_spawn.py --num_cores 8 a.py\n", "LA101"),
        ("python xla_spawn.py --strange 8 a.py\n", "LA101"),
        ('python xla_spawn.py --num_cores 8 "$@"\n', "LA101"),
        ("python -m torch_xla.distributed.xla_dist --tpu=t -- python a.py\n", "LA102"),
        ("python -m torch_xla.distributed.xla_multiprocessing\n", "LA103"),
        ("accelerate launch --tpu a.py\n", "LA104"),
        ("accelerate tpu-config --install_xla\n", "LA104"),
        ("pip install torch_xla --index-url https://example.com\n", "LA105"),
        ("pip install torch==$V torch_xla\n", "LA105"),
        ("pip install optimum-tpu\n", "LA106"),
        ("python a.py --optim adamw_torch_xla\n", "LA107"),
        ("docker pull gcr.io/tpu-pytorch/xla:nightly\n", "LA110"),
        ("docker run huggingface/optimum-tpu:latest\n", "LA111"),
        ("gcloud compute tpus tpu-vm create a --version=tpu-vm-pt-1.13\n", "LA112"),
        ("git clone https://github.com/pytorch/xla\n", "LA190"),
        ("pip uninstall -y torch_xla\n", "LA190"),
    ],
)
def test_what_is_not_rewritten_is_told(text, code):
    assert becomes("a.sh", text) == text
    assert code in [one[0] for one in told("a.sh", text)]


def test_an_ordinary_accelerate_launch_is_nobodys_business():
    assert told("a.sh", "accelerate launch --num_processes 8 a.py\n") == []


def test_comments_are_told_once():
    text = "# torch_xla one\n# torch_xla two\nx\n"
    assert told("a.sh", text) == [("LA190", "open", "torch_xla")]


def test_a_suppression_keeps_the_line():
    text = "export PJRT_DEVICE=TPU  # tpu-migrate: ignore[EN110]\n"
    assert becomes("a.sh", text) == text
    assert [one[1] for one in told("a.sh", text)] == ["suppressed"]


def test_settings_are_respected():
    text = "export PJRT_DEVICE=TPU\n"
    assert becomes("a.sh", text, safe_only=True) == text
    assert migrate("a.sh", text, ignore=("EN",)).findings == []
    assert becomes("a.sh", text, ignore=("EN",)) == text
    assert migrate("a.sh", text, per_file_ignores={"*.sh": ("EN110",)}).new == text.encode()


def test_lines_are_those_of_the_new_file():
    found = migrate("a.sh", "export PJRT_DEVICE=TPU\nx\nexport XLA_USE_BF16=1\n").findings
    assert [(one.code, one.line, one.column) for one in found if one.code == "EN101"] == [("EN101", 2, 8)]


def test_files_of_other_makers_are_left_alone():
    text = "export XLA_USE_BF16=1\nneuron_parallel_compile python a.py\n"
    assert [one[0] for one in told("a.sh", text)] == ["VN001"]
    beside = migrate("r/a.sh", "pip install torch_xla\n", Overview(vendors={"r/a.py": "AWS Neuron"}))
    assert [one.code for one in beside.findings] == ["VN001"]
    assert not beside.changed


def test_bytes_that_are_no_text_are_told():
    result = migrate("a.sh", b"export PJRT_DEVICE=TPU \xff\n")
    assert [one.code for one in result.findings] == ["PY001"]
    assert not result.changed
    assert migrate("a.sh", b"xla \xff\n").findings == []


def test_a_scripts_own_name_for_its_tpu_is_left():
    assert told("a.sh", "TPU_NAME=a\ngcloud compute tpus tpu-vm ssh $TPU_NAME # torch_xla\n") == [
        ("LA190", "open", "torch_xla")
    ]


def test_makefiles():
    text = (
        "export PJRT_DEVICE := TPU\nA := 1\n\nrun:\n\t@PJRT_DEVICE=TPU python a.py\n\texport PT_XLA_DEBUG=1\n"
    )
    assert becomes("Makefile", text) == "A := 1\n\nrun:\n\t@python a.py\n\t:\n"
    kept = "PJRT_DEVICE ?= TPU\nifeq ($(PJRT_DEVICE),TPU)\nendif\n"
    assert becomes("x/Makefile", kept) == kept
    assert told("x/Makefile", kept)


WORDS = st.sampled_from(
    [
        *("export", "PJRT_DEVICE=TPU", "XLA_USE_BF16=1", "PT_XLA_DEBUG=1", "A=1", "python", "xla_spawn.py"),
        *("--num_cores", "8", "a.py", "pip", "install", "torch_xla[tpu]", "-f", "'a b'", '"$x y"', "$(date)"),
        *("&&", "||", ";", "|", "\n", "\n\n", "\\\n", "# c torch_xla\n", "echo", "\nif x; then\n", "\nfi\n"),
        *("{", "}", "\ncat <<E\nit's\nE\n", "'", '"', "bash -c", "docker run -e", "\r\n", "> f", "\t"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=14))
def test_any_script_can_be_read_and_a_second_run_changes_nothing(words):
    text = " ".join(words)
    result = migrate("a.sh", text)
    assert "PY002" not in [finding.code for finding in result.findings]
    assert migrate("a.sh", result.new).new == result.new
    assert result.new.count(b"XLA_USE_BF16") == text.count("XLA_USE_BF16")


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=12))
def test_what_bash_could_read_it_still_can(words):
    text = " ".join(words).replace("\r\n", "\n")
    new = migrate("a.sh", text).new.decode()
    if new != text and _reads(text):
        assert _reads(new), new


def _reads(text):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    done = subprocess.run([bash, "-n"], input=text.encode(), capture_output=True, check=False)
    return done.returncode == 0 and b"warning" not in done.stderr


@settings(max_examples=150, deadline=None)
@given(st.text(), st.sampled_from(["a.sh", "Makefile", "Dockerfile", "a.yaml", "README.md"]))
def test_files_without_the_vocabulary_come_back_as_they_are(text, path):
    data = re.sub(r"(?i)xla|xrt_|pjrt_|tpu", "", text).encode("utf-8", "surrogatepass")
    result = migrate(path, data)
    assert result.new == data
    assert result.findings == []


def test_words_and_commands():
    text = "a 'b c' \"d $e\" \\\n f # g\nh && i; j"
    shell = read_shell(text, 0, len(text))
    assert [[word.value for word in command.words] for command in shell.commands] == [
        ["a", "b c", "d $e", "f"],
        ["h"],
        ["i"],
        ["j"],
    ]
    assert [text[span.start : span.end] for span in shell.comments] == ["# g"]


@pytest.mark.parametrize("text", ["'", '"', "$(", "${a", "`", "cat <<E\nx\n", "a >"])
def test_what_does_not_close_is_not_read(text):
    with pytest.raises(Unreadable):
        read_shell(text, 0, len(text))
