"""``fastpriv risk``: sentences, JSON and a page; one line for what is wrong."""

import json

import pytest

from fastpriv import PoissonSampledGaussian, compose, risk
from fastpriv.cli import main

STEP = ("--sigma", "1", "--rate", "0.01", "--count", "100")


@pytest.mark.slow
def test_the_sentences_are_those_of_the_call(capsys):
    assert main(["risk", *STEP, "--prior", "0.05", "--record", "patient"]) == 0
    text = capsys.readouterr().out
    said = risk.statement(compose(PoissonSampledGaussian(1.0, 0.01), 100), prior=0.05, record="patient")
    assert str(said) in text
    assert text.startswith("100 releases: 100 x sampled gaussian, sigma 1, rate 0.01")
    assert "The attacker knows everything but" in text


@pytest.mark.slow
def test_json_and_page(capsys, tmp_path):
    page = tmp_path / "risk.html"
    assert main(["risk", *STEP, "--fpr", "0.01", "--candidates", "100", "--delta", "1e-6", "--page", str(page),
                 "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    said = risk.statement(compose(PoissonSampledGaussian(1.0, 0.01), 100), false_positive_rate=0.01, candidates=100,
                          delta=1e-6)
    assert document["sentences"] == list(said.sentences)
    assert document["precision"]["upper"] == said.precision.upper
    assert document["settings"]["candidates"] == 100
    text = page.read_text()
    assert all(sentence in text for sentence in said.sentences)
    assert "What ran" in text


def test_events_of_others(capsys, tmp_path):
    (tmp_path / "history.json").write_text("[[1.0, 0.01, 100]]")
    assert main(["risk", str(tmp_path / "history.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["true_positive_rate"]
    wanted = risk.statement(compose(PoissonSampledGaussian(1.0, 0.01), 100)).true_positive_rate
    assert (found["lower"], found["upper"]) == (wanted.lower, wanted.upper)


@pytest.mark.parametrize(("words", "text"), [
    ((), "FILE or --sigma must be given"), ((*STEP, "--prior", "1"), "prior must be between 0 and 1"),
    ((*STEP, "--fpr", "0"), "false_positive_rate must be positive"), (("missing.json",), "missing.json"),
    ((*STEP, "--record", " "), "record must be a word"), ((*STEP, "--page", "no/such/risk.html"), "no/such"),
])
def test_one_line_for_what_is_wrong(capsys, words, text):
    assert main(["risk", *words]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
