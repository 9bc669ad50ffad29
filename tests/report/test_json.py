"""The JSON report, and its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from report import samples
from tpu_migrate import __version__
from tpu_migrate.report import json as json_report

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text("utf-8"))
RUNS = {
    "usual": samples.usual(),
    "applied": samples.usual(applied=True),
    "done": samples.done(),
    "clean": samples.clean(),
    "hostile": samples.hostile(),
    "notebook": samples.run(samples.file(samples.manual(cell=2))),
}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", RUNS)
def test_every_report_is_as_the_schema_says(name):
    report = json.loads(json_report.render(RUNS[name]))
    jsonschema.Draft202012Validator(SCHEMA).validate(report)


def test_the_schema_describes_every_field_and_no_other():
    def check(schema, value):
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
        if isinstance(value, dict):
            assert schema["additionalProperties"] is False
            assert set(value) <= set(schema["properties"])
            assert set(schema["required"]) == set(schema["properties"]) - {"cell"}
            for key, item in value.items():
                check(schema["properties"][key], item)
        elif isinstance(value, list) and value:
            check(schema["items"], value[0])

    check(SCHEMA, json_report.report(RUNS["usual"]))


def test_a_finding_has_the_named_fields():
    (finding,) = json_report.report(samples.run(samples.file(samples.safe())))["findings"]
    assert finding == {
        "code": "TX101",
        "name": "xla-device",
        "path": "train.py",
        "line": 3,
        "column": 10,
        "end_line": 3,
        "end_column": 25,
        "safety": "safe",
        "outcome": "rewritten",
        "message": 'xm.xla_device() is torch.device("tpu") now.',
        "before": "xm.xla_device()",
        "after": 'torch.device("tpu")',
    }


def test_the_head_names_version_and_tool():
    report = json_report.report(samples.usual())
    assert list(report) == ["version", "tool", "summary", "programs", "findings"]
    assert report["version"] == 1
    assert report["tool"] == {"name": "tpu-migrate", "version": __version__}
    assert report["programs"][0]["kind"] == "multi-process"
    assert report["summary"]["references"] == {"total": 7, "rewritten": 2, "share": 0.2857}


def test_findings_stand_in_the_order_of_the_files():
    findings = json_report.report(samples.usual())["findings"]
    assert [(found["path"], found["line"]) for found in findings] == [
        ("old/train.py", 41),
        ("train.py", 3),
        ("train.py", 5),
        ("train.py", 6),
        ("train.py", 9),
        ("train.py", 20),
    ]


def test_the_text_is_ascii_and_loses_nothing():
    text = json_report.render(samples.hostile())
    assert text.isascii()
    assert samples.HOSTILE in [found["message"] for found in json.loads(text)["findings"]]


def test_the_documented_report_is_one():
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    jsonschema.Draft202012Validator(SCHEMA).validate(shown)
    program = replace(samples.PROGRAM, files=("train.py",))
    result = samples.run(samples.file(samples.safe(), references=2, rewritten=2), programs=[program])
    assert json_report.report(result) == shown
