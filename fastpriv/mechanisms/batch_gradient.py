"""A batch gradient with normal noise: the release of one step of noisy gradient descent.

Notation: records i = 0 ... N - 1 with gradients g_i = e_i (x) x_i, the outer product of an error e_i (C numbers) and
features x_i (D numbers), as in softmax regression, in the last layer of a network, or, with C = 1, of any model at all.
A batch A of S records gives the release Y = (1/S) sum of g_i + sigma Z, Z standard normal in C x D coordinates. Then

    log P(Y | A) = constant + sum of a_i + sum over pairs of b_ij,
    a_i = <Y, g_i> / (S sigma^2) - K_ii / (2 S^2 sigma^2),   b_ij = -K_ij / (S^2 sigma^2),   K_ij = (e_i.e_j)(x_i.x_j),

so that the gradients themselves are never formed.

Source: a Gaussian log likelihood, multiplied out; noisy batch gradients, M. Abadi et al., Deep learning with
differential privacy (2016); gradients of a linear layer as products, J. Geiping et al., Inverting gradients (2020).
"""

# bounds: proved - rounding of inner products of gradients: theorem 10.7 of docs/proofs/posteriors.md; the rest are
#    limits of sigma and quotients by 0

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..base import random_streams, validate
from ..base.binomial import HALF_LOG_2PI
from ..base.errors import DomainError, ShapeError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..base.values import ValueObject
from ..channels.subset_likelihoods import SubsetLikelihood, validated_subset
from ..kernels import _matrix_product

_LARGEST = 1e50  # size of entries: products of five of them neither overflow nor, inverted, underflow
_ENTRY_CONSTRAINT = "below 1e50 in size"  # how errors say it
_BLOCK_RECORDS = 2**14  # records whose products with a release are computed at a time: some megabytes


