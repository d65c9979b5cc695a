"""Posteriors of a domain with one log likelihood a secret: two passes over fixed blocks, in one process or many.

Notation: u = 2^-53; l_d log likelihood, pi_d prior over its sum, t_d = log pi_d + l_d, Z = sum e^t, y_d = l_d - log Z =
log of posterior over prior. The first pass gives maxima, log Z and the entropy, the second KL, Jensen-Shannon and the
posterior, by csrc/posterior/fp_posterior.h. S = sum of e^(t - top), m = E(top - t) and H the entropy, under the
posterior; q = sqrt(2 KL) + KL, which E|y| does not exceed: for y < 0 the sum of post |y| is at most that of pi - post,
and Pinsker's inequality gives the rest. All bounds count the roundings of each term, and those of the sums: 32
additions in a lane, 16 from lanes to a tile, and none from there on, where sums are pairs of doubles.

First pass (docs/proofs/posteriors.md, theorem 10.1). t is off by u (1 + 4 |t| + 2 |most - shift|) at most, by nothing
under a uniform prior; e^(t - top) then by a factor of 1 + u (A + B |t - top|). Sums are relative to a reference r, |r -
top| <= 2: of A, 12 are for t - r, r - top and e^(r - top), and 3/4 log n for scaling by e^-4 or less, three roundings
each: among n secrets, what was scaled more than log(n) / 4 times adds less than one of them. S is off by u (A + 40) (1
- ties/S) + u B m, and the entropy log S + m by as much, and by the errors of m, a difference of terms that are larger
by 2 (1 - ties/S) together, for which E (t - top)^2 <= H min(690, 2 log n + 4 log^2 n / (n H)) serves.

Second pass (docs/proofs/posteriors.md, theorem 10.2). w e^y is off by a factor of 1 + u (3.2 |y| + 6), the excess e =
sum w (e^y - 1), hence the corrected log Z, by 70 u q. Terms of KL are off by u (460 + 4 y) times themselves and those
of JS by u (370 + 8 y): the largest factors stand at |y| = 1/2, where series give way to logarithms; there the first
order of an error of y is counted. KL follows from its sum and e; the sum for JS is too large by e^2/8, and by at most e
JS + e^2 q.

A prior that misses 1 by g is one relative error of the whole vector (``validate``); the posterior does not depend on
it. The log Z and y of the prior as it was given are off by g at most, KL as a divergence of measures by g^2, JS by
g JS + g^2. Likelihoods that are no logarithms cost 8 u |l| more in each l.
"""

# bounds: proved - counted at the head of the file, given the ulps of exp and log in csrc/special/fp_elementary.h

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Unit, exact
from ..base.numerics import LOG_2_ABOVE, MACHINE_EPSILON, UNIT_ROUNDOFF, FloatArray, IntArray, two_sum
from ..channels.likelihoods import DenseLikelihood, IndexLikelihood
from ..channels.vector_sources import BLOCK
from ..kernels import _posterior
from .blocks import Block, BlockTree, LikelihoodAndPrior, Node, PosteriorOutput, no_secrets
from .result import Options, Posterior, Top

_CONSISTENT = 1e-6  # relative difference of the evidences of both passes beyond which the likelihood has changed


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
    def remainder(self) -> float:
        """Sum of e^(t - top) over the secrets that are no ties."""
        return math.exp(self._above_top) * (self.rest_high + self.rest_low)

    @property
    def moment(self) -> float:
        """Sum of e^(t - top) (top - t)."""
        above = self._above_top
        moment = (self.moment_high + self.moment_low) + above * (self.rest_high + self.rest_low)
        return max(-math.exp(above) * moment, 0.0)


class Evidence(NamedTuple):
    """The sums of the first pass that the second pass uses."""

    high: float  # log evidence, in two parts
    low: float
    sum: float  # S
    weight: float  # the prior of each secret where it is uniform, else the factor that makes its sum 1
    gap: float  # of the prior's sum
    size: int
    log_size: float


