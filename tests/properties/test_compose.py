"""Laws of compositions: monotone in the count, convex, dual, below data processing, and free of order."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv import GaussianMechanism, GaussianMixture, LaplaceMechanism, PoissonSampledGaussian, compose

# Laws hold for a pair in one order, whichever is the larger one.
pytestmark = pytest.mark.filterwarnings("ignore:the answer is that of p against q as passed:UserWarning")

LEVELS = np.array([0.0, 0.05, 0.3, 1.0, 3.0])
COUNTS = st.integers(1, 300)


@st.composite
def pairs(draw):
    """Mixtures on the line with one sigma, discrete pairs, and mechanisms."""
    kind = draw(st.sampled_from(["mixtures", "atoms", "subsampled", "gaussian"]))
    if kind == "mixtures":
        w = draw(st.floats(0.05, 0.95))
        return GaussianMixture([w, 1 - w], [0.0, draw(st.floats(0.1, 2.0))], 1.0), GaussianMixture.single(0.0, 1.0)
    if kind == "atoms":
        p, q = (np.array([draw(st.integers(1, 8)) for _ in range(2)]) for _ in range(2))
        return p / p.sum(), q / q.sum()
    if kind == "subsampled":
        return PoissonSampledGaussian(draw(st.floats(0.7, 4.0)), draw(st.floats(0.01, 0.5)))
    return GaussianMechanism(draw(st.floats(0.5, 20.0)), 1.0)


def at_most(a, b):
    """Whether bounds allow a <= b everywhere."""
    return (np.asarray(a.lower) <= np.asarray(b.upper) * (1 + 1e-15)).all()


@settings(max_examples=15, deadline=None)
@given(pair=pairs(), count=COUNTS, more=st.integers(1, 50))
def test_more_releases_tell_more(pair, count, more):
    assert at_most(compose(pair, count).delta(LEVELS), compose(pair, count + more).delta(LEVELS))


@settings(max_examples=15, deadline=None)
@given(pair=pairs(), count=COUNTS)
def test_convex_and_dual(pair, count):
    composition, x = compose(pair, count), np.linspace(1.0, 4.0, 9)
    found = composition.delta(np.log(x), direction="forward")
    middle = 0.5 * (found.upper[:-2] + found.upper[2:])
    assert (found.lower[1:-1] <= middle + 1e-15).all()
    behind = composition.delta(-LEVELS, direction="forward")
    dual = 1 - np.exp(-LEVELS) + np.exp(-LEVELS) * composition.delta(LEVELS, direction="backward").value
    assert np.allclose(behind.value, dual, rtol=1e-9, atol=1e-14)
    assert (composition.reversed.delta(LEVELS, direction="forward").value
            == composition.delta(LEVELS, direction="backward").value).all()


@settings(max_examples=15, deadline=None)
@given(first=pairs(), second=pairs(), counts=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_order_does_not_matter(first, second, counts):
    one = compose([first, second], list(counts)).delta(LEVELS[:3])
    other = compose([second, first], list(counts[::-1])).delta(LEVELS[:3])
    assert at_most(one, other)
    assert at_most(other, one)


@pytest.mark.parametrize("count", [1, 10, 200])
def test_processing_of_data_loses(count):
    """Whether normal noise exceeds 0.4 is a discrete pair, and less noise is more."""
    from scipy.stats import norm

    gaussian = compose(GaussianMechanism(3.0, 1.0), count).delta(LEVELS)
    p, q = norm.sf((0.4 - 1.0) / 3.0), norm.sf(0.4 / 3.0)
    coin = compose((np.array([p, 1 - p]), np.array([q, 1 - q])), count).delta(LEVELS)
    assert at_most(coin, gaussian)
    assert at_most(gaussian, compose(GaussianMechanism(2.0, 1.0), count).delta(LEVELS))
    assert at_most(compose(PoissonSampledGaussian(3.0, 0.3), count).delta(LEVELS), gaussian)
    assert at_most(compose(LaplaceMechanism(3.0), min(count, 10)).delta(LEVELS),
                   compose(LaplaceMechanism(2.0), min(count, 10)).delta(LEVELS))


@settings(max_examples=15, deadline=None)
@given(pair=pairs(), count=COUNTS, log_delta=st.floats(-200.0, -1.0))
@pytest.mark.slow
def test_epsilon_is_the_inverse(pair, count, log_delta):
    composition = compose(pair, count)
    found = composition.epsilon(log_delta=log_delta)
    if math.isfinite(found.upper):
        assert composition.log_delta(found.upper).upper <= log_delta * (1 - 1e-12) + 1e-12
        assert found.width <= 1e-6 * max(found.upper, 1e-6)
    if found.lower > 0.0:
        assert composition.log_delta(found.lower).lower >= log_delta * (1 + 1e-12) - 1e-12
