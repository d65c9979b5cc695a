"""The study of attacks: its numbers are those of the attacks themselves; seeds, remarks, files."""

import json

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.studies.membership import (
    AdaptiveThresholdLRT,
    BayesAttacker,
    BernoulliMembership,
    FixedSizeMembership,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    NoNoise,
    Panel,
    StudyOptions,
    attack_study,
    auc,
    evaluate_attack,
)
from fastpriv.studies.membership.studies import save_study, shown, study_page

BITS = np.random.default_rng(1).random((40, 24)) < 0.4
PANEL, OTHERS, PRIOR = Panel(BITS[:8]), Panel(BITS[8:]), FixedSizeMembership(4)
DEFENCES = {"none": NoNoise(), "noise": GaussianNoise(0.3)}
ATTACKS = ["bayes", "fixed", "adaptive", "score"]


def study(**words):
    options = {name: words.pop(name) for name in StudyOptions.__slots__ if name in words}
    options = StudyOptions(**{"attacks": ATTACKS, "n_releases": 300} | options)
    return attack_study(PANEL, OTHERS, PRIOR, DEFENCES, options, **{"rng": 1} | words)


STUDY = study()


@pytest.mark.slow
def test_numbers_are_those_of_the_attacks_on_the_same_releases(tmp_path):
    seen = {}

    class Seen(GaussianNoise):
        def draw(self, membership, n_attributes, rng):
            seen["b"] = membership
            seen["noise"] = super().draw(membership, n_attributes, rng)
            return seen["noise"].copy()

    found = attack_study(
        PANEL, OTHERS, PRIOR, {"none": NoNoise(), "noise": Seen(0.3)},
        StudyOptions(attacks=["bayes", "adaptive"], n_releases=300), rng=1,
    )
    b = seen["b"]
    released = PANEL.counts(b) / b.sum(axis=1, keepdims=True) + seen["noise"]
    one = found["noise", "bayes"].evaluation
    from fastpriv.studies.membership import FrequencyRelease

    scores = BayesAttacker(FrequencyRelease(PANEL, PRIOR, GaussianNoise(0.3))).predict_proba(released)
    assert one.auc.value == auc(scores.ravel(), b.ravel())
    assert one.bwma == evaluate_attack(scores, b, posterior=True).bwma
    scores = AdaptiveThresholdLRT(PANEL, OTHERS).scores(released)
    assert found["noise", "adaptive"].evaluation.auc.value == auc(scores.ravel(), b.ravel())
    loss = np.abs(released - PANEL.counts(b) / b.sum(axis=1, keepdims=True)).mean()
    assert found["noise", "bayes"].utility_loss.value == pytest.approx(loss, rel=1e-12)


def test_no_noise_is_told_apart_and_noise_is_not():
    assert STUDY["none", "Bayes"].evaluation.auc.value == 1.0
    assert STUDY["none", "bayes"].utility_loss.value == 0.0
    assert 0.5 < STUDY["noise", "bayes"].evaluation.auc.value < 0.95
    for attack in ATTACKS[1:]:
        assert STUDY["noise", attack].evaluation.auc.value <= STUDY["noise", "bayes"].evaluation.auc.value + 0.03


@pytest.mark.slow
def test_seeds_and_threads():
    again = study(n_jobs=2)
    assert again.rows() == STUDY.rows()
    assert study(rng=2).rows() != STUDY.rows()


@pytest.mark.slow
def test_what_does_not_apply_says_so():
    def shift(membership, seeds):
        return np.repeat(seeds - 0.5, 24, axis=1) / 10

    defences = {"generator": GeneratorNoise(shift, 1), "noise": GaussianNoise(0.3)}
    options = StudyOptions(attacks=["bayes", "score"], n_releases=100)
    found = attack_study(PANEL, OTHERS, PRIOR, defences, options, rng=1)
    assert found["generator", "bayes"].evaluation is None
    assert found["generator", "bayes"].remark == "not run: the noise has no likelihood"
    assert found["generator", "score"].evaluation is not None
    assert found.rows()[0][2] is None
    many = Panel(BITS[:30])
    found = attack_study(
        many, Panel(BITS[30:]), BernoulliMembership(0.5), {"none": NoNoise(), "noise": LaplaceNoise(0.5)},
        StudyOptions(attacks=["bayes"], n_releases=4), rng=1,
    )
    assert "not sampled" in found["none", "bayes"].remark
    assert "chains mixed for" in found["noise", "bayes"].remark


def test_a_constant_loses_what_frequencies_vary():
    b = PRIOR.draw(20000, 8, np.random.default_rng(3))
    truth = np.abs(PANEL.counts(b) / 4 - PANEL.frequencies()).mean()
    assert STUDY.constant_loss.value == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"attacks": ["guess"]}, r"attacks must be one of bayes, .*; got 'guess'\. Choose one of these\."),
        ({"attacks": []}, r"attacks must name at least one attack; got none\. Choose among bayes"),
        ({"fpr": 0.0}, r"fpr must be between 0 and 1, exclusive; got 0\.0"),
        ({"gamma": 1.0}, r"gamma must be between 0 and 1, exclusive; got 1\.0"),
        ({"confidence": 2.0}, r"confidence must be between 0 and 1, exclusive; got 2\.0"),
    ],
)
def test_bad_arguments(words, text):
    with pytest.raises(DomainError, match=text):
        study(**words)


def test_more_bad_arguments():
    with pytest.raises(DomainError, match=r"^defences must be a mapping of at least one name to its noise; got \{\}"):
        attack_study(PANEL, OTHERS, PRIOR, {})
    with pytest.raises(DomainError, match=r"^names must be a defence and an attack of the study; got .*Defences: none"):
        STUDY["none", "tree"]


@pytest.mark.slow
def test_files(tmp_path):
    paths = save_study(STUDY, tmp_path)
    assert [path.name for path in paths][-1] == "membership.html"
    assert {"membership.csv", "membership.json"} <= {path.name for path in paths}
    found = json.loads((tmp_path / "membership.json").read_text())
    assert len(found["table"]) == len(STUDY.rows()) == 8
    assert found["table"][0]["auc"] == 1.0
    page = paths[-1].read_text()
    assert "http" not in page.replace("http-equiv", "")
    for defence, attack in (("none", "Bayes"), ("noise", "adaptive LRT")):
        assert defence in page
        assert attack in page
        assert shown(STUDY[defence, attack].evaluation.auc) in page
    assert "<img" not in study_page(STUDY, drawn=False)
