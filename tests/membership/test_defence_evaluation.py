"""Judgements of defences: losses beside closed forms, the constant, the exact attacker, fresh attackers, refusals."""

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.studies.membership import (
    AdaptiveThresholdLRT,
    BernoulliMembership,
    DworkScore,
    FixedSizeMembership,
    FixedThresholdLRT,
    FrequencyRelease,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    NoNoise,
    Panel,
    best_response,
    evaluate_defence,
    membership_equilibrium,
)


def panels(people=6, attributes=24, references=20, seed=1):
    rng = np.random.default_rng(seed)
    bits = rng.random((people + references, attributes)) < rng.uniform(0.2, 0.7, attributes)
    return Panel(bits[:people]), Panel(bits[people:])


PANEL, REFERENCES = panels()
PRIOR = BernoulliMembership(0.5)
ADAPTIVE = AdaptiveThresholdLRT(PANEL, REFERENCES)


def judged(noise, clip=False, prior=PRIOR, **words):
    given = {"attackers": [ADAPTIVE, FixedThresholdLRT(PANEL, REFERENCES)], "releases": 400, "training": 200, "rng": 1}
    return evaluate_defence(FrequencyRelease(PANEL, prior, noise, clip=clip), **given | words)


def rows(found, defence):
    return {row.attacker: row.evaluation for row in found.attacks if row.defence == defence}


@pytest.mark.slow
def test_losses_beside_closed_forms():
    found = judged(GaussianNoise(0.2), attackers=[])
    assert found.utility_loss.lower <= 0.2 * np.sqrt(2 / np.pi) <= found.utility_loss.upper
    assert found.clipped_utility_loss.value < found.utility_loss.value
    found = judged(GaussianNoise(0.2), clip=True, releases=600, attackers=[])
    assert found.utility_loss == found.clipped_utility_loss
    # the Gaussian noise of equal loss is the noise itself
    assert found.gaussian_sigma == pytest.approx(0.2, rel=0.05)
    assert found.gaussian_loss.value == pytest.approx(found.utility_loss.value, rel=0.05)
    weights = np.arange(24.0)
    weighted = judged(LaplaceNoise(0.1), attribute_weights=weights, attackers=[])
    assert weighted.utility_loss.lower <= 0.1 * weights.mean() <= weighted.utility_loss.upper


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [GaussianNoise(0.05), LaplaceNoise(0.3)])
def test_gaussian_noise_has_the_loss_of_the_defence(noise):
    found = judged(noise, clip=True, releases=600, attackers=[])
    assert found.gaussian_loss.value == pytest.approx(found.clipped_utility_loss.value, rel=0.08)
    assert {row.defence for row in found.attacks} == {"judged", "Gaussian noise", "constant"}


def test_the_constant_tells_nothing_and_costs_its_median():
    found = judged(GaussianNoise(0.1), prior=FixedSizeMembership(3))
    assert rows(found, "constant")["prior"].auc.value == 0.5
    every = (np.arange(64)[:, None] >> np.arange(6)) & 1 == 1
    f = FrequencyRelease(PANEL, PRIOR).frequencies(every[every.sum(axis=1) == 3])
    want = np.abs(f - np.median(f, axis=0)).mean()
    assert found.constant_loss.lower <= want * 1.02
    assert found.constant_loss.upper >= want


@pytest.mark.slow
def test_the_exact_posterior_stands_above():
    for defence in ("judged", "Gaussian noise"):
        found = rows(judged(LaplaceNoise(0.4), releases=400), defence)
        assert set(found) == {"adaptive-threshold LRT", "fixed-threshold LRT", "Bayes"}
        for one in found.values():
            error = (one.auc.upper - one.auc.lower) / 2
            assert found["Bayes"].auc.value >= one.auc.value - error


def test_without_noise_members_are_found():
    found = judged(NoNoise(), clip=True)
    assert found.utility_loss.value == 0.0
    assert found.gaussian_sigma is None
    assert rows(found, "judged")["Bayes"].auc.value == 1.0


def test_more_loss_than_any_gaussian_noise():
    noise = GeneratorNoise(lambda b, nu: np.repeat(np.where(nu < 0.5, -0.5, 0.5), 24, axis=1), 1)
    constant = FrequencyRelease(Panel(np.ones((6, 24), dtype=bool)), PRIOR, noise)
    found = evaluate_defence(constant, attackers=[ADAPTIVE], releases=100, rng=1)
    assert found.gaussian_sigma is not None  # half of the releases lose 1/2, the others nothing
    wide = FrequencyRelease(PANEL, PRIOR, LaplaceNoise(1e9), clip=True)
    found = evaluate_defence(wide, attackers=[ADAPTIVE], releases=100, rng=1)
    if found.gaussian_sigma is None:
        assert "No Gaussian noise has as much utility loss after clipping." in found.remarks
    else:
        assert found.gaussian_sigma > 10


