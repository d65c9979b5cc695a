"""Report pages: one file that needs nothing else, shows the numbers of the table, and escapes what people type."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, report
from fastpriv.report import Details, Pictures, TextTable, page

pytest.importorskip("matplotlib")

NASTY = "<script>alert('1')</script> & \"城市\" \x07"
VOID = {"meta", "img"}


class Page(HTMLParser):
    """Tags, what the page would load or link to, its texts, and whether every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.texts, self.alternatives, self.open = [], [], [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag == "img":
            self.alternatives.append(dict(attrs)["alt"])
        if tag == "th":
            assert dict(attrs)["scope"] in ("row", "col")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)


def read(path):
    """The page, which must need nothing but itself and the files beside it."""
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert not {"script", "link", "iframe", "object", "base", "form"} & set(page.tags)
    assert not re.search(r"https?://|url\(|@import", text)
    beside = [link for link in page.links if not link.startswith(("data:image/svg+xml;base64,", "#"))]
    assert all((path.parent / link).is_file() for link in beside)
    assert sum(link.startswith("data:") for link in page.links) == len(page.alternatives)
    assert all(page.alternatives)
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    assert '<html lang="en">' in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    return page, beside


def test_the_page_of_an_assessment(tmp_path):
    report = fastpriv.assess([31, 40, 40, 58], sigma=[5, 20, 80], epsilon="0.1..10:9", name="age", source="test")
    paths = report.save(tmp_path, figure="svg")
    page, beside = read(tmp_path / "assessment.html")
    assert paths[-1].name == "assessment.html"
    assert beside == ["assessment.csv", "assessment.parquet", "assessment.json", "assessment.svg"]
    assert len(page.alternatives) == 3
    for text in (
        "What does one noisy release of 'age' leak?", fastpriv.__version__, "instruction set", "How to read it",
        "LIP, epsilon = 1, delta = 1e-5", "3 sigmas x 9 epsilons", "gaussian: value + N(0, sigma^2)", "certified",
    ):
        assert text in page.text, text
    bounds = report["mutual_information"]
    for number in np.ravel(bounds.value):
        assert f"{number:.6g}" in page.texts


@pytest.mark.slow
def test_the_page_of_a_comparison(tmp_path):
    columns = {"job": ["nurse", "clerk", "clerk", "judge"], "zip": ["1", "2", "2", "3"]}
    found = fastpriv.assess(columns, mechanism=["rr", "subset"], level=[0.5, 2.0], epsilon=[0.5, 1.0])
    found.to_html(tmp_path / "page.html")
    page, beside = read(tmp_path / "page.html")
    assert beside == []
    assert len(page.alternatives) == 6
    for text in ("What does one release of 'job', 'zip' leak?", "subset selection", "Values with both bounds: rr"):
        assert text in page.text, text


@pytest.mark.slow
def test_what_people_type_is_text(tmp_path):
    report = fastpriv.assess([NASTY, "b", "b"], mechanism="rr", name=NASTY, source=NASTY, level=[1.0], epsilon=[1.0])
    report.to_html(tmp_path / "page.html")
    page, _ = read(tmp_path / "page.html")
    assert r"<script>alert('1')</script> & \"城市\" \x07".replace('\\"', '"') in page.text


@pytest.mark.slow
def test_one_channel_and_one_point(tmp_path):
    report = fastpriv.assess(mechanism=fastpriv.RandomizedResponse(4, 1.0), epsilon=[0.5])
    report.to_html(tmp_path / "page.html")
    page, _ = read(tmp_path / "page.html")
    assert "0 epsilons" not in page.text
    assert "4 of 4 inputs" in page.text


def test_a_page_without_matplotlib_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("fastpriv.report.pages._can_draw", lambda: False)
    report = fastpriv.assess([31, 40, 58], sigma=[5], epsilon=[1.0])
    report.to_html(tmp_path / "page.html")
    page, _ = read(tmp_path / "page.html")
    assert page.alternatives == []
    assert "There are no pictures: matplotlib is not installed." in page.text
    found = fastpriv.assess({"a": ["x", "y"]}, mechanism=["rr"], level=[1.0], epsilon=[1.0])
    found.to_html(tmp_path / "comparison.html")
    assert "There are no pictures" in read(tmp_path / "comparison.html")[0].text


def test_parts_escape_their_texts():
    parts = [
        NASTY, NASTY + "\n", {NASTY: NASTY}, Details(NASTY, [NASTY]), Pictures([], NASTY),
        TextTable([NASTY, (NASTY, NASTY)], [[NASTY, NASTY]], NASTY),
    ]
    found = Page(page(NASTY, {"": parts, NASTY: parts}, ran={NASTY: NASTY}, files=[NASTY]))
    assert found.open == []
    assert "script" not in found.tags
    assert "\x07" not in found.text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: report.page(3, {}), "title must be text; got 3"),
        (lambda: report.page("a", ["b"]), r"sections must be a dictionary; got \['b'\]"),
        (lambda: report.page("a", {}, ran=3), "ran must be a dictionary; got 3"),
        (lambda: report.kind_meanings(["certain"]), "kinds must be one of exact, certified, statistical, heuristic"),
        (lambda: report.panels_of_assessment(3), "report must be what fastpriv.assess returns for one column"),
        (lambda: report.panels_of_comparison(3, "a"), "report must be what fastpriv.assess returns for several"),
    ],
)
def test_wrong_arguments_of_pages(call, text):
    with pytest.raises(DomainError, match=text):
        call()


def test_a_column_that_a_comparison_has_not():
    comparison = fastpriv.assess({"job": ["a", "b", "b"]}, mechanism=["rr", "oue"], level=[1.0], epsilon=[1])
    with pytest.raises(DomainError, match="column_name must be one of job; got 'age'"):
        report.panels_of_comparison(comparison, "age")


def test_a_wide_table_shows_that_it_scrolls():
    table = report.TextTable(["sigma", "bits"], [["1", "0.25"]], "Information")
    text = report.page("Noise", {"Table": [table]})
    (rule,) = re.findall(r"^\.wide \{[^}]*\}", text, re.MULTILINE)
    assert "overflow-x: auto" in rule
    assert rule.count("no-repeat local") == rule.count("no-repeat scroll") == 2  # covers and shadows of both sides
