"""Contour sums of mixtures of several sigmas, or with a loss that is not monotone: moments, decay and delta."""

import math

import numpy as np
import pytest

from fastpriv import GaussianMixture, compose, hockey_stick_divergence, renyi_divergence
from fastpriv.composition.contour import contour_bounds
from fastpriv.kernels import _contour
from fastpriv.pairs.mixture_pairs import MixturePair
from oracles.composition import log_delta_of_mixtures, tilted_nodes

BINOMIAL = [math.comb(20, j) * 0.3**j * 0.7 ** (20 - j) for j in range(21)]
OTHER = [math.comb(20, j) * 0.35**j * 0.65 ** (20 - j) for j in range(21)]
#: name -> rows of weight, mean, sigma of P and of Q, and two t where M is finite
PAIRS = {
    "wider P": (((0.875, 0, 1), (0.125, 1, 2)), ((1, 0, 1),), (0.05, 0.25)),
    "wider Q": (((1, 0, 1),), ((0.875, 0, 1), (0.125, 1, 2)), (0.5, 20.0)),
    "alternating": (((0.25, -2, 1), (0.5, 0, 1), (0.25, 2, 1)), ((0.5, -1, 1), (0.5, 1, 1)), (0.3, 3.0)),
    "around": (((1, 0, 1),), ((0.25, -1, 1), (0.75, 1.5, 1)), (1.0, 8.0)),
    "group": (
        tuple((w, j, 8) for j, w in enumerate(BINOMIAL)), tuple((w, j, 8) for j, w in enumerate(OTHER)), (2.0, 40.0)
    ),
    "ratio of 20": (((0.5, 0, 1), (0.5, 0, 0.05)), ((0.75, 0.5, 1), (0.25, 0, 0.05)), (0.5,)),
    "rare": (((1 - 2.0**-40, 0, 1), (2.0**-40, 3, 1)), ((1, 0, 1.25),), (1.0,)),
    "far": (((0.5, 0, 1), (0.5, 12, 2)), ((0.5, 0.5, 1), (0.5, 13, 2)), (3.0,)),
    "near": (((0.5, 0, 1), (0.5, 2, 2)), ((0.5, 1e-6, 1), (0.5, 2, 2 * (1 + 1e-6))), (1.0, 1e4)),
}


def columns(rows):
    return (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))


def excess(rows):
    return math.fsum([*(w for w, *_ in rows), -1.0])


def kernel(p, q, count=1.0):
    composition = _contour.ContourSums(1)
    assert composition.add_mixtures(count, *columns(p), *columns(q), excess(p), excess(q))
    return composition


def step_of(name, count):
    p, q, _ = PAIRS[name]
    return MixturePair(GaussianMixture(*columns(p)), GaussianMixture(*columns(q)), count)


