"""Correlated noise of banded matrices, with records in bins: certified curves, and importance sampling between them.

Notation: b bins, k epochs and so b k steps; a lower triangular Toeplitz matrix C with m <= b bands and coefficients
c_0 .. c_(m-1) >= 0. The mechanism releases C x plus N(0, sigma^2 I) noise, from which a model is trained whose noise is
C^-1 times that. A record in bin i contributes to the steps i, i + b, ..., with at most the sensitivity s each; worst
are equal contributions (all c_j >= 0). In units of sigma / s, with m_i the sum of the columns i, i + b, ... of C,

    P = average over i of N(m_i, I),        Q = N(0, I)

dominates the removal of the record. All columns count as complete, as if the m - 1 steps after the last were released
too: this can only raise delta, and makes all m_i of one length. y_i = <m_i, x> is normal under Q with the covariances

    G_ij = k r_d + (k - 1) r_(b - d),  d = |i - j|,  r_d = sum_l c_l c_(l+d),        G_ii = k r_0 = g,

and R = dP/dQ is the average of Y_i = e^(y_i - g/2).

docs/proofs/sampled_tables.md, theorem 11.5. From below: a convex function of the sum of e^(y_i) has a mean that rises
with every covariance (Mueller 2001, theorem 4.2: it is supermodular in y), and all of them are >= 0: delta is at least
that of independent y_i, of b steps of a random allocation with a^2 = g. It is also at least that of the covariances k
r_d, of bins on a line.

From above: let n = floor(b / m). Bins r, r + m, ..., r + (n - 1) m are m or more apart, also around the end, so that
their y_i are independent. P is the average over r of the averages over these bins, and delta is jointly convex: it is
at most that of n steps of a random allocation (Choquette-Choo et al. 2023 for Poisson sampling). In the same way P is
the average over all rotations of b - m + 1 bins, which have no covariances around the end.

Bins on a line with the covariances k r_d have a law on a grid of the noise: ``banded_sums``.

Up to four bins have the curve of ``few_bins`` instead, whose bounds are close.

Sampling (docs/proofs/sampled_tables.md, theorem 11.6). Means of values between 0 and a number are bounded by bets, at
every number of samples (``BoundedMean``).

Removal: with an integer order k >= 2, Q R^k / E_Q R^k is the mixture of N(m_i1 + .. + m_ik, I) over tuples of bins with
weights in proportion to e^(sum of G over pairs). A tuple is drawn bin by bin, j with a chance in proportion to e^(sum
of G_ji over the bins i so far); let Z_l be the average over j of these numbers after l bins. The weight of a tuple over
its chance is Z_1 .. Z_(k-1), so that the mean of

    Z_1 .. Z_(k-1) (R - e^epsilon)^+ / R^k

is delta. By Hoelder's inequality Z_l is at most zeta_l, the largest over i of the average over j of e^(l G_ji): these
values lie between 0 and zeta_1 .. zeta_(k-1) e^(-(k-1) epsilon) (k - 1)^(k-1) / k^k. The k with the least of these
bounds is taken.

Addition: let S be the average of all y_i, v its variance, and s >= 0. Under the law of y moved by -s times its
covariances with S the mean of

    (1 - e^epsilon R)^+ e^(s S + s^2 v / 2)

is delta. As R >= e^(S - g/2) by the inequality of the means, and (1 - x)^+ <= s^s (1 + s)^-(1 + s) x^-s, these values
lie between 0 and s^s (1 + s)^-(1 + s) e^(s (g/2 - epsilon) + s^2 v / 2). The s with the least of these bounds is taken.

Sources: Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023 (banded matrices); Choquette-Choo, Ganesh,
Haque, Steinke and Thakurta 2025 (balls in bins: the pair dominates); Mueller, Annals of the Institute of Statistical
Mathematics 53, 2001.
"""

# bounds: proved - 1e-9 is far above the rounding of the logarithm of a bound

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import parallel, random_streams, validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.numerics import FloatArray
from ..base.random_streams import RNGLike
from ..pairs.allocations import IMPROVED_DELTAS, AllocationPair
from ..pairs.banded_sums import banded_pair
from ..pairs.few_bins import MAX_FEW_BINS, few_bins_pair
from ..pairs.protocol import BoundingPairs
from ..sampling.statistics.confidence_sequences import BoundedMean
from .random_allocation import StructuredSampling, noise_and_sensitivity

