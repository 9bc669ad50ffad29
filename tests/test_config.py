"""Settings from pyproject.toml and the command line."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path

import pytest

from tpu_migrate.config import ConfigError, Settings, load_settings


def write(directory: Path, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "pyproject.toml"
    file.write_text(text, "utf-8")
    return file


def assert_refused(directory: Path, text: str, *parts: str) -> None:
    file = write(directory, text)
    with pytest.raises(ConfigError) as error:
        load_settings(directory, {})
    message = str(error.value)
    assert message.startswith(str(file) + ":")
    for part in parts:
        assert part in message, message


def test_without_a_pyproject_everything_has_its_default(tmp_path):
    assert load_settings(tmp_path, {}) == Settings()


def test_every_key_is_read(tmp_path):
    file = write(
        tmp_path,
        """
        [tool.tpu-migrate]
        device = "accelerator"
        launcher = "spawn"
        select = ["TX1", "EN"]
        ignore = ["TX101"]
        exclude = ["third_party/", "*_pb2.py"]
        safe-only = true
        comments = false
        rules = ["tools/ours.toml"]
        [tool.tpu-migrate.per-file-ignores]
        "tests/*" = ["TX2"]
        """,
    )
    assert load_settings(tmp_path, {}) == Settings(
        device="accelerator",
        launcher="spawn",
        select=("TX1", "EN"),
        ignore=("TX101",),
        exclude=("third_party/", "*_pb2.py"),
        safe_only=True,
        comments=False,
        rules=(tmp_path / "tools/ours.toml",),
        per_file_ignores={"tests/*": ("TX2",)},
        root=file.parent,
    )


def test_the_search_goes_upwards_from_a_file_too(tmp_path):
    write(tmp_path, '[tool.tpu-migrate]\ndevice = "accelerator"')
    source = tmp_path / "src" / "deep" / "train.py"
    source.parent.mkdir(parents=True)
    source.touch()
    assert load_settings(source, {}).device == "accelerator"
    assert load_settings(tmp_path / "not" / "there.py", {}).device == "accelerator"


def test_the_nearest_pyproject_wins_also_without_a_table_of_ours(tmp_path):
    write(tmp_path, '[tool.tpu-migrate]\ndevice = "accelerator"')
    write(tmp_path / "package", '[project]\nname = "package"')
    assert load_settings(tmp_path / "package", {}) == Settings()


def test_a_pyproject_that_does_not_name_the_tool_is_not_parsed(tmp_path):
    write(tmp_path, "this is = = no TOML")
    assert load_settings(tmp_path, {}) == Settings()


def test_rule_paths_are_relative_to_the_pyproject(tmp_path, monkeypatch):
    write(tmp_path, '[tool.tpu-migrate]\nrules = ["ours.toml", "/abs/theirs.toml"]')
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert load_settings(Path("."), {}).rules == (tmp_path / "ours.toml", Path("/abs/theirs.toml"))


def test_the_command_line_replaces_or_adds(tmp_path):
    write(
        tmp_path,
        '[tool.tpu-migrate]\ndevice = "accelerator"\nselect = ["TX1"]\nignore = ["TX101"]\nexclude = ["a/"]',
    )
    overrides = {
        "device": "tpu",
        "select": ("TX2",),
        "ignore": ("TX201",),
        "exclude": ("b/",),
        "launcher": None,
    }
    settings = load_settings(tmp_path, overrides)
    assert settings.device == "tpu"
    assert settings.launcher == "torchrun"
    assert settings.select == ("TX2",)
    assert settings.ignore == ("TX101", "TX201")
    assert settings.exclude == ("a/", "b/")


def test_settings_can_be_sent_to_another_process_and_hashed(tmp_path):
    write(tmp_path, '[tool.tpu-migrate.per-file-ignores]\n"a.py" = ["TX1"]')
    settings = load_settings(tmp_path, {})
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(load_settings(tmp_path, {}))


@pytest.mark.parametrize(
    ("select", "ignore", "code", "wanted"),
    [
        ((), (), "TX201", True),
        (("TX2",), (), "TX201", True),
        (("TX2",), (), "TX101", False),
        ((), ("TX2",), "TX201", False),
        (("TX201",), ("TX2",), "TX201", True),
        (("TX",), ("TX2",), "TX201", False),
        (("TX2",), ("TX2",), "TX201", False),
        (("TX2",), ("EN",), "EN101", False),
    ],
)
def test_the_longer_beginning_of_a_code_decides(select, ignore, code, wanted):
    assert Settings(select=select, ignore=ignore).selects(code) is wanted


def test_per_file_ignores_match_as_gitignore_does():
    settings = Settings(
        per_file_ignores={"tests/": ("TX2",), "*_old.py": ("TX101", "EN"), "/top.py": ("TX9",)}
    )
    assert settings.ignored_in("src/train.py") == ()
    assert settings.ignored_in("src/tests/deep/a.py") == ("TX2",)
    assert settings.ignored_in("tests/a_old.py") == ("TX2", "TX101", "EN")
    assert settings.ignored_in("sub/top.py") == ()
    assert settings.ignored_in("top.py") == ("TX9",)


def test_an_unknown_key_is_refused_with_the_one_that_was_meant(tmp_path):
    assert_refused(
        tmp_path, "[tool.tpu-migrate]\nsafe_only = true", "has no key safe_only", "did you mean safe-only?"
    )
    assert_refused(tmp_path, "[tool.tpu-migrate]\nexcludes = []", "did you mean exclude?")
    assert_refused(tmp_path, "[tool.tpu-migrate]\nqqqq = 1", "has no key qqqq", "it has device, launcher,")


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        ('device = "gpu"', 'device is "gpu"', 'expected "tpu" or "accelerator"'),
        ("device = true", "device is true", 'expected "tpu" or "accelerator"'),
        ("launcher = 3", "launcher is the number 3", 'expected "torchrun" or "spawn"'),
        ('safe-only = "yes"', 'safe-only is "yes"', "expected true or false"),
        ("comments = 1", "comments is the number 1", "expected true or false"),
        ('select = "TX1"', 'select is "TX1"', "expected a list of codes"),
        ('select = ["TX1", 2]', "a list with the number 2 in it", "expected a list of codes"),
        ('ignore = ["tx2"]', 'a list with "tx2" (did you mean TX2?) in it', "expected a list of codes"),
        ('ignore = ["mark-step"]', 'a list with "mark-step" in it', "expected a list of codes"),
        ("exclude = {}", "exclude is a table", "expected a list of globs"),
        ('exclude = [""]', 'a list with "" in it', "expected a list of globs"),
        ("rules = 2020-01-01", "rules is the date 2020-01-01", "expected a list of TOML files"),
        ('per-file-ignores = ["TX1"]', "per-file-ignores is a list", "expected a table"),
        ('per-file-ignores = {"a.py" = "TX1"}', 'a table in which "a.py" is "TX1"', "expected a table"),
    ],
)
def test_a_wrong_value_is_refused(tmp_path, line, found, expected):
    assert_refused(tmp_path, f"[tool.tpu-migrate]\n{line}", "[tool.tpu-migrate]", found, expected)


def test_what_is_no_table_is_refused(tmp_path):
    assert_refused(
        tmp_path, "[tool]\ntpu-migrate = 1", "tool.tpu-migrate is the number 1", "expected a table"
    )


def test_what_is_no_toml_is_refused(tmp_path):
    assert_refused(tmp_path, "[tool.tpu-migrate\n", "not TOML", "line 1")
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.tpu-migrate]\n# \xff")
    with pytest.raises(ConfigError, match="not TOML: 'utf-8' codec"):
        load_settings(tmp_path, {})


def test_a_wrong_override_names_the_option():
    with pytest.raises(ConfigError, match=r'^--select is a list with "2" in it; expected a list of codes'):
        load_settings(Path("/"), {"select": ("2",)})


def test_the_documented_table_holds_every_key_with_its_default(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text("utf-8")
    write(tmp_path, page.split("```toml\n")[1].split("```")[0])
    settings = load_settings(tmp_path, {})
    assert settings == Settings(per_file_ignores={"tests/*": ("TX201",)}, root=tmp_path)
    for key in (field.name.replace("_", "-") for field in fields(Settings) if field.name != "root"):
        assert f"\n{key} = " in page or f".{key}]" in page
