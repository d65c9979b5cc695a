"""LIP and LDP curves of Gaussian mechanisms with arrays of sigma: the bits of single calls, broadcasting, threads."""

import numpy as np
import pytest

from fastpriv import DomainError, GaussianMechanism, Pmf, notions
from fastpriv.errors import ShapeError

PRIOR = Pmf([-1.0, 0.0, 0.5, 4.0], [0.2, 0.3, 0.4, 0.1])
GAP = Pmf([0.0, 1.0, 2.0], [0.2, 0.3, 0.5 + 4e-10])
SIGMA = np.array([[1e-3, 0.5, 1.0], [2.0, 10.0, 1e6]])
EPSILON = [3.0, 0.0, 0.5, 40.0]


@pytest.mark.parametrize("prior", [PRIOR, GAP, Pmf([2.0], [1.0])])
def test_curves_of_many_sigmas_are_those_of_each_bit_for_bit(prior):
    stack = GaussianMechanism(SIGMA)
    curves = (*notions.lip_curves(prior, stack, EPSILON), notions.ldp_delta(prior, stack, EPSILON))
    for index in np.ndindex(SIGMA.shape):
        mechanism = GaussianMechanism(SIGMA[index])
        alone = (*notions.lip_curves(prior, mechanism, EPSILON), notions.ldp_delta(prior, mechanism, EPSILON))
        for many, one in zip(curves, alone, strict=True):
            assert (many.kind, many.unit) == (one.kind, one.unit)
            for a, b in zip(many.arrays(), one.arrays(), strict=True):
                np.testing.assert_array_equal(a[index], b)
    assert notions.lip_epsilon(prior, stack).shape == SIGMA.shape


def test_levels_broadcast_with_sigmas():
    stack = GaussianMechanism(SIGMA)
    for curve in (notions.lip_delta, notions.log_lip_delta, notions.ldp_delta):
        one = curve(PRIOR, stack, 0.5)
        assert one.shape == (2, 3)
        rows = curve(PRIOR, stack, np.array([[[0.5, 1.0]], [[2.0, 0.5]]]))
        assert rows.shape == (2, 3, 2)
        np.testing.assert_array_equal(rows.value[0, :, 0], one.value[0])
        np.testing.assert_array_equal(rows.value[1, :, 1], one.value[1])
        wide = curve(PRIOR, stack, np.array([0.5, 1.0]).reshape(2, 1, 1, 1))
        assert wide.shape == (2, 2, 3, 1)
        np.testing.assert_array_equal(wide.value[0, ..., 0], one.value)
        assert curve(PRIOR, stack, np.empty(0)).shape == (2, 3, 0)
        assert curve(PRIOR, GaussianMechanism(np.empty(0)), [0.5, 1.0]).shape == (0, 2)
        with pytest.raises(ShapeError, match="epsilon must be of a shape that broadcasts with sigma"):
            curve(PRIOR, stack, np.ones((2, 2)))
    with pytest.raises(DomainError, match="epsilon must be at least 0"):
        notions.lip_delta(PRIOR, stack, -1.0)


@pytest.mark.slow
def test_threads_change_no_bit_of_long_grids_and_of_many_sigmas():
    rng = np.random.default_rng(1)
    prior = Pmf(rng.normal(size=40), rng.dirichlet(np.ones(40)))
    for sigma, epsilon in ((1.0, np.linspace(0, 4, 1500)), (np.geomspace(0.1, 10, 3000), [0.1, 1.0])):
        seen = []
        report = lambda done, total, seen=seen: seen.append(done)
        one = notions.lip_delta(prior, GaussianMechanism(sigma), epsilon, n_jobs=1, progress=report)
        two = notions.lip_delta(prior, GaussianMechanism(sigma), epsilon, n_jobs=2)
        assert one == two
        assert len(seen) > 1
