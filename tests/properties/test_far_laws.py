"""Laws further apart than their squares can be squared: no warning but deliberate ones, and bounds that are true."""

import warnings

import numpy as np
import pytest

from fastpriv import GaussianMixture, kl_divergence
from fastpriv.errors import SamplingWarning
from fastpriv.sampling.proposals.renyi_proposals import renyi_proposal


def mixture(scale, seed):
    rng = np.random.default_rng(seed)
    return GaussianMixture(np.full(3, 1 / 3), scale * rng.standard_normal((3, 4)), rng.uniform(0.8, 1.3, (3, 4)))


def farthest(p, q):
    """KL by the nearest component of q to each of p: all else is nothing beside it."""
    gaps = ((p.means[:, None] - q.means[None]) / q.sigmas[None]) / 1e120
    size = float(np.abs(gaps).max())
    return 0.5 * float(p.weights @ ((gaps / size) ** 2).sum(axis=2).min(axis=1)) * (size * 1e120) ** 2


@pytest.mark.few(6)
@pytest.mark.parametrize("scale", [1e60, 1e76, 1e100, 1e149, 1e150, 1e153, 3e153])
@pytest.mark.parametrize(
    "keywords", [{}, {"both": True}, {"method": "antithetic"}, {"interval": "guaranteed", "max_samples": 10**5}],
    ids=["plain", "both", "antithetic", "guaranteed"],
)
def test_kl_of_very_far_laws(scale, keywords):
    p, q = mixture(1.0, 0), mixture(scale, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        found = kl_divergence(p, q, rng=1, **{"max_samples": 10**6, **keywords})
    truth = np.array([farthest(p, q), farthest(q, p)]) if "both" in keywords else farthest(p, q)
    if "interval" not in keywords and scale < 1e150:  # bets on what has no upper end take values of 1e25 at most
        np.testing.assert_allclose(found.value, truth, rtol=0.01)
    assert np.all(found.lower <= truth * (1 + 1e-12))
    assert np.all(found.upper >= truth * (1 - 1e-12))


@pytest.mark.parametrize("order", [1.0 + 2.0**-30, 1.5, 3.0])
def test_no_bound_is_claimed_that_overflow_makes_small(order):
    for scale in (1e94, 1e97, 1e100, 1e130, 1e160):
        p, q = mixture(1.0, 0), mixture(scale, 1)
        found = renyi_proposal(p, q, order)
        assert not found.bounded or found.log_scale > 0.01 * (order - 1.0) * farthest(p, q)
