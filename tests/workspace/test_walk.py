from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_migrate.workspace.walk import SourceFile, WorkspaceError, is_generated, walk

from .trees import git, make_tree


def found(*paths: Path, **options: object) -> list[str]:
    return [file.relative for file in walk(list(paths), **options).files]  # type: ignore[arg-type]


def by_git(root: Path) -> list[str]:
    """Return the Python files that git does not ignore."""
    listed = git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return sorted(name for name in listed if name.endswith((".py", ".pyi")))


# What is found


def test_files_come_sorted_by_relative_path_with_both_suffixes(tmp_path):
    make_tree(
        tmp_path, {"b.py": "", "a/z.py": "", "a.pyi": "", "notes.txt": "", "B/c.py": "", "a-b/x.py": ""}
    )
    result = walk([tmp_path])
    assert [file.relative for file in result.files] == ["B/c.py", "a-b/x.py", "a.pyi", "a/z.py", "b.py"]
    assert result.root == tmp_path
    assert result.files[3] == SourceFile("a/z.py", str(tmp_path / "a/z.py"))
    assert result.files[3].path == tmp_path / "a/z.py"


def test_other_suffixes(tmp_path):
    make_tree(tmp_path, {"a.py": "", "b.ipynb": ""})
    assert found(tmp_path, suffixes=[".ipynb"]) == ["b.ipynb"]


def test_the_current_folder_is_the_root_as_written(tmp_path, monkeypatch):
    make_tree(tmp_path, {"pkg/a.py": ""})
    monkeypatch.chdir(tmp_path)
    result = walk([Path(".")])
    assert (result.root, result.files[0].path) == (Path("."), Path("pkg/a.py"))


def test_the_root_of_one_file_is_its_folder(tmp_path, monkeypatch):
    make_tree(tmp_path, {"pkg/a.py": ""})
    monkeypatch.chdir(tmp_path)
    assert walk([Path("pkg/a.py")]).root == Path("pkg")
    monkeypatch.chdir(tmp_path / "pkg")
    assert walk([Path("a.py")]) == walk([Path("a.py"), Path("a.py")])
    assert walk([Path("a.py")]).root == Path(".")


def test_the_root_of_several_paths_is_the_folder_that_holds_them(tmp_path, monkeypatch):
    make_tree(tmp_path, {"p/a/x.py": "", "p/b/y.py": "", "p/z.py": "", "q/w.py": ""})
    monkeypatch.chdir(tmp_path)
    result = walk([Path("p/b"), Path("p/a/x.py")])
    assert result.root == Path("p")
    assert [file.relative for file in result.files] == ["a/x.py", "b/y.py"]
    assert [str(file.path) for file in result.files] == ["p/a/x.py", "p/b/y.py"]
    assert walk([tmp_path / "p/b", Path("p/a/x.py")]).root == tmp_path / "p"


def test_a_file_named_twice_is_found_once(tmp_path):
    make_tree(tmp_path, {"a.py": "", "b.py": ""})
    assert found(tmp_path, tmp_path / "a.py", tmp_path / "a.py") == ["a.py", "b.py"]


