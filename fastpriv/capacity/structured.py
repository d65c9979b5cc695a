"""Mutual information of channels of known structure, from classes of equivalent releases, without writing them out.

Notation: class c of equivalent releases has probability W_c, its groups of secrets mass g_h and y_h = ln(posterior /
prior).

If some permutation of the releases undoes any transposition of two secrets (randomised response, unary encoding, subset
selection), all rows have the same divergence from their mean: the uniform input is optimal, and its information

    I = sum_c W_c sum_h g_h psi(y_h),   psi(y) = e^y (e^-y - 1 + y) >= 0,

is the capacity: both sides of the certificate are the same number, and no term cancels another. Capacities of
independent channels add up; equal rows count once. Roundings: theorems 7.21 and 7.22 of docs/proofs/finite_capacity.md.
"""

# bounds: proved - docs/proofs/finite_capacity.md, 7.22: rounding of the sum over classes, of their shared error, and
#    underflow

from __future__ import annotations

import math

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray, exp_excess
from ..channels import AnyChannel, TypeClasses
from ..mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding
from ..mechanisms.set_valued import log_expit

# bound: proved - docs/proofs/finite_capacity.md, 7.21: error of log ratios in classes of few groups, per unit of tilt
_RATIO_ERROR = 1e-14
FSUM_LIMIT = 2**16  # terms up to which a sum is taken by math.fsum, which rounds once
# bound: proved - a term takes part in at most 19 + log2(n / 128) additions, in blocks of 128 and halves of halves
LONG_SUM_ERROR = 64 * UNIT_ROUNDOFF
_FEW_GROUPS = 8  # groups of a class up to which log ratios are summed over pairs


def is_symmetric(channel: AnyChannel) -> bool:
    """Whether some permutation of the releases undoes any transposition of two secrets."""
    return isinstance(channel, (RandomizedResponse, UnaryEncoding, SubsetSelection))


def shared_error(channel: AnyChannel) -> float:
    """Relative error that the probabilities of all classes of a channel share."""
    if not (isinstance(channel, UnaryEncoding) and math.isfinite(channel.logit_q)):
        return 0.0
    spread = log_expit(channel.logit_q) + log_expit(-channel.logit_q)  # log of q (1 - q)
    return 32 * UNIT_ROUNDOFF * (1.0 - spread) * (1.0 + math.sqrt(channel.k * math.exp(spread)))


def information(profiles: TypeClasses, *, shared_error: float = 0.0, gap: float = 0.0) -> tuple[float, float, float]:
    """Mutual information under the prior of the profiles, with its bounds.

    ``shared_error`` is the relative error that all classes share, ``gap`` the largest |row sum - 1|.
    """
    log_evidence, y = profiles.log_evidence, profiles.log_ratio
    log_weight = profiles.log_total + log_evidence
    live = (profiles.log_mass > -np.inf) & (log_weight > -np.inf)[profiles.classes]
    classes, y, log_mass = profiles.classes[live], y[live], profiles.log_mass[live]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mass = np.exp(log_mass + log_weight[classes])
        joint = np.exp(log_mass + profiles.log_total[classes] + profiles.log_relative[live])  # e^y mass
        small = np.abs(y) < 0.5
        inner = np.where(small, y, 0.0)
        falling = mass * (1.0 + np.where(np.isneginf(y), 0.0, np.exp(y) * (y - 1.0)))
        rising = joint * (y + np.expm1(-y))
        terms = np.where(small, joint * exp_excess(-inner), np.where(y < 0, falling, rising))
        size = np.where(np.isfinite(y), np.abs(y), 0.0)
        sensitivity = joint * np.where(y > 1.0, 1.0, 1.7 * size)
    ratio_rounding, evidence_rounding, mixed_tilt = profiles.roundings()
    evidence_error = evidence_rounding * np.abs(np.where(np.isfinite(log_evidence), log_evidence, 0.0))
    class_error = np.where(np.diff(profiles.starts) > _FEW_GROUPS, evidence_error, _RATIO_ERROR * mixed_tilt)
    ratio_error = ratio_rounding * size + class_error[classes] + 4 * profiles.error
    shared_error += 2 * abs(math.fsum(np.exp(log_weight)) - 1.0) if profiles.omitted_mass == 0 else 0.0
    logs = np.stack([profiles.log_total[classes], log_mass, profiles.log_relative[live]])
    exponent = np.sum(np.abs(logs), axis=0, where=np.isfinite(logs))
    value = accurate_sum(terms)
    relative = 16 * UNIT_ROUNDOFF * (10 + exponent) + shared_error + evidence_error[classes] * (y < -0.5)
    error = accurate_sum(terms * relative) + 1.1 * accurate_sum(sensitivity * ratio_error)
    error += LONG_SUM_ERROR * (value + error) if terms.size > FSUM_LIMIT else 0.0
    error += 2.2 * profiles.gap * value + 1.01 * gap * (value + math.sqrt(2.01 * value) + gap)
    underflow = 1e-300 if value > 0 or np.any(y != 0) else 0.0
    unlisted = 0.0
    if profiles.omitted_mass:
        spread = float(np.max(profiles.log_relative.max() - profiles.log_relative, initial=0.0))
        unlisted = profiles.omitted_mass * (1.0 + spread)
    return value, max(0.0, value - error - underflow), value + error + underflow + unlisted


def accurate_sum(terms: FloatArray) -> float:
    """The sum of terms of at least 0: rounded once, or right to ``LONG_SUM_ERROR`` for more than ``FSUM_LIMIT``."""
    return math.fsum(terms.tolist()) if terms.size <= FSUM_LIMIT else float(np.sum(terms))
