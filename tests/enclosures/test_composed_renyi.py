"""Renyi divergences of compositions against integrals and sums in mpmath."""

import mpmath
import numpy as np
import pytest

from fastpriv import (
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
    hockey_stick_divergence,
    kl_divergence,
    renyi_divergence,
)
from fastpriv.base.errors import DomainError


def laplace(ratio, order):
    with mpmath.workdps(400):
        d, a = mpmath.mpf(ratio), mpmath.mpf(order)
        if order == 1:
            return d + mpmath.expm1(-d)
        moment = (a * mpmath.exp((a - 1) * d) + (a - 1) * mpmath.exp(-a * d)) / (2 * a - 1)
        return mpmath.log(moment) / (a - 1)


def atoms(p, q, order):
    with mpmath.workdps(60):
        pairs = [(mpmath.mpf(x), mpmath.mpf(y)) for x, y in zip(p, q, strict=True) if x]
        if order == 1:
            return sum(x * mpmath.log(x / y) for x, y in pairs)
        return mpmath.log(sum(x * (x / y) ** (mpmath.mpf(order) - 1) for x, y in pairs)) / (mpmath.mpf(order) - 1)


def inside(found, truth):
    return found.lower <= truth <= found.upper


@pytest.mark.parametrize("order", [1, 1 + 1e-9, 1.5, 2, 30, 1e6])
@pytest.mark.parametrize("ratio", [1e-150, 1e-6, 0.3, 1.0, 40.0])
def test_laplace_noise(ratio, order):
    found = compose(LaplaceMechanism(1.0, ratio), 3).renyi_divergence(order)
    truth = 3 * laplace(ratio, order)
    assert inside(found, truth)
    assert found.width <= 4e-15 * found.value


@pytest.mark.parametrize("order", [1, 1.001, 2, 17.5, 300])
def test_outcomes(order):
    p, q = [0.5, 0.25, 0.25 - 2.0**-40, 2.0**-40], [2.0**-30, 0.5, 0.25, 0.25 - 2.0**-30]
    found = compose((p, q), 7).renyi_divergence(order)
    truth = 7 * atoms(p, q, order)
    assert inside(found, truth)
    assert found.width <= 1e-12 * found.value
    turned = compose((p, q), 7).renyi_divergence(order, direction="backward")
    assert inside(turned, 7 * atoms(q, p, order))


def test_sums_of_kinds():
    pair = PoissonSampledGaussian(sigma=1.5, rate=0.1).pair()
    both = compose([pair, GaussianMechanism(2.0, 1.0), LaplaceMechanism(2.0)], [5, 4, 3])
    found = both.renyi_divergence([1.0, 3.0])
    for i, order in enumerate((1.0, 3.0)):
        one = renyi_divergence(*pair, order, certified=True)
        truth = 5 * one.value + 4 * order / 8 + 3 * laplace(0.5, order)
        assert abs(found.value[i] - float(truth)) <= 1e-11
        assert found.width[i] <= 1e-11
    assert found.value[0] >= 5 * kl_divergence(*pair).lower


def test_the_worse_direction():
    releases = compose(PoissonSampledGaussian(sigma=1.0, rate=0.2), 2)
    ways = [releases.renyi_divergence(2.0, direction=way).upper for way in ("forward", "backward")]
    assert releases.renyi_divergence(2.0).upper == max(ways)
    assert ways[0] != ways[1]
    assert releases.renyi_divergence(2.0) == releases.reversed.renyi_divergence(2.0)


def test_infinite_and_unknown_ones():
    erased = compose(([0.5, 0.5], [1.0, 0.0]), 2).renyi_divergence([1.0, 2.0])
    assert np.isinf(erased.lower).all()
    assert "infinite losses" in erased.method
    wide = compose((GaussianMixture.single(0.0, 2.0), GaussianMixture.single(0.0, 1.0)))
    assert wide.renyi_divergence(3.0).lower == np.inf
    assert np.isfinite(wide.renyi_divergence(1.2).upper)
    one, other = GaussianMixture.single(0.0, 1.0), GaussianMixture.single(1.0, 1.0)
    curves = (lambda e: hockey_stick_divergence(one, other, e), lambda e: hockey_stick_divergence(other, one, e))
    unknown = compose(curves)
    found = unknown.renyi_divergence(2.0)
    assert (found.lower, found.upper) == (0.0, np.inf)
    assert "curves" in found.method
    limit = compose(RandomizedResponse(2, epsilon=1.0), 3).renyi_divergence(np.inf)
    assert inside(limit, 3.0)
    assert compose([], []).renyi_divergence(2.0).upper == 0.0
    assert compose(LaplaceMechanism(1.0), 2).renyi_divergence(1e9).upper <= 2.0 + 1e-12


@pytest.mark.parametrize("order", [0.5, -1.0, np.nan])
def test_orders_that_are_refused(order):
    with pytest.raises(DomainError, match="order must be at least 1"):
        compose(LaplaceMechanism(1.0)).renyi_divergence(order)