def test_names_that_are_not_utf8_are_found(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.py"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    (file,) = walk([tmp_path]).files
    assert os.fsencode(file.location) == path


# What is left out


def test_folders_that_hold_no_source_are_skipped(tmp_path):
    names = [".git", ".tpu-migrate", ".tox", ".nox", "node_modules", "__pycache__", "lib/site-packages"]
    make_tree(tmp_path, {f"{name}/a.py": "" for name in names} | {"lib/b.py": ""})
    assert found(tmp_path) == ["lib/b.py"]


def test_virtual_environments_are_known_by_their_mark_not_by_name(tmp_path):
    make_tree(
        tmp_path, {"py310/pyvenv.cfg": "", "py310/a.py": "", "conda/conda-meta/x": "", "conda/b.py": ""}
    )
    make_tree(tmp_path, {"env/train.py": "", "venv/train.py": ""})
    assert found(tmp_path) == ["env/train.py", "venv/train.py"]


def test_build_output_is_skipped_and_said(tmp_path):
    make_tree(tmp_path, {"build/lib/pkg/a.py": "", "tools/build/make.py": "", "pkg/build/__init__.py": ""})
    make_tree(tmp_path, {"pkg/build/lib/a.py": "", "cpp/build/CMakeCache.txt": "", "cpp/build/gen.py": ""})
    result = walk([tmp_path])
    assert [file.relative for file in result.files] == [
        "pkg/build/__init__.py",
        "pkg/build/lib/a.py",
        "tools/build/make.py",
    ]
    assert [path for path, _ in result.skipped] == ["build", "cpp/build"]
    assert "build output" in result.skipped[0][1]


def test_vendored_folders_are_skipped_and_said_once_each(tmp_path):
    make_tree(
        tmp_path, {"a.py": "", "third_party/x/a.py": "", "third_party/y/b.py": "", "p/_vendor/c.py": ""}
    )
    result = walk([tmp_path])
    assert [file.relative for file in result.files] == ["a.py"]
    assert [path for path, _ in result.skipped] == ["p/_vendor", "third_party"]
    assert all(why == "vendored code: name the folder to migrate it too" for _, why in result.skipped)


def test_named_paths_are_visited_whatever_they_are(tmp_path):
    make_tree(tmp_path, {".gitignore": "gen/\nscratch.py\n", "gen/a.py": "", "scratch.py": "", "main.py": ""})
    make_tree(tmp_path, {"vendor/v.py": "", "vendor/_vendor/w.py": "", "bin/train": "import torch_xla\n"})
    named = ["gen", "scratch.py", "vendor", "bin/train", "."]
    result = walk([tmp_path / name for name in named])
    assert [file.relative for file in result.files] == [
        "bin/train",
        "gen/a.py",
        "main.py",
        "scratch.py",
        "vendor/v.py",
    ]
    assert [path for path, _ in result.skipped] == ["vendor/_vendor"]
    assert walk([tmp_path / name for name in reversed(named)]) == result


@pytest.mark.parametrize("lines", ["data/", "data/*", "data/*\n!data/.keep", "/data/**", "*\n!*.txt"])
def test_a_named_folder_is_visited_though_all_in_it_is_ignored(tmp_path, lines):
    make_tree(tmp_path, {".gitignore": lines, "data/sub/a.py": ""})
    git(tmp_path, "init", "-q")
    assert found(tmp_path / "data") == ["sub/a.py"]
    assert found(tmp_path / "data/sub") == ["a.py"]
    assert found(tmp_path) == []


def test_a_named_folder_may_hide_itself(tmp_path):
    make_tree(tmp_path, {"cache/.gitignore": "*\n", "cache/a.py": "", "b.py": ""})
    assert found(tmp_path) == ["b.py"]
    assert found(tmp_path / "cache") == ["a.py"]


def test_rules_of_a_named_folder_that_is_ignored_still_hold_in_it(tmp_path):
    make_tree(tmp_path, {".gitignore": "gen/\n", "gen/.gitignore": "b.py\n", "gen/a.py": "", "gen/b.py": ""})
    assert found(tmp_path / "gen", tmp_path) == ["gen/a.py"]


def test_an_unreadable_folder_is_said(tmp_path, monkeypatch):
    make_tree(tmp_path, {"secret/a.py": "", "b.py": ""})
    scandir = os.scandir

    def refuse(path):  # a mode would not stop root, which tests in a container run as
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = walk([tmp_path])
    assert [file.relative for file in result.files] == ["b.py"]
    assert result.skipped == (("secret", "unreadable: Permission denied"),)


def test_installed_packages_are_skipped_and_said(tmp_path):
    make_tree(tmp_path, {"env/pyvenv.cfg": "", "env/lib/site-packages/a.py": ""})
    assert walk([tmp_path]).skipped == ()
    reason = "installed packages: name the folder to migrate it too"
    assert walk([tmp_path / "env"]).skipped == (("lib/site-packages", reason),)
    assert found(tmp_path / "env/lib/site-packages") == ["a.py"]


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "a.py")
    assert found(tmp_path) == []
    assert walk([tmp_path / "a.py"]).skipped == (("a.py", "not a regular file"),)


