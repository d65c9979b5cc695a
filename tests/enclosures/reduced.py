"""What the tests of reductions share: laws with a known line, and the comparison with the truth."""

import math

import mpmath as mp
import numpy as np

from fastpriv.divergences.reductions import factored_quantities as reductions
from fastpriv.divergences.reductions.independent_factors import independent_factors
from oracles import gaussian_geometry as geometry

__all__ = [
    "EPSILON", "V", "W", "X", "check_all_enclosed", "check_encloses", "check_in_the_plane", "covariance", "line",
]

EPSILON = np.array([0.0, 0.3, 1.0, 2.5])
W, V = [0.25, 0.5, 0.25], [0.125, 0.375, 0.5]
X = np.array([-2.0, 0.0, 3.0])


def check_encloses(estimate, truth, width=None, slack=0.0):
    """Whether the bounds contain the truth and are narrow."""
    assert estimate is not None, "not reduced"
    low, high = np.ravel(estimate.lower), np.ravel(estimate.upper)
    for i, value in enumerate(truth if isinstance(truth, list) else [truth]):
        room = mp.mpf(slack) * abs(mp.mpf(value)) if slack else 0
        assert low[i] - room <= value <= high[i] + room, (i, mp.nstr(value, 20), low[i], high[i], estimate.method)
        if width is not None and value and mp.isfinite(value):
            assert high[i] - low[i] <= width * abs(value), (i, mp.nstr(value, 20), low[i], high[i], estimate.method)


def check_all_enclosed(p, q, line_p, line_q, width=1e-11):
    """Every quantity of a pair whose truth is that of two laws on the line."""
    check_encloses(reductions.renyi_divergence(p, q, certified=True), geometry.kl(line_p, line_q), width)
    check_encloses(reductions.jensen_shannon(p, q, certified=True), geometry.js(line_p, line_q), width)
    for order in (0.25, 3.0):
        found = reductions.renyi_divergence(p, q, order, certified=True)
        check_encloses(found, geometry.renyi(line_p, line_q, order), width)
    sticks = [geometry.hockey_stick(line_p, line_q, e) for e in EPSILON.tolist()]
    check_encloses(reductions.hockey_stick_divergence(p, q, EPSILON), sticks, width)
    check_encloses(reductions.hockey_stick_divergence(p, q, EPSILON, logs=True), [mp.log(x) for x in sticks], width)
    check_encloses(reductions.hockey_stick_divergence(p, q, 0.0), sticks[0], width)


def check_in_the_plane(p, q, room):
    """Quantities of two laws of sigma 1 in the plane, by quadrature with 80 x 80 nodes; ``room`` is its own error.

    Jensen-Shannon and hockey-sticks where there is one factor; the kinks of the latter leave the quadrature 2 %.
    """
    nodes, mass = np.polynomial.hermite_e.hermegauss(80)
    z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    mass = np.outer(mass, mass).ravel() / mass.sum() ** 2
    x, y = ((law.means[:, None, :] + z).reshape(-1, 2) for law in (p, q))
    wp, wq = (np.outer(law.weights, mass).ravel() for law in (p, q))
    lp, lq = p.log_density(x), q.log_density(x)
    middle = [np.logaddexp(p.log_density(points), q.log_density(points)) - math.log(2.0) for points in (x, y)]
    numbers = [
        (reductions.renyi_divergence(p, q), wp @ (lp - lq + np.expm1(lq - lp))),
        (reductions.renyi_divergence(p, q, 2.5), math.log(wp @ np.exp(1.5 * (lp - lq))) / 1.5),
        (reductions.entropy(p), -wp @ lp),
        (reductions.mutual_information(p), -wp @ lp - math.log(2 * math.pi * math.e)),
    ]
    if len(independent_factors(p, q)) == 1:
        halves = (wp @ (lp - middle[0]) + wq @ (q.log_density(y) - middle[1])) / 2
        numbers.append((reductions.jensen_shannon(p, q), halves))
        sticks = [wp @ np.maximum(0.0, -np.expm1(e + lq - lp)) for e in (0.05, 0.3)]
        check_encloses(reductions.hockey_stick_divergence(p, q, [0.05, 0.3]), sticks, slack=0.02)
    for estimate, truth in numbers:
        check_encloses(estimate, truth, slack=room / abs(truth))


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
