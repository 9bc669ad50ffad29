"""Notebooks: cells are rewritten as one program, and nothing but the lines that change is touched."""

from __future__ import annotations

import functools
import json
import re
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpu_migrate.formats
from tpu_migrate.config import Settings
from tpu_migrate.findings import FileResult, Outcome
from tpu_migrate.formats.magics import Kind, cell_magic, find_escapes
from tpu_migrate.formats.notebook import NOTEBOOK, rewrite_notebook
from tpu_migrate.formats.notebook_json import NotebookError, read_notebook
from tpu_migrate.formats.pip_lines import NotSimple, is_install, migrated_install
from tpu_migrate.pipeline import migrate_source, run
from tpu_migrate.programs import survey
from tpu_migrate.python.match import Matcher
from tpu_migrate.python.rewrite import Engine
from tpu_migrate.rules import load_rules, rules_directory

FIXTURE = Path(__file__).parents[2] / "fixtures" / "notebook_colab"
IMPORT = "import torch\nimport torch_xla.core.xla_model as xm"


@functools.cache
def matcher() -> Matcher:
    return Matcher(load_rules())


def migrate(data: str | bytes, options: Settings | None = None, applied: bool = True) -> FileResult:
    data = data.encode() if isinstance(data, str) else data
    engine = Engine(matcher(), options or Settings(), survey([]), rules_directory() / "helpers", applied)
    return rewrite_notebook(engine, "train.ipynb", data).result


def notebook(*cells: str | dict[str, object], **dump: object) -> str:
    """A notebook of code cells as Jupyter writes it; a mapping is a cell in full."""
    full = [
        cell
        if isinstance(cell, dict)
        else {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [],
            "source": cell.splitlines(keepends=True),
        }
        for number, cell in enumerate(cells, 1)
    ]
    content = {
        "cells": full,
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, **{"indent": 1, "ensure_ascii": False, **dump}) + "\n"


def markdown(text: str) -> dict[str, object]:
    return {"cell_type": "markdown", "id": "text", "metadata": {}, "source": text}


def sources(result: FileResult) -> list[str]:
    content = json.loads(result.new)
    cells = content["cells"] if "cells" in content else content["worksheets"][0]["cells"]
    return ["".join(cell.get("source", cell.get("input"))) for cell in cells]


def assert_cells(before: list[str], after: list[str], options: Settings | None = None) -> FileResult:
    """What the cells become; also that the rest stays, that it is valid, and that a second run is idle."""
    old = notebook(*before)
    result = migrate(old, options)
    assert sources(result) == after
    assert result.new.decode() == notebook(*after)
    again = migrate(result.new, options)
    assert again.new == result.new
    still = [(f.code, f.cell, f.line) for f in result.findings if f.outcome is not Outcome.REWRITTEN]
    assert [(f.code, f.cell, f.line) for f in again.findings] == still
    return result


def places(result: FileResult) -> list[tuple[str, int | None, int, str]]:
    return [(f.code, f.cell, f.line, f.outcome.value) for f in result.findings]


# what is left alone


def test_a_notebook_without_torch_xla_stays_byte_for_byte():
    text = notebook("import torch\n!ls\n%matplotlib inline", "torch.ones(2).to('cuda')")
    assert migrate(text).new == text.encode()
    assert migrate(text).findings == []


def test_noise_in_outputs_is_not_taken_for_code():
    picture = {"output_type": "display_data", "data": {"image/png": "iVBOxlaTPU"}, "metadata": {}}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [picture], "source": "plot()"}
    assert migrate(notebook(cell)).findings == []


CODE = st.lists(
    st.sampled_from(
        [
            "import torch",
            "x = 1",
            "!ls 'a",
            "%time x",
            "%%time",
            "files = !ls",
            "x?",
            "if x:\n    !ls",
            "'''",
            ")",
            "é = '\\u2028'",
        ]
    ),
    max_size=4,
).map("\n".join)


@given(
    cells=st.lists(CODE | st.text(max_size=30), max_size=4),
    indent=st.sampled_from([None, 1, 2, "\t"]),
    ascii_only=st.booleans(),
    one_string=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_whatever_the_cells_hold_they_come_back(cells, indent, ascii_only, one_string):
    full = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "source": text if one_string else text.splitlines(True),
        }
        for text in cells
    ]
    # surrogates that only escapes can spell make no file
    text = notebook(*full, indent=indent, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "replace")
    assert migrate(data).new == data


