"""setup.cfg, environment.yml, lock files; and all kinds in a run."""

import json
from pathlib import Path

import pytest

from formats.packaging import PACKAGING, assert_rewritten, assert_unchanged, codes, kind_of, migrate
from tpu_migrate import formats
from tpu_migrate.config import Settings
from tpu_migrate.pipeline import run

ROOT = Path(__file__).parents[2] / "fixtures" / "packaging"
CASES = sorted(path.name for path in ROOT.iterdir() if (path / "before").is_dir())


def test_setup_cfg():
    result = assert_rewritten(
        "setup.cfg",
        """
        [metadata]
        name = a
        [options]
        python_requires = >=3.8
        install_requires =
            torch==2.6.0
            # for TPUs
            torch_xla[tpu]==2.6.0; sys_platform == "linux"
            libtpu-nightly
        tests_require = optimum-tpu
        [options.extras_require]
        tpu =
            cloud-tpu-client
            numpy
        [isort]
        known_third_party = torch_xla
        """,
        """
        [metadata]
        name = a
        [options]
        python_requires = >=3.8
        install_requires =
            torch>=2.11,<=2.15
            # for TPUs
            torch_tpu>=0.2.0; sys_platform == "linux"
        tests_require = torch_tpu>=0.2.0
            transformers>=5.24
        [options.extras_require]
        tpu =
            numpy
        [isort]
        known_third_party = torch_xla
        """,
    )
    assert codes(result)[-1] == "PK190 open"
    assert "PK112 open" in codes(result)


def test_the_projects_themselves_are_left_alone():
    text = '[project]\nname = "optimum-tpu"\nversion = "1"\ndependencies = ["torch_xla==2.5", "torch==2.5"]\n'
    result = assert_unchanged("pyproject.toml", text, "PK190")
    assert (result.findings[0].line, result.findings[0].end_line) == (2, 4)
    assert_unchanged(
        "setup.cfg", "[metadata]\nname = torch_xla\n[options]\ninstall_requires = torch_xla\n", "PK190"
    )


def test_setup_cfg_that_is_none():
    assert_unchanged("setup.cfg", "torch_xla\n", "PY001")


def test_environment_yml():
    assert_rewritten(
        "environment.yml",
        """
        name: tpu
        channels: [conda-forge]
        dependencies:
          - python=3.11
          - numpy
          - pip
          - pip:
            - -f https://storage.googleapis.com/libtpu-releases/index.html
            - torch==2.6.0   # keep
            - "torch_xla[tpu]==2.6.0"
            - 'optimum-tpu'
        """,
        """
        name: tpu
        channels: [conda-forge]
        dependencies:
          - python=3.11
          - numpy
          - pip
          - pip:
            - torch>=2.11,<=2.15   # keep
            - "torch_tpu>=0.2.0"
            - 'transformers>=5.24'
        """,
    )
    assert_rewritten(
        "conda.yaml",
        "dependencies:\n- pip:\n  - 'optimum-tpu'\n  - b\n",
        "dependencies:\n- pip:\n  - 'torch_tpu>=0.2.0'\n  - 'transformers>=5.24'\n  - b\n",
    )


def test_conda_packages_are_named_and_left():
    text = """
    dependencies:
      - python=3.10
      - pytorch=2.5.1=cpu_0
      - conda-forge::torchvision=0.20
      - pip:
        - torch_tpu
    """
    assert_unchanged("environment.yml", text, "PK112", "PK103", "PK104")


def test_lists_in_brackets_are_said():
    assert_unchanged("environment.yml", "dependencies: [torch_xla]\n", "PK190")


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("a/poetry.lock", "poetry lock"),
        ("uv.lock", "uv lock"),
        ("Pipfile.lock", "pipenv lock"),
        ("pdm.lock", "pdm lock"),
    ],
)
def test_lock_files(path, command):
    result = assert_unchanged(path, b'[[package]]\nname = "torch-xla"\n"x" = "torch-xla"\n', "PK180")
    assert f"`{command}`" in result.findings[0].message
    assert (result.findings[0].line, result.findings[0].column) == (2, 9)
    assert_unchanged(path, b'[[package]]\nname = "torch"\n')


def migrate_folder(before: Path) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    files, findings = {}, []
    for path in sorted(path for path in before.rglob("*") if path.is_file()):
        name = path.relative_to(before).as_posix()
        result = migrate(name, path.read_bytes())
        files[name] = result.new
        findings += [
            {"code": f.code, "path": name, "line": f.line, "outcome": f.outcome.value, "after": f.after}
            for f in result.findings
        ]
    return files, findings


@pytest.mark.parametrize("case", CASES)
def test_fixture(case):
    files, findings = migrate_folder(ROOT / case / "before")
    expected = {
        path.relative_to(ROOT / case / "after").as_posix(): path.read_bytes()
        for path in (ROOT / case / "after").rglob("*")
        if path.is_file()
    }
    assert files == expected
    assert findings == json.loads((ROOT / case / "findings.json").read_text())
    again, still = migrate_folder(ROOT / case / "after")
    assert again == expected
    assert still == [finding for finding in findings if finding["outcome"] != "rewritten"]


def test_a_run_migrates_all_kinds(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", (formats.PYTHON, *PACKAGING))
    for case in CASES:
        for path in (ROOT / case / "before").rglob("*"):
            if path.is_file():
                copy = tmp_path / case / path.relative_to(ROOT / case / "before")
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(path.read_bytes())
    (tmp_path / "notes.txt").write_text("torch_xla\n")
    result = run([tmp_path], Settings(), apply=True)
    assert (tmp_path / "notes.txt").read_text() == "torch_xla\n"
    for case in CASES:
        for path in (ROOT / case / "after").rglob("*"):
            if path.is_file():
                assert (
                    tmp_path / case / path.relative_to(ROOT / case / "after")
                ).read_bytes() == path.read_bytes()
    assert all(kind_of(file.path) for file in result.files)
