"""What the tests of reductions share: laws with a known line, and the comparison with the truth."""

import mpmath as mp
import numpy as np

from fastpriv.divergences import reductions
from oracles import gaussian_geometry as geometry

__all__ = ["EPSILON", "V", "W", "X", "all_held", "covariance", "held", "line"]

EPSILON = np.array([0.0, 0.3, 1.0, 2.5])
W, V = [0.25, 0.5, 0.25], [0.125, 0.375, 0.5]
X = np.array([-2.0, 0.0, 3.0])


def held(estimate, truth, width=None, slack=0.0):
    """Whether the bounds contain the truth and are narrow."""
    assert estimate is not None, "not reduced"
    low, high = np.ravel(estimate.lower), np.ravel(estimate.upper)
    for i, value in enumerate(truth if isinstance(truth, list) else [truth]):
        room = mp.mpf(slack) * abs(mp.mpf(value)) if slack else 0
        assert low[i] - room <= value <= high[i] + room, (i, mp.nstr(value, 20), low[i], high[i], estimate.method)
        if width is not None and value and mp.isfinite(value):
            assert high[i] - low[i] <= width * abs(value), (i, mp.nstr(value, 20), low[i], high[i], estimate.method)


def all_held(p, q, line_p, line_q, width=1e-11):
    """Every quantity of a pair whose truth is that of two laws on the line."""
    held(reductions.kl(p, q, certified=True), geometry.kl(line_p, line_q), width)
    held(reductions.jensen_shannon(p, q, certified=True), geometry.js(line_p, line_q), width)
    for order in (0.25, 3.0):
        found = reductions.renyi(p, q, order, certified=True)
        held(found, geometry.renyi(line_p, line_q, order), width)
    sticks = [geometry.hockey_stick(line_p, line_q, e) for e in EPSILON.tolist()]
    held(reductions.hockey_stick(p, q, EPSILON), sticks, width)
    held(reductions.log_hockey_stick(p, q, EPSILON), [mp.log(x) for x in sticks], width)
    held(reductions.total_variation(p, q), sticks[0], width)


def covariance(d, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    a = np.linalg.qr(rng.normal(size=(d, d)))[0]
    k = a @ np.diag(10 ** rng.uniform(-spread / 2, spread / 2, d)) @ a.T
    return np.tril(k) + np.tril(k, -1).T


def line(weights, positions, square):
    """A law on the line in mpmath; ``square`` is u' K^-1 u for unit steps."""
    with mp.workdps(40):
        s = 1 / mp.sqrt(geometry.number(square))
        return [mp.mpf(w) for w in weights], [mp.mpf(float(x)) for x in positions], [s] * len(weights)
