"""Divergences by sampling: which laws the samples may come from, what is averaged, and how averages become answers.

Notation: l = log(p/q), M = (P + Q)/2, G a tilted law whose density bounds the integrand. Every function returns a
``statistical`` Estimate; ``method`` says what ran and ``cost`` what was spent and why the run stopped.

Sources: Hershey and Olsen 2007 (KL by sampling P); Wang, Mahloujifar, Wu, Jia and Mittal 2023 (hockey-sticks);
L'Ecuyer et al. 2023 (intervals from randomised points).
"""

# bounds: tested by intervals/test_divergence_coverage - outward roundings of ends; the least double above 0

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from ..distributions import GaussianMixture
from ..distributions.packed import pack_together
from ..errors import DomainError, interruption, warned
from ..estimate import Estimate, Unit
from ..sampling.answers import Goal
from ..sampling.cuts import entropy_cut, kl_cut
from ..sampling.engine import Outcome, run
from ..sampling.guaranteed import Cut, run_guaranteed
from ..sampling.pairs import Pair, accompanied, paired, proposed
from ..sampling.problem import Integrand, Part, Problem, Row
from ..sampling.proposals.corners import corners
from ..sampling.proposals.orders import renyi_proposal
from ..sampling.proposals.pairwise import Between, between, kl_range
from ..sampling.proposals.tilting import (
    Proposal,
    hockey_stick_proposals,
    log_hockey_stick_upper_bound,
    log_mass_of_larger,
)
from ..sampling.request import FEWEST_SAMPLES, Request
from ..sampling.statistics.normalisation import warned_of
from ..sampling.statistics.tails import tail_verdict
from .arguments import both_ways
from .reductions.subspaces import in_common_units, subspace

__all__ = ["entropy", "hockey_stick", "jensen_shannon", "kl", "label_information", "renyi", "total_variation"]

Arguments = ParamSpec("Arguments")
FloatArray = NDArray[np.float64]
_NONE = np.zeros(1)
_LOG_2 = math.log(2.0)
_TAIL = math.log(0.3)  # where a proposal's bound is below this, samples of P would be wasted
_SEARCH = 0.4  # of the time that the search for proposals may take
_WORTH = 1.2  # how much narrower than costlier a law must be before a pilot tries it
_ERRORS = 2.0  # standard errors of the ratio of two integrals that are no reason to widen
_NEAR = 0.5  # bound of log(integral of p^a q^(1-a)) below which the integral less 1 is averaged


def _raising(function: Callable[Arguments, Estimate]) -> Callable[Arguments, Estimate]:
    """Let an interrupted run end with a KeyboardInterrupt that carries what was reached."""

    @functools.wraps(function)
    def whole(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate:
        found = function(*args, **kwargs)
        if "interrupted" in str(found.cost.get("stopped")):
            raise interruption(found, f"the run was interrupted after {found.cost['samples']} samples.")
        return found

    return whole


@_raising
def kl(p: Any, q: Any, request: Request, *, both: bool = False) -> Estimate:
    """KL(P||Q), and KL(Q||P) when ``both``."""
    p, q = _smaller(p, q)
    pair = _drawn(paired(p, q, request.root, request.clock), both=both)
    problems = []
    if not both:
        row = Row("kl_proposal" if request.interval == "guaranteed" else "kl_forward", _NONE)
        problems.append(pair.direct(Integrand((row,), 0.0 if row.name == "kl_proposal" else -math.inf, math.inf)))
    if pair.draws_q:
        rows = (Row("kl_balanced", _NONE), Row("kl_reversed", _NONE))[: 1 + both]
        problems.append(pair.balanced(Integrand(rows, 0.0, math.inf)))
    cut = None
    if request.interval == "guaranteed":
        problems.reverse()  # what is averaged under P alone only has a lower bound
        cut = kl_cut(p, q, request, both=both) if pair.known and request.law in (None, "balanced") else None
    outcome = _with_the_slip(_run(_allowed(problems, request), request, Goal(lambda mean: mean, 0.0), cut))
    shape = (2,) if both else ()
    return _estimate(outcome, request, "nats", shape, _gap(p, q), lambda: _range(p, q, both).reshape(2, *shape))


def _with_the_slip(outcome: Outcome) -> Outcome:
    """Where the mean of the log ratio is taken, a factor of the densities moves it by its logarithm: an interval that
    also holds for densities divided by the integrals that the run saw, where these are not equal within their errors
    but too near to be told apart for sure."""
    found = outcome.integrals
    if found is None or outcome.law != "direct" or not (found.ratio > 0.0 and math.isfinite(found.error)):
        return outcome
    slip = math.log(found.ratio)
    if abs(slip) <= _ERRORS * found.error / found.ratio:
        return outcome
    value, lower, upper = outcome.answers
    lower, upper = lower - max(slip, 0.0), upper - min(slip, 0.0)
    return dataclasses.replace(outcome, answers=(value, np.maximum(lower, 0.0), upper))


def _range(p: Any, q: Any, both: bool) -> FloatArray:
    """What pairs of components tell of KL where samples do not tell enough."""
    if not (isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture)):
        return np.array([[0.0] * (1 + both), [math.inf] * (1 + both)])
    return np.array([kl_range(p, q), kl_range(q, p)][: 1 + both]).T


