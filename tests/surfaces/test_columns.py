"""Reading a column: what is understood, and what each fault is called."""


import numpy as np
import pytest

from fastpriv import DomainError, read_categories, read_column
from fastpriv.errors import BackendMissingError
from fastpriv.studies import datasets


@pytest.fixture
def write(tmp_path):
    def writer(text, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return writer


@pytest.mark.parametrize(
    "text",
    [
        "name,age\nAda,36\nAlan,41\n", "name;age\r\nAda;36\r\nAlan;41\r\n", "name\tage\nAda\t36\nAlan\t 41",
        '\ufeff"name","age"\n"Lovelace, Ada","36"\n"Tur\ning",41\n', "age,name\n36,Ada\n\n41,\n",
        "name,age\nAda,3.6e1\nAlan,+41.0\n",
    ],
)
def test_usual_dialects_are_read(write, text):
    assert read_column(write(text), "age").tolist() == [36.0, 41.0]


def test_one_column_needs_no_name_and_no_header(write):
    assert read_column(write("age\n36\n41\n")).tolist() == [36.0, 41.0]
    assert read_column(write("36\n41\n")).tolist() == [36.0, 41.0]
    assert read_column(write("1,36\n2,41\n"), "2").tolist() == [36.0, 41.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age\n36\nold\nx\n", r"column must be numbers; got 'old' at row 2 \(2 of 3 entries\)"),
        ("age\n36\n1_000\n", r"column must be numbers; got '1_000' at row 2"),
        ("age\n36\n\n?\n", "column must have no missing values; got 2 of 3 rows without a number, the first at row 2"),
        ("age\nNaN\n36\n", "column must have no missing values; got 1 of 2 .* missing='drop'"),
        ("age\n36\ninf\n", r"column must be finite; got inf at row 2 \(1 of 2 entries\)"),
        ("age\n", "column must have at least one number; got none"),
        ("", "file must have at least one record; got the empty file"),
        ("\n\n", "line 1 must hold the names of the columns; got an empty line"),
        ("name,age\nAda,36\n", "column must be named when a file has several; got 2 columns: name, age"),
        ("age,age\n1,2\n", "column must be unique; got 2 columns called 'age'"),
        ("a,b\n1,2\n", "column must be one of the file's columns: a, b; got 'age'"),
        ("age,b\n1,2\n3\n", "line 3 must be of 2 cells like the first line; got 1"),
        ("age\nJos\xe9\n".encode("latin-1"), "file must be text in UTF-8; got byte 0xe9"),
        ("age,b\n" + "x" * 200_000 + ",1\n", "file must be a well-formed CSV file; .*field larger than field limit"),
        (b"PAR1 not really", "file must be a whole Parquet file"),
    ],
)
def test_faults_are_named(write, text, message):
    with pytest.raises(DomainError, match=message):
        read_column(write(text), None if "named" in message or text in ("", "\n\n") else wanted(text))


def wanted(text):
    head = text.decode("latin-1") if isinstance(text, bytes) else text
    return "age" if head.count(",") else None


def test_a_column_without_categories_is_refused(write):
    with pytest.raises(DomainError, match="column must have at least one category; got none in .*Check file and col"):
        read_categories(write("job\n?\n"), missing="drop")


def test_missing_values_can_be_dropped(write):
    assert read_column(write("age\n36\n\nNA\n41\n"), missing="drop").tolist() == [36.0, 41.0]
    with pytest.raises(DomainError, match="column must have at least one number; got none"):
        read_column(write("age\nNA\n"), missing="drop")
    with pytest.raises(DomainError, match="missing must be one of error, drop; got 'keep'"):
        read_column(write("age\n1\n"), missing="keep")


