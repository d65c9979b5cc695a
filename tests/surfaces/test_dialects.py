"""CSV as people write it: what is found out is right and said, what is ambiguous is refused with the remedy."""

import bz2
import gzip
import io
import json
import lzma
import shlex
import sys
import types

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, read_categories, read_column
from fastpriv.cli.main import main, program_parser

WHOLE = 2**53


@pytest.fixture
def write(tmp_path):
    def writer(text, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return writer


class TestSeparators:
    @pytest.mark.parametrize(
        ("text", "column", "values"),
        [
            ("a;b\n1,5;2\n3,25;4\n", "a", [1.5, 3.25]),
            ("age, years;income, EUR\n36,5;1000,5\n41,25;2000,25\n", "income, EUR", [1000.5, 2000.25]),
            ("a\tb, c\n1\tx, y\n2\tz\n", "a", [1, 2]),
            ('"a;x",b\n1,2\n3,4\n', "b", [2, 4]),
            ("1,5;2,5\n3,5;4,5\n", "2", [2.5, 4.5]),
            ("height\n180,5\n175\n", None, [180.5, 175]),
            ('"height, cm"\n180,5\n175,25\n', None, [180.5, 175.25]),
            ('a,b\n"1,5",x\n"12,25",y\n', "a", [1.5, 12.25]),
            ('"a", "b"\n1, 2\n3, 4\n', "b", [2, 4]),
            ("a|b\r1|2\r3|4\r", "b", [2, 4]),
            ("a,b\n1,x;y\n2,z\n", "a", [1, 2]),
        ],
    )
    def test_found(self, write, text, column, values):
        assert read_column(write(text), column).tolist() == values

    @pytest.mark.parametrize(
        ("text", "options", "values"),
        [
            ("a:b\n1:2\n3:4\n", {"sep": ":"}, [2, 4]),
            ("a b\n1 2\n3 4\n", {"sep": " "}, [2, 4]),
            ("a\tb\n1\t2\n3\t4\n", {"sep": "tab"}, [2, 4]),
            ("a\tb\n1\t2\n3\t4\n", {"sep": "\\t"}, [2, 4]),
            ("a;b\n1;1,234\n3;4,567\n", {"decimal": ","}, [1.234, 4.567]),
            ("a;b\n1;1.234\n3;4.567\n", {"decimal": "."}, [1.234, 4.567]),
            ("a,x;b\n1,y;2\n3,z;4\n", {"sep": ";"}, [2, 4]),
        ],
    )
    def test_given(self, write, text, options, values):
        assert read_column(write(text), "b", **options).tolist() == values

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            ("a,b;c\nd,e;f\n", {}, r"sep must be given where line 1 may be cut in several ways; got ',' and ';' in "
             r"'a,b;c'. Pass what separates cells: sep=';' \(--sep ';'\)"),
            ("a\n1;2\n3\n", {}, "column must be numbers; got '1;2' at row 1"),
            ("job\nnurse,31\nclerk,40\n", {}, "line 2 must be of 1 cells like the first line; got 2.*or pass what"),
            ('"age"\n"1",36\n"2",41\n', {}, "line 2 must be of 1 cells like the first line; got 2"),
            ("age\n1,36\n2,41\n", {}, "line 1 must name every column; got 'age' alone above lines that begin"),
            ("b\n1\n", {"sep": ";;"}, "sep must be one character, no quotation mark and no end of line; got ';;'"),
            ("b\n1\n", {"sep": '"'}, "sep must be one character"),
            ("b\n1\n", {"sep": 5}, "sep must be one character.*; got 5"),
            ("b\n1\n", {"decimal": ";"}, "decimal must be one of .*; got ';'. Choose one of these"),
            ("b\n1\n", {"header": 1}, "header must be True or False; got 1"),
            ('a,b\nx,"y\nz,w\n', {}, "line 2 must close the quotation mark that it opens; got none until the end of"),
        ],
    )
    def test_ambiguous_or_wrong(self, write, text, options, message):
        with pytest.raises(DomainError, match=message):
            read_column(write(text), None if "," not in text.split("\n")[0] else "b", **options)

    def test_a_quoted_cell_over_several_lines_is_read(self, write):
        path = write('a,b\nx,"1"\n"y\nz","2"\nw,"x\ny"\n')
        assert read_categories(path, "a").tolist() == ["x", "y\nz", "w"]
        assert read_categories(path, "b").tolist() == ["1", "2", "x\ny"]


