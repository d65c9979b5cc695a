"""Posteriors of a domain with one log likelihood a secret: two passes over fixed blocks, in one process or many.

Notation: u = 2^-53; l_d log likelihood, pi_d prior over its sum, t_d = log pi_d + l_d, Z = sum e^t, y_d = l_d - log Z =
log of posterior over prior. The first pass gives maxima, log Z and the entropy, the second KL, Jensen-Shannon and the
posterior, by csrc/posterior/fp_posterior.h. S = sum of e^(t - top), m = E(top - t) and H the entropy, under the
posterior; q = sqrt(2 KL) + KL, which E|y| does not exceed: for y < 0 the sum of post |y| is at most that of pi - post,
and Pinsker's inequality gives the rest. All bounds count the roundings of each term, and those of the sums: 32
additions in a lane, 16 from lanes to a tile, and none from there on, where sums are pairs of doubles.

First pass. t is off by u (1 + 4 |t| + 2 |most - shift|) at most, by nothing under a uniform prior; e^(t - top) then by
a factor of 1 + u (A + B |t - top|). Sums are relative to a reference r, |r - top| <= 2: of A, 12 are for t - r, r - top
and e^(r - top), and 3/4 log n for scaling by e^-4 or less, three roundings each: among n secrets, what was scaled more
than log(n) / 4 times adds less than one of them. S is off by u (A + 40) (1 - ties/S) + u B m, and the entropy
log S + m by as much, and by the errors of m, a difference of terms that are larger by 2 (1 - ties/S) together, for
which E (t - top)^2 <= H min(690, 2 log n + 4 log^2 n / (n H)) serves.

Second pass. w e^y is off by a factor of 1 + u (3.2 |y| + 6), the excess e = sum w (e^y - 1), hence the corrected log Z,
by 70 u q. Terms of KL are off by u (460 + 4 y) times themselves and those of JS by u (370 + 8 y): the largest factors
stand at |y| = 1/2, where series give way to logarithms; there the first order of an error of y is counted. KL follows
from its sum and e; the sum for JS is too large by e^2/8, and by at most e JS + e^2 q.

A prior that misses 1 by g is one relative error of the whole vector (``validate``); the posterior does not depend on
it. The log Z and y of the prior as it was given are off by g at most, KL as a divergence of measures by g^2, JS by
g JS + g^2. Likelihoods that are no logarithms cost 8 u |l| more in each l.
"""

# bounds: proved - counted at the head of the file, given the ulps of exp and log in csrc/special/fp_elementary.h, which
#    are tested

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError, NotConvergedError
from ..base.estimate import Estimate, Unit, exact
from ..base.numerics import LOG_2_ABOVE, MACHINE_EPSILON, UNIT_ROUNDOFF, FloatArray, IntArray
from ..channels.likelihoods import DenseLikelihood
from ..channels.vector_sources import BLOCK, SourceError
from ..kernels import _posterior
from .block_tree import BlockTree, Node
from .blocks import Block, LikelihoodAndPrior, PosteriorOutput, no_secrets
from .result import Options, Posterior, Top

__all__ = [
    "Evidence", "FirstPassSums", "Mode", "PosteriorCheckpoint", "check_same", "divergence_tree", "evidence_of",
    "evidence_tree", "first_pass", "largest_of", "mode", "posterior", "result_of", "second_pass",
]  # fmt: skip

_CONSISTENT = 1e-6  # relative difference of the evidences of both passes beyond which the likelihood has changed
# Remedy in the error of a pass that ended early.
_RESUME = "What was computed is in the attribute best of this error: pass it on as resume=error.best."