@given(
    before=st.lists(CODE, max_size=3),
    after=st.lists(CODE, max_size=3),
    indent=st.sampled_from([None, 1, 2]),
    ascii_only=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_cells_without_torch_xla_stay_byte_for_byte_beside_one_with_it(before, after, indent, ascii_only):
    text = notebook(*before, IMPORT + "\nxm.mark_step()", *after, indent=indent, ensure_ascii=ascii_only)
    result = migrate(text)
    # the magics of random cells may lack what they need to be Python; the cell in the middle has to change
    assert result.changed
    old, new = read_notebook(text), read_notebook(result.new.decode())
    changed = len(before)
    for number, (ours, theirs) in enumerate(zip(old.cells, new.cells, strict=True)):
        if number != changed:
            assert text[ours.span.start : ours.span.end] == new.text[theirs.span.start : theirs.span.end]
    ours, theirs = old.place(old.cells[changed]).span, new.place(new.cells[changed]).span
    assert text[: ours.start] == new.text[: theirs.start]
    assert text[ours.end :] == new.text[theirs.end :]


@pytest.mark.parametrize(
    "source",
    [
        "{",
        '{"cells": [',
        '{"cells": {}}',
        "[1]",
        '{"cells": [1, {"cell_type": "code"}]} x',
        "",
        '"torch_xla"',
    ],
)
def test_what_is_no_notebook_is_reported(source):
    data = (source + "  ").encode() + b"torch_xla"
    result = migrate(data)
    assert result.new == data
    assert [f.code for f in result.findings] == ["PY001"]


def test_bytes_that_are_not_utf8_are_reported():
    result = migrate(b'{"cells": ["torch_xla \xff"]}')
    assert [(f.code, f.outcome) for f in result.findings] == [("PY001", Outcome.OPEN)]
    assert "0xff" in result.findings[0].message


def test_cells_of_odd_shapes_are_passed_over():
    odd = '{"cells": [1, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 3}, {"cell_type": "code", "source": [1]}], "metadata": []}'
    assert migrate(odd + " ").new.decode() == odd + " "


def test_another_vendors_notebook_is_left_alone():
    text = notebook("import torch_neuronx\n" + IMPORT, "xm.mark_step()")
    result = migrate(text)
    assert result.new == text.encode()
    assert [f.code for f in result.findings] == ["VN001"]


# what changes


def test_cells_are_one_program():
    result = assert_cells(
        [
            IMPORT,
            "device = xm.xla_device()\ndevice",
            "x = torch.ones(2, device=device)\nxm.mark_step()\nprint(x)",
        ],
        [
            "import torch",
            'device = torch.device("tpu")\ndevice',
            "x = torch.ones(2, device=device)\nprint(x)",
        ],
    )
    assert places(result) == [("TX101", 2, 1, "rewritten"), ("TX201", 3, 2, "rewritten")]


def test_before_apply_findings_give_the_old_lines():
    text = notebook("# one\n" + IMPORT, "\n\nxm.mark_step()")
    assert [(f.cell, f.line) for f in migrate(text, applied=False).findings] == [(2, 3)]


def test_markdown_cells_count():
    text = notebook(markdown("# Title"), IMPORT, markdown("text"), "xm.mark_step()")
    assert [f.cell for f in migrate(text).findings] == [4]


def test_magics_come_back_as_they_were():
    magic = (
        "%matplotlib inline\n!ls -la \\\n    /content\nfiles = !ls\nif files:\n    !rm -rf x\n    %cd /tmp\n"
        "xm?\n?xm.mark_step\nout = %sql select 1\n!echo \"it's\"\nx = 3 \\\n  % 2\ntext = '''\n!not a command\n'''"
    )
    # xm is asked about: its import has to stay
    result = migrate(notebook(IMPORT, magic, "x = 1\nxm.mark_step()"))
    assert sources(result)[1:] == [magic, "x = 1"]


def test_statements_around_magics_in_a_block():
    assert_cells(
        [IMPORT, "def run():\n    xm.mark_step()\n    !ls\n\nif True:\n    xm.mark_step()\n    %cd x"],
        ["import torch", "def run():\n    !ls\n\nif True:\n    %cd x"],
    )


def test_cell_magics_that_run_python_keep_their_body():
    result = assert_cells(
        ["%%capture\n" + IMPORT, "%%time\nx = 1\nxm.mark_step()"],
        ["%%capture\nimport torch", "%%time\nx = 1"],
    )
    assert places(result) == [("TX201", 2, 2, "rewritten")]


def test_a_timed_statement_is_python():
    result = assert_cells(
        [
            IMPORT,
            "%time device = xm.xla_device()\nfor _ in ():\n    %time xm.mark_step()\n%time xm.mark_step()\n3",
        ],
        ["import torch", '%time device = torch.device("tpu")\nfor _ in ():\n    %time pass\n3'],
    )
    assert [(f.line, f.column) for f in result.findings if f.code == "TX101"] == [(1, 16)]


def test_a_name_that_a_magic_uses_stays():
    text = notebook(IMPORT, "%timeit -n 10 xm.mark_step()", "xm.mark_step()")
    result = migrate(text)
    assert sources(result)[:2] == [IMPORT, "%timeit -n 10 xm.mark_step()"]
    assert [f.message for f in result.findings if f.code == "TX990"] == [
        "kept: a magic command, or a cell that isn't read as Python, still uses it"
    ]


def test_an_import_that_stays_names_the_cells_that_use_it():
    result = migrate(notebook(IMPORT, "x = 1\nxm.nobody_knows_this()"))
    message = next(f.message for f in result.findings if f.code == "TX990")
    assert re.fullmatch(r"kept: cell 2 line 3 still uses it", message)


def test_cells_in_other_languages_stay_and_are_reported():
    writes = "%%writefile train.py\nimport torch_xla.core.xla_model as xm\n"
    result = migrate(notebook(IMPORT, writes, "%%bash\necho 'it", "xm.mark_step()"))
    assert sources(result) == ["import torch", writes, "%%bash\necho 'it", ""]
    assert places(result) == [("NB103", 2, 2, "open"), ("TX201", 4, 1, "rewritten")]


def test_a_cell_that_cannot_be_parsed_costs_only_itself():
    broken = "print 'torch_xla'"
    result = migrate(notebook(IMPORT, broken, "xm.mark_step()\nawait thing()"))
    assert sources(result) == ["import torch", broken, "await thing()"]
    assert places(result) == [("PY001", 2, 1, "open"), ("TX201", 3, 1, "rewritten")]


def test_helpers_stand_behind_the_imports():
    result = migrate(
        notebook(
            "!pip list",
            IMPORT,
            "import torch_xla.distributed.xla_multiprocessing as xmp\ndef f(i):\n    xm.master_print(i)\n\nxmp.spawn(f)",
        )
    )
    first, second, third = sources(result)
    assert first == "!pip list"
    assert "xla" not in second + third
    assert (second + third).count("def master_print(") == 1
    assert "jupyter nbconvert" in next(f.message for f in result.findings if f.code == "TX303")


def test_helpers_of_a_program_that_begins_without_imports():
    text = notebook(
        "print('hi')\ndef g():\n    pass",
        "def f(i):\n    import torch_xla.core.xla_model as xm\n    xm.master_print(i)\nmp.spawn(f)",
    )
    result = migrate(text)
    assert result.changed
    assert "def master_print(" in sources(result)[0]
    assert [f.code for f in result.findings if f.outcome is Outcome.OPEN] == []
    compile("\n".join(sources(result)), "cells", "exec")


def test_a_todo_comment_and_the_lines_after_it():
    result = assert_cells(
        ["import os\nos.environ['XLA_USE_BF16'] = '1'\nx = 1"],
        ["import os\n# TODO(tpu-migrate EN101): XLA_USE_BF16: Delete it and choose: model.to(torch.bfloat16), "
         "torch.autocast('tpu', dtype=torch.bfloat16), or float32 throughout\nos.environ['XLA_USE_BF16'] = '1'\nx = 1"],
    )  # fmt: skip
    assert places(result) == [("EN101", 1, 3, "open")]


def test_environment_magics_follow_the_rules_for_variables():
    result = migrate(notebook("%env PJRT_DEVICE=TPU\n%env OTHER=1\n%env XLA_USE_BF16=1"))
    lines = sources(result)[0].split("\n")
    assert lines[0] == "%env OTHER=1"
    assert lines[1].startswith("# TODO(tpu-migrate EN101): ")
    assert lines[2] == "%env XLA_USE_BF16=1"
    assert places(result) == [("EN110", 1, 1, "rewritten"), ("EN101", 1, 3, "open")]
    assert migrate(result.new).new == result.new


def test_variables_that_shell_lines_set_are_reported():
    result = migrate(notebook("x = 1\n!XLA_USE_BF16=1 python train.py", "%%bash\nexport XLA_USE_BF16=1\n"))
    assert sources(result)[1] == "%%bash\nexport XLA_USE_BF16=1\n"
    assert places(result) == [("EN101", 1, 3, "open"), ("EN101", 2, 2, "open")]


def test_dropped_lines_leave_no_block_empty():
    lines = "    !curl https://x.org/env-setup.py -o env-setup.py\n    !python env-setup.py\n"
    assert_cells(
        [f"{IMPORT}\nif colab:\n{lines}x = 1", f"if colab:\n    # set up\n    xm.mark_step()\n{lines}", f"if a:\n    b()\n{lines}    c()"],
        ["import torch\nif colab:\n    pass\nx = 1", "if colab:\n    # set up\n    pass\n", "if a:\n    b()\n    c()"],
    )  # fmt: skip


def test_suppression_and_settings_are_kept():
    line = "!pip install torch_xla  # tpu-migrate: ignore[NB101]"
    result = migrate(notebook(line))
    assert sources(result) == [line]
    assert [f.outcome for f in result.findings] == [Outcome.SUPPRESSED]
    assert migrate(notebook("!pip install torch_xla"), Settings(ignore=("NB",))).findings == []
    assert sources(migrate(notebook("!pip install torch_xla"), Settings(safe_only=True))) == [
        "!pip install torch_xla"
    ]


def test_prose_and_outputs_are_reported_and_kept():
    output = {"output_type": "stream", "name": "stdout", "text": ["device(type='xla')\n", "xla:0"]}
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [output], "source": ["x"]}
    text = notebook(markdown("We use\n`torch_xla`."), cell)
    result = migrate(text)
    assert result.new == text.encode()
    assert places(result) == [("NB201", 1, 2, "open"), ("NB202", 2, 1, "open")]