class TestDecimals:
    @pytest.mark.parametrize(
        ("cells", "message"),
        [
            (["1,234", "12,500"], r"read in one way; got '1,234', which may be 1234 or 1.234. Pass decimal=',' "
             r"\(--decimal ,\) if ',' stands before decimals"),
            (["950", "12.500"], r"read in one way; got '12.500', which may be 12500 or 12.500. Pass decimal='.'"),
            (["1,234.56", "2"], "column must be numbers; got '1,234.56' at row 1 .*without separators of thousands"),
            (["1.234,56", "2"], "column must be numbers; got '1.234,56' at row 1 .*without separators of thousands"),
            (["1,234", "1,5", "2.5"], "column must be numbers; got '1,234' at row 1"),
        ],
    )
    def test_thousands_are_never_guessed(self, write, cells, message):
        path = write("n;x\n" + "".join(f"{cell};7,5\n" for cell in cells))
        with pytest.raises(DomainError, match=message):
            read_column(path, "n")
        assert read_categories(path, "n").tolist() == cells

    @pytest.mark.parametrize(
        ("cells", "values"),
        [(["1,234", "0,5"], [1.234, 0.5]), (["0,123", "0,456"], [0.123, 0.456]), (["1234,567"], [1234.567]),
         (["0.123", "0.456"], [0.123, 0.456]), (["1,5e3", "-2,25"], [1500, -2.25]), (["NA", "1,5"], [1.5]),
         (["1.5", "2.25"], [1.5, 2.25]), (["1234", "5"], [1234, 5])],
    )
    def test_what_is_plain_is_read(self, write, cells, values):
        path = write("n;x\n" + "".join(f"{cell};y\n" for cell in cells))
        assert read_column(path, "n", missing="drop").tolist() == values

    def test_a_decimal_that_is_given_holds(self, write):
        path = write("n;x\n1,5;a\n2.5;b\n")
        with pytest.raises(DomainError, match=r"column must be numbers with a decimal comma; got '2.5' at row 2"):
            read_column(path, "n", decimal=",")
        with pytest.raises(DomainError, match="column must be numbers; got '1,5' at row 1"):
            read_column(path, "n", decimal=".")


class TestLineOne:
    def test_numbers_alone_are_a_record(self, write):
        path = write("2019,2020\n5,6\n")
        assert read_column(path, "2").tolist() == [2020, 6]
        assert read_column(path, "2020", header=True).tolist() == [6]
        with pytest.raises(DomainError, match="columns: 1, 2; got '2020'.*Line 1 holds numbers alone. Pass header"):
            read_column(path, "2020")

    def test_a_number_beside_names_is_no_name(self, write):
        path = write("1,x6\n2,41\n3,50\n")  # a record with a slip, or a wide table: nobody knows
        with pytest.raises(DomainError, match="line 1 must hold names, or numbers alone; got the number '1' beside"):
            read_column(path, "1")
        assert read_column(path, "1", header=False).tolist() == [1, 2, 3]
        assert read_column(path, "1", header=True).tolist() == [2, 3]
        wide = write("country,2019\nFR,1.5\nDE,2.5\n")
        assert read_categories(wide, "country").tolist() == ["FR", "DE"]  # who names it has seen it
        assert read_column(wide, "2019", header=True).tolist() == [1.5, 2.5]

    def test_a_name_that_is_a_category_is_asked_about(self, write):
        path = write("nurse\nclerk\nnurse\n")
        with pytest.raises(DomainError, match="must not hold its own name as a category; got 'nurse' at row 2 too"):
            read_categories(path)
        assert read_categories(path, header=False).tolist() == ["nurse", "clerk", "nurse"]
        assert read_categories(path, header=True).tolist() == ["clerk", "nurse"]