class FirstPassSums(NamedTuple):
    """Sums of one or several blocks, as the kernels return them; t is relative to the shift."""

    top: float  # the largest t
    ties: float  # how many secrets have it
    most: float  # the largest log likelihood
    least: float  # the smallest one
    map_index: float  # the first secret whose t is the largest
    most_index: float
    least_index: float
    mass_high: float  # sum of the prior, a pair of doubles as the next two
    mass_low: float
    rest_high: float  # sum of e^(t - reference) over the secrets that are no ties
    rest_low: float
    moment_high: float  # sum of e^(t - reference) (t - reference) over them
    moment_low: float

    @property
    def _above_top(self) -> float:
        """The reference, the multiple of 4 nearest to top, less top."""
        return float(4.0 * np.rint(0.25 * self.top)) - self.top if self.top > -math.inf else 0.0

    @property
    def rest(self) -> float:
        """Sum of e^(t - top) over the secrets that are no ties."""
        return math.exp(self._above_top) * (self.rest_high + self.rest_low)

    @property
    def moment(self) -> float:
        """Sum of e^(t - top) (top - t)."""
        above = self._above_top
        moment = (self.moment_high + self.moment_low) + above * (self.rest_high + self.rest_low)
        return max(-math.exp(above) * moment, 0.0)


