"""Stacks of Gaussian mixtures: arrays of parameters with leading axes, one mixture for each position of these axes.

Notation: ``shape`` are the leading axes of a stack, k its number of components, d its dimension. A row is the mixture
at one position of the leading axes.
"""

# bounds: proved - sums within half a unit of the last place of 1 round to 1, as ``validate.rounded_sum_gap`` has it

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import BoolArray, FloatArray
from ..base.values import Index, Stack
from . import covariances as matrices
from .mixtures import GaussianMixture
from .packed import MAX_MAGNITUDE


class MixtureStack(Stack):
    """Gaussian mixtures with leading axes, for one call instead of a loop over settings.

    Every function of mixtures takes a stack in the place of a mixture, and broadcasts stacks, mixtures and its own
    parameter as a generalised ufunc of NumPy does: the leading axes of all are broadcast against each other, and the
    last axis of ``epsilon`` or ``order`` belongs to each row.

    Parameters
    ----------
    weights : array_like, shape (..., k)
        Probabilities of the components. Each row sums to 1 within 1e-9 (2e-6 for float32), as for
        ``GaussianMixture``. Components of weight zero are padding: they are dropped from their row.
    means : array_like, shape (..., k), or (..., k, d) in d > 1 dimensions
        Means.
    sigmas : array_like, optional
        Standard deviations, positive: of a shape that broadcasts with (..., k), in d > 1 dimensions with (..., k, d).
    covariances : array_like, shape (..., k, d, d), optional
        Instead of ``sigmas``, in d > 1 dimensions: covariance matrices; an axis of length 1 stands for all components.
    dimension : int, default 1
        The number of coordinates d.
    errors : {"raise", "record"}, default "raise"
        What an invalid row does: raise an error that names it, or have NaN as its answers while the other rows keep
        theirs. Attribute ``errors`` then holds its text.

    Attributes
    ----------
    shape : tuple of int
        The leading axes.
    weights, means, sigmas, covariances : ndarray or None
        The parameters with all leading axes, read-only; an axis that was broadcast takes no memory. The weights of
        invalid rows are 0.
    errors : mapping of tuple of int to str
        The texts of invalid rows by their position.

    Raises
    ------
    DomainError
        For a row that is no mixture, unless ``errors="record"``; its message is that of ``GaussianMixture`` with the
        position of the row.
    ShapeError
        For shapes that do not broadcast, or have no component.

    See Also
    --------
    fastpriv.GaussianMixture : one mixture.

    Notes
    -----
    **Accuracy** the answers for a row are those for the mixture itself, bit for bit, in one dimension:
    ``tests/contracts/test_stacks.py``.

    Examples
    --------
    The Poisson-subsampled Gaussian mechanism for three noise levels, two sampling rates and four epsilons:

    >>> import numpy as np
    >>> from fastpriv import GaussianMixture, MixtureStack, hockey_stick_divergence
    >>> sigma, q = np.array([0.8, 1.0, 2.0])[:, None, None], np.array([0.01, 0.1])[:, None]
    >>> sampled = MixtureStack(np.concatenate([1 - q, q], axis=-1), [0.0, 1.0], sigma)
    >>> sampled.shape
    (3, 2)
    >>> base = MixtureStack([1.0], [0.0], sigma)
    >>> hockey_stick_divergence(sampled, base, [0.0, 0.5, 1.0, 2.0]).shape
    (3, 2, 4)
    """

    __slots__ = ("_gaps", "covariances", "dimension", "errors", "means", "records", "shape", "sigmas", "weights")
    _fields = ("weights", "means", "sigmas", "covariances", "dimension", "records", "_error_texts")
    _columns = ("weights", "means", "sigmas", "covariances")

    weights: FloatArray
    means: FloatArray
    sigmas: FloatArray | None
    covariances: FloatArray | None
    dimension: int
    _gaps: FloatArray | None

    def __init__(
        self, weights: ArrayLike, means: ArrayLike, sigmas: ArrayLike | None = None, *,
        covariances: ArrayLike | None = None, dimension: int = 1, errors: Literal["raise", "record"] = "raise",
    ) -> None:
        records = validate.choice("errors", errors, ("raise", "record")) == "record"
        d = validate.count("dimension", dimension)
        if (sigmas is None) == (covariances is None) or (covariances is not None and d == 1):
            passed = "neither" if sigmas is None and covariances is None else "both"
            passed = "covariances in one dimension" if sigmas is None and covariances is not None else passed
            raise DomainError(
                f"sigmas must be given, or else covariances in several dimensions, and not both; got {passed}. "
                "Pass standard deviations as sigmas, or matrices as covariances= with dimension=."
            )
        w, m = np.atleast_1d(stack_numbers("weights", weights)), stack_numbers("means", means)
        w = validate.divided_float32(weights, w)
        vectors: Index = () if d == 1 else (d,)  # shape of a mean
        m = np.atleast_1d(m) if d == 1 else m
        if d > 1 and (m.ndim < 2 or m.shape[-1] != d):
            raise ShapeError(
                f"means must be of shape (..., k, {d}) in {d} dimensions; got {m.shape}. Pass a row a component."
            )
        if covariances is None:
            name, spread, inner = "sigmas", stack_numbers("sigmas", sigmas), vectors
        else:
            name, spread, inner = "covariances", stack_numbers("covariances", covariances), (d, d)
            if spread.shape[-2:] != (d, d):
                raise ShapeError(
                    f"covariances must be of shape (..., k, {d}, {d}) in {d} dimensions; got {spread.shape}. "
                    "Pass a matrix a component."
                )
        spread = spread.reshape((1,) * (1 + len(inner) - spread.ndim) + spread.shape)
        try:
            of_means, of_spreads = m.shape[: m.ndim - len(vectors)], spread.shape[: spread.ndim - len(inner)]
            rows = np.broadcast_shapes(w.shape, of_means, of_spreads)
            np.broadcast_to(spread, rows + inner)
        except ValueError:
            raise ShapeError(
                f"weights, means and {name} must be of shapes that broadcast, components last; got {w.shape}, "
                f"{m.shape} and {spread.shape}. Add axes of length 1 for a grid."
            ) from None
        if rows[-1] == 0:
            raise ShapeError(f"weights must have at least one entry; got shape {w.shape}. Pass one or more numbers.")
        self._set(
            weights=np.broadcast_to(w, rows), means=np.broadcast_to(m, rows + vectors),
            sigmas=np.broadcast_to(spread, rows + inner) if covariances is None else None,
            covariances=None if covariances is None else np.broadcast_to(spread, rows + inner),
            dimension=d, shape=rows[:-1], errors=MappingProxyType({}), records=records,
        )
        doubtful = _invalid_weights(w, rows[-1]) | _any_invalid(m, 1 + len(vectors), MAX_MAGNITUDE)
        if covariances is None:
            doubtful = doubtful | _any_invalid(spread, 1 + len(inner), MAX_MAGNITUDE, 1 / MAX_MAGNITUDE)
        else:
            doubtful = doubtful | _invalid_matrices(spread)
        if doubtful.any() and self.size:
            sound = {"weights": 0.0, "means": 0.0, "sigmas": 1.0, "covariances": np.eye(d)}
            self._note_errors(np.broadcast_to(doubtful, self.shape), "row", sound)

    @classmethod
    def of(cls, mixtures: Sequence[GaussianMixture], *, errors: Literal["raise", "record"] = "raise") -> MixtureStack:
        """A stack of one leading axis, of mixtures with any numbers of components; shorter ones are padded.

        All must have one dimension. Where some have covariances, those with sigmas get the matrices of their variances;
        the square root of a variance is the sigma again, to the bit.

        Examples
        --------
        >>> from fastpriv import GaussianMixture, MixtureStack, entropy
        >>> wide, narrow = GaussianMixture.single(0.0, 2.0), GaussianMixture([0.5, 0.5], [-1.0, 1.0], 0.5)
        >>> both = MixtureStack.of([wide, narrow])
        >>> both.shape, both[1] == narrow
        ((2,), True)
        """
        rows = validate.sequence("mixtures", mixtures, "GaussianMixture")
        for index, row in enumerate(rows):
            validate.instance(f"mixtures[{index}]", row, GaussianMixture)
            if row.dimension != rows[0].dimension:
                raise ShapeError(
                    f"mixtures must all have one dimension; got {rows[0].dimension} and {row.dimension}, the latter at "
                    f"index {index}. Make one stack of each dimension."
                )
        if not rows:
            return cls(np.ones((0, 1)), np.zeros((0, 1)), 1.0, errors=errors)
        d, k = rows[0].dimension, max(map(len, rows))
        vectors = () if d == 1 else (d,)
        w, m = np.zeros((len(rows), k)), np.zeros((len(rows), k, *vectors))
        full = any(row.covariances is not None for row in rows)
        spread = np.broadcast_to(np.eye(d), (len(rows), k, d, d)).copy() if full else np.ones((len(rows), k, *vectors))
        for index, row in enumerate(rows):
            w[index, : len(row)], m[index, : len(row)] = row.weights, row.means
            if row.covariances is not None:
                spread[index, : len(row)] = row.covariances
            else:
                s = _sigmas_of_means(row)
                spread[index, : len(row)] = s[..., None] * s[..., None] * np.eye(d) if full else s
        if full:
            return cls(w, m, covariances=spread, dimension=d, errors=errors)
        return cls(w, m, spread, dimension=d, errors=errors)

    @classmethod
    def _of_one(cls, mixture: GaussianMixture) -> MixtureStack:
        """A stack without leading axes."""
        k, d = len(mixture), mixture.dimension
        covariances = mixture.covariances
        sigmas = _sigmas_of_means(mixture) if covariances is None else None
        if covariances is not None:
            covariances = np.broadcast_to(covariances, (k, d, d))
        return cls._of({
            "weights": mixture.weights, "means": mixture.means, "sigmas": sigmas, "covariances": covariances,
            "dimension": d, "shape": (), "errors": {}, "records": False,
        })

    @property
    def components(self) -> int:
        """The number of components k, padding included."""
        return int(self.weights.shape[-1])

    @property
    def mass_gaps(self) -> FloatArray:
        """``GaussianMixture.mass_gap`` of each row, of shape ``shape``; an axis that was broadcast takes no memory."""
        if not hasattr(self, "_gaps"):
            axes = tuple(slice(0, 1) if step == 0 else slice(None) for step in self.weights.strides[:-1])
            distinct_weights = self.weights[axes]  # each row of weights once
            gaps = np.zeros(distinct_weights.shape[:-1])
            rounding = distinct_weights.shape[-1] * float(np.finfo(np.longdouble).eps)
            rough = np.abs(np.sum(distinct_weights, axis=-1, dtype=np.longdouble) - 1)
            for index in map(tuple, np.argwhere(rough > 2.0**-54 - rounding)):
                gaps[index] = validate.rounded_sum_gap(distinct_weights[index][distinct_weights[index] > 0])
            gaps[~(distinct_weights > 0).any(axis=-1)] = 0.0
            self._set(_gaps=np.broadcast_to(gaps, self.shape))
        return self._gaps  # type: ignore[return-value]

    def _item(self, index: Index) -> GaussianMixture:
        """The mixture at this position."""
        w, m = self.weights[index], self.means[index]
        if self.covariances is not None:
            return GaussianMixture(w, m, covariances=self.covariances[index])
        assert self.sigmas is not None
        return GaussianMixture(w, m, self.sigmas[index])

    def __repr__(self) -> str:
        words = [f"shape={self.shape}", f"components={self.components}", f"dimension={self.dimension}"]
        if self.errors:
            words.append(f"errors at {len(self.errors)} rows")
        return f"MixtureStack({', '.join(words)})"