class BatchGradient(ValueObject):
    """The mean gradient of a secret batch of ``size`` records out of a pool, released with normal noise.

    Parameters
    ----------
    errors : array_like, shape (N, C)
        Derivative of each record's loss by the C outputs of a linear layer.
    features : array_like, shape (N, D)
        Inputs of that layer; gradients are outer products of errors and features, which are used as stored in doubles.
    size : int
        Number of records in a batch.
    sigma : float
        Standard deviation of the noise in every coordinate of the mean gradient, from 1e-50 to 1e50.

    Raises
    ------
    DomainError, ShapeError
        For numbers of 1e50 or more, a noise out of range, or a size beyond the pool; for arrays that are not
        two-dimensional or differ in the number of records.

    Notes
    -----
    ``posterior(step.column(output))`` is the exact posterior over all batches, which attacks by inversion of gradients
    approximate: it is the reference for practical estimates of Bayesian privacy.

    **Accuracy** log likelihoods within the ``error`` that ``column`` states;
    ``tests/enclosures/test_subset_likelihoods.py``. Source: as the head of this module, M. Abadi et al. (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import posterior
    >>> from fastpriv.mechanisms import BatchGradient
    >>> rng = np.random.default_rng(1)
    >>> records, labels, weights = rng.normal(size=(40, 6)), rng.integers(0, 3, 40), rng.normal(size=(3, 7))
    >>> step = BatchGradient.softmax_regression(records, labels, weights, size=3, sigma=0.02)
    >>> seen = posterior(step.column(step.sample([4, 17, 30], rng=2)))
    >>> seen.size, seen.map_index, seen.inclusion.value[[4, 5]].round(6)
    (9880, (4, 17, 30), array([1., 0.]))
    """

    __slots__ = _fields = ("errors", "features", "size", "sigma")

    errors: FloatArray
    features: FloatArray
    size: int
    sigma: float

    def __init__(self, errors: ArrayLike, features: ArrayLike, size: int, sigma: float) -> None:
        left, right = _table("errors", errors), _table("features", features)
        if len(left) != len(right):
            raise ShapeError(
                f"features must have one row a record, {len(left)}; got {len(right)}. Pass them in the order of errors."
            )
        noise = validate.scalar("sigma", sigma, "between 1e-50 and 1e50", lambda x: (x >= 1e-50) & (x <= 1e50))
        self._set(errors=left, features=right, size=validate.count("size", size, 1, len(left)), sigma=noise)

    @classmethod
    def softmax_regression(
        cls, records: ArrayLike, labels: ArrayLike, weights: ArrayLike, size: int, sigma: float, *,
        clip: float | None = None,
    ) -> BatchGradient:
        """Gradients of the cross-entropy of softmax regression at given weights.

        Parameters
        ----------
        records : array_like, shape (N, D)
            The pool.
        labels : array_like of int, shape (N,)
            Classes, from 0.
        weights : array_like, shape (C, D) or (C, D + 1)
            One row a class; with D + 1 columns the last one is the intercept, and records get a 1 at their end.
        size, sigma
            As in the class.
        clip : float, optional
            Largest norm of a record's gradient; longer ones are scaled down to it.

        Returns
        -------
        BatchGradient
            Errors are softmax(weights x) minus one at the label.

        Raises
        ------
        DomainError, ShapeError
            For labels that are not classes, or a clip that is not positive; for arrays that do not fit.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpriv.mechanisms import BatchGradient
        >>> step = BatchGradient.softmax_regression([[1.0, 2.0], [3.0, 4.0]], [0, 1], np.zeros((2, 3)), 1, sigma=1.0)
        >>> step.gradient([0])
        array([[-0.5, -1. , -0.5],
               [ 0.5,  1. ,  0.5]])
        """
        x, w = _table("records", records), _table("weights", weights)
        if w.shape[1] not in (x.shape[1], x.shape[1] + 1):
            raise ShapeError(
                f"weights must have {x.shape[1]} columns, or one more for the intercept; got {w.shape[1]}. "
                "Pass one row a class."
            )
        y = validate.integers("labels", labels, 0, len(w) - 1, remedy="There is one class a row of the weights.")
        if y.shape != (len(x),):
            raise ShapeError(f"labels must have one entry a record, {len(x)}; got shape {y.shape}. Pass a flat list.")
        if w.shape[1] > x.shape[1]:
            x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        scores = _matrix_product.product(x, w)
        errors = np.exp(scores - scores.max(axis=1, keepdims=True))
        errors /= errors.sum(axis=1, keepdims=True)
        others = errors.copy()  # 1 minus the probability of the label, without cancellation
        others[np.arange(len(x)), y] = 0.0
        errors[np.arange(len(x)), y] = -others.sum(axis=1)
        return cls(_clipped(errors, x, clip), x, size, sigma)

    @classmethod
    def from_gradients(
        cls, gradients: ArrayLike, size: int, sigma: float, *, clip: float | None = None
    ) -> BatchGradient:
        """Gradients of any model, given as vectors.

        Parameters
        ----------
        gradients : array_like, shape (N, D)
            One row a record.
        size, sigma, clip
            As in ``softmax_regression``, with the same errors.

        Returns
        -------
        BatchGradient
            With errors of 1, and the gradients as features.

        Examples
        --------
        >>> from fastpriv.mechanisms import BatchGradient
        >>> BatchGradient.from_gradients([[3.0, 4.0], [0.0, 2.0]], 2, sigma=1.0, clip=1.0).gradient([0, 1])
        array([[0.3, 0.9]])
        """
        x = _table("gradients", gradients)
        return cls(_clipped(np.ones((len(x), 1)), x, clip), x, size, sigma)

    def gram(self) -> FloatArray:
        """Inner products of all pairs of gradients, shape (N, N)."""
        validate.memory("gram", 32 * len(self.errors) ** 2, "Take a smaller pool.")
        products = _row_products(self.errors, self.errors)
        products *= _row_products(self.features, self.features)
        return products

    def gradient(self, batch: ArrayLike) -> FloatArray:
        """Mean gradient, without noise, of a batch of ``size`` different records, shape (C, D).

        Records that do not exist or repeat raise ``DomainError``, another number of them ``ShapeError``.
        """
        members = validated_subset("batch", batch, len(self.errors))
        if members.shape != (self.size,):
            raise ShapeError(
                f"batch must be a list of {self.size} records; got shape {members.shape}. Name all of them."
            )
        return np.asarray(_matrix_product.product(self.errors[members].T, self.features[members].T) / self.size)

    def sample(self, batch: ArrayLike, *, rng: random_streams.RNGLike = None) -> FloatArray:
        """A release of this batch: ``gradient(batch)`` with noise, shape (C, D); ``rng`` is a seed or a Generator."""
        mean = self.gradient(batch)
        stream = np.random.Generator(np.random.Philox(random_streams.root(rng)))
        return mean + self.sigma * stream.standard_normal(mean.shape)

    def column(self, output: ArrayLike) -> SubsetLikelihood:
        """Log likelihood of a release under every batch: what ``posterior`` takes.

        Parameters
        ----------
        output : array_like, shape (C, D) or (C * D,)
            A noisy mean gradient.

        Returns
        -------
        SubsetLikelihood
            With the constant of the normal density; ``error`` bounds the rounding of sums of products. Batches of one
            record have no pairs, so that the pool may have millions.

        Raises
        ------
        DomainError, ShapeError, MemoryError
            For numbers of 1e50 or more, or so large against sigma that log likelihoods are beyond 1e250; for another
            shape; for a pool whose pairs do not fit in memory.

        Notes
        -----
        **Accuracy** log likelihoods within ``error`` of those of the stored errors, features and release;
        ``tests/enclosures/test_subset_likelihoods.py``.
        """
        classes, width = self.errors.shape[1], self.features.shape[1]
        y = validate.real("output", output, _ENTRY_CONSTRAINT, lambda x: np.abs(x) < _LARGEST)
        if y.shape not in ((classes, width), (classes * width,)):
            raise ShapeError(
                f"output must be of the shape of a gradient, {(classes, width)}; got shape {y.shape}. "
                "Pass what sample() returns."
            )
        y = y.reshape(classes, width)
        scale, square = self.size * self.sigma * self.sigma, math.fsum((y * y).ravel())
        quadratic = 0.5 * square / self.sigma**2
        normaliser = classes * width * HALF_LOG_2PI, classes * width * math.log(self.sigma)
        blocks = [slice(i, i + _BLOCK_RECORDS) for i in range(0, len(self.errors), _BLOCK_RECORDS)]
        projections = np.concatenate(
            [np.einsum("nc,nc->n", _row_products(self.features[block], y), self.errors[block]) for block in blocks]
        )
        roundings = norm_roundings = _rounding_count(classes) + _rounding_count(width) + 6.0
        pairwise = None
        if self.size == 1:
            norms = np.einsum("nc,nc->n", self.errors, self.errors)
            norms *= np.einsum("nd,nd->n", self.features, self.features)
            norm_roundings = classes + width + 4.0  # of sums of squares in any order
        else:
            pairwise = self.gram()
            norms = np.diagonal(pairwise) * 1.0
            pairwise /= -(self.size * scale)
        linear = projections / scale - norms / (2.0 * self.size * scale)
        # u times the roundings of each term, times its size; 1.01 for products of roundings, 1e-100 for underflow
        longest = float(np.sqrt(norms.max()))
        rounding = 1.01 * UNIT_ROUNDOFF * longest / scale * self.size * (
            (classes + roundings) * math.sqrt(square)
            + (norm_roundings + (self.size - 1.0) * roundings) * longest / (2.0 * self.size)
        ) + 5.0 * UNIT_ROUNDOFF * (quadratic + normaliser[0] + abs(normaliser[1])) + 1e-100
        largest = max(float(np.max(np.abs(side))) for side in (linear, pairwise) if side is not None)
        if not max(quadratic, rounding, largest) < 1e250:
            raise DomainError(
                f"sigma must be large enough for log likelihoods below 1e250; got {self.sigma!r} against a release of "
                f"length {math.sqrt(square):.4g} and gradients of length {longest:.4g}. Scale all of them."
            )
        return SubsetLikelihood(linear, pairwise, self.size, -math.fsum([quadratic, *normaliser]), rounding)


