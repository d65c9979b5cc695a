"""The posterior of a membership by Gibbs sampling, for any number of people.

Notation: b_k = 1 if person k is a member; the steps are in csrc/membership/fp_membership_gibbs.h.  A block is a fixed
number of sweeps with a random stream of its own, whose key is (release, chain, block), so that the numbers do
not depend on threads.

The first quarter of each chain is dropped.  P(b_k = 1 | r) is estimated by the mean over sweeps of
P(b_k = 1 | all others), where members are offered flips, and by the mean of b_k where they are exchanged; its error by
the spread of the means of blocks.  Split R-hat compares halves of chains (Vehtari, Gelman, Simpson, Carpenter and
Buerkner, Rank-normalization, folding, and localization: an improved R-hat, Bayesian Analysis 16(2), 2021): for b_k,
which has two values, ranks are an affine function of it, so that the rank-normalised R-hat is that of b_k itself.
"""

# bounds: none - a linear estimate that chains start from takes variances of noises

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import special
from ...base import parallel, random_streams
from ...base.errors import DomainError, interruption
from ...base.numerics import BoolArray, FloatArray
from ...base.parallel import Progress
from ...kernels import matrix_product
from ...sampling.statistics import chain_convergence as convergence
from ..kernels import _membership_gibbs
from .likelihood_terms import LikelihoodTerm, terms_of
from .noises import GaussianNoise, LaplaceNoise, NoNoise, ScaledNoise
from .panels import ByteArray
from .priors import FixedSizeMembership
from .releases import FrequencyRelease

_BLOCKS = 64  # of the sweeps of one call: enough to tell their spread within a tenth
_WARM_UP = 0.25  # the part of a chain that is dropped
_ROUNDS = 8  # of a call, between two of which progress is told and an interruption keeps what is done
_TEMPERATURE_RATIO = 0.5  # between neighbouring inverse temperatures
# bound: none - least variance of noise in a linear estimate: the inverse exists, and 1e-5 of noise changes nothing
_LEAST_VARIANCE = 1e-10
_SAME_ESTIMATE = 1e9  # linear estimates that agree in nine digits are equal, on any processor


class Chains(NamedTuple):
    """The chains of one release: what was recorded in each block, and where they stand."""

    probability: FloatArray  # (chains, blocks, 2, K): means over a block of P(b_k = 1 | others) and its complement
    frequency: FloatArray  # (chains, blocks, K): means of b_k
    log_density: FloatArray  # (chains, blocks, block)
    last: ByteArray  # (chains, replicas, K)
    mode: BoolArray  # (K,)
    mode_log_density: float


class SampledPosterior(NamedTuple):
    """What the chains of one release say."""

    probabilities: FloatArray  # (K,)
    log_odds: FloatArray  # (K,)
    lower: FloatArray  # (K,): of the probabilities
    upper: FloatArray
    r_hat: FloatArray  # (K,)
    log_density_r_hat: float
    effective_samples: FloatArray  # (K,)
    mixed: bool
    chains: Chains


