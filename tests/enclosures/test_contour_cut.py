"""A factor of one release that falls fast, beside many that return: what is cut off the contour is not nothing.

Notation: n randomised responses with losses +-d / 2, and one Gaussian release of mu = 1 / sigma. |m| of the responses
is near 1 again at the frequency 2 pi / d, where |m| of the Gaussian release is 3e-10. delta is the sum over the number
of ones of its probability times delta of the Gaussian release at what is left of epsilon (docs/proofs/contour.md,
theorem 2.3).
"""

import math

import mpmath as mp
import pytest

from fastpriv import GaussianMechanism, compose


def exact(p, q, n, sigma, epsilon):
    """delta to 30 digits: releases of the responses beyond 14 standard deviations count less than 1e-40."""
    mu, log_p, log_rest = 1 / mp.mpf(sigma), mp.log(mp.mpf(p)), mp.log(1 - mp.mpf(p))
    one, zero = log_p - mp.log(mp.mpf(q)), log_rest - mp.log(1 - mp.mpf(q))
    total, spread = mp.mpf(0), 14 * math.sqrt(n * p * (1 - p))
    for k in range(max(0, int(n * p - spread)), min(n, int(n * p + spread)) + 1):
        level = mp.mpf(epsilon) - k * one - (n - k) * zero
        if level > mu * mu / 2 + 18 * mu:
            continue
        weight = mp.exp(mp.log(mp.binomial(n, k)) + k * log_p + (n - k) * log_rest)
        high, low = level / mu - mu / 2, level / mu + mu / 2
        total += weight * (mp.erfc(high / mp.sqrt(2)) - mp.exp(level) * mp.erfc(low / mp.sqrt(2))) / 2
    return total


@pytest.mark.parametrize("epsilon", [553.4334, 554.1726])
def test_a_fast_factor_of_one_release_beside_returns(epsilon):
    p = 1 / (1 + math.exp(-math.pi / 4.25))
    releases = [GaussianMechanism(0.64, 1.0), ([p, 1 - p], [1 - p, p])]
    estimate = compose(releases, [1, 1500]).log_delta(epsilon)
    with mp.workdps(30):
        truth = mp.log(exact(p, 1 - p, 1500, 0.64, epsilon))
        assert estimate.lower <= truth <= estimate.upper
    assert estimate.upper - estimate.lower < 4e-12
