"""Bounds of what both passes over a dense likelihood compute.

Notation: u = 2^-53; t, y, pi, Z as in ``streams``; S = sum of e^(t - top), m = E(top - t) and H the entropy, under the
posterior; q = sqrt(2 KL) + KL, which E|y| does not exceed: for y < 0 the sum of post |y| is at most that of pi - post,
and Pinsker. All bounds count the roundings of each term, and those of the sums: 32 additions in a lane, 16 from lanes
to a tile, and none from there on, where sums are pairs of doubles.

First pass. t is off by u (1 + 4 |t| + 2 |most - shift|) at most, by nothing under a uniform prior; e^(t - top) then by
a factor of 1 + u (A + B |t - top|), S by u (A + 40) (1 - ties/S) + u B m, and the entropy log S + m by as much, and by
the errors of m, for which E (t - top)^2 <= H min(690, 2 log n + 4 log^2 n / (n H)) serves.

Second pass. w e^y is off by a factor of 1 + u (3.2 |y| + 6), the excess e = sum w (e^y - 1), hence the corrected log Z,
by 70 u q. Terms of KL are off by u (460 + 4 y) times themselves and those of JS by u (370 + 8 y): the largest factors
stand at |y| = 1/2, where series give way to logarithms; there the first order of an error of y is counted. KL follows
from its sum and e; the sum for JS is too large by e^2/8, and by at most e JS + e^2 q.

A prior that misses 1 by g is a relative slip of the whole vector (``_validate``): the posterior does not see it. The
log Z and y of the prior as it was given are off by g at most, KL as a divergence of measures by g^2, JS by g JS + g^2.
Likelihoods that are no logarithms cost 8 u |l| more in each l.
"""

# bounds: proved - counted at the head of the file, given the ulps of exp and log in csrc/fp_elementary.h, which
#    are tested

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...estimate import Estimate
from .passes import Pair

__all__ = ["Evidence", "evidence", "numbers"]

# bound: proved - half a unit in the last place of a double, IEEE 754
_U = 2.0**-53
_LN2 = math.log(2.0)
_METHOD = "one sum over all secrets"


class Evidence(NamedTuple):
    """The first pass in few numbers."""

    high: float  # log evidence, in two parts
    low: float
    sum: float  # S
    weight: float  # the prior where it is uniform, else what it is multiplied by
    gap: float  # of the prior's sum
    size: int
    log_size: float


def evidence(row: Any, size: int, pair: Pair) -> Evidence:
    """What the second pass needs of the sums of the first one."""
    top, ties, mass_high, mass_low, rest = row[0], row[1], row[7], row[8], row[9] + row[10]
    total, log_size = ties + rest, math.log(size)
    log_total = math.log(ties) + math.log1p(rest / ties)
    if pair.prior is None:
        parts, weight, gap = [top, log_total, -log_size], 1.0 / size, 0.0
    else:
        over = (mass_high - 1.0) + mass_low
        rounding = 2.0**-50 if pair.log_prior else 2.0**-52 * abs(over)
        parts, weight = [pair.shift, top, log_total, -math.log1p(over)], 1.0 / (1.0 + over)
        gap = abs(over) + rounding
    high = math.fsum(parts)
    return Evidence(high, math.fsum([*parts, -high]), total, weight, gap, size, log_size)


