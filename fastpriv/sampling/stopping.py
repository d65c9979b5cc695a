"""The run: a pilot picks distribution and points, stages of replicates follow until target or budget are reached.

A stage is R independent replicates of n points each. The interval of an interim analysis spends its own part of the
level, so that stopping at the first analysis that meets the target keeps the level. Stages are combined with weights
fixed by their numbers of points. The same request gives the same bits for any number of threads, unless the time budget
or an interruption decided something: ``cost["repeatable"]``.
"""

# bounds: none - how many samples are planned

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..base.errors import DomainError
from ..base.executors import ordered
from ..distributions.packed import Packed
from . import allocation
from .estimand import Estimand, Stage, ValueAndBounds, all_means_constant, interval, replicates_equal
from .options import Request
from .problem import SamplingProblem
from .replicates import SegmentSum, add_q_samples, batch_values, empty_sums, segments
from .sobol import DIMENSIONS
from .statistics.normalisation import IntegralComparison, LogRatioSums
from .statistics.tail_index import LargestValues

PILOT_REPLICATES = 16  # of each problem that the pilot compares
PILOT_TIME = 0.5  # share of the time that pilots may take
MIN_REPLICATES = 4  # that make an interval when a stage is cut short
BRIEF_COST = 2.0**25  # work, in the unit of SEGMENT_COST, that is over before a second thread would have begun


@dataclass
class RunOutcome:
    """What a run ended with, and how.

    ``replicates_equal`` says that those of a stage were; ``integrals`` compares the integrals of densities known to
    their owner alone; ``largest_values`` are there where the tail was monitored.
    """

    estimates: ValueAndBounds
    distribution: str
    points: str
    stopped: str
    samples: int
    replicates: int
    stages: int
    largest_values: LargestValues | None
    repeatable: bool = True
    replicates_equal: bool = False
    integrals: IntegralComparison | None = None

    @property
    def method(self) -> str:
        """A line for ``Estimate.method``."""
        return f"{self.distribution} {self.points} sampling"

    @property
    def cost(self) -> dict[str, object]:
        """For ``Estimate.cost``."""
        return {
            "samples": self.samples, "replicates": self.replicates, "stages": self.stages, "stopped": self.stopped,
            "repeatable": self.repeatable,
        }