def _sigmas_of_means(mixture: GaussianMixture) -> FloatArray:
    """A standard deviation for each entry of the means."""
    sigmas, shape = np.asarray(mixture.sigmas), mixture.means.shape
    return np.broadcast_to(sigmas if sigmas.shape == shape else sigmas[:, None], shape)


def stack_numbers(name: str, value: Any, constraint: str = "a real number") -> FloatArray:
    """A copy as doubles; NaN and infinities are refused later, row by row."""
    values: NDArray[Any] = validate.array(name, value)
    if values.dtype.kind not in "fiub":
        return validate.real(name, value, constraint, answer=False)
    validate.grid(name, values.shape, 10)
    return validate.copied(values, np.float64)


def _invalid_weights(w: FloatArray, k: int) -> BoolArray:
    """Rows of weights that are no probabilities, or do not sum to 1."""
    tolerance = validate.sum_tolerance(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        invalid = ~((w >= 0) & (w <= 1 + tolerance)).all(axis=-1)
        total = np.sum(np.broadcast_to(w, (*w.shape[:-1], k)), axis=-1, dtype=np.longdouble).astype(np.float64)
        return np.asarray(invalid | ~(np.abs(total - 1.0) <= tolerance))


def _any_invalid(values: FloatArray, axes: int, most: float, least: float | None = None) -> BoolArray:
    """Rows in which a number is NaN or out of range: of magnitude above ``most``, or not in [least, most]."""
    with np.errstate(invalid="ignore"):
        good = np.abs(values) <= most if least is None else (values >= least) & (values <= most)
    return np.asarray(~good.all(axis=tuple(range(-axes, 0))))


def _invalid_matrices(covariances: FloatArray) -> BoolArray:
    """Rows in which a matrix is no covariance matrix, or may be none that is used."""
    flat = covariances.reshape(-1, *covariances.shape[-2:])
    return np.asarray(matrices.doubtful_matrices(flat).reshape(covariances.shape[:-2]).any(axis=-1))
