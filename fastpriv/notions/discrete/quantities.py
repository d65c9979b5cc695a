"""Quantities of a channel under a prior, by name: a table of what computes them for each kind of channel.

Evaluators, in the order in which they are tried: sums over the factors of a product; closed forms of a family; classes
of equal releases (``type_class_quantities``); integrals for channels that release sets (``set_channels``); one call of
a kernel, or two passes through the rows (``dense_quantities``).

Relations that the quantities of one channel satisfy are checked before brackets are handed out. No relation is used by
the evaluators. With I the mutual information, H the entropy of the prior, L the maximal leakage, pi the prior:

    0 <= I <= max_x KL(P_x || P_M) <= xi_plus <= epsilon of LDP on the support <= epsilon of LDP,
    xi_minus <= epsilon of LDP on the support,
    I <= L <= epsilon of LDP on the support (Issa, Wagner and Kamath 2020, section III),   min-entropy leakage <= L,
    I <= H,   I >= (pi_a + pi_b) I(X; Y | X in {a, b}) for the two heaviest secrets a and b (chain rule).

Two brackets that contradict a relation become wider, so that they agree, and lose their claim: kind "heuristic".
"""

# bounds: proved - docs/proofs/roundings.md, 13.14: rounding of a sum over factors; the other number tells when two
#    brackets count as a contradiction, which only makes them wider

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from ...base.estimate import Kind, Unit
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...channels import Channel, DefaultChannel
from ...channels.base import sum_or_infinity
from . import dense_quantities as dense
from . import set_channels
from . import type_class_quantities as type_classes
from .channel_with_prior import Bracket, ChannelWithPrior, QuantityRequest

Evaluator: TypeAlias = Callable[[QuantityRequest], dict[str, Bracket]]

# Every quantity and its unit. ``ldp_epsilon`` compares all secrets, all others those of positive prior probability.
UNITS: dict[str, Unit] = {
    "ldp_epsilon": "nats", "ldp_on_support": "nats", "xi_plus": "nats", "xi_minus": "nats", "cd_lmip": "nats",
    "pointwise_lmip": "nats", "bayes_vulnerability": "probability", "prior_vulnerability": "probability",
    "min_entropy_leakage": "nats", "maximal_leakage": "nats",
}
_MULTIPLICATIVE = ("bayes_vulnerability", "prior_vulnerability")  # of a product, their logarithms add up; all else adds
# The first quantity of each pair is at most the second.
_RELATIONS = (
    ("cd_lmip", "pointwise_lmip"), ("pointwise_lmip", "xi_plus"), ("xi_plus", "ldp_on_support"),
    ("xi_minus", "ldp_on_support"), ("ldp_on_support", "ldp_epsilon"), ("cd_lmip", "maximal_leakage"),
    ("min_entropy_leakage", "maximal_leakage"), ("maximal_leakage", "ldp_on_support"),
    ("prior_vulnerability", "bayes_vulnerability"),
)
_WRITTEN_CELLS = 2**12  # written channels of at least so many cells take longer than the bounds of their information
_GAPS = 8.0  # the relations hold within this many gaps of the sums of rows and priors from 1
# bound: none - which excess counts as a contradiction: brackets that contradict each other only become wider
_ROUNDING = 1e-12  # relative excess that is not called a contradiction
_CONTRADICTED = ", contradicts another quantity"  # what ``method`` says of a widened bracket


def brackets(
    model: ChannelWithPrior, names: Iterable[str], *, n_jobs: int | None = None,
    progress: Progress = None, omit_unavailable: bool = False,
) -> dict[str, Bracket]:
    """Brackets of the named quantities.

    A quantity without a closed form, of a channel too large to be enumerated, is a DomainError, or is left out with
    ``omit_unavailable``.
    """
    request = QuantityRequest(model, tuple(names), n_jobs, progress, omit_unavailable)
    for is_of_kind, evaluators in _TABLE:  # noqa: B007 - the loop ends at the kind that applies
        if is_of_kind(model):
            break
    result = evaluators[0](request)
    if tuple(result) == request.names:
        return result
    for evaluate in evaluators[1:]:
        if missing := tuple(name for name in request.names if name not in result):
            result = evaluate(request._replace(names=missing)) | result  # an earlier evaluator is the narrower one
    return {name: result[name] for name in request.names if name in result}


