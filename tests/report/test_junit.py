"""JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from report import samples
from tpu_migrate.report import junit


def parse(result) -> ElementTree.Element:
    return ElementTree.fromstring(junit.render(result).encode("utf-8"))


def test_a_file_with_something_open_fails():
    root = parse(samples.usual(applied=True))
    assert root.attrib["tests"] == "2"
    assert root.attrib["failures"] == "2"
    failure = root.find(".//testcase[@name='train.py']/failure")
    assert failure.attrib == {"message": "2 open", "type": "open"}
    assert "train.py:6:5: TX702 manual: Write torch.accelerator" in failure.text
    assert "TX101" not in failure.text


def test_a_dry_run_fails_on_what_would_change():
    root = parse(samples.run(samples.file(samples.safe())))
    failure = root.find(".//failure")
    assert failure.attrib == {"message": "0 open, and the file would change", "type": "would-change"}
    assert "TX101" in failure.text


def test_a_file_that_is_done_passes_and_names_what_to_review():
    root = parse(samples.run(samples.file(samples.safe(), samples.review()), applied=True))
    assert root.attrib["failures"] == "0"
    assert root.find(".//testcase/failure") is None
    assert root.find(".//testcase/system-out").text.startswith(
        "1 place to review\ntrain.py:5:1: TX201 review:"
    )


def test_a_clean_run_has_a_passing_case():
    root = parse(samples.clean())
    assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")


def test_hostile_text_stays_text():
    root = parse(samples.hostile())
    text = "".join(root.itertext())
    assert "]]> | `x`" in text
    assert r"\x1b[31mX\x07\x9b \u202e" in text
    assert "\U0001f600" in text
    assert root.find(".//testcase").attrib["name"] == r"a|b`c<i>\udcff.py"