def sample_posterior(
    parts: Sequence[FrequencyRelease], arrays: Sequence[FloatArray], *, sweeps: int, chains: int, temperatures: int,
    confidence: float, rng: Any, n_jobs: int | None, progress: Progress,
    result: Callable[[list[SampledPosterior]], Any],
) -> list[SampledPosterior]:
    """Run the chains of all releases.

    An interruption carries ``result`` of the rounds that were done.
    """
    root = random_streams.root(rng)
    for part in parts:
        if isinstance(part.noise, NoNoise):
            raise DomainError(
                f"model must have noise for Gibbs sampling; got {part!r}. Exact frequencies are solved by enumeration, "
                "of at most 24 people."
            )
    count = len(arrays[0])
    gaussian = [isinstance(part.noise, GaussianNoise) and not part.clip for part in parts]
    grams = [part.panel.gram() if whole else None for part, whole in zip(parts, gaussian, strict=True)]
    models = [_model(parts, [array[i] for array in arrays], grams, temperatures) for i in range(count)]
    block = max(1, sweeps // _BLOCKS)
    starts = _starts(parts[0], _linear_estimates(parts, arrays), chains, temperatures, root)
    done = [_empty(start, block) for start in starts]
    blocks = max(1, sweeps // block)
    rounds = parallel.blocks(blocks, max(1, -(-blocks // _ROUNDS)))
    pairs = [(release, chain) for release in range(count) for chain in range(chains)]
    report, close = parallel.progress_reporter(progress, len(rounds) * len(pairs))
    reported = 0
    try:
        for part_of_blocks in rounds:
            number = part_of_blocks.stop - part_of_blocks.start

            def advanced(pair: tuple[int, int], number: int = number, done: list[Chains] = done) -> Any:
                release, chain = pair
                return _advanced(models[release], done[release], chain, number, root, release)

            answer = []
            for item in parallel.ordered_map(advanced, pairs, n_jobs=n_jobs, shared=True):
                answer.append(item)
                reported += 1
                report(reported)
            done = [_appended(done[i], answer[i * chains : (i + 1) * chains]) for i in range(count)]
    except KeyboardInterrupt:
        if not done[0].probability.shape[1]:
            raise
        selected = result([_summary(entry, confidence) for entry in done])
        raise interruption(selected, "interrupted while sampling") from None
    finally:
        close()
    return [_summary(element, confidence) for element in done]


def _model(
    parts: Sequence[FrequencyRelease], released: Sequence[FloatArray], grams: Sequence[Any], temperatures: int
) -> Any:
    """The terms of one release as the kernel takes them."""
    prior, people = parts[0].prior, parts[0].n_people
    log_odds, size_weights = prior.log_prior(people)
    noise = np.zeros(people + 1)
    terms: list[dict[str, Any]] = []
    for part, array, gram in zip(parts, released, grams, strict=True):
        for term in terms_of(part, part.panel.to_array().astype(np.float64), array):
            terms.append(_term(term, gram))
            noise[1:] -= term.densities * np.log(term.scale)
    noise -= noise[1]
    steps = _TEMPERATURE_RATIO ** np.arange(temperatures)
    fixed = isinstance(prior, FixedSizeMembership)
    return _membership_gibbs.Model(
        np.ascontiguousarray(log_odds), np.ascontiguousarray(size_weights), noise, steps, fixed, terms
    )


def _term(term: LikelihoodTerm, gram: Any) -> dict[str, Any]:
    """One term as the kernel takes it; ``gram`` holds how many attributes pairs share, None where that is not known."""
    people = term.attributes.shape[0]
    n = np.arange(1, people + 1)
    if term.kind == "gaussian":
        if gram is None:
            gram = matrix_product.product(term.attributes, term.attributes)
        shared = np.asarray(gram).astype(np.int64)
        # whole numbers that make the entries small: g_kl - a_k - a_l, with a_k in c_k
        mean = shared.mean(axis=1)
        shift = np.rint(mean - 0.5 * mean.mean()).astype(np.int64)
        linear = 0.5 * float(np.sum(term.released**2)) - matrix_product.matrix_vector(term.attributes, term.released)
        return {
            "kind": "quadratic",
            "shared": np.ascontiguousarray(shared - shift[:, None] - shift, dtype=np.int32),
            "linear": linear + shift,
            "factor": np.concatenate([[0.0], -0.5 / (n * term.scale) ** 2]),
        }
    result: dict[str, Any] = {"people": np.ascontiguousarray(term.attributes, dtype=np.uint8)}
    if term.kind == "censored":
        counts = np.arange(people + 1)
        table = np.zeros((people + 1, people + 1))
        table[1:] = special.log_ndtr(-np.minimum(counts / n[:, None], 1.0) / term.scale[:, None])
        return result | {"kind": "censored", "table": table}
    kind = {"laplace": "absolute", "linfinity": "maximum"}[term.kind]
    factor = np.concatenate([[0.0], -1.0 / (n * term.scale)])
    return result | {"kind": kind, "released": np.ascontiguousarray(term.released), "factor": factor}


def _linear_estimates(parts: Sequence[FrequencyRelease], arrays: Sequence[FloatArray]) -> FloatArray:
    """Estimates of b, shape (count, K), linear in the releases, as if all had n members and people were independent.

    With q = E b, V = diag(q (1 - q)), noise of variance s^2 and f = D^T b / n, the estimate of least mean square error
    is q + V (I + D D^T V / (n s)^2)^-1 D (r - D^T q / n) / (n s^2); releases add up.
    """
    chance = parts[0].prior.marginals(parts[0].n_people)
    n = max(float(chance.sum()), 1.0)
    shared, sums = np.zeros((chance.size, chance.size)), np.zeros((chance.size, len(arrays[0])))
    for part, array in zip(parts, arrays, strict=True):
        assert isinstance(part.noise, ScaledNoise)
        m, variance_of_unit = part.n_attributes, {GaussianNoise: 1, LaplaceNoise: 2}
        # L-infinity noise is y = R U[-1, 1] with E R^2 = (m + 1)(m + 2) scale^2
        unit = variance_of_unit.get(type(part.noise), (m + 1) * (m + 2) / 3)
        precision = 1 / max(unit * float(part.noise.scale_of(round(n))) ** 2, _LEAST_VARIANCE)
        shared += precision * part.panel.gram()
        sums += precision * part.panel.products(array.T)
    variance = chance * (1.0 - chance)
    deviations = (sums - matrix_product.matrix_vector(shared, chance)[:, None] / n) / n
    gain = np.linalg.solve(np.eye(chance.size) + shared * variance / n**2, deviations)
    return np.asarray((chance[:, None] + variance[:, None] * gain).T)


def _starts(
    part: FrequencyRelease, estimates: FloatArray, chains: int, temperatures: int, root: Any
) -> list[ByteArray]:
    """Of each release: starts (chains, replicas, K) from the linear estimate, the prior, everybody and one person.

    Where the number of members is fixed, those of largest and of smallest estimate take the place of the last two.
    """
    prior, people = part.prior, part.n_people
    starts = []
    for release, estimate in enumerate(np.rint(estimates * _SAME_ESTIMATE)):
        words = random_streams.stream_words(root, (release, chains, 1), 4)
        drawn = prior.draw(chains, people, np.random.default_rng(words.tolist())).astype(np.uint8)
        order = np.argsort(-estimate, kind="stable")
        result = drawn.copy()
        if isinstance(prior, FixedSizeMembership):
            for part_of_chains, chosen in ((slice(0, 1), order[: prior.n0]), (slice(2, 3), order[people - prior.n0 :])):
                result[part_of_chains] = 0
                result[part_of_chains, chosen] = 1
        else:
            result[0] = estimate > 0.5 * _SAME_ESTIMATE
            result[0, order[0]] = 1
            result[2:3] = 1  # slices, as there may be fewer chains
            result[3:4] = 0
            result[3:4, order[0]] = 1
        starts.append(np.repeat(result[:, None], temperatures, axis=1))
    return starts


def _empty(start: ByteArray, block: int) -> Chains:
    chains, _, people = start.shape
    return Chains(
        np.zeros((chains, 0, 2, people)), np.zeros((chains, 0, people)), np.zeros((chains, 0, block)), start,
        np.zeros(people, dtype=bool), -math.inf,
    )


def _advanced(model: Any, chains: Chains, chain: int, blocks: int, root: Any, release: int) -> Any:
    """So many further blocks of one chain."""
    done, block = chains.log_density.shape[1:]
    members = chains.last[chain].copy()
    probability, frequency, log_density = [], [], []
    mode, most = chains.mode, chains.mode_log_density
    for number in range(done, done + blocks):
        words = random_streams.stream_words(root, (release, chain, 2 + number), 4)
        sums, visited, densities = model.run(members, words, block)
        probability.append(sums / block)
        frequency.append(visited.mean(axis=0))
        log_density.append(densities)
        best = int(np.argmax(densities))
        if densities[best] > most:
            mode, most = visited[best].astype(bool), float(densities[best])
    return probability, frequency, log_density, members, mode, most


def _appended(chains: Chains, new_blocks: Sequence[Any]) -> Chains:
    joined = [np.concatenate([chains[i], np.array([item[i] for item in new_blocks])], axis=1) for i in range(3)]
    best = max(new_blocks, key=lambda entry: float(entry[5]))
    last = np.array([element[3] for element in new_blocks])
    return Chains(joined[0], joined[1], joined[2], last, best[4], best[5])


def _summary(chains: Chains, confidence: float) -> SampledPosterior:
    """Means, intervals and R-hat of the blocks after the warm-up.

    An interval is Wilson's, of as many samples as the spread of the means of blocks stands for, and at least one of
    each block: also where no block saw a change it has a width.  Where the chains disagree it spans those of each.
    """
    first = int(_WARM_UP * chains.probability.shape[1])  # blocks that are dropped
    with_member, without = (chains.probability[:, first:, i] for i in (0, 1))
    frequency = chains.frequency[:, first:]
    number, blocks, _people = frequency.shape
    block = chains.log_density.shape[2]
    items, zeros = (side.mean(axis=(0, 1)) for side in (with_member, without))
    total = number * blocks * block
    chance = items / (items + zeros)
    if np.any(items == 0.0) or np.any(zeros == 0.0):  # exchanges count whole sweeps: half a sweep for none
        items, zeros = (
            np.where((items == 0.0) | (zeros == 0.0), element + 0.5 / total, element) for element in (items, zeros)
        )
    r_hat = convergence.split_r_hat_of_means(convergence.half_means(frequency))
    scores = convergence.normal_scores(chains.log_density[:, first:].reshape(number, -1))
    density_r_hat, limit = float(convergence.split_r_hat(scores)), convergence.R_HAT_LIMIT
    effective = convergence.effective_samples(with_member, chance, total)
    of_members = convergence.effective_samples(frequency, chance, total)
    enough = (of_members >= convergence.LEAST_SAMPLES) | (np.ptp(frequency, axis=(0, 1)) == 0.0)
    mixed = bool(density_r_hat <= limit and np.all((r_hat <= limit) & enough))
    lower, upper = convergence.wilson_interval(chance, effective, confidence)
    if not mixed:
        each = [
            convergence.wilson_interval(mean, convergence.effective_samples(entry, mean, blocks * block), confidence)
            for entry in np.split(with_member, number)
            for mean in [entry[0].mean(axis=0)]
        ]
        disagree = ~(r_hat <= limit)
        lower = np.where(disagree, np.minimum(lower, np.min([interval[0] for interval in each], axis=0)), lower)
        upper = np.where(disagree, np.maximum(upper, np.max([interval[1] for interval in each], axis=0)), upper)
    log_odds = np.asarray(special.log(items) - special.log(zeros))
    return SampledPosterior(
        chance, log_odds, np.minimum(lower, chance), np.maximum(upper, chance), r_hat, density_r_hat, of_members,
        mixed, chains,
    )
