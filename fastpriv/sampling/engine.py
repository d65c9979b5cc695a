"""The run: a pilot picks the way, stages of replicates follow until target or budget, and every stop is honest.

A stage is R independent replicates of n points each. The interval of a look spends its own part of the level, so that
stopping at the first look that meets the target keeps the level. Stages are combined with weights fixed by their
numbers of points. The same request gives the same bits for any number of threads, unless the clock or an interruption
had a say: ``cost["repeatable"]``.
"""

# bounds: none - how many samples are planned

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .._parallel import ordered_map
from ..distributions.packed import Packed
from ..errors import DomainError
from .options import Request
from .problem import Problem
from .replicates import SegmentSum, allocated, batch_values, others_drawn, probes_needed, probes_wanted, segments
from .sobol import DIMENSIONS
from .stages import (
    PILOT_SHARE,
    RATES,
    REPLICATES,
    SECOND_REPLICATES,
    Answers,
    Goal,
    Reference,
    Stage,
    confidence_at,
    constant,
    equal,
    interval,
    net,
    planned,
    refining,
    shared,
)
from .statistics.normalisation import Integrals, RatioSums
from .statistics.tail_index import PointMoments, TopValues

__all__ = ["Outcome", "compared", "joined", "pace", "run"]


PILOT_REPLICATES = 16
MANY, MANY_FROM = 128, 1024  # replicates where there are points enough and nothing is lost: a better known spread
PILOT_POINTS = 2**10
LOOSE_POINTS = 2**8  # of one where rtol is at least LOOSE: less than this would mistake what pays in long runs
LOOSE = 3e-3
PILOT_COST = 2.0**22  # components times coordinates times points of a pilot's replicate
PROBE_SHARE = 4  # of what is left; a component that no probe looks at may carry the answer
PILOT_TIME, ALLOCATION = 0.5, 0.25  # of the time
POINTS_TRIED = ("sobol", "antithetic")
FEWEST = 4  # replicates that make an interval when a stage is cut short
FIRST_POINTS = 1024
REST = 0.125  # of the points so far: nets of less would add more error than points
CONSTANT = 2**17  # equal values after which no more of them are asked for, where no number of them bounds their mean
ALONE = 2.0**25  # work, in the unit of SEGMENT_COST, that is over before a second thread would have begun
OTHERS, MOST_OTHERS = 8, 2**16  # one sample of Q for so many of P to compare their integrals, and at most
LAST = 0.25  # of the time that is left, for these
PROBE, BRIEF = 8, 0.005  # points that are timed before the pilot; seconds that say too little
MORE, TRIES, SPARE = 32, 3, 0.05  # times as many if these are brief; tries, while they take this share of the time


@dataclass
class Outcome:
    """What a run ended with, and how."""

    answers: Answers
    law: str
    points: str
    stopped: str
    samples: int
    replicates: int
    stages: int
    top: TopValues | None
    repeatable: bool = True
    equal: bool = False
    integrals: Integrals | None = None  # what the run says of the normalisation of densities known to their owner alone

    @property
    def method(self) -> str:
        """A line for ``Estimate.method``."""
        return f"{self.law} {self.points} sampling"

    @property
    def cost(self) -> dict[str, object]:
        """For ``Estimate.cost``."""
        return {
            "samples": self.samples, "replicates": self.replicates, "stages": self.stages, "stopped": self.stopped,
            "repeatable": self.repeatable,
        }  # fmt: skip