# how it is written


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_changed_cells_are_spelt_as_the_file_spells(indent, ascii_only):
    before = [IMPORT + "\nname = 'Grüße 🎉'", "print('é', xm.xla_device())"]
    after = ["import torch\nname = 'Grüße 🎉'", "print('é', torch.device('tpu'))"]
    result = migrate(notebook(*before, indent=indent, ensure_ascii=ascii_only))
    assert result.new.decode() == notebook(*after, indent=indent, ensure_ascii=ascii_only)


def test_compact_json_and_sources_in_one_string():
    cells = [
        {"source": text, "cell_type": "code", "metadata": {}}
        for text in (IMPORT + "\n", 'x=1\r\nxm.mark_step()\r\ny="a\tb"')
    ]
    text = notebook(*cells, indent=None, separators=(",", ":"))
    after = text.replace("import torch_xla.core.xla_model as xm\\n", "").replace("xm.mark_step()\\r\\n", "")
    assert migrate(text).new.decode() == after


def test_lines_that_stay_keep_their_escapes():
    text = notebook(IMPORT, "a = '<é>'\nxm.mark_step()\nb = '/'", "print('<', xm.xla_device())")
    for character, escape in (("<", "\\u003c"), (">", "\\u003e"), ("é", "\\u00E9"), ("/", "\\/")):
        text = text.replace(character, escape)
    result = migrate(text)
    assert "\"a = '\\u003c\\u00E9\\u003e'\\n\",\n    \"b = '\\/'\"" in result.new.decode()
    assert "\"print('\\u003c', torch.device('tpu'))\"" in result.new.decode()


