"""Relations that the quantities of one channel satisfy, checked before brackets are handed out.

No relation is used by the methods that compute the brackets. With I the mutual information, H the entropy of the
prior, L the maximal leakage, pi the prior:

    0 <= I <= max_x KL(P_x || P_M) <= xi_plus <= epsilon of LDP on the support <= epsilon of LDP,
    xi_minus <= epsilon of LDP on the support,
    I <= L <= epsilon of LDP on the support (Issa, Wagner and Kamath 2020, section III),   min-entropy leakage <= L,
    I <= H,   I >= (pi_a + pi_b) I(X; Y | X in {a, b}) for the two heaviest secrets a and b (chain rule).

Two brackets that contradict a relation become wider, so that they agree, and lose their claim: kind "heuristic".
"""

# bounds: tested by properties/test_relations_of_quantities - when two brackets count as a contradiction

from __future__ import annotations

import math

import numpy as np

from ...channels import Channel
from .channel_with_prior import Bracket, ChannelWithPrior

__all__ = ["check_relations"]

# The first quantity of each pair is at most the second.
_RELATIONS = (
    ("cd_lmip", "pointwise_lmip"), ("pointwise_lmip", "xi_plus"), ("xi_plus", "ldp_on_support"),
    ("xi_minus", "ldp_on_support"), ("ldp_on_support", "ldp_epsilon"), ("cd_lmip", "maximal_leakage"),
    ("min_entropy_leakage", "maximal_leakage"), ("maximal_leakage", "ldp_on_support"),
    ("prior_vulnerability", "bayes_vulnerability"),
)  # fmt: skip
_WRITTEN_CELLS = 2**12  # written channels of at least so many cells take longer than the bounds of their information
_GAPS = 8.0  # the relations hold within this many gaps of the sums of rows and priors from 1
# bound: tested by properties/test_relations_of_quantities - excess of a right bracket over another one
_ROUNDING = 1e-12  # relative excess that is not called a contradiction
_CONTRADICTED = ", contradicts another quantity"  # what ``method`` says of a widened bracket


def check_relations(results: dict[str, Bracket], model: ChannelWithPrior) -> dict[str, Bracket]:
    """The brackets, of which those that contradict each other are widened and marked as heuristic."""
    checked = dict(results)
    for smaller, larger in _RELATIONS:
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
    entropy = -float(support @ np.log(support))
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
