"""Files as people have them: sheets of workbooks, marks of missing cells, decimal commas in tables of steps."""

import datetime
import io
import json
import sys
import zipfile

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, read_categories, read_column
from fastpriv.adapters.step_tables import read_steps
from fastpriv.auditing import read_scores
from fastpriv.cli.main import main
from fastpriv.errors import BackendMissingError

PEOPLE = [
    ["age", "job", "born", "weight"], [31, "nurse", datetime.date(1993, 5, 1), 61.5], [40, "k.A.", None, 70],
    [None] * 4, [None, "clerk, head", datetime.date(1980, 1, 2), 1e-7], [58, "line\nbreak", None, 2**53 - 1],
]


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def write(rows=PEOPLE, name="people.xlsx", **more):
        book = openpyxl.Workbook()
        book.active.title = "people"
        for title, cells in {"people": rows, **more}.items():
            sheet = book[title] if title in book.sheetnames else book.create_sheet(title)
            for row in cells:
                sheet.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


class TestWorkbooks:
    @pytest.mark.slow
    def test_cells_are_those_of_the_sheet(self, workbook):
        path = workbook()
        assert read_column(path, "weight").tolist() == [61.5, 70, 1e-7, 2**53 - 1]
        assert read_column(path, "age", missing="drop").tolist() == [31, 40, 58]
        assert read_categories(path, "job").tolist() == ["nurse", "k.A.", "clerk, head", "line\nbreak"]
        assert read_categories(path, "born", missing="keep")[[0, 1]].tolist() == ["1993-05-01", "?"]
        assert read_column(path, "born", missing="drop").tolist() == [8521.0, 3653.0]
        assert read_categories(path, "job", na="k.a., nurse", missing="drop").tolist() == ["clerk, head", "line\nbreak"]

    def test_texts_that_are_numbers(self, workbook):
        path = workbook([["code", "dose", "none"], ["007", "1,5", None], ["7", "2,25", None]])
        assert read_categories(path, "code").tolist() == ["007", "7"]
        assert read_column(path, "dose").tolist() == [1.5, 2.25]

    def test_one_column_and_no_names(self, workbook):
        assert read_column(workbook([[2.5], [None], [3]]), missing="drop").tolist() == [2.5, 3]
        assert read_column(workbook([[2.5, 1], [3, 2], [None, None]]), "2", header=False).tolist() == [1, 2]

    def test_the_sheet_is_named_where_there_are_several(self, workbook):
        path = workbook(doses=[["dose"], [3]])
        assert read_column(path, "dose", sheet="doses").tolist() == [3]
        for sheet in (None, "none", 1):
            with pytest.raises(DomainError, match="sheet must be one of the sheets 'people', 'doses' of .*Pass its"):
                read_column(path, "dose", sheet=sheet)

    def test_dates_and_identifiers_of_assessments(self, workbook, capsys):
        rows = [["who", "born"], [7, datetime.date(1993, 5, 1)], [9, datetime.date(1980, 1, 2)]]
        path = str(workbook(rows))
        options = ["--format", "none", "--json", "--column", "born"]
        for more, value in (([], 3653.0), (["--dates", "months"], 120.0)):
            assert main(["assess", path, "--sigma", "10", "--id", "who", *options, *more]) == 0
            data = json.loads(capsys.readouterr().out)["data"]
            assert (data["smallest"], data["source"]) == (value, "people.xlsx, one row for each who")
        path = str(workbook([*rows, rows[1]]))
        assert main(["assess", path, "--sigma", "10", "--id", "who", *options]) == 2
        said = capsys.readouterr().err
        assert "id must be another text in each row, as all numbers are about one row; got 1 of 2 identifiers" in said
        assert "count a person's 2 rows as 2 releases" in said
        assert main(["assess", "--id", "who", *options[:3]]) == 2
        assert "--id must stand beside a file" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"sep": ";"}, "sep must be left out for a workbook, which needs none; got ';'"),
            ({"encoding": "utf-8"}, "encoding must be left out for a workbook, which needs none; got 'utf-8'"),
            ({"column": "job"}, "column must be numbers; got 'nurse' at row 1"),
            ({"column": "age"}, "column must have no missing values; got 1 of 4 rows without a number"),
            ({"na": 3}, "na must be"),
        ],
    )
    def test_options_and_cells_that_do_not_fit(self, workbook, options, text):
        with pytest.raises(DomainError, match=text):
            read_column(workbook(), **{"column": "weight"} | options)

    def test_formulas_count_by_their_results(self, workbook, tmp_path):
        parts = parts_of(workbook([["x"], ["=1+1"], [3]]))
        name = next(name for name in parts if "sheet1" in name)
        with pytest.raises(DomainError, match=r"row 2 of the sheet must be cells with their results; got the formula "
                                              r"'=1\+1' without one. Open the workbook in a"):
            read_column(tmp_path / "people.xlsx")
        parts[name] = parts[name].replace(b"<v></v>", b"<v>2</v>").replace(b"<v />", b"<v>2</v>")
        (tmp_path / "saved.xlsx").write_bytes(packed(parts))
        assert read_column(tmp_path / "saved.xlsx").tolist() == [2, 3]

    def test_damaged_workbooks(self, workbook, tmp_path):
        parts = parts_of(workbook())
        sheet = next(name for name in parts if "sheet1" in name)
        whole = (tmp_path / "people.xlsx").read_bytes()
        cases = [
            whole[:50], whole[: len(whole) // 2], packed({"a.csv": b"x\n1\n"}),
            packed(parts | {sheet: parts[sheet][:-100]}), packed(parts | {"xl/workbook.xml": b"<workbook/>"}),
            packed({name: part for name, part in parts.items() if name != sheet}),
        ]
        for content in cases:
            (tmp_path / "bad.xlsx").write_bytes(content)
            with pytest.raises(DomainError, match="got .*bad.xlsx', another archive or a damaged workbook. Unpack"):
                read_column(tmp_path / "bad.xlsx", "age")

    def test_a_sheet_that_claims_a_far_row_and_a_wrong_size(self, workbook, tmp_path):
        parts = parts_of(workbook([["x"], [3]]))
        sheet = next(name for name in parts if "sheet1" in name)
        (tmp_path / "wrong.xlsx").write_bytes(packed(parts | {sheet: parts[sheet].replace(b"A1:A2", b"A1:XFD9999999")}))
        assert read_column(tmp_path / "wrong.xlsx").tolist() == [3]

    def test_an_empty_sheet(self, workbook):
        with pytest.raises(DomainError, match="file must have at least one record; got the empty file"):
            read_column(workbook([]))

    def test_without_openpyxl(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        (tmp_path / "a.xlsx").write_bytes(packed({"a": b""}))
        with pytest.raises(BackendMissingError, match=r"openpyxl must be installed to read a workboo.*fastpriv\[excel"):
            read_column(tmp_path / "a.xlsx")

    @pytest.mark.slow
    def test_commands_take_them(self, workbook, capsys, monkeypatch):
        path = workbook(more=[["a"]])
        monkeypatch.chdir(path.parent)
        words = ["people.xlsx", "--sheet", "people", "--column", "job", "--mechanism", "rr", "--na", "k.A.,-"]
        assert main(["assess", *words, "--missing", "drop", "--epsilon", "1", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["data"]["source"] == "people.xlsx"
        assert said["data"]["categories"] == ["clerk, head", "line\nbreak", "nurse"]
        scores, members = read_scores(workbook([["score", "member"], [0.5, 1], [0.25, 0]], "scores.xlsx"))
        assert (scores.tolist(), members.tolist()) == ([0.5, 0.25], [True, False])
        (step,) = read_steps(workbook([["kind", "sigma", "count"], ["gaussian", 2.5, 3]], "steps.xlsx"))
        table = fastpriv.sweep("bac_capacity", workbook([["a", "b"], [0.125, 0.25]], "table.xlsx"))
        assert table == fastpriv.sweep("bac_capacity", [{"a": 0.125, "b": 0.25}])
        assert (step.kind, step.parameters["sigma"], step.count) == ("gaussian", 2.5, 3)


def test_the_far_row_is_refused_before_it_is_reached(workbook, monkeypatch, tmp_path):
    parts = parts_of(workbook([["x"], [3]]))
    sheet = next(name for name in parts if "sheet1" in name)
    far = parts[sheet].replace(b'<row r="2"', b'<row r="999999999999"').replace(b'"A2"', b'"A999999999999"')
    (tmp_path / "far.xlsx").write_bytes(packed(parts | {sheet: far}))
    monkeypatch.setattr("fastpriv.base.column_files._MAX_SHEET_ROWS", 1000)
    with pytest.raises(DomainError, match="row 1001 of the sheet must be cells with their results; got more than 10"):
        read_column(tmp_path / "far.xlsx")


def test_marks_of_missing_cells(tmp_path):
    (tmp_path / "a.csv").write_text("age;dose\n31;k.A.\n-;2,5\n33;#NV\n40; K.A. \n50;3\n")
    marks = "k.A.,-,#NV"
    assert read_column(tmp_path / "a.csv", "dose", na=marks, missing="drop").tolist() == [2.5, 3]
    assert read_column(tmp_path / "a.csv", "age", na=marks, missing="drop").tolist() == [31, 33, 40, 50]
    assert read_categories(tmp_path / "a.csv", "dose", na=marks, missing="keep").tolist() == ["?", "2,5", "?", "?", "3"]
    with pytest.raises(DomainError, match="column must have no missing values; got 3 of 5 rows"):
        read_column(tmp_path / "a.csv", "dose", na=marks)
    with pytest.raises(DomainError, match="sheet must be left out for text, which needs none; got 'x'"):
        read_column(tmp_path / "a.csv", "dose", sheet="x")
    report = fastpriv.assess(fastpriv.distributions.Pmf([0.0, 1.0], [0.5, 0.5]), sigma=[1], epsilon=[1])
    report.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DomainError, match="na must be left out for Parquet, which needs none; got '-'"):
        read_column(tmp_path / "a.parquet", "value", na="-")


def test_decimal_commas_in_tables_of_steps(tmp_path):
    (tmp_path / "steps.csv").write_text(
        "# plan\nkind;sigma;rate;p;q;count\nsampled_gaussian;1,1;0,01;;;3000\ndiscrete;;;0,25 0,75;0.5 0.5;1e1\n"
    )
    sampled, discrete = read_steps(tmp_path / "steps.csv")
    assert (sampled.parameters["sigma"], sampled.parameters["rate"], sampled.count) == (1.1, 0.01, 3000)
    assert np.array_equal(discrete.pair()[0], [0.25, 0.75])
    assert discrete.count == 10
    (tmp_path / "quoted.csv").write_text('kind,sigma\ngaussian,"2,5"\n')
    assert read_steps(tmp_path / "quoted.csv")[0].parameters["sigma"] == 2.5
    (tmp_path / "steps.csv").write_text("kind;sigma\ngaussian;1,234\n")
    with pytest.raises(DomainError, match="sigma must be a number that can be read in one way; got '1,234', which may "
                                          "be 1234 or 1.234. Write it without a comma"):
        read_steps(tmp_path / "steps.csv")
