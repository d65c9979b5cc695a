"""Divergences by sampling: which distributions the samples may come from, what is averaged, and how averages become
estimates.

Notation: l = log(p/q), M = (P + Q)/2, G a tilted proposal whose density bounds the integrand. Every function returns a
``statistical`` Estimate; ``method`` says what ran and ``cost`` what was spent and why the run stopped.

Sources: Hershey and Olsen 2007 (KL by sampling P); Wang, Mahloujifar, Wu, Jia and Mittal 2023 (hockey-sticks);
L'Ecuyer et al. 2023 (intervals from randomised points).
"""

# bounds: proved - docs/proofs/betting.md, 9.6: rounding of an entropy of weights, and of sums of samples

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ParamSpec

import numpy as np

from ..base.errors import DomainError, interruption, warned
from ..base.estimate import Estimate, Unit, stacked
from ..base.numerics import LOG_2, LOG_2_ABOVE, SMALLEST_SUBNORMAL, UNIT_ROUNDOFF, FloatArray, IndexArray
from ..distributions import GaussianMixture
from ..distributions.packed import pack_together
from ..sampling.estimand import ROUNDED, Estimand
from ..sampling.guaranteed import Truncation, entropy_truncation, kl_truncation, run_guaranteed
from ..sampling.options import Request
from ..sampling.problem import (
    DOMINATING_SHARE,
    DistributionPair,
    Integrand,
    SampleSource,
    SamplingProblem,
    Term,
    distribution_pair,
    proposal_problem,
)
from ..sampling.proposals.local_normal_proposals import local_normals
from ..sampling.proposals.renyi_proposals import renyi_integral_bounds, renyi_proposal
from ..sampling.proposals.tilting import Proposal, hockey_stick_proposals, log_mass_of_larger
from ..sampling.replicates import TILE_LEAST
from ..sampling.statistics.normalisation import warn_of_normalisation
from ..sampling.statistics.tail_index import tail_verdict
from ..sampling.stopping import RunOutcome, run
from .reductions.subspaces import in_common_units, in_diagonal_coordinates, subspace

Arguments = ParamSpec("Arguments")
_NO_PARAMETER = np.zeros(1)  # of a term that has none
_LOG_RARE = math.log(0.3)  # log of a bound of the integral below which samples of P would be wasted
_SEARCH_TIME = 0.4  # share of the time that the search for proposals may take
_WORTHWHILE = 1.2  # how much narrower than costlier a proposal must be before a pilot tries it
_RATIO_ERRORS = 2.0  # standard errors of the ratio of two integrals that are no reason to widen
_NEAR_LOG_INTEGRAL = 0.5  # bound of log(integral of p^a q^(1-a)) below which the integral less 1 is averaged


