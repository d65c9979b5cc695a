"""Pairs of normal distributions of any covariances in several dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.estimate import Estimate
from ..base.numerics import FloatArray
from ..distributions import GaussianMixture
from ..divergences import renyi_divergence
from ..divergences.reductions.gaussian_spectra import GaussianSpectrum, gaussian_spectrum
from ..divergences.reductions.gaussian_sums import gaussian_sum_bounds, largest_gaussian_loss
from .log_bounds import LogBounds
from .protocol import Bounds, DominatingPair

__all__ = ["GaussianPair"]


@dataclass(frozen=True, slots=True, eq=False)
class GaussianPair(DominatingPair):
    """Two normal distributions whose covariances differ, of which ``gaussian_spectrum`` is known."""

    _fields = ("p", "q", "count")

    p: GaussianMixture
    q: GaussianMixture
    count: int

    @property
    def spectrum(self) -> GaussianSpectrum | None:
        """The loss as a sum over independent coordinates."""
        return gaussian_spectrum(self.p, self.q)

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Hockey-stick divergence."""
        bounds = self.log_delta(np.ravel(epsilon))
        numbers = (row.reshape(np.shape(epsilon)) for row in bounds.numbers)
        found = Estimate(*numbers, kind="certified", unit="log probability", method=bounds.method)
        return found.to("probability")

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Its logarithm."""
        spectrum = self.spectrum
        assert spectrum is not None
        return LogBounds(*gaussian_sum_bounds([(spectrum, 1.0)], epsilon), {}, "sum along a bent contour")

    def reversed(self) -> GaussianPair:
        """Q against P."""
        return GaussianPair(self.q, self.p, self.count)

    def infinite_mass(self) -> Bounds:
        """No loss is infinite."""
        return 0.0, 0.0

    def largest_loss(self) -> Bounds:
        """The loss is a quadratic in each coordinate."""
        spectrum = self.spectrum
        return (0.0, np.inf) if spectrum is None else largest_gaussian_loss([(spectrum, 1)])

    def renyi_divergence(self, order: float) -> Bounds:
        """Certified bounds, by ``fastpriv.renyi_divergence``; of infinite order the largest loss."""
        if np.isinf(order):
            return self.largest_loss()
        found = renyi_divergence(self.p, self.q, order, certified=True)
        return float(found.lower), float(found.upper)