# .gitignore

IGNORING_TREE = {
    ".gitignore": "*.gen.py\n/top.py\nout/\n!keep.gen.py\nlogs/*\n!logs/keep.py\n",
    "top.py": "",
    "a.gen.py": "",
    "keep.gen.py": "",
    "out/x.py": "",
    "logs/a.py": "",
    "logs/keep.py": "",
    "sub/top.py": "",
    "sub/.gitignore": "!a.gen.py\nlocal.py\n/deep/only.py\n",
    "sub/a.gen.py": "",
    "sub/b.gen.py": "",
    "sub/local.py": "",
    "sub/deep/only.py": "",
    "sub/deep/local.py": "",
    "sub/deep/more/only.py": "",
    "sub/out/keep.gen.py": "",
}


def test_nested_rules_and_negation_agree_with_git(tmp_path):
    make_tree(tmp_path, IGNORING_TREE)
    without_git = found(tmp_path)
    git(tmp_path, "init", "-q")
    assert found(tmp_path) == without_git == by_git(tmp_path)
    assert "sub/a.gen.py" in without_git
    ignored = git(tmp_path, "ls-files", "-o", "-i", "--exclude-standard", "-z").split("\0")
    assert not set(ignored) & set(without_git)


def test_rules_above_the_named_folder_hold_in_a_checkout(tmp_path):
    make_tree(tmp_path, IGNORING_TREE)
    git(tmp_path, "init", "-q")
    expected = [name.removeprefix("sub/") for name in by_git(tmp_path) if name.startswith("sub/")]
    assert found(tmp_path / "sub") == expected
    below = [name.removeprefix("deep/") for name in expected if name.startswith("deep/")]
    assert found(tmp_path / "sub/deep") == below


def test_the_private_exclude_file_counts_below_every_gitignore(tmp_path):
    make_tree(tmp_path, {".gitignore": "!b.py\n", "a.py": "", "b.py": "", "sub/a.py": "", "sub/c.py": ""})
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/info/exclude").write_text("a.py\nb.py\n")
    assert found(tmp_path) == by_git(tmp_path) == ["b.py", "sub/c.py"]
    assert found(tmp_path / "sub") == ["c.py"]


def test_a_worktree_has_the_exclude_file_of_its_repository(tmp_path):
    main = make_tree(tmp_path / "main", {"a.py": ""})
    git(main, "init", "-q")
    git(main, "add", "-A")
    git(main, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
    git(main, "worktree", "add", "-q", "../tree")
    (main / ".git/info/exclude").write_text("b.py\n")
    make_tree(tmp_path / "tree", {"b.py": "", "sub/b.py": ""})
    assert found(tmp_path / "tree") == ["a.py"]
    assert found(tmp_path / "tree/sub") == []


def test_a_checkout_inside_of_another_is_under_its_own_rules(tmp_path):
    make_tree(tmp_path, {".gitignore": "a.py\n", "a.py": "", "inner/a.py": "", "inner/b.py": ""})
    git(tmp_path, "init", "-q")
    git(tmp_path / "inner", "init", "-q")
    (tmp_path / "inner/.git/info/exclude").write_text("b.py\n")
    assert found(tmp_path) == ["inner/a.py"]


NAMES = st.sampled_from(["a", "b", "a.py", "b.py"])
LINES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.lists(st.sampled_from(["a", "b", "*", "**", "*.py", "a.py", "/"]), min_size=1, max_size=4).map(
        "".join
    ),
    st.sampled_from(["", "", "/"]),
)
FOLDERS = ["", "a/", "b/", "a/b/", "a/b/a/"]


