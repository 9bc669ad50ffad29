"""Library rules: nothing of Optimum TPU is passed over, and what no rule is about is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from python.check import migrate
from rules.test_inventory import FORMS

from tpu_migrate.config import Settings
from tpu_migrate.findings import Outcome
from tpu_migrate.pipeline import run
from tpu_migrate.rules import load_rules

LIST = Path(__file__).parent.parent / "data" / "optimum_tpu_symbols.txt"
SYMBOLS = [line for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
BOOK = load_rules()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_nothing_of_optimum_tpu_is_passed_over(form):
    for start in range(0, len(SYMBOLS), 40):
        lines = []
        for symbol in SYMBOLS[start : start + 40]:
            statement, use = form(*symbol.rpartition(".")[::2])
            lines += [f"def f{len(lines)}():", f"    {statement}", f"    return {use}(1), {use}", ""]
        source = "\n".join(lines)
        result = migrate(source)
        new = result.new.decode()
        open_lines = {f.line for f in result.findings if f.outcome is Outcome.OPEN}
        for number, line in enumerate(new.splitlines(), 1):
            if "return" in line and "optimum" in line:
                assert number in open_lines, line
        assert len({f.line for f in result.findings}) >= len(SYMBOLS[start : start + 40])
        assert migrate(new).new == result.new


def test_an_unused_import_of_optimum_tpu_goes():
    assert migrate("import optimum.tpu.modeling\nimport os\n").new == b"import os\n"


@pytest.mark.parametrize(
    "source",
    [
        "from transformers import AutoTokenizer\n\ntokenizer = AutoTokenizer.from_pretrained(name)\n",
        "import transformers\n",
        "import accelerate\nimport lightning as L\nimport diffusers.utils\n",
        "from transformers import TrainingArguments\n\n\ndef train(arguments: TrainingArguments): ...\n",
        "from transformers import TrainingArguments\n\nTrainingArguments('out', torch_compile=False)\n",
        "from lightning.pytorch import Trainer\n\nTrainer(accelerator='gpu')\nfits = Trainer.fit\n",
        "from transformers.utils import is_torch_tpu_available\n\nprint(is_torch_tpu_available())\n",
        "from optimum.intel import OVModel\n\nOVModel()\n",
    ],
)
def test_what_no_rule_is_about_is_left_alone(source):
    result = migrate(source)
    assert result.new.decode() == source
    assert result.findings == []


def test_names_are_followed_where_they_lead_to_a_rule():
    for name in ("torch_xla.anything", "transformers", "transformers.utils", "optimum.tpu.x.y", "lightning"):
        assert BOOK.follows(name), name
    for name in ("transformers.AutoTokenizer", "accelerate.utils.gather", "optimum.intel", "torch"):
        assert not BOOK.follows(name), name


def test_files_about_no_tpu_are_not_looked_at():
    for data in (b"from transformers import Trainer\noutput = 1\n", b"from accelerate import Accelerator\n"):
        assert not BOOK.mentions(data)
    for data in (b"from optimum.tpu import x", b"from optimum import tpu", b"f(tpu_cores=8)", b"f('tpu')"):
        assert BOOK.mentions(data)


def test_a_re_export_of_the_library_is_followed(tmp_path):
    (tmp_path / "compat.py").write_text("from transformers import AutoTokenizer, is_torch_xla_available\n")
    (tmp_path / "train.py").write_text("from compat import is_torch_xla_available as xla\n\nprint(xla())\n")
    result = run([tmp_path], Settings(), apply=True)
    assert [f.code for file in result.files for f in file.findings] == ["HF101"]
    assert "is_torch_tpu_available()" in (tmp_path / "train.py").read_text()
    assert not [f for file in run([tmp_path], Settings(), apply=True).files for f in file.findings]


FIELDS = [
    ("A('o', tpu_num_cores=8, tpu_metrics_debug=True)", "A('o')"),
    ("A(tpu_num_cores=8,)", "A()"),
    ("A('o', bf16=True, tpu_metrics_debug=True, tpu_num_cores=n())", "A('o', bf16=True)"),
    ("A('o', debug='tpu_metrics_debug', tpu_num_cores=8)", "A('o')"),
    ("A(tpu_num_cores=8, output_dir='o')", "A(output_dir='o')"),
    ("A(\n    tpu_num_cores=8,\n    debug='tpu_metrics_debug'\n)", "A(\n)"),
    ("dict(optim='adamw_torch_xla', tpu_num_cores=8)", "dict(optim='adamw_torch')"),
]


@pytest.mark.parametrize(("before", "after"), FIELDS)
def test_fields_are_taken_out_together(before, after):
    head = "from transformers import TrainingArguments as A\n\na = "
    assert migrate(f"{head}{before}\n").new.decode() == f"{head}{after}\n"
