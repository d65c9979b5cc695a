"""Scores of the attacks by references beside sums by hand; their thresholds; what they refuse."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import (
    AdaptiveThresholdLRT,
    BernoulliMembership,
    DworkScore,
    FixedSizeMembership,
    FixedThresholdLRT,
    FrequencyRelease,
    GaussianNoise,
    NoNoise,
    Panel,
    auc,
    evaluate_attack,
)
from fastpriv.studies.membership.attackers import Attacker
from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import numpy as np
from fastpriv.studies.membership import AdaptiveThresholdLRT, DworkScore, Panel
bits = (np.arange(1, 20 * 203 + 1) * 0.6180339887498949 % 1.0).reshape(20, 203) < 0.3
released = (np.arange(1, 5 * 203 + 1) * 0.41421356237 % 1.0).reshape(5, 203) * 1.2 - 0.1
panel, references = Panel(bits[:8]), Panel(bits[8:])
for attack in (AdaptiveThresholdLRT(panel, references), DworkScore(panel, references, eta=0.5)):
    print(" ".join(s.hex() for s in attack.scores(released).ravel().tolist()))
"""
D = np.array([[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0]])
REFERENCES = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 0, 1]])
RELEASES = np.array([[0.5, 0.25, 1.0, 0.75], [-0.2, 1.4, 0.0, 0.3]])


def ratio(d, r, pbar, e0):
    """LRS of one person at one release, in 400 digits."""
    with mpmath.workdps(400):
        total = mpmath.mpf(0)
        for bit, x, p in zip(d, r, pbar, strict=True):
            x, p = (min(max(mpmath.mpf(v), e0), 1 - mpmath.mpf(e0)) for v in (float(x), p))
            total += mpmath.log(p / x) if bit else mpmath.log((1 - p) / (1 - x))
        return total


def frequencies(rows):
    return [mpmath.mpf(int(column.sum())) / len(rows) for column in rows.T]


