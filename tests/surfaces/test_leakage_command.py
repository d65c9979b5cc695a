"""``fastpriv leakage``: data, protections, files, resumption after a kill; one line for what is wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fastpriv import figures
from fastpriv.base.errors import DomainError
from fastpriv.base.store import ResultStore
from fastpriv.cli import main
from fastpriv.studies.leakage import (
    GradientMatching,
    Protection,
    Reconstruction,
    SoftmaxRegression,
    leakage_study,
)
from fastpriv.studies.leakage.leakage_pages import leakage_page, reconstruction_figure
from fastpriv.studies.leakage.record_files import labelled_records, read_records

RNG = np.random.default_rng(3)
PICTURES, LABELS = RNG.integers(0, 17, (60, 3, 3)), np.arange(60) % 4
SHORT = ["--pool", "12", "--batch", "2", "--models", "2", "--attacks", "2", "--n-jobs", "1", "--quiet"]
FEW = ["--protection", "none", "--protection", "gaussian:0.01,0.3", "--protection", "clip:0.5+laplace:0.1"]
NAMES = ["none", "gaussian 0.01", "gaussian 0.3", "clip 0.5 + laplace 0.1"]


@pytest.fixture
def pictures(tmp_path):
    path = tmp_path / "pictures.npz"
    np.savez(path, records=PICTURES, labels=LABELS)
    return str(path)


@pytest.fixture(scope="module")
def study():
    grid = {"none": Protection(), "a": Protection(noise="gaussian", scale=0.01),
            "b": Protection(noise="gaussian", scale=0.3), "few": Protection(keep_fraction=0.2)}
    data = labelled_records(PICTURES, LABELS, source="made up")
    found = leakage_study(SoftmaxRegression(9, 4), data.records, data.labels, grid, pool=12, batch=2, n_models=2,
                          n_attacks=2, rng=1, n_jobs=1)
    return found, data


@pytest.mark.slow
def test_files_are_written(pictures, tmp_path):
    out = tmp_path / "out"
    assert main(["leakage", pictures, *SHORT, *FEW, "--out", str(out), "--figure-format", "svg"]) == 0
    wanted = {"leakage.csv", "leakage.json", "leakage.html", "leakage.svg", "reconstructions.svg"}
    assert wanted <= {path.name for path in out.iterdir()}
    rows = json.loads((out / "leakage.json").read_text())["table"]
    assert [row["protection"] for row in rows] == NAMES
    assert rows[0]["recovered"] == rows[0]["exact_recovered"] == 1.0
    assert rows[3]["exact_c1"] is None
    assert rows[3]["remark"].startswith("the exact posterior is known for")
    page = (out / "leakage.html").read_text()
    for name in NAMES:
        assert name in page
    assert page.count("<img ") == 3
    assert "http" not in page.replace("http://www.w3.org", "")


@pytest.mark.slow
def test_the_command_is_the_function(pictures, capsys):
    assert main(["leakage", pictures, *SHORT, *FEW, "--json", "--seed", "5"]) == 0
    found = json.loads(capsys.readouterr().out)
    pool = np.sort(np.random.default_rng([5, 0x6C65616B]).permutation(60)[:12])
    grid = {NAMES[0]: Protection(), NAMES[1]: Protection(noise="gaussian", scale=0.01),
            NAMES[2]: Protection(noise="gaussian", scale=0.3),
            NAMES[3]: Protection(clip_example=0.5, noise="laplace", scale=0.1)}
    low, high = PICTURES.min(), PICTURES.max()
    study = leakage_study(SoftmaxRegression(9, 4), (PICTURES.reshape(60, 9) - low) / (high - low), LABELS, grid,
                          pool=pool, batch=2, n_models=2, n_attacks=2, rng=5)
    assert found == json.loads("".join(study.json_pieces()))


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "mlp", "--hidden", "4,3", "--activation", "tanh"],
        ["--n-jobs", "2"],
        ["--attack", "prior", "--rounds", "2"],
        ["--share", "weights", "--local-steps", "2"],
    ],
)
def test_models_and_attacks(pictures, capsys, words):
    assert main(["leakage", pictures, *SHORT, "--protection", "dp-sgd:1:0.01,2", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["protection"] for row in found["table"]] == [
        "DP-SGD, clip 1, multiplier 0.01", "DP-SGD, clip 1, multiplier 2"]
    assert "scale=0.005, every_step=True" in found["settings"]["protections"]["DP-SGD, clip 1, multiplier 0.01"]


def test_the_table_is_printed(pictures, tmp_path, capsys):
    words = [word for word in SHORT if word != "--quiet"]
    out = ["--out", str(tmp_path / "out"), "--figure-format", "none"]
    assert main(["leakage", pictures, *words, *out, *FEW]) == 0
    text = capsys.readouterr().out
    assert text.startswith("protection ")
    assert "Attacks that name records at random have a C1 of" in text
    assert f"Of {NAMES[3]}: the exact posterior" in text
    assert not list((tmp_path / "out").glob("*.png"))


@pytest.mark.slow
def test_a_killed_run_goes_on(pictures, tmp_path, capsys):
    store = tmp_path / "store.db"
    words = ["leakage", pictures, *SHORT, "--json", "--protection", "gaussian:0.01..1:24"]
    process = subprocess.Popen([sys.executable, "-m", "fastpriv", *words, "--store", str(store)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = 0
    while rows < 16 and process.poll() is None:
        time.sleep(0.01)
        if store.exists():
            try:
                with ResultStore.read(store) as kept:
                    rows = sum(1 for _ in kept.items())
            except (DomainError, OSError, ValueError):
                continue
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert rows >= 16
    assert main([*words, "--store", str(store)]) == 0
    resumed = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out == resumed
    with ResultStore.read(store) as kept:
        assert sum(1 for _ in kept.items()) == 24 * 2 * 3
    assert main([*words, "--store", str(store), "--seed", "1"]) == 2
    assert "store" in capsys.readouterr().err


def test_csv_and_parquet_agree(tmp_path):
    table, names = RNG.random((9, 3)).round(3), list("xyxyxyzzz")
    lines = ["a,b,label,c", *(f"{a},{b},{name},{c}" for (a, b, c), name in zip(table.tolist(), names, strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (tmp_path / "b.csv").write_text("\n".join(lines).replace("label", "kind").replace(",", ";").replace(".", ","))
    found = [
        read_records(tmp_path / "a.csv"), read_records(tmp_path / "b.csv", label="kind", sep=";", decimal=","),
        read_records(tmp_path / "b.csv", label="kind"),
    ]
    for one in found:
        np.testing.assert_allclose(one.records, (table - table.min(axis=0)) / np.ptp(table, axis=0), rtol=1e-12)
        assert one.labels.tolist() == [ord(name) - ord("x") for name in names]
        assert one.shape is None
    assert found[0].classes == ("x", "y", "z")
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    columns = {"label": names} | dict(zip("abc", table.T, strict=True))
    parquet.write_table(arrow.table(columns), tmp_path / "d.parquet")
    np.testing.assert_array_equal(read_records(tmp_path / "d.parquet").records, found[0].records)


def test_constant_features_and_pictures_in_colour():
    assert not labelled_records([[5.0, 1.0], [5.0, 2.0]], [0, 1], source="").records[:, 0].any()
    colour = labelled_records(RNG.random((4, 2, 5, 3)), [0, 1, 0, 1], source="")
    assert colour.shape == (2, 5, 3)
    assert colour.records.shape == (4, 30)
    assert labelled_records(RNG.random((4, 6)), ["a", "b"] * 2, shape=(2, 3), source="").shape == (2, 3)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--protection", "uniform:1"], "--protection must be a known protection; got 'uniform:1'"),
        (["--protection", "gaussian"], "--protection must have a number after each colon"),
        (["--protection", "gaussian:x"], "--protection must be positive and finite; got 'x'"),
        (["--protection", "gaussian:-1"], "--protection must be positive and finite; got -1"),
        (["--protection", "gaussian:1:2:2000"], "at most 1,000 values; got 2000"),
        (["--protection", "gaussian:1+laplace:1"], "must name each protection once"),
        (["--protection", "none+clip:1"], "must name each protection once, and none alone"),
        (["--protection", "largest:1.5"], "keep_fraction must be above 0 and at most 1; got 1.5"),
        (["--protection", "levels:1"], "levels must be"),
        (["--protection", "levels:2.5"], "levels must be"),
        (["--batch", "60"], "--batch must be from 1 to 59, fewer than the candidates; got 60"),
        (["--pool", "61"], "--pool must be from 2 to 60, the number of records; got 61"),
        (["--pool", "60", "--attack", "prior"], "--pool must leave at least 2 records as a prior; got 60"),
        (["--batch", "12", "--pool", "12"], "--batch must be from 1 to 11"),
        (["--hidden", "3"], "--hidden must be left out for softmax regression"),
        (["--model", "mlp", "--hidden", "3,0"], "--hidden must be whole numbers, 1 or more; got '3,0'"),
        (["--shape", "3"], "--shape must be HxW, or HxWx3 in colour; got '3'"),
        (["--shape", "2x2"], "shape must have as many pixels as a record has numbers, 9; got 2x2"),
        (["--label", "x"], "label and the options of CSV files must be left out for .npz"),
        (["--models", "0"], "n_models must be"),
        (["--learning-rate", "0"], "learning_rate must be"),
        (["--seed", "-1"], "--seed must be at least 0; got -1"),
    ],
)
def test_bad_input(pictures, tmp_path, capsys, words, text):
    assert main(["leakage", pictures, "--quiet", "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fastpriv: error: ")
    assert text in error
    assert error.count("\n") == 1


def test_bad_files(tmp_path):
    def refused(name, text, **words):
        with pytest.raises(DomainError, match=text):
            read_records(tmp_path / name, **words)

    with pytest.raises(FileNotFoundError, match="path must be an existing file"):
        read_records(tmp_path / "none.npz")
    with pytest.raises(IsADirectoryError, match="path must be an existing file"):
        read_records(tmp_path)
    np.savez(tmp_path / "a.npz", x=PICTURES)
    refused("a.npz", "with arrays records and labels; got x")
    (tmp_path / "d.csv").write_text("a,b,label\n1,2,x\n1,two,y\n")
    refused("d.csv", "got 'two' in column 'b' of record 2")
    (tmp_path / "e.csv").write_text("a,b\n1,nan\n2,3\n")
    refused("e.csv", "got 'nan' in column 'b' of record 1", label="a")
    (tmp_path / "f.csv").write_text("label\nx\ny\n")
    refused("f.csv", "path must have a column of labels beside features")


@pytest.mark.parametrize(
    ("records", "labels", "words", "text"),
    [
        (np.ones(3), [0, 1, 0], {}, r"records must be rows of numbers, or pictures .*; got shape \(3,\)"),
        (np.ones((3, 2, 2, 4)), [0, 1, 0], {}, "records must be rows of numbers, or pictures"),
        ([[np.inf], [1.0]], [0, 1], {}, "records must be finite numbers"),
        ([[1e308], [-1e308]], [0, 1], {}, "records must have differences that a double holds"),
        (np.ones((3, 2)), [0, 1], {}, r"labels must have one entry a record, 3; got shape \(2,\)"),
        (np.ones((2, 2)), [0.0, np.nan], {}, "labels must be classes; got NaN or infinity"),
        (np.ones((2, 2)), [0j, 1j], {}, "labels must be numbers or texts; got complex128 entries"),
        (np.ones((2, 2)), [1, 1], {}, "labels must name from 2 to 1000 classes; got 1 different ones"),
        (np.ones((2000, 2)), np.arange(2000), {}, "labels must name from 2 to 1000 classes; got 2000"),
    ],
)
def test_bad_records(records, labels, words, text):
    with np.errstate(over="ignore"), pytest.raises(DomainError, match=text):
        labelled_records(records, labels, source="", **words)


def test_examples_are_the_reconstructions(study):
    found, data = study
    members = found.pool[found.batch]
    truth = data.records[members]
    assert [one.label for one in found.examples] == ["none", "a", "b", "few"]
    np.testing.assert_allclose(found.examples[0].records, truth, atol=1e-6)
    for example, named in zip(found.examples, found.attributions[:, 0, 0], strict=True):
        assert example.records.shape == truth.shape
        assert set(found.batch[example.recovered]) == set(found.batch) & set(named)
        pairs = ((example.records - truth) ** 2).sum()
        assert pairs <= ((example.records[::-1] - truth) ** 2).sum() + 1e-12


def test_diverged_reconstructions_are_kept():
    class Diverges:
        def reconstruct(self, updates, rng):
            found = GradientMatching().reconstruct(updates, rng=rng)
            return Reconstruction(np.array([found.records[0], np.full(9, np.nan)]), found.labels, 0.0)

    data = labelled_records(PICTURES, LABELS, source="")
    found = leakage_study(SoftmaxRegression(9, 4), data.records, data.labels, [Protection()], attack=Diverges(),
                          pool=12, batch=2, n_models=1, n_attacks=1, rng=1, n_jobs=1)
    example = found.examples[0]
    assert example.recovered.sum() == 1
    np.testing.assert_array_equal(np.isnan(example.records).all(axis=1), ~example.recovered)
    picture = reconstruction_figure(found, data)
    assert len(picture.axes) == 4


def test_the_figure_shows_every_protection(study):
    found, data = study
    for quantity in ("c1", "recovered", "kappa_3"):
        ax = figures.estimates_against_noise(found, quantity=quantity)
        labels = [text.get_text() for text in ax.get_xticklabels()]
        assert labels == ["0.01", "0.1", "none", "few"]
        y = np.concatenate([line.get_ydata() for line in ax.get_lines() if len(line.get_ydata()) == 2])
        for one in found.outcomes[1:3]:
            assert getattr(one.estimate, quantity).value in y
    with pytest.raises(DomainError, match="quantity must be"):
        figures.estimates_against_noise(found, quantity="c3")
    with pytest.raises(DomainError, match="study must be what fastpriv.leakage.leakage_study returned"):
        figures.estimates_against_noise(3)
    picture = reconstruction_figure(found, data)
    assert len(picture.axes) == 2 * 5
    page = leakage_page(found, data, drawn=False)
    assert "<img" not in page
    assert "few" in page
