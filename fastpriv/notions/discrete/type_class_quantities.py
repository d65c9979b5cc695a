"""Quantities of channels that are known by classes of equal releases and groups of equal secrets: one sum over groups.

Notation: class c has probability W_c (of all its releases), and groups of prior mass g_h. Logarithms of sums of
exponentials are right to 64 u (8 + the sizes of the logarithms, weighted), and to what binomial probabilities of
classes are. Mutual information: ``capacity/structured.py``.
"""

# bounds: proved - docs/proofs/notions.md, 14.1 to 14.3: rounding of logarithms of masses, and of binomial ones

from __future__ import annotations

import math

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.numerics import FloatArray
from ...capacity import structured
from ...channels import AnyChannel, SparseChannel, TypeClasses
from ...mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding
from .channel_with_prior import Bracket, ChannelWithPrior, QuantityRequest

_LOG_RATIOS = ("ldp_epsilon", "ldp_on_support", "xi_plus", "xi_minus")  # determined by the extreme log ratios
BEST_GUESS = ("bayes_vulnerability", "prior_vulnerability", "min_entropy_leakage")  # by the Bayes vulnerability
_METHOD = "classes of like releases"  # ``method`` of a Bracket


def type_classes(model: ChannelWithPrior) -> TypeClasses | None:
    """Classes of equal releases, for the families that give them without visiting each cell; else None."""
    channel = model.channel
    sparse = isinstance(channel, SparseChannel) and len(channel.background) == 1
    if sparse or isinstance(channel, (RandomizedResponse, UnaryEncoding, SubsetSelection)):
        return channel._type_classes(model.prior)
    return None


def log_ratio_bounds(request: QuantityRequest) -> dict[str, Bracket]:
    """LDP over all secrets and over the support, and both sides of MBP, if the family has them in closed form."""
    channel, prior = request.model
    extremes = None if set(request.names).isdisjoint(_LOG_RATIOS) else channel._extreme_log_ratios(prior)
    result: dict[str, Bracket] = {}
    if extremes is None:
        return result
    for name in _LOG_RATIOS:
        value = getattr(extremes, name)
        error = value * extremes.rounding + extremes.error + 2.1 * channel.mass_gap
        error += 1.1 * request.model.gap if name in ("xi_plus", "xi_minus") else 0.0
        if value in (0.0, math.inf) or not math.isfinite(error):
            error = extremes.error if value == 0.0 else 0.0  # equal rows stay equal, whatever their sums are
        result[name] = Bracket(value, max(0.0, value - error), value + error, "exact", "closed form")
    return result


def sums_over_classes(request: QuantityRequest) -> dict[str, Bracket]:
    """Best guess, information and leakage of channels that are known by classes of equal releases."""
    channel, prior = request.model
    classes = type_classes(request.model)
    if classes is None:
        return {}
    bounds = structured.information(classes, shared_error=structured.shared_error(channel), gap=channel.mass_gap)
    result = _best_guess(classes, channel)
    result["cd_lmip"] = Bracket(*bounds, "certified", _METHOD)
    result["maximal_leakage"] = _maximal_leakage(classes, channel)
    if prior is None and structured.is_symmetric(channel):  # all divergences are equal
        result["pointwise_lmip"] = result["cd_lmip"]
    return result


def best_guess(request: QuantityRequest) -> dict[str, Bracket]:
    """Best guess behind a channel whose secrets have one default row but for a few."""
    channel, prior = request.model
    classes = None if set(request.names).isdisjoint(BEST_GUESS) else channel._type_classes(prior)
    return {} if classes is None else _best_guess(classes, channel)


def _binomial_error(channel: AnyChannel, classes: TypeClasses) -> float:
    """Relative error of sums over classes of sets, whose probabilities are binomial or quotients of such."""
    rounding = 380 * U * (1 + int(np.diff(classes.starts).max()))
    if isinstance(channel, UnaryEncoding):
        return rounding + 4 * structured.shared_error(channel)
    if isinstance(channel, SubsetSelection) and classes.log_total.size > 1:
        return rounding + 4 * U * min(channel.size, channel.k - channel.size)
    return 0.0


