"""Posteriors over all subsets of a pool that are too many to visit, by Gibbs sampling at several temperatures.

Notation: n records, subsets A of S members, N = C(n, S) of them, all equally likely a priori; l(A) as of
``SubsetLikelihood``, without its constant. Replicas r at inverse temperatures t_0 = 1 > t_1 > ... > t_R = 0 have the
densities e^(t_r l(A)) / Z_r relative to the prior; the last one is the prior. The steps are in
csrc/posterior/fp_subset_gibbs.h: each draws one member anew, given the others.

The first quarter of each chain is dropped. Inclusion is the mean over steps of its probability given the other members;
its interval is Wilson's, of as many samples as the spread of the means of blocks stands for. log Z_0 is the sum over
neighbours a, b of log Z_a / Z_b = c, which Bennett's acceptance ratio gives: with s(x) = 1 / (1 + e^-x),

    mean over b of s((t_a - t_b) l - c) = mean over a of s(c - (t_a - t_b) l),

and the entropy is log N - (E l - log Z_0). Each chain, with replicas of its own, estimates both, and Student's interval
of the chains is theirs. Chains that start apart and disagree have not mixed; then intervals are none.

Sources: C. Geyer 1991 (parallel tempering); C. Bennett, Efficient estimation of free energy differences from Monte
Carlo data, Journal of Computational Physics 22 (1976), equation 12; split R-hat, A. Vehtari et al. 2021.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, random_streams, validate
from ..base.errors import DomainError, warned
from ..base.estimate import Estimate, Result
from ..base.inverse import bisect
from ..base.numerics import FloatArray
from ..base.parallel import Progress
from ..base.random_streams import RNGLike
from ..channels.subset_likelihoods import SubsetLikelihood
from ..kernels import _subset_gibbs
from ..sampling.statistics import chain_convergence as convergence
from ..sampling.statistics.intervals import replicate_interval

_BLOCKS = 32  # of the sweeps of a chain: enough to tell their spread within a sixth
_WARM_UP = _BLOCKS // 4  # blocks that are dropped
_MOST_CHAINS = 1024  # more of them are threads and memory for nothing
_MOST_TEMPERATURES = 256  # of each chain: log likelihoods that differ by 1e9 nats, of 64 members
_DRAWN = 64  # subsets from the prior that tell how much log likelihoods differ
# bound: none - halvings of a bracket of the size of log likelihoods, to far below what is statistical
_HALVINGS = 60
# bound: none - a log likelihood without information moves by less, in nats
_FLAT = 1e-3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampledSubsetPosterior(Result):
    """The posterior over all subsets of a pool, from samples.

    Parameters
    ----------
    size : int
        Number of subsets.
    inclusion : Estimate, shape (n,)
        Probability of each record of being a member.
    log_evidence : Estimate
        log of the mean likelihood over all subsets, in nats.
    entropy : Estimate
        Shannon entropy of the posterior.
    vulnerability : Estimate
        Probability of the most probable subset that was visited; the lower end is one for the most probable of all,
        the upper end is not, so that it is heuristic.
    map_index : tuple of int
        The most probable subset that was visited.
    mixed : bool
        Whether the chains agree: all other numbers are statistical where they do, and heuristic where they do not.
    r_hat : ndarray, shape (n,)
        Split R-hat of each record's membership; 1 where chains agree.
    log_likelihood_r_hat, effective_samples : float
        Rank-normalised split R-hat of the log likelihood, and how many independent samples its mean is worth.
    temperatures, exchange_rates : ndarray, shape (R + 1,) and (R,)
        Inverse temperatures, and how often neighbours exchanged their states.
    cost : mapping, optional
        What was spent.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.channels import SubsetLikelihood
    >>> from fastpriv.posteriors import sampled_subset_posterior
    >>> likelihood = SubsetLikelihood(np.linspace(0.0, 3.0, 20), np.zeros((20, 20)), 6)
    >>> found = sampled_subset_posterior(likelihood, rng=1)
    >>> found.mixed, found.map_index
    (True, (14, 15, 16, 17, 18, 19))
    """

    size: int
    inclusion: Estimate
    log_evidence: Estimate
    entropy: Estimate
    vulnerability: Estimate
    map_index: tuple[int, ...]
    mixed: bool
    r_hat: FloatArray
    log_likelihood_r_hat: float
    effective_samples: float
    temperatures: FloatArray
    exchange_rates: FloatArray
    cost: Mapping[str, Any] = field(default_factory=dict)


class _Chain(NamedTuple):
    """What one chain recorded, after its warm-up but for the best subset."""

    probability: FloatArray  # (blocks, n): means of the probabilities of steps
    frequency: FloatArray  # (blocks, n): means of visits
    log_likelihood: FloatArray  # (sweeps, replicas)
    exchanges: FloatArray  # (replicas - 1,): rates
    best: tuple[int, ...]
    best_log_likelihood: float


def sampled_subset_posterior(
    likelihood: SubsetLikelihood, *, sweeps: int = 1024, chains: int = 8, temperatures: int | None = None,
    confidence: float = 0.95, rng: RNGLike = None, n_jobs: int | None = None, progress: Progress = None,
) -> SampledSubsetPosterior:
    """The posterior over subsets that are too many for ``posterior``, by sampling.

    Parameters
    ----------
    likelihood : SubsetLikelihood
        With finite terms; all subsets are equally likely a priori.
    sweeps : int, default 1024
        Of each chain, rounded up to a multiple of 32, of which the first quarter is dropped. A sweep draws each member
        of each replica anew.
    chains : int, default 8
        Chains that start from subsets of the prior, at least 2.
    temperatures : int, optional
        Replicas of each chain, at least 2, from the posterior to the prior. None takes as many as the number of members
        and the spread of log likelihoods suggest.
    confidence : float
        Level of the intervals.
    rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Source of random numbers.
    n_jobs : int, optional
        Threads, one chain each; the same bits for any number.
    progress : bool or callable, optional
        A bar, or a function called with the number of chains done and the total.

    Returns
    -------
    SampledSubsetPosterior

    Raises
    ------
    DomainError
        For another likelihood, terms that are infinite, or numbers out of range.

    Warns
    -----
    SamplingWarning
        Where the chains have not mixed: R-hat above 1.05 of a record or of the log likelihood, or fewer than 100
        effective samples of it. Numbers are then ``heuristic``, and intervals of records span those of all chains.

    Notes
    -----
    A sweep of one replica takes S n exponentials. Nothing is proved by samples: compare with ``posterior`` where it can
    visit all subsets.

    **Accuracy** intervals are ``statistical``; ``tests/intervals/test_subset_sampling.py`` compares them with all
    subsets, one by one. Same bits on any instruction set and for any number of threads.

    Source: as the head of this module.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.mechanisms import BatchGradient
    >>> from fastpriv.posteriors import sampled_subset_posterior
    >>> gradients = np.random.default_rng(1).normal(size=(60, 30))
    >>> step = BatchGradient.from_gradients(gradients, 8, sigma=0.05)
    >>> found = sampled_subset_posterior(step.column(step.sample(range(8), rng=2)), rng=3)
    >>> found.map_index, found.mixed
    ((0, 1, 2, 3, 4, 5, 6, 7), True)
    """
    validate.instance("likelihood", likelihood, SubsetLikelihood)
    parallel.checked(n_jobs, progress)
    level = validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    number = validate.count("chains", chains, 2, _MOST_CHAINS)
    block = -(-validate.count("sweeps", sweeps, _BLOCKS, validate.MOST_ENTRIES) // _BLOCKS)
    pool, members = likelihood.linear.size, likelihood.members
    if not (np.isfinite(likelihood.linear).all() and np.isfinite(likelihood.pairwise).all()):
        raise DomainError(
            f"likelihood must be one with finite terms; got {validate.shown(likelihood)}. "
            "Ask fastpriv.posterior, or leave out records that cannot be members."
        )
    pairs = np.triu(likelihood.pairwise, 1) if likelihood.pairwise.size else np.zeros((pool, pool))
    pairs += pairs.T
    root = random_streams.root(rng)
    start = np.random.default_rng(random_streams.stream_words(root, (0,), 4).tolist())
    ladder = _ladder(likelihood, start, temperatures)
    starts = [
        np.array([start.choice(pool, members, replace=False) for _ in ladder], dtype=np.int32) for _ in range(number)
    ]

    def run(chain: int) -> _Chain:
        state, blocks = starts[chain], []
        for i in range(_BLOCKS):
            words = random_streams.stream_words(root, (1 + chain, i), 4)
            blocks.append(_subset_gibbs.run(likelihood.linear, pairs, ladder, state, words, block))
        selected = blocks[_WARM_UP:]
        best = max(blocks, key=lambda entry: float(entry[5]))
        return _Chain(
            np.array([entry[0] for entry in selected]) / (block * members),
            np.array([entry[1] for entry in selected]) / block,
            np.concatenate([entry[2] for entry in selected]),
            np.mean([entry[3][1:] for entry in selected], axis=0) / block,
            tuple(sorted(best[4].tolist())), float(best[5]),
        )

    report, close = parallel.progress_reporter(progress, number)
    result = []
    try:
        for item in parallel.ordered_map(run, range(number), n_jobs=n_jobs, shared=True):
            result.append(item)
            report(len(result))
    finally:
        close()
    return _result(likelihood, result, ladder, level, members * block)


def _ladder(likelihood: SubsetLikelihood, start: np.random.Generator, temperatures: int | None) -> FloatArray:
    """Inverse temperatures from 1 to 0, in equal ratios down to where log likelihoods differ by less than a nat."""
    pool, members = likelihood.linear.size, likelihood.members
    drawn = np.array([start.choice(pool, members, replace=False) for _ in range(_DRAWN)])
    spread = max(float(np.std(likelihood.log_likelihood(drawn))), _FLAT)
    ratio = 1.0 - 1.0 / (1.0 + math.sqrt(members))  # neighbours' log likelihoods, of deviation sqrt(S) / t, overlap
    steps = max(1, math.ceil(math.log(max(spread, 1.0)) / -math.log(ratio)) + 1)
    if temperatures is not None:
        count = validate.count("temperatures", temperatures, 2, _MOST_TEMPERATURES)
        ratio, steps = max(spread, 2.0) ** (-1.0 / max(count - 2, 1)), count - 1
    return np.concatenate([ratio ** np.arange(min(steps, _MOST_TEMPERATURES - 1)), [0.0]])


def _result(
    likelihood: SubsetLikelihood, chains: list[_Chain], ladder: FloatArray, level: float, steps: int
) -> SampledSubsetPosterior:
    """Means, intervals and diagnostics of all chains; ``steps`` are those of a replica in a block."""
    total = math.log(likelihood.size)
    probability = np.array([chain.probability for chain in chains])
    frequency = np.array([chain.frequency for chain in chains])
    number, blocks = probability.shape[:2]
    chance = probability.mean(axis=(0, 1))
    effective = convergence.effective_samples(probability, chance, float(number * blocks * steps))
    lower, upper = convergence.wilson_interval(chance, effective, level)
    r_hat = convergence.split_r_hat_of_means(convergence.half_means(frequency))
    logs = np.array([chain.log_likelihood for chain in chains])
    cold = logs[:, :, 0]
    log_r_hat = float(convergence.split_r_hat(convergence.normal_scores(cold)))
    samples = _samples_of_mean(cold.reshape(number, blocks, -1))
    most, least = convergence.R_HAT_LIMIT, convergence.LEAST_SAMPLES
    largest_r_hat = float(np.max(r_hat, initial=log_r_hat))
    mixed = bool(largest_r_hat <= most and samples >= least)
    if not mixed:
        each = [
            convergence.wilson_interval(frequencies.mean(axis=0), np.full(frequencies.shape[1], float(blocks)), level)
            for frequencies in probability
        ]
        lower = np.minimum(lower, np.min([interval[0] for interval in each], axis=0))
        upper = np.maximum(upper, np.max([interval[1] for interval in each], axis=0))
        warned(
            f"the chains did not mix: R-hat reaches {largest_r_hat:.3g} (at most {most} where they do), and the "
            f"effective samples are {samples:.3g} (at least {least:g}). Take more sweeps or temperatures, or a smaller "
            "pool."
        )
    words: dict[str, Any] = {
        "kind": "statistical" if mixed else "heuristic", "confidence": level if mixed else None,
        "method": f"Gibbs sampling at {ladder.size} temperatures",
    }
    evidences = np.array([_log_evidence(element, ladder) for element in logs])
    evidence = replicate_interval(evidences, level)
    entropy = replicate_interval(total - (cold.mean(axis=1) - evidences), level)
    best = max(chains, key=lambda item: item.best_log_likelihood)
    probable = [
        min(math.exp(best.best_log_likelihood - float(z) - total), 1.0)
        for z in (evidence.upper, evidence.value, evidence.lower)
    ]
    constant = likelihood.constant
    value, low, high = (min(max(float(x), 0.0), total) for x in (entropy.value, entropy.lower, entropy.upper))
    return SampledSubsetPosterior(
        size=likelihood.size,
        inclusion=Estimate(chance, np.minimum(lower, chance), np.maximum(upper, chance), unit="probability", **words),
        log_evidence=Estimate(
            float(evidence.value) + constant, float(evidence.lower) + constant, float(evidence.upper) + constant,
            unit="nats", **words,
        ),
        entropy=Estimate(value, low, high, unit="nats", **words),
        vulnerability=Estimate(
            probable[1], probable[0], probable[2], unit="probability", kind="heuristic", method="best subset visited"
        ),
        map_index=best.best, mixed=mixed, r_hat=r_hat, log_likelihood_r_hat=log_r_hat, effective_samples=samples,
        temperatures=ladder, exchange_rates=np.mean([chain.exchanges for chain in chains], axis=0),
        cost={"sweeps": blocks * steps // likelihood.members, "chains": number, "temperatures": ladder.size},
    )


def _samples_of_mean(values: FloatArray) -> float:
    """Independent samples that the mean of numbers (chains, blocks, sweeps) is worth, by the spread of blocks."""
    variance, sweeps = float(np.var(values)), float(values.size)
    of_mean = float(np.var(values.mean(axis=2), ddof=1)) / (values.shape[0] * values.shape[1])
    return sweeps if of_mean * sweeps <= variance else variance / of_mean


def _log_evidence(logs: FloatArray, ladder: FloatArray) -> float:
    """log Z_0 of one chain, from log likelihoods (sweeps, replicas), by Bennett's acceptance ratio."""
    step = ladder[:-1] - ladder[1:]
    cold, hot = step * logs[:, :-1], step * logs[:, 1:]
    low = np.minimum(cold.min(axis=0), hot.min(axis=0))
    high = np.maximum(cold.max(axis=0), hot.max(axis=0))

    def beyond(shift: FloatArray) -> Any:
        with np.errstate(over="ignore"):
            means = [np.mean(1.0 / (1.0 + np.exp(x)), axis=0) for x in (shift - hot, cold - shift)]
        return ~(means[0] > means[1])

    low, high = bisect(beyond, low, high, _HALVINGS)
    return float(np.sum(0.5 * (low + high)))