@_raising
def jensen_shannon(p: Any, q: Any, request: Request) -> Estimate:
    """JS(P, Q), from both laws."""
    p, q = _smaller(p, q)
    pair = _drawn(paired(p, q, request.root, request.clock), both=True)
    problem = pair.balanced(Integrand((Row("jensen_shannon", _NONE),), 0.0, _LOG_2))
    goal = Goal(lambda mean: mean, 0.0, math.nextafter(_LOG_2, 1.0))
    return _estimate(_run(_allowed([problem], request), request, goal), request, "nats", (), _gap(p, q))


@_raising
def total_variation(p: Any, q: Any, request: Request) -> Estimate:
    """sup_E |P(E) - Q(E)|."""
    p, q = _smaller(p, q)
    pair = paired(p, q, request.root, request.clock)
    swapped = not pair.draws_p  # the same from either side
    pair = pair.swapped() if swapped else pair
    problems = [pair.direct(Integrand((Row("hockey_stick_forward", _NONE),), 0.0, 1.0))]
    if pair.draws_q:
        problems.append(pair.balanced(Integrand((Row("total_variation", _NONE),), 0.0, 1.0)))
    outcome = _run(_allowed(problems, request), request, Goal(lambda mean: mean, 0.0, 1.0))
    return _estimate(outcome, request, "probability", (), _gap(p, q), names=("q", "p") if swapped else ("p", "q"))


@_raising
def hockey_stick(p: Any, q: Any, epsilon: FloatArray, request: Request, *, logs: bool, both: bool = False) -> Estimate:
    """H_{e^epsilon}(P||Q), and H_{e^epsilon}(Q||P) when ``both``, or their logarithms."""
    return _hockey_stick(p, q, epsilon, request, logs=logs, both=both)