def _best_guess(classes: TypeClasses, channel: AnyChannel) -> dict[str, Bracket]:
    """Chance of the best guess after the release and before it, and the log of their ratio."""
    positive = classes.log_mass > -np.inf
    before = float(classes.log_largest[positive].max())
    with np.errstate(invalid="ignore"):
        log_gains = np.where(positive, classes.log_relative + (classes.log_largest - before), -np.inf)
    best = np.maximum.reduceat(log_gains, classes.starts[:-1]) + classes.log_total
    value, error = _log_sum(best)
    before_error = 8 * U * (8 + abs(before)) + 1.1 * classes.gap
    error += before_error + 4 * classes.error + 2.1 * channel.mass_gap + classes.omitted_mass
    error += _binomial_error(channel, classes)
    after, leakage = math.exp(before + value), max(0.0, value)
    after_bounds = after * (1 - error), min(1.0, after * (1 + error) + classes.omitted_mass)
    log_before = Bracket(before, before - before_error, before + before_error, "exact", _METHOD)
    return {
        "bayes_vulnerability": Bracket(after, *after_bounds, "exact", _METHOD),
        "prior_vulnerability": log_before.exp(),
        "min_entropy_leakage": Bracket(leakage, max(0.0, value - error), leakage + error, "exact", _METHOD),
    }


def _maximal_leakage(classes: TypeClasses, channel: AnyChannel) -> Bracket:
    """Logarithm of the sum of the largest likelihoods of secrets of positive prior probability."""
    likelihoods = np.where(classes.log_mass > -np.inf, classes.log_relative, -np.inf)
    value, error = _log_sum(np.maximum.reduceat(likelihoods, classes.starts[:-1]) + classes.log_total)
    error += 4 * classes.error + 2.1 * channel.mass_gap + _binomial_error(channel, classes)
    if classes.omitted_mass:
        error += classes.omitted_mass * math.exp(min(700.0, float(-classes.log_relative.min())))
    leakage = max(0.0, value)
    return Bracket(leakage, max(0.0, value - error), leakage + error, "exact", _METHOD)


def chi_square_information(classes: TypeClasses, channel: AnyChannel) -> tuple[float, float]:
    """sum_w q sum_d pi (r - 1)^2 and its relative error, for a symmetric channel and the uniform prior."""
    log_weight, y = classes.log_weight, classes.log_ratio
    positive = (classes.log_mass > -np.inf) & (log_weight > -np.inf)[classes.classes] & (y > -np.inf)
    joint = classes.log_mass + log_weight[classes.classes]
    with np.errstate(over="ignore"):
        change = np.where(y > -np.inf, np.expm1(y), -1.0)
        large = np.exp(joint + 2 * np.log(np.maximum(np.abs(change), 1e-300)))
        terms = np.where(np.abs(y) < 1, np.exp(joint) * change**2, large)
    terms = np.where(positive | (y == -np.inf), terms, 0.0)
    size = np.where(np.isfinite(joint), np.abs(joint), 0.0) + np.where(np.isfinite(y), np.abs(y), 0.0)
    total = structured.accurate_sum(terms)
    error = structured.accurate_sum(terms * (160 * U * (8 + size) + 4e-14)) / total if total > 0 else 0.0
    error += 2 * structured.shared_error(channel)
    return total, error + (2 * structured.LONG_SUM_ERROR if terms.size > structured.FSUM_LIMIT else 0.0)


def _log_sum(logs: FloatArray) -> tuple[float, float]:
    """Logarithm of the sum of exponentials, and a bound on its error."""
    finite = logs[logs > -np.inf]
    if finite.size == 1:  # no more than its own rounding
        return float(finite[0]), 32 * U * abs(float(finite[0]))
    top = float(finite.max())
    terms = np.exp(finite - top)
    total = structured.accurate_sum(terms)
    size = structured.accurate_sum(terms * np.abs(finite)) / total
    summation = 2 * structured.LONG_SUM_ERROR if terms.size > structured.FSUM_LIMIT else 0.0
    return top + math.log(total), 64 * U * (8 + size + abs(top)) + summation
