"""The numbers of a run."""

from __future__ import annotations

import pytest

from report import samples
from tpu_migrate.report.summary import counted, label, needs_a_person, percent, summarize


def test_every_finding_is_counted_once():
    summary = summarize(samples.usual())
    assert (summary.rewritten_safe, summary.rewritten_review) == (1, 1)
    assert (summary.open_manual, summary.open_refused) == (2, 1)
    assert summary.suppressed == 1
    assert (summary.scanned, summary.affected, summary.changed) == (12, 2, 1)
    assert (summary.references, summary.references_rewritten) == (7, 2)
    assert summary.rewritten + summary.open + summary.suppressed == len(samples.usual().findings)


@pytest.mark.parametrize(
    ("result", "clean"),
    [
        (samples.clean(), True),
        (samples.done(), True),
        (samples.usual(), False),
        (samples.usual(applied=True), False),
        (samples.run(samples.file(samples.safe())), False),
        (samples.run(samples.file(samples.review()), applied=True), True),
        (samples.run(samples.file(samples.suppressed(), new=samples.BEFORE)), True),
        (samples.run(samples.file()), False),
    ],
)
def test_clean_means_that_nothing_is_left(result, clean):
    assert summarize(result).clean is clean


@pytest.mark.parametrize(
    ("finding", "word", "person"),
    [
        (samples.safe(), "safe", False),
        (samples.review(), "review", True),
        (samples.manual(), "manual", True),
        (samples.refused(), "not rewritten", True),
        (samples.suppressed(), "suppressed", False),
    ],
)
def test_a_label_says_what_is_asked(finding, word, person):
    assert label(finding) == word
    assert needs_a_person(finding) is person


def test_a_share_is_not_rounded_up_to_all():
    assert [percent(share) for share in (None, 0.0, 0.29, 0.9999, 1.0)] == [
        "-",
        "0 %",
        "29 %",
        "99 %",
        "100 %",
    ]


def test_numbers_agree_with_their_noun():
    assert [counted(n, "file") for n in (0, 1, 2, 1200)] == ["0 files", "1 file", "2 files", "1,200 files"]
    assert counted(2, "entry", "entries") == "2 entries"
