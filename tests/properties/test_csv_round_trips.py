"""What Python's csv module writes, in any dialect, is read back as it was, or refused: never as something else."""

import csv
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv import DomainError, read_categories, read_column
from fastpriv.base.column_files import is_number

MARKS = {"", "?", "na", "n/a", "nan", "null", "none"}
CELL = st.text(
    st.one_of(st.sampled_from("ab,;\t| \"'\n0123.-$_é"), st.characters(codec="utf-8", exclude_characters="\0\r\ufeff")),
    max_size=8,
).map(str.strip).filter(lambda text: text.lower() not in MARKS)
SEPARATOR = st.sampled_from(",;\t|")
QUOTING = st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
END = st.sampled_from(("\n", "\r\n"))
REFUSED = (
    "sep must be given|must hold names, or numbers alone|must not hold its own name|must be unique|"
    "cells like the first|must be one of the file's columns|must name every column"
)


@st.composite
def tables(draw, cell=CELL):
    width, height = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=height, max_size=height))
    names = draw(st.lists(CELL.filter(lambda text: not is_number(text)), min_size=width, max_size=width, unique=True))
    return names, rows, {"delimiter": draw(SEPARATOR), "quoting": draw(QUOTING), "lineterminator": draw(END)}


def written(folder, names, rows, dialect):
    path = Path(folder) / "table.csv"
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, **dialect).writerows([names, *rows])
    return path


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tables())
def test_text_is_read_back_where_the_separator_is_given(table):
    names, rows, dialect = table
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, names, rows, dialect)
        for place, name in enumerate(names):
            found = read_categories(path, name, sep=dialect["delimiter"], header=True)
            assert found.tolist() == [row[place] for row in rows]


@settings(max_examples=50, deadline=None)
@given(tables())
def test_text_is_read_back_or_refused(table):
    names, rows, dialect = table
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, names, rows, dialect)
        for place, name in enumerate(names):
            try:
                found = read_categories(path, name).tolist()
            except DomainError as fault:
                with pytest.raises(DomainError, match=REFUSED):
                    raise fault
            else:
                assert found == [row[place] for row in rows]


NUMBER = st.floats(-1e9, 1e9).map(lambda x: round(x, 3)).map(repr)


@settings(max_examples=50, deadline=None)
@given(tables(NUMBER), st.sampled_from(".,"))
def test_numbers_are_read_back_or_refused(table, decimal):
    names, rows, dialect = table
    cells = [[cell.replace(".", decimal) for cell in row] for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, names, cells, dialect)
        for place, name in enumerate(names):
            want = [float(row[place]) for row in rows]
            told = read_column(path, name, sep=dialect["delimiter"], decimal=decimal, header=True)
            assert told.tolist() == want
            try:
                found = read_column(path, name).tolist()
            except DomainError as fault:
                with pytest.raises(DomainError, match=REFUSED + "|that can be read in one way"):
                    raise fault
            else:
                assert found == want