def posterior(likelihood: DenseLikelihood | IndexLikelihood, prior: Any, options: Options) -> Posterior:
    """Posterior of one log likelihood a secret; ``prior`` is None or what ``DenseLikelihood`` takes as values."""
    inputs = LikelihoodAndPrior(likelihood, prior, options.log_prior)
    output = PosteriorOutput(options.out, inputs)
    report, close = parallel.progress_reporter(
        options.progress, (inputs.block_count or 0) * (2 if inputs.rereadable else 1)
    )

    def run(work: Pass) -> PassSums:
        if work.evidence is None:
            return _run(work, options.n_jobs, report)
        blocks = -(-work.evidence.size // BLOCK)
        with output.opened(work.evidence.size):
            return _run(work, options.n_jobs, lambda done: report(blocks + done), output)

    try:
        return two_passes(inputs, run, options.top, {})
    finally:
        close()


@dataclass(frozen=True)
class Pass:
    """One of the two passes: what is computed of a block."""

    inputs: LikelihoodAndPrior
    top: int
    evidence: Evidence | None = None  # None in the first pass

    def sums(self, block: Block, probabilities: FloatArray | None = None) -> tuple[Any, ...]:
        """Sums of the block, and in the first pass its largest joint weights with their secrets.

        The second pass fills ``probabilities`` with the posterior unless it is None.
        """
        inputs, evidence = self.inputs, self.evidence
        if evidence is not None:
            pairs = _posterior.divergence_sums(
                block.likelihood, block.prior, inputs.log_prior, evidence.weight, evidence.high, evidence.low,
                probabilities,
            )
            return tuple(part for pair in pairs for part in pair), np.empty(0), np.empty(0, dtype=np.int64)
        size = min(self.top, BLOCK)
        weights, indices = np.empty(size), np.empty(size, dtype=np.intp)
        row, count = _posterior.evidence_sums(
            block.likelihood, block.prior, inputs.log_prior, inputs.shift, True, block.start, weights, indices
        )
        if not np.isfinite(FirstPassSums(*row).mass_high):
            raise inputs.invalid_block(block)
        return row, weights[:count], indices[:count].astype(np.int64) + block.start


class PassSums:
    """The sums of consecutive blocks in one pass, and the most probable secrets among them."""

    def __init__(self, work: Pass) -> None:
        self.tree = BlockTree(_merged_evidence if work.evidence is None else _added)
        self.top, self.secrets = work.top, 0
        self.weights, self.indices = np.empty(0), np.empty(0, dtype=np.int64)

    def add(self, node: Node, weights: FloatArray, indices: IntArray) -> None:
        """Add the next blocks; of equal joint weights the lower secret comes first."""
        self.tree.add(node)
        if not weights.size or (self.weights.size == self.top and weights.max() < self.weights[-1]):
            return
        all_weights, all_indices = np.concatenate([self.weights, weights]), np.concatenate([self.indices, indices])
        order = np.lexsort((all_indices, -all_weights))[: self.top]
        self.weights, self.indices = all_weights[order], all_indices[order]

    def total(self) -> tuple[Any, ...]:
        """The merged sums; an error where there are no blocks."""
        if not self.tree.nodes:
            raise no_secrets()
        return self.tree.total()


def _run(
    work: Pass, n_jobs: int | None, report: Callable[[int], None], output: PosteriorOutput | None = None
) -> PassSums:
    """One pass over all blocks, on threads."""

    def of_block(block: Block) -> tuple[Any, ...]:
        probabilities = None if output is None else output.memory(block)
        result = work.sums(block, probabilities)
        if output is not None:
            output.write(block, probabilities)
        return result

    sums = PassSums(work)
    for number, size, (row, weights, indices) in work.inputs.map_blocks(of_block, n_jobs):
        sums.add(Node(0, number, row), weights, indices)
        sums.secrets += size
        report(number + 1)
    return sums


def two_passes(
    inputs: LikelihoodAndPrior, run: Callable[[Pass], PassSums], top: int, cost: dict[str, Any]
) -> Posterior:
    """The Posterior by both passes or, from an iterator, one; ``run`` is how a pass goes through all blocks."""
    first, second, total = run(Pass(inputs, top)), None, None
    sums = FirstPassSums(*first.total())
    evidence = _evidence(sums, first.secrets, inputs)
    if inputs.rereadable:
        second = run(Pass(inputs, 0, evidence))
        total = second.tree.total()
        excess = total[0] + total[1] if total else 0.0
        if second.secrets != first.secrets or not abs(excess) <= _CONSISTENT:
            raise DomainError(
                f"likelihood must be the same in both passes; got {first.secrets} and {second.secrets} secrets, and "
                f"evidences that differ by a factor of {1.0 + excess!r}. "
                "Pass what can be read twice, or an iterator to read it once."
            )
    return Posterior(
        evidence.size, map_index=int(sums.map_index), ties=int(sums.ties),
        top=Top(first.indices, np.exp(first.weights - sums.top) / evidence.sum),
        cost={"secrets": evidence.size, "passes": 1 if second is None else 2, **cost},
        _probabilities=None if second is None else _probability_function(inputs, evidence),
        **_estimates(sums, total, evidence, inputs),
    )


def _merged_evidence(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_posterior.merge_evidence_sums([left, right]))


def _probability_function(inputs: LikelihoodAndPrior, evidence: Evidence) -> Callable[[int, int], FloatArray]:
    """Make the function that reads a range of secrets again and returns their posterior."""

    def probabilities(start: int, stop: int) -> FloatArray:
        validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time, or pass out=.")
        result = np.empty(stop - start)
        work = Pass(inputs, 0, evidence)
        numbers = range(start // BLOCK, -(-stop // BLOCK))
        for block in map(inputs.read, numbers) if inputs.random_access else inputs.blocks():
            if block.start >= stop:
                break
            if block.number < start // BLOCK:
                continue
            whole = np.empty(block.likelihood.size)
            work.sums(block, whole)
            first, last = max(start, block.start), min(stop, block.start + whole.size)
            result[first - start : last - start] = whole[first - block.start : last - block.start]
        return result

    return probabilities


def _added(total: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    """Sums of pairs of doubles: the high parts exactly, with their rounding error in the low parts."""
    result: list[float] = []
    for i in range(0, 6, 2):
        high, error = two_sum(total[i], other[i])
        result += [high, total[i + 1] + other[i + 1] + error]
    return tuple(result)


def _evidence(sums: FirstPassSums, size: int, inputs: LikelihoodAndPrior) -> Evidence:
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
    total, log_size = sums.ties + sums.remainder, math.log(size)
    log_total = math.log(sums.ties) + math.log1p(sums.remainder / sums.ties)
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
    mean, share = sums.moment / total, sums.remainder / total
    entropy = math.log(ties) + math.log1p(sums.remainder / ties) + mean
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
    }


def _divergences(
    second: tuple[float, ...], evidence: Evidence, inputs: LikelihoodAndPrior, most: float, entropy: float,
    roundings: float,
) -> tuple[Estimate, Estimate, float]:
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
        _estimate(js, js_error + 1.1 * gap * js + gap * gap, 0.0, LOG_2_ABOVE), evidence_error,
    )


def _estimate(
    value: float, error: float, least: float = -math.inf, most: float = math.inf, unit: Unit = "nats"
) -> Estimate:
    return exact(value, error, unit=unit, method="one sum over all secrets", least=least, most=most)