def _hockey_stick(p: Any, q: Any, epsilon: FloatArray, request: Request, *, logs: bool, both: bool) -> Estimate:
    flat = epsilon.reshape(-1)
    used = np.flatnonzero(np.isfinite(flat))
    answers = np.zeros((3, 1 + both, flat.size))
    if logs:
        answers[:] = -math.inf
    p, q = _smaller(p, q)
    pair = _drawn(paired(p, q, request.root, request.clock), both=both)
    if both and used.size and request.law is None and pair.known and _in_the_tail(p, q, flat[used].max(), request):
        forward = _hockey_stick(p, q, epsilon, _shared(request, 0, 0.5, 0), logs=logs, both=False)
        if forward.cost.get("stopped") == "interrupted":
            return both_ways(forward, _unknown(forward, epsilon, logs))
        rest = _shared(request, 1, 1.0, request.max_samples // 2)
        try:
            backward = _hockey_stick(q, p, epsilon, rest, logs=logs, both=False)
        except KeyboardInterrupt:
            backward = _unknown(forward, epsilon, logs)
        return both_ways(forward, backward)
    runs = list(_runs(p, q, pair, flat[used], request, both)) if used.size else []
    outcomes: list[Outcome] = []
    spent, done = 0, np.zeros(flat.size, dtype=bool)
    slack = np.full(flat.size, _log(_gap(p, q)))  # log of what the weights' slip may move an answer by
    for index, (problems, places, proposal) in enumerate(runs):
        log_scale = 0.0
        share = 1.0 / (len(runs) - index)
        try:
            if proposal is not None:
                at = flat[used[places]]
                slack[used[places]] += [_LOG_2 + log_mass_of_larger(p, proposal, x - at.min()) for x in at.tolist()]
                log_scale = proposal.log_scale if problems[0].law == "tilted" else 0.0
            here = _shared(request, index, share, spent)
            found = _run(problems, here, _hockey_goal(log_scale, logs))
        except KeyboardInterrupt:
            if not outcomes:
                raise
            outcomes[-1].stopped, outcomes[-1].repeatable = "interrupted", False
            break
        spent += found.samples
        outcomes.append(found)
        for row, numbers in zip(answers, found.answers, strict=True):
            row[:, used[places]] = numbers.reshape(1 + both, -1)
        done[used[places]] = True
        if found.stopped == "interrupted":
            break
    for _, places, proposal in runs:  # what an interruption left out
        for place in used[places][~done[used[places]]]:
            _follow(answers, flat, done, place, 0.0 if proposal is None else proposal.log_scale, logs)
    shape = (2, *epsilon.shape) if both else epsilon.shape
    unit: Unit = "log probability" if logs else "probability"
    if not outcomes:
        value, lower, upper = (row.reshape(shape) for row in answers)
        method = "infinite epsilon" if epsilon.size else "no epsilon"
        return Estimate(value, lower, upper, kind="exact", unit=unit, method=method)
    _slipped(answers, slack, used, logs)
    return _estimate(_merged(outcomes, answers), request, unit, shape, 0.0, widened=True)


@_raising
def renyi(p: Any, q: Any, order: float, request: Request) -> Estimate:
    """D_order(P||Q) for an order other than 1."""
    p, q = _smaller(p, q)
    pair = _drawn(paired(p, q, request.root, request.clock), both=False)
    parameter, b = np.array([order]), order - 1.0
    options: list[tuple[Problem, bool, float]] = []  # with: the integral less 1 is averaged; log of the scale
    floor, ceiling = 0.0, math.inf
    known = between(p, q, order) if pair.known and order < 1.0 else None
    if known is not None:
        floor, ceiling = (max(end / b, 0.0) for end in (known.high, known.low))
        if known.mixture is not None and known.high < _TAIL:
            options.append((_between(p, q, pair, known, Row("renyi_proposal", parameter)), False, known.log_scale))
    if pair.known and order > 1.0:
        proposal = renyi_proposal(p, q, order, late=_late(request))
        if proposal.diverges:
            return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
        if proposal.bounded:
            options.append((_tilted(p, q, pair, proposal, Row("renyi_proposal", parameter)), False, proposal.log_scale))
    if pair.draws_q:
        low, high = (-2.0, 0.0) if order < 1.0 else (0.0, math.inf)
        row = Row("renyi_small_balanced", parameter)
        heavy = order > 1.0  # unless the mean of the square is known to be finite
        if heavy and pair.known:
            heavy = not renyi_proposal(p, q, 2.0 * order - 1.0, late=_late(request)).bounded
        options.append((pair.balanced(Integrand((row,), low, high), heavy=heavy), True, 0.0))
    else:
        row = Row("renyi_proposal", parameter)
        options.append((pair.direct(Integrand((row,), 0.0, math.inf), heavy=True), False, 0.0))
    allowed = _allowed([problem for problem, _, _ in options], request)
    options = [option for option in options if option[0] in allowed]
    near = order > 1.0 and len(options) > 1 and options[0][2] < _NEAR and request.interval == "replicates"
    near = near and not options[1][0].watched  # a variance that may be infinite is the worse evil
    problem, less_1, log_scale = options[1 if near else 0]

    def value(mean: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            logs = np.log1p(np.maximum(mean, -1.0)) if less_1 else np.log(np.maximum(mean, 0.0)) + log_scale
        return logs / b

    outcome = _run([problem], request, Goal(value, floor, ceiling))
    return _estimate(outcome, request, "nats", (), (1.0 + abs(b)) * _gap(p, q))


@_raising
def entropy(p: GaussianMixture, request: Request) -> Estimate:
    """Differential entropy, minus the mean of log p."""
    (p,), dropped = subspace(p) or ((p,), 0.0)
    (packed,), log_determinant = pack_together(p)
    part = Part.of(packed, p.weights / p.weights.sum())
    integrand = Integrand((Row("entropy", _NONE),), -float(np.logaddexp.reduce(packed.constants)), math.inf)
    problem = Problem("direct", (part,), packed, None, (), integrand)
    goal = Goal(lambda mean: mean + dropped - log_determinant, scale=lambda value: np.maximum(np.abs(value), 1.0))
    outcome = _run(_allowed([problem], request), request, goal, entropy_cut(packed, request))
    return _estimate(outcome, request, "nats", (), 2.0 * p.mass_gap)


@_raising
def label_information(p: GaussianMixture, request: Request) -> Estimate:
    """Mutual information of the component and the sample."""
    (p,), _ = subspace(p) or ((p,), 0.0)
    (packed,), _ = pack_together(p)
    part = Part.of(packed, p.weights / p.weights.sum())
    integrand = Integrand((Row("information", _NONE),), 0.0, -math.log(p.weights.min()))
    problem = Problem("direct", (part,), packed, None, (), integrand)
    most = -math.fsum((p.weights * np.log(p.weights)).tolist())
    goal = Goal(lambda mean: mean, 0.0, most * (1 + 1e-15))
    outcome = _run(_allowed([problem], request), request, goal)
    return _estimate(outcome, request, "nats", (), 2.0 * p.mass_gap)


def _runs(p: Any, q: Any, pair: Pair, epsilon: FloatArray, request: Request, both: bool) -> Any:
    """Problems for each group of epsilons, their places, and the proposal that is known to dominate them."""
    every = np.arange(epsilon.size)
    tilts = pair.known and request.law in (None, "tilted") and not (both and request.law is None)
    if not tilts:
        problems = []
        if not both:
            problems.append(pair.direct(Integrand((Row("hockey_stick_forward", epsilon),), 0.0, 1.0)))
        if pair.draws_q:
            rows = (Row("hockey_stick_balanced", epsilon), Row("hockey_stick_balanced", epsilon, swapped=True))
            problems.append(pair.balanced(Integrand(rows[: 1 + both], 0.0, 2.0)))
        yield _allowed(problems, request), every, None
        return
    for proposal, places in hockey_stick_proposals(p, q, epsilon, late=_late(request)):
        if proposal.log_scale > _TAIL and request.law is None:
            yield [pair.direct(Integrand((Row("hockey_stick_forward", epsilon[places]),), 0.0, 1.0))], places, proposal
        else:
            row = Row("hockey_stick_proposal", epsilon[places])
            yield list(_narrowed(p, q, pair, proposal, row)), places, proposal


def _slipped(answers: FloatArray, slack: FloatArray, used: NDArray[np.intp], logs: bool) -> None:
    """Widen hockey-sticks by what weights whose sums are rounded can move them: their slip times the mass of the set
    where p is larger, of which q has less."""
    lower, upper = answers[1][:, used], answers[2][:, used]
    moved, some = slack[used], np.isfinite(slack[used])
    if logs:
        with np.errstate(divide="ignore", invalid="ignore"):
            less = np.where(moved < lower, lower + np.log1p(-np.exp(np.minimum(moved - lower, 0.0))), -math.inf)
        lower = np.where(some, less, lower)
        upper = np.where(some, np.minimum(np.logaddexp(upper, moved), 0.0), upper)
    else:
        lower, upper = np.maximum(lower - np.exp(moved), 0.0), np.minimum(upper + np.exp(moved), 1.0)
        upper = np.maximum(upper, 5e-324)  # below the least double, but not 0
    answers[1][:, used], answers[2][:, used] = lower, upper


def _unknown(forward: Estimate, epsilon: FloatArray, logs: bool) -> Estimate:
    """What is known of the other direction where nothing was sampled: bounds that hold for any two laws."""
    zero, one, middle = (-math.inf, 0.0, -_LOG_2) if logs else (0.0, 1.0, 0.5)
    upper, value = (np.where(np.isinf(epsilon), zero, end) for end in (one, middle))
    return Estimate(
        value, np.full(epsilon.shape, zero), upper, kind="statistical", unit=forward.unit, method=forward.method,
        confidence=forward.confidence, cost={**forward.cost, "samples": 0, "replicates": 0, "stages": 0,
                                             "stopped": "interrupted", "repeatable": False},
    )  # fmt: skip


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def _late(request: Request) -> Callable[[], bool]:
    """Whether the search for a proposal has had its share of the time."""
    return lambda: request.clock.late(_SEARCH)


def _follow(
    answers: FloatArray, epsilon: FloatArray, done: NDArray[np.bool_], place: int, log_scale: float, logs: bool
) -> None:
    """No more is said of an epsilon than what its proposal and the bounds of smaller ones prove; its value lies below
    that as those of the last smaller one does below its own upper end."""
    before = np.flatnonzero(done & (epsilon <= epsilon[place]))
    proved = log_scale if logs else math.exp(min(log_scale, 0.0))
    upper = np.minimum(answers[2][:, before].min(axis=1, initial=0.0 if logs else 1.0), proved)
    answers[2][:, place] = upper
    if not before.size:
        answers[0][:, place] = upper - _LOG_2 if logs else 0.5 * upper
        return
    value, most = (row[:, before[np.argmax(epsilon[before])]] for row in (answers[0], answers[2]))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = upper + np.minimum(value - most, 0.0) if logs else upper * np.minimum(value / most, 1.0)
    answers[0][:, place] = np.where(np.isnan(found), upper, found)


def _in_the_tail(p: GaussianMixture, q: GaussianMixture, epsilon: float, request: Request) -> bool:
    """Whether samples of both laws would hardly hit either divergence."""
    late = _late(request)
    return min(log_hockey_stick_upper_bound(*laws, epsilon, late) for laws in ((p, q), (q, p))) < _TAIL


def _tilted(p: Any, q: Any, pair: Pair, proposal: Proposal, row: Row) -> Problem:
    """All three laws in common coordinates, in which the proposal's density is scaled to bound the integrand by 1."""
    packs = pack_together(p, q, proposal.mixture).packs
    common = dataclasses.replace(pair, p=packs[0], q=packs[1])
    return proposed(common, proposal.mixture, packs[2], proposal.log_scale, Integrand((row,), 0.0, 1.0))


def _between(p: Any, q: Any, pair: Pair, known: Between, row: Row) -> Problem:
    """Samples of the normals of all pairs, over which the integrand has a range that is far from 0."""
    assert known.mixture is not None
    zeros = np.zeros(len(p))
    found = _tilted(p, q, pair, Proposal(known.mixture, known.log_scale, True, zeros, zeros), row)
    low, high = math.exp(-known.fuzz) / known.pairs, math.exp(known.fuzz)
    return dataclasses.replace(found, integrand=Integrand((row,), low, high))


def _narrowed(p: Any, q: Any, pair: Pair, proposal: Proposal, row: Row) -> Iterator[Problem]:
    """The tilted law alone, and with normals as narrow as the integrand beside it where that can be worth its cost."""
    yield _tilted(p, q, pair, proposal, row)
    narrow = corners(p, q, proposal.lead) if proposal.lead is not None else None
    if narrow is None:
        return
    *packs, beside = pack_together(p, q, proposal.mixture, narrow.law).packs
    common = dataclasses.replace(pair, p=packs[0], q=packs[1])
    alone = proposed(common, proposal.mixture, packs[2], proposal.log_scale, Integrand((row,), 0.0, 1.0))
    found = accompanied(alone, narrow.law, beside, proposal.log_scale)
    if narrow.gain * alone.effort > _WORTH * found.effort:
        yield found


def _hockey_goal(log_scale: float, logs: bool) -> Goal:
    def log_of(mean: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.minimum(np.log(np.maximum(mean, 0.0)) + log_scale, 0.0)

    if logs:
        return Goal(log_of, -math.inf, 0.0, scale=np.ones_like)
    if log_scale == 0.0:
        return Goal(lambda mean: mean, 0.0, 1.0)
    return Goal(lambda mean: np.exp(log_of(mean)), 0.0, 1.0)


def _shared(request: Request, index: int, share: float, spent: int) -> Request:
    """This group's part of what is left, and a root of its own."""
    if share == 1.0 and index == 0:
        return request
    root = SeedSequence(request.root.entropy, spawn_key=(*request.root.spawn_key, 7, index))
    clock = request.clock.part(share)
    return dataclasses.replace(
        request, root=root, max_samples=max(FEWEST_SAMPLES, int((request.max_samples - spent) * share)),
        max_seconds=clock.seconds, clock=clock,
    )  # fmt: skip


def _merged(outcomes: list[Outcome], answers: FloatArray) -> Outcome:
    """One outcome for all groups of epsilons."""
    stops = [found.stopped for found in outcomes]
    worst = next((stop for stop in ("interrupted", "max_seconds", "max_samples") if stop in stops), "target")
    words = sorted({(found.law, found.points) for found in outcomes})
    return dataclasses.replace(
        outcomes[0], answers=tuple(row.reshape(-1) for row in answers), law="/".join(sorted({law for law, _ in words})),
        points="/".join(sorted({points for _, points in words})), stopped=worst,
        samples=sum(found.samples for found in outcomes), replicates=sum(found.replicates for found in outcomes),
        stages=max(found.stages for found in outcomes), repeatable=all(found.repeatable for found in outcomes),
    )  # fmt: skip


def _drawn(pair: Pair, *, both: bool) -> Pair:
    """The pair, if there are samples of P, and of Q where ``both`` are drawn from."""
    for name, draws in (("p", pair.draws_p), ("q", pair.draws_q))[: 1 + both]:
        if not draws:
            raise DomainError(
                f"{name} must have a sampler for this quantity; got none. "
                f"Pass Density(log_density, sampler, ...){' or LogRatio(..., sampler_q=...)' if name == 'q' else ''}."
            )
    return pair


def _run(problems: list[Problem], request: Request, goal: Goal, cut: Cut | None = None) -> Outcome:
    """The run that was asked for; where too few samples carry the answer of a tilted law, the one that always holds."""
    if request.interval == "guaranteed":
        return run_guaranteed(problems, request, goal, cut)
    found = run(problems, request, goal)
    if found.law == "tilted" and found.top is not None and found.stopped != "interrupted":
        if tail_verdict(found.top.index()) == "unknown":
            proved = run_guaranteed(problems, request, goal, cut)
            return dataclasses.replace(proved, samples=proved.samples + found.samples)
        found.top = None  # bounded: no tail to speak of
    return found


def _allowed(problems: list[Problem], request: Request) -> list[Problem]:
    """The problems of the law that was forced; an error says which laws there are."""
    chosen = [problem for problem in problems if request.law in (None, problem.law)]
    if not chosen:
        have = ", ".join(sorted({problem.law for problem in problems}))
        raise DomainError(f"method must name a law of this pair ({have}); got {request.law!r}. Take one of these.")
    return chosen


def _smaller(p: Any, q: Any) -> tuple[Any, ...]:
    """Mixtures in as few dimensions as tell them apart, in units in which they are of ordinary size."""
    if isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture):
        found = subspace(p, q)
        return in_common_units(*(found.mixtures if found is not None else (p, q)))
    return p, q


def _gap(p: Any, q: Any) -> float:
    """How far weights may be from those of a law; samples are of the normalised ones."""
    return 2.0 * sum(law.mass_gap for law in (p, q) if isinstance(law, GaussianMixture))


def _estimate(
    outcome: Outcome, request: Request, unit: Unit, shape: tuple[int, ...], gap: float,
    known: Callable[[], FloatArray] | None = None, names: tuple[str, str] = ("p", "q"),
    widened: bool = False,
) -> Estimate:  # fmt: skip
    value, lower, upper = (np.array(numbers, dtype=np.float64).reshape(shape) for numbers in outcome.answers)
    if outcome.top is not None and outcome.law != "tilted" and np.isfinite(value).all():
        upper = _doubted(outcome, upper)
    if known is not None and (np.isinf(value) | (np.isinf(upper) & (request.side != "lower"))).any():
        # Sums overflow only where laws are so far apart that the nearest component decides, and there the proved upper
        # end is the divergence to 1e-12: the best estimate.
        value, lower, upper = (np.clip(number, *known()) for number in (value, lower, upper))
    if request.side != "lower" and (np.isinf(upper) & np.isfinite(value)).any():
        _unbounded(outcome, request)
    if gap:
        slack = np.where(lower < upper, gap * (1.0 + np.abs(value)), 0.0)
        lower, upper = lower - slack, upper + slack
        lower = np.maximum(lower, 0.0) if unit != "nats" or (value >= 0).all() else lower
        upper = np.minimum(upper, 1.0) if unit == "probability" else upper
    if not widened:
        narrow = (lower == upper) & np.isfinite(value)  # narrower than doubles tell
        lower = np.where(narrow, _moved(lower, -1.0, unit), lower)
        upper = np.where(narrow, _moved(upper, 1.0, unit), upper)
    if outcome.integrals is not None:
        warned_of(outcome.integrals, *names, of_p=outcome.law == "direct")
    return Estimate(
        value, lower, upper, kind="statistical", unit=unit, method=outcome.method, confidence=request.confidence,
        cost=outcome.cost,
    )  # fmt: skip


def _moved(end: FloatArray, side: float, unit: Unit) -> FloatArray:
    """An end moved outward by some roundings, but not out of the range of the unit."""
    with np.errstate(invalid="ignore"):
        moved = np.where(np.isfinite(end), np.nextafter(end + side * 2.0**-50 * np.abs(end), side * math.inf), end)
    if unit == "log probability":
        return np.minimum(moved, 0.0)
    return np.clip(moved, 0.0, 1.0) if unit == "probability" else moved


def _doubted(outcome: Outcome, upper: FloatArray) -> FloatArray:
    """Warn where the tail of what was averaged may have no variance; no upper end where it may have no mean."""
    assert outcome.top is not None
    index = outcome.top.index()
    verdict = tail_verdict(index)
    if verdict == "holds":
        return upper
    worst = float(np.nanmax(index)) if np.isfinite(index).any() else math.inf
    what = "may not hold" if verdict == "warn" else "cannot be known: the upper end is infinite"
    warned(
        f"the log ratio must have a light tail for an interval to hold; its tail index is {worst:.2f} (0.5 is an "
        f"infinite variance), so the interval {what}. Draw from a law with heavier tails, or take the lower end alone."
    )
    return np.full_like(upper, math.inf) if verdict == "unknown" else upper


def _unbounded(outcome: Outcome, request: Request) -> None:
    """Say why there is no upper end, where the tail did not say it."""
    others = "or take a bounded quantity: a total variation, hockey-stick or Jensen-Shannon divergence."
    if request.interval == "guaranteed":
        warned(
            "interval='guaranteed' needs a bound of what is averaged for an upper end, and nothing bounds the log "
            "ratio of these laws: the upper end is infinite. Take interval='replicates', side='lower', " + others
        )
    elif outcome.equal:
        warned(
            f"all {outcome.samples} samples have the same log ratio, so that nothing tells how far it goes where no "
            "sample fell: the upper end is infinite. Sample both laws (method='balanced'), take side='lower', " + others
        )