@dataclass
class _Run:
    """Budget, clock and what was collected so far."""

    request: Request
    samples: int = 0
    sampled_for: float = 0.0
    cost_done: float = 0.0
    interruptions: int = 0
    moments: PointMoments | None = None
    top: TopValues | None = None
    ratios: RatioSums | None = None

    @property
    def left(self) -> int:
        return self.request.sample_budget - self.samples

    def interrupted(self) -> bool:
        return self.interruptions > 0

    def stage(
        self, problem: Problem, points: str, key: tuple[int, ...], replicates: int, n: int, *, pilot: bool = False
    ) -> Stage:
        """As many of the replicates as time allows, FEWEST at least; fewer when interrupted."""
        work = segments(problem, points, self.request.root, key, replicates, n, looks=not pilot)
        sums = np.zeros((replicates, problem.integrand.size))
        complete, began = 0, time.monotonic()
        ratios: RatioSums | None = None
        results = ordered_map(
            work.summed, range(len(work)), n_jobs=self.request.n_jobs, progress=self.request.progress,
            brief=work.cost <= ALONE,
        )  # fmt: skip
        try:
            for segment, found in zip(work, results, strict=True):
                end = segment.begin + segment.count
                sums[segment.begin : end] += found.sums
                self._watch(found)
                ratios = joined(ratios, found.ratios)
                self.samples += segment.count * (segment.last - segment.first)
                if segment.last == n:
                    complete = end
                    if complete >= FEWEST and self.request.deadline.expired():
                        break
        except KeyboardInterrupt:
            self.interruptions += 1
        finally:
            results.close()
        self.sampled_for += time.monotonic() - began
        self.cost_done += complete * n * problem.cost
        if not pilot:
            self.ratios = joined(self.ratios, ratios)
        return Stage(sums[:complete] / n, n, _independent(problem, points), ratios)

    def _watch(self, found: SegmentSum) -> None:
        if found.moments is None:
            return
        if self.moments is None:
            self.moments, self.top = found.moments, found.top
            return
        self.moments.merge(found.moments)
        if self.top is not None and found.top is not None:
            self.top.merge(found.top)

    def affordable(self, problem: Problem) -> float:
        """Points that the rest of the time should allow, by the pace so far."""
        if not self.cost_done:
            return math.inf
        return 0.8 * self.request.deadline.remaining * self.cost_done / self.sampled_for / problem.cost

    def limited(self, problem: Problem, points: float, share: float = 1.0) -> float:
        """``points``, or what this share of the time allows, at least 1."""
        able = share * self.affordable(problem)
        if able >= points:
            return points
        self.request.deadline.mark_affected()
        return max(able, 1.0)


def run(problems: Sequence[Problem], request: Request, goal: Goal) -> Outcome:
    """Estimate the means of the integrands of one of the problems, all of which have the same answer.

    An interruption ends the run with what was reached; ``KeyboardInterrupt`` is raised only before anything could be
    said.
    """
    work = _Run(request)
    sampled = _Sampled(problems[0])
    try:
        sampled.stopped = _sample(work, sampled, problems, goal)
        if sampled.answers is None and sampled.pilot is None:
            raise KeyboardInterrupt
        if not work.interrupted():
            sampled.integrals = compared(sampled.problem, work.ratios, request)
    except KeyboardInterrupt:
        work.interruptions += 1
    answers = sampled.answers
    if answers is None:
        if sampled.pilot is None:
            raise KeyboardInterrupt
        answers = goal.answers(interval(sampled.problem, [sampled.pilot], request.confidence, request, None))
    stages = sampled.stages
    return Outcome(
        answers, sampled.problem.law, sampled.points, "interrupted" if work.interrupted() else sampled.stopped,
        work.samples, sum(len(stage.means) for stage in stages), len(stages), work.top,
        not (request.deadline.affected or work.interrupted()), equal=bool(equal(stages).any()) if stages else False,
        integrals=sampled.integrals,
    )  # fmt: skip


@dataclass
class _Sampled:
    """What a run has come to: an interruption leaves it as it is."""

    problem: Problem
    points: str = "plain"
    pilot: Stage | None = None
    stages: list[Stage] = field(default_factory=list)
    answers: Answers | None = None
    integrals: Integrals | None = None
    stopped: str = ""