def test_dates_are_days_or_months(write):
    path = write("day\n1970-01-02\n2024-02-29 12:00:00\n1969-12-31T00:00\nNA\n")
    assert read_column(path, missing="drop").tolist() == [1.0, 19782.5, -1.0]
    assert read_column(path, missing="drop", dates="months").tolist() == [0.0, 649.0, -1.0]
    assert read_categories(path, missing="keep", dates="months").tolist() == ["1970-01", "2024-02", "1969-12", "?"]
    assert read_categories(path, missing="drop").tolist() == ["1970-01-02", "2024-02-29 12:00:00", "1969-12-31T00:00"]
    assert read_column(write("month\n?\n2024-05\n"), missing="drop").tolist() == [652.0]
    assert read_column(write("n\n2024\n5\n"), dates="months").tolist() == [2024.0, 5.0]
    with pytest.raises(DomainError, match="column must be dates that exist; got '2023-02-29' at row 2"):
        read_column(write("day\n2024-02-29\n2023-02-29\n"))
    for text in ("2024-05\n2024-05-01", "2024-05-01\n7", "2024-05-01 10:00:00+02:00\n2024-05-02", "2024-05-01\nx"):
        with pytest.raises(DomainError, match="column must be numbers"):
            read_column(write(f"day\n{text}\n"))
    with pytest.raises(DomainError, match="dates must be"):
        read_column(path, dates="years")


def test_a_missing_file_and_a_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="file must be an existing CSV or Parquet file; got .*none.csv"):
        read_column(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError, match="file must be an existing CSV or Parquet file"):
        read_column(tmp_path)


@pytest.mark.slow
def test_a_million_rows_are_read(write):
    path = write("a,b,c\n" + "".join(f"{i},{i}.5,text\n" for i in range(1_000_000)))
    column = read_column(path, "b")
    assert column.size == 1_000_000
    assert column[-1] == 999_999.5


class TestParquet:
    @pytest.fixture(autouse=True)
    def arrow(self):
        self.parquet = pytest.importorskip("pyarrow.parquet")
        self.arrow = pytest.importorskip("pyarrow")

    def path(self, tmp_path, **columns):
        self.parquet.write_table(self.arrow.table(columns), tmp_path / "people.parquet")
        return tmp_path / "people.parquet"

    @pytest.mark.parametrize("kind", ["int8", "uint64", "float", "double"])
    def test_numbers_are_read(self, tmp_path, kind):
        column = self.arrow.array([36, 41], getattr(self.arrow, kind if kind != "float" else "float32")()
                                  if kind != "double" else self.arrow.float64())
        assert read_column(self.path(tmp_path, age=column)).tolist() == [36.0, 41.0]

    def test_text_and_nulls_are_faults(self, tmp_path):
        path = self.path(tmp_path, age=[36, None], name=["Ada", "Alan"])
        with pytest.raises(DomainError, match="column must be numbers; got 'name' of type string"):
            read_column(path, "name")
        with pytest.raises(DomainError, match="got 1 of 2 rows without a number, the first at row 2"):
            read_column(path, "age")
        with pytest.raises(DomainError, match="column must be one of the file's columns: age, name; got 'x'"):
            read_column(path, "x")
        assert read_column(path, "age", missing="drop").tolist() == [36.0]

    def test_a_cut_file_is_a_fault(self, tmp_path):
        path = self.path(tmp_path, age=[1.0, 2.0])
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DomainError, match="file must be a whole Parquet file; got .*Write it again"):
            read_column(path)

    def test_without_pyarrow_the_error_says_what_to_install(self, tmp_path, monkeypatch):
        path = self.path(tmp_path, age=[1.0])
        monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
        with pytest.raises(BackendMissingError, match=r"pyarrow must be installed to read Parquet.*fastpriv\[table\]"):
            read_column(path)


def test_the_adult_columns_are_whole():
    ages = datasets.adult()
    assert (ages.size, ages.min(), ages.max(), ages.sum()) == (32561, 17.0, 90.0, 1256257.0)
    assert len(np.unique(datasets.adult("education-num"))) == 16
    assert datasets.adult("hours-per-week").max() == 99.0
    with pytest.raises(DomainError, match="column must be one of age, .*, native-country; got 'sex'"):
        datasets.adult("sex")
