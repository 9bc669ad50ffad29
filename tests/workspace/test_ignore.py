from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tpu_migrate.workspace.ignore import IgnoreRules, parse_ignore_file

from .trees import GIT_ENVIRONMENT, git

NAMES = [
    "a",
    "b",
    "ab",
    "abc",
    "a.py",
    "b.py",
    "a b",
    "a ",
    "-",
    "]",
    "[a]",
    "a*",
    "A",
    "#a",
    "!a",
    "\\",
    "^",
]
PATHS = [
    *NAMES,
    *(f"a/{name}" for name in NAMES),
    *(f"b/a/{name}" for name in ["a", "b", "ab", "a.py"]),
    *(f"ab/b/a/{name}" for name in ["a", "b", "abc", "b.py"]),
]
PIECES = [
    "a",
    "b",
    ".py",
    "*",
    "**",
    "***",
    "?",
    "/",
    "/",
    "[ab]",
    "[!a]",
    "[^a-b]",
    "[]a]",
    "[a-",
    "[[:alpha:]]",
]
ODD_PIECES = [
    "[[:no:]]",
    "[[:a]",
    "[b-a]",
    "[\\]]",
    "[a-\\c]",
    "\\",
    "\\*",
    "\\ ",
    " ",
    "#",
    "!",
    "]",
    "-",
    "^",
    "[",
    "A",
]
PATTERNS = st.lists(st.sampled_from(PIECES + ODD_PIECES), min_size=1, max_size=6).map("".join)


def ignored_by_rules(rules: IgnoreRules, path: str, is_folder: bool) -> bool:
    """Come down from the top, as the walk does."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        if rules.match(above, parts[count - 1], is_folder or count < len(parts)):
            return True
    return False


def ignored_by_git(root: Path, paths: list[str]) -> set[str]:
    done = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths).encode(),
        env=GIT_ENVIRONMENT,
        capture_output=True,
        check=False,  # 1 says that none is ignored
    )
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory):
    """Two checkouts: one where the paths are not there, which git takes for files, and one of folders."""
    files, folders = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("folders")
    for root in (files, folders):
        git(root, "init", "-q")
    for path in PATHS:
        (folders / path).mkdir(parents=True, exist_ok=True)
    return files, folders


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.tuples(st.sampled_from(["", "", "!", "/"]), PATTERNS).map("".join), min_size=1, max_size=5
    )
)
def test_rules_agree_with_git(checkouts, lines):
    text = "\n".join(lines) + "\n"
    rules = parse_ignore_file(text.encode())
    for root, is_folder in zip(checkouts, (False, True), strict=True):
        (root / ".gitignore").write_text(text)
        by_us = {path for path in PATHS if ignored_by_rules(rules, path, is_folder)}
        assert by_us == ignored_by_git(root, PATHS)


@pytest.mark.parametrize(
    ("line", "path", "ignored"),
    [
        ("*.log", "deep/down/a.log", True),
        ("/a.py", "b/a.py", False),
        ("docs/*.py", "docs/conf.py", True),
        ("docs/*.py", "docs/api/conf.py", False),
        ("docs/**", "docs", False),
        ("docs/**", "docs/api/conf.py", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("\\#notes", "#notes", True),
        ("# notes", "# notes", False),
        ("trailing   ", "trailing", True),
        ("trailing\\ ", "trailing ", True),
        ("[", "[", False),
    ],
)
def test_one_line(line, path, ignored):
    assert bool(IgnoreRules([line]).match(path, path.rpartition("/")[2], False)) is ignored


def test_a_rule_for_folders_leaves_files_alone():
    rules = IgnoreRules(["out/"])
    assert rules.match("out", "out", False) is None
    assert rules.match("out", "out", True) is True


def test_the_last_rule_wins():
    rules = IgnoreRules(["*.py", "!keep.py"])
    assert rules.match("a.py", "a.py", False) is True
    assert rules.match("keep.py", "keep.py", False) is False


def test_a_bom_and_crlf_are_no_part_of_the_patterns():
    rules = parse_ignore_file(b"\xef\xbb\xbfa.py\r\n\r\n!b.py\r\n")
    assert rules.match("a.py", "a.py", False) is True
    assert rules.match("b.py", "b.py", False) is False


def test_names_that_are_not_utf8_are_matched():
    rules = parse_ignore_file(b"caf\xe9.py\n")
    assert rules.match("caf\udce9.py", "caf\udce9.py", False) is True
