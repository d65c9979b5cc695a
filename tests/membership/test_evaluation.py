"""Values of the evaluation by hand, by brute force and beside scikit-learn; its errors."""

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import auc, evaluate_attack, roc_curve

SMALL = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]


def brute(scores, membership):
    one, other = scores[membership][:, None], scores[~membership]
    return np.mean((one > other) + 0.5 * (one == other))


def test_auc_by_hand():
    assert auc(*SMALL) == 0.75
    assert auc([1.0, 1.0], [True, False]) == 0.5
    assert auc([-np.inf, np.inf, 0.0], [False, True, False]) == 1.0
    assert auc([[1.0, 2.0], [2.0, 1.0]], [0, 1]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("shape", [(300,), (7, 40), (2, 3, 25)])
def test_auc_against_all_pairs(shape):
    rng = np.random.default_rng(1)
    scores, membership = rng.integers(0, 30, shape) / 7, rng.random(shape) < 0.4
    found = np.atleast_1d(auc(scores, membership)).ravel()
    for row, (x, b) in enumerate(zip(scores.reshape(-1, shape[-1]), membership.reshape(-1, shape[-1]), strict=True)):
        assert found[row] == pytest.approx(brute(x, b), rel=1e-15)
    assert np.shape(auc(scores, membership)) == shape[:-1]


def test_roc_curve_by_hand_and_beside_scikit_learn():
    curve = roc_curve(*SMALL)
    assert curve.thresholds.tolist() == [np.inf, 0.8, 0.4, 0.35, 0.1]
    assert curve.fpr.value.tolist() == [0.0, 0.0, 0.5, 0.5, 1.0]
    assert curve.tpr.value.tolist() == [0.0, 0.5, 0.5, 1.0, 1.0]
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(2)
    b = rng.random((20, 50)) < 0.3
    x = np.round(rng.normal(size=b.shape) + b, 1)
    curve = roc_curve(x, b)
    fpr, tpr, thresholds = metrics.roc_curve(b.ravel(), x.ravel(), drop_intermediate=False)
    assert np.array_equal(curve.thresholds, thresholds)
    assert curve.fpr.value == pytest.approx(fpr, abs=1e-15)
    assert curve.tpr.value == pytest.approx(tpr, abs=1e-15)
    assert auc(x.ravel(), b.ravel()) == pytest.approx(metrics.roc_auc_score(b.ravel(), x.ravel()), rel=1e-13)


def test_values_of_an_evaluation_by_hand():
    x = np.array([[3.0, 2.0, 1.0, 0.0], [3.5, 0.5, 2.5, 1.5]])
    b = np.array([[1, 1, 0, 0], [1, 0, 0, 1]])
    found = evaluate_attack(x, b, fpr=0.25)
    assert found.auc.value == brute(x.ravel(), b.ravel() == 1) == 14 / 16
    assert found.tpr_at_fpr.value == 1.0  # one of four non-members may be above, 2.5; the next one is at 1
    assert evaluate_attack(x, b, fpr=0.24).tpr_at_fpr.value == 2 / 4
    assert (found.members, found.non_members, found.releases) == (4, 4, 2)
    assert auc(x, b == 1).mean() == (1.0 + 0.75) / 2  # of single releases


def test_claims_of_posteriors():
    x = np.array([[0.9, 0.2, 0.6], [0.3, 0.8, 0.5]])
    b = np.array([[1, 0, 0], [1, 1, 0]])
    found = evaluate_attack(x, b, gamma=[0.25, 0.7], posterior=True)
    gains = [((0.75 - 0.25) + (0.75 + 0.75 - 0.25)) / 2, (0.3 + 0.3) / 2]
    assert found.bwma.value == pytest.approx(gains, rel=1e-15)


@pytest.mark.slow
def test_perfect_and_useless_scores():
    b = np.arange(20_000) % 2 == 0
    found = evaluate_attack(b * 1.0, b)
    assert found.auc.value == 1.0
    assert found.auc.lower > 0.96
    assert found.tpr_at_fpr.lower > 0.999
    assert found.remarks == ()
    assert found.advantage.lower > 0.998
    assert found.advantage.upper == 1.0
    assert found.bwma.lower > 0.24
    assert found.bwma.upper <= 0.26
    found = evaluate_attack(np.zeros(20_000), b)
    assert found.auc.value == 0.5
    assert found.tpr_at_fpr.upper < 1.0 or found.tpr_at_fpr.value == 0.0
    assert found.advantage.value == found.advantage.lower == 0.0
    found = evaluate_attack(np.where(b, np.inf, -np.inf), b)
    assert found.tpr_at_fpr.lower > 0.999
    assert found.advantage.lower > 0.998
    found = evaluate_attack(np.where(b, -np.inf, np.inf), b)
    assert found.auc.value == 0.0
    assert found.advantage.upper < 0.01


def test_too_few_outcomes_are_said():
    rng = np.random.default_rng(3)
    b = np.arange(2000) % 2 == 0
    found = evaluate_attack(rng.normal(size=2000) + 4 * b, b)
    assert found.tpr_at_fpr.lower == 0.0 < found.tpr_at_fpr.value
    assert "1000 non-members are too few: at least 4380 are needed" in found.remarks[0]
    assert found.remarks[0] in found.tpr_at_fpr.method
    b = b.reshape(40, 50)
    found = evaluate_attack(rng.normal(size=(40, 50)) + 4 * b, b)
    assert "40 releases are too few" in found.remarks[0]
    assert evaluate_attack(rng.normal(size=9000) + np.arange(9000) % 2, np.arange(9000) % 2).remarks == ()
    one = evaluate_attack(rng.normal(size=(1, 50)), b[:1])
    assert (one.auc.lower, one.auc.upper) == (0.0, 1.0)
    assert one.advantage.lower == 0.0
    assert roc_curve(rng.normal(size=(1, 50)), b[:1]).tpr.upper[1] == 1.0


def test_order_of_rows_does_not_matter_much():
    rng = np.random.default_rng(4)
    b = np.arange(4000) % 2 == 0
    x = rng.normal(size=4000) + b
    order = np.argsort(x)
    one, other = evaluate_attack(x, b, fpr=0.1), evaluate_attack(x[order], b[order], fpr=0.1)
    for name, found in one.estimates().items():
        again = other.estimates()[name]
        assert again.lower <= found.upper, name
        assert found.lower <= again.upper, name
        assert abs(again.width - found.width) < 0.4 * found.width, name
    assert other.auc.value == one.auc.value


def test_frame():
    pytest.importorskip("pandas")
    frame = evaluate_attack(*SMALL, gamma=[0.3, 0.5]).to_frame()
    assert frame["quantity"].tolist() == ["auc", "tpr_at_fpr", "advantage", "bwma", "bwma"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: auc([0.1, np.nan], [0, 1]), DomainError, "scores must be numbers; got nan at index 1"),
        (lambda: auc([0.1, 0.2], [0, 2]), DomainError, "membership must be 0 or 1, or True or False; got 2"),
        (lambda: auc([0.1, 0.2], [0, 1, 1]), ShapeError, "membership must have one entry a person, here 2"),
        (lambda: auc([[0.1, 0.2]] * 3, [[0, 1]] * 2), ShapeError,
         r"membership must be of the shape of scores, \(3, 2\), or of one row of them; got \(2, 2\)"),
        (lambda: auc(0.5, True), ShapeError, r"scores must have one or more entries; got shape \(\)"),
        (lambda: auc([], []), ShapeError, r"scores must have one or more entries; got shape \(0,\)"),
        (lambda: auc([[1.0, 2.0]] * 3, [[0, 1], [1, 1], [1, 1]]), DomainError,
         r"membership must have members and non-members in each row; got no non-members in row 1 \(2 of 3 rows\)"),
        (lambda: auc([1.0, 2.0], [0, 0]), DomainError, "got no members in row 0"),
        (lambda: roc_curve([1.0, 2.0], [0, 0]), DomainError, "got no members among 2. Simulate more releases"),
        (lambda: evaluate_attack([1.0, 2.0], [1, 1]), DomainError, "got no non-members among 2"),
        (lambda: evaluate_attack(np.zeros((2, 2, 2)), np.zeros(2)), ShapeError,
         r"scores must be of shape \(n,\) for single targets or \(R, K\) for releases; got \(2, 2, 2\)"),
        (lambda: evaluate_attack(*SMALL, fpr=0.0), DomainError, "fpr must be between 0 and 1, exclusive; got 0.0"),
        (lambda: evaluate_attack(*SMALL, gamma=[0.5, 1.0]), DomainError, "gamma must be between 0 and 1, exclusive"),
        (lambda: evaluate_attack(*SMALL, confidence=1.0), DomainError, "confidence must be between 0 and 1, exclusive"),
        (lambda: evaluate_attack([0.5, 1.5], [0, 1], posterior=True), DomainError,
         "scores must be probabilities between 0 and 1 where posterior=True; got 1.5. Leave posterior out"),
        (lambda: evaluate_attack(*SMALL, posterior=1), DomainError, "posterior must be True or False; got 1"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_band_at_infinite_scores():
    """At the threshold inf the band has to hold the share of infinite scores, here half of the members."""
    rng = np.random.default_rng(0)
    scores, membership = rng.normal(size=(400, 10)), rng.random((400, 10)) < 0.5
    scores[membership & (rng.random((400, 10)) < 0.5)] = np.inf
    curve = roc_curve(scores, membership)
    assert curve.thresholds[:2].tolist() == [np.inf, np.inf]
    assert curve.tpr.lower[1] <= 0.5 <= curve.tpr.upper[0] <= 0.6
    assert curve.fpr.upper[0] <= 0.1


def test_scores_that_tie_with_the_threshold_are_claimed():
    """Scores 0 and 1 alone: BWMA of six people is 6 (0.5 x 0.4 - 0.5 x 0.15) = 0.75 where the ones are claimed."""
    rng = np.random.default_rng(1)
    membership = rng.random((300, 6)) < 0.5
    scores = np.where(membership, rng.random((300, 6)) < 0.8, rng.random((300, 6)) < 0.3).astype(float)
    found = evaluate_attack(scores, membership)
    assert 0.6 < found.bwma.lower <= 0.75 <= found.bwma.upper
    assert 0.3 < found.advantage.lower <= 0.5 <= found.advantage.upper
