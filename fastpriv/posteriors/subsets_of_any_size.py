"""Posteriors over all subsets of a small pool, of any size: what a Poisson batch may be.

Notation: n records, subsets A numbered by the sum of 2^i over their members; l(A) as of ``SubsetLikelihood``; the prior
w(A) is the product over records of o_i / (1 + o_i) for members and 1 / (1 + o_i) for others, o_i the odds of record i;
p the posterior, y = log p / w, T twice the total variation of p and w, at most min(2, sqrt(2 KL)); u = 2^-53.

The exponents of all subsets are written out, those with record k from those of the lower records, and are the input of
the two passes over a dense domain. An exponent is wrong by at most d, a log prior by at most g. Joint weights then are
wrong by factors within e^(d + g) of 1, the posterior within e^(2 (d + g)), and by the derivatives along the way

    log Z    d + g             max, min of y    d + 2 g + (d + g)       vulnerability, inclusion   relative 2 (d + g)
    H        2 (d + g) H       KL               2 (d + g) (KL + T) + g T                     JS    2.5 (d + 2 g) T

since dH = -Cov(e, log p), dKL = Cov(e, y) + (difference of two means of the error of log w), and the derivatives of JS
are covariances with log(p / m) and log(w / m), m = (p + w) / 2, whose mean sizes are at most 1.2 T.
"""

# bounds: tested by enclosures/test_subsets_of_any_size - effect of errors of exponents, at the head, to first order
#    with a factor 1.01 and 1e-280 for the rest

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate
from ..base.numerics import LOG_2_ABOVE, UNIT_ROUNDOFF, FloatArray
from ..channels.likelihoods import DenseLikelihood
from ..channels.subset_likelihoods import SubsetLikelihood
from . import dense
from .result import Options, Posterior

__all__ = ["members_of_number", "posterior", "validated_log_odds"]

_MAX_RECORDS = 24  # all subsets of so many take half a second and 0.4 GB


