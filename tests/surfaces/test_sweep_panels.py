"""Pictures of tables of settings: which curves, which axes, what is said of cells without a number."""

import numpy as np
import pytest

import fastpriv
from fastpriv import errors, figures
from fastpriv.cli.main import main

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def table():
    return fastpriv.sweep(
        "sampled_gaussian_delta", grid={"sigma": "0.5..20:5", "rate": [0.001, 0.01], "epsilon": 1.0}, n_jobs=1
    )


def pair(a, b):
    return {"total": a + b, "ratio": a / b}


def test_curves_and_bounds(table):
    ax = table.plot("sigma", "rate")
    columns = table.columns()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    for line, rate in zip(ax.get_lines(), [0.001, 0.01], strict=True):
        chosen = columns["rate"] == rate
        assert np.array_equal(line.get_xdata(), columns["sigma"][chosen])
        assert np.array_equal(line.get_ydata(), columns["value"][chosen])
    assert columns["value"].min() == 0.0  # underflow at the largest sigma
    for area, rate in zip(ax.collections, [0.001, 0.01], strict=True):
        drawn, chosen = area.get_paths()[0].vertices[:, 1], columns["rate"] == rate
        assert set(columns["lower"][chosen]) | set(columns["upper"][chosen]) <= set(drawn)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["rate = 0.001", "rate = 0.01"]
    assert ax.get_ylabel() == "sampled_gaussian_delta (probability)"


def test_narrow_axes_and_cells_without_a_number():
    ax = fastpriv.sweep(pair, grid={"a": [1, 2, 3], "b": [0.0, 1.0]}, n_jobs=1).plot("a", "b", output="ratio")
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    assert ax.get_title(loc="left") == "ratio, 3 of 6 cells without a number"
    assert [line.get_xdata().size for line in ax.get_lines()] == [0, 3]


def test_many_curves():
    ax = fastpriv.sweep("bac_capacity", grid={"a": "0:1:21", "b": [0.1, 0.2]}, n_jobs=1).plot("b", "a")
    assert len(ax.get_lines()) == 21
    assert len(ax.get_legend().get_texts()) == 12
    assert ax.get_legend().get_title().get_text() == "12 of 21 values of a"


def words(word, b):
    return len(word) * b


@pytest.mark.parametrize(("arguments", "message"), [
    (("rho",), "x must be one of sigma, rate, epsilon"),
    (("sigma", "rho"), "hue must be one of sigma, rate, epsilon"),
    (("sigma",), "x and hue must tell the cells apart; got several values of 'rate' beside them"),
])
def test_errors(table, arguments, message):
    with pytest.raises(errors.DomainError, match=message):
        table.plot(*arguments)


def test_more_errors(table):
    with pytest.raises(errors.DomainError, match="output must be one of"):
        figures.sweep(table, "sigma", "rate", output="delta")
    with pytest.raises(errors.DomainError, match="x must be a setting of numbers; got 'word', whose values are texts"):
        fastpriv.sweep(words, grid={"word": ["a", "bc"], "b": [1.0]}, n_jobs=1).plot("word")
    with pytest.raises(errors.DomainError, match="table must be"):
        figures.sweep(3, "sigma")


@pytest.mark.slow
def test_command(tmp_path, capsys):
    arguments = ["sweep", "bac_capacity", "--grid", "a=0.1,0.2", "--grid", "b=0:0.5:3", "--quiet", "--n-jobs", "1"]
    assert main([*arguments, "--figure", str(tmp_path / "a.svg"), "--x", "b", "--hue", "a"]) == 0
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert main([*arguments, "--figure", str(tmp_path / "a.txt")]) == 2
    assert "--figure must be a name that ends in .png, .svg or .pdf" in capsys.readouterr().err
