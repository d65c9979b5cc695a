"""Three and more steps on samples of fixed size with a record replaced: bounds against a third step by quadrature."""

import math

import numpy as np
import pytest
from scipy import special as sp

from fastpriv import GaussianMechanism, compose
from fastpriv.base.quadrature_rules import gauss_legendre
from fastpriv.composition.common_grids import grid_bounds
from fastpriv.composition.fixed_size_samples import fixed_size_bounds
from fastpriv.composition.two_sampled_gaussians import few_release_bounds
from fastpriv.pairs import FixedSizeSampled


def steps(*settings):
    """Pairs of (sigma, size, sample, count)."""
    pairs = []
    for sigma, size, sample, count in settings:
        step = FixedSizeSampled(GaussianMechanism(sigma, 1.0), size, sample, relation="replace_one")
        pairs += [pair.repeated(count) for pair in step._bounding_pairs().dominating]
    return pairs


def three_steps(sigma, size, sample, epsilon):
    """Delta of three steps: that of two, at the level that the loss of the third leaves, to about 1e-12."""
    a, q = 2.0 / sigma, sample / size
    pairs = steps((sigma, size, sample, 2))

    def two(levels):
        delta = np.exp(few_release_bounds(pairs, np.abs(levels)).value)
        return np.where(levels >= 0.0, delta, -np.expm1(levels) + np.exp(levels) * delta)

    kink = math.log1p(math.expm1(epsilon) / q) / a if epsilon else 0.0
    edges = np.unique(np.concatenate([np.geomspace(1e-6, 14.0 + 2.0 * a, 40), [0.0, kink]]))
    x, _, weights = gauss_legendre(20)
    d = (edges[:-1, None] + np.diff(edges)[:, None] * x).ravel()
    masses = (np.diff(edges)[:, None] * weights).ravel() * np.exp(-0.5 * (d + 0.5 * a) ** 2) / math.sqrt(2 * math.pi)
    losses = np.log1p(q * np.expm1(a * d))
    atom = (1.0 - q) * sp.erf(0.5 * a / math.sqrt(2.0))
    rest = masses @ (np.exp(losses) * two(epsilon - losses) + two(epsilon + losses))
    return atom * float(two(np.array([epsilon]))[0]) + float(rest)


@pytest.mark.parametrize(("sigma", "size", "sample", "epsilon"), [
    (2.0, 64, 8, 1.0),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (2.0, 64, 8, 0.0), (4.0, 64, 32, 3.0), (20.0, 64, 8, 0.125), (0.5, 64, 8, 1.0), (1.0, 3, 2, 6.0))),
])
def test_a_third_step_by_quadrature(sigma, size, sample, epsilon):
    found = fixed_size_bounds(steps((sigma, size, sample, 3)), np.array([epsilon]))
    truth = math.log(three_steps(sigma, size, sample, epsilon))
    assert 0.0 < found.upper[0] - found.lower[0] < 1e-9
    assert found.lower[0] - 1e-11 <= truth <= found.upper[0] + 1e-11


def test_all_outcomes_of_two_steps_have_few_losses():
    """The sum along the contour is one of zeros there."""
    epsilon = np.array([0.25])
    found, exact = (bounds(steps((2.0, 64, 16, 2)), epsilon) for bounds in (fixed_size_bounds, few_release_bounds))
    assert exact.lower[0] - 1e-9 < found.lower[0] <= exact.upper[0]
    assert exact.lower[0] <= found.upper[0] < exact.upper[0] + 1e-9


def test_compositions_take_them():
    step = FixedSizeSampled(GaussianMechanism(2.0, 1.0), 64, 8, relation="replace_one")
    found = compose(step, 100).delta([0.5, 1.0])
    assert "contour sum without the loss 0" in found.method
    assert (found.lower > 0.0).all()
    assert (found.lower < found.upper).all()
    assert abs(found.upper[0] - 0.53444767654) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("settings", [
    [(2.0, 64, 8, 10)], [(1.0, 1000, 10, 100)], [(4.0, 64, 32, 1000)],
    [(1.5, 60, 20, 1), (3.0, 60, 20, 1), (2.0, 60, 15, 2)],
], ids=str)
def test_grids_overlap(settings):
    epsilon = np.array([0.0, 0.3, 1.5])
    pairs = steps(*settings)
    found, other = fixed_size_bounds(pairs, epsilon), grid_bounds(pairs, epsilon)
    assert (found.lower <= other.upper).all()
    assert (other.lower <= found.upper).all()
    assert (found.upper - found.lower < 1e-8).all()


def test_what_it_leaves_to_others():
    assert fixed_size_bounds(compose(GaussianMechanism(1.0, 1.0), 3).forward_pairs.dominating, np.zeros(1)) is None
    far = fixed_size_bounds(steps((2.0, 64, 8, 3)), np.array([301.0]))
    vast = fixed_size_bounds(steps((0.7, 10**6, 64, 3)), np.array([0.0]))  # more nodes and frequencies than it takes
    for found in (far, vast):
        assert found.lower[0] == -math.inf
        assert found.upper[0] == 0.0