@pytest.mark.parametrize("e0", [None, 0.2, 1e-9, 1e-300, 0.5])
def test_likelihood_ratios(e0):
    attack = FixedThresholdLRT(Panel(D), Panel(REFERENCES), e0=e0)
    used = 0.1 if e0 is None else e0
    for r, found in zip(RELEASES, attack.scores(RELEASES), strict=True):
        for d, value in zip(D, found, strict=True):
            assert value == pytest.approx(float(-ratio(d, r, frequencies(REFERENCES), used)), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("n_smallest", [1, 2, 5])
def test_adaptive_threshold(n_smallest):
    attack = AdaptiveThresholdLRT(Panel(D), Panel(REFERENCES), n_smallest=n_smallest)
    for r, found, claims in zip(RELEASES, attack.scores(RELEASES), attack.claims(RELEASES), strict=True):
        references = sorted(ratio(d, r, frequencies(REFERENCES), 0.1) for d in REFERENCES)
        threshold = sum(references[:n_smallest]) / n_smallest
        for d, value, claim in zip(D, found, claims, strict=True):
            want = float(threshold - ratio(d, r, frequencies(REFERENCES), 0.1))
            assert value == pytest.approx(want, rel=1e-12, abs=1e-13)
            assert claim == (want >= 0) or abs(want) < 1e-12


@pytest.mark.parametrize("eta", [math.inf, 0.5, 0.1])
@pytest.mark.parametrize("held_out", [-1, 0, 2])
def test_scores_of_dwork(eta, held_out):
    y, references = 2 * D - 1, 2 * REFERENCES - 1
    z = references[held_out]
    w = [Fraction(int(c), 4) for c in np.delete(references, held_out, axis=0).sum(axis=0)]
    found = DworkScore(Panel(D), Panel(REFERENCES), eta=eta, held_out=held_out).scores(RELEASES)
    for r, row in zip(RELEASES, found, strict=True):
        deviation = [min(max(2 * x - 1 - float(mean), -eta), eta) for x, mean in zip(r, w, strict=True)]
        assert row == pytest.approx([float(np.dot(person - z, deviation)) for person in y], abs=1e-14)


def drawn(seed, people=60, attributes=300):
    rng = np.random.default_rng(seed)
    bits = rng.random((2 * people, attributes)) < rng.uniform(0.05, 0.5, attributes)
    return Panel(bits[:people]), Panel(bits[people:])


def test_fixed_and_adaptive_have_the_same_auc_within_each_release():
    panel, references = drawn(1)
    model = FrequencyRelease(panel, BernoulliMembership(0.5), GaussianNoise(0.05))
    membership, released = model.simulate(40, rng=2)
    one, other = (kind(panel, references).scores(released) for kind in (FixedThresholdLRT, AdaptiveThresholdLRT))
    assert auc(one, membership) == pytest.approx(auc(other, membership), abs=1e-12)
    shift = other - one
    assert np.ptp(shift, axis=1) == pytest.approx(np.zeros(40), abs=1e-11)
    assert np.ptp(shift[:, 0]) > 0.1


def test_every_attack_finds_members_of_releases_without_defence():
    panel, references = drawn(3)
    membership, released = FrequencyRelease(panel, FixedSizeMembership(30)).simulate(40, rng=4)
    for attack in (FixedThresholdLRT(panel, references), AdaptiveThresholdLRT(panel, references),
                   DworkScore(panel, references)):
        assert isinstance(attack, Attacker)
        assert attack.name
        assert evaluate_attack(attack.scores(released), membership).auc.value > 0.9, attack
        assert np.array_equal(attack.decision_function(released), attack.scores(released))
        assert np.array_equal(attack.scores(released, n_jobs=2), attack.scores(released))
        assert np.array_equal(attack.scores(released[7]), attack.scores(released)[7])
        assert attack.scores(released.reshape(4, 10, -1)).shape == (4, 10, 60)


def test_a_score_does_not_depend_on_the_releases_beside_it():
    panel, references = drawn(5, 20, 100)
    _, released = FrequencyRelease(panel, FixedSizeMembership(5)).simulate(1000, rng=6)
    for attack in (AdaptiveThresholdLRT(panel, references), DworkScore(panel, references)):
        every = attack.scores(released, n_jobs=2)
        assert all(np.array_equal(every[i], attack.scores(released[i])) for i in (0, 127, 128, 999))


def test_threshold_of_the_fixed_test():
    panel, references = drawn(7)
    membership, released = FrequencyRelease(panel, FixedSizeMembership(20), NoNoise()).simulate(50, rng=8)
    for alpha in (0.01, 0.05, 0.5):
        attack = FixedThresholdLRT(panel, references, alpha=alpha).fit(released, membership)
        claimed = attack.claims(released)[~membership].mean()
        assert claimed <= alpha < claimed + 1.01 / (~membership).sum()
    assert AdaptiveThresholdLRT(panel, references).fit(released, membership).threshold == 0.0


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_scores(variant):
    check_same_lines(SCRIPT, 2, variant)


PEOPLE = Panel(D, people=["a", "b", "c"], attributes=["w", "x", "y", "z"])
WIDE = np.random.default_rng(1).random((30, 200)) < 0.4


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: FixedThresholdLRT(D, Panel(REFERENCES)), DomainError, "panel must be a Panel; got "),
        (lambda: DworkScore(Panel(D), REFERENCES), DomainError, "references must be a Panel; got "),
        (lambda: FixedThresholdLRT(Panel(D), Panel(REFERENCES[:, :3])), ShapeError,
         "references must have the 4 attributes of the panel; got 3"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES, attributes=["w", "y", "x", "z"])), DomainError,
         "references must have the attributes of the panel, in its order; got 'y' instead of 'x' at 1"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES, people=["r", "b", "s", "c", "t"])), DomainError,
         r"references must be other people than those of the panel; got 'b' in both \(2 of 5 references\)"),
        (lambda: AdaptiveThresholdLRT(Panel(WIDE[:20]), Panel(WIDE[18:])), DomainError,
         "other people than those of the panel; got identical rows, of person '18' and of reference '0'"),
        (lambda: DworkScore(Panel([[0, 1], [0, 0]]), Panel([[0, 1], [0, 1]])), DomainError,
         "panel and references must vary in every attribute; got 1 of 2 that all of these people have or none has: 0"),
        (lambda: DworkScore(PEOPLE.select(attributes=[0, 3]), Panel([[1, 0]])), DomainError,
         "references must be at least two people for a score, one of them held out; got 1"),
        (lambda: DworkScore(PEOPLE, Panel(REFERENCES), eta=0.0), DomainError, "eta must be positive; got 0.0"),
        (lambda: DworkScore(PEOPLE, Panel(REFERENCES), held_out=5), DomainError, "held_out must be an integer of"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES), alpha=1.0), DomainError, "alpha must be between 0 and 1"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES), e0=0.0), DomainError, "e0 must be above 0 and at most"),
        (lambda: AdaptiveThresholdLRT(PEOPLE, Panel(REFERENCES), n_smallest=6), DomainError, "n_smallest must be an"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES)).claims(RELEASES), DomainError,
         "fit must be called before scores and claims; got a FixedThresholdLRT that was never fitted"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES)).scores(RELEASES[:, :3]), ShapeError,
         r"released must have one entry an attribute, here 4; got shape \(2, 3\)"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES)).scores([0.1, 0.2, np.inf, 0.4]), DomainError,
         "released must be finite numbers; got inf"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES)).fit(RELEASES, np.zeros((3, 3), dtype=bool)), ShapeError,
         r"released and membership must be of shapes \(R, m\) and \(R, 3\) with R of at least 1; got \(2, 4\) and"),
        (lambda: FixedThresholdLRT(PEOPLE, Panel(REFERENCES)).fit(RELEASES, np.ones((2, 3), dtype=bool)), DomainError,
         "membership must have non-members; got none among 6. Simulate releases of fewer members"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_equal_rows_by_chance_are_no_overlap():
    bits = np.random.default_rng(2).random((40, 6)) < 0.5
    FixedThresholdLRT(Panel(bits[:20]), Panel(bits[20:]))
    rare = np.random.default_rng(3).random((60, 150)) < 0.004  # most people have nothing
    rare[0] = True
    FixedThresholdLRT(Panel(rare[:30]), Panel(rare[30:]))
