"""requirements.txt, constraints.txt and .in files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.packaging import assert_rewritten, assert_unchanged, codes, migrate
from tpu_migrate.config import Settings
from tpu_migrate.formats.packages import parse_requirement, read_versions
from tpu_migrate.formats.requirements import REQUIREMENTS, accepts

TXT = "requirements.txt"


@pytest.mark.parametrize(
    "path",
    "requirements.txt requirements-tpu.txt requirements_dev.txt dev-requirements.txt requirements.in a/constraints.txt "
    "requirements/tpu.txt requirements/tpu.in dev.in reqs.txt".split(),
)
def test_what_is_a_requirements_file(path):
    assert path.endswith(REQUIREMENTS.endings)
    assert accepts(path)


@pytest.mark.parametrize("path", "notes.txt MANIFEST.in CMakeLists.txt config.h.in data/train.txt".split())
def test_what_is_none(path):
    assert not accepts(path)


def test_comments_order_and_options_stay():
    assert_rewritten(
        TXT,
        """
        # for TPU VMs
        --extra-index-url https://download.pytorch.org/whl/cpu
        -f https://storage.googleapis.com/libtpu-releases/index.html  # libtpu
        -r base.txt
        -c constraints-torch_xla.txt

        torch==2.6.0  # keep in step
        torch_xla[tpu]==2.6.0
        numpy<2   # torch_xla needs it
        """,
        """
        # for TPU VMs
        --extra-index-url https://download.pytorch.org/whl/cpu
        -r base.txt
        -c constraints-torch_xla.txt

        torch>=2.11,<=2.15  # keep in step
        torch_tpu>=0.2.0
        numpy<2   # torch_xla needs it
        """,
    )


@pytest.mark.parametrize("options", ["-f", "-f ", "--find-links ", "--find-links="])
def test_find_links(options):
    result = assert_rewritten(
        TXT, f"{options}https://storage.googleapis.com/libtpu-wheels/index.html\na\n", "a\n"
    )
    assert codes(result) == ["PK107 rewritten"]


def test_find_links_of_others_stay():
    assert_unchanged(TXT, "-f https://download.pytorch.org/whl/torch_stable.html\n")
    assert_unchanged(TXT, "-f https://storage.googleapis.com/jax-releases/libtpu_releases.html\njax[tpu]\n")


def test_find_links_that_jax_may_need_are_named_beside_torch_xla():
    result = migrate(
        TXT, "-f https://storage.googleapis.com/jax-releases/libtpu_releases.html\njax[tpu]\ntorch_xla\n"
    )
    assert codes(result) == ["PK114 open", "PK101 rewritten"]


@pytest.mark.parametrize("spelt", ["torch_xla", "torch-xla", "Torch.XLA", "torch_xla [tpu, pallas] ~= 2.5.0"])
def test_spellings(spelt):
    assert_rewritten(TXT, f"  {spelt}\n", "  torch_tpu>=0.2.0\n")


@pytest.mark.parametrize(
    "address",
    [
        "https://storage.googleapis.com/pytorch-xla-releases/wheels/tpuvm/torch_xla-2.6.0-cp310-cp310-manylinux_2_28_x86_64.whl",
        "torch_xla @ https://storage.googleapis.com/pytorch-xla-releases/wheels/tpuvm/torch_xla-2.6.0%2Bcxx11-cp310-cp310-linux_x86_64.whl",
        "torch_xla[tpu]@https://example.org/torch_xla-nightly-cp310-cp310-linux_x86_64.whl",
        "git+https://github.com/pytorch/xla.git@v2.6.0",
        "-e git+https://github.com/pytorch/xla.git#egg=torch_xla",
        "torch_xla @ git+https://github.com/pytorch/xla",
    ],
)
def test_addresses(address):
    assert_rewritten(TXT, f"a\n{address}\nb\n", "a\ntorch_tpu>=0.2.0\nb\n".replace("torch", "torch"))


def test_the_address_of_a_torch_wheel_is_a_pin():
    assert_rewritten(
        TXT,
        "https://storage.googleapis.com/tpu-pytorch/wheels/torch-1.13-cp38-cp38m-linux_x86_64.whl\n"
        "https://storage.googleapis.com/tpu-pytorch/wheels/torch_xla-1.13-cp38-cp38m-linux_x86_64.whl ; python_version >= '3.8'\n",
        "torch>=2.11,<=2.15\ntorch_tpu>=0.2.0 ; python_version >= '3.8'\n",
    )


def test_optimum_tpu_from_its_repository():
    assert_rewritten(
        TXT,
        "git+https://github.com/huggingface/optimum-tpu.git@main\r\ndatasets\r\n",
        b"torch_tpu>=0.2.0\r\ntransformers>=5.24\r\ndatasets\r\n",
    )


def test_without_a_newline_at_the_end():
    assert_rewritten(TXT, b"a\noptimum-tpu", b"a\ntorch_tpu>=0.2.0\ntransformers>=5.24")
    assert_rewritten(TXT, b"torch_xla\r\nlibtpu-nightly", b"torch_tpu>=0.2.0\r\n")


def test_byte_order_mark_and_crlf_stay():
    result = migrate(TXT, b"\xef\xbb\xbftorch_xla\r\nnumpy\r\n")
    assert result.new == b"\xef\xbb\xbftorch_tpu>=0.2.0\r\nnumpy\r\n"


def test_utf16_is_said():
    result = migrate(TXT, "torch_xla==2.5\n".encode("utf-16"))
    assert codes(result) == ["PY001 open"]
    assert "UTF-16" in result.findings[0].message
    assert not result.changed


def test_hashes_make_it_a_file_to_make_again():
    text = """
    torch-xla==2.6.0 \\
        --hash=sha256:0000 \\
        --hash=sha256:1111
    libtpu-nightly==0.1.dev1 \\
        --hash=sha256:2222
    """
    result = assert_unchanged(TXT, text, "PK101", "PK113")
    assert "make it again" in result.findings[0].message


def test_compiled_files_are_made_again():
    text = """
    # This file was autogenerated by uv via the following command:
    #    uv pip compile requirements.in
    libtpu==0.0.7
        # via torch-xla
    torch==2.6.0
        # via torch-xla
    torch-xla==2.6.0
        # via -r requirements.in
    """
    assert_unchanged(TXT, text, "PK106", "PK103", "PK101")


def test_continuation_lines():
    assert_rewritten(
        TXT,
        "torch_xla[tpu] \\\n    ==2.6.0 \\\n    ; sys_platform == 'linux'\nlibtpu-nightly \\\n  ==0.1.dev1\nb\n",
        "torch_tpu>=0.2.0 \\\n    ; sys_platform == 'linux'\nb\n",
    )


def test_a_backslash_in_a_comment_joins_nothing():
    assert_rewritten(TXT, "# a \\\ntorch_xla\nb # c \\\ntorch_xla\n", "# a \\\ntorch_tpu>=0.2.0\nb # c \\\n")


def test_markers_for_old_pythons():
    result = migrate(
        TXT, "torch_xla==2.5 ; python_version < '3.11'\ntorch_xla==2.6 ; python_version >= '3.11'\n"
    )
    assert codes(result) == ["PK101 open", "PK101 rewritten"]
    assert (
        result.new
        == b"torch_xla==2.5 ; python_version < '3.11'\ntorch_tpu>=0.2.0 ; python_version >= '3.11'\n"
    )


def test_one_package_with_two_markers_becomes_two():
    assert_rewritten(
        TXT,
        "torch_xla==2.5 ; platform_machine == 'x86_64'\ntorch_xla==2.6 ; platform_machine == 'aarch64'\n",
        "torch_tpu>=0.2.0 ; platform_machine == 'x86_64'\ntorch_tpu>=0.2.0 ; platform_machine == 'aarch64'\n",
    )


def test_torch_tpu_is_not_asked_for_twice():
    assert_rewritten(
        TXT, "torch-tpu==0.2.0\ntorch_xla\noptimum-tpu\n", "torch-tpu==0.2.0\ntransformers>=5.24\n"
    )


@pytest.mark.parametrize(
    "spec", ["", ">=2.0", ">=2.11", "==2.13.0", "==2.12.*", "~=2.10", ">2.14,<2.15", "!=2.12.0"]
)
def test_torch_that_fits(spec):
    assert_unchanged(TXT, f"torch{spec}\ntorch_tpu\n")


@pytest.mark.parametrize("spec", ["==2.6.0", "==2.6.0+cpu", "~=2.6.0", "===2.6.0", "==1.13.*", "==2.16.0"])
def test_torch_pins_that_do_not_fit(spec):
    assert_rewritten(TXT, f"torch{spec}\ntorch_tpu\n", "torch>=2.11,<=2.15\ntorch_tpu\n")


@pytest.mark.parametrize("spec", ["<2.6", ">=2.0,<=2.10", ">2.15"])
def test_torch_ranges_that_do_not_fit(spec):
    assert_unchanged(TXT, f"torch{spec}\ntorch_tpu\n", "PK103")


def test_torch_pins_of_files_without_tpu_packages_are_nobodys_business():
    assert_unchanged(TXT, "torch==2.5.0\ntransformers==4.40\ntorchvision==0.20\n")


def test_versions_from_elsewhere_are_left():
    assert_unchanged(TXT, "torch_xla==${XLA_VERSION}\n", "PK101")


def test_other_vendors_are_left_alone():
    result = assert_unchanged(TXT, "torch-xla==2.9.0\ntorch-neuronx==2.9\nlibneuronxla\n", "VN001")
    assert "AWS Neuron" in result.findings[0].message
    assert_unchanged(
        TXT,
        "torch-xla@https://pypi.eng.aws.tenstorrent.com/torch-xla/torch_xla-2.9.0-cp312-cp312-linux_x86_64.whl\n",
        "VN001",
    )


def test_code_for_another_vendor_beside_it():
    result = migrate("a/requirements.txt", "torch_xla\n", vendors={"a/b/train.py": "AWS Neuron"})
    assert codes(result) == ["PK101 open"]
    assert "AWS Neuron" in result.findings[0].message
    assert codes(migrate("a/requirements.txt", "torch_xla\n", vendors={"b/train.py": "AWS Neuron"})) == [
        "PK101 rewritten"
    ]


def test_suppression_and_settings():
    result = migrate(TXT, "torch_xla  # tpu-migrate: ignore[PK101]\n")
    assert codes(result) == ["PK101 suppressed"]
    assert not result.changed
    assert codes(migrate(TXT, "torch_xla\n", Settings(ignore=("PK",)))) == []
    assert codes(migrate(TXT, "torch_xla\nlibtpu-nightly\n", Settings(safe_only=True))) == [
        "PK101 open",
        "PK113 rewritten",
    ]
    assert codes(migrate(TXT, "torch_xla\n", Settings(per_file_ignores={"*.txt": ("PK101",)}))) == []


def test_lines_are_those_of_the_file_that_is_shown():
    text = (
        "-f https://storage.googleapis.com/libtpu-releases/index.html\ntransformers==4.40\ntorch_xla==2.5\n"
    )
    new = migrate(TXT, text)
    old = migrate(TXT, text, applied=False)
    assert [(f.code, f.line, f.column, f.end_line) for f in new.findings] == [
        ("PK107", 1, 1, 1),
        ("PK109", 1, 1, 1),
        ("PK101", 2, 1, 2),
    ]
    assert [(f.code, f.line) for f in old.findings] == [("PK107", 1), ("PK109", 2), ("PK101", 3)]
    assert [f.after for f in old.findings] == ["", "", "torch_tpu>=0.2.0"]
    assert old.findings[2].edits[0].text == "torch_tpu>=0.2.0"
    assert (old.references, old.rewritten) == (3, 2)


def test_lines_that_are_no_requirements():
    assert_unchanged(TXT, "./torch_xla-2.5\n<<<<<<< torch_xla\n", "PK190", "PK190")


@pytest.mark.parametrize(
    ("text", "name", "body"),
    [
        ("a", "a", "a"),
        ("A.b-c[x,y] >=1 , <2 ; python_version < '3'", "a_b_c", "A.b-c[x,y] >=1 , <2"),
        ("a (>=1)", "a", "a (>=1)"),
        ("a @ https://x/y.whl ; extra == 'b'", "a", "a @ https://x/y.whl"),
        ("https://x/a_b-1.0-py3-none-any.whl", "a_b", "https://x/a_b-1.0-py3-none-any.whl"),
    ],
)
def test_parse_requirement(text, name, body):
    parsed = parse_requirement(text)
    assert parsed is not None
    assert parsed.name == name
    assert text[parsed.body.start : parsed.body.end] == body


def test_read_versions():
    assert read_versions("*") == (None, False)
    assert read_versions("banana") == (None, False)
    assert read_versions("==1")[1]
    assert not read_versions("==1,!=2")[1]


LINES = st.sampled_from(
    [
        "", "  ", "# note", "numpy", "numpy==1.26 # why", "torch>=2.0", "-r base.txt", "--no-binary :all:",
        "a[b,c]~=1.0; python_version<'3'", "x @ https://e.org/x-1-py3-none-any.whl", "w \\", "    --hash=sha256:0 \\", "é=1",
        "./local", "-e .", "torch==2.5", "jax[tpu]", "\\", "#\\", "a # \\",
    ]
)  # fmt: skip
OURS = st.sampled_from(
    [
        "torch_xla", "torch-xla[tpu]==2.5 \\", "optimum-tpu  # c", "libtpu-nightly", "libtpu==0.0.3", "torch_tpu",
        "-f https://storage.googleapis.com/libtpu-releases/index.html", "torch_xla ; python_version<'3.9'",
        "transformers==4.1", "transformers", "torch_xla --hash=sha256:0", "-e git+https://github.com/pytorch/xla#egg=torch_xla",
    ]
)  # fmt: skip
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.lists(st.tuples(LINES, ENDINGS)))
def test_other_files_come_out_as_they_went_in(lines):
    data = "".join(line + ending for line, ending in lines).encode()
    result = migrate(TXT, data)
    assert result.new == data
    assert result.findings == []


@given(st.lists(st.tuples(LINES | OURS, ENDINGS), max_size=8))
def test_a_second_run_changes_nothing(lines):
    data = "".join(line + ending for line, ending in lines).encode()
    once = migrate(TXT, data)
    twice = migrate(TXT, once.new)
    assert twice.new == once.new
    open_ones = [(f.code, f.line) for f in once.findings if f.outcome.value == "open"]
    assert [(f.code, f.line) for f in twice.findings] == open_ones


@given(st.text() | st.text(alphabet="torch_xla-=[]\\#; \n\r\"'", max_size=60))
def test_any_text_is_read(text):
    data = text.encode("utf-8", "surrogatepass")
    migrate(TXT, data)