@settings(max_examples=60, deadline=None)
@given(rules=st.dictionaries(st.sampled_from(FOLDERS), st.lists(LINES, min_size=1, max_size=4), max_size=4))
def test_any_nested_rules_agree_with_git(tmp_path_factory, rules):
    root = tmp_path_factory.mktemp("tree")
    make_tree(root, {f"{folder}{name}": "" for folder in FOLDERS for name in ("a.py", "b.py", "a.pyi")})
    make_tree(root, {f"{folder}.gitignore": "\n".join(lines) for folder, lines in rules.items()})
    git(root, "init", "-q")
    expected = by_git(root)
    # A root whose own rules hide everything is visited all the same, because it was named.
    assert found(root) == expected or not expected


# exclude


def test_exclude_wins_over_gitignore(tmp_path):
    make_tree(tmp_path, {".gitignore": "!old/a.py\n", "old/a.py": "", "new/a.py": "", "new/b_test.py": ""})
    assert found(tmp_path, exclude=["/old/", "*_test.py"]) == ["new/a.py"]


def test_exclude_holds_for_named_paths_and_says_so(tmp_path):
    make_tree(tmp_path, {"old/a.py": "", "old/sub/b.py": "", "c.py": ""})
    result = walk([tmp_path / "old/a.py", tmp_path / "old/sub", tmp_path / "c.py"], exclude=["old/"])
    assert [file.relative for file in result.files] == ["c.py"]
    assert result.skipped == (("old/a.py", "in the exclude setting"), ("old/sub", "in the exclude setting"))


def test_exclude_may_be_relative_to_another_folder(tmp_path):
    make_tree(tmp_path, {"pkg/old/a.py": "", "pkg/b.py": "", "pkg/old/old/c.py": ""})
    assert found(tmp_path / "pkg", exclude=["/pkg/old"], exclude_base=tmp_path) == ["b.py"]
    assert found(tmp_path / "pkg/b.py", exclude=["pkg/b.py"], exclude_base=tmp_path) == []
    assert found(tmp_path, exclude=["/old/a.py"], exclude_base=tmp_path / "pkg") == [
        "pkg/b.py",
        "pkg/old/old/c.py",
    ]
    assert found(tmp_path, exclude=["pkg"], exclude_base=tmp_path / "pkg/old") == found(tmp_path)


# Symlinks


def test_a_symlink_to_a_file_in_the_tree_is_visited_once_as_its_target(tmp_path):
    make_tree(tmp_path, {"real.py": "", "sub/.gitignore": "ignored.py\n", "sub/ignored.py": ""})
    (tmp_path / "alias.py").symlink_to("real.py")
    (tmp_path / "sub/back.py").symlink_to("../alias.py")
    (tmp_path / "shown.py").symlink_to("sub/ignored.py")
    result = walk([tmp_path])
    assert [file.relative for file in result.files] == ["real.py", "sub/ignored.py"]
    assert result.skipped == ()
    assert found(tmp_path / "alias.py") == ["real.py"]


def test_symlinks_out_of_the_tree_are_not_followed(tmp_path):
    make_tree(tmp_path, {"outside/x.py": "", "repo/a.py": ""})
    (tmp_path / "repo/file.py").symlink_to("../outside/x.py")
    (tmp_path / "repo/folder").symlink_to("../outside")
    (tmp_path / "repo/folder.py").symlink_to("../outside")
    (tmp_path / "repo/gone.py").symlink_to("nowhere.py")
    result = walk([tmp_path / "repo"])
    assert [file.relative for file in result.files] == ["a.py"]
    outside = tmp_path.resolve() / "outside"
    assert dict(result.skipped) == {
        "file.py": f"symlink out of the tree, to {outside / 'x.py'}",
        "folder": f"symlink out of the tree, to {outside}",
        "folder.py": f"symlink out of the tree, to {outside}",
        "gone.py": "broken symlink",
    }


def test_a_named_symlink_out_of_the_tree_is_refused_with_its_target(tmp_path):
    make_tree(tmp_path, {"outside/x.py": "", "repo/a.py": ""})
    (tmp_path / "repo/file.py").symlink_to("../outside/x.py")
    ((path, why),) = walk([tmp_path / "repo/file.py"]).skipped
    assert path == "file.py"
    assert why == f"symlink out of {tmp_path / 'repo'}: name {tmp_path.resolve() / 'outside/x.py'} itself"


