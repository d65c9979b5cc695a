"""Do two log densities have the same integral? What draws can tell, without being deceived by heavy tails.

Notation: l = log p - log q at a draw, infinite where one of them is zero; Z_p and Z_q the integrals of what was given.
With draws of both laws, s(l) = n_p p / (n_p p + n_q q) is the chance that a draw at this point is one of P, and

    sum over draws of P of (1 - s) - sum over draws of Q of s

has mean 0 when Z_p = Z_q. Its terms lie in [0, 1], so no tail can deceive it, and where P and Q do not meet it says
nothing. With l moved by log r it is 0 at the best estimate of r = Z_p / Z_q.

With draws of one law alone the mean of the other density over its own is at most 1: less where the other law has mass
that these draws can't reach. A mean above 1 is a proof by betting (a supermartingale); one below 1 is worth a word
where the weights have a light tail.

Sources: Bennett 1976; Meng and Wong 1996, with the variance of the intercept of a logistic regression; Ville 1939 for
the bet.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import warned
from .tails import TopValues

__all__ = ["Integrals", "compared_integrals", "warned_of_integrals"]

FloatArray = NDArray[np.float64]

_DOUBT = 20.0  # a false alarm has a chance of about exp(-20)
_LIGHT = 0.3  # tail index below which a mean with a standard error is believed
_ERRORS = 8.0  # standard errors that the mean of light-tailed weights must lie below 1
_STEPS = 80
_VAGUE = 0.25  # variance of log r from which on the estimate is not worth giving


class Integrals(NamedTuple):
    """What the draws say of Z_p / Z_q.

    Attributes
    ----------
    ratio, error : float
        Estimate and standard error; nan and infinity where the draws say nothing.
    verdict : {"equal", "unequal", "out of reach"}
        "equal" unless the opposite is shown; "out of reach" for one-sided draws whose mean is below 1: the integrals
        differ, or the other law has mass where these draws never are.
    """

    ratio: float
    error: float
    verdict: str


def compared_integrals(at_p: FloatArray | None, at_q: FloatArray | None) -> Integrals:
    """Compare the integrals from l at independent draws of P, of Q, or of both.

    Parameters
    ----------
    at_p, at_q : ndarray, shape (n,), or None
        log p - log q at the draws of each law; None for a law without draws.

    Notes
    -----
    **Accuracy** ``tests/properties/test_normalisation.py`` holds estimate, error and false alarms.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.sampling.statistics.normalisation import compared_integrals
    >>> rng = np.random.default_rng(1)
    >>> at_p, at_q = 0.5 + rng.standard_normal(4000), -0.5 + rng.standard_normal(4000)
    >>> compared_integrals(at_p, at_q).verdict
    'equal'
    >>> compared_integrals(at_p + np.log(0.37), at_q + np.log(0.37))
    Integrals(ratio=0.36..., error=0.004..., verdict='unequal')
    """
    if at_p is not None and at_q is not None and len(at_p) and len(at_q):
        return _bridged(np.asarray(at_p), np.asarray(at_q))
    if at_q is not None and len(at_q):
        return _one_sided(np.asarray(at_q))
    if at_p is not None and len(at_p):
        found = _one_sided(-np.asarray(at_p))
        if math.isfinite(found.error) and found.ratio > 1e-100:
            return Integrals(1.0 / found.ratio, found.error / found.ratio**2, found.verdict)
        return found
    return Integrals(math.nan, math.inf, "equal")


def warned_of_integrals(at_p: FloatArray | None, at_q: FloatArray | None, p: str = "p", q: str = "q") -> Integrals:
    """Warn where the draws show that the log densities named ``p`` and ``q`` are not both normalised."""
    found = compared_integrals(at_p, at_q)
    size = f"{found.ratio:.3g} +- {found.error:.1g}"
    if found.verdict == "unequal":
        warned(
            f"log densities must be normalised: the integral of {p} over that of {q} is {size}, not 1. The answer is "
            "that of other laws. Subtract the logarithm of its integral from each."
        )
    elif found.verdict == "out of reach":
        drawn, other = (q, p) if at_q is not None else (p, q)
        warned(
            f"draws of {drawn} alone give the integral of {p} over that of {q} as {size}, not 1: the log densities are "
            f"not normalised, or {other} has mass where {drawn} has none. In the second case give a sampler for "
            f"{other} too, where the quantity depends on that mass."
        )
    return found


def _bridged(at_p: FloatArray, at_q: FloatArray) -> Integrals:
    shift = math.log(len(at_p) / len(at_q))

    def score(c: float) -> tuple[float, float]:
        """The sum above when l moves by -c, and the sum of s (1 - s) over all draws."""
        p, q = _chance(shift + at_p - c), _chance(shift + at_q - c)
        return float((1.0 - p).sum() - q.sum()), float((p * (1.0 - p)).sum() + (q * (1.0 - q)).sum())

    everything = np.concatenate([at_p, at_q])
    finite = everything[np.isfinite(everything)]
    if finite.size == 0:
        return Integrals(math.nan, math.inf, "equal")
    low, high = float(finite.min()) - 60.0, float(finite.max()) + 60.0
    if score(low)[0] > 0 or score(high)[0] < 0:
        return Integrals(math.nan, math.inf, "equal")
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if score(middle)[0] < 0 else (low, middle)
    best = 0.5 * (low + high)
    weight = score(best)[1]
    spread = 1.0 / weight - 1.0 / len(at_p) - 1.0 / len(at_q) if weight > 0 else math.inf
    unequal = _differs(at_p, at_q, shift)
    if spread > _VAGUE:  # where P and Q hardly meet
        excess = _one_sided(at_q).ratio, _one_sided(-at_p).ratio
        ratio = excess[0] if excess[0] > 1 else 1.0 / max(excess[1], 1.0)
        return Integrals(ratio, math.inf, "unequal") if unequal else Integrals(math.nan, math.inf, "equal")
    ratio = math.exp(min(best, 700.0))
    return Integrals(ratio, ratio * math.sqrt(max(spread, 0.0)), "unequal" if unequal else "equal")


def _differs(at_p: FloatArray, at_q: FloatArray, shift: float) -> bool:
    """Whether the sum above is too far from 0 for equal integrals: Bernstein's inequality with the variance that equal
    integrals give at most, or with the one that is seen (Maurer and Pontil 2009)."""
    p, q = _chance(shift + at_p), _chance(shift + at_q)
    total = abs(float((1.0 - p).sum() - q.sum()))
    most = float((p * (1.0 - p)).sum() + (q * (1.0 - q)).sum())
    seen = len(p) * float(p.var()) + len(q) * float(q.var())
    known = math.sqrt(2.0 * most * _DOUBT) + _DOUBT / 3.0
    found = math.sqrt(2.0 * seen * _DOUBT) + _DOUBT * 7.0 / 3.0
    return total > min(known, found)


def _one_sided(log_weights: FloatArray) -> Integrals:
    with np.errstate(over="ignore"):
        weights = np.exp(log_weights)
    n = len(weights)
    mean = float(weights.mean())
    error = float(weights.std()) / math.sqrt(n) if math.isfinite(mean) else math.inf
    stakes = 0.5 ** np.arange(1, 25)
    won = max(float(np.log1p(stake * (weights - 1.0)).sum()) for stake in stakes) - math.log(len(stakes))
    if won > _DOUBT:
        return Integrals(mean, error, "unequal")
    if 1.0 - mean > _ERRORS * error:
        top = TopValues()
        top.update(weights)
        if float(top.index()[0]) < _LIGHT:
            return Integrals(mean, error, "out of reach")
    return Integrals(mean, error, "equal")


def _chance(logit: FloatArray) -> FloatArray:
    return 0.5 + 0.5 * np.tanh(0.5 * logit)