@dataclass
class _SampledRun:
    """Samples stages within a budget; an interruption leaves what was reached unchanged."""

    request: Request
    estimand: Estimand
    problem: SamplingProblem
    points: str = "plain"
    pilot: Stage | None = None
    stages: list[Stage] = field(default_factory=list)
    statistics: SegmentSum | None = None  # of all stages but pilots
    estimates: ValueAndBounds | None = None
    samples: int = 0
    seconds: float = 0.0
    cost: float = 0.0  # that was sampled in these seconds
    interruption: bool = False

    def interrupted(self) -> bool:
        """Whether Ctrl-C was heard; a method, since type checkers take an attribute for unchanged."""
        return self.interruption

    @property
    def samples_left(self) -> int:
        return self.request.sample_budget - self.samples

    def stage(self, key: tuple[int, ...], replicates: int, n: int, *, pilot: bool = False) -> Stage:
        """As many of the replicates as time allows, MIN_REPLICATES at least; fewer when interrupted."""
        problem = self.problem
        work = segments(problem, self.points, self.request.root, key, replicates, n, collects_moments=not pilot)
        sums = np.zeros((replicates, problem.integrand.size))
        complete, began = 0, time.monotonic()
        statistics = empty_sums(problem, collects_moments=not pilot)
        request = self.request
        results = ordered(
            work.summed, range(len(work)), executor=request.executor, n_jobs=request.n_jobs,
            progress=request.progress, brief=work.cost <= BRIEF_COST,
        )
        try:
            for segment, segment_sum in zip(work, results, strict=True):
                end = segment.begin + segment.length
                sums[segment.begin : end] += segment_sum.sums
                statistics.merge_statistics(segment_sum)
                self.samples += segment.length * (segment.last - segment.first)
                if segment.last == n:
                    complete = end
                    if complete >= MIN_REPLICATES and self.request.time_budget.expired():
                        break
        except KeyboardInterrupt:
            self.interruption = True
        finally:
            results.close()
        self.seconds += time.monotonic() - began
        self.cost += complete * n * problem.cost
        strata = any(isinstance(source.distribution, Packed) and len(source.weights) > 1 for source in problem.sources)
        independent = self.points == "plain" or (self.points == "random" and not strata)  # as strata and nets are not
        stage = Stage(sums[:complete] / n, n, independent, statistics.log_ratios)
        if not pilot:
            total = empty_sums(problem, collects_moments=True) if self.statistics is None else self.statistics
            total.merge_statistics(statistics)
            self.statistics = total
        return stage

    def affordable(self) -> float:
        """Points that the rest of the time should allow, by the pace so far."""
        if not self.cost:
            return math.inf
        planned = 0.8 * self.request.time_budget.remaining  # the pace so far may slow down
        return planned * self.cost / self.seconds / self.problem.cost

    def limited(self, points: float, share: float = 1.0) -> float:
        """``points``, or what this share of the time allows, at least 1."""
        return self.request.time_budget.limited(points, max(share * self.affordable(), 1.0))

    def until_stopped(self, problems: Sequence[SamplingProblem]) -> str:
        """Run pilot, allocation and stages; return the reason for stopping."""
        request, estimand = self.request, self.estimand
        self.cost, self.seconds = measured_pace(max(problems, key=lambda problem: problem.cost), request)
        self._choose_by_pilot(problems)
        if self.interrupted():
            return "interrupted"
        reference = None
        constant = self.pilot is not None and _is_constant(self.problem, self.pilot)
        if self.pilot is not None and not constant:
            reference = allocation.planning_reference(estimand, self.problem, self.pilot, request)
        if self.points != "plain":
            # a quarter of the samples and of the time: a component without any may matter most
            probes = int(self.limited(min(self.samples_left // 4, allocation.probes_wanted(self.problem)), 0.25))
            chosen, spent = allocation.with_neyman_allocation(self.problem, request.root, (2,), probes)
            self.samples += spent
            if constant and chosen is self.problem and request.points is None and self.problem.has_components:
                self.points = "plain"  # independent points prove more where nothing varies
            self.problem = chosen
        stages = self.stages
        while True:
            replicates, n = self._next_stage_size(reference)
            if n == 0:
                return "max_samples"
            stage = self.stage((3, len(stages)), replicates, n)
            if len(stage.means) >= min(MIN_REPLICATES, replicates):
                stages.append(stage)
                reference = self._analysed()
            if self.interrupted():
                return "interrupted"
            if stages and reference is not None and reference.target_ratio <= 1.0:
                return "target"
            wanted = request.side != "lower" and not request.spends_everything  # an upper end
            if wanted and math.isinf(self.problem.integrand.high) and bool(replicates_equal(stages).any()) and (
                sum(stage.n * len(stage.means) for stage in stages) >= 2**17
            ):
                return "constant"  # no number of equal values would bound their mean
            if self.affordable() < MIN_REPLICATES or request.time_budget.expired():
                request.time_budget.mark_affected()
                return "max_seconds"

    def _analysed(self) -> allocation.PlanningReference:
        """The estimates of the interim analysis after these stages, and what the next stage is planned from."""
        request, stages, statistics = self.request, self.stages, self.statistics
        level = request.confidence
        level = level if request.spends_everything else allocation.interim_confidence(level, len(stages))
        moments = None if statistics is None else statistics.moments
        self.estimates = self.estimand.estimates(interval(self.problem, stages, level, request, moments))
        count = max(len(stage.means) for stage in stages)
        total = sum(stage.n * len(stage.means) for stage in stages)
        ratio = self.estimand.target_ratio(self.estimates, request)
        return allocation.PlanningReference(total / count, ratio, level, count, _is_constant(self.problem, *stages))

    def _choose_by_pilot(self, problems: Sequence[SamplingProblem]) -> None:
        """The problem with the smallest variance times cost, by a pilot whose points are not used again."""
        request = self.request
        self.points = _points(self.problem, request)
        if len(problems) == 1 and request.spends_everything and request.points is not None:
            return  # nothing is left open
        best, pilot, lowest = self.problem, None, math.inf
        for index, problem in enumerate(problems):
            most = 2**8 if request.rtol >= 3e-3 else 2**10  # fewer would mistake what pays in long runs
            n = min(most, 2 ** max(5, int(2.0**22 / problem.cost).bit_length()))
            n = min(n, request.sample_budget // (allocation.PILOT_SHARE * len(problems) * PILOT_REPLICATES) // 4 * 4)
            if n < 16:
                break
            self.problem, self.points = problem, _points(problem, request)
            affordable = self.limited(PILOT_REPLICATES * n, PILOT_TIME / len(problems))
            n = max(4, int(affordable) // PILOT_REPLICATES // 4 * 4)
            stage = self.stage((1, index), PILOT_REPLICATES, n, pilot=True)
            if len(stage.means) >= MIN_REPLICATES:
                score = self._pilot_score(stage)
                if pilot is None or score < lowest:
                    best, pilot, lowest = problem, stage, score
            if self.interrupted() or request.time_budget.expired(PILOT_TIME):
                break
        self.problem, self.points, self.pilot = best, _points(best, request), pilot

    def _pilot_score(self, stage: Stage) -> float:
        """Log of variance times cost at the end of the run, averaged over the answers; infinite where nothing was
        seen."""
        problem, request = self.problem, self.request
        if not np.isfinite(stage.means).all() or not stage.means.any(axis=0).all():
            return math.inf
        if replicates_equal([stage]).any() and math.isinf(problem.integrand.high):
            return math.inf  # no number of equal values bounds their mean
        size = np.abs(stage.means).max(axis=0)  # so that squares do not overflow
        variance = np.log(np.maximum((stage.means / size).var(axis=0, ddof=1), 1e-300)) + 2.0 * np.log(size)
        growth = request.sample_budget / (allocation.REPLICATES * stage.n)
        if not request.spends_everything:
            reference = allocation.planning_reference(self.estimand, problem, stage, request)
            growth = min(growth, reference.total_points(request, self.points, 1, allocation.REPLICATES) / stage.n)
        gain = (allocation.RATES[self.points] - 1.0) * math.log(max(growth, 1.0))  # over a variance like 1 / n
        return float(variance.mean()) + math.log(problem.effort) - gain

    def _next_stage_size(self, reference: allocation.PlanningReference | None) -> tuple[int, int]:
        """Replicates and points of each for the next stage; no points when the budget is spent."""
        request, left, analysis = self.request, self.samples_left, len(self.stages) + 1
        least = round(1.0 / min(source.share for source in self.problem.sources))  # every source gets its share exactly
        least *= 2 if self.points == "antithetic" else 1
        done = 0.0 if reference is None else reference.n * reference.replicates
        if self.points == "sobol" and analysis > 1 and left < done / 8:
            return 0, 0  # smaller nets would add more error than points
        replicates = allocation.REPLICATES
        most = left // replicates // least * least
        if most < 1:  # fewer samples than replicates need
            return (left // least, least) if analysis == 1 and left >= 2 * least else (0, 0)
        if request.spends_everything and (reference is not None or math.isinf(request.max_seconds)):
            wanted = math.inf
        elif reference is None:
            wanted = float(min(1024, max(64, most // 4)))  # there is nothing to plan from
        elif math.isinf(reference.target_ratio):
            wanted = 4.0 * reference.n
        elif self.points == "sobol":
            replicates, wanted = allocation.net_size(reference, request, analysis)
        else:
            wanted = reference.next_points(request, self.points, analysis, replicates)
        if self.points == "sobol":
            wanted = math.inf if math.isinf(wanted) else 2.0 ** math.ceil(math.log2(max(wanted, least)))
            total = self.limited(min(replicates * wanted, left))
            return allocation.split_budget(total, least) if total < replicates * wanted else (replicates, int(wanted))
        n = int(min(max(self.limited(replicates * min(wanted, most)) / replicates, float(least)), most))
        step = 4 if n >= 4 and 4 % least == 0 else least  # even halves: antithetic pairs stay together
        return replicates, n // step * step


def run(problems: Sequence[SamplingProblem], request: Request, estimand: Estimand) -> RunOutcome:
    """Estimate the means of the integrands of one of the problems, all of which have the same answer.

    An interruption ends the run with what was reached; ``KeyboardInterrupt`` is raised only before anything could be
    said.
    """
    state, stopped, integrals = _SampledRun(request, estimand, problems[0]), "interrupted", None
    try:
        stopped = state.until_stopped(problems)
        statistics = state.statistics
        if not state.interrupted() and statistics is not None:
            integrals = compare_normalisation(state.problem, statistics.log_ratios, request)
    except KeyboardInterrupt:
        state.interruption = True
    estimates, stages = state.estimates, state.stages
    if estimates is None:
        if state.pilot is None:
            raise KeyboardInterrupt
        estimates = estimand.estimates(interval(state.problem, [state.pilot], request.confidence, request, None))
    return RunOutcome(
        estimates, state.problem.distribution, state.points, "interrupted" if state.interrupted() else stopped,
        state.samples, sum(len(stage.means) for stage in stages), len(stages),
        None if state.statistics is None else state.statistics.largest_values,
        not (request.time_budget.affected or state.interrupted()),
        replicates_equal=bool(replicates_equal(stages).any()) if stages else False, integrals=integrals,
    )


def measured_pace(problem: SamplingProblem, request: Request) -> tuple[float, float]:
    """Cost and seconds of a few points that count for nothing, so that no stage begins that cannot end in time."""
    if math.isinf(request.max_seconds):
        return 0.0, 0.0
    factor, enough, spare = 32, 0.005, 0.05 * request.max_seconds  # of seconds: less says too little, more costs much
    for count in (8, 8 * factor, 8 * factor**2):
        seconds = math.inf
        for _ in range(3):  # the first call may wait for an import, any for a busy machine
            began = time.monotonic()
            batch_values(problem, request.root, (8,), 1, count)
            seconds = min(seconds, time.monotonic() - began)
            if seconds <= enough or seconds > spare:
                break
        too_long = factor * seconds > spare
        if too_long if seconds > enough else count > 8:  # else it is mostly what a call costs
            break
    return count * problem.cost, max(seconds, 1e-9)


def compare_normalisation(
    problem: SamplingProblem, log_ratios: LogRatioSums | None, request: Request
) -> IntegralComparison | None:
    """Compare the integrals of the densities, by all samples and a few of Q where they are of P alone."""
    if log_ratios is None:
        return None
    if problem.q_sources:
        n = min(sum(log_ratios.counts) // 8, 2**16)
        time_budget = request.time_budget
        if math.isfinite(time_budget.seconds):
            elapsed = max(time_budget.seconds - time_budget.remaining, 1e-9)
            n = int(time_budget.limited(n, 0.25 * time_budget.remaining * sum(log_ratios.counts) / elapsed))
        add_q_samples(problem, request.root, (10,), n, log_ratios)
    return log_ratios.comparison()


def _is_constant(problem: SamplingProblem, *stages: Stage) -> bool:
    """Whether all values are equal and their range is known."""
    integrand = problem.integrand
    return integrand.bounded and integrand.terms[0].name != "renyi_proposal" and all_means_constant(list(stages))


def _points(problem: SamplingProblem, request: Request) -> str:
    """The point set: nets as far as there are any, unless another one is requested."""
    if not problem.has_components:
        return "random"
    if request.points == "sobol" and problem.dimension > DIMENSIONS:
        raise DomainError(
            f"method must name other points than sobol in more than {DIMENSIONS} dimensions; got {problem.dimension} "
            "dimensions. Leave the points to method='auto', or write antithetic or random."
        )
    return request.points or ("sobol" if problem.dimension <= DIMENSIONS else "antithetic")