# bound: proved - relative error of a loading: a root, two products and a quotient
_LOADING_ERROR = 2.0**-50
_MAX_BINS = 4096  # of one epoch, for which the error of a value below holds
_MAX_EPOCHS = 10**9  # as many as a random allocation takes
_BLOCK_VALUES = 2**19  # numbers y of a block of samples: 4 MiB
_MAX_ORDER = 24  # of the tuples
_LARGEST_EXPONENT = 600.0  # of bounds of values, and of tilts for addition
_TILTS = np.concatenate([np.zeros(1), np.geomspace(1e-3, 1e4, 400)])  # s that are tried for addition
# bound: proved - relative error of a value f: sums of at most 4096 exponentials, exponents below 2^12 with 8 roundings
_VALUE_ERROR = 1e-10
# bound: proved - values that underflow
_LOST = 1e-300
_MOST_SAMPLES = 10**12  # more take weeks
_DEFAULT_SAMPLES, _DEFAULT_VALUES = (2**14, 2**21), 2**26  # at most, and numbers y of all: about ten seconds
_DEFAULT_TOLERANCE = 0.1  # of a sampled bound, relative to the value


class BandedMatrixMechanism(StructuredSampling):
    """Noise correlated by a banded Toeplitz matrix, with every record in one bin of steps, over several epochs.

    Parameters
    ----------
    coefficients : array_like, shape (bands,)
        First column of the matrix C, from the diagonal on: at least 0 and finite, the first one positive; at most
        ``bins`` of them. ``[1.0]`` is independent noise.
    sigma : float
        Standard deviation of the noise before it is multiplied with the inverse of C, positive and finite.
    bins : int
        Steps of an epoch; a record is put in one of them at random, once. At most 4096.
    sensitivity : float, default 1
        Largest length of the contribution of a record to a step, in the unit of sigma, at least 0 and finite.
    epochs : int, default 1
        Epochs, which go through the bins in the same order.

    Raises
    ------
    DomainError, ShapeError
        For parameters out of range, and negative coefficients, for which equal contributions need not be worst.

    Notes
    -----
    Neighbours differ by a record that is added or removed. ``delta``, ``log_delta`` and ``epsilon`` are certified. For
    up to three bins their bounds agree to 9 digits or more, at any depth down to log delta of -1e4; for four, where
    sigma is not less than a third of the sensitivity. For more bins and two bands they are some percent apart, for
    three and four bands a factor, by laws on a grid of the noise (``banded_sums``), in seconds; these widths grow with
    bins and bands, until the bounds are those of random allocations to ``bins`` and to ``bins // bands`` steps.
    ``sampled_delta`` may be narrower, at a confidence level. Without a band beside the diagonal they are those of
    ``BallsInBins``.

    The pair counts the last columns of C as complete. The matrix need not be the one of an optimal mechanism.

    Cyclic Poisson samples, and samples with a separation, of a banded matrix: ``fastpriv.pairs``.

    **Accuracy** ``tests/enclosures/test_few_bins.py``, ``tests/enclosures/test_structured_sampling.py``,
    ``tests/intervals/test_banded_matrices.py``.

    Source: Choquette-Choo et al. 2023 and 2025; the head of this module.

    Examples
    --------
    >>> from fastpriv.composition import BandedMatrixMechanism
    >>> mechanism = BandedMatrixMechanism([1.0, 0.5], sigma=2.0, bins=8)
    >>> print(f"{mechanism.delta(1.0, direction='forward'):.1e}")
    1.8e-05 [1.8e-05, 1.9e-05]
    """

    __slots__ = _fields = ("coefficients", "sigma", "bins", "sensitivity", "epochs")

    coefficients: FloatArray
    sigma: float
    bins: int
    sensitivity: float
    epochs: int

    def __init__(
        self, coefficients: ArrayLike, sigma: ArrayLike, bins: int, sensitivity: ArrayLike = 1.0, epochs: int = 1
    ) -> None:
        number = validate.count("bins", bins, 1, _MAX_BINS)
        column = checked_coefficients(coefficients, "bins", number)
        noise, span = noise_and_sensitivity(sigma, sensitivity)
        self._set(coefficients=column, sigma=noise, bins=number, sensitivity=span,
                  epochs=validate.count("epochs", epochs, 1, _MAX_EPOCHS))

    @property
    def scale(self) -> float:
        """Length of the sum of a record's columns in units of sigma: the root of g.

        Examples
        --------
        >>> from fastpriv.composition import BandedMatrixMechanism
        >>> BandedMatrixMechanism([3.0, 4.0], sigma=5.0, bins=8, epochs=4).scale
        2.0
        """
        return math.hypot(*self.coefficients.tolist()) * math.sqrt(self.epochs) * self.sensitivity / self.sigma

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        few = self.bins // self.coefficients.size
        dominating, dominated = (AllocationPair(self.scale, steps, False, deltas, 1) for steps in (few, self.bins))
        if self.bins <= MAX_FEW_BINS:
            exact = few_bins_pair(self._exact_covariances(), dominating, dominated)
            if exact is not None:
                return BoundingPairs((exact,))
        if few == self.bins:
            return BoundingPairs((dominating,))
        # bins and covariances that the end of an epoch adds are left out: m - 1 bins from above, these from below
        least, most = (tuple((self._loadings() * (1.0 + side * _LOADING_ERROR)).tolist()) for side in (-1, 1))
        above = self.bins if self.epochs == 1 else self.bins - self.coefficients.size + 1
        near = banded_pair(least, self.bins, most, above, dominating, dominated)
        return BoundingPairs((near,)) if near is not None else BoundingPairs((dominating,), ((dominated,),))

    def _loadings(self) -> FloatArray:
        """The coefficients in units of the noise of a record's bins over all epochs."""
        return self.coefficients * (math.sqrt(self.epochs) * self.sensitivity / self.sigma)

    def _exact_covariances(self) -> tuple[Fraction, ...]:
        """G_0d without rounding."""
        c, b, k = [Fraction(x) for x in self.coefficients.tolist()], self.bins, self.epochs
        r = [sum((x * y for x, y in zip(c, c[d:], strict=False)), Fraction(0)) for d in range(b + 1)]
        square = (Fraction(self.sensitivity) / Fraction(self.sigma)) ** 2
        return tuple((k * r[d] + (k - 1) * (r[b - d] if d else 0)) * square for d in range(b))

    def sampled_delta(
        self, epsilon: Any, *, direction: Literal["forward", "backward"] = "forward", confidence: float = 0.95,
        rtol: float = _DEFAULT_TOLERANCE, max_samples: int | None = None, rng: RNGLike = None,
        n_jobs: int | None = None,
    ) -> Estimate:
        """delta of one direction by importance sampling, within bounds that hold for any number of samples.

        Parameters
        ----------
        epsilon : float
            At least 0 and at most 600, in nats.
        direction : {"forward", "backward"}, default "forward"
            The removal of a record, or its addition.
        confidence : float, default 0.95
            Probability that both bounds hold, at least.
        rtol : float, default 0.1
            Sampling ends when both bounds are within this of the value, relative to it.
        max_samples : int, optional
            Most samples; by default 2^26 divided by the bins, between 2^14 and 2^21.
        rng : None, int, sequence of int, SeedSequence, Generator or BitGenerator, default None
            The seed. The same seed gives the same bits for any ``n_jobs``.
        n_jobs : int, optional
            Threads; None means what ``joblib.parallel_config`` says.

        Returns
        -------
        Estimate
            A probability. Both bounds are also within those of ``delta(epsilon, direction=direction)``.

        Raises
        ------
        DomainError
            For numbers out of range.

        Notes
        -----
        The bounds are those of bets on a mean in a known range, ``cost["largest_value"]``: no variance is estimated.
        For removal the range is Renyi's bound of delta, nearly; for addition that of the geometric mean of the
        likelihood ratios. Where these are many times delta, so are the upper bounds, unless samples are many.

        **Accuracy** ``tests/intervals/test_banded_matrices.py`` counts misses over many seeds.

        Source: Waudby-Smith and Ramdas 2023 (bets); the head of this module.

        Examples
        --------
        >>> from fastpriv.composition import BandedMatrixMechanism
        >>> mechanism = BandedMatrixMechanism([1.0, 0.5], sigma=1.0, bins=20, epochs=2)
        >>> found = mechanism.sampled_delta(3.0, rng=1)
        >>> found.kind, bool(found.upper < 1.2 * found.value)
        ('statistical', True)
        """
        level = validate.scalar("epsilon", epsilon, "between 0 and 600", lambda x: (x >= 0) & (x <= 600))
        side = validate.choice("direction", direction, ("forward", "backward"))
        level_of_bounds = validate.scalar("confidence", confidence, "between 0 and 1", lambda x: (x > 0) & (x < 1))
        tolerance = validate.scalar("rtol", rtol, "positive", lambda x: x > 0)
        fewest, most = _DEFAULT_SAMPLES
        budget = min(max(_DEFAULT_VALUES // self.bins, fewest), most)
        budget = budget if max_samples is None else validate.count("max_samples", max_samples, 1, _MOST_SAMPLES)
        parallel.checked(n_jobs)
        root = random_streams.root(rng)
        proved = self.delta(level, direction=direction)
        size = max(16, min(_BLOCK_VALUES // self.bins, budget))
        sampler = (_TupleSampler if side == "forward" else _TiltSampler)(self, level, root, size)
        high, state = math.exp(sampler.log_largest) * (1.0 + 1e-9), BoundedMean(1)
        done = 0
        while True:
            blocks = max(1, min(max(done, 8), budget // size - done))
            results = parallel.ordered_map(sampler, range(done, done + blocks), n_jobs=n_jobs)
            for values in results:
                state.update(np.minimum(values / high, 1.0)[:, None])
            done += blocks
            interval = state.interval(level_of_bounds)
            value, low, top = (high * float(x[0]) for x in interval)
            low, top = low * (1.0 - _VALUE_ERROR), top * (1.0 + _VALUE_ERROR) + _LOST
            lower, upper = max(low, float(proved.lower)), min(top, float(proved.upper))
            near = max(upper - value, value - lower) <= tolerance * value
            if near or (done + 1) * size > budget:
                break
        cost = {"samples": done * size, "largest_value": high}
        if lower > upper:  # the bets miss what is proved: with probability 1 - confidence at most
            lower, upper = float(proved.lower), float(proved.upper)
        return Estimate(
            min(max(value, lower), upper), lower, upper, kind="statistical", unit="probability",
            confidence=level_of_bounds, method="importance sampling, bets on a bounded mean", cost=cost,
        )


def checked_coefficients(coefficients: Any, name: str, number: int) -> FloatArray:
    """The first column of C, with at most as many bands as the argument ``name`` says."""
    column = validate.vector(
        "coefficients", coefficients, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf),
        remedy="The worst contributions of a record are known for matrices without negative entries only.",
    ).copy()
    if column[0] == 0.0:
        raise DomainError(
            f"coefficients must have a positive first entry; got {float(column[0])!r}. Pass the column of C from its "
            "diagonal on."
        )
    if column.size > number:
        raise DomainError(
            f"coefficients must be at most as many as {name}, {number}; got {column.size}. Pass fewer bands, or a "
            f"larger number as {name}."
        )
    return column


def _covariances(mechanism: BandedMatrixMechanism) -> FloatArray:
    """G_0d for d = 0 .. b - 1; G_ij is its entry |i - j|."""
    c, b, k = mechanism.coefficients, mechanism.bins, mechanism.epochs
    r = np.zeros(b + 1)
    r[: c.size] = np.correlate(c, c, "full")[c.size - 1 :]
    d = np.arange(b)
    wrapped = np.where(d > 0, r[b - d], 0.0)
    return np.asarray((k * r[:b] + (k - 1) * wrapped) * (mechanism.sensitivity / mechanism.sigma) ** 2)


@dataclass(frozen=True, eq=False)
class _BoundedSampler:
    """Values with the mean delta, block by block, from a stream for each block; none exceeds e^``log_largest``."""

    mechanism: BandedMatrixMechanism
    epsilon: float
    root: Any
    size: int

    def __call__(self, block: int) -> FloatArray:
        """The values of a block."""
        sequence = np.random.SeedSequence(self.root.entropy, spawn_key=(*self.root.spawn_key, block))
        return self.values(random_streams.generator(sequence))

    def values(self, rng: np.random.Generator) -> FloatArray:
        """The values of one block."""
        raise NotImplementedError

    @property
    def log_largest(self) -> float:
        """The logarithm of a bound of all values."""
        raise NotImplementedError

    def log_ratio(self, y: FloatArray) -> FloatArray:
        """log R for each row of y."""
        exponents = y - 0.5 * _covariances(self.mechanism)[0]
        top = exponents.max(axis=1, keepdims=True)
        sums = special.exp(np.maximum(exponents - top, -700.0)).sum(axis=1)
        return np.asarray(top[:, 0] + special.log(sums / self.mechanism.bins))


class _TupleSampler(_BoundedSampler):
    """Removal: samples of Q R^k / E_Q R^k, drawn tuple by tuple."""

    @property
    def log_largest(self) -> float:
        """The least bound of all orders k."""
        return float(_log_largest(self.mechanism, self.epsilon).min())

    def values(self, rng: np.random.Generator) -> FloatArray:
        """The values of one block."""
        b, size = self.mechanism.bins, self.size
        order = int(np.argmin(_log_largest(self.mechanism, self.epsilon))) + 2
        covariances = _covariances(self.mechanism)
        positions = np.arange(b)
        y, log_weight = np.zeros((size, b)), np.zeros(size)
        chosen = rng.integers(0, b, size)
        for _ in range(order - 1):
            y += covariances[np.abs(positions - chosen[:, None])]
            sums = np.cumsum(special.exp(y), axis=1)
            log_weight += special.log(sums[:, -1] / b)
            chosen = (sums < (rng.random(size) * sums[:, -1])[:, None]).sum(axis=1)
        y += covariances[np.abs(positions - np.minimum(chosen, b - 1)[:, None])]
        log_ratio = self.log_ratio(y + _noise(self.mechanism, rng, size))
        over = -special.expm1(np.minimum(self.epsilon - log_ratio, 0.0))
        return np.asarray(over * special.exp(log_weight - (order - 1) * log_ratio))


class _TiltSampler(_BoundedSampler):
    """Addition: samples of y that are moved against their average."""

    @property
    def shifts(self) -> FloatArray:
        """Covariances of all y_i with their average."""
        covariances, positions = _covariances(self.mechanism), np.arange(self.mechanism.bins)
        return np.array([covariances[np.abs(positions - i)].mean() for i in positions.tolist()])

    def bounds(self) -> tuple[float, float]:
        """The s of the least bound, and its logarithm."""
        variance, s = float(self.shifts.mean()), _TILTS
        middle = 0.5 * float(_covariances(self.mechanism)[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            factors = np.where(s > 0.0, s * np.log(s / (1.0 + s)), 0.0) - np.log1p(s)
        logs = factors + s * (middle - self.epsilon) + 0.5 * s * s * variance
        # Exponents of values are at most this where R < e^-epsilon, as s S <= s g / 2 there.
        logs[0.5 * s * s * variance + s * middle > _LARGEST_EXPONENT] = math.inf
        logs[0] = 0.0
        best = int(np.argmin(logs))
        return float(s[best]), max(float(logs[best]), -_LARGEST_EXPONENT)

    @property
    def log_largest(self) -> float:
        """The least bound of all s."""
        return self.bounds()[1]

    def values(self, rng: np.random.Generator) -> FloatArray:
        """The values of one block."""
        s, shifts = self.bounds()[0], self.shifts
        y = _noise(self.mechanism, rng, self.size) - s * shifts
        under = -special.expm1(np.minimum(self.epsilon + self.log_ratio(y), 0.0))
        exponents = s * y.mean(axis=1) + 0.5 * s * s * float(shifts.mean())
        return np.asarray(under * special.exp(np.minimum(exponents, 700.0)))


def _noise(mechanism: BandedMatrixMechanism, rng: Any, size: int) -> FloatArray:
    """y under Q: the columns of C over sums of the noise of the steps of one bin in all epochs.

    A column that goes on into the next bins around the end meets the noise of the epochs from the second on.
    """
    b, k, c = mechanism.bins, mechanism.epochs, mechanism.coefficients * (mechanism.sensitivity / mechanism.sigma)
    beyond = c.size - 1
    noise = np.empty((size, b + beyond))
    noise[:, :b] = math.sqrt(k) * rng.standard_normal((size, b))
    if beyond:
        shared = math.sqrt(k - 1) * rng.standard_normal((size, beyond))
        noise[:, :beyond] = shared + rng.standard_normal((size, beyond))
        noise[:, b:] = shared + rng.standard_normal((size, beyond))
    y: FloatArray = c[0] * noise[:, :b]
    for j in range(1, c.size):
        y += c[j] * noise[:, j : j + b]
    return y


def _log_largest(mechanism: BandedMatrixMechanism, epsilon: float) -> FloatArray:
    """Logarithms of the bounds of the values for the orders 2, 3, ..., up to a limit by which no e^y overflows."""
    covariances = _covariances(mechanism)
    b, k = mechanism.bins, np.arange(2, _MAX_ORDER + 1)
    order = np.arange(1, _MAX_ORDER)[:, None] * covariances
    top = order.max(axis=1)
    terms = np.exp(np.maximum(order - top[:, None], -700.0))
    beside = np.cumsum(np.concatenate([np.zeros((_MAX_ORDER - 1, 1)), terms[:, 1:]], axis=1), axis=1)
    # bin i has the distances 1 .. i on one side, and 1 .. b - 1 - i on the other
    rows = terms[:, :1] + beside + beside[:, ::-1]
    sums = top + np.log(rows.max(axis=1) / b)
    result = np.cumsum(sums) - (k - 1) * epsilon + (k - 1) * np.log(k - 1) - k * np.log(k)
    result[k * float(covariances[0]) > _LARGEST_EXPONENT] = math.inf
    result[0] = min(float(result[0]), _LARGEST_EXPONENT)
    return np.asarray(np.maximum(result, -_LARGEST_EXPONENT))
