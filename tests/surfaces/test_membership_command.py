"""``fastpriv membership``: data, priors, noises and files; one line for what is wrong."""

import json

import numpy as np
import pytest

from fastpriv.cli import main

BITS = (np.random.default_rng(1).random((60, 12)) < 0.4).astype(int)
SHORT = ["--releases", "60", "--pool", "8", "--attributes", "10", "--quiet"]


@pytest.fixture
def panel(tmp_path):
    path = tmp_path / "panel.npy"
    np.save(path, BITS)
    return str(path)


@pytest.mark.slow
def test_files_are_written(panel, tmp_path):
    out = tmp_path / "out"
    assert main(["membership", panel, *SHORT, "--out", str(out), "--figure-format", "none"]) == 0
    names = {path.name for path in out.iterdir()}
    assert {"membership.csv", "membership.json", "membership.html"} <= names
    rows = json.loads((out / "membership.json").read_text())["table"]
    assert [row["defence"] for row in rows[::5]] == ["none", "Gaussian", "Laplace", "L-infinity"]
    for row in rows[5:]:
        assert row["utility_loss"] == pytest.approx(0.06, rel=0.15)


@pytest.mark.slow
def test_json_priors_and_noises(panel, capsys):
    words = ["--json", "--noise", "gaussian:0.3", "--noise", "laplace:epsilon=20", "--noise", "linf:epsilon=10",
             "--attack", "bayes"]
    assert main(["membership", panel, *SHORT, "--probability", "0.4", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["prior"] == "BernoulliMembership(0.4)"
    assert [row["defence"] for row in found["table"]] == ["gaussian:0.3", "laplace:epsilon=20", "linf:epsilon=10"]
    # 8 people by 0.4 are 3 whole members: scales 10 / (3 * 20) and 1 / (3 * 10)
    assert found["settings"]["defences"]["laplace:epsilon=20"].startswith("LaplaceNoise(0.1666")
    assert found["settings"]["defences"]["linf:epsilon=10"].startswith("LInfinityNoise(0.0333")


@pytest.mark.slow
def test_the_table_is_printed(panel, tmp_path, capsys):
    words = [word for word in SHORT if word != "--quiet"]
    out = ["--out", str(tmp_path / "out"), "--figure-format", "none"]
    assert main(["membership", panel, *words, *out, "--attack", "score", "--members", "3"]) == 0
    text = capsys.readouterr().out
    assert "A constant release would lose" in text
    assert text.count("score") >= 4


@pytest.mark.slow
def test_references(panel, tmp_path, capsys):
    others = tmp_path / "others.npy"
    np.save(others, (np.random.default_rng(2).random((20, 12)) < 0.4).astype(int))
    words = ["membership", panel, *SHORT, "--json", "--references", str(others)]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["references"] == 20


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--noise", "uniform:1"], "--noise must be none, gaussian:SIGMA, laplace:epsilon=E, laplace:scale=B, "
                                   "linf:epsilon=E or linf:scale=B; got 'uniform:1'"),
        (["--noise", "laplace:60"], "or linf:scale=B; got 'laplace:60'. Write laplace:epsilon=60 for the privacy of "
                                    "the whole release, or laplace:scale=0.05 for the scale of the noise."),
        (["--noise", "laplace:scale=-1"], "scale must be"),
        (["--noise", "gaussian:x"], "--noise must be none"),
        (["--noise", "gaussian:-1"], "sigma must be"),
        (["--pool", "60"], "--pool must be from 2 to 58, of 60 people; got 60"),
        (["--attributes", "-1"], "--attributes must be at least 0; got -1"),
        (["--utility", "0"], "--utility must be positive and finite; got 0"),
        (["--seed", "-1"], "--seed must be at least 0; got -1"),
        (["--members", "9", "--pool", "8"], "n0 must be"),
        (["--attack", "guess"], "attacks must be one of bayes"),
    ],
)
def test_bad_input(panel, tmp_path, capsys, words, text):
    assert main(["membership", panel, "--quiet", "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fastpriv: error: ")
    assert text in error
    assert error.count("\n") == 1


def test_bad_files(tmp_path, capsys):
    assert main(["membership", str(tmp_path / "none.npy"), "--quiet"]) == 2
    np.save(tmp_path / "a.npy", np.ones((40, 3), dtype=int))
    assert main(["membership", str(tmp_path / "a.npy"), "--quiet", "--pool", "8"]) == 2
    assert "must have attributes that vary" in capsys.readouterr().err
    np.save(tmp_path / "b.npy", np.full((40, 3), 2))
    assert main(["membership", str(tmp_path / "b.npy"), "--quiet", "--pool", "8"]) == 2
    np.save(tmp_path / "c.npy", BITS[:, :5])
    np.save(tmp_path / "d.npy", BITS)
    assert main(["membership", str(tmp_path / "d.npy"), "--quiet", "--references", str(tmp_path / "c.npy")]) == 2
    assert "--references must have the 12 attributes of FILE; got 5" in capsys.readouterr().err


def _first_line(words, capsys):
    short = ["--releases", "20", "--training", "20", "--attack", "score", "--figure-format", "none"]
    assert main(["membership", *words, *short]) == 0
    return capsys.readouterr().out.splitlines()[0]


@pytest.mark.slow
def test_a_file_is_taken_whole_and_the_first_line_says_so(panel, tmp_path, capsys):
    out = tmp_path / "out"
    said = _first_line([panel, "--out", str(out)], capsys)
    assert said.endswith(
        "panel.npy: 16 of 60 people drawn at random (--pool) may be members; the others are references; "
        "all 12 attributes."
    )
    settings = json.loads((out / "membership.json").read_text())["settings"]
    assert settings["attributes"] == 12
    assert settings["data"] == said
    assert "16 of 60 people drawn at random" in (out / "membership.html").read_text()


@pytest.mark.slow
def test_what_is_drawn_is_said_first(panel, tmp_path, capsys):
    words = [panel, "--out", str(tmp_path / "out")]
    drawn = _first_line([*words, "--attributes", "5", "--pool", "8"], capsys)
    assert "8 of 60 people drawn at random (--pool) may be members" in drawn
    assert "5 attributes drawn at random of the 12 that vary (--attributes; 0 takes all)" in drawn
    shipped = _first_line(words[1:], capsys)
    assert "the simulated genotypes that ship: 16 of 1,000 people drawn" in shipped
    assert "24 attributes drawn at random of the " in shipped
    for name, seed in (("wide", 1), ("others", 2)):
        np.save(tmp_path / f"{name}.npy", (np.random.default_rng(seed).random((6, 1200)) < 0.4).astype(int))
    wide, others = (str(tmp_path / f"{name}.npy") for name in ("wide", "others"))
    wide = _first_line([wide, "--pool", "6", "--references", others, *words[1:]], capsys)
    assert "all 6 people may be members; 6 references of a file; 1,000 attributes drawn at random of the " in wide


def test_the_words_of_missing_are_those_of_other_commands(tmp_path, capsys):
    """An attribute without a genotype: an error, left out, or read as 0."""
    table = tmp_path / "gap.csv"
    lines = ["0,1,1", "1,0,", "0,1,0", "1,1,1", "0,0,1", "1,0,0"]
    table.write_text("a,b,c\n" + "\n".join(lines))
    words = ["membership", str(table), "--pool", "3", "--attack", "score", "--noise", "none", "--releases", "20",
             "--training", "20", "--json", "--quiet"]
    assert main(words) == 2
    assert "missing" in capsys.readouterr().err
    for choice, left in (("drop", 2), ("zero", 3)):
        assert main([*words, "--missing", choice]) == 0
        assert json.loads(capsys.readouterr().out)["settings"]["attributes"] == left
    with pytest.raises(SystemExit):
        main([*words, "--missing", "raise"])
    assert "argument --missing: invalid choice: 'raise'" in capsys.readouterr().err