class TestEncodings:
    def test_what_is_not_utf_8_is_read_when_told(self, write):
        for encoding in ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "utf-8-sig", "UTF8"):
            path = write("ville;n\nOrléans;1\n".encode(encoding))
            assert read_categories(path, "ville", encoding=encoding).tolist() == ["Orléans"], encoding
        assert read_column(write("\ufeffn;x\n1;a\n".encode("utf-16-le")), "n", encoding="utf-16-le").tolist() == [1]

    @pytest.mark.parametrize(
        ("encoding", "message"),
        [
            ("latin-1", r"file must be text in UTF-8; got byte 0xe9 .*encoding='latin-1', 'cp1252' or 'utf-16'"),
            ("utf-16", r"got the byte order mark of UTF-16 in .*Pass encoding='utf-16' \(--encoding utf-16\)"),
            ("utf-32", r"got the byte order mark of UTF-32 in .*Pass encoding='utf-32'"),
        ],
    )
    def test_the_error_says_what_to_pass(self, write, encoding, message):
        with pytest.raises(DomainError, match=message):
            read_categories(write("ville;n\nOrléans;1\n".encode(encoding)), "ville")

    def test_what_no_text_holds(self, write):
        with pytest.raises(DomainError, match="file must be text; got the character 0 in line 1 of .*utf-16-le"):
            read_column(write("age\n36\n".encode("utf-16-le")))
        with pytest.raises(DomainError, match="encoding must be a text encoding that Python knows; got 'klingon'"):
            read_column(write("age\n36\n"), encoding="klingon")
        with pytest.raises(DomainError, match="encoding must be a text encoding that Python knows; got 'base64'"):
            read_column(write("age\n36\n"), encoding="base64")
        with pytest.raises(DomainError, match="file must be text in utf-16; got .*Stream does not start with BOM|BOM"):
            read_column(write("age\n36\n"), encoding="utf-16")


