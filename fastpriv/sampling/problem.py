"""Sampling problems: where samples come from, which densities they are given, and which function of these is averaged.

Notation: lp, lq, lg the log densities of P, Q and of the proposal G that the samples come from; f the integrand, whose
mean under G is the number wanted. A sampling distribution has sources, each with a fixed share of the samples; a source
that is a mixture is stratified by its components.

P and Q are each a GaussianMixture, a Density, or one side of a LogRatio (``distribution_pair``). Two mixtures are
brought to the coordinates in which they cost least; a density that only its owner knows keeps them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import SeedSequence

from ..base import random_streams
from ..base.errors import DomainError
from ..base.numerics import FloatArray, IntArray, WordArray
from ..base.parallel import blocks
from ..distributions import Density, GaussianMixture, LogRatio
from ..distributions.packed import Packed, log_density, log_density_information, pack, pack_together
from ..kernels import _sample_terms

# Costs are in units of one component times one coordinate of a mixture's log density.
DRAWING_COST = 40.0  # of drawing a sample, for each coordinate
USER_COST, PLAIN_COST = 100.0, 1e4  # of a density known to its owner alone, for each coordinate; in plain Python
TERM_ROWS = 8  # parameters of an integrand whose values are held at a time: bounds the memory of a tile
DOMINATING_SHARE = 0.25  # share of the samples that the dominating proposal keeps beside local normals
TRIAL_DRAWS = 16  # of the other distribution, on which a function without a sampler is tried
ONE_COMPONENT = np.ones(1)  # weights of a source without components


class EvaluableDensity(Protocol):
    """A density given by the user; ``x`` has one row a dimension."""

    dimension: int

    @property
    def form(self) -> str:
        """How it is called: "jitted", "vectorized" or "plain"."""

    def evaluate(self, x: FloatArray, *, drawn_from: Any = ...) -> FloatArray:
        """Log densities, shape (n,), of the columns of x; ``drawn_from`` is the distribution they were drawn from."""


class SamplableDensity(EvaluableDensity, Protocol):
    """A density with a sampler."""

    def draw(self, words: WordArray, n: int) -> FloatArray:
        """The n samples, shape (d, n), of the stream that ``words`` name."""


@dataclass(frozen=True)
class SampleSource:
    """One source of samples.

    Attributes
    ----------
    share : float
        Its share of all samples.
    distribution : Packed or SamplableDensity
        A mixture, sampled component by component, or a density with a sampler.
    weights : ndarray, shape (k,)
        Probabilities of the components; they sum to 1.
    allocation : ndarray, shape (k,)
        Share of the samples of this source that each component gets; ``weights`` unless reallocated.
    """

    share: float
    distribution: Packed | SamplableDensity
    weights: FloatArray
    allocation: FloatArray

    @classmethod
    def of(cls, distribution: Packed | SamplableDensity, weights: FloatArray, share: float = 1.0) -> SampleSource:
        """A source whose components get the samples that their weights ask for."""
        return cls(share, distribution, weights, weights)

    @classmethod
    def of_mixture(cls, packed: Packed, mixture: GaussianMixture, share: float = 1.0) -> SampleSource:
        """A mixture, stratified by its components, its weights divided by their sum."""
        return cls.of(packed, mixture.weights / mixture.weights.sum(), share)

    @property
    def importance_weights(self) -> FloatArray | None:
        """What a sample of each component counts for; None for 1 everywhere."""
        return None if self.allocation is self.weights else self.weights / self.allocation

    def component_ends(self, n: int, start: FloatArray) -> IntArray:
        """The first sample after those of each component, when sample k stands at (k + start) / n; a row a start."""
        ends = np.ceil(n * np.cumsum(self.allocation) - start[:, np.newaxis])
        ends[:, -1] = n
        return np.clip(ends, 0, n).astype(np.int64)


class Term(NamedTuple):
    """One kind of integrand, for each of its parameters.

    ``name`` is one of ``fastpriv.kernels._sample_terms.NAMES``, or "information" or "entropy".
    """

    name: str
    parameters: FloatArray


class Integrand(NamedTuple):
    """Functions of log densities, and a range that their values never leave, infinite where there is no bound."""

    terms: tuple[Term, ...]
    low: float
    high: float

    @property
    def size(self) -> int:
        """The number e of averages: of the parameters of all terms."""
        return sum(len(term.parameters) for term in self.terms)

    @property
    def bounded(self) -> bool:
        """Whether the range is finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class LogDensities(NamedTuple):
    """Log densities at n samples; of the integrand "information" the divergence of the posterior stands in ``lq``."""

    lp: FloatArray
    lq: FloatArray
    lg: FloatArray