def numbers(row: Any, second: tuple[float, ...] | None, found: Evidence, pair: Pair) -> dict[str, Any]:
    """All estimates of a ``Posterior`` that has one likelihood a secret."""
    top, ties, most, least, rest = row[0], row[1], row[2], row[3], row[9] + row[10]
    uniform, gap, total = pair.prior is None, found.gap, found.sum
    plain = 0.0 if pair.log else 8.0  # roundings of each l, in units of u |l|
    away = abs(top) if uniform else abs(top) + abs(most - pair.shift)
    a = 6.0 + (0.0 if uniform else 4.0 * away) + 2.0 * plain * (away + abs(pair.shift))
    b = (2.2 if uniform else 6.2) + plain
    mean, share = -(row[11] + row[12]) / total, rest / total
    entropy = math.log(ties) + math.log1p(rest / ties) + mean
    spread = entropy * 690.0
    if entropy > 0.0:
        spread = min(spread, 2.0 * found.log_size * entropy + 4.0 * found.log_size**2 / found.size)
    sum_error = _U * ((a + 40.0) * share + b * mean)
    entropy_error = _U * (
        (2.0 * a + 44.0) * share + (a + 44.0 + 2.0 * b + (a + 40.0) * share) * mean + 2.0 * b * spread + entropy
    )
    tiny = 0.0 if ties == found.size else 1e-280  # terms below e^-690 are left out
    ceiling = found.log_size * (1.0 + 4.0 * _U)
    kl, js, correction = None, None, 0.0
    evidence_error = sum_error + _U * (60.0 + a + found.log_size)
    if second is not None:
        correction = math.log1p(second[0] + second[1])
        kl, js, evidence_error = _divergences(second, found, pair, most, entropy, plain)
    elif uniform:
        kl = _nats(found.log_size - entropy, entropy_error + tiny + _U * 4.0 * found.log_size, 0.0, ceiling)
    log_evidence = math.fsum([found.high, found.low, correction])
    ratio_error = evidence_error + gap
    up, down = (_ratio(end, found, correction, ratio_error, plain) for end in (most, least))
    one = 1.0 / total
    return {
        "log_evidence": _nats(log_evidence, ratio_error + 2.0 * _U * abs(log_evidence)),
        "entropy": _nats(entropy, entropy_error + tiny, 0.0, ceiling),
        "kl": kl, "js": js, "max_log_ratio": up, "min_log_ratio": down,
        "vulnerability": _estimate(one, one * (sum_error + 4.0 * _U) + tiny, 0.0, 1.0, "probability"),
    }  # fmt: skip


def _divergences(
    second: tuple[float, ...], found: Evidence, pair: Pair, most: float, entropy: float, plain: float
) -> tuple[Estimate, Estimate, float]:
    """KL, JS, and the error of the corrected log evidence, without the gap of the prior."""
    excess, divergence, js = second[0] + second[1], second[2] + second[3], second[4] + second[5]
    reach = max(most - found.high - found.low, 0.0)
    lost = -0.5 * excess**2 * (1.0 - excess / 3.0)  # e - (1 + e) log(1 + e)
    kl = max((divergence + lost) / (1.0 + excess), 0.0)
    size = kl + math.sqrt(2.0 * kl)  # at least E|y|
    moved = plain * (abs(found.high) + max(reach, 1.0)) * size  # by the roundings of each l
    logs, of_prior = 0.0, 0.0
    if pair.log_prior:
        logs, of_prior = min(770.0 * size, 1.2 * (entropy + size) + 1.1 * found.log_size + 10.0), 764.0
    slip = _U * (70.0 * size + logs + plain * (abs(found.high) + size))  # of the excess
    evidence_error, off = slip + _U, abs(excess)
    kl_error = _U * ((460.0 + 4.0 * reach + of_prior) * divergence + moved) + (kl + off + slip) * slip
    js_error = _U * ((370.0 + 8.0 * reach + of_prior) * js + moved) + js * off + off**2 * size + (off + slip) * slip
    js = max(js - excess**2 / 8.0, 0.0)
    gap = found.gap
    return (
        _nats(kl, kl_error + gap * gap, 0.0, math.inf),
        _nats(js, js_error + 1.1 * gap * js + gap * gap, 0.0, math.nextafter(_LN2, 1.0)),
        evidence_error,
    )


def _ratio(end: float, found: Evidence, correction: float, error: float, plain: float) -> Estimate:
    value = end if math.isinf(end) else math.fsum([end, -found.high, -found.low, -correction])
    return _nats(value, 0.0 if math.isinf(end) else error + _U * (2.0 * abs(value) + plain * abs(end)))


def _nats(value: float, error: float, least: float = -math.inf, most: float = math.inf) -> Estimate:
    return _estimate(value, error, least, most, "nats")


def _estimate(value: float, error: float, least: float, most: float, unit: Any) -> Estimate:
    value = min(max(value, least), most)
    lower, upper = (value, value) if error == 0.0 else (
        max(math.nextafter(value - error, -math.inf), least), min(math.nextafter(value + error, math.inf), most)
    )
    return Estimate(value, lower, upper, kind="exact", unit=unit, method=_METHOD)