def posterior(likelihood: SubsetLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior from both passes over the exponents of all subsets."""
    pool = likelihood.linear.size
    name = "log_prior" if options.log_prior else "prior"
    if pool > _MAX_RECORDS:
        raise DomainError(
            f"likelihood must be of at most {_MAX_RECORDS} records for subsets of any size; got {pool}. Leave out the "
            "records that are least likely alone, or fix the size of batches."
        )
    if prior is None:
        raise DomainError(
            "prior must be given for subsets of any size; got None. Pass the odds of each record, for Poisson batches "
            "rate / (1 - rate)."
        )
    log_odds = validated_log_odds(name, prior, pool)
    size = 2**pool
    validate.memory("likelihood", 8 * 5 * size, "Leave out records that are unlikely alone.")
    normalisers = np.logaddexp(0.0, log_odds)
    sizes = np.sum(np.abs(log_odds), where=np.isfinite(log_odds)) + np.sum(normalisers) + pool
    error = UNIT_ROUNDOFF * (pool + 3) * float(sizes)  # roundings of a sum, and of logarithms three times
    log_prior = _sums_over_members(log_odds, None, -math.fsum(normalisers))
    exponents = _sums_over_members(likelihood.linear, likelihood.pairwise, 0.0)
    distribution = np.empty(size) if options.out is None else options.out
    result = dense.posterior(DenseLikelihood(exponents), log_prior, options._replace(log_prior=True, out=distribution))
    inclusion = None if not isinstance(distribution, np.ndarray) else _inclusion(distribution)
    numbers = _widened(result, likelihood, inclusion, 1.01 * likelihood.summation_error, 1.01 * error)
    return replace(
        result,
        **numbers,  # type: ignore[arg-type]
        map_index=members_of_number(int(result.map_index), pool),  # type: ignore[arg-type]
        cost={"subsets": size, "passes": 2},
    )


def _inclusion(law: FloatArray) -> FloatArray:
    """Share of the subsets with each record; sums in pairs, of halves that are folded, below 100 roundings each."""
    total, result = float(law.sum()), []
    while law.size > 1:
        half = law.size // 2
        result.append(float(law[half:].sum()) / total)
        law = law[:half] + law[half:]
    return np.array(result[::-1])


def members_of_number(number: int, pool: int) -> tuple[int, ...]:
    """The members of the subset with this number."""
    return tuple(i for i in range(pool) if number >> i & 1)


def validated_log_odds(name: str, prior: Any, pool: int) -> FloatArray:
    """Logarithms of the odds of each record, from a prior of this name."""
    remedy = f"Give {name} one number a record, the odds of its being in the batch."
    if name == "log_prior":
        log_odds = validate.vector(name, prior, "below infinity", lambda x: x < np.inf, remedy=remedy)
    else:
        odds = validate.vector(name, prior, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf), remedy=remedy)
        with np.errstate(divide="ignore"):
            log_odds = np.log(odds)
    if log_odds.size != pool:
        raise ShapeError(f"{name} must have one entry a record, {pool}; got {log_odds.size}. {remedy}")
    return log_odds


def _sums_over_members(linear: FloatArray, pairwise: FloatArray | None, start: float) -> FloatArray:
    """``start`` plus the terms of members and of pairs of them, for each subset by its number."""
    total = np.empty(2**linear.size)
    total[0] = start
    share = np.empty(2 ** (linear.size - 1))
    for k in range(linear.size):
        share[0] = linear[k]
        for j in range(k if pairwise is not None else 0):  # pairs are read above the diagonal
            np.add(share[: 2**j], pairwise[j, k], out=share[2**j : 2 ** (j + 1)])  # type: ignore[index]
        np.add(total[: 2**k], share[: 2**k] if pairwise is not None else linear[k], out=total[2**k : 2 ** (k + 1)])
    return total


def _widened(
    found: Posterior, likelihood: SubsetLikelihood, inclusion: FloatArray | None, d: float, g: float
) -> dict[str, Estimate | None]:
    """The numbers of the dense posterior, for exponents that are wrong by d and log priors that are wrong by g."""
    kl, js, pool = found.kl, found.js, likelihood.linear.size
    assert kl is not None  # since both passes have read the exponents
    assert js is not None
    factor = 1.01 * math.exp(min(2.0 * (d + g), 700.0))  # of derivatives on the way from the stored numbers to the true
    kl_most = 1.01 * float(kl.upper) + 510.0 * (d + g) ** 2 + 1e-300
    twice_tv = min(2.0, math.sqrt(2.0 * kl_most))
    constant = likelihood.constant

    def moved(
        estimate: Estimate, error: float, least: float = -math.inf, most: float = math.inf, shift: float = 0.0
    ) -> Estimate:
        value, lower, upper = (float(x) + shift for x in (estimate.value, estimate.lower, estimate.upper))
        error += (1e-280 if error else 0.0) + (4.0 * UNIT_ROUNDOFF * (abs(value) + abs(shift)) if shift else 0.0)
        return Estimate(
            min(max(value, least), most), min(max(lower - error, least), most), max(min(upper + error, most), least),
            kind="certified", unit=estimate.unit,
            method="both passes over all subsets of any size",
        )  # fmt: skip

    relative = math.expm1(min(1.01 * 2.0 * (d + g), 700.0))
    ratio = 1.01 * (2.0 * d + 3.0 * g)
    entropy_error = factor * 2.0 * (d + g) * float(found.entropy.upper)
    numbers: dict[str, Estimate | None] = {
        "log_evidence": moved(found.log_evidence, 1.01 * (d + g), shift=constant),
        "entropy": moved(found.entropy, entropy_error, 0.0),
        "kl": moved(kl, factor * (2.0 * (d + g) * (kl_most + twice_tv) + g * twice_tv), 0.0),
        "js": moved(js, factor * 2.5 * (d + 2.0 * g) * twice_tv, 0.0, LOG_2_ABOVE),
        "max_log_ratio": moved(found.max_log_ratio, ratio, 0.0),
        "min_log_ratio": moved(found.min_log_ratio, ratio, most=0.0),
        "vulnerability": moved(found.vulnerability, float(found.vulnerability.upper) * relative, 0.0, 1.0),
        "inclusion": None,
    }
    if inclusion is not None:  # (3.2 |y| + 6) u in each term where y > -690, 100 u in sums, and 1e-299 below in all
        value = np.clip(inclusion, 0.0, 1.0)
        width = value * (1.01 * relative + 2.0 * (3.2 * 690.0 + 206.0) * UNIT_ROUNDOFF) + 1e-290
        numbers["inclusion"] = Estimate(
            value, np.maximum(value - width, 0.0), np.minimum(value + width, 1.0), kind="certified", unit="probability",
            method=f"sums over the 2**{pool} subsets",
        )  # fmt: skip
    return numbers