def _raise_interruption(function: Callable[Arguments, Estimate]) -> Callable[Arguments, Estimate]:
    """Raise a KeyboardInterrupt that carries the estimate when a run was interrupted."""

    @functools.wraps(function)
    def raising(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate:
        estimate = function(*args, **kwargs)
        if "interrupted" in str(estimate.cost.get("stopped")):
            raise interruption(estimate, f"the run was interrupted after {estimate.cost['samples']} samples.")
        return estimate

    return raising


@_raise_interruption
def kl(p: Any, q: Any, request: Request, *, both: bool = False) -> Estimate:
    """KL(P||Q), and KL(Q||P) when ``both``."""
    p, q, pair = _sampled_pair(p, q, request, both=both)
    problems = []
    guaranteed = request.interval == "guaranteed"
    if not both:
        term = Term("kl_proposal" if guaranteed else "kl_forward", _NO_PARAMETER)
        problems.append(pair.direct(Integrand((term,), 0.0 if guaranteed else -math.inf, math.inf)))
    if pair.sources_q:
        terms = (Term("kl_balanced", _NO_PARAMETER), Term("kl_reversed", _NO_PARAMETER))[: 1 + both]
        problems.append(pair.balanced(Integrand(terms, 0.0, math.inf)))
    truncation = None
    if guaranteed:
        problems.reverse()  # what is averaged under P alone only has a lower bound
        if pair.both_mixtures and request.distribution in (None, "balanced"):
            truncation = kl_truncation(p, q, request, both=both)
    outcome = _run(problems, request, Estimand(lambda mean: mean, 0.0), truncation)
    shape = (2,) if both else ()
    estimate = _estimate(_widened_by_integrals(outcome), request, "nats", shape, _weight_gap(p, q))
    overflowed = np.isinf(estimate.value)
    if pair.both_mixtures and overflowed.any():  # sums overflowed, but the divergence of two mixtures is finite
        return replace(estimate, lower=np.where(overflowed, 0.0, estimate.lower))
    return estimate


def _widened_by_integrals(outcome: RunOutcome) -> RunOutcome:
    """An interval of a mean log ratio that also holds for densities divided by the integrals that the run saw, where
    these are not equal within their errors: a factor of the densities moves the mean by its logarithm. Mass of Q out of
    reach of the draws of P is no such factor."""
    integrals = outcome.integrals
    if integrals is None or outcome.distribution != "direct" or integrals.verdict == "out of reach":
        return outcome
    if not (integrals.ratio > 0.0 and math.isfinite(integrals.error)):
        return outcome
    log_ratio = math.log(integrals.ratio)
    if abs(log_ratio) <= _RATIO_ERRORS * integrals.error / integrals.ratio:
        return outcome
    value, lower, upper = outcome.estimates
    lower, upper = lower - max(log_ratio, 0.0), upper - min(log_ratio, 0.0)
    return replace(outcome, estimates=(value, np.maximum(lower, 0.0), upper))


@_raise_interruption
def jensen_shannon(p: Any, q: Any, request: Request) -> Estimate:
    """JS(P, Q), from samples of both."""
    p, q, pair = _sampled_pair(p, q, request, both=True)
    problem = pair.balanced(Integrand((Term("jensen_shannon", _NO_PARAMETER),), 0.0, LOG_2))
    outcome = _run([problem], request, Estimand(lambda mean: mean, 0.0, LOG_2_ABOVE))
    return _estimate(outcome, request, "nats", (), _weight_gap(p, q))


@_raise_interruption
def total_variation(p: Any, q: Any, request: Request) -> Estimate:
    """sup_E |P(E) - Q(E)|."""
    p, q = _reduced(p, q)
    pair = distribution_pair(p, q, request.root)
    swapped = not pair.sources_p  # the distance is the same from either side
    pair = pair.swapped() if swapped else pair
    problems = [pair.direct(Integrand((Term("hockey_stick_forward", _NO_PARAMETER),), 0.0, 1.0))]
    if pair.sources_q:
        problems.append(pair.balanced(Integrand((Term("total_variation", _NO_PARAMETER),), 0.0, 1.0)))
    outcome = _run(problems, request, Estimand(lambda mean: mean, 0.0, 1.0))
    names = ("q", "p") if swapped else ("p", "q")
    return _estimate(outcome, request, "probability", (), _weight_gap(p, q), names=names)


@_raise_interruption
def renyi(p: Any, q: Any, order: float, request: Request) -> Estimate:
    """D_order(P||Q) for an order other than 1."""
    if math.isinf(order):
        raise DomainError(
            "order must be finite for a divergence that has to be sampled; got inf. No number of samples bounds the "
            "largest log ratio: take a finite order."
        )
    p, q, pair = _sampled_pair(p, q, request, both=False)
    parameter, b = np.array([order]), order - 1.0
    term = Term("renyi_proposal", parameter)
    # each with: whether the integral less 1 is averaged, and the log of the scale
    candidates: list[tuple[SamplingProblem, bool, float]] = []
    floor, ceiling = 0.0, math.inf
    expired = _search_expired(request)
    bounds = renyi_integral_bounds(p, q, order) if pair.both_mixtures and order < 1.0 else None
    if bounds is not None:
        floor, ceiling = (max(end / b, 0.0) for end in (bounds.high, bounds.low))
        if bounds.mixture is not None and bounds.high < _LOG_RARE:
            # the normals of all pairs of components, over which the integrand has a range that is far from 0
            problem = proposal_problem(p, q, {bounds.mixture: 1.0}, bounds.log_scale, term)
            low, high = math.exp(-bounds.rounding_error) / bounds.pairs, math.exp(bounds.rounding_error)
            problem = replace(problem, integrand=Integrand((term,), low, high))
            candidates.append((problem, False, bounds.log_scale))
    if pair.both_mixtures and order > 1.0:
        proposal = renyi_proposal(p, q, order, expired=expired)
        if proposal.diverges:
            return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
        if proposal.bounded:
            problem = proposal_problem(p, q, {proposal.mixture: 1.0}, proposal.log_scale, term)
            candidates.append((problem, False, proposal.log_scale))
    if pair.sources_q:
        low, high = (-2.0, 0.0) if order < 1.0 else (0.0, math.inf)
        heavy = order > 1.0  # unless the mean of the square is known to be finite
        if heavy and pair.both_mixtures:
            heavy = not renyi_proposal(p, q, 2.0 * order - 1.0, expired=expired).bounded
        balanced = pair.balanced(Integrand((Term("renyi_small_balanced", parameter),), low, high), heavy=heavy)
        candidates.append((balanced, True, 0.0))
    else:
        candidates.append((pair.direct(Integrand((term,), 0.0, math.inf), heavy=True), False, 0.0))
    allowed = _of_forced_distribution([problem for problem, _, _ in candidates], request)
    candidates = [candidate for candidate in candidates if candidate[0] in allowed]
    near = order > 1.0 and len(candidates) > 1 and candidates[0][2] < _NEAR_LOG_INTEGRAL
    near = near and request.interval == "replicates"
    near = near and not candidates[1][0].monitors_tail  # a variance that may be infinite is the worse evil
    problem, less_1, log_scale = candidates[1 if near else 0]

    def value(mean: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            logs = np.log1p(np.maximum(mean, -1.0)) if less_1 else np.log(np.maximum(mean, 0.0)) + log_scale
        return logs / b

    outcome = _run([problem], request, Estimand(value, floor, ceiling))
    return _estimate(outcome, request, "nats", (), (1.0 + abs(b)) * _weight_gap(p, q))


@_raise_interruption
def entropy(p: GaussianMixture, request: Request) -> Estimate:
    """Differential entropy, minus the mean of log p."""
    (p,), dropped = subspace(p) or ((p,), 0.0)
    (packed,), log_determinant = pack_together(p)
    least = -float(np.logaddexp.reduce(packed.constants))
    integrand = Integrand((Term("entropy", _NO_PARAMETER),), least, math.inf)
    problem = SamplingProblem("direct", (SampleSource.of_mixture(packed, p),), packed, None, (), integrand)
    estimand = Estimand(
        lambda mean: mean + dropped - log_determinant, scale=lambda value: np.maximum(np.abs(value), 1.0)
    )
    outcome = _run([problem], request, estimand, entropy_truncation(packed, request))
    return _estimate(outcome, request, "nats", (), 2.0 * p.mass_gap)


@_raise_interruption
def label_information(p: GaussianMixture, request: Request) -> Estimate:
    """Mutual information of the component and the sample."""
    (p,), _ = subspace(p) or ((p,), 0.0)
    (packed,), _ = pack_together(p)
    integrand = Integrand((Term("information", _NO_PARAMETER),), 0.0, -math.log(p.weights.min()))
    problem = SamplingProblem("direct", (SampleSource.of_mixture(packed, p),), packed, None, (), integrand)
    entropy_of_weights = -math.fsum((p.weights * np.log(p.weights)).tolist())
    outcome = _run([problem], request, Estimand(lambda mean: mean, 0.0, entropy_of_weights * (1 + 2e-15)))
    return _estimate(outcome, request, "nats", (), 2.0 * p.mass_gap)


# Hockey-sticks: epsilons in groups, each with its own proposal


@_raise_interruption
def hockey_stick(p: Any, q: Any, epsilon: FloatArray, request: Request, *, logs: bool, both: bool = False) -> Estimate:
    """H_{e^epsilon}(P||Q), and then H_{e^epsilon}(Q||P) when ``both``, or their logarithms."""
    p, q, pair = _sampled_pair(p, q, request, both=both)
    if not both:
        return _hockey_stick(p, q, pair, epsilon, request, logs)
    forward = _hockey_stick(p, q, pair, epsilon, request.portion(0, 0.5, 0), logs)
    if forward.cost.get("stopped") == "interrupted":
        return stacked((forward, _trivial_estimate(forward, epsilon, logs)), (2,))
    remainder = request.portion(1, 1.0, request.sample_budget // 2)
    try:
        backward = _hockey_stick(q, p, pair.swapped(), epsilon, remainder, logs)
    except KeyboardInterrupt:
        backward = _trivial_estimate(forward, epsilon, logs)
    return stacked((forward, backward), (2,))


@dataclass(frozen=True)
class _EpsilonGroup:
    """Epsilons that one run serves: their indices, the candidate problems, and the proposal known to dominate."""

    indices: IndexArray
    problems: list[SamplingProblem]
    proposal: Proposal | None


def _hockey_stick(
    p: Any, q: Any, pair: DistributionPair, epsilon: FloatArray, request: Request, logs: bool
) -> Estimate:
    flat = epsilon.reshape(-1)
    finite = np.flatnonzero(np.isfinite(flat))
    estimates = np.full((3, flat.size), -math.inf if logs else 0.0)
    groups = list(_epsilon_groups(p, q, pair, flat[finite], request)) if finite.size else []
    outcomes: list[RunOutcome] = []
    spent, done = 0, np.zeros(flat.size, dtype=bool)
    gap = _weight_gap(p, q)
    slack = np.full(flat.size, math.log(gap) if gap else -math.inf)  # log of what it may move an answer by
    for number, group in enumerate(groups):
        log_scale, proposal, indices = 0.0, group.proposal, finite[group.indices]
        share = 1.0 / (len(groups) - number)
        try:
            if proposal is not None:
                least = flat[indices].min()
                slack[indices] += [LOG_2 + log_mass_of_larger(p, proposal, x - least) for x in flat[indices].tolist()]
                log_scale = proposal.log_scale if group.problems[0].distribution == "tilted" else 0.0
            estimand = _hockey_stick_estimand(log_scale, logs)
            outcome = _run(group.problems, request.portion(number, share, spent), estimand)
        except KeyboardInterrupt:
            if not outcomes:
                raise
            outcomes[-1].stopped, outcomes[-1].repeatable = "interrupted", False
            break
        spent += outcome.samples
        outcomes.append(outcome)
        for row, numbers in zip(estimates, outcome.estimates, strict=True):
            row[indices] = numbers
        done[indices] = True
        if outcome.stopped == "interrupted":
            break
    for group in groups[len(outcomes) :]:  # left out by an interruption: bounded by proposals and smaller epsilons
        log_scale = 0.0 if group.proposal is None else group.proposal.log_scale
        proved = log_scale if logs else math.exp(min(log_scale, 0.0))
        for index in finite[group.indices]:
            before = done & (flat <= flat[index])
            most = min(float(estimates[2, before].min(initial=0.0 if logs else 1.0)), proved)
            estimates[0, index], estimates[2, index] = (most - LOG_2 if logs else 0.5 * most), most
    shape = epsilon.shape
    unit: Unit = "log probability" if logs else "probability"
    if not outcomes:
        value, lower, upper = (row.reshape(shape) for row in estimates)
        method = "infinite epsilon" if epsilon.size else "no epsilon"
        return Estimate(value, lower, upper, kind="exact", unit=unit, method=method)
    _widen_by_weight_gap(estimates, slack, finite, logs)
    return _estimate(_merged(outcomes, estimates), request, unit, shape, 0.0, widened=True)


def _trivial_estimate(forward: Estimate, epsilon: FloatArray, logs: bool) -> Estimate:
    """The bounds that hold for any two distributions, for the other direction where nothing was sampled."""
    least, most, middle = (-math.inf, 0.0, -LOG_2) if logs else (0.0, 1.0, 0.5)
    upper, value = (np.where(np.isinf(epsilon), least, end) for end in (most, middle))
    spent = {"samples": 0, "replicates": 0, "stages": 0, "stopped": "interrupted", "repeatable": False}
    return Estimate(
        value, np.full(epsilon.shape, least), upper, kind="statistical", unit=forward.unit, method=forward.method,
        confidence=forward.confidence, cost={**forward.cost, **spent},
    )


def _epsilon_groups(
    p: Any, q: Any, pair: DistributionPair, epsilon: FloatArray, request: Request
) -> Iterator[_EpsilonGroup]:
    if not (pair.both_mixtures and request.distribution in (None, "tilted")):
        problems = [pair.direct(Integrand((Term("hockey_stick_forward", epsilon),), 0.0, 1.0))]
        if pair.sources_q:
            problems.append(pair.balanced(Integrand((Term("hockey_stick_balanced", epsilon),), 0.0, 2.0)))
        yield _EpsilonGroup(np.arange(epsilon.size), _of_forced_distribution(problems, request), None)
        return
    for proposal, indices in hockey_stick_proposals(p, q, epsilon, expired=_search_expired(request)):
        if proposal.log_scale > _LOG_RARE and request.distribution is None:
            integrand = Integrand((Term("hockey_stick_forward", epsilon[indices]),), 0.0, 1.0)
            yield _EpsilonGroup(indices, [pair.direct(integrand)], proposal)
        else:
            term = Term("hockey_stick_proposal", epsilon[indices])
            yield _EpsilonGroup(indices, list(_tilted_candidates(p, q, proposal, term)), proposal)


def _hockey_stick_estimand(log_scale: float, logs: bool) -> Estimand:
    def log_of(mean: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.minimum(np.log(np.maximum(mean, 0.0)) + log_scale, 0.0)

    if logs:
        return Estimand(log_of, -math.inf, 0.0, scale=np.ones_like)
    if log_scale == 0.0:
        return Estimand(lambda mean: mean, 0.0, 1.0)
    return Estimand(lambda mean: np.exp(log_of(mean)), 0.0, 1.0)


def _widen_by_weight_gap(estimates: FloatArray, slack: FloatArray, finite: IndexArray, logs: bool) -> None:
    """Widen hockey-sticks by what weights whose sums are rounded can move them: their gap times the mass of the set
    where p is larger, of which q has less."""
    lower, upper = estimates[1, finite], estimates[2, finite]
    shifted, some = slack[finite], np.isfinite(slack[finite])
    if logs:
        with np.errstate(divide="ignore", invalid="ignore"):
            less = np.where(shifted < lower, lower + np.log1p(-np.exp(np.minimum(shifted - lower, 0.0))), -math.inf)
        lower = np.where(some, less, lower)
        upper = np.where(some, np.minimum(np.logaddexp(upper, shifted), 0.0), upper)
    else:
        lower, upper = np.maximum(lower - np.exp(shifted), 0.0), np.minimum(upper + np.exp(shifted), 1.0)
        upper = np.maximum(upper, SMALLEST_SUBNORMAL)  # the divergence may be below the least double, but is not 0
    estimates[1, finite], estimates[2, finite] = lower, upper


def _merged(outcomes: list[RunOutcome], estimates: FloatArray) -> RunOutcome:
    """One outcome for all groups of epsilons."""
    stops = [outcome.stopped for outcome in outcomes]
    worst = next((stop for stop in ("interrupted", "max_seconds", "max_samples") if stop in stops), "target")
    return replace(
        outcomes[0], estimates=tuple(estimates), stopped=worst,
        distribution="/".join(sorted({outcome.distribution for outcome in outcomes})),
        points="/".join(sorted({outcome.points for outcome in outcomes})),
        samples=sum(outcome.samples for outcome in outcomes),
        replicates=sum(outcome.replicates for outcome in outcomes),
        stages=max(outcome.stages for outcome in outcomes), repeatable=all(outcome.repeatable for outcome in outcomes),
    )


# Problems with proposals


def _tilted_candidates(p: Any, q: Any, proposal: Proposal, term: Term) -> Iterator[SamplingProblem]:
    """The tilted proposal alone and, where this can pay, mixed with normals as narrow as the integrand."""
    alone = proposal_problem(p, q, {proposal.mixture: 1.0}, proposal.log_scale, term)
    yield alone
    narrow = local_normals(p, q, proposal.dominant) if proposal.dominant is not None else None
    if narrow is None:
        return
    shares = {proposal.mixture: DOMINATING_SHARE, narrow.mixture: 1.0 - DOMINATING_SHARE}
    joint = proposal_problem(p, q, shares, proposal.log_scale, term)
    if narrow.gain * alone.effort > _WORTHWHILE * joint.effort:
        yield joint


def _search_expired(request: Request) -> Callable[[], bool]:
    """Deadline test of the search for a proposal, which may use a fixed share of the time."""
    return lambda: request.time_budget.expired(_SEARCH_TIME)


# What all quantities share


def _reduced(p: Any, q: Any) -> tuple[Any, ...]:
    """Mixtures projected to the fewest dimensions that keep their divergences, in units of moderate size."""
    if isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture):
        projection = subspace(p, q)
        return in_diagonal_coordinates(*in_common_units(*(projection.mixtures if projection is not None else (p, q))))
    return p, q


def _sampled_pair(p: Any, q: Any, request: Request, *, both: bool) -> tuple[Any, Any, DistributionPair]:
    """P and Q reduced, and their pair, if there are samples of P, and of Q where ``both`` are drawn from."""
    p, q = _reduced(p, q)
    pair = distribution_pair(p, q, request.root)
    for name, sources in (("p", pair.sources_p), ("q", pair.sources_q))[: 1 + both]:
        if not sources:
            raise DomainError(
                f"{name} must have a sampler for this quantity; got none. "
                f"Pass Density(log_density, sampler, ...){' or LogRatio(..., sampler_q=...)' if name == 'q' else ''}."
            )
    return p, q, pair


def _weight_gap(p: Any, q: Any) -> float:
    """How far weights may be from those of a distribution; samples are of the normalised ones."""
    return 2.0 * sum(side.mass_gap for side in (p, q) if isinstance(side, GaussianMixture))


def _of_forced_distribution(problems: list[SamplingProblem], request: Request) -> list[SamplingProblem]:
    """The problems for the proposal that ``method`` requires; the error lists the available ones."""
    chosen = [problem for problem in problems if request.distribution in (None, problem.distribution)]
    if not chosen:
        have = ", ".join(sorted({problem.distribution for problem in problems}))
        raise DomainError(
            f"method must name a distribution of this pair ({have}); got {request.distribution!r}. Take one of these."
        )
    return chosen


def _run(
    problems: list[SamplingProblem], request: Request, estimand: Estimand, truncation: Truncation | None = None
) -> RunOutcome:
    """The requested run; where too few samples of a tilted proposal dominate the answer, a guaranteed one."""
    problems = _of_forced_distribution(problems, request)
    if request.interval == "guaranteed":
        return run_guaranteed(problems, request, estimand, truncation)
    outcome = run(problems, request, estimand)
    if outcome.distribution == "tilted" and outcome.largest_values is not None and outcome.stopped != "interrupted":
        if tail_verdict(outcome.largest_values.index()) == "unknown":
            proved = run_guaranteed(problems, request, estimand, truncation)
            return replace(proved, samples=proved.samples + outcome.samples)
        outcome.largest_values = None  # the integrand is bounded: there is no tail to speak of
    return outcome


def _estimate(
    outcome: RunOutcome, request: Request, unit: Unit, shape: tuple[int, ...], gap: float,
    names: tuple[str, str] = ("p", "q"), widened: bool = False,
) -> Estimate:
    """The outcome as an Estimate: its tail judged, widened by the gap of the weights and by rounding."""
    value, lower, upper = (np.array(numbers, dtype=np.float64).reshape(shape) for numbers in outcome.estimates)
    if outcome.largest_values is not None and outcome.distribution != "tilted" and np.isfinite(value).all():
        upper = _upper_by_tail(outcome, upper)
    if request.side != "lower" and (np.isinf(upper) & np.isfinite(value)).any():
        _warn_unbounded(outcome, request)
    if gap:
        slack = np.where(lower < upper, gap * (1.0 + np.abs(value)), 0.0)
        lower, upper = lower - slack, upper + slack
        lower = np.maximum(lower, 0.0) if unit != "nats" or (value >= 0).all() else lower
        upper = np.minimum(upper, 1.0) if unit == "probability" else upper
    if not widened:
        narrow = (lower == upper) & np.isfinite(value)  # narrower than the spacing of doubles
        lost = ROUNDED + outcome.samples * UNIT_ROUNDOFF / TILE_LEAST  # in sums
        lower = np.where(narrow, _moved_outward(lower, -lost, unit), lower)
        upper = np.where(narrow, _moved_outward(upper, lost, unit), upper)
    if outcome.integrals is not None:
        warn_of_normalisation(outcome.integrals, *names, of_p=outcome.distribution == "direct")
    return Estimate(
        value, lower, upper, kind="statistical", unit=unit, method=outcome.method, confidence=request.confidence,
        cost=outcome.cost,
    )


def _moved_outward(end: FloatArray, part: float, unit: Unit) -> FloatArray:
    """Move a bound outward, by this part of itself, within the range of the unit."""
    with np.errstate(invalid="ignore"):
        shifted = np.where(np.isfinite(end), np.nextafter(end + part * np.abs(end), part * math.inf), end)
    if unit == "log probability":
        return np.minimum(shifted, 0.0)
    return np.clip(shifted, 0.0, 1.0) if unit == "probability" else shifted


def _upper_by_tail(outcome: RunOutcome, upper: FloatArray) -> FloatArray:
    """Warn where the tail of what was averaged may have no variance; no upper end where it may have no mean."""
    assert outcome.largest_values is not None
    index = outcome.largest_values.index()
    verdict = tail_verdict(index)
    if verdict == "holds":
        return upper
    worst = float(np.nanmax(index)) if np.isfinite(index).any() else math.inf
    what = "may not hold" if verdict == "warn" else "cannot be known: the upper end is infinite"
    warned(
        f"the log ratio must have a light tail for an interval to hold; its tail index is {worst:.2f} (0.5 is an "
        f"infinite variance), so the interval {what}. Draw from a distribution with heavier tails, or take the "
        "lower end alone."
    )
    return np.full_like(upper, math.inf) if verdict == "unknown" else upper


def _warn_unbounded(outcome: RunOutcome, request: Request) -> None:
    """Warn why there is no upper end, unless the tail index has already warned."""
    others = "or take a bounded quantity: a total variation, hockey-stick or Jensen-Shannon divergence."
    if request.interval == "guaranteed":
        warned(
            "interval='guaranteed' needs a bound of what is averaged for an upper end, and nothing bounds the log "
            "ratio of these distributions: the upper end is infinite. Take interval='replicates', side='lower', "
            + others
        )
    elif outcome.replicates_equal:
        warned(
            f"all {outcome.samples} samples have the same log ratio, so that nothing tells how far it goes where no "
            "sample fell: the upper end is infinite. Sample both distributions (method='balanced'), take side='lower', "
            + others
        )