def test_symlinked_folders_in_the_tree_are_not_followed(tmp_path):
    make_tree(tmp_path, {"real/a.py": ""})
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "real/loop").symlink_to("..")
    result = walk([tmp_path])
    assert ([file.relative for file in result.files], result.skipped) == (["real/a.py"], ())


def test_a_symlink_into_vendored_or_excluded_code_does_not_open_it(tmp_path):
    make_tree(tmp_path, {"vendor/v.py": "", "old/o.py": "", "data.txt": ""})
    for name, target in [("a.py", "vendor/v.py"), ("b.py", "old/o.py"), ("c.py", "data.txt")]:
        (tmp_path / name).symlink_to(target)
    result = walk([tmp_path], exclude=["old"])
    assert result.files == ()
    assert dict(result.skipped)["c.py"] == "symlink to a file of another kind, data.txt"


def test_the_root_may_be_a_symlink(tmp_path):
    make_tree(tmp_path, {"real/a.py": "", "real/b/c.py": ""})
    (tmp_path / "link").symlink_to("real")
    result = walk([tmp_path / "link"])
    assert result.root == tmp_path / "link"
    assert [file.relative for file in result.files] == ["a.py", "b/c.py"]


# Wrong use


def test_a_missing_path_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkspaceError, match=r"^nope/a\.py: no such file or folder \(seen from .*\)\.\n"):
        walk([Path("."), Path("nope/a.py")])


def test_no_path_is_an_error():
    with pytest.raises(WorkspaceError, match=r"^no path given\."):
        walk([])


# Speed


def test_ten_thousand_files_take_little_more_than_scandir(tmp_path):
    for number in range(250):
        folder = tmp_path / f"p{number % 10}/q{number}"
        folder.mkdir(parents=True)
        for name in range(40):
            os.close(os.open(folder / f"module_{name}.py", os.O_CREAT | os.O_WRONLY))
    (tmp_path / ".gitignore").write_text(
        "*.log\n*.py[co]\n/out/\n.env\n*.egg-info/\n!keep.log\n.coverage.*\n"
    )

    def bare(folder: str) -> int:
        count = 0
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    count += bare(entry.path)
                else:
                    count += entry.name.endswith(".py")
        return count

    def fastest(action) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            assert action() == 10_000
            times.append(time.perf_counter() - start)
        return min(times)

    scandir = fastest(lambda: bare(str(tmp_path)))
    ours = fastest(lambda: len(walk([tmp_path]).files))
    # 2.5 without rules, 3.6 with these on an idle machine; the rest is allowance for a busy one.
    assert ours < 6 * scandir, f"{ours * 1000:.1f} ms against {scandir * 1000:.1f} ms"


# Generated files


@pytest.mark.parametrize(
    "head",
    [
        b"# Generated by the protocol buffer compiler.  DO NOT EDIT!\n# source: a.proto\nimport sys\n",
        b"# -*- coding: utf-8 -*-\n# Generated by the protocol buffer compiler.\n",
        b"# Generated by the gRPC Python protocol compiler plugin. DO NOT EDIT!\n",
        b"#!/usr/bin/env python\r\n\r\n# @generated by schema.py\r\n",
        b"\xef\xbb\xbf# This file is auto-generated.\n# Do not edit it by hand.\n",
        b'"""Tables of the tokenizer.\n\nDO NOT MODIFY: generated from tables.toml.\n"""\nA = 1\n',
        b'r"""Doc."""\n# @generated\n',
    ],
)
def test_markers_before_the_code_count(head):
    assert is_generated(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"import torch_xla\n# @generated\n",
        b'MARKER = "@generated"\n',
        b'"""Skip files that carry `@generated`."""\nimport re\n',
        b"# Text is generated here.\nimport re\n",
        b"# Do not edit while training.\n",
        b"# ask someone@generated.example\n",
        b'"""Doc."""\nx = """\n# @generated\n"""\n',
        b"#" * 3000 + b"\n# @generated\n",
    ],
)
def test_other_files_are_not_generated(head):
    assert not is_generated(head)
