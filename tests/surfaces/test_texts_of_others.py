"""Names and errors of other people: no formula in a spreadsheet, and nothing that hides or reorders the text around."""

import contextlib
import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpriv
from fastpriv import Estimate
from fastpriv.base.escaping import escape_invisible, spreadsheet_row
from fastpriv.base.files import write_csv
from fastpriv.cli import main
from fastpriv.report import Details, Pictures, TextTable, page

FORMULAS = ["=1+1", "+SUM(A1)", "-cmd|' /C calc'!A0", "@x", "\t=1", "\r=1", "'=1", "''@x", "=", "-", "-1+2"]
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
HIDDEN = BIDI + "\u200b\ufeff\u00ad\u2028\x85\x00\x1b"
RISKY = ("=", "+", "-", "@", "\t", "\r")


def plain(text):
    """What a reader does: take off the apostrophe before a text that would be a formula."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(RISKY) else text


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text):
    (cell,) = spreadsheet_row([text])
    assert cell == "'" + text
    assert plain(cell) == text


@pytest.mark.parametrize(
    "cell",
    [-1.5, 1e-300, -math.inf, math.nan, None, True, np.float64(-2.0), -3, "-1.5", "+2", "-inf", "-1e-5", "nurse",
     "'quoted'", "a=b", "", "1-2", "5 - 3"],
)
def test_numbers_and_other_texts_stay(cell):
    (written,) = spreadsheet_row([cell])
    assert written is cell


@given(st.text(st.sampled_from("=+-@'\t\ra1. ,\"\n"), max_size=6))
def test_every_text_comes_back(text):
    (cell,) = spreadsheet_row([text])
    try:
        float(text)
    except ValueError:
        assert plain(cell) == text
        assert not cell.startswith(RISKY)
    else:
        assert cell == text


def test_files_hold_no_formulas(tmp_path):
    write_csv(tmp_path / "a.csv", ["=name", "x"], [["=HYPERLINK(1)", -1.0], ["-2", None]])
    with open(tmp_path / "a.csv", newline="") as stream:
        assert list(csv.reader(stream)) == [["'=name", "x"], ["'=HYPERLINK(1)", "-1.0"], ["-2", ""]]


def _cells(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return [cell for row in csv.reader(stream) for cell in row]


def _is_number(cell):
    with contextlib.suppress(ValueError):
        float(cell)
        return True
    return False


def test_no_writer_of_tables_writes_a_formula(tmp_path):
    report = fastpriv.assess(["@a", "+b", "+b"], mechanism="rr", level=[1.0], epsilon=[1.0], name="=cmd()")
    report.to_csv(tmp_path / "a.csv")
    grid = {"x": [-1.0], "word": ["=k", "ok"]}
    table = fastpriv.sweep(lambda x, word: x if word == "ok" else 1 / 0, grid=grid)
    table.to_csv(tmp_path / "b.csv")
    stream = io.StringIO()
    table.print_csv(stream)
    (tmp_path / "c.csv").write_text(stream.getvalue())
    for file, expected in (("a.csv", "'=cmd()"), ("b.csv", "'=k"), ("c.csv", "'=k")):
        cells = _cells(tmp_path / file)
        assert expected in cells
        assert not [cell for cell in cells if cell.startswith(RISKY) and not _is_number(cell)], file


@pytest.mark.parametrize("character", HIDDEN)
def test_pages_and_notebooks_escape_what_is_not_seen(character):
    text = f"abc{character}def"
    shown = text.replace(character, character.encode("unicode_escape").decode())
    assert escape_invisible(text) == shown
    table = TextTable([text, (text, text)], [[text, text]], text)
    parts = [text, {text: text}, Details(text, [text]), table, Pictures([], text)]
    document = page(text, {text: parts}, ran={text: text}, files=[text])
    one = Estimate(1.0, 0.5, 2.0, kind="exact", unit="1", method=text)
    for html in (document, one._repr_html_()):
        assert character not in html
        assert shown in html


def test_text_of_any_script_stays():
    for text in ("北京市", "שלום", "مرحبا", "é", "a\u200db", "\N{GRINNING FACE}", "a\u00a0b", "line\nnext\ttab"):
        assert escape_invisible(text) == text


@pytest.mark.slow
def test_commands_escape_what_is_not_seen(tmp_path, capsys):
    name = f"{BIDI}.csv"
    (tmp_path / name).write_text(f"x{BIDI[4]}y\na\nb\nb\n", encoding="utf-8")
    words = ["--mechanism", "rr", "--epsilon", "1", "--out", str(tmp_path / f"o{BIDI[4]}"), "--figure-format", "none"]
    assert main(["assess", str(tmp_path / name), *words]) == 0
    shown = capsys.readouterr()
    page = (tmp_path / f"o{BIDI[4]}" / "assessment.html").read_text(encoding="utf-8")
    assert main(["assess", str(tmp_path / f"none{name}"), *words]) == 2
    for text in (shown.out, shown.err, page, capsys.readouterr().err):
        assert not set(BIDI) & set(text)
    assert r"\u202e" in shown.out
    assert main(["membership", str(tmp_path / f"none{name}")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fastpriv: error: ")
    assert not set(BIDI) & set(error)