def _sums_over_factors(request: QuantityRequest) -> dict[str, Bracket]:
    """Of a product under a product prior: the sum over its factors, of logarithms for what is multiplicative."""
    parts = [
        (power, brackets(ChannelWithPrior(factor, prior), request.names, n_jobs=request.n_jobs,
                         progress=request.progress, omit_unavailable=request.omit_unavailable))
        for factor, power, prior in request.model.factors or ()
    ]
    result = {}
    for name in request.names:
        if any(name not in of_factor for _, of_factor in parts):
            continue
        log = name in _MULTIPLICATIVE
        terms = [(power, of_factor[name].log() if log else of_factor[name]) for power, of_factor in parts]
        kind: Kind = "certified" if any(term.kind == "certified" for _, term in terms) else "exact"
        value, lower, upper = (
            sum_or_infinity([power * float(getattr(term, end)) for power, term in terms])
            for end in ("value", "lower", "upper")
        )
        if lower == math.inf and not any(term.lower == math.inf for _, term in terms):
            lower = sys.float_info.max  # the sum is finite, but too large for a double
        if value < math.inf:
            lower, upper = lower - 6 * U * abs(lower), upper + 6 * U * abs(upper)
        total = Bracket(value, lower, upper, kind, "sum over factors")
        result[name] = total.exp() if log else total
    return result


# Kinds of channels, the first that applies, and what computes their quantities: the cheapest evaluators first, each for
# the quantities that are still missing.
_TABLE: tuple[tuple[Callable[[ChannelWithPrior], bool], tuple[Evaluator, ...]], ...] = (
    (dense.is_plain, (dense.plain_brackets, dense.brackets_from_rows)),
    (lambda model: model.factors is not None, (_sums_over_factors,)),
    (lambda model: isinstance(model.channel, Channel), (dense.brackets_from_rows,)),
    (lambda model: isinstance(model.channel, DefaultChannel), (type_classes.best_guess, dense.brackets_from_rows)),
    (lambda model: True, (
        type_classes.log_ratio_bounds, type_classes.sums_over_classes, set_channels.brackets, dense.brackets_from_rows,
    )),
)


def check_relations(results: dict[str, Bracket], model: ChannelWithPrior) -> dict[str, Bracket]:
    """The brackets, of which those that contradict each other are widened and marked as heuristic."""
    checked = dict(results)
    for smaller, larger in _RELATIONS if len(results) > 1 else ():
        if smaller in checked and larger in checked:
            a, b = checked[smaller], checked[larger]
            if _exceeds(a.lower, b.upper, model):
                checked[smaller], checked[larger] = _widen(a, b.lower, a.upper), _widen(b, b.lower, a.upper)
    if "cd_lmip" in checked and type(model.channel) is Channel and model.channel.cells.size >= _WRITTEN_CELLS:
        lower, upper = _information_bounds(model, model.channel)
        a = checked["cd_lmip"]
        if _exceeds(a.lower, upper, model) or _exceeds(lower, a.upper, model):
            checked["cd_lmip"] = _widen(a, lower, upper)
    return checked


def _exceeds(lower: float, upper: float, model: ChannelWithPrior) -> bool:
    """Whether a lower bound contradicts an upper bound; bounds that are NaN do."""
    if lower <= upper:
        return False
    return not lower <= upper + _GAPS * (model.gap + model.channel.mass_gap) + _ROUNDING * abs(upper)


def _widen(bracket: Bracket, lower: float, upper: float) -> Bracket:
    """The bracket widened to bounds of which one may be true."""
    low, high = np.fmin(bracket.lower, lower), np.fmax(bracket.upper, upper)
    return Bracket(bracket.value, float(low), float(high), "heuristic", bracket.method + _CONTRADICTED)


def _information_bounds(model: ChannelWithPrior, channel: Channel) -> tuple[float, float]:
    """Information of the two heaviest secrets given that it is one of them, times their mass; entropy of the prior."""
    prior = model.weights
    support = prior[prior > 0]
    entropy = -float((support * np.log(support)).sum())
    if support.size < 2:
        return 0.0, entropy
    first, second = np.argpartition(prior, -2)[-2:].tolist()
    p, q = (np.asarray(channel._rows(row, row + 1, False)[0], dtype=np.float64) for row in (first, second))
    mass = float(prior[first] + prior[second])
    a, b = prior[first] / mass, prior[second] / mass
    mixture = a * p + b * q
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = [weight * x * np.log(x / mixture) for weight, x in ((a, p), (b, q))]
    information = math.fsum(float(np.nansum(term)) for term in terms)
    return mass * max(0.0, information - 1e-14), entropy
