"""The Renyi divergence of order infinity of one-dimensional mixtures against its maximum in high precision."""

import math

import mpmath as mp
import numpy as np
import pytest

from fastpriv import DomainError, GaussianMixture, kl_divergence, renyi_divergence
from fastpriv.divergences.one_dimension.monotone_pieces import max_divergence
from fastpriv.divergences.one_dimension.quadrature import Deadline


def log_density(law, x):
    columns = zip(law.weights.tolist(), law.means.tolist(), law.sigmas.tolist(), strict=True)
    terms = [mp.mpf(w) / s * mp.exp(-((x - m) ** 2) / (2 * mp.mpf(s) ** 2)) for w, m, s in columns]
    return mp.log(mp.fsum(terms))


def supremum(p, q):
    """log sup p/q: the best point of a fine grid, improved by golden sections."""
    grid = np.linspace(-30.0, 30.0, 60001)
    best = float(grid[np.argmax(p.log_density(grid) - q.log_density(grid))])
    with mp.workdps(40):
        low, high, part = mp.mpf(best) - mp.mpf("0.002"), mp.mpf(best) + mp.mpf("0.002"), (mp.sqrt(5) - 1) / 2
        for _ in range(90):
            one, two = high - part * (high - low), low + part * (high - low)
            if log_density(p, one) - log_density(q, one) < log_density(p, two) - log_density(q, two):
                low = one
            else:
                high = two
        return log_density(p, low) - log_density(q, low)


@pytest.mark.parametrize("seed", range(12))
def test_brackets_contain_the_maximum(seed):
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 6, 2)
    weights = [rng.integers(1, 9, size) / 64 for size in (k, n)]
    weights = [np.append(w[:-1], 1 - w[:-1].sum()) for w in weights]
    p = GaussianMixture(weights[0], rng.normal(size=k), rng.uniform(0.3, 1.0, k))
    q = GaussianMixture(weights[1], rng.normal(size=n), np.append(rng.uniform(0.5, 1.5, n - 1), 1.25))
    found, truth = max_divergence(p, q), supremum(p, q)
    assert found.lower <= truth <= found.upper
    assert found.width <= 1e-10 * found.value


def test_equal_components_are_bounded_by_their_weights():
    p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), GaussianMixture([0.375, 0.625], [0.0, 1.0], 1.0)
    assert max_divergence(p, q).lower <= math.log(4 / 3) <= max_divergence(p, q).upper
    assert max_divergence(q, p).lower <= math.log(5 / 4) <= max_divergence(q, p).upper
    assert max_divergence(p, q).width < 1e-9


def test_a_ratio_without_bound_is_infinite():
    narrow, wide = GaussianMixture.single(0.0, 1.0), GaussianMixture([0.5, 0.5], [0.0, 9.0], 1.5)
    assert (max_divergence(wide, narrow).value, max_divergence(wide, narrow).kind) == (math.inf, "exact")
    assert max_divergence(GaussianMixture.single(1.0, 1.0), narrow).lower == math.inf
    assert math.isfinite(max_divergence(narrow, wide).upper)


def test_one_gaussian_each_has_a_closed_form():
    found = max_divergence(GaussianMixture.single(0.0, 1.0), GaussianMixture.single(1.0, 2.0))
    assert found.kind == "exact"
    assert found.lower <= mp.log(2) + mp.mpf(1) / 6 <= found.upper
    assert max_divergence(GaussianMixture.single(0.0, 1.0), GaussianMixture.single(0.0, 1.0)).value == 0.0


def test_at_the_deadline_nothing_is_known():
    p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 2.0)
    found = max_divergence(p, q, deadline=Deadline(0.0))
    assert (found.lower, found.upper) == (0.0, math.inf)
    assert "time spent" in found.method


def test_orders_of_any_shape_with_one_and_infinity():
    p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 2.0)
    found = renyi_divergence(p, q, [[0.5, 1.0], [2.0, math.inf]])
    assert found.value.shape == (2, 2)
    assert found.value[0, 1] == kl_divergence(p, q).value
    assert found.value[1, 1] == max_divergence(p, q).value
    assert np.all(np.diff(found.value.ravel()) > 0)
    assert renyi_divergence(p, q, []).value.shape == (0,)


def test_order_infinity_in_more_dimensions_is_reduced_or_refused():
    p, q = (GaussianMixture([w, 1 - w], [[0.0, 0.0], [1.0, 2.0]], 1.0) for w in (0.5, 0.375))
    found = renyi_divergence(p, q, math.inf)
    assert found.kind == "certified"
    assert found.lower <= math.log(4 / 3) <= found.upper < 0.2877
    with pytest.raises(DomainError, match="order must be finite for a divergence that has to be sampled; got inf"):
        renyi_divergence(p.affine([[1.0, 0.0], [0.0, 2.0]]), q, math.inf)
