"""Quantities of a channel under a prior, by name, each by the cheapest method that the channel allows.

The methods, in this order: sums over the factors of a product; closed forms of a family; classes of equal releases
(``type_class_quantities``); integrals for channels that release sets (``set_channels``); two passes through the rows
(``dense_quantities``).
"""

# bounds: tested by enclosures/test_channel_notions - rounding where a logarithm or a difference of a bracket is taken

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable
from typing import Any

from ...base.estimate import Kind, Unit
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...capacity import structured
from ...channels import AnyChannel, Channel, DefaultChannel
from . import dense_quantities as dense
from . import type_class_quantities as type_classes
from .channel_with_prior import (
    Bracket,
    ChannelWithPrior,
    rows_are_enumerable,
    with_distinct_rows,
)
from .dense_quantities import RowBlocks
from .set_channels.mutual_information import mutual_information as set_mutual_information
from .set_channels.parameters import set_parameters
from .set_channels.vulnerability import best_guess
from .set_channels.vulnerability import maximal_leakage as set_maximal_leakage
from .sharded_rows import ShardedRowBlocks, is_sharded

__all__ = ["UNITS", "brackets", "log_ratio_bounds", "set_quantities"]

# Every quantity and its unit. ``ldp_epsilon`` compares all secrets, all others those of positive prior probability.
UNITS: dict[str, Unit] = {
    "ldp_epsilon": "nats", "ldp_on_support": "nats", "xi_plus": "nats", "xi_minus": "nats", "cd_lmip": "nats",
    "pointwise_lmip": "nats", "bayes_vulnerability": "probability", "prior_vulnerability": "probability",
    "min_entropy_leakage": "nats", "maximal_leakage": "nats",
}  # fmt: skip
# Quantities that the extreme log ratios determine.
_LOG_RATIOS = ("ldp_epsilon", "ldp_on_support", "xi_plus", "xi_minus")
# Quantities that the Bayes vulnerability determines.
_BEST_GUESS = ("bayes_vulnerability", "prior_vulnerability", "min_entropy_leakage")
_MULTIPLICATIVE = ("bayes_vulnerability", "prior_vulnerability")  # of a product, their logarithms add up; all else adds


def brackets(
    model: ChannelWithPrior, names: Iterable[str], *, n_jobs: int | None = None,
    progress: Progress = None, omit_unavailable: bool = False,
) -> dict[str, Bracket]:  # fmt: skip
    """Brackets of the named quantities.

    A quantity without a closed form, of a channel too large to be enumerated, is a DomainError, or is left out with
    ``omit_unavailable``.
    """
    names = tuple(names)
    channel, prior = model
    if is_sharded(channel):
        with ShardedRowBlocks(model, n_jobs, progress) as rows:
            return _from_rows(rows, names)
    if (plain := dense.plain_brackets(model, names, progress)) is not None:
        return plain
    if model.factors is not None:
        return _sums_over_factors(model.factors, names, n_jobs, progress, omit_unavailable)
    result: dict[str, Bracket] = {}
    if not isinstance(channel, (Channel, DefaultChannel)):
        if not set(names).isdisjoint(_LOG_RATIOS):
            result |= log_ratio_bounds(model)
        if not set(names) <= set(result):
            result |= _from_type_classes(model, names)
    elif isinstance(channel, DefaultChannel) and not set(names).isdisjoint(_BEST_GUESS):
        result |= _best_guess(type_classes.vulnerability(channel._type_classes(prior), channel.mass_gap))
    missing = [name for name in names if name not in result]
    if missing and not (omit_unavailable and not isinstance(channel, DefaultChannel)
                        and not rows_are_enumerable(channel)):  # fmt: skip
        result = _from_rows(RowBlocks(with_distinct_rows(model), n_jobs, progress), missing) | result
    return {name: result[name] for name in names if name in result}


def _from_rows(rows: RowBlocks, names: Collection[str]) -> dict[str, Bracket]:
    first = dense.column_statistics(rows)
    result = dense.column_brackets(rows, first, names)
    if {"cd_lmip", "pointwise_lmip"} & set(names):
        result |= dense.row_brackets(rows, dense.merged_row_statistics(rows, first))
    return result