def test_a_byte_order_mark_stays():
    data = b"\xef\xbb\xbf" + notebook(IMPORT, "xm.mark_step()").encode()
    result = migrate(data)
    assert result.changed
    assert result.new.startswith(b"\xef\xbb\xbf{")


def test_nbformat_3_with_its_worksheets():
    cells = [
        {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["T"]},
        {
            "cell_type": "code",
            "collapsed": False,
            "input": [IMPORT + "\n", "xm.mark_step()"],
            "language": "python",
            "metadata": {},
            "outputs": [],
        },
        {
            "cell_type": "code",
            "collapsed": False,
            "input": ["library(torch_xla)"],
            "language": "R",
            "metadata": {},
            "outputs": [],
        },
    ]
    text = json.dumps(
        {
            "metadata": {"name": ""},
            "nbformat": 3,
            "nbformat_minor": 0,
            "worksheets": [{"cells": cells, "metadata": {}}],
        },
        indent=1,
    )
    result = migrate(text)
    assert sources(result) == ["T", "import torch", "library(torch_xla)"]
    assert [(f.code, f.cell) for f in result.findings] == [("TX201", 2), ("NB103", 3)]


@pytest.mark.parametrize("version", [3, 4])
def test_the_result_is_valid_by_nbformat(version):
    nbformat = pytest.importorskip("nbformat")
    content = nbformat.reads(
        notebook(IMPORT, "xm.mark_step()", markdown("# é"), "print(xm.xla_device())"), as_version=4
    )
    text = nbformat.writes(content, version=version)
    result = migrate(text)
    assert result.changed
    again = nbformat.reads(result.new.decode(), as_version=version)
    nbformat.validate(again)
    # nbformat writes the very same bytes
    assert nbformat.writes(again, version=version).rstrip("\n") == result.new.decode().rstrip("\n")