class PosteriorCheckpoint(NamedTuple):
    """The state of both passes when they ended early; ``posterior(..., resume=)`` continues from there."""

    stage: int  # the pass that was running, 1 or 2
    secrets: int  # secrets done in this pass: whole blocks of 2**18
    size: int  # number of secrets; 0 until the first pass is complete
    shift: float
    single_precision: bool
    first: tuple[Node, ...]  # sums of the first pass
    weights: FloatArray  # the largest joint weights,
    indices: IntArray  # and the secrets that have them
    second: tuple[Node, ...]  # sums of the second pass

    @property
    def blocks(self) -> int:
        """Blocks done in this pass."""
        return -(-self.secrets // BLOCK)


@dataclass(frozen=True, slots=True)
class Mode:
    """The most probable secret, and the extremes of the log likelihoods of secrets with a positive prior.

    Parameters
    ----------
    index : int
        The secret; the lowest on ties.
    log_weight : float
        Logarithm of prior times likelihood; under a uniform prior the log likelihood.
    max_log_likelihood, min_log_likelihood : float
        Extremes over the secrets with a positive prior.

    Examples
    --------
    >>> from fastpriv import posterior_mode
    >>> posterior_mode([0.0, -1.0, -2.0]).index
    0
    """

    index: int
    log_weight: float
    max_log_likelihood: float
    min_log_likelihood: float


def posterior(likelihood: DenseLikelihood, prior: Any, options: Options) -> Posterior:
    """Posterior of a ``DenseLikelihood``; ``prior`` is None or what ``DenseLikelihood`` takes as values."""
    inputs = LikelihoodAndPrior(likelihood, prior, options.log_prior)
    passes = _Passes(inputs, options)
    try:
        passes.run_first()
        evidence = passes.evidence()
        if inputs.rereadable:
            passes.run_second(evidence)
    except SourceError as fault:
        raise NotConvergedError(f"{_source_fault(fault)} {_RESUME}", passes.checkpoint()) from fault.cause
    except BaseException as error:
        error.best = passes.checkpoint()  # type: ignore[attr-defined]
        if isinstance(error, KeyboardInterrupt):
            error.add_note(_RESUME)
        raise
    finally:
        passes.close()
    return passes.result(evidence)


def mode(likelihood: DenseLikelihood, prior: Any, options: Options) -> Mode:
    """The mode of a ``DenseLikelihood``, by comparisons alone."""
    inputs = LikelihoodAndPrior(likelihood, prior, options.log_prior)
    sums: Any = None
    report, close = parallel.progress_reporter(options.progress, inputs.block_count or 0)
    results = inputs.map_blocks(lambda block: first_pass(inputs, block, 0, False)[0], 0, options.n_jobs)
    try:
        for done, (_, row) in enumerate(results, 1):
            sums = row if sums is None else _posterior.merge_evidence_sums([sums, row])
            report(done)
    except SourceError as fault:
        raise NotConvergedError(f"{_source_fault(fault)} Mend the function, and call again.") from fault.cause
    finally:
        close()
    if sums is None:
        raise no_secrets()
    mode_sums = FirstPassSums(*sums)
    log_weight = float(mode_sums.top + inputs.shift)
    return Mode(int(mode_sums.map_index), log_weight, float(mode_sums.most), float(mode_sums.least))


def _source_fault(fault: SourceError) -> str:
    return (
        f"{fault.name} must be arrays to its end; got {fault.cause!r} from the function, in place of its array "
        f"{fault.piece}, which starts at secret {fault.entry}."
    )


class _Passes:
    """Both passes, their sums and their progress."""

    def __init__(self, inputs: LikelihoodAndPrior, options: Options) -> None:
        self.inputs, self.options = inputs, options
        self.stage, self.secrets, self.size, self.done = 1, 0, inputs.length or 0, 0
        self.first, self.second = evidence_tree(), divergence_tree()
        self.weights, self.indices = np.empty(0), np.empty(0, dtype=np.int64)
        self.output = PosteriorOutput(options.out, inputs)
        if options.resume is not None:
            self._resume(options.resume)
        total = (inputs.block_count or 0) * (2 if inputs.rereadable else 1)
        self.report, self.close = parallel.progress_reporter(options.progress, total)

    def _resume(self, best: Any) -> None:
        if not isinstance(best, PosteriorCheckpoint):
            raise DomainError(
                f"resume must be what an error of posterior carries; got {validate.shown(best)}. "
                "Pass error.best, with the same likelihood and prior."
            )
        inputs = self.inputs
        if best.size and inputs.length not in (None, best.size):
            raise DomainError(
                f"resume must belong to a likelihood of this size, {inputs.length}; got one of size {best.size}. "
                "Pass the same likelihood and prior."
            )
        self.stage, self.secrets, self.size = best.stage, best.secrets, best.size
        self.first, self.second = evidence_tree(best.first), divergence_tree(best.second)
        self.weights, self.indices = best.weights, best.indices
        inputs.shift, inputs.single_precision, inputs.inspected = best.shift, best.single_precision, bool(best.first)
        if self.stage == 2 and self.options.out is not None:  # the output of the earlier call may be lost
            self.secrets, self.second = 0, divergence_tree()

    def checkpoint(self) -> PosteriorCheckpoint:
        """What ``resume=`` needs."""
        return PosteriorCheckpoint(
            self.stage, self.secrets, self.size if self.stage == 2 else 0, self.inputs.shift,
            self.inputs.single_precision, tuple(self.first.nodes), self.weights, self.indices,
            tuple(self.second.nodes),
        )  # fmt: skip

    def _results(self, work: Callable[[Block], Any]) -> Iterator[Any]:
        for size, result in self.inputs.map_blocks(work, -(-self.secrets // BLOCK), self.options.n_jobs):
            yield result
            self.secrets += size
            self.done += 1
            self.report(self.done)

    def run_first(self) -> None:
        """The first pass, unless it was complete before."""
        if self.stage == 2:
            return
        keep = min(self.options.top, BLOCK)
        for row, weights, indices in self._results(lambda block: first_pass(self.inputs, block, keep)):
            self.first.add(Node(0, self.secrets // BLOCK, row))
            self.weights, self.indices = largest_of(self.options.top, (self.weights, self.indices), (weights, indices))
        if not self.first.nodes:
            raise no_secrets()
        self.stage, self.size, self.secrets = 2, self.secrets, 0

    def evidence(self) -> Evidence:
        """The evidence from the first pass."""
        return evidence_of(FirstPassSums(*self.first.total()), self.size, self.inputs)

    def run_second(self, evidence: Evidence) -> None:
        """The second pass."""

        def work(block: Block) -> tuple[float, ...]:
            probabilities = self.output.memory(block)
            sums = second_pass(self.inputs, block, evidence, probabilities)
            self.output.write(block, probabilities)
            return sums

        with self.output.opened(self.size):
            for sums in self._results(work):
                self.second.add(Node(0, self.secrets // BLOCK, sums))
            check_same(self.second.total(), self.size, self.secrets)

    def result(self, evidence: Evidence) -> Posterior:
        """The Posterior, of two passes or, from an iterator, one."""
        second = self.second.total() if self.inputs.rereadable else None
        cost = {"secrets": self.size, "passes": 1 if second is None else 2}
        return result_of(self.first.total(), second, (self.weights, self.indices), evidence, self.inputs, cost)


def evidence_tree(nodes: Iterable[Node] = ()) -> BlockTree:
    """Sums of the first pass."""
    return BlockTree(lambda left, right: _posterior.merge_evidence_sums([left, right]), nodes)


def divergence_tree(nodes: Iterable[Node] = ()) -> BlockTree:
    """Sums of the second pass."""
    return BlockTree(_added, nodes)


def largest_of(
    count: int, old: tuple[FloatArray, IntArray], new: tuple[FloatArray, IntArray]
) -> tuple[FloatArray, IntArray]:
    """The largest joint weights of both with their secrets, in order, the lower secret first where they are equal."""
    if not new[0].size or (old[0].size == count and new[0].max() < old[0][-1]):
        return old
    weights, indices = (np.concatenate(pair) for pair in zip(old, new, strict=True))
    order = np.lexsort((indices, -weights))[:count]
    return weights[order], indices[order]


def check_same(second: tuple[float, ...], size: int, secrets: int) -> None:
    """Raise if the second pass read something else than the first."""
    excess = second[0] + second[1] if second else 0.0
    if secrets != size or not abs(excess) <= _CONSISTENT:
        raise DomainError(
            f"likelihood must be the same in both passes; got {size} and {secrets} secrets, and "
            f"evidences that differ by a factor of {1.0 + excess!r}. "
            "Pass what can be read twice, or an iterator to read it once."
        )


def result_of(
    first: tuple[Any, ...], second: tuple[float, ...] | None, largest: tuple[FloatArray, IntArray], evidence: Evidence,
    inputs: LikelihoodAndPrior, cost: dict[str, Any],
) -> Posterior:  # fmt: skip
    """The Posterior of the merged sums; ``second`` is None where there was one pass."""
    sums, (weights, indices) = FirstPassSums(*first), largest
    return Posterior(
        evidence.size, map_index=int(sums.map_index), ties=int(sums.ties),
        top=Top(indices, np.exp(weights - sums.top) / evidence.sum), cost=cost,
        _probabilities=None if second is None else _probability_function(inputs, evidence),
        **_estimates(sums, second, evidence, inputs),
    )  # fmt: skip


def _probability_function(inputs: LikelihoodAndPrior, evidence: Evidence) -> Callable[[int, int], FloatArray]:
    """Make the function that reads a range of secrets again and returns their posterior."""

    def probabilities(start: int, stop: int) -> FloatArray:
        validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time, or pass out=.")
        result = np.empty(stop - start)
        for block in inputs.blocks(start // BLOCK):
            if block.start >= stop:
                break
            whole = np.empty(block.likelihood.size)
            second_pass(inputs, block, evidence, whole)
            first, last = max(start, block.start), min(stop, block.start + whole.size)
            result[first - start : last - start] = whole[first - block.start : last - block.start]
        return result

    return probabilities


def first_pass(
    inputs: LikelihoodAndPrior, block: Block, keep: int, sums: bool = True
) -> tuple[tuple[Any, ...], FloatArray, IntArray]:
    """Sums of one block, and its largest joint weights with their secrets."""
    weights, indices = np.empty(keep), np.empty(keep, dtype=np.intp)
    row, count = _posterior.evidence_sums(
        block.likelihood, block.prior, inputs.log_prior, inputs.shift, sums, block.start, weights, indices
    )
    if not np.isfinite(FirstPassSums(*row).mass_high):
        raise inputs.invalid_block(block)
    return row, weights[:count], indices[:count].astype(np.int64) + block.start


def second_pass(
    inputs: LikelihoodAndPrior, block: Block, evidence: Evidence, probabilities: FloatArray | None
) -> tuple[float, ...]:
    """Sums of one block, as pairs of doubles; fills ``probabilities`` with the posterior unless it is None."""
    pairs = _posterior.divergence_sums(
        block.likelihood, block.prior, inputs.log_prior, evidence.weight, evidence.high, evidence.low, probabilities
    )
    return tuple(part for pair in pairs for part in pair)


def _added(total: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    """Sums of pairs of doubles: the high parts exactly, with their rounding error in the low parts."""
    result: list[float] = []
    for i in range(0, 6, 2):
        high = total[i] + other[i]
        back = high - total[i]
        result += [high, total[i + 1] + other[i + 1] + ((total[i] - (high - back)) + (other[i] - back))]
    return tuple(result)


class Evidence(NamedTuple):
    """The sums of the first pass that the second pass uses."""

    high: float  # log evidence, in two parts
    low: float
    sum: float  # S
    weight: float  # the prior of each secret where it is uniform, else the factor that makes its sum 1
    gap: float  # of the prior's sum
    size: int
    log_size: float


def evidence_of(sums: FirstPassSums, size: int, inputs: LikelihoodAndPrior) -> Evidence:
    """The evidence from the first pass; raises if it is 0, or if the prior does not sum to 1."""
    if sums.top == -np.inf:
        raise DomainError(
            f"likelihood must be positive for some secret of positive prior; got zero for all {size}. "
            "Such a release cannot happen: check likelihood and prior."
        )
    mass = float(sums.mass_high + sums.mass_low)
    tolerance = validate.sum_tolerance(np.float32 if inputs.single_precision else np.float64)
    if inputs.prior is not None and not abs(mass - 1.0) <= tolerance:
        raise DomainError(
            f"{inputs.prior_name} must sum to 1 within {tolerance:g}; got a sum of "
            f"{mass!r} over {size} secrets. Divide by the sum if the numbers are relative."
        )
    total, log_size = sums.ties + sums.rest, math.log(size)
    log_total = math.log(sums.ties) + math.log1p(sums.rest / sums.ties)
    if inputs.prior is None:
        parts, weight, gap = [sums.top, log_total, -log_size], 1.0 / size, 0.0
    else:
        excess = (sums.mass_high - 1.0) + sums.mass_low
        rounding = 2.0**-50 if inputs.log_prior else MACHINE_EPSILON * abs(excess)
        parts, weight = [inputs.shift, sums.top, log_total, -math.log1p(excess)], 1.0 / (1.0 + excess)
        gap = abs(excess) + rounding
    high = math.fsum(parts)
    return Evidence(high, math.fsum([*parts, -high]), total, weight, gap, size, log_size)


def _estimates(
    sums: FirstPassSums, second: tuple[float, ...] | None, evidence: Evidence, inputs: LikelihoodAndPrior
) -> dict[str, Any]:
    """All estimates of a ``Posterior``, with the bounds at the head of the module."""
    uniform, gap, total, ties = inputs.prior is None, evidence.gap, evidence.sum, sums.ties
    roundings = 0.0 if inputs.log else 8.0  # of each l, in units of u |l|
    size_of_t = abs(sums.top) if uniform else abs(sums.top) + abs(sums.most - inputs.shift)
    a = 18.0 + 0.75 * evidence.log_size + (0.0 if uniform else 4.0 * size_of_t)  # A
    a += 2.0 * roundings * (size_of_t + abs(inputs.shift))
    b = (2.2 if uniform else 6.2) + roundings  # B
    mean, share = sums.moment / total, sums.rest / total
    entropy = math.log(ties) + math.log1p(sums.rest / ties) + mean
    spread = entropy * 690.0  # bounds E (t - top)^2
    if entropy > 0.0:
        spread = min(spread, 2.0 * evidence.log_size * entropy + 4.0 * evidence.log_size**2 / evidence.size)
    sum_error = UNIT_ROUNDOFF * ((a + 40.0) * share + b * mean)
    entropy_error = UNIT_ROUNDOFF * (
        (2.0 * a + 44.0) * share
        + (a + 44.0 + 2.0 * b + (a + 40.0) * share) * (mean + 2.0 * share)
        + 2.0 * b * spread
        + entropy
    )
    omitted = 0.0 if ties == evidence.size else 1e-280  # terms below e^-690 are left out
    ceiling = evidence.log_size * (1.0 + 4.0 * UNIT_ROUNDOFF)
    kl, js, correction = None, None, 0.0
    evidence_error = sum_error + UNIT_ROUNDOFF * (60.0 + a + evidence.log_size)
    if second is not None:
        correction = math.log1p(second[0] + second[1])
        kl, js, evidence_error = _divergences(second, evidence, inputs, sums.most, entropy, roundings)
    elif uniform:
        kl_error = entropy_error + omitted + UNIT_ROUNDOFF * 4.0 * evidence.log_size
        kl = _estimate(evidence.log_size - entropy, kl_error, 0.0, ceiling)
    log_evidence = math.fsum([evidence.high, evidence.low, correction])
    ratio_error = evidence_error + gap

    def log_ratio(end: float) -> Estimate:
        if math.isinf(end):
            return _estimate(end, 0.0)
        value = math.fsum([end, -evidence.high, -evidence.low, -correction])
        return _estimate(value, ratio_error + UNIT_ROUNDOFF * (2.0 * abs(value) + roundings * abs(end)))

    top_probability = 1.0 / total
    top_error = top_probability * (sum_error + 4.0 * UNIT_ROUNDOFF) + omitted
    return {
        "log_evidence": _estimate(log_evidence, ratio_error + 2.0 * UNIT_ROUNDOFF * abs(log_evidence)),
        "entropy": _estimate(entropy, entropy_error + omitted, 0.0, ceiling),
        "kl": kl, "js": js, "max_log_ratio": log_ratio(sums.most), "min_log_ratio": log_ratio(sums.least),
        "vulnerability": _estimate(top_probability, top_error, 0.0, 1.0, "probability"),
    }  # fmt: skip


def _divergences(
    second: tuple[float, ...], evidence: Evidence, inputs: LikelihoodAndPrior, most: float, entropy: float,
    roundings: float,
) -> tuple[Estimate, Estimate, float]:  # fmt: skip
    """KL, JS, and the error of the corrected log evidence, without the gap of the prior."""
    excess, divergence, js = second[0] + second[1], second[2] + second[3], second[4] + second[5]
    largest_ratio = max(most - evidence.high - evidence.low, 0.0)
    correction = -0.5 * excess**2 * (1.0 - excess / 3.0)  # e - (1 + e) log(1 + e)
    kl = max((divergence + correction) / (1.0 + excess), 0.0)
    q = kl + math.sqrt(2.0 * kl)  # at least E|y|
    likelihood_error = roundings * (abs(evidence.high) + max(largest_ratio, 1.0)) * q  # by the roundings of each l
    log_prior_error, log_prior_factor = 0.0, 0.0
    if inputs.log_prior:
        log_prior_error = min(770.0 * q, 1.2 * (entropy + q) + 1.1 * evidence.log_size + 10.0)
        log_prior_factor = 764.0
    excess_error = UNIT_ROUNDOFF * (70.0 * q + log_prior_error + roundings * (abs(evidence.high) + q))
    evidence_error, size = excess_error + UNIT_ROUNDOFF, abs(excess)
    kl_error = (
        UNIT_ROUNDOFF * ((460.0 + 4.0 * largest_ratio + log_prior_factor) * divergence + likelihood_error)
        + (kl + size + excess_error) * excess_error
    )
    js_error = (
        UNIT_ROUNDOFF * ((370.0 + 8.0 * largest_ratio + log_prior_factor) * js + likelihood_error)
        + js * size
        + size**2 * q
        + (size + excess_error) * excess_error
    )
    js = max(js - excess**2 / 8.0, 0.0)
    gap = evidence.gap
    return (
        _estimate(kl, kl_error + gap * gap, 0.0, math.inf),
        _estimate(js, js_error + 1.1 * gap * js + gap * gap, 0.0, LOG_2_ABOVE),
        evidence_error,
    )


def _estimate(
    value: float, error: float, least: float = -math.inf, most: float = math.inf, unit: Unit = "nats"
) -> Estimate:
    return exact(value, error, unit=unit, method="one sum over all secrets", least=least, most=most)