def log_ratio_bounds(model: ChannelWithPrior) -> dict[str, Bracket]:
    """LDP and both sides of MBP, if the family has them in closed form; else nothing."""
    extremes = model.channel._extreme_log_ratios(model.prior)
    return {} if extremes is None else type_classes.log_ratio_bounds(extremes, model.channel, model.gap)


def _from_type_classes(model: ChannelWithPrior, names: tuple[str, ...]) -> dict[str, Bracket]:
    classes = type_classes.type_classes(model)
    if classes is None:
        return set_quantities(model, names)
    result = _best_guess(type_classes.vulnerability(classes, model.channel.mass_gap))
    result["cd_lmip"] = type_classes.mutual_information(classes, model.channel)
    result["maximal_leakage"] = type_classes.maximal_leakage(classes, model.channel.mass_gap)
    if model.prior is None and structured.is_symmetric(model.channel):  # all divergences are equal
        result["pointwise_lmip"] = result["cd_lmip"]
    return result


def _best_guess(brackets: tuple[Bracket, Bracket, Bracket]) -> dict[str, Bracket]:
    """By name, from those of type classes, the second of which is a logarithm."""
    after, log_before, leakage = brackets
    return dict(zip(_BEST_GUESS, (after, _exponential(log_before), leakage), strict=True))


def set_quantities(model: ChannelWithPrior, names: Iterable[str]) -> dict[str, Bracket]:
    """For channels that release sets, under priors of so many distinct probabilities that type classes are too many."""
    wanted = set(names)
    if not wanted & {"cd_lmip", "maximal_leakage", *_BEST_GUESS}:
        return {}
    parameters = set_parameters(model)
    if parameters is None:
        return {}
    result: dict[str, Bracket] = {}
    if "cd_lmip" in wanted:
        result["cd_lmip"] = set_mutual_information(parameters)
    if not wanted.isdisjoint(_BEST_GUESS):
        result |= dict(zip(_BEST_GUESS, best_guess(parameters), strict=True))
    if "maximal_leakage" in wanted:
        result["maximal_leakage"] = set_maximal_leakage(parameters)
    return result


def _sums_over_factors(
    factors: list[tuple[AnyChannel, int, Any]], names: tuple[str, ...], n_jobs: int | None,
    progress: Progress, omit_unavailable: bool,
) -> dict[str, Bracket]:  # fmt: skip
    """Of a product under a product prior: the sum over its factors, of logarithms for what is multiplicative."""
    parts = [
        (power, brackets(ChannelWithPrior(factor, prior), names, n_jobs=n_jobs, progress=progress,
                         omit_unavailable=omit_unavailable))
        for factor, power, prior in factors
    ]  # fmt: skip
    result = {}
    for name in names:
        if any(name not in of_factor for _, of_factor in parts):
            continue
        log = name in _MULTIPLICATIVE
        terms = [(power, _logarithm(of_factor[name]) if log else of_factor[name]) for power, of_factor in parts]
        kind: Kind = "certified" if any(term.kind == "certified" for _, term in terms) else "exact"
        value, lower, upper = (
            _sum_or_infinity([power * float(getattr(term, end)) for power, term in terms])
            for end in ("value", "lower", "upper")
        )
        if lower == math.inf and not any(term.lower == math.inf for _, term in terms):
            lower = sys.float_info.max  # the sum is finite, but too large for a double
        if value < math.inf:
            lower, upper = lower - 4 * U * abs(lower), upper + 4 * U * abs(upper)
        total = Bracket(value, lower, upper, kind, "sum over factors")
        result[name] = _exponential(total) if log else total
    return result


def _sum_or_infinity(terms: list[float]) -> float:
    try:
        return math.inf if math.inf in terms else math.fsum(terms)
    except OverflowError:
        return math.inf


def _logarithm(bracket: Bracket) -> Bracket:
    value, lower, upper = (math.log(x) if x > 0 else -math.inf for x in bracket[:3])
    return Bracket(value, lower - 2 * U * abs(lower), upper + 2 * U * abs(upper), bracket.kind, bracket.method)


def _exponential(bracket: Bracket) -> Bracket:
    value, lower, upper = (math.exp(x) for x in bracket[:3])
    return Bracket(value, lower * (1 - 4 * U), min(1.0, upper * (1 + 4 * U)), bracket.kind, bracket.method)
