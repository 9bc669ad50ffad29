"""pyproject.toml and Pipfile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.packaging import assert_rewritten, assert_unchanged, codes, migrate
from tpu_migrate.formats.toml_text import read_toml

TOML = "pyproject.toml"


def test_pep_621():
    assert_rewritten(
        TOML,
        """
        [project]
        name = "train"
        requires-python = ">=3.11"
        dependencies = [
            # what we train with
            "torch==2.6.0",          # keep in step
            'torch_xla[tpu]==2.6.0 ; sys_platform == "linux"',
            "optimum-tpu",
            "libtpu-nightly",  # goes
        ]
        optional-dependencies.dev = ["pytest", "torch_xla", "ruff"]
        optional-dependencies.last = ["pytest", "cloud-tpu-client"]
        """,
        """
        [project]
        name = "train"
        requires-python = ">=3.11"
        dependencies = [
            # what we train with
            "torch>=2.11,<=2.15",          # keep in step
            'torch_tpu>=0.2.0 ; sys_platform == "linux"',
            "torch_tpu>=0.2.0",
            "transformers>=5.24",
        ]
        optional-dependencies.dev = ["pytest", "torch_tpu>=0.2.0", "ruff"]
        optional-dependencies.last = ["pytest"]
        """,
    )


def test_one_line_and_escapes():
    assert_rewritten(
        TOML,
        '[project]\nname="a"\nversion="1"\ndependencies = ["torch_xla~=2.5; sys_platform == \\"linux\\"", "optimum-tpu"]\n',
        '[project]\nname="a"\nversion="1"\ndependencies = ["torch_tpu>=0.2.0; sys_platform == \\"linux\\"", "torch_tpu>=0.2.0", "transformers>=5.24"]\n',
    )


@pytest.mark.parametrize(
    "list_", ['["libtpu-nightly"]', '["libtpu-nightly", ]', '[ "libtpu-nightly" , "cloud-tpu-client"]']
)
def test_lists_that_are_left_empty_are_toml(list_):
    result = migrate(TOML, f"[project]\nname = 'a'\nversion = '1'\ndependencies = {list_}\n")
    assert b"tpu" not in result.new
    assert migrate(TOML, result.new).new == result.new


def test_groups_of_pdm_uv_hatch_and_pep_735():
    assert_rewritten(
        TOML,
        """
        [dependency-groups]
        tpu = ["torch_xla", {include-group = "dev"}]
        [tool.pdm.dev-dependencies]
        tpu = ["torch_xla"]
        [tool.uv]
        dev-dependencies = ["torch_xla"]
        constraint-dependencies = ["torch_xla<2.7"]
        find-links = ["https://storage.googleapis.com/libtpu-releases/index.html", "https://e.org"]
        [tool.hatch.envs.tpu]
        extra-dependencies = ["torch_xla"]
        """,
        """
        [dependency-groups]
        tpu = ["torch_tpu>=0.2.0", {include-group = "dev"}]
        [tool.pdm.dev-dependencies]
        tpu = ["torch_tpu>=0.2.0"]
        [tool.uv]
        dev-dependencies = ["torch_tpu>=0.2.0"]
        constraint-dependencies = ["torch_tpu>=0.2.0"]
        find-links = ["https://e.org"]
        [tool.hatch.envs.tpu]
        extra-dependencies = ["torch_tpu>=0.2.0"]
        """,
    )


def test_a_pin_that_others_install_too_is_named_and_left():
    text = """
    [project]
    name = "a"
    version = "1"
    dependencies = ["torch==2.6.0"]
    [project.optional-dependencies]
    tpu = ["torch_tpu"]
    cuda = ["torch==2.6.0"]
    """
    result = assert_unchanged(TOML, text, "PK103")
    assert "do without the TPU packages" in result.findings[0].message


def test_poetry():
    result = assert_rewritten(
        TOML,
        """
        [tool.poetry.dependencies]
        python = "^3.10"
        torch = "~2.6.0"
        "torch-xla" = { version = "^2.6", extras = ["tpu"], markers = "sys_platform == 'linux'" }  # TPU
        libtpu-nightly = "*"
        optimum-tpu = "0.2.3"
        transformers = "^4.46"

        [tool.poetry.extras]
        tpu = ["torch-xla"]
        """,
        """
        [tool.poetry.dependencies]
        python = "^3.10"
        torch = ">=2.11,<=2.15"
        torch_tpu = { version = ">=0.2.0", markers = "sys_platform == 'linux'" }  # TPU
        torch_tpu = ">=0.2.0"
        transformers = "^4.46"

        [tool.poetry.extras]
        tpu = ["torch_tpu"]
        """.replace('torch_tpu = ">=0.2.0"\n        ', ""),
    )
    assert "PK112 open" in codes(result)
    assert "PK109 open" in codes(result)


def test_poetry_optional_dependencies():
    result = migrate(
        TOML,
        """
        [tool.poetry.dependencies]
        torch = "2.6.0"
        torch-xla = { version = "2.6.0", optional = true, extras = ["tpu"] }
        [tool.poetry.group.tpu.dependencies]
        torch_xla = "*"
        """,
    )
    assert codes(result) == ["PK103 open", "PK101 rewritten", "PK101 rewritten"]
    assert b'torch_tpu = { version = ">=0.2.0", optional = true }' in result.new
    assert b'\ntorch_tpu = ">=0.2.0"\n' in result.new


def test_poetry_forms_that_stay():
    text = """
    [tool.poetry.dependencies]
    torch-xla = { url = "https://e.org/torch_xla-2.6.0-cp310-cp310-linux_x86_64.whl" }
    optimum-tpu = [{ version = "1", python = "<3.9" }, { version = "2", python = ">=3.9" }]
    [tool.poetry.dependencies.cloud-tpu-client]
    version = "0.10"
    """
    assert_unchanged(TOML, text, "PK101", "PK102", "PK108")


def test_python_that_is_too_old():
    text = """
    [project]
    name = "a"
    version = "1"
    requires-python = ">=3.9"
    dependencies = ["torch_tpu"]
    """
    assert_unchanged(TOML, text, "PK112")
    assert_unchanged(TOML, text.replace("3.9", "3.12"))
    assert_unchanged(TOML, text.replace("torch_tpu", "numpy"))


def test_other_mentions():
    text = """
    # torch_xla in a comment
    [project]
    name = "a"
    version = "1"
    description = "for torch_xla"
    [project.entry-points."torch_xla.plugins"]
    x = "a:b"
    [tool.uv.sources]
    torch-xla = { index = "pytorch-xla-releases" }
    """
    assert_unchanged(TOML, text, "PK190", "PK190", "PK190")


def test_broken_toml_is_said():
    assert_unchanged(TOML, "dependencies = [torch_xla\n", "PY001")
    assert_unchanged(TOML, "dependencies = [numpy\n")


def test_crlf_stays():
    assert_rewritten(
        TOML,
        b'[project]\r\nname = "a"\r\nversion = "1"\r\ndependencies = [\r\n  "optimum-tpu",\r\n  "libtpu-nightly"\r\n]\r\n',
        b'[project]\r\nname = "a"\r\nversion = "1"\r\ndependencies = [\r\n  "torch_tpu>=0.2.0",\r\n  "transformers>=5.24",\r\n]\r\n',
    )


def test_pipfile():
    assert_rewritten(
        "Pipfile",
        """
        [packages]
        torch = "==2.6.0"
        torch-xla = {version = "==2.6.0", extras = ["tpu"]}
        optimum-tpu = "*"

        [requires]
        python_version = "3.11"
        """,
        """
        [packages]
        torch = ">=2.11,<=2.15"
        torch_tpu = {version = ">=0.2.0"}
        transformers = ">=5.24"

        [requires]
        python_version = "3.11"
        """,
    )
    assert_unchanged("Pipfile", '[packages]\ntorch_tpu = "*"\n[requires]\npython_version = "3.10"\n', "PK112")


WORDS = st.sampled_from(["a", "b-c", '"d.e"', "'f'"])
SCALARS = st.sampled_from(
    ["1", "1.5e3", "true", "1979-05-27 07:32:00", '"x # y"', "'x, ]'", '"""a\n"q" b\\\\"""', "'''c\n'd' '''", '"\\"\\\\"', '""""""', '"""x"""""']
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: "[" + ", # c ]\n ".join([*parts, ""]) + "]")
        | st.lists(inner.filter(lambda v: "\n" not in v), max_size=2).map(
            lambda parts: "{ " + ", ".join(f"k{n} = {part}" for n, part in enumerate(parts)) + " }"
        )
    ),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=6))
def test_the_scanner_finds_what_tomllib_reads(values):
    from tpu_migrate.formats.toml_text import tomllib

    text = "".join(f"[t{n}.'u v']\nx.y = {value} # end\n" for n, value in enumerate(values))
    found = {
        value.path: text[value.span.start : value.span.end]
        for value in read_toml(text).values
        if not value.in_array
    }
    for n, value in enumerate(values):
        assert found[(f"t{n}", "u v", "x", "y")] == value
        parsed = tomllib.loads(text)[f"t{n}"]["u v"]["x"]["y"]
        assert tomllib.loads(f"v = {value}")["v"] == parsed
    assert migrate(TOML, text).new == text.encode()


OURS = st.lists(
    st.sampled_from(["torch_xla", "optimum-tpu==1", "libtpu-nightly", "torch==2.5", "numpy", "transformers", "torch_tpu", "cloud-tpu-client"]),
    max_size=5,
)  # fmt: skip


@given(
    OURS, st.sampled_from([", ", ",\n    ", ",\r\n  ", " , # c\n"]), st.sampled_from(["", ",", "\n", ",\n"])
)
def test_a_second_run_changes_nothing(packages, between, end):
    inside = between.join(f'"{name}"' for name in packages) + (end if packages else "")
    text = f'[project]\nname = "a"\nversion = "1"\ndependencies = [{inside}]\n'
    once = migrate(TOML, text.encode())
    assert migrate(TOML, once.new).new == once.new
    assert b"xla" not in once.new


def test_optional_entries_become_optional_entries():
    assert_rewritten(
        TOML,
        """
        [tool.poetry.dependencies]
        optimum-tpu = { version = "1", optional = true }
        """,
        """
        [tool.poetry.dependencies]
        torch_tpu = {version = ">=0.2.0", optional = true}
        transformers = { version = ">=5.24", optional = true }
        """,
    )


def test_of_two_that_become_one_the_one_that_is_not_optional_stays():
    assert_rewritten(
        TOML,
        """
        [tool.poetry.dependencies]
        torch-xla = { version = "2.6", optional = true }
        torch_xla = "2.6"
        """,
        """
        [tool.poetry.dependencies]
        torch_tpu = ">=0.2.0"
        """,
    )


POETRY = st.lists(
    st.sampled_from(
        [
            'torch-xla = "2.5"', '"torch-xla" = {version="2.5", extras=["tpu"]}', 'torch_xla = "*"', 'optimum-tpu = "*"',
            "torch-xla = { extras = ['tpu'], version = '^2', optional = true }  # c", 'torch = "2.5.1"', 'python = "^3.9"',
            'optimum-tpu = {version = "1", optional=true}', 'torch = {version="~2.5", optional = true}', 'torch_tpu = "*"',
            'libtpu-nightly = "*"', 'libtpu.version = "0.0.2"', 'transformers = "^4.2"', 'torchvision = "^0.1"',
        ]
    ),
    max_size=6,
    unique_by=lambda line: line.split("=")[0].strip('" ').removesuffix(".version"),
)  # fmt: skip


@given(POETRY, POETRY, st.sampled_from(["\n", "\r\n"]))
def test_a_second_run_over_poetry_tables_changes_nothing(main, group, newline):
    tables = ["[tool.poetry.dependencies]", *main, "[tool.poetry.group.g.dependencies]", *group]
    once = migrate(TOML, newline.join(tables).encode())
    twice = migrate(TOML, once.new)
    assert twice.new == once.new
    assert codes(twice) == [code for code in codes(once) if code.endswith("open")]
    assert b"xla" not in once.new
