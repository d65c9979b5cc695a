"""What a release does to beliefs about a discrete secret behind Gaussian noise.

Notation: pi_d the prior of the point x_d, N_d the density of N(x_d, sigma^2), q = sum pi_d N_d, and
E_d = N_d / q - 1 the relative change of the belief in d on seeing a release. If d0 is the truth, the expected posterior
is A[d0, d] = pi_d integral N_d0 N_d / q, and A[d0, d] / pi_d - 1 = integral q E_d0 E_d, which cancels nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..distributions import Pmf
from ..estimate import Estimate

__all__ = ["belief_shift"]

FloatArray = NDArray[np.float64]
# nodes a standard deviation: the trapezoidal rule converges geometrically, its error squares with every doubling
_DENSITIES = (16, 32, 64, 128)
# bound: none - when doubling of the nodes ends; the answer is called heuristic
_AGREEMENT = 1e-11  # of the rules with all and with half the nodes, after which doubling ends
# bound: proved - a normal law has less than 1e-23 beyond it; below _ROUNDING
_TAIL = 10.0  # standard deviations beyond the outermost point of a block, where 1e-23 of the mass is left
_NEAR = 30.0  # points farther than this from a block overlap it by less than e^-100
_SPAN = 64.0
_ROWS = 256
# bound: tested by enclosures/test_notions - rounding of the divergence, beside the difference of two rules, which
#    estimates the other error
_ROUNDING = 1e-12
_SERIES = np.array([(-1.0) ** k * (1.0 - 2.0 ** (1 - k)) / (k * (k - 1)) for k in range(2, 22)])
_LN2 = float(np.log(2.0))


def belief_shift(prior: Pmf, sigma: float) -> Estimate:
    """Root of the Jensen-Shannon divergence between expected posterior and prior, for every true value.

    Parameters
    ----------
    prior : Pmf
        The attacker's prior over the secret, shape (n,); the release is secret + N(0, sigma^2).
    sigma : float
        Standard deviation of the noise, in the unit of the secret.

    Returns
    -------
    Estimate
        Shape (n,), between 0 and sqrt(log 2), ``kind="heuristic"``: the bounds are the difference of two trapezoidal
        rules, one with twice the nodes of the other, plus an allowance for rounding.

    Raises
    ------
    DomainError
        If ``prior`` is not a Pmf, or ``sigma`` is not positive and finite.

    Notes
    -----
    **Accuracy** about 1e-12 relative, weak and strong noise alike; ``tests/enclosures/test_notions.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.1, with the law of the release made explicit.

    Examples
    --------
    >>> from fastpriv import Pmf
    >>> from fastpriv.beliefs.gaussian import belief_shift
    >>> belief_shift(Pmf([0.0, 1.0], [0.5, 0.5]), 0.5).value
    array([0.20434..., 0.20434...])
    """
    _validate.instance("prior", prior, Pmf)
    noise = _validate.scalar("sigma", sigma, "positive and finite", lambda s: (s > 0) & (s < np.inf))
    x = (prior.values - prior.values[len(prior) // 2]) / noise
    shift, error = np.empty(len(prior)), np.empty(len(prior))
    nodes = 0
    for rows in _blocks(x):
        for density in _DENSITIES:
            fine, coarse, used = _divergences(x, prior.probabilities, rows, density)
            nodes += used
            if np.all(np.abs(fine - coarse) <= _AGREEMENT * fine):
                break
        shift[rows], error[rows] = fine, np.abs(fine - coarse) + _ROUNDING * fine
    value, lower, upper = (np.sqrt(np.clip(v, 0.0, _LN2)) for v in (shift, shift - error, shift + error))
    return Estimate(value, lower, upper, kind="heuristic", unit="1", method="trapezoidal rule", cost={"nodes": nodes})


def _blocks(x: FloatArray) -> list[slice]:
    """Runs of neighbouring points that share nodes."""
    found, start = [], 0
    while start < x.size:
        stop = min(int(np.searchsorted(x, x[start] + _SPAN, side="right")), start + _ROWS)
        found.append(slice(start, stop))
        start = stop
    return found


def _divergences(
    x: FloatArray, pi: FloatArray, rows: slice, density: int
) -> tuple[FloatArray, FloatArray, int]:
    """Jensen-Shannon divergences of the rows with the full and with half the nodes; points in units of sigma."""
    whole = x[-1] - x[0] <= _SPAN
    first, last = (x[0], x[-1]) if whole else (x[rows][0], x[rows][-1])
    near = slice(0, x.size) if whole else slice(*np.searchsorted(x, [first - _NEAR, last + _NEAR]))
    count = 2 * int(np.ceil((last - first + 2 * _TAIL) * density / 2)) + 1
    w = first - _TAIL + np.arange(count) / density
    change, log_q = _belief_changes(x[near], pi[near], w, whole)
    mass = np.exp(log_q) / (density * np.sqrt(2 * np.pi))
    own = change[:, rows.start - near.start : rows.stop - near.start]
    if not whole:  # the nodes hold the mass of N_d0 but not that of q: integral N_d0 E_d instead of q E_d0 E_d
        own = own + 1.0
    results = []
    for step in (1, 2):
        excess = (own[::step] * (step * mass[::step])[:, None]).T @ change[::step]
        inside = _jensen_shannon_terms(np.maximum(excess, -1.0)) @ pi[near]
        outside = max(0.0, 1.0 - float(pi[near].sum())) * _LN2 if near != slice(0, x.size) else 0.0
        results.append(0.5 * (inside + outside))
    return results[0], results[1], count


def _belief_changes(x: FloatArray, pi: FloatArray, w: FloatArray, whole: bool) -> tuple[FloatArray, FloatArray]:
    """N_d / q - 1 at the nodes w, shape (nodes, points), and log(q sqrt(2 pi)); ``whole``: pi is all of the prior."""
    middle = float(pi @ x / pi.sum())
    away = x - middle
    tilt = away * ((w - middle)[:, None] - 0.5 * away)  # log N_d / N_middle
    centre = -0.5 * (w - middle) ** 2
    if whole and np.abs(tilt).max() < 0.5:
        e = np.expm1(tilt)
        mean = e @ pi
        return (e - mean[:, None]) / (1.0 + mean)[:, None], centre + np.log1p(mean)
    top = tilt.max(axis=1)
    e = np.exp(tilt - top[:, None])
    mean = e @ pi
    return e / mean[:, None] - 1.0, centre + top + np.log(mean)


def _jensen_shannon_terms(e: FloatArray) -> FloatArray:
    """(1 + e) log(1 + e) - (2 + e) log(1 + e/2), the term of a ratio 1 + e; by its series near 0."""
    series = np.polynomial.polynomial.polyval(e, _SERIES) * e * e
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(e > -1.0, (1.0 + e) * np.log1p(e), 0.0) - (2.0 + e) * np.log1p(0.5 * e)
    return np.where(np.abs(e) < 0.1, series, full)
