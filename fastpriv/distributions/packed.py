"""Mixtures in the layout of the kernels: log densities, samples, affine images, and common coordinates.

Notation: a mixture sum_c w_c N(m_c, S_c) in d dimensions, S_c = L_c L_c^T, is the exponential sum of
constant_c - |z_c|^2 / 2 with z_c = L_c^-1 (x - m_c) and constant_c = log w_c - log det L_c - (d/2) log(2 pi).

The mathematics of the log density is in ``csrc/mixture/fp_density.h``. There ``x - m`` is formed first and never
expanded into squares, so means that lie 1e8 standard deviations apart cost no digits. The kernels take samples as ``x``
of shape (d, n): a row is one coordinate of n samples. Long arrays are processed in blocks that fit the caches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..base import parallel, random_streams, validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray, LongDoubleArray
from ..kernels import _density, _matrix_product

MAX_MAGNITUDE = 1e300  # of a point, a standard deviation, a variance, and of the inverses of the last two
ISOTROPIC, DIAGONAL, FULL = range(3)  # values of ``Packed.form``
_BLOCK_NUMBERS = 2**17  # doubles in a temporary array: 1 MiB
_THREAD_NUMBERS = 2**22  # doubles of points that a thread takes at a time: 32 MiB
_MAX_WHITENED_DISTANCE = 1024.0  # of a mean from the centre, up to which whitening all means at once is accurate


Mixture = Any  # a GaussianMixture, whose module imports this one


@dataclass(frozen=True, eq=False)
class Packed:
    """A mixture as arrays, all C-contiguous.

    Attributes
    ----------
    form : int
        0 isotropic, 1 diagonal, 2 full.
    weights, log_weights : ndarray, shape (k,)
        The weights and their logarithms.
    constants : ndarray, shape (k,)
        Log weight plus log of the density's normalising factor.
    means : ndarray, shape (k, d)
        Means.
    scales : ndarray
        Inverse standard deviations (k,) or (k, d); for the full form the inverses of the lower Cholesky factors,
        packed by rows, (k, d(d+1)/2), or one row when all components share it.
    spreads : ndarray
        Factors of standard normal samples, of the same shape: standard deviations, or packed lower factors.
    """

    form: int
    weights: FloatArray
    log_weights: FloatArray
    constants: FloatArray
    means: FloatArray
    scales: FloatArray
    spreads: FloatArray

    def __len__(self) -> int:
        return len(self.constants)

    @property
    def dimension(self) -> int:
        """The number of coordinates d."""
        return int(self.means.shape[1])


class CommonCoordinates(NamedTuple):
    """Mixtures in common coordinates y = A (x - shift): log p(x) = log packed(y) + ``log_determinant`` of A."""

    packs: tuple[Packed, ...]
    log_determinant: float


def pack(mixture: Mixture) -> Packed:
    """The arrays of one mixture, in its own coordinates and form; a univariate one is isotropic with d = 1.

    **Accuracy** the inverse of a factor L is off by at most d u \\|L^-1\\| \\|L\\| \\|L^-1\\| entry by entry,
    u = 2^-53; what that does to the log density is in tests/kernels/test_density.py.

    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.distributions.packed import pack
    >>> packed = pack(GaussianMixture([0.5, 0.5], [0.0, 1.0], 2.0))
    >>> packed.form, packed.dimension, packed.scales
    (0, 1, array([0.5, 0.5]))
    """
    return _packed_at(mixture, _mean_rows(mixture))


def log_density(packed: Packed, x: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Log densities at the columns of x, C-contiguous (d, n), shape (n,); -inf only below -8e307.

    A value depends on its column alone, whatever the others are and however many.

    **Accuracy** 1e-13 (1 + \\|log p\\|), and much closer for d below 100: tests/kernels/test_density.py.

    >>> import numpy as np
    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.distributions.packed import log_density, pack
    >>> log_density(pack(GaussianMixture([1.0], [0.0], 1.0)), np.array([[0.0, 2.0]]))
    array([-0.91893853, -2.91893853])
    """
    out = np.empty(x.shape[1]) if out is None else out
    _density.log_density(packed.form, packed.constants, packed.means, packed.scales, x, out)
    return out


