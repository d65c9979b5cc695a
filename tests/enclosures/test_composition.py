"""Privacy losses on a grid dominate their pair, and bounds of compositions contain the truth."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fastpriv import (
    Channel,
    DomainError,
    Estimate,
    GaussianMechanism,
    GaussianMixture,
    compose,
    hockey_stick_divergence,
    notions,
)
from fastpriv.adapters import dp_accounting_pld
from fastpriv.composition.compositions import certified_curves
from fastpriv.errors import BackendMissingError
from fastpriv.pairs.discretised_losses import PrivacyLoss, discretised
from fastpriv.pairs.tilted_transforms import _TiltedSums, composed_log_bounds
from oracles.composition import delta_of_masses

ONE = GaussianMixture.single(0.0, 1.0)
PAIRS = {
    "subsampled, remove": (GaussianMixture([0.99, 0.01], [0.0, 1.0], 0.8), GaussianMixture.single(0.0, 0.8)),
    "subsampled, add": (GaussianMixture.single(0.0, 0.8), GaussianMixture([0.99, 0.01], [0.0, 1.0], 0.8)),
    "two mixtures": (GaussianMixture([0.9, 0.1], [0.0, 1.0], 0.7), GaussianMixture([0.8, 0.2], [0.0, -1.0], 0.7)),
    "different sigmas": (GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 0.5]), GaussianMixture.single(0.2, 1.2)),
    "unbounded sigmas": (GaussianMixture.single(0.0, 1.1), GaussianMixture.single(0.2, 1.0)),
    "nearly equal": (GaussianMixture.single(1e-4, 1.0), ONE),
    "equal": (ONE, ONE),
    "far apart": (GaussianMixture.single(12.0, 1.0), ONE),
    "mechanism": (GaussianMechanism(2.0, 1.0), None),
}


def curve_of(loss, epsilon):
    """The curve of a discrete loss at any epsilon, of either sign, in long doubles."""
    k = np.arange(len(loss.masses)) + loss.first
    above = np.maximum(-np.expm1(np.subtract.outer(epsilon, k * np.longdouble(loss.interval))), 0)
    return (above * loss.masses).sum(axis=-1) + loss.infinity_mass


@pytest.mark.few(6)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("interval", [0.25, 3e-2, 1.1e-2])
def test_discrete_losses_dominate_and_are_dominated(name, interval):
    pair = certified_curves(*PAIRS[name])
    forward, backward = pair.forward, pair.backward
    epsilon = np.concatenate([np.linspace(0, 12, 60), interval * np.arange(0, 40, 3), [1e-9, 30.0, 80.0]])
    truth, reverse = forward(epsilon), backward(epsilon)
    x = np.exp(-epsilon.astype(np.longdouble))
    for pessimistic, side, sign in ((True, "lower", 1), (False, "upper", -1)):
        loss = discretised(forward, backward, interval, 1e-30, pessimistic)
        excess = (curve_of(loss, epsilon) - getattr(truth, side)) * sign
        assert (excess >= -1e-18 * truth.upper).all(), epsilon[np.argmin(excess)]
        excess = (curve_of(loss, -epsilon) - (1 - x + x * getattr(reverse, side))) * sign
        assert (excess >= -1e-17).all(), -epsilon[np.argmin(excess)]
        total = loss.masses.sum() + loss.infinity_mass
        assert (total >= 1 - 1e-16 * len(loss.masses)) if pessimistic else (total <= 1 + 1e-16 * len(loss.masses))


LOSSES = {
    "few": PrivacyLoss(-3, 0.25, np.array([0.3, 0.0, 0.2, 0.1, 0.05, 0.3, 0.0499]), 1e-4),
    "one": PrivacyLoss(2, 0.5, np.array([0.9]), 0.1),
    "tiny masses": PrivacyLoss(-40, 0.1, np.geomspace(1.0, 1e-250, 60) * 0.3, 0.0),
    "none": PrivacyLoss(0, 0.1, np.array([0.0, 0.0]), 0.25),
    "far apart": PrivacyLoss(-200, 0.5, np.eye(1, 401, 0).ravel() * 0.5 + np.eye(1, 401, 400).ravel() * 0.5, 0.0),
    "fine": PrivacyLoss(-20, 1e-9, np.full(41, 1 / 41), 0.0),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("steps", [1, 2, 7, 64])
def test_bounds_of_compositions_contain_exact_ones(name, steps):
    loss = LOSSES[name]
    if len(loss.masses) > 50 and steps > 7:
        steps = 9  # exact integers grow
    top = steps * (loss.first + len(loss.masses) - 1) * loss.interval
    ahead = np.maximum(top * np.array([0.3, 0.9, 0.999, 1.0, 1.01]), 0.0)
    epsilon = np.unique(np.concatenate([[0.0, 0.1, 1.0], ahead]))
    low_logs, high_logs, _ = composed_log_bounds([(loss, steps)], epsilon)
    lower, upper = np.exp(low_logs) * (1 - 1e-15), np.exp(high_logs) * (1 + 1e-15)  # roundings of exponentials
    upper += np.where(high_logs > -np.inf, 1e-300, 0.0)  # and those that underflow
    deltas = delta_of_masses(loss.first, loss.interval, loss.masses, loss.infinity_mass, steps, epsilon.tolist())
    for e, truth, low, high in zip(epsilon, deltas, lower, upper, strict=True):
        assert low <= min(truth, 1) <= high, (e, low, truth, high)  # masses can add up to more than 1
        if e < 0.99 * top:  # beside the largest loss 1 - e^-y has few digits
            assert high - low <= (1e-5 if name == "fine" else 1e-9) * truth + 1e-300, (e, low, truth, high)


@pytest.mark.slow
def test_curves_of_ones_own():
    """A certified curve in both orders, composed on grids, around the composition of the pair itself."""
    p, q = PAIRS["subsampled, remove"]
    ahead, behind = (lambda e: hockey_stick_divergence(p, q, e)), (lambda e: hockey_stick_divergence(q, p, e))
    levels = np.array([0.5, 1.0])
    own, truth = compose((ahead, behind), 50).delta(levels), compose((p, q), 50).delta(levels)
    assert (own.lower <= truth.upper).all()
    assert (own.upper >= truth.lower).all()
    assert (own.width <= 0.05 * truth.value).all()


def _other(e):
    return Estimate(0.0 * e, 0.0 * e, 0.0 * e + 1, kind="heuristic", unit="probability", method="guess")


REFUSED = {
    "p must be a GaussianMixture, a Pmf, a vector of probabilities, a GaussianMechanism, a channel or a function of ": (
        3, None, {}
    ),
    "q must be left out with a GaussianMechanism": (GaussianMechanism(1.0, 1.0), ONE, {}),
    "q must be left out with a channel": (Channel([[1.0, 0.0], [0.0, 1.0]]), ONE, {}),
    "q must be a function of epsilon": (_other, 3, {}),
    "p must return an Estimate of the shape of epsilon": (lambda e: e, None, {}),
    "p and q must be a pair with certified bounds; got a heuristic estimate": (_other, None, {}),
    "interval must be from 1e-9 to 10; got 0": (ONE, ONE, {"interval": 0.0}),
    "interval must be so large that 4194304 points reach the losses of the pair": (
        GaussianMixture.single(9.0, 1.0), ONE, {"interval": 1e-6}
    ),
    "tail_mass must be from 1e-250 to 0.1; got 1": (ONE, ONE, {"tail_mass": 1.0}),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(__path__=[]))  # it need not be there to refuse
    monkeypatch.setitem(
        sys.modules, "dp_accounting.pld", SimpleNamespace(pld_pmf=None, privacy_loss_distribution=None)
    )
    p, q, words = REFUSED[text]
    with pytest.raises(DomainError, match=text):
        dp_accounting_pld(p, q, **words)


def test_the_worst_curve_of_a_channel_has_no_lower_distribution():
    with pytest.raises(DomainError, match="pessimistic must be True for a channel; got False"):
        dp_accounting_pld(Channel([[0.5, 0.5], [0.2, 0.8]]), pessimistic=False)


def test_what_is_no_distribution_of_dp_accounting():
    broken = SimpleNamespace(_pmf_remove=3, _symmetric=True)
    with pytest.raises(DomainError, match="pairs must be a PrivacyLossDistribution of dp_accounting; got"):
        compose(broken)


def test_without_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(BackendMissingError, match="dp_accounting_pld needs dp_accounting. Install it with"):
        dp_accounting_pld(ONE, ONE)


class TestDpAccounting:
    @pytest.fixture(autouse=True)
    def _package(self):
        self.pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["two mixtures", "subsampled, remove", "mechanism", "different sigmas"])
    def test_there_and_back(self, name):
        pair, epsilon = PAIRS[name], np.linspace(0, 8, 30)
        curves = certified_curves(*pair)
        truth = np.maximum(curves.forward(epsilon).value, curves.backward(epsilon).value)
        for pessimistic, sign in ((True, 1), (False, -1)):
            made = dp_accounting_pld(*pair, interval=1e-3, pessimistic=pessimistic)
            assert ((np.array([made.get_delta_for_epsilon(e) for e in epsilon]) - truth) * sign >= -1e-15).all()
            back = compose(made).delta(epsilon, direction="worst")
            assert ((back.upper if pessimistic else back.lower) * sign >= truth * sign - 1e-300).all()
            assert np.allclose(back.value, truth, rtol=0.02, atol=1e-25)

    @pytest.mark.slow
    def test_its_own_pessimistic_delta_falls_below_the_truth(self):
        """Over 10,000 steps the roundings of its transform, other on other processors, exceed a delta of 1e-14."""
        epsilon, steps = np.linspace(7.0, 8.0, 21), 10_000
        truth = GaussianMechanism(1.0, 1.0).delta(epsilon)
        made = self.pld.from_gaussian_mechanism(100.0)  # pessimistic by default
        theirs = np.array([made.self_compose(steps).get_delta_for_epsilon(e) for e in epsilon])
        assert (theirs < 0.9 * truth.lower).any()
        assert (compose(made, steps).delta(epsilon).upper >= truth.lower).all()
        own = compose(dp_accounting_pld(GaussianMechanism(100.0, 1.0)), steps).delta(epsilon[5])
        assert truth.lower[5] <= own.upper <= 1.01 * truth.upper[5]

    def test_its_pairs_agree_with_ours(self):
        ours = dp_accounting_pld(*PAIRS["subsampled, remove"], interval=1e-3)
        theirs = self.pld.from_gaussian_mechanism(0.8, sampling_prob=0.01, value_discretization_interval=1e-3)
        composed = ours.compose(theirs)
        for e in (0.0, 0.5, 2.0):
            assert ours.get_delta_for_epsilon(e) == pytest.approx(theirs.get_delta_for_epsilon(e), rel=1e-6)
            assert composed.get_delta_for_epsilon(e) == pytest.approx(compose(ours, 2).delta(e).value, rel=1e-5)

    @pytest.mark.slow
    def test_a_curve_is_discretised_again(self):
        laplace = compose(self.pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-2))
        found = compose(lambda epsilon: laplace.delta(epsilon, direction="worst"), 2).delta([0.5, 1.5])
        assert (found.upper >= notions.ldp_delta(None, [[0.75, 0.25], [0.25, 0.75]], 5.0).upper).all()
        assert found.lower[0] > 0.1


def test_the_sum_of_weights_loses_no_more_than_is_allowed():
    """Numbers that a pairwise sum of doubles drops, one after another: 27 units of roundoff."""
    unit, values = 2.0**-53, np.zeros(2**16)
    dropped = [*range(8, 128, 8), 1, 2, 4, *(2**i for i in range(7, 16))]
    values[0], values[dropped] = 1.0, unit
    sums = _TiltedSums(values=values, first=1, theta=-1.0, interval=2.0**-24, log_mass=np.longdouble(0), centre=0,
                       error=0.0, outside=0.0, relative_error=0.0, largest_exponent=0.0)
    low, high = sums.logarithm(2.0**-25, "tail")
    assert low <= 2.0**-25 + math.log1p(len(dropped) * unit) <= high
    assert float(values.sum()) == 1.0