def test_an_equilibrium_is_judged():
    panel = Panel([[1, 0], [0, 1], [1, 1]])
    game = membership_equilibrium(panel, PRIOR, slope=6.0)
    attacker = AdaptiveThresholdLRT(panel, Panel([[0, 0], [1, 0], [0, 1], [1, 1]]))
    found = evaluate_defence(game, attackers=[attacker], releases=800, training=50, rng=1)
    loss = game.utility_loss
    assert found.utility_loss.lower <= loss.upper
    assert found.utility_loss.upper >= loss.lower
    assert [row.training for row in found.attacks if row.defence == "judged"] == ["fresh", "exact"]


@pytest.mark.slow
def test_a_known_response_does_not_hide_from_an_attacker_who_knows_it():
    """The response to the adaptive test deceives it; it has no likelihood and no exact attacker, and says so."""
    found = judged(best_response(ADAPTIVE, price=0.1, iterations=5), releases=64, training=2, attackers=[ADAPTIVE])
    assert rows(found, "judged")["adaptive-threshold LRT"].auc.value < 0.5
    assert any("no exact posterior of noise without a likelihood" in remark for remark in found.remarks)


def test_what_is_too_large_is_said():
    panel, references = panels(people=26, attributes=12)
    release = FrequencyRelease(panel, FixedSizeMembership(10), GaussianNoise(0.1))
    found = evaluate_defence(release, attackers=[DworkScore(panel, references)], releases=64, rng=1)
    assert any("no exact posterior of 26 people" in remark for remark in found.remarks)


class Recorder:
    """An attacker that keeps what it is fitted to."""

    name = "recorder"

    def __init__(self):
        self.fitted = 0

    def fit(self, released, membership):
        self.fitted += 1
        self.mean = released.mean()
        return self

    def scores(self, released):
        assert self.fitted == 1
        return np.zeros((len(released), 6)) + self.mean


def test_attackers_are_copied_and_fitted_to_each_defence():
    recorder = Recorder()
    seen = []
    found = judged(LaplaceNoise(0.1), attackers=[recorder], progress=lambda done, total: seen.append((done, total)))
    assert recorder.fitted == 0
    assert [row.attacker for row in found.attacks].count("recorder") == 2
    assert seen[-1][0] == len(found.attacks) == seen[-1][1]


def test_the_same_seed_gives_the_same_judgement_and_its_table():
    one, other, another = (judged(LaplaceNoise(0.1), releases=64, attackers=[ADAPTIVE], rng=rng) for rng in (1, 1, 2))
    assert one == other
    assert one != another
    lines = one.table().splitlines()
    assert len(lines) == len(one.attacks) + 1
    assert lines[0].split()[0] == "defence"
    assert "Bayes" in lines[2]
    assert not judged(NoNoise(), releases=64).table().endswith("\n")


@pytest.mark.slow
def test_the_default_attackers():
    pytest.importorskip("sklearn")
    release = FrequencyRelease(PANEL, PRIOR, LaplaceNoise(0.1))
    found = evaluate_defence(release, references=REFERENCES, training=500, releases=64, rng=1)
    names = [row.attacker for row in found.attacks if row.training == "fresh" and row.defence == "judged"]
    assert names == ["neural network", "fixed-threshold LRT", "adaptive-threshold LRT", "score"]


MISTAKES = [
    (lambda: evaluate_defence(PANEL, attackers=[]), "defence must be a FrequencyRelease, a MembershipEquilibrium or"),
    (lambda: judged(NoNoise(), attackers=[1]), "attackers must have a name and scores; got 1 at index 0"),
    (lambda: judged(NoNoise(), attackers=[DworkScore]), "attackers must have a name and scores"),
    (lambda: judged(NoNoise(), attackers=ADAPTIVE), "attackers must be"),
    (lambda: judged(NoNoise(), references=REFERENCES), "references must be left out where attackers are given"),
    (lambda: judged(NoNoise(), releases=8), "releases must be"),
    (lambda: judged(NoNoise(), training=1), "training must be"),
    (lambda: judged(NoNoise(), confidence=1.0), "confidence must be"),
    (lambda: judged(NoNoise(), fpr=0.0), "fpr must be"),
    (lambda: judged(NoNoise(), rng="seed"), "rng must be"),
    (lambda: judged(NoNoise(), attribute_weights=np.zeros(24)), "attribute_weights must have a positive"),
]


@pytest.mark.parametrize(("call", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_mistakes(call, text):
    with pytest.raises(DomainError, match=text):
        call()