def _row_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products of the rows of two tables, within ``_rounding_count`` unit roundoffs of the rows' lengths.

    Each entry is split in two parts so that the products of the upper parts, multiples of one small unit, add up
    without error: the splitting of Ozaki, Ogita, Oishi and Rump 2012, error-free transformations of matrix products.
    """
    bits = math.ceil((52.0 + math.log2(a.shape[1])) / 2.0)

    def upper_part(x: FloatArray) -> FloatArray:
        shift = np.ldexp(1.5, np.frexp(np.abs(x).max(axis=1, keepdims=True))[1] + bits)
        return np.asarray((x + shift) - shift)

    upper_a, upper_b = upper_part(a), upper_part(b)
    products = _matrix_product.product(a - upper_a, b)
    products += _matrix_product.product(upper_a, b - upper_b)
    products += _matrix_product.product(upper_a, upper_b)
    return np.asarray(products)


def _rounding_count(width: int) -> float:
    """Roundings of an inner product in ``_row_products``: of the last sums, and of products with lower parts."""
    return min(2.0 + 2.0**-23 * math.sqrt(width) * width * width, 4.0 * width + 4.0)


def _table(name: str, value: ArrayLike) -> FloatArray:
    array = np.array(
        validate.real(name, value, _ENTRY_CONSTRAINT, lambda x: np.abs(x) < _LARGEST, answer=False), order="C"
    )
    if array.ndim != 2 or 0 in array.shape:
        raise ShapeError(
            f"{name} must be a table with at least one row and one column; got shape {array.shape}. "
            "Pass one row for each, as numbers."
        )
    return array


def _clipped(errors: FloatArray, features: FloatArray, clip: float | None) -> FloatArray:
    """Errors scaled so that no gradient is longer than ``clip``."""
    if clip is None:
        return errors
    longest = validate.scalar("clip", clip, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    length = np.linalg.norm(errors, axis=1) * np.linalg.norm(features, axis=1)
    with np.errstate(over="ignore"):
        return np.asarray(errors * np.minimum(1.0, longest / np.maximum(length, 1e-300))[:, None])