def log_density_information(packed: Packed, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log densities at the columns of x, and the information of a sample about its component, each of shape (n,).

    The latter is the divergence KL(component given x || weights) in nats, never negative; its mean under the mixture is
    the mutual information of component and sample.

    >>> import numpy as np
    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.distributions.packed import log_density_information, pack
    >>> log_density_information(pack(GaussianMixture([0.5, 0.5], [-9.0, 9.0], 1.0)), np.array([[1.0, 9.0]]))[1].round(6)
    array([0.693147, 0.693147])
    """
    out, information = np.empty((2, x.shape[1]))
    _density.log_density_information(
        packed.form, packed.constants, packed.log_weights, packed.means, packed.scales, x, out, information
    )
    return out, information


def pack_together(*mixtures: Mixture) -> CommonCoordinates:
    """Several mixtures of one dimension in common coordinates, chosen so that they cost least.

    Where all components of all mixtures have one covariance, the coordinates are whitened and all forms are isotropic
    with sigma 1; a shift that is exact for all means is subtracted first. Divergences are the same in any coordinates;
    an entropy is that of the pack less the log-determinant.

    Whitened means are rounded, each to about d u \\|L^-1\\| \\|L\\| times its size: differences of means below this are
    lost. Means farther than 1024 whitened units from their centre stay as they are.

    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.distributions.packed import pack_together
    >>> p = GaussianMixture.single([1e8, 0.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    >>> q = GaussianMixture.single([1e8 + 1, 0.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    >>> packs, log_determinant = pack_together(p, q)
    >>> [packed.form for packed in packs], packs[0].means, packs[1].means.round(6)
    ([0, 0], array([[0., 0.]]), array([[ 0.707107, -0.408248]]))
    """
    means = np.concatenate([_mean_rows(mixture) for mixture in mixtures])
    shift = means[0]  # by Sterbenz's lemma, differences of doubles within a factor of 2 are exact
    exact = np.all((means >= shift / 2) & (means <= shift * 2) | (means <= shift / 2) & (means >= shift * 2), axis=0)
    shifted = means - np.where(exact, shift, 0.0)
    split = np.cumsum([len(mixture) for mixture in mixtures])[:-1]
    common = _common_factor(mixtures)
    if common is not None:
        whitened = _whitened(common, shifted)
        if np.all(np.abs(whitened) <= _MAX_WHITENED_DISTANCE):
            diagonal = np.diagonal(common) if common.ndim == 2 else common
            packs = [
                _packed_from_sigmas(mixture.weights, rows, np.ones(len(rows)))
                for mixture, rows in zip(mixtures, np.split(whitened, split), strict=True)
            ]
            return CommonCoordinates(tuple(packs), -math.fsum(np.log(diagonal)))
    return CommonCoordinates(tuple(map(_packed_at, mixtures, np.split(shifted, split))), 0.0)


def _mean_rows(mixture: Mixture) -> FloatArray:
    return np.ascontiguousarray(mixture.means.reshape(len(mixture.weights), -1))


def _packed_at(mixture: Mixture, means: FloatArray) -> Packed:
    """The pack of a mixture with other means, shape (k, d)."""
    if mixture.factors is not None:
        return _packed_from_factors(mixture.weights, means, mixture.factors)
    return _packed_from_sigmas(mixture.weights, means, mixture.sigmas)


def _packed_from_sigmas(weights: FloatArray, means: FloatArray, sigmas: FloatArray) -> Packed:
    """Isotropic for sigmas of shape (k,), diagonal for (k, d)."""
    d = means.shape[1]
    logs = np.log(sigmas)
    log_determinants = d * logs.astype(np.longdouble) if sigmas.ndim == 1 else logs.sum(axis=1, dtype=np.longdouble)
    form = ISOTROPIC if sigmas.ndim == 1 else DIAGONAL
    return _assembled(form, weights, means, log_determinants, 1 / sigmas, sigmas)


def _packed_from_factors(weights: FloatArray, means: FloatArray, factors: FloatArray) -> Packed:
    d = means.shape[1]
    lower = np.tril_indices(d)
    inverses, spreads = (np.empty((len(factors), d * (d + 1) // 2)) for _ in range(2))
    for factor, inverse, spread in zip(factors, inverses, spreads, strict=True):
        inverse[:] = _triangular_inverse(factor)[lower]
        spread[:] = factor[lower]
    log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1, dtype=np.longdouble)
    return _assembled(FULL, weights, means, log_determinants, inverses, spreads)


def _assembled(
    form: int, weights: FloatArray, means: FloatArray, log_determinants: LongDoubleArray, scales: FloatArray,
    spreads: FloatArray,
) -> Packed:
    """The pack with its constants, which are formed in extended precision."""
    log_weights = np.log(weights.astype(np.longdouble))
    constants = log_weights - log_determinants - means.shape[1] / 2 * np.log(2 * np.longdouble(np.pi))
    arrays = (weights, log_weights, constants, means, scales, spreads)
    return Packed(form, *(np.ascontiguousarray(array, dtype=np.float64) for array in arrays))


def _triangular_inverse(factor: FloatArray) -> FloatArray:
    """The inverse of a lower triangular factor; rows are scaled by powers of two first, so that none overflows."""
    from scipy.linalg import lapack

    exponents = np.frexp(np.diagonal(factor))[1]
    inverse: FloatArray = lapack.dtrtri(np.ldexp(factor, -exponents[:, np.newaxis]), lower=1)[0]
    return np.ldexp(inverse, -exponents)


def _common_factor(mixtures: tuple[Mixture, ...]) -> FloatArray | None:
    """Sigmas of shape (d,) or a lower factor (d, d) that all components share; None where whitening saves nothing."""
    form = mixtures[0].form
    if form in ("univariate", "isotropic") or not all(mixture.form == form and mixture.shared for mixture in mixtures):
        return None
    spreads = [mixture.sigmas[0] if mixture.factors is None else mixture.factors[0] for mixture in mixtures]
    return spreads[0] if all(np.array_equal(spread, spreads[0]) for spread in spreads[1:]) else None


def _whitened(common: FloatArray, means: FloatArray) -> FloatArray:
    if common.ndim == 1:
        return means / common
    return np.ascontiguousarray((_triangular_inverse(common) @ means.T).T)


def mixture_log_density(mixture: Mixture, x: FloatArray, n_jobs: int | None = None) -> FloatArray:
    """Log density at the rows of x, shape (n, d)."""
    n, d = x.shape
    packed, out = mixture.packed, np.empty(n)

    def fill(part: slice) -> None:
        points, values = x[part], out[part]
        for rows in parallel.blocks(len(points), max(1, _BLOCK_NUMBERS // d)):
            log_density(packed, np.ascontiguousarray(points[rows].T), values[rows])

    parts = parallel.blocks(n, max(1, _THREAD_NUMBERS // d))
    for _ in parallel.ordered_map(fill, parts, n_jobs=n_jobs, shared=True):
        pass
    return out


def draw_samples(mixture: Mixture, size: int, rng: Any) -> FloatArray:
    """Independent draws, shape (size, d)."""
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(random_streams.root(rng))
    k, d = len(mixture), mixture.dimension
    means = mixture.means.reshape(k, d)
    cumulative = np.cumsum(mixture.weights)
    cumulative /= cumulative[-1]
    out = generator.standard_normal((size, d))
    factors = mixture.factors
    for rows in parallel.blocks(size, max(1, _BLOCK_NUMBERS // d)):
        component = np.searchsorted(cumulative, generator.random(rows.stop - rows.start), side="right")
        z = out[rows]
        if factors is None:
            z *= mixture.sigmas.reshape(k, -1)[component]
        else:
            order = np.argsort(component, kind="stable")
            for run in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
                z[run] = _matrix_product.product(z[run], factors[component[run[0]] if len(factors) > 1 else 0])
        z += means[component]
    return out


@np.errstate(over="ignore", invalid="ignore")
def affine_image(
    mixture: Mixture, matrix: FloatArray, shift: FloatArray
) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    """Means, and sigmas or covariances, of ``matrix @ X + shift``."""
    k, d = len(mixture), mixture.dimension
    means = mixture.means.reshape(k, d)
    if matrix.ndim < 2:
        if not np.all(matrix):
            raise DomainError(
                f"matrix must be without zeros, so that the image has a density; got {matrix.tolist()!r}. "
                "Take a marginal to drop coordinates."
            )
        stretch = np.broadcast_to(np.abs(matrix), (d,))
        if mixture.covariances is None:
            return means * matrix + shift, mixture.sigmas.reshape(k, -1) * stretch, None
        validate.memory("matrix", mixture.covariances.nbytes, "The image has as many matrices.")
        outer = np.broadcast_to(matrix, (d,))[:, None] * np.broadcast_to(matrix, (d,))
        return means * matrix + shift, None, mixture.covariances * outer
    rows = len(matrix)
    shifted = _matrix_product.product(means, matrix) + shift
    factors = mixture.factors
    if factors is None:
        spread = mixture.sigmas.reshape(k, -1) * np.ones(d)
        if mixture.shared:
            spread = spread[:1]
    count = len(spread if factors is None else factors)
    validate.memory("matrix", count * rows * rows * 8, "Map to fewer dimensions.")
    images = np.empty((count, rows, rows))
    sigmas = np.empty(k)
    for i in range(count):
        half = matrix * spread[i] if factors is None else matrix @ factors[i]
        if rows == 1:
            sigmas[i:] = math.hypot(*half[0].tolist())
        else:
            images[i] = _matrix_product.product(half, half)
    images.setflags(write=False)
    return (shifted, sigmas, None) if rows == 1 else (shifted, None, images)


def point_rows(name: str, x: ArrayLike, dimension: int) -> tuple[FloatArray, bool]:
    """Points as rows of coordinates, and whether a single one was passed without its axis."""
    points = validate.real(name, x, "made of finite numbers", np.isfinite, answer=False)
    single = points.ndim == (0 if dimension == 1 else 1)
    rows = points.reshape(-1, 1) if dimension == 1 and points.ndim < 2 else np.atleast_2d(points)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        wanted = "(n,) or (n, 1)" if dimension == 1 else f"(n, {dimension}) or ({dimension},)"
        raise ShapeError(f"{name} must be of shape {wanted}; got {points.shape}. Pass one row of coordinates a point.")
    return rows, single