# magics and installs by themselves


def test_escapes_are_found_at_logical_line_starts_only():
    text = "x = (1\n% 2)\n%a\ns = '''\n!b\n'''\nif x:\n  !c \\\n    d\ny = %e\n# !pip install torch_xla\nz?\n%time f()\n"
    found = [(e.first, e.last, e.kind, e.head, e.command) for e in find_escapes(text)]
    assert found == [
        (2, 2, Kind.LINE, "", "%a"),
        (7, 8, Kind.LINE, "", "!c \\\n    d"),
        (9, 9, Kind.ASSIGNED, "y = ", "%e"),
        (10, 10, Kind.COMMENT, "# ", "!pip install torch_xla"),
        (11, 11, Kind.LINE, "", "z?"),
        (12, 12, Kind.TIMED, "%time ", "f()"),
    ]
    assert find_escapes("x = a % b\ny = 1 if a else b\nz = '?'") == []


@pytest.mark.parametrize(
    ("text", "magic"),
    [("\n%%bash\nls", "bash"), ("%%time\nx", ""), ("%%time\n%%sh", "sh"), ("x\n%%bash", ""), ("%%\nx", "%%")],
)
def test_cell_magic(text, magic):
    assert cell_magic(text) == magic


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("!pip install torch_xla", "!pip install torch_tpu"),
        ("%pip install -q 'torch_xla[tpu]==2.5.0' -f https://storage.googleapis.com/libtpu-releases/index.html", "%pip install -q torch_tpu"),
        ("! pip3 install -U torch==2.5 torch-xla[tpu]~=2.5 transformers", "! pip3 install -U torch torch_tpu transformers"),
        ("!python -m pip install --find-links=https://x/libtpu-wheels torch_xla libtpu-nightly > /dev/null", "!python -m pip install torch_tpu > /dev/null"),
        ("!pip install cloud-tpu-client==0.10 https://x.org/torch-1.9-cp37.whl https://x.org/torch_xla-1.9-cp37.whl", "!pip install torch torch_tpu"),
        ("!uv pip install torch-geometric torch_xla  # xla", "!uv pip install torch-geometric torch_tpu  # xla"),
    ],
)  # fmt: skip
def test_plain_installs(before, after):
    assert migrated_install(before) == after


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("!pip install torch_xla && python x.py", "several commands"),
        ("!pip install torch_xla; ls", "several commands"),
        ("!pip install torch_xla[tpu] torchvision==0.20", "torchvision is pinned"),
        ("!pip install https://x.org/torch_xla-{V}-cp37.whl", "variables"),
        ("!pip install git+https://github.com/pytorch/xla", "source"),
        ("!pip install \\\n  torch_xla", "several lines"),
        ("!pip install https://x.org/cuda/11/torch_xla-2.0.whl", "GPUs"),
    ],
)
def test_installs_that_are_left(line, why):
    assert is_install(line)
    with pytest.raises(NotSimple, match=why):
        migrated_install(line)


