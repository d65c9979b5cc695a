"""Best guesses from a set: the likeliest secret in it, or the likeliest of all.

Notation: ``bits``; secrets in decreasing order of their prior, rho_i = pi_i / pi_1, P_i the chance under the reference
that the first secret in the set is i. The best guess is right with probability E_0 max_d pi_d c_d, which is pi_1 where
no release changes it; what it gains, in units of pi_1, is the sum over i > 1 of P_i (a rho_i - b)^+.
"""

# bounds: tested by enclosures/test_sets_notions - rounding of sums over guesses

from __future__ import annotations

import math

import numpy as np

from ...._values import FloatArray
from ..arguments import UNIT, Reading
from .bits import Bits

__all__ = ["best_guess", "maximal"]

_METHOD = "secrets in order of their prior"


def best_guess(bits: Bits) -> tuple[Reading, Reading, Reading]:
    """Chance of the best guess after the release and before it, and the log of their ratio."""
    value = bits.value
    share = value / value[0]
    log = np.where(share < 0.5, np.log(share), np.log1p(-np.minimum((value[0] - value) / value[0], 0.5)))
    level = bits.epsilon + log  # log(a rho / b), right to 16 u epsilon where it is positive
    near = level < 1.0
    gains = np.where(near, bits.low * np.expm1(np.clip(level, 0.0, 1.0)), bits.high * share - bits.low)
    doubt = 16 * UNIT * np.minimum(bits.epsilon, 1e3)
    noise = np.where(near & (level > -2 * doubt), bits.high * share * doubt, 0.0)
    first, error = _first(bits)
    gain = math.fsum((first * gains).tolist())
    unsure = math.fsum((first * (gains * (error + 2 * bits.blur + 32 * UNIT) + noise)).tolist())
    least, most = math.log1p(max(0.0, gain - unsure)), math.log1p(gain + unsure)
    before = float(value[0]) / bits.total
    slack = 16 * UNIT
    after = before * (1 + gain)
    return (
        Reading(after, before * math.exp(least) * (1 - slack), min(1.0, before * math.exp(most) * (1 + slack)),
                "exact", _METHOD),
        Reading(before, before * (1 - slack), min(1.0, before * (1 + slack)), "exact", _METHOD),
        Reading(math.log1p(gain), least * (1 - slack), most * (1 + slack), "exact", _METHOD),
    )  # fmt: skip


def maximal(bits: Bits, support: bool) -> Reading:
    """Log of the sum of the largest likelihoods, over all secrets or those with prior."""
    among = float(bits.counts.sum()) if support else float(bits.secrets)
    if bits.size is None:
        some = -math.expm1((among - 1) * _miss(bits)) * bits.outside
        error = 8 * UNIT
    else:  # some secret of them in the set, less the chance of a given one
        others = np.arange(1.0, min(among, bits.secrets - bits.size + 1.0))
        missed = math.fsum(np.log1p(-bits.size / (bits.secrets - others)).tolist()) if among <= (
            bits.secrets - bits.size) else -math.inf
        some = bits.outside * -math.expm1(missed)
        error = 16 * UNIT
    relative = error + 4 * bits.blur + 32 * UNIT
    value = math.log1p(bits.rise * some)
    return Reading(value, value * (1 - relative), value * (1 + relative), "exact", _METHOD)


def _first(bits: Bits) -> tuple[FloatArray, FloatArray]:
    """Chance that the first secret in the set is of each atom, the very first secret left out; relative error."""
    counts = bits.counts.copy()
    passed = np.concatenate([[0.0], np.cumsum(counts)])
    if bits.size is None:
        miss = _miss(bits)
        start = np.maximum(passed[:-1], 1.0)
        with np.errstate(under="ignore"):
            found = np.exp(start * miss) * -np.expm1((passed[1:] - start) * miss)
        return found, 4 * bits.blur + 16 * UNIT * (2 + np.minimum(start * -miss, 1e4))
    k, s = bits.secrets, bits.size
    places = np.arange(k)
    with np.errstate(divide="ignore"):
        missed = np.concatenate([[0.0], np.cumsum(np.log1p(-np.minimum(1.0, s / (k - places))))])[:-1]
        each = np.exp(missed) * np.minimum(1.0, s / (k - places))
    each[k - s + 1 :] = 0.0
    each[0] = 0.0
    held = int(passed[-1])
    found = np.add.reduceat(each[:held], passed[:-1].astype(np.int64))
    return found, 8 * UNIT * (2 * k + 4) * np.ones(found.size)


def _miss(bits: Bits) -> float:
    """Log of the chance that a secret is not in the set."""
    return math.log1p(-bits.inside) if bits.inside < 0.5 else math.log(bits.outside)