def _sample(work: _Run, sampled: _Sampled, problems: Sequence[Problem], goal: Goal) -> str:
    """Pilot, allocation and stages; why there are no more of them."""
    request = work.request
    work.cost_done, work.sampled_for = pace(max(problems, key=lambda problem: problem.cost), request)
    _pick(work, sampled, goal, [(x, points) for x in problems for points in _points(x, request)])
    if work.interrupted():
        return "interrupted"
    problem, points, pilot = sampled.problem, sampled.points, sampled.pilot
    flat = pilot is not None and _flat(problem, pilot)
    reference = None if pilot is None or flat else planned(goal, problem, pilot, request)
    if points != "plain":
        probes = min(work.left // PROBE_SHARE, probes_wanted(problem))
        if reference is not None and not request.spends_everything:
            expected = REPLICATES * reference.points(request, points, 1, REPLICATES)
            probes = min(probes, max(int(expected) // PROBE_SHARE, probes_needed(problem)))
        chosen, spent = allocated(problem, request.root, (2,), int(work.limited(problem, probes, ALLOCATION)))
        work.samples += spent
        if flat and chosen is problem and request.points is None and problem.has_components:
            points = "plain"  # independent points prove more where nothing varies
        problem = chosen
    if pilot is not None and reference is not None:
        n = 0 if request.spends_everything else refining(reference, points, request)
        many = n * SECOND_REPLICATES * PILOT_SHARE
        if n > pilot.n and many <= work.left and work.limited(problem, many) >= many:
            second = work.stage(problem, points, (5,), SECOND_REPLICATES, n, pilot=True)
            if work.interrupted():
                return "interrupted"
            if len(second.means) >= FEWEST:
                pilot, reference = second, planned(goal, problem, second, request)
    sampled.problem, sampled.points, sampled.pilot = problem, points, pilot
    stages = sampled.stages
    while True:
        replicates, n = _size(work, problem, points, reference, len(stages) + 1)
        if n == 0:
            return "max_samples"
        found = work.stage(problem, points, (3, len(stages)), replicates, n)
        every = 0
        if len(found.means) >= min(FEWEST, replicates):
            level = request.confidence
            if not request.spends_everything:
                level = confidence_at(level, len(stages) + 1)
            answers = goal.answers(interval(problem, [*stages, found], level, request, work.moments))
            stages.append(found)
            sampled.answers = answers
            count = max(len(stage.means) for stage in stages)
            every = sum(stage.n * len(stage.means) for stage in stages)
            flat = _flat(problem, *stages)
            reference = Reference(every / count, goal.excess(answers, request), level, count, flat)
        if work.interrupted():
            return "interrupted"
        if reference is not None and stages and reference.excess <= 1.0:
            return "target"
        if every >= CONSTANT and _hopeless(problem, stages, request):
            return "constant"
        if work.affordable(problem) < FEWEST or request.deadline.expired():
            request.deadline.mark_affected()
            return "max_seconds"


def pace(problem: Problem, request: Request) -> tuple[float, float]:
    """Cost and seconds of a few points that count for nothing, so that no stage is begun that can't be ended."""
    if math.isinf(request.max_seconds):
        return 0.0, 0.0
    spare = SPARE * request.max_seconds
    for count in (PROBE, MORE * PROBE, MORE**2 * PROBE):
        seconds = math.inf
        for _ in range(TRIES):  # the first call may wait for an import, any for a busy machine
            began = time.monotonic()
            batch_values(problem, request.root, (8,), 1, count)
            seconds = min(seconds, time.monotonic() - began)
            if seconds <= BRIEF or seconds > spare:
                break
        if (MORE * seconds > spare) if seconds > BRIEF else (count > PROBE):  # else it is mostly what a call costs
            break
    return count * problem.cost, max(seconds, 1e-9)


def compared(problem: Problem, ratios: RatioSums | None, request: Request) -> Integrals | None:
    """What all samples, and a few of Q where they are of P alone, say of the integrals of the densities."""
    if ratios is None or problem.doubted:
        return None
    if problem.others:
        n = min(sum(ratios.counts) // OTHERS, MOST_OTHERS)
        if math.isfinite(request.deadline.seconds):
            gone = max(request.deadline.seconds - request.deadline.remaining, 1e-9)
            able = int(min(LAST * request.deadline.remaining * sum(ratios.counts) / gone, 2.0 * n))
            if able < n:
                request.deadline.mark_affected()
                n = able
        others_drawn(problem, request.root, (10,), n, ratios)
    return ratios.compared()


def joined(ratios: RatioSums | None, new: RatioSums | None) -> RatioSums | None:
    """Both together, as a collector of its own."""
    if new is None:
        return ratios
    found = RatioSums(one_sided=new.one_sided)
    if ratios is not None:
        found.merge(ratios)
    found.merge(new)
    return found


def _independent(problem: Problem, points: str) -> bool:
    """Whether the points of a replicate are independent: strata and nets make them depend on each other."""
    strata = any(isinstance(part.source, Packed) and len(part.weights) > 1 for part in problem.parts)
    return points == "plain" or (points == "random" and not strata)


def _flat(problem: Problem, *stages: Stage) -> bool:
    """Whether nothing varies in a range that is known."""
    integrand = problem.integrand
    known = math.isfinite(integrand.low) and math.isfinite(integrand.high)
    return known and integrand.rows[0].name != "renyi_proposal" and constant(list(stages))


def _hopeless(problem: Problem, stages: list[Stage], request: Request) -> bool:
    """Whether values are all equal that have no bound above: no number of them gives an upper end."""
    wanted = request.side != "lower" and not request.spends_everything
    return wanted and math.isinf(problem.integrand.high) and bool(equal(stages).any())


def _points(problem: Problem, request: Request) -> tuple[str, ...]:
    """The point sets to choose from."""
    if not problem.has_components:
        return ("random",)
    if problem.dimension <= DIMENSIONS:
        return POINTS_TRIED if request.points is None else (request.points,)
    if request.points == "sobol":
        raise DomainError(
            f"method must name other points than sobol in more than {DIMENSIONS} dimensions; got {problem.dimension} "
            "dimensions. Leave the points to method='auto', or write antithetic or random."
        )
    return tuple(one for one in POINTS_TRIED if one != "sobol") if request.points is None else (request.points,)


def _pick(work: _Run, sampled: _Sampled, goal: Goal, candidates: list[tuple[Problem, str]]) -> None:
    """The candidate with the smallest variance times cost, by a pilot whose points count for nothing else."""
    request = work.request
    sampled.problem, sampled.points = candidates[0]
    if len(candidates) == 1 and request.spends_everything:
        return
    lowest = math.inf
    for index, (rival, rival_points) in enumerate(candidates):
        most = LOOSE_POINTS if request.rtol >= LOOSE else PILOT_POINTS
        n = min(most, 2 ** max(5, int(PILOT_COST / rival.cost).bit_length()))
        n = min(n, request.sample_budget // (PILOT_SHARE * len(candidates) * PILOT_REPLICATES) // 4 * 4)
        if n < 16:
            break
        affordable = work.limited(rival, PILOT_REPLICATES * n, PILOT_TIME / len(candidates))
        n = max(4, int(affordable) // PILOT_REPLICATES // 4 * 4)
        stage = work.stage(rival, rival_points, (1, index), PILOT_REPLICATES, n, pilot=True)
        score = _score(stage, rival, rival_points, goal, request) if len(stage.means) >= FEWEST else math.inf
        if len(stage.means) >= FEWEST and (sampled.pilot is None or score < lowest):
            sampled.problem, sampled.points, sampled.pilot, lowest = rival, rival_points, stage, score
        if work.interrupted() or request.deadline.expired(PILOT_TIME):
            break


def _score(stage: Stage, problem: Problem, points: str, goal: Goal, request: Request) -> float:
    """Log of variance times cost at the end of the run, averaged over the answers; infinite where nothing was seen."""
    if not np.isfinite(stage.means).all() or not stage.means.any(axis=0).all():
        return math.inf
    if equal([stage]).any() and math.isinf(problem.integrand.high):
        return math.inf  # no number of equal values bounds their mean
    size = np.abs(stage.means).max(axis=0)  # so that squares do not overflow
    variance = np.log(np.maximum((stage.means / size).var(axis=0, ddof=1), 1e-300)) + 2.0 * np.log(size)
    growth = request.sample_budget / (REPLICATES * stage.n)
    if not request.spends_everything:
        reference = planned(goal, problem, stage, request)
        growth = min(growth, reference.points(request, points, 1, REPLICATES) / stage.n)
    gain = (RATES[points] - 1.0) * math.log(max(growth, 1.0))  # over points whose variance falls like 1 / n
    return float(variance.mean()) + math.log(problem.effort) - gain


def _size(
    work: _Run, problem: Problem, points: str, reference: Reference | None, look: int
) -> tuple[int, int]:
    """Replicates and points of each for the next stage; no points when the budget is spent."""
    request, left = work.request, work.left
    least = problem.unit * (2 if points == "antithetic" else 1)
    if points == "sobol" and look > 1 and reference is not None and left < REST * reference.n * reference.replicates:
        return 0, 0
    most = left // REPLICATES // least * least
    if most < 1:  # fewer samples than replicates need
        return (left // least, least) if look == 1 and left >= 2 * least else (0, 0)
    wanted, replicates = float(min(FIRST_POINTS, max(64, most // 4))), REPLICATES
    if request.spends_everything and (reference is not None or math.isinf(request.max_seconds)):
        wanted = math.inf
    elif reference is not None and reference.excess < math.inf:
        if points == "sobol":
            replicates, wanted = net(reference, request, look)
        else:
            wanted = reference.wanted(request, points, look, REPLICATES)
            if min(wanted, most) >= MANY_FROM:
                replicates, wanted = MANY, reference.wanted(request, points, look, MANY)
    elif reference is not None:
        wanted = 4.0 * reference.n
    if points == "sobol":
        wanted = math.inf if math.isinf(wanted) else 2.0 ** math.ceil(math.log2(max(wanted, least)))
        total = work.limited(problem, min(replicates * wanted, left))
        return shared(total, least) if total < replicates * wanted else (replicates, int(wanted))
    most = left // replicates // least * least
    n = int(min(max(work.limited(problem, replicates * min(wanted, most)) / replicates, float(least)), most))
    step = 4 if n >= 4 and 4 % least == 0 else least  # even halves: pairs stay together
    return replicates, n // step * step
