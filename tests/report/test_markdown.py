"""Markdown for pull requests."""

from __future__ import annotations

import html

from markdown_it import MarkdownIt

from report import samples
from tpu_migrate.report import markdown


def tables(text: str) -> list[list[list[str]]]:
    """The cells of all tables, as a reader sees them: [table][row][cell]."""
    found: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and token.level >= 3:
            found[-1][-1].append("".join(child.content for child in token.children))
    return found


def test_the_report_names_numbers_and_places():
    text = markdown.render(samples.usual())
    counts, programs, opened, reviews = tables(text)
    assert counts[1] == ["rewritten", "2", "1 safe, 1 to review"]
    assert counts[2] == ["open", "3", "2 manual, 1 not rewritten"]
    assert programs[1][1] == "multi-process"
    assert [row[1] for row in opened[1:]] == ["PY001", "TX702", "TX201"]
    assert [row[1] for row in reviews[1:]] == ["TX201"]
    assert "### Open (3)" in text
    assert r"torch\_xla references rewritten: 2 of 7 (28 %)." in text


def test_the_label_is_not_said_twice():
    finding = samples.refused(message="not rewritten: its value is used. Remove it by hand.")
    assert "not rewritten: not rewritten" not in markdown.render(samples.run(samples.file(finding)))


def test_a_clean_run_is_short():
    text = markdown.render(samples.clean())
    assert "12 files scanned, 0 would change." in text
    assert "###" not in text


def test_hostile_text_stays_in_its_cell():
    _, programs, opened, reviews = tables(markdown.render(samples.hostile()))
    assert [len(row) for row in programs] == [3, 3]
    assert [len(row) for row in opened] == [4, 4]
    shown = opened[1][3].removeprefix("<code>").removesuffix("</code>")
    assert shown.startswith("]]> | `x` ``y`` <b>&amp;</b> [red]@user #12")
    assert r"\x1b[31mX\x07\x9b \u202e" in shown
    assert "<br>second" in opened[1][2]
    assert len(reviews[1]) == 4


def test_text_is_not_rendered_as_markup():
    for text in (
        "**b** _i_ `c` ~~s~~",
        "[a](http://x)",
        "<img src=x>",
        "![i](j)",
        "a | b",
        "$x$",
        "&lt;",
        "\\*",
    ):
        rendered = MarkdownIt().render(markdown.plain(text))
        assert html.unescape(rendered) == f"<p>{text}</p>\n"


def test_nobody_is_notified_and_no_issue_is_linked():
    assert markdown.plain("@torch.no_grad and #12") == "@<!-- -->torch.no&#95;grad and #<!-- -->12"
    assert markdown.code("@torch.no_grad()") == "<code>@torch.no&#95;grad&#40;&#41;</code>"


def test_a_long_report_is_cut_at_a_row():
    findings = [samples.manual(line=line, message=f"number {line}") for line in range(1, 900)]
    text = markdown.render(samples.run(samples.file(*findings)), limit=20_000)
    assert len(text) < 20_000
    assert "### Open (899)" in text
    rows = tables(text)[2][1:]
    assert f"{899 - len(rows)} more rows left out" in text
    assert all(len(row) == 4 for row in rows)
