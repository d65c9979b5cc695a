"""Verdicts: target, choice and one sentence for a person, of assessments, compositions, attacks and audits."""

import hashlib
import json

import numpy as np
import pytest

import fastpriv
from fastpriv import GaussianMechanism, compose, notions, risk
from fastpriv.auditing import audit_scores
from fastpriv.base.files import write_picture
from fastpriv.cli import main
from fastpriv.membership import evaluate_attack

AGES = np.array([31.0, 40.0, 40.0, 58.0, 60.0, 60.0, 60.0, 71.0])
MEMBER = np.arange(2000) % 2 == 0
SCORES = np.random.default_rng(1).normal(size=2000) + MEMBER


def test_the_choice_is_the_least_noise_that_meets_the_target():
    report = fastpriv.assess(AGES, sigma=[10, 400, 200, 300], epsilon=[1.0])
    need = report.requirements[-1]
    assert need.target == "LDP, epsilon = 1, delta = 1e-5"
    assert 100 < need.setting < 200
    said = risk.statement(report, record="patient")
    target, guess, information = said.sentences
    assert target == f"Target: {need.target}. Choice: sigma = 200, the least private of the grid that meets it."
    prior = fastpriv.Pmf.from_data(AGES)
    chance = notions.bayes_vulnerability(prior, GaussianMechanism(200.0))
    assert said.guess.floats() == chance.floats()
    assert 100 * chance.upper <= float(guess.split("at most ")[1].split()[0]) <= 100 * chance.upper * 1.01
    assert guess.startswith("With sigma = 200, somebody who knows everything but one value of a patient guesses it")
    assert guess.endswith("(37.5 without the release).")
    assert said.information.floats() == report["mutual_information"].to("bits")[1].floats()
    assert information.startswith("On average one release tells at most 0.00")
    assert said.from_data == ("The range of the values, 40, is computed from the private data.",
                              "Guesses and information take people to follow the distribution of the values in these "
                              "data.")
    assert said.assumptions()[-1].startswith("Each value is released once")
    assert str(said) == "\n".join(said.sentences)
    assert report.settings()["verdict"]["guess"]["upper"] == said.guess.upper


def test_nothing_on_the_grid_meets_the_target_and_nothing_is_read_off_the_data():
    prior = fastpriv.Pmf([0.0, 1.0], [0.5, 0.5])
    said = risk.statement(fastpriv.assess(prior, sigma=[0.1, 0.2], epsilon=[1.0], sensitivity=2.0))
    assert said.sentences[0].endswith("Choice: sigma = 0.2, the most private of the grid, and does NOT meet it.")
    assert said.from_data == ()


def test_levels_and_channels():
    jobs = fastpriv.assess(["nurse", "nurse", "clerk"], mechanism="rr", level=[0.5, 1.0, 3.0], epsilon=[1.0])
    assert "Choice: level = 1, the least private" in risk.statement(jobs).sentences[0]
    assert risk.statement(jobs).guess.floats() == jobs["bayes_vulnerability"][1].floats()
    channel = fastpriv.assess(mechanism=fastpriv.Channel([[0.9, 0.1], [0.2, 0.8]]), epsilon=[1.0])
    assert risk.statement(channel).sentences[0].startswith("Through ")
    assert "guesses it right at most 85.1 times in 100 (50 without" in risk.statement(channel).sentences[0]


@pytest.mark.slow
def test_attacks_and_audits():
    evaluation = evaluate_attack(SCORES, MEMBER, fpr=0.01)
    said = risk.statement(evaluation, prior=0.05, record="patient")
    tpr = evaluation.tpr_at_fpr
    assert said.true_positive_rate == tpr
    for ours, share in zip(said.precision.floats(), tpr.floats(), strict=True):
        assert ours == pytest.approx(0.05 * share / (0.05 * share + 0.95 * 0.01), rel=1e-12)
    assert said.precision.kind == "statistical"
    assert said.precision.confidence == evaluation.confidence
    assert said.lift.lower == pytest.approx(said.precision.lower / 0.05)
    assert said.sentences[0].startswith("This attack, which wrongly accuses at most 1 in 100 of the patients that")
    low, high = said.sentences[0].split("finds ")[1].split(" %")[0].split(" to ")
    assert float(low) <= 100 * tpr.lower <= 100 * tpr.upper <= float(high)
    assert said.assumptions()[0] == "Each interval is at confidence 0.95; other attacks may find more."
    assert "1,000 members and 1,000 non-members" in said.assumptions()[1]

    audit = audit_scores(SCORES, MEMBER, delta=1e-2)
    said = risk.statement(audit)
    assert (said.epsilon, said.mu) == (audit.epsilon, audit.mu)
    assert said.sentences[0].startswith("Whoever claims an epsilon below 1.")
    assert "at delta = 0.01 is wrong at confidence 0.95: " in said.sentences[0]
    assert said.sentences[0].endswith("non-members claimed.")
    unpaid = risk.statement(audit_scores(SCORES, MEMBER, delta=1e-2, selection="as_published"))
    assert "is wrong as published, which is FALSE" in unpaid.sentences[1]


def test_a_composition_says_what_its_best_answer_promises(capsys):
    words = ["compose", "--sigma", "2", "--count", "1"]
    assert main([*words, "--epsilon", "0,1", "--delta", "1e-6", "--json"]) == 0
    (text,) = json.loads(capsys.readouterr().out)["verdict"]
    times = float(text.split("guesses it right ")[1].split()[0])
    truth = 50 + 50 * float(compose(GaussianMechanism(2.0, 1.0)).delta(0.0).value)
    assert truth <= times <= truth * 1.001
    assert main([*words, "--epsilon", "0"]) == 0
    assert text in capsys.readouterr().out
    for silent in (["--direction", "forward", "--rate", "0.1", "--epsilon", "1"],
                   ["--largest-count", "--epsilon", "1", "--delta", "1e-6"]):
        few = words[:3] if "--largest-count" in silent else words
        assert main([*few, *silent, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == []


@pytest.mark.slow
def test_the_same_command_makes_the_same_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my ages.csv").write_text("age\n" + "\n".join(map(str, AGES)))
    words = ["assess", "my ages.csv", "--sigma", "10,200", "--epsilon", "1", "--out", "r", "--format", "html",
             "--quiet", "--figure-format", "none"]
    monkeypatch.setattr("fastpriv.report.pages._can_draw", lambda: False)  # pictures: see below
    pages = []
    for _ in range(2):
        assert main(words) == 0
        pages.append((tmp_path / "r" / "assessment.html").read_text())
    assert pages[0] == pages[1]
    assert "fastpriv assess &#x27;my ages.csv&#x27; --sigma 10,200 --epsilon 1" in pages[0]
    assert hashlib.sha256((tmp_path / "my ages.csv").read_bytes()).hexdigest() in pages[0]
    assert "SHA-256 of my ages.csv" in pages[0]
    assert "<dt>The range of the values, 40, is computed from the private data.</dt>" in pages[0]
    assert "<h2>Verdict</h2>" in pages[0]
    assert "Target: LDP, epsilon = 1, delta = 1e-5. Choice: sigma = 200" in pages[0]
    (tmp_path / "my ages.csv").write_text("age\n" + "\n".join(map(str, AGES + 1)))
    assert main(words) == 0
    assert (tmp_path / "r" / "assessment.html").read_text() != pages[0]


def test_a_picture_is_the_same_file_again(tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    for name in ("a.svg", "b.svg"):
        figure = figures.Figure()
        figure.add_subplot().plot([0, 1])
        write_picture(tmp_path / name, figure, 100)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
