"""``fastpriv posterior``: what it prints and writes, and errors in one line."""

import json

import numpy as np
import pytest

import fastpriv
from fastpriv.cli import main


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("l.npy", np.log([0.5, 0.25, 0.5, 0.125]))
    np.save("plain.npy", [0.5, 0.25, 0.5, 0.125])
    np.save("p.npy", [0.25, 0.25, 0.25, 0.25])
    return tmp_path


def test_the_table(inside, capsys):
    assert main(["posterior", "l.npy", "--top", "2", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "log evidence   -1.06784063      -1.06784063" in said
    assert "4 secrets; the most probable is 0, and 1 more are as probable\n" in said
    assert "\n0  0.363636363636\n2  0.363636363636\n" in said
    assert said.splitlines()[0].split() == ["quantity", "value", "at", "least", "at", "most", "unit", "kind"]


@pytest.mark.parametrize("words", [
    ["l.npy"], ["l.npy", "--prior", "p.npy"], ["plain.npy", "--plain"], ["l.npy", "--prior", "logs.npy", "--log-prior"],
])
def test_json(inside, capsys, words):
    np.save("logs.npy", np.log(np.load("p.npy")))
    assert main(["posterior", *words, "--json", "--out", "after.npy"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = fastpriv.posterior(np.load("l.npy"))
    assert abs(found["kl"]["value"] - expected.kl.value) < 1e-15
    assert found["top"]["indices"] == [0, 2, 1, 3]
    np.testing.assert_allclose(np.load("after.npy"), expected.probabilities(), rtol=1e-14)


def test_parquet_columns(inside, capsys):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"l": np.load("l.npy"), "p": np.load("p.npy")}), "both.parquet")
    words = ["posterior", "both.parquet", "--column", "l", "--prior", "both.parquet", "--prior-column", "p"]
    assert main([*words, "--out", "after.npy"]) == 0
    assert "Written: after.npy" in capsys.readouterr().out


def test_errors_are_one_line(inside, capsys):
    for words, told in (
        (["none.npy"], "likelihood must be an existing file"),
        (["plain.npy"], None),
        (["l.npy", "--prior", "plain.npy"], "prior must sum to 1 within"),
        (["l.npy", "--top", "-1"], "top must be an integer of at least 0"),
        (["l.npy", "--out", "x.csv"], "out must be a .npy file"),
    ):
        assert main(["posterior", *words, "--quiet"]) == (2 if told else 0)
        error = capsys.readouterr().err
        assert error.count("\n") == (1 if told else 0)
        assert told is None or told in error