def of_tilt(p, q, t, w):
    """log M(t), normalised weights, losses, their mean and standard deviation."""
    logs, loss = tilted_nodes(p, q, t, w)
    top = np.max(logs)
    total = top + np.log(np.sum(np.exp(logs - top)))
    weights = np.exp(logs - total)
    if abs(total) < 0.1:  # near 1
        total = np.log1p(np.sum(np.exp(logs - t * loss) * np.expm1(t * loss)))
    mean = np.sum(weights * loss)
    return total, weights, loss, float(mean), float(np.sqrt(np.sum(weights * (loss - mean) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_moments_and_what_bounds_them_further_out(name):
    p, q, tilts = PAIRS[name]
    for t in tilts:
        deviation = of_tilt(p, q, t, 0.0)[-1]
        frequencies = np.array([0.1, 1.0, 5.0]) / deviation
        log_total, weights, loss, *_ = of_tilt(p, q, t, 4 * frequencies[-1])
        kappa, kappa_error, mean, rows = kernel(p, q).moments(0, t, frequencies)
        assert abs(float(np.longdouble(kappa) - log_total)) <= kappa_error + 1e-17 <= 1e-11, (t, kappa, kappa_error)
        for w, (log_size, phase, wrong, later) in zip(frequencies, rows, strict=True):
            further = np.longdouble(w) * np.linspace(1.0, 4.0, 12)[:, None] * (loss - np.longdouble(mean))
            m = np.sum(weights * np.cos(further), axis=1) + 1j * np.sum(weights * np.sin(further), axis=1)
            found = np.exp(np.longdouble(log_size)) * np.exp(1j * np.longdouble(phase))
            assert abs(found - m[0]) <= wrong + 4e-16 <= 1e-9, (t, w, found, m[0], wrong)
            assert np.max(np.abs(m)) - 1e-15 <= later <= 1.0, (t, w, later)
            if w > 0.5 / deviation:
                assert later < 0.99


CASES = [
    ("wider P", 1000, 0.12, 40.0), ("wider Q", 1000, 1.0, 30.0), ("wider Q", 100000, 2.0, 16.0),
    ("alternating", 20, 0.6, 60.0), ("alternating", 1000, 0.1, 16.0), ("alternating", 1000, 0.6, 16.0),
    ("around", 200, 5.0, 16.0), ("group", 5, 10.0, 16.0), ("group", 1000, 5.0, 16.0), ("ratio of 20", 2000, 0.3, 16.0),
    ("far", 300, 0.8, 16.0), ("near", 100000, 8000.0, 16.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count", "t", "reach"), CASES)
def test_delta_of_many_steps(name, count, t, reach):
    """epsilon is that of the saddle point t; truth is a sum of other t and period, confirmed by a third."""
    p, q, _ = PAIRS[name]
    log_total, _, _, mean, deviation = of_tilt(p, q, t, 0.0)
    epsilon = count * mean - 1 / t - 1 / (1 + t)
    assert epsilon >= 0.0
    deviation *= math.sqrt(count)
    depth = epsilon * t - count * float(log_total)
    truths = []
    for share, factor in ((0.97, 1.0), (0.93, 1.2)):
        period = factor * max(14 * deviation, (depth + 60.0 + math.log1p(deviation * t)) / (share * t))
        frequencies = math.ceil(reach / deviation * period / (2 * math.pi))
        truths.append(log_delta_of_mixtures(p, q, count, epsilon, share * t, period, frequencies))
    slack = 3e-14 * (1 + abs(truths[0])) + 3e-20 * count * t  # rounding of losses in extended precision
    assert abs(truths[0] - truths[1]) < slack, truths
    bounds = contour_bounds([step_of(name, count)], np.array([epsilon]))
    assert bounds.lower[0] - slack <= truths[0] <= bounds.upper[0] + slack, (truths, bounds)
    assert bounds.upper[0] - bounds.lower[0] < 1e-8, bounds


def test_depths_of_a_thousand():
    """Truth deep in the tail, where delta itself underflows."""
    p, q, _ = PAIRS["alternating"]
    t = 1.75
    log_total, _, _, mean, deviation = of_tilt(p, q, t, 0.0)
    epsilon = 1000 * mean - 1 / t
    depth = epsilon * t - 1000 * float(log_total)
    period = max(14 * deviation * 1000**0.5, (depth + 60.0) / t)
    truth = log_delta_of_mixtures(p, q, 1000, epsilon, t, period, math.ceil(30 / deviation / 1000**0.5 * period / 6))
    bounds = contour_bounds([step_of("alternating", 1000)], np.array([epsilon]))
    assert truth < -1000.0
    assert bounds.lower[0] - 1e-10 <= truth <= bounds.upper[0] + 1e-10
    assert bounds.upper[0] - bounds.lower[0] < 1e-7


def test_a_component_twice_is_the_closed_form():
    """20 x N(0.5, 1) against N(0, 1.5): truths by another contour in 40 digits."""
    p, q = ((0.5, 0.5, 1), (0.5, 0.5, 1)), ((1, 0, 1.5),)
    truths = {4.426: -1.4864809102740865504, 7.45: -5.9963224592159313583, 9.886: -30.015708423552305776}
    rows, _ = kernel(p, q, 20.0).bounds(0, np.array(list(truths)))
    for truth, (_, lower, upper) in zip(truths.values(), rows, strict=True):
        assert lower <= truth <= upper < lower + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 100000])
@pytest.mark.parametrize("name", ["wider Q", "alternating", "around", "group", "far", "near"])
def test_total_variation_is_the_same_in_both_directions(name, count):
    """At epsilon 0 both directions are the total variation, by tilts of other losses."""
    step = step_of(name, count)
    first, second = (contour_bounds([s], np.zeros(1)) for s in (step, step.reversed()))
    slack = 1e-15 * count  # weights of groups miss 1
    assert first.lower[0] <= second.upper[0] + slack
    assert second.lower[0] <= first.upper[0] + slack
    if count >= 1000:
        assert first.upper[0] - first.lower[0] < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wider Q", "alternating"])
def test_one_and_two_steps_against_curves(name):
    """One step has the hockey-stick divergence; two steps the mean of that of one step at epsilon - L."""
    p, q, _ = PAIRS[name]
    step = step_of(name, 1)
    epsilon = np.array([0.02, 0.05])
    curve = hockey_stick_divergence(step.p, step.q, epsilon)
    bounds = contour_bounds([step], epsilon)
    assert np.all(np.exp(bounds.lower) <= curve.upper)
    assert np.all(np.exp(bounds.upper) >= curve.lower)
    logs, loss = tilted_nodes(p, q, 1e-300, 300.0)  # the inner curve has kinks at extremes of L
    masses, left = np.exp(logs).astype(np.float64), 0.05 - loss.astype(np.float64)
    positive, negative = hockey_stick_divergence(step.p, step.q, np.maximum(left, 0.0)), hockey_stick_divergence(
        step.q, step.p, np.maximum(-left, 0.0)
    )
    inner = np.where(left >= 0.0, positive.value, -np.expm1(left) + np.exp(left) * negative.value)
    truth = float(np.sum(masses * inner))
    two = contour_bounds([step_of(name, 2)], np.array([0.05]))
    assert math.exp(two.lower[0]) <= truth * (1 + 4e-6)
    assert math.exp(two.upper[0]) >= truth * (1 - 4e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [2, 10**6])
@pytest.mark.slow
def test_extreme_pairs_are_bounded_and_end(count):
    close = [(0.1 + 0.2, 0, 1), (0.7, 1, 2)]
    pairs = [
        (((0.3, 0, 1), (0.7, 1, 2)), tuple(close)),
        (((0.5, 0, 1), (0.5, 0, 1e-3)), ((0.5, 0, 1), (0.5, 1e-3, 1e-3))),
        (((1 - 1e-12, 0, 1), (1e-12, 5, 1)), ((1 - 1e-12, 0, 1), (1e-12, -5, 2))),
        (((1, 0, 1e-3),), ((0.5, 0, 1), (0.5, 1, 1e3))),
        (((0.5, 0, 1e3), (0.5, 1, 1)), ((1, 0, 1),)),
        (((0.5, 0, 1), (0.5, 1e6, 1)), ((0.5, 0, 1), (0.5, 1e6, 1.5))),
    ]
    for p, q in pairs:
        for first, second in ((p, q), (q, p)):
            step = MixturePair(GaussianMixture(*columns(first)), GaussianMixture(*columns(second)), count)
            bounds = contour_bounds([step], np.array([0.0, 1.0]))
            if bounds is None:
                continue
            assert np.all(bounds.lower <= bounds.value), (first, second, bounds)
            assert np.all(bounds.value <= bounds.upper), (first, second, bounds)
            curve = hockey_stick_divergence(step.p, step.q, [0.0, 1.0])
            assert np.all(np.exp(bounds.upper) >= curve.lower), "more steps have a larger delta"
            assert np.exp(bounds.lower[0]) <= count * curve.upper[0], "at most the sum of total variations"


def test_no_loss_is_larger_than_the_largest():
    """1 / 0.875 bounds p / q: beyond 20 times its logarithm delta is 0, before it is not."""
    largest = 20 * renyi_divergence(step_of("wider Q", 1).p, step_of("wider Q", 1).q, math.inf).value
    pair = step_of("wider Q", 1).p, step_of("wider Q", 1).q
    bounds = compose(pair, 20).log_delta(np.array([0.3 * largest, 1.001 * largest, 5.0]), direction="forward")
    assert bounds.lower[0] > -50.0
    assert np.all(np.isneginf(bounds.upper[1:]))
