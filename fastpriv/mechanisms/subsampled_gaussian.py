"""The Gaussian mechanism on a Poisson sample of the records, as one step of DP-SGD has it.

Notation: every record takes part with probability q, independently; sigma the standard deviation of the noise, s the
sensitivity of the sum to one record, g the number of records by which neighbouring data sets differ, which one of them
has and the other lacks. With j ~ Bin(g, q) of them in the sample, the pair

    P = sum_j C(g, j) q^j (1 - q)^(g - j) N(j s, sigma^2),        Q = N(0, sigma^2)

dominates the removal of the records, and Q, P dominates their addition.

Source: Zhu, Dong and Wang 2022, theorem 11 (g = 1); Schuchardt, Stoian, Kosmala and Guennemann 2024 (groups).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError
from ..base.numerics import FloatArray, next_above
from ..base.values import ValueObject
from ..distributions import GaussianMixture

_MAX_GROUP = 1000  # records of a group: its weights are exact fractions of as many factors
# bound: none - what is refused
_LEAST_WEIGHT = 1e-290  # of the components: smaller ones would be subnormal, and lose their relative accuracy


class PoissonSampledGaussian(ValueObject):
    """Normal noise on the sum over a Poisson sample of the records, for neighbours by adding or removing records.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, positive and finite; the noise multiplier where ``sensitivity`` is 1.
    rate : float
        Probability that a record is in the sample, between 0 and 1.
    sensitivity : float, default 1
        Largest length of the contribution of one record, in the unit of sigma, at least 0 and finite.
    group_size : int, default 1
        Records by which neighbouring data sets differ, at most 1000.

    Raises
    ------
    DomainError
        For parameters out of range, or so rare a group that the probability of sampling all of it underflows.

    Notes
    -----
    ``compose`` takes it as a pair; its two directions are the removal (``forward``) and the addition of records. It
    does not cover data sets in which a record is replaced, nor batches of a fixed size.

    **Accuracy** the weights are correctly rounded; ``tests/enclosures/test_compose.py``.

    Source: Abadi et al. 2016; Zhu, Dong and Wang 2022, theorem 11; Schuchardt et al. 2024.

    Examples
    --------
    >>> from fastpriv import PoissonSampledGaussian, compose
    >>> step = PoissonSampledGaussian(sigma=1.0, rate=0.25)
    >>> p, q = step.pair()
    >>> p.weights, p.means
    (array([0.75, 0.25]), array([0., 1.]))
    """

    __slots__ = _fields = ("sigma", "rate", "sensitivity", "group_size")

    sigma: float
    rate: float
    sensitivity: float
    group_size: int

    def __init__(self, sigma: ArrayLike, rate: ArrayLike, sensitivity: ArrayLike = 1.0, group_size: int = 1) -> None:
        noise = validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        sampling = validate.scalar("rate", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        at_least_0 = "at least 0 and finite"
        span = validate.scalar("sensitivity", sensitivity, at_least_0, lambda x: (x >= 0) & (x < np.inf))
        group = validate.count("group_size", group_size, 1, _MAX_GROUP)
        least = min(sampling, 1.0 - sampling)
        if least > 0.0 and group > 1 and group * math.log(least) < math.log(_LEAST_WEIGHT):
            raise DomainError(
                f"group_size must be so small that rate**group_size and (1 - rate)**group_size are at least "
                f"{_LEAST_WEIGHT:g}; got {group} with rate={sampling!r}. Pass a smaller group."
            )
        self._set(sigma=noise, rate=sampling, sensitivity=span, group_size=group)

    def pair(self) -> tuple[GaussianMixture, GaussianMixture]:
        """The mixture with the records and the normal distribution without them.

        Examples
        --------
        >>> from fastpriv import PoissonSampledGaussian
        >>> len(PoissonSampledGaussian(sigma=1.0, rate=0.5, group_size=3).pair()[0])
        4
        """
        weights, _ = self._weights()
        means = np.arange(self.group_size + 1) * self.sensitivity
        return GaussianMixture(weights, means, self.sigma), GaussianMixture.single(0.0, self.sigma)

    def __repr__(self) -> str:
        group = "" if self.group_size == 1 else f", group_size={self.group_size}"
        return (
            f"PoissonSampledGaussian(sigma={self.sigma!r}, rate={self.rate!r}, sensitivity={self.sensitivity!r}{group})"
        )

    def _weights(self) -> tuple[FloatArray, float]:
        """Weights of the components, and the largest relative error of their rounding, rounded up."""
        from fractions import Fraction  # slow to load

        q, g = Fraction(self.rate), self.group_size
        exact = [math.comb(g, j) * q**j * (1 - q) ** (g - j) for j in range(g + 1)]
        rounded = [float(w) for w in exact]
        gap = max(abs(Fraction(r) / w - 1) for r, w in zip(rounded, exact, strict=True) if w)
        return np.array(rounded), float(next_above(float(gap))) if gap else 0.0