NB_EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in load_rules().rules
    if rule.code.startswith("NB")
    for number, example in enumerate(rule.examples)
]


@pytest.mark.parametrize(("rule", "example"), NB_EXAMPLES)
def test_the_examples_of_the_rules(rule, example):
    before, after = (
        text.lstrip("\n").rstrip("\n")
        for text in (example.before or example.keep, example.after or example.keep)
    )
    if example.file == "markdown.ipynb":
        text = notebook(markdown(before))
    elif example.file == "outputs.ipynb":
        output = {"output_type": "stream", "name": "stdout", "text": before}
        text = notebook({"cell_type": "code", "metadata": {}, "outputs": [output], "source": ""})
        after = ""
    else:
        text = notebook(before)
    result = migrate(text, Settings(comments=False))
    assert sources(result) == [after]
    assert {f.code for f in result.findings} == {rule.code}
    if example.keep:
        assert all(f.outcome is Outcome.OPEN for f in result.findings)
        assert example.file != "cell.ipynb" or "# TODO(tpu-migrate" in sources(migrate(text))[0]


# whole files


def test_the_fixture():
    result = migrate((FIXTURE / "before" / "finetune.ipynb").read_bytes())
    assert result.new.decode() == (FIXTURE / "after" / "finetune.ipynb").read_text("utf-8")
    found = [
        {
            "code": f.code,
            "cell": f.cell,
            "line": f.line,
            "outcome": f.outcome.value,
            "symbol": f.symbol,
            "message": f.message,
        }
        for f in result.findings
    ]
    assert found == json.loads((FIXTURE / "findings.json").read_text("utf-8"))
    again = migrate(result.new)
    assert again.new == result.new
    assert len(again.findings) == sum(f.outcome is not Outcome.REWRITTEN for f in result.findings)


def test_from_end_to_end(tmp_path, monkeypatch):
    formats = tuple(entry for entry in tpu_migrate.formats.FORMATS if entry.name != "notebook")
    monkeypatch.setattr(tpu_migrate.formats, "FORMATS", (*formats, NOTEBOOK))
    (tmp_path / "train.ipynb").write_bytes((FIXTURE / "before" / "finetune.ipynb").read_bytes())
    (tmp_path / "broken.ipynb").write_text("{torch_xla", "utf-8")
    (tmp_path / "plain.ipynb").write_text(notebook("import torch"), "utf-8")
    result = run([tmp_path], Settings(), apply=True)
    assert (tmp_path / "train.ipynb").read_bytes() == (FIXTURE / "after" / "finetune.ipynb").read_bytes()
    assert [file.path for file in result.changed] == ["train.ipynb"]
    assert {f.code for f in result.findings if f.path == "broken.ipynb"} == {"PY001"}


def test_percent_scripts_are_python():
    script = textwrap.dedent("""\
        # %% [markdown]
        # # Title

        # %%
        import torch
        import torch_xla.core.xla_model as xm

        # %%
        # !pip install something
        # %time
        device = xm.xla_device()
        device
        """)
    after = script.replace("import torch_xla.core.xla_model as xm\n", "").replace(
        "xm.xla_device()", 'torch.device("tpu")'
    )
    assert migrate_source(script, path="notebook.py").new.decode() == after


def test_reading_takes_little_more_than_parsing_json():
    picture = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo/" * 20_000}, "metadata": {}}
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [picture], "source": ["x = 1\n"] * 10}
        for _ in range(20)
    ]
    text = notebook(*cells)

    def best(function) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            function(text)
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(read_notebook) < 2 * best(json.loads)


def test_errors_say_where():
    with pytest.raises(NotebookError, match="not valid JSON") as raised:
        read_notebook('{\n "cells": [\n  oops]}')
    assert (raised.value.line, raised.value.column) == (3, 3)