class TestPacked:
    TEXT = b"name;age\nAda;36\nAlan;41\n"

    def test_read_by_what_the_file_begins_with(self, write):
        assert read_column(write(gzip.compress(self.TEXT), "whatever"), "age").tolist() == [36, 41]

    def test_damage_is_named(self, write):
        packed = gzip.compress(b"age\n" + "".join(f"{i}\n" for i in range(10**5)).encode())
        with pytest.raises(DomainError, match="file must be packed without damage; got .*whatever"):
            read_column(write(packed[: len(packed) // 2], "whatever"))
        with pytest.raises(DomainError, match="file must have at least one record; got the empty file"):
            read_column(write(gzip.compress(b"")))

    @pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
    def test_other_archives_are_named(self, write, pack):
        with pytest.raises(DomainError, match="file must be CSV, packed by gzip or not.*or a damaged workbook"):
            read_column(write(pack(self.TEXT)))


class TestNothingMerges:
    def test_texts_stay_what_they_are(self, write):
        cells = ["01234", "1234", "1.0", "1", "+1", "1e3", "1000", "007", "7", " x ", "x"]
        found = read_categories(write("c\n" + "".join(f"{cell}\n" for cell in cells)))
        assert found.tolist() == [cell.strip() for cell in cells]
        ids = [str(WHOLE + i) for i in range(100)]
        assert len(set(read_categories(write("id\n" + "\n".join(ids))).tolist())) == 100

    @pytest.mark.parametrize(
        ("cells", "message"),
        [
            ([str(WHOLE + 1), "5"], f"column must be whole numbers that a double is, .*; got '{WHOLE + 1}' at row 1"),
            (["5", f"{WHOLE + 3}.0"], "column must be whole numbers that a double is, as all up to 2.*at row 2"),
            (["0.1", "0.10000000000000000001"], "column must be numbers that doubles tell apart; got '0.1' and"),
            (["0", "1e-400"], "column must be numbers that doubles tell apart; got '0' and '1e-400', which become one"),
        ],
    )
    def test_numbers_that_would_change_are_refused(self, write, cells, message):
        with pytest.raises(DomainError, match=message):
            read_column(write("n\n" + "\n".join(cells)))

    def test_numbers_that_doubles_are(self, write):
        cells = [str(WHOLE), str(WHOLE + 2), "1e300", "0.1", "0.10", "1234567890123456.0", str(2**70)]
        assert read_column(write("n\n" + "\n".join(cells))).tolist() == [float(cell) for cell in cells]

    @pytest.mark.slow
    def test_the_command_keeps_zip_codes_apart(self, write, capsys, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        write("zip,id\n01234,9007199254740992\n1234,9007199254740993\n1234,9007199254740994\n")
        words = ("--epsilon", "1", "--curve", "1", "--json")
        for mechanism in ("rr", "subset", "exponential"):
            assert main(["assess", "people.csv", "--column", "zip", "--mechanism", mechanism, *words]) == 0
            assert json.loads(capsys.readouterr().out)["data"]["categories"] == ["01234", "1234"]
            assert main(["assess", "people.csv", "--column", "id", "--mechanism", mechanism, *words]) == 0
            data = json.loads(capsys.readouterr().out)["data"]
            assert data["categories"] == [str(WHOLE), str(WHOLE + 1), str(WHOLE + 2)]
        assert main(["assess", "people.csv", "--column", "id", "--sigma", "1"]) == 2
        assert "must be whole numbers that a double is" in capsys.readouterr().err

    @pytest.mark.slow
    def test_plain_numbers_stay_numbers_for_any_mechanism(self, write, capsys, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        write("age;price\n31;1,50\n33;2,25\n36;10,00\n")
        words = ("--epsilon", "1", "--curve", "1", "--json", "people.csv", "--column")
        assert main(["assess", "--mechanism", "exponential", *words, "age"]) == 0
        table = {row["quantity"]: row["upper"] for row in json.loads(capsys.readouterr().out)["table"]}
        near = fastpriv.assess([31, 33, 36], mechanism="exponential", level=1, epsilon=1)
        assert table["mutual_information"] == near["mutual_information"].upper[0]
        assert main(["assess", "--mechanism", "gaussian,rr,geometric", "--sigma", "1", *words, "age"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert [one["data"]["largest"] for one in document["assessments"]] == [36, 36, 36]
        assert document["assessments"][0]["data"]["source"] == "people.csv (separator ';')"
        assert main(["assess", "--mechanism", "rr", *words, "price"]) == 0
        data = json.loads(capsys.readouterr().out)["data"]
        assert (data["largest"], data["source"]) == (10.0, "people.csv (separator ';', decimal ',')")
        assert main(["assess", "--mechanism", "rr", "--bins", "2", *words, "price"]) == 0
        assert json.loads(capsys.readouterr().out)["data"]["bins"] == 2

    @pytest.mark.parametrize(
        "data",
        [
            [WHOLE, WHOLE + 1, WHOLE + 2, WHOLE + 2], np.array([WHOLE, WHOLE + 1, WHOLE + 2, WHOLE + 2]),
            np.array([WHOLE, WHOLE + 1, WHOLE + 2, WHOLE + 2], dtype=np.uint64), [2**63 + 1, -1, 2**64, 2**64],
            np.array([10**30, 10**30 + 1, 5, 5], dtype=object), [WHOLE, WHOLE + 1, 0.5, 0.5],
            (np.int64(WHOLE), np.int64(WHOLE + 1), 3, 3),
        ],
    )
    def test_integers_beyond_doubles_are_categories_by_value(self, data):
        found = fastpriv.assess(data, mechanism="rr", level=1, epsilon=1)
        values = sorted({int(x) if x == int(x) else float(x) for x in data})
        assert found.labels == tuple(map(str, values))
        assert sorted(found.prior.probabilities.tolist()) == [0.25, 0.25, 0.5]
        same = fastpriv.assess(["a", "b", "c", "c"], mechanism="rr", level=1, epsilon=1)
        assert found["mutual_information"].upper[0] == pytest.approx(same["mutual_information"].upper[0], rel=1e-14)
        with pytest.raises(DomainError, match="data must be numbers that doubles hold.*Subtract"):
            fastpriv.assess(data, sigma=1, epsilon=1)

    @pytest.mark.slow
    def test_pandas_and_others(self):
        pandas = pytest.importorskip("pandas")
        for kind in ("int64", "Int64", "uint64", "object", "string", "category"):
            column = pandas.Series([WHOLE, WHOLE + 1, WHOLE + 1]).astype(kind)
            found = fastpriv.assess(column, mechanism="rr", level=1, epsilon=1)
            assert found.labels == (str(WHOLE), str(WHOLE + 1)), kind
        days = np.array(["2024-01-02", "2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
        assert fastpriv.assess(days, mechanism="rr", level=1, epsilon=1).labels[0].startswith("2024-01-01T00")
        for bad in (np.array(["2024-01-02", "NaT"], dtype="datetime64[ns]"), pandas.Series(["a", None]),
                    pandas.Series(["a", None], dtype="string"), pandas.Series([1, None], dtype="Int64")):
            with pytest.raises(DomainError, match="data must have no missing|data must be finite numbers; got nan"):
                fastpriv.assess(bad, mechanism="rr", level=1, epsilon=1)

    def test_what_text_does_not_tell_apart_is_refused(self):
        with pytest.raises(DomainError, match="text tells them apart; got 3 entries with 2 texts"):
            fastpriv.assess([1, "1", "a"], mechanism="rr", level=1, epsilon=1)
        from fractions import Fraction

        close = [Fraction(1, 10), Fraction(1, 10) + Fraction(1, 10**30)]
        with pytest.raises(DomainError, match=r"data must be numbers that doubles hold.*got 1/10 and 1000000"):
            fastpriv.assess(close, sigma=1, epsilon=1)
        assert len(fastpriv.assess(close, mechanism="rr", level=1, epsilon=1).labels) == 2
        assert len(fastpriv.assess(["a", "a\0"], mechanism="rr", level=1, epsilon=1).labels) == 2

    def test_order(self):
        def labels(data):
            return fastpriv.assess(data, mechanism="rr", level=1, epsilon=1).labels

        assert labels(["10", "9", "2.5", "-1"]) == ("-1", "2.5", "9", "10")
        assert labels(["10", "9", "a"]) == ("10", "9", "a")
        assert labels(["01", "1", "2"]) == ("01", "1", "2")

    def test_the_exponential_mechanism_measures_distances_of_any_integers(self):
        big = fastpriv.assess([WHOLE, WHOLE + 1, WHOLE + 5], mechanism="exponential", level=1, epsilon=1)
        small = fastpriv.assess([0, 1, 5], mechanism="exponential", level=1, epsilon=1)
        assert big["mutual_information"].upper[0] == small["mutual_information"].upper[0]

    def test_texts_that_number_the_inputs_of_a_channel(self, write, capsys, monkeypatch, tmp_path):
        channel = fastpriv.Channel(np.array([[0.5, 0.5]] * 11 + [[0.1, 0.9]]))
        cells = [*map(str, range(12)), "11"]
        path = write("x\n" + "".join(f"{cell}\n" for cell in cells))
        by_number = fastpriv.assess(np.array(cells, dtype=float), mechanism=channel, epsilon=1)
        by_text = fastpriv.assess(read_categories(path, header=True), mechanism=channel, epsilon=1)
        assert by_text.secret.input_indices.tolist() == list(range(12))
        assert by_text["mutual_information"].value[0] == by_number["mutual_information"].value[0]
        monkeypatch.chdir(tmp_path)
        np.save("q.npy", [[0.5, 0.5]] * 11 + [[0.1, 0.9]])
        assert main(["assess", "--channel", "q.npy", "people.csv", "--json", "--curve", "1"]) == 0
        rows = {row["quantity"]: row["value"] for row in json.loads(capsys.readouterr().out)["table"]}
        assert rows["mutual_information"] == by_number["mutual_information"].value[0]
        some = fastpriv.assess(["0", "2"], mechanism=fastpriv.RandomizedResponse(4, 1.0), epsilon=1)
        assert (some.secret.input_indices.tolist(), some.secret.inputs) == ([0, 2], 4)


class TestParquet:
    @pytest.fixture(autouse=True)
    def arrow(self, tmp_path):
        self.parquet = pytest.importorskip("pyarrow.parquet")
        self.arrow = pytest.importorskip("pyarrow")
        self.path = tmp_path / "a.parquet"

    def written(self, cells, kind=None):
        self.parquet.write_table(self.arrow.table({"c": self.arrow.array(cells, kind)}), self.path)
        return self.path

    def test_integers_beyond_doubles(self):
        path = self.written([WHOLE, WHOLE + 1, None])
        assert read_categories(path, missing="drop").tolist() == [str(WHOLE), str(WHOLE + 1)]
        with pytest.raises(DomainError, match="column must be whole numbers that a double is"):
            read_column(path, missing="drop")
        assert read_column(self.written([WHOLE, WHOLE + 2, None]), missing="drop").tolist() == [WHOLE, WHOLE + 2]
        unsigned = self.written([2**64 - 1, 2**64 - 2], self.arrow.uint64())
        assert read_categories(unsigned).tolist() == [str(2**64 - 1), str(2**64 - 2)]

    def test_decimals_dictionaries_booleans_dates(self):
        from datetime import date, datetime
        from decimal import Decimal

        kind = self.arrow.decimal128(30, 20)
        close = [Decimal("0.1"), Decimal("0.10000000000000000001")]
        assert len(set(read_categories(self.written(close, kind)).tolist())) == 2
        with pytest.raises(DomainError, match="column must be numbers that doubles tell apart"):
            read_column(self.written(close, kind))
        assert read_column(self.written([Decimal("1.5"), None], kind), missing="drop").tolist() == [1.5]
        assert read_categories(self.written([True, False])).tolist() == ["True", "False"]
        with pytest.raises(DomainError, match="column must be numbers; got 'c' of type bool"):
            read_column(self.path)
        self.parquet.write_table(self.arrow.table({"c": self.arrow.array([36, 41]).dictionary_encode()}), self.path)
        assert read_column(self.path).tolist() == [36, 41]
        assert read_categories(self.path).tolist() == ["36", "41"]
        self.parquet.write_table(self.arrow.table({"c": self.arrow.array(["a", "b"]).dictionary_encode()}), self.path)
        assert read_categories(self.path).tolist() == ["a", "b"]
        assert read_categories(self.written([date(2024, 1, 2)])).tolist() == ["2024-01-02"]
        for kind in (self.arrow.timestamp("ns"), self.arrow.timestamp("us", "Europe/Paris"), self.arrow.duration("s")):
            found = read_categories(self.written([10**18, 10**18 + 1], kind)).tolist()
            assert len(set(found)) == 2, kind
        assert read_categories(self.written([datetime(2024, 1, 2, 3)])).tolist()[0].startswith("2024-01-02 03:00:00")
        assert read_categories(self.written([0.5, -0.0, 0.0])).tolist() == ["0.5", "0.0", "0.0"]


class TestCommand:
    @pytest.fixture(autouse=True)
    def inside(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        self.folder, self.patch = tmp_path, monkeypatch

    def feed(self, data):
        self.patch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))

    def test_standard_input(self, capsys):
        for data in (b"job;n\nnurse;1\nclerk;2\n", gzip.compress(b"job;n\nnurse;1\nclerk;2\n")):
            self.feed(data)
            words = ("--column", "job", "--mechanism", "rr", "--epsilon", "1", "--curve", "1", "--json")
            assert main(["assess", "-", *words]) == 0
            data = json.loads(capsys.readouterr().out)["data"]
            assert (data["categories"], data["source"]) == (["clerk", "nurse"], "standard input (separator ';')")
        self.feed(b"p\n0.5\n0.5\n")
        (self.folder / "q.csv").write_text("0.5,0.5\n0.1,0.9\n")
        assert main(["assess", "--channel", "q.csv", "--prior", "-", "--curve", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["data"]["source"] == "standard input"
        self.feed(b"31\n40\n")
        assert main(["assess", "-", "--sigma", "1", "--epsilon", "1", "--json"]) == 0
        data = json.loads(capsys.readouterr().out)["data"]
        assert (data["name"], data["source"]) == ("value", "standard input (no line of names)")

    def test_posterior_takes_text_and_pipes(self, capsys):
        logs = np.log([0.5, 0.25, 0.125])
        np.save("l.npy", logs)
        (self.folder / "l.csv").write_text("l;p\n" + "".join(f"{x!r};1\n" for x in logs.tolist()))
        assert main(["posterior", "l.npy", "--json"]) == 0
        want = json.loads(capsys.readouterr().out)
        assert main(["posterior", "l.csv", "--column", "l", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == want
        for name in ("l.npy", "l.csv"):
            self.feed((self.folder / name).read_bytes())
            assert main(["posterior", "-", *(["--column", "l"] if name == "l.csv" else []), "--json"]) == 0
            assert json.loads(capsys.readouterr().out) == want
        assert main(["posterior", "-", "--prior", "-"]) == 2
        assert "FILE and --prior must not both be standard input; got - twice" in capsys.readouterr().err
        self.feed(b"\x93NUMPY\x01\x00")
        assert main(["posterior", "-"]) == 2
        assert "standard input must be a whole .npy file; got one in which" in capsys.readouterr().err

    def test_names_with_commas(self, capsys):
        (self.folder / "p.csv").write_text('"height, cm";a;b;"a,b"\n180;1;2;3\n175;2;3;4\n')
        words = ("assess", "p.csv", "--sigma", "1", "--epsilon", "1", "--json")

        def names(*columns):
            assert main([*words, *(word for column in columns for word in ("--column", column))]) == 0
            found = json.loads(capsys.readouterr().out)
            return [one["data"]["name"] for one in found.get("assessments", [found])]

        assert names("height, cm") == ["height, cm"]
        assert names("height, cm", "a") == ["height, cm", "a"]
        assert names("a,b") == ["a,b"]  # the exact name first
        assert names("b, a") == ["b", "a"]
        assert main([*words, "--column", "height, cm,a"]) == 2
        assert "got 'height'" in capsys.readouterr().err
        with pytest.raises(DomainError, match="got 'height, m'. Choose one of these. A name with a comma stands alone"):
            read_column("p.csv", "height, m")

    def test_options_are_passed_on(self, capsys):
        (self.folder / "p.csv").write_bytes("größe:n\n1,5:1\n2,25:2\n".encode("latin-1"))
        words = ("assess", "p.csv", "--column", "größe", "--sigma", "1", "--epsilon", "1", "--json")
        assert main([*words]) == 2
        assert "--encoding latin-1" in capsys.readouterr().err
        assert main([*words, "--encoding", "latin-1", "--sep", ":", "--decimal", ","]) == 0
        source = json.loads(capsys.readouterr().out)["data"]["source"]
        assert source == "p.csv (separator ':', decimal ',', latin-1)"
        assert main(["assess", "--sep", ";"]) == 2
        assert "--sep must stand beside a file; got none" in capsys.readouterr().err
        (self.folder / "q.csv").write_text("0.5,0.5\n0.1,0.9\n")
        assert main(["assess", "--channel", "q.csv", "--prior", "q.csv", "--column", "1,2"]) == 2
        assert "--column must be one column beside --prior; got" in capsys.readouterr().err
        (self.folder / "n.csv").write_text("1,5\n2,6\n")
        assert main(["assess", "n.csv", "--header", "--column", "5", "--missing", "drop", *words[4:]]) == 2
        assert main(["assess", "n.csv", "--no-header", "--column", "2", *words[4:]]) == 0


def test_pictures_show_numbers_as_the_file_writes_them(write):
    pytest.importorskip("matplotlib")
    from fastpriv.base.column_files import ColumnFile
    from fastpriv.distributions.columns import open_column

    column = open_column(ColumnFile(write("price;x\n1,50;a\n2,25;b\n")), "price", "error")
    report = fastpriv.assess(column, mechanism="rr", level=1, epsilon=1)
    assert [text.get_text() for text in fastpriv.report.categories(report).texts] == ["1,50", "2,25"]
    close = fastpriv.assess([1234567, 1234568, 0.1], mechanism="rr", level=1, epsilon=1)
    shown = [text.get_text() for text in fastpriv.report.categories(close).texts]
    assert shown == ["0.1", "1234567", "1234568"]


def subcommands():
    (action,) = [one for one in program_parser()._actions if hasattr(one, "choices") and isinstance(one.choices, dict)]
    return action.choices


@pytest.mark.parametrize("name", [None, *subcommands()])
def test_every_help_has_an_example_that_the_command_takes(name):
    parser = program_parser() if name is None else subcommands()[name]
    assert parser.epilog.startswith("Example: fastpriv ")
    _, *words = shlex.split(parser.epilog.removeprefix("Example: "))
    assert name is None or words[0] == name
    assert program_parser().parse_args(words).run is not None
    assert " ".join(parser.epilog.split()) in " ".join(parser.format_help().split())
