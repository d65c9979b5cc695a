"""Pairs of Gaussian mixtures on the line: the Gaussian mechanism, Poisson samples of it, and mixtures of any sigmas.

And pairs of normal distributions of any covariances in several dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.estimate import Estimate
from ..base.numerics import FloatArray, doubles_around
from ..distributions import GaussianMixture
from ..divergences import hockey_stick_divergence, renyi_divergence
from ..divergences.hockey_stick import log_hockey_stick_divergence
from ..divergences.reductions.gaussian_spectra import GaussianSpectrum, gaussian_spectrum
from ..divergences.reductions.gaussian_sums import gaussian_sum_bounds, largest_gaussian_loss
from ..divergences.reductions.independent_factors import independent_factors
from .log_bounds import LogBounds
from .protocol import Bounds, DominatingPair, GaussianFit, SampledPair

# bound: none - ratios of distance and sigma, and rates, outside of which sampled Gaussians are mixtures like others
_RATIOS, _RATES = (1e-2, 40.0), (1e-100, 0.9)


@dataclass(frozen=True, slots=True, eq=False)
class MixturePair(DominatingPair):
    """Mixtures on the line, with the relative errors of their weights.

    Where ``rate`` is not 0 one of them is the normal distribution of the other with the weight 1 - rate, exactly, and
    another with the weight rate, a double: the relative errors are the rounding of 1 - rate alone.
    """

    has_moments = losses_are_finite = True

    p: GaussianMixture
    q: GaussianMixture
    count: int
    p_relative_error: float = 0.0
    q_relative_error: float = 0.0
    rate: float = 0.0

    @property
    def mixtures(self) -> tuple[GaussianMixture, GaussianMixture]:
        """P and Q."""
        return self.p, self.q

    @property
    def sampled_gaussian(self) -> SampledPair | None:
        """The parameters where one side is a normal distribution and the other a mixture of it and a second one."""
        return _sampled_gaussian(self)

    @property
    def squared_gaussian_distance(self) -> Fraction | None:
        """The exact square of the distance in sigmas, of two normal distributions of one sigma."""
        if len(self.p) > 1 or len(self.q) > 1 or self.p.sigmas[0] != self.q.sigmas[0]:
            return None
        difference = Fraction(float(self.p.means[0])) - Fraction(float(self.q.means[0]))
        return (difference / Fraction(float(self.p.sigmas[0]))) ** 2

    @property
    def spectrum(self) -> GaussianSpectrum | None:
        """The coordinate of two normal distributions."""
        return gaussian_spectrum(self.p, self.q) if len(self.p) == len(self.q) == 1 else None

    @property
    def is_trivial(self) -> bool:
        """Whether both are the same mixture."""
        return bool(self.p == self.q)

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Hockey-stick divergence."""
        return hockey_stick_divergence(self.p, self.q, epsilon)

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Its logarithm."""
        return LogBounds.of_estimate(log_hockey_stick_divergence(self.p, self.q, epsilon))

    def reversed(self) -> MixturePair:
        """Q against P."""
        return MixturePair(self.q, self.p, self.count, self.q_relative_error, self.p_relative_error, self.rate)

    def largest_loss(self) -> Bounds:
        """The Renyi divergence of infinite order."""
        return self.renyi_divergence(math.inf)

    @property
    def least_loss(self) -> float:
        """That of the mixture of a sample."""
        return _least_loss(self)

    def renyi_divergence(self, order: float) -> Bounds:
        """Certified bounds, by ``fastpriv.renyi_divergence``."""
        return _renyi_bounds(self.p, self.q, order)

    def gaussian_fit(self) -> GaussianFit:
        """By the farthest two components, where all sigmas are one."""
        (a, s), (b, t) = (
            (side.means[side.weights > 0].reshape(-1), side.sigmas[side.weights > 0]) for side in (self.p, self.q)
        )
        if s.max() != t.max():
            return GaussianFit(impossible="losses with exponential tails: the largest sigmas differ")
        if s.min() != s.max() or t.min() != t.max():
            return GaussianFit()
        a, b = a.astype(np.longdouble), b.astype(np.longdouble)
        square = (max(abs(a.max() - b.min()), abs(b.max() - a.min())) / s[0]) ** 2
        return GaussianFit(square, square if a.size == 1 else 0.0, square if b.size == 1 else 0.0)

    def add_to_contour(self, sums: Any) -> bool:
        """The components of both sides."""
        if self.is_trivial:
            return True
        columns, excess = [], []
        for side in (self.p, self.q):
            used = side.weights > 0.0
            columns += [np.ascontiguousarray(x[used]) for x in (side.weights, side.means, side.sigmas)]
            excess.append(math.fsum([*side.weights.tolist(), -1.0]))
        return bool(sums.add_mixtures(self.count, *columns, *excess))


@lru_cache(maxsize=64)  # both directions of a composition ask for both orders
def _renyi_bounds(p: GaussianMixture, q: GaussianMixture, order: float) -> Bounds:
    result = renyi_divergence(p, q, order, certified=True)
    return float(result.lower), float(result.upper)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianPair(DominatingPair):
    """Two normal distributions whose covariances differ, of which ``gaussian_spectrum`` is known."""

    losses_are_finite = True

    p: GaussianMixture
    q: GaussianMixture
    count: int

    @property
    def spectrum(self) -> GaussianSpectrum | None:
        """The loss as a sum over independent coordinates."""
        return gaussian_spectrum(self.p, self.q)

    @property
    def coordinates(self) -> tuple[DominatingPair, ...]:
        """A pair for each coordinate, where they are independent."""
        factors = None if "full" in (self.p.form, self.q.form) else independent_factors(self.p, self.q)
        mixtures = None if factors is None else [factor.narrow for factor in factors]
        return (self,) if mixtures is None else tuple(MixturePair(p, q, self.count) for p, q in mixtures)

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Logarithm of the hockey-stick divergence."""
        spectrum = self.spectrum
        assert spectrum is not None
        return LogBounds(*gaussian_sum_bounds([(spectrum, 1.0)], epsilon), {}, "sum along a bent contour")

    def reversed(self) -> GaussianPair:
        """Q against P."""
        return GaussianPair(self.q, self.p, self.count)

    def largest_loss(self) -> Bounds:
        """The loss is a quadratic in each coordinate."""
        spectrum = self.spectrum
        return (0.0, np.inf) if spectrum is None else largest_gaussian_loss([(spectrum, 1)])

    def renyi_divergence(self, order: float) -> Bounds:
        """Certified bounds, by ``fastpriv.renyi_divergence``; of infinite order the largest loss."""
        if np.isinf(order):
            return self.largest_loss()
        result = renyi_divergence(self.p, self.q, order, certified=True)
        return float(result.lower), float(result.upper)