@dataclass(frozen=True)
class SamplingProblem:
    """A sampling distribution, the densities of its samples, and an integrand.

    Attributes
    ----------
    distribution : {"direct", "balanced", "tilted"}
        What the samples come from: P, (P + Q) / 2, or a proposal.
    sources : tuple of SampleSource
        The parts of that distribution.
    p, q : Packed or EvaluableDensity
        What gives log densities.
    proposals : tuple of Packed
        Mixtures, scaled, whose sum is the density g that the integrand is given.
    integrand : Integrand
        What is averaged.
    monitors_tail : bool
        Whether the variance of the integrand may be infinite, so that its largest values are collected.
    user_density : bool
        Whether a density is known to its owner alone: its normalisation is in doubt, and mass may hide from samples.
    q_sources : tuple of SampleSource
        Sources of Q where samples are of P alone, for a comparison of the integrals.
    """

    distribution: str
    sources: tuple[SampleSource, ...]
    p: Packed | EvaluableDensity
    q: Packed | EvaluableDensity | None
    proposals: tuple[Packed, ...]
    integrand: Integrand
    monitors_tail: bool = False
    user_density: bool = False
    q_sources: tuple[SampleSource, ...] = ()

    @property
    def has_components(self) -> bool:
        """Whether some source is a mixture, so that its points can be chosen."""
        return any(isinstance(source.distribution, Packed) for source in self.sources)

    @property
    def largest_weight(self) -> float:
        """The most that a sample counts for."""
        weights = [source.importance_weights for source in self.sources]
        return max([1.0, *(float(weight.max()) for weight in weights if weight is not None)])

    @property
    def dimension(self) -> int:
        """Coordinates of a sample."""
        return self.p.dimension

    @property
    def cost(self) -> float:
        """Components times coordinates that a sample is held against. The model is fixed, so that choices never depend
        on a clock."""
        return sum(_evaluation_cost(side) for side in (self.p, self.q, *self.proposals) if side is not None)

    @property
    def effort(self) -> float:
        """``cost`` and that of drawing a sample: what problems are compared by."""
        return self.cost + DRAWING_COST * self.dimension

    def source_ranges(self, n: int) -> Iterator[tuple[SampleSource, int, int]]:
        """Every source with the range of its samples among n: the first, and the one after the last."""
        first, share = 0, 0.0
        for source in self.sources:
            share += source.share
            last = n if source is self.sources[-1] else round(n * share)
            yield source, first, last
            first = last

    def densities(self, x: FloatArray, drawn_from: object, workspace: FloatArray | None = None) -> LogDensities:
        """Log densities at the columns of x, which were drawn from ``drawn_from``.

        ``workspace``, of shape (3, n), holds the results of mixtures: fresh memory costs as much as the work.
        """
        workspace = np.empty((3, x.shape[1])) if workspace is None else workspace
        if self.integrand.terms[0].name == "information":
            assert isinstance(self.p, Packed)
            return LogDensities(*log_density_information(self.p, x), workspace[0])
        lp = _evaluated(self.p, x, drawn_from, workspace[0])
        lq = lp if self.q is None else _evaluated(self.q, x, drawn_from, workspace[1])
        lg = log_density(self.proposals[0], x, workspace[2]) if self.proposals else lp
        for proposal in self.proposals[1:]:
            np.logaddexp(lg, log_density(proposal, x), out=lg)
        return LogDensities(lp, lq, lg)

    def sums(self, densities: LogDensities, weights: FloatArray | None, count: int = 1) -> FloatArray:
        """Sums of f over each of ``count`` runs of samples of one length, shape (count, e), in a fixed order and in
        bounded memory."""
        sums, first = np.empty((self.integrand.size, count)), 0
        for term in self.integrand.terms:
            out = sums[first : first + len(term.parameters)]
            if count == 1 and weights is None and term.name in _sample_terms.CODES:
                _sample_terms.term_sums(term.name, *densities, term.parameters, out[:, 0])
            else:
                for rows in blocks(len(out), TERM_ROWS):
                    values = _term_values(term, densities, term.parameters[rows], weights)
                    _sample_terms.ordered_sums(values.reshape(-1, values.shape[1] // count), out[rows].reshape(-1))
            first += len(out)
        return sums.T

    def values(self, densities: LogDensities, weights: FloatArray | None) -> FloatArray:
        """f at the samples, shape (e, n)."""
        terms = self.integrand.terms
        return np.concatenate([_term_values(term, densities, term.parameters, weights) for term in terms])


def _term_values(term: Term, densities: LogDensities, parameters: FloatArray, weights: FloatArray | None) -> FloatArray:
    if term.name == "information":
        out = densities.lq[np.newaxis].copy()
    elif term.name == "entropy":
        out = -densities.lp[np.newaxis]
    else:
        out = np.empty((len(parameters), len(densities.lp)))
        _sample_terms.terms(term.name, *densities, parameters, out)
    if weights is not None:
        out *= weights
    return out


def _evaluation_cost(side: Packed | EvaluableDensity) -> float:
    if not isinstance(side, Packed):
        return (PLAIN_COST if side.form == "plain" else USER_COST) * side.dimension
    return float(side.scales.size if len(side.scales) == len(side) else len(side) * side.scales.size)


def _evaluated(side: Packed | EvaluableDensity, x: FloatArray, drawn_from: object, out: FloatArray) -> FloatArray:
    return log_density(side, x, out) if isinstance(side, Packed) else side.evaluate(x, drawn_from=drawn_from)


class RatioSide:
    """P or Q of a LogRatio: log p/q takes the place of log p, and 0 that of log q."""

    def __init__(self, ratio: LogRatio, side: str) -> None:
        self.ratio, self.side, self.dimension = ratio, side, ratio.dimension

    @property
    def form(self) -> str:
        """That of the ratio; q costs nothing."""
        return self.ratio.form if self.side == "p" else "vectorized"

    def evaluate(self, x: FloatArray, drawn_from: object = None) -> FloatArray:
        """Log densities relative to q; ``drawn_from`` is the side that x was drawn from."""
        if self.side == "q":
            return np.zeros(x.shape[1])
        return self.ratio.evaluate(x, drawn_from=drawn_from.side if isinstance(drawn_from, RatioSide) else None)

    def draw(self, words: WordArray, n: int) -> FloatArray:
        """Draws of this side."""
        return self.ratio.draw(words, n, self.side)


@dataclass(frozen=True)
class DistributionPair:
    """P and Q, with their samples where there are any.

    Attributes
    ----------
    p, q : Packed or EvaluableDensity
        What gives log densities.
    sources_p, sources_q : tuple of SampleSource
        Where samples of each come from; empty where there is no sampler.
    both_mixtures : bool
        Whether both are mixtures, so that tails are known to be light.
    """

    p: Packed | EvaluableDensity
    q: Packed | EvaluableDensity
    sources_p: tuple[SampleSource, ...]
    sources_q: tuple[SampleSource, ...]
    both_mixtures: bool

    def direct(self, integrand: Integrand, *, heavy: bool = False) -> SamplingProblem:
        """Samples of P; ``heavy`` says that the variance may be infinite."""
        q_sources = () if self.both_mixtures else self.sources_q
        return replace(self._problem("direct", self.sources_p, integrand, heavy), q_sources=q_sources)

    def balanced(self, integrand: Integrand, *, heavy: bool = False) -> SamplingProblem:
        """Samples of (P + Q) / 2, half of them from each."""
        halves = tuple(replace(source, share=0.5) for source in (*self.sources_p, *self.sources_q))
        return self._problem("balanced", halves, integrand, heavy)

    def swapped(self) -> DistributionPair:
        """Q and P."""
        return replace(self, p=self.q, q=self.p, sources_p=self.sources_q, sources_q=self.sources_p)

    def _problem(
        self, distribution: str, sources: tuple[SampleSource, ...], integrand: Integrand, heavy: bool
    ) -> SamplingProblem:
        return SamplingProblem(
            distribution, sources, self.p, self.q, (), integrand, user_density=not self.both_mixtures,
            monitors_tail=heavy or not (self.both_mixtures or integrand.bounded),
        )


def distribution_pair(p: Any, q: Any, root: SeedSequence) -> DistributionPair:
    """The pair. Functions are tried once: their errors and the warning of plain Python come from here."""
    if isinstance(p, LogRatio):
        p.trial(random_streams.stream_words(root, (9, 0), 4))
        numerator, denominator = RatioSide(p, "p"), RatioSide(p, "q")
        q_sources = (SampleSource.of(denominator, ONE_COMPONENT),) if "q" in p.sides else ()
        p_sources = (SampleSource.of(numerator, ONE_COMPONENT),)
        return DistributionPair(numerator, denominator, p_sources, q_sources, False)
    if isinstance(p, GaussianMixture) and isinstance(q, GaussianMixture):
        first, second = pack_together(p, q).packs
        sources = (SampleSource.of_mixture(first, p),), (SampleSource.of_mixture(second, q),)
        return DistributionPair(first, second, *sources, True)
    _try_densities(p, q, root)
    (density_p, sources_p), (density_q, sources_q) = _density_and_sources(p), _density_and_sources(q)
    if not sources_p and not sources_q:
        raise DomainError("p must have a sampler, or q; got neither. Pass Density(log_density, sampler, ...).")
    return DistributionPair(density_p, density_q, sources_p, sources_q, False)


def proposal_problem(
    p: GaussianMixture, q: GaussianMixture, proposals: dict[GaussianMixture, float], log_scale: float, term: Term
) -> SamplingProblem:
    """Samples of proposals in these shares; the density of the first times exp(log_scale) dominates what is integrated,
    so that the integrand is at most 1 over its share."""
    first, second, *packs = pack_together(p, q, *proposals).packs
    shares = list(proposals.values())
    sources = tuple(map(SampleSource.of_mixture, packs, proposals, shares))
    scaled = tuple(
        replace(packed, constants=packed.constants + log_scale + math.log(share))
        for packed, share in zip(packs, shares, strict=True)
    )
    integrand = Integrand((term,), 0.0, 1.0 / shares[0])
    return SamplingProblem("tilted", sources, first, second, scaled, integrand, monitors_tail=True)


def _density_and_sources(distribution: Any) -> tuple[Packed | EvaluableDensity, tuple[SampleSource, ...]]:
    if isinstance(distribution, GaussianMixture):
        packed = pack(distribution)
        return packed, (SampleSource.of_mixture(packed, distribution),)
    return distribution, (SampleSource.of(distribution, ONE_COMPONENT),) if distribution.has_sampler else ()


def _try_densities(p: Any, q: Any, root: SeedSequence) -> None:
    """Call every function on a few points: its own draws, or those of the other distribution."""
    for index, (distribution, other) in enumerate(((p, q), (q, p))):
        if isinstance(distribution, Density):
            words = random_streams.stream_words(root, (9, index), 4)
            distribution.trial(words, None if distribution.has_sampler else _trial_draws(other, words))


def _trial_draws(distribution: Any, words: WordArray) -> FloatArray | None:
    if isinstance(distribution, GaussianMixture):
        drawn = distribution.sample(TRIAL_DRAWS, rng=words.tolist())
        return np.ascontiguousarray(drawn.reshape(TRIAL_DRAWS, -1).T)
    return distribution.draw(words, TRIAL_DRAWS) if distribution.has_sampler else None
