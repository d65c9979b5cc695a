"""Several releases of one secret, through the same mechanism or through several, as one mechanism.

Notation: channel i releases k_i times, independently given the secret d; c_i[w] counts how often it released w. The
counts are sufficient for the secret: their probability is

    product over i of (multinomial coefficient of c_i) * product over w of Q_i[d, w]^c_i[w],

so that k releases of m values are C(k + m - 1, m - 1) types instead of m^k sequences. Of releases x + N(0, sigma_i^2)
the mean with weights 1 / sigma_i^2 is sufficient: one release of sigma^-2 = sum k_i sigma_i^-2.

Source: the method of types, Cover and Thomas 2006, chapter 11; the factorisation theorem of Fisher and Neyman.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, LongDoubleArray, next_above, next_below
from ..channels import AnyChannel, Channel, RowPair, TypeClasses
from ..channels.type_classes import (
    compositions,
    log_multinomials,
    prior_gap,
    product_pairs,
    relative_logs,
    weighted_sums,
)
from .gaussian import GaussianMechanism

__all__ = ["RepeatedChannel", "repeated_releases"]

_MOST_CELLS = 2**22  # secrets times types: 32 MiB of doubles
_MOST_PAIR_CELLS = 2**22  # ordered pairs of secrets times types that are listed for the curve of the worst pair
_MOST_RELEASES = 2**31  # of one mechanism
# bound: tested by enclosures/test_repeated_releases - relative error of a log relative likelihood of one release, and
#    absolute error for each unit of 1 + |log| of a cell that is known by its logarithm
_LOG_ROUNDING = 8 * UNIT_ROUNDOFF


class RepeatedChannel(AnyChannel):
    """The counts of what channels release, each of them several times, of one secret: made by ``repeated_releases``.

    Parameters
    ----------
    channels : sequence of AnyChannel
        Of the same number of secrets, independent of each other given the secret.
    counts : sequence of int
        How many releases through each.

    Raises
    ------
    DomainError, ShapeError
        For channels of different numbers of secrets, and more than 2**22 products of a secret and a type.

    Notes
    -----
    **Accuracy** as that of channels that are stored; ``tests/enclosures/test_repeated_releases.py``.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions, repeated_releases
    >>> q = repeated_releases(RandomizedResponse(2, 0.1), 200)
    >>> q.shape, round(notions.ldp_epsilon(None, q).value, 9)
    ((2, 201), 20.0)
    """

    __slots__ = ("_error", "_log_total", "_relative", "channels", "counts")
    _fields = ("channels", "counts")

    channels: tuple[AnyChannel, ...]
    counts: tuple[int, ...]
    _log_total: FloatArray  # log of the multinomial coefficients times the largest likelihood, shape (types,)
    _relative: FloatArray  # log likelihood less the largest, shape (types, secrets)
    _error: float  # of these, absolute

    def __init__(self, channels: Sequence[AnyChannel], counts: Sequence[int]) -> None:
        factors = tuple(channels)
        for factor in factors:
            validate.instance("channels", factor, AnyChannel)
        if not factors or any(factor.inputs != factors[0].inputs for factor in factors):
            raise ShapeError(
                "channels must have one number of secrets, at least one channel; got "
                f"{validate.shown([factor.inputs for factor in factors])} secrets. All release the same secret."
            )
        repeats = [validate.count("counts", count, 1, _MOST_RELEASES) for count in counts]
        if len(repeats) != len(factors):
            raise ShapeError(
                f"counts must have one entry for each of the {len(factors)} channels; got {len(repeats)}. "
                "Pass the number of releases through each."
            )
        cells = factors[0].inputs * math.prod(
            math.comb(count + factor.outputs - 1, factor.outputs - 1)
            for factor, count in zip(factors, repeats, strict=True)
        )
        if cells > _MOST_CELLS:
            raise DomainError(
                f"counts must give at most {_MOST_CELLS} products of a secret and a type of releases; got "
                f"{validate.shown(cells)}. Merge releases of the channel with then(labels), or bound the leakage by "
                "count times that of one release."
            )
        log_total, relative = np.zeros(1, np.longdouble), np.zeros((1, factors[0].inputs), np.longdouble)
        error = 0.0
        for factor, count in zip(factors, repeats, strict=True):
            more_total, more_relative, more_error = _types_of_releases(factor, count)
            log_total = np.add.outer(log_total, more_total).reshape(-1)
            relative = (relative[:, None] + more_relative[None]).reshape(-1, relative.shape[1])
            error += more_error
        top = relative.max(axis=1)
        possible = top > -np.inf
        log_total, relative, top = log_total[possible], relative[possible], top[possible]
        self._set(
            channels=factors,
            counts=tuple(repeats),
            _error=error,
            _log_total=np.asarray(log_total + top, dtype=np.float64),
            _relative=np.asarray(relative - top[:, None], dtype=np.float64),
        )

    @property
    def mass_gap(self) -> float:
        """Largest distance of the sum of a row from 1."""
        pairs = zip(self.channels, self.counts, strict=True)
        return next_above(math.expm1(sum(count * math.log1p(factor.mass_gap) for factor, count in pairs)))

    def _input_count(self) -> int:
        return int(self._relative.shape[1])

    def _output_count(self) -> int:
        return int(self._log_total.size)

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.ascontiguousarray((self._log_total[:, None] + self._relative[:, start:stop]).T)

    def _type_classes(self, prior: FloatArray | None) -> TypeClasses:
        types, secrets = self._relative.shape
        mass = np.full(secrets, 1.0 / secrets) if prior is None else prior
        with np.errstate(divide="ignore"):
            log_mass = np.tile(np.log(mass), types)
        return TypeClasses(
            np.zeros(types), self._log_total, np.arange(0, secrets * types + 1, secrets), self._relative.reshape(-1),
            np.tile(mass, types), log_mass, log_mass, log_mass, gap=prior_gap(prior), error=self._error,
        )  # fmt: skip

    def dominating_pairs(self) -> tuple[RowPair, ...] | None:
        """The pair of the channel, if it is one that has one; else all ordered pairs of different rows, if few."""
        if len(set(self.channels)) == 1:
            pairs = self.channels[0].dominating_pairs()
            if pairs is not None and len(pairs) == 1:
                return product_pairs([(pairs, sum(self.counts))])
        types, secrets = self._relative.shape
        if secrets * (secrets - 1) * types > _MOST_PAIR_CELLS:
            return None
        with np.errstate(invalid="ignore"):
            error = self._error + _LOG_ROUNDING * (8.0 + np.abs(self._log_total))
            rows = (self._log_total[:, None] + self._relative).T
            ratios = self._relative[:, :, None] - self._relative[:, None, :]
        return tuple(
            RowPair(rows[i], rows[j], ratios[:, i, j], error + _LOG_ROUNDING * _largest(rows[i], rows[j]),
                    2.0 * self._error + _LOG_ROUNDING * _largest(ratios[:, i, j]))
            for i in range(secrets) for j in range(secrets) if i != j
        ) or (RowPair.trivial(),)  # fmt: skip

    def __repr__(self) -> str:
        parts = (f"{count} x {factor!r}" for factor, count in zip(self.channels, self.counts, strict=True))
        return f"<RepeatedChannel: {', '.join(parts)}>"


def repeated_releases(mechanism: Any, count: ArrayLike = 1) -> RepeatedChannel | GaussianMechanism:
    """Several independent releases of one secret, as one mechanism that every privacy notion takes.

    Parameters
    ----------
    mechanism : AnyChannel, array_like of shape (n, m), GaussianMechanism, or a sequence of these
        A channel, or its rows; of a sequence all are channels of the same secrets, or all Gaussian with one sigma each.
    count : int or sequence of int
        How many releases through each; one number holds for all.

    Returns
    -------
    RepeatedChannel or GaussianMechanism
        The channel to the counts of each release, which say as much of the secret as all releases in order; or the
        Gaussian mechanism with sigma^-2 the sum of count / sigma_i^2. Its sigma is rounded down, by at most one unit in
        the last place: what bounds its leakage from above bounds that of the releases.

    Raises
    ------
    DomainError, ShapeError
        For a mechanism of neither kind, several sensitivities, counts below 1, and channels of too many types.

    Notes
    -----
    **Accuracy** that of the notions for channels and Gaussian mechanisms; the rounding of cells counts once for each
    release. ``tests/enclosures/test_repeated_releases.py``.

    Source: Cover and Thomas 2006, chapter 11 and section 2.9 on sufficient statistics.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, RandomizedResponse, notions, repeated_releases
    >>> repeated_releases(GaussianMechanism(6.0, 1.0), 4)
    GaussianMechanism(sigma=3.0, sensitivity=1.0)
    >>> notions.cd_lmip(None, repeated_releases(RandomizedResponse(2, 1.0), [10])).value
    0.5432509714...
    """
    several = isinstance(mechanism, (list, tuple)) and all(
        isinstance(item, (AnyChannel, GaussianMechanism)) for item in mechanism
    )
    mechanisms = list(mechanism) if several else [mechanism]
    if not mechanisms:
        raise ShapeError(
            f"mechanism must be one mechanism or a list of at least one; got {validate.shown(mechanism)}. Pass those "
            "that release the secret."
        )
    counts = np.broadcast_to(
        validate.integers("count", count, 1, _MOST_RELEASES), np.shape(count) or (len(mechanisms),)
    ).tolist()
    if len(counts) != len(mechanisms):
        raise ShapeError(
            f"count must be one number, or one for each of the {len(mechanisms)} mechanisms; got {len(counts)}. "
            "Pass the number of releases through each."
        )
    if mechanisms and all(isinstance(one, GaussianMechanism) for one in mechanisms):
        return _gaussian(mechanisms, counts)
    channels = [
        element
        if isinstance(element, AnyChannel)
        else validate.with_argument_name("matrix", "mechanism", lambda entry=element: Channel(entry))  # type: ignore[misc]
        for element in mechanisms
    ]
    return RepeatedChannel(channels, counts)


def _gaussian(mechanisms: list[GaussianMechanism], counts: list[int]) -> GaussianMechanism:
    listed: list[Any] = [item.sensitivity for item in mechanisms]
    sensitivities = {entry for entry in listed if entry is None or np.ndim(entry) == 0}
    if len(sensitivities) != 1 or any(element is not None and np.ndim(element) for element in listed):
        raise DomainError(
            "mechanism must have one sensitivity, as all releases are of one value; got "
            f"{validate.shown(listed)}. Rescale sigma with the sensitivity."
        )
    sigmas = [Fraction(validate.scalar("sigma", mechanism.sigma)) for mechanism in mechanisms]
    precision = sum((count / sigma**2 for sigma, count in zip(sigmas, counts, strict=True)), Fraction(0))
    scale = max(sigmas)  # keeps the quotient in the range of doubles
    sigma = next_above(float(scale) / math.sqrt(precision * scale**2), 2)
    while Fraction(sigma) ** 2 * precision > 1:
        sigma = next_below(sigma)
    return GaussianMechanism(sigma, sensitivities.pop())


def _types_of_releases(channel: AnyChannel, count: int) -> tuple[LongDoubleArray, LongDoubleArray, float]:
    """Of each type of ``count`` releases: log of its number times the product of the largest cells, log likelihood
    relative to that product under each secret, shape (types, secrets), and the error of the latter."""
    by_log = not isinstance(channel, Channel) or channel.log
    cells = np.asarray(channel.log_matrix() if by_log else channel.matrix(), dtype=np.float64)
    top = cells.max(axis=0)
    possible = top > (-np.inf if by_log else 0.0)
    cells, top = cells[:, possible], top[possible]
    log_top = top.astype(np.longdouble) if by_log else np.log(top.astype(np.longdouble))
    relative = (cells - top).T if by_log else relative_logs(np.ascontiguousarray(cells.T), top[:, None])
    error = _LOG_ROUNDING * float(np.max(np.abs(relative), where=np.isfinite(relative), initial=0.0))
    if by_log:
        error += _LOG_ROUNDING * (1.0 + float(np.max(np.abs(cells), where=np.isfinite(cells), initial=0.0)))
    types = compositions(count, top.size)
    multinomials, _ = log_multinomials(count, types)
    sums = np.stack([weighted_sums(types, logs) for logs in relative.T], axis=1)
    return weighted_sums(types, np.asarray(log_top, dtype=np.longdouble)) + multinomials, sums, count * error


def _largest(*logs: FloatArray) -> FloatArray:
    """The largest finite |log| at each place."""
    return np.asarray(np.maximum.reduce([np.where(np.isfinite(log), np.abs(log), 0.0) for log in logs]))