@lru_cache(maxsize=64)
def _least_loss(pair: MixturePair) -> float:
    most = pair.reversed().largest_loss()[1]
    return -most if most < math.inf else 0.0


@lru_cache(maxsize=64)
def _sampled_gaussian(pair: MixturePair) -> SampledPair | None:
    if sorted((len(pair.p), len(pair.q))) != [1, 2]:
        return None
    removes = len(pair.p) == 2
    mixture, base = (pair.p, pair.q) if removes else (pair.q, pair.p)
    sigmas, means = mixture.sigmas.tolist(), mixture.means.tolist()
    centre, sigma = float(base.means[0]), float(base.sigmas[0])
    if sigmas != [sigma, sigma] or (centre != means[0]) == (centre != means[1]):
        return None
    index = 1 if means[0] == centre else 0
    rate = float(mixture.weights[index])
    rounded = pair.p_relative_error or pair.q_relative_error or math.fsum([*mixture.weights.tolist(), -1.0])
    if pair.rate != rate and rounded:
        return None
    quotient = abs(Fraction(means[index]) - Fraction(centre)) / Fraction(sigma)
    if not (_RATIOS[0] <= quotient <= _RATIOS[1] and _RATES[0] <= rate <= _RATES[1]):
        return None
    small, large = doubles_around(1 / quotient)
    return SampledPair(doubles_around(quotient), (large, small), (rate, rate), "remove" if removes else "add")
