"""``Table``: one table in every format says the same, and a table of text is aligned."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass

import pytest

import fastpriv
from fastpriv.base.table import Table, aligned, html_table


@dataclass(frozen=True)
class Masses(Table):
    cells: tuple[tuple[object, ...], ...]

    def column_types(self):
        return {"name": "category", "remark": "text", "mass": "number", "count": "integer", "any": ""}

    def rows(self):
        return iter(self.cells)

    def metadata(self):
        return {"limit": math.inf}


ROWS = (("a", "=1+1", 0.1, 3, True), ("b", None, None, None, False), ("a", "é", math.inf, 2**40, None))


def test_columns_are_the_names_in_order():
    assert Masses(ROWS).columns() == ("name", "remark", "mass", "count", "any")


def test_csv_has_empty_cells_and_no_formula(tmp_path):
    table, stream = Masses(ROWS), io.StringIO()
    table.to_csv(tmp_path / "t.csv")
    table.print_csv(stream)
    text = (tmp_path / "t.csv").read_text(encoding="utf-8")
    assert text == stream.getvalue()
    head, *rows = csv.reader(io.StringIO(text))
    assert tuple(head) == table.columns()
    assert rows == [["a", "'=1+1", "0.1", "3", "True"], ["b", "", "", "", "False"], ["a", "é", "inf", str(2**40), ""]]


@pytest.mark.parametrize("rows", [ROWS, ()])
def test_json_holds_metadata_and_rows(tmp_path, rows):
    table = Masses(rows)
    table.to_json(tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert text == "".join(table.json_pieces())
    named = [dict(zip(table.columns(), row, strict=True)) for row in rows]
    assert list(table.named_rows()) == named
    for row in named:
        row["mass"] = "inf" if row["mass"] == math.inf else row["mass"]
    assert json.loads(text) == {"fastpriv": fastpriv.__version__, "limit": "inf", "table": named}


@pytest.mark.parametrize("rows", [ROWS, ROWS[1:2], ()])
def test_parquet_has_the_types_of_the_columns(tmp_path, rows):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    Masses(rows).to_parquet(tmp_path / "t.parquet")
    found = parquet.read_table(tmp_path / "t.parquet")
    assert [tuple(row.values()) for row in found.to_pylist()] == list(rows)
    types = [field.type for field in found.schema][:4]
    assert types[1:] == [arrow.string(), arrow.float64(), arrow.int64()]
    assert arrow.types.is_dictionary(types[0])
    assert json.loads(found.schema.metadata[b"fastpriv"]) == {"fastpriv": fastpriv.__version__, "limit": "inf"}


class Bounds(Masses):
    def column_types(self):
        return {"a_lower": "number", "a_upper": "number", "x_%": "text"}


def test_latex_rounds_bounds_outward_and_escapes_texts():
    table = Bounds(((0.12345, 0.12341, "50 % \\a~b^c{}"), (-math.inf, 1.0000001e-7, None), (math.nan, 2.0, "")))
    assert table.to_latex().splitlines() == [
        r"\begin{tabular}{lll}", r"\toprule", r"a\_lower & a\_upper & x\_\% \\", r"\midrule",
        r"$0.1234$ & $0.1235$ & 50 \% \textbackslash{}a\textasciitilde{}b\textasciicircum{}c\{\} \\",
        r"$-\infty$ & $1.001 \times 10^{-7}$ &  \\", r" & $2$ &  \\", r"\bottomrule", r"\end{tabular}",
    ]
    assert table.to_latex(["a_upper"], digits=2).splitlines()[2:6] == [
        r"a\_upper \\", r"\midrule", r"$0.13$ \\", r"$1.1 \times 10^{-7}$ \\",
    ]
    with pytest.raises(fastpriv.DomainError, match="columns must be one of a_lower, a_upper, x_%; got 'b'"):
        table.to_latex(["b"])
    with pytest.raises(fastpriv.DomainError, match="digits must be"):
        table.to_latex(digits=0)


@pytest.mark.parametrize("rows", [ROWS, ROWS[1:2], ()])
def test_frame_has_numbers_as_doubles(rows):
    pytest.importorskip("pandas")
    frame = Masses(rows).to_frame()
    assert tuple(frame.columns) == Masses(rows).columns()
    assert frame["mass"].dtype == "float64"
    assert len(frame) == len(rows)


def test_files_of_one_stem(tmp_path):
    pytest.importorskip("pyarrow")
    paths = Masses(ROWS).write_files(tmp_path, "stem")
    assert [path.name for path in paths] == ["stem.csv", "stem.json", "stem.parquet"]
    assert all(path.stat().st_size for path in paths)


def test_text_is_aligned():
    rows = [["name", "mass"], ["a", "0.25"], ["bcd", "1"]]
    assert aligned(rows) == ["name  mass", "a     0.25", "bcd   1"]
    assert aligned(rows, left=1, indent=" ") == [" name  mass", " a     0.25", " bcd      1"]
    assert aligned(rows, left=0) == ["name  mass", "   a  0.25", " bcd     1"]


def test_html_is_escaped():
    text = html_table(["<a>"], [["&"]], "1 < 2")
    assert all(shown in text for shown in ("&lt;a&gt;", "&amp;", "1 &lt; 2"))
    assert "<a>" not in text
