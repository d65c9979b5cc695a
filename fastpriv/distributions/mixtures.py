"""Gaussian mixtures in one and in d dimensions.

Notation: a Gaussian mixture is the measure ``sum_i w_i N(m_i, K_i)`` with weights ``w``, means ``m`` and covariances
``K_i``: ``s_i^2`` in one dimension (univariate), ``s_i^2 I`` (isotropic), ``diag(s_i1^2 .. s_id^2)`` (diagonal), or any
(full). The lower Cholesky factor of ``K_i`` is ``L_i``.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray
from ..base.values import ValueObject
from . import covariances as matrices
from . import packed as packs


class GaussianMixture(ValueObject):
    """A finite mixture of Gaussians in one or in d dimensions.

    Parameters
    ----------
    weights : array_like, shape (k,)
        Probabilities of the components, which must sum to 1 within 1e-9 and are stored as they are. What a sum misses 1
        by is rounding: the bounds of every quantity hold for the weights divided by their sum; where the sum rounds to
        1, those of hockey-stick divergences hold for the weights as they are. Weights of float32 may miss 1 by 2e-6,
        and are then divided by their sum in doubles. Components of weight zero are dropped.
    means : array_like, shape (k,) or (k, d)
        Means, in any unit. Shapes (k,) and (k, 1) give a univariate mixture.
    sigmas : array_like, optional
        Standard deviations in the same unit, positive. A scalar is that of all coordinates of all components, shape
        (k,) or (k, 1) gives one to a component, (1, d) one to a coordinate, shared by all components, and (k, d) one to
        each coordinate of each component.
    covariances : array_like, shape (d, d) or (k, d, d), optional
        Instead of ``sigmas``: one covariance matrix for all components, or one to a component; symmetric and positive
        definite.

    Attributes
    ----------
    weights : ndarray, shape (k,)
        Probabilities of the components.
    means : ndarray, shape (k,) if univariate, else (k, d)
        Means.
    sigmas : ndarray or None
        Shape (k,) for the univariate and the isotropic form, (k, d) for the diagonal form, None for the full form.
    covariances : ndarray or None
        Shape (k, d, d), or (1, d, d) where all components have the same, in the full form; else None.

    Raises
    ------
    DomainError
        For NaN, infinite, complex or negative entries, non-positive sigmas, weights that do not sum to 1, covariances
        that are not symmetric or not positive definite, or both or neither of sigmas and covariances.
    ShapeError
        For empty or unequal lengths, or shapes that do not fit.
    MemoryError
        If a copy or the Cholesky factors of the covariances would need more memory than is free.

    Notes
    -----
    All arrays are read-only and the mixture is kept in its simplest form: matrices that are all diagonal become sigmas
    (square roots of the variances), sigmas that do not depend on the coordinate become isotropic, and covariances that
    are all equal become one. Two mixtures are equal when these arrays are equal.

    ``fastpriv.adapters`` has conversions from and to the mixtures of scikit-learn and SciPy.

    Covariances are copied, unless they are a C-contiguous array of doubles that nobody can write to
    (``setflags(write=False)``, or a read-only memory map). They are factored once, after an exact scaling of the
    coordinates by powers of two. Refused as singular is a matrix whose least eigenvalue, for unit variances, is below
    9e-16 sqrt(d) times the largest.

    **Accuracy** the methods are compared with high-precision arithmetic by ``tests/kernels/test_mixture_points.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture
    >>> p = GaussianMixture([0.25, 0.75], [0.0, 3.0], 1.0)
    >>> len(p), p.sigmas
    (2, array([1., 1.]))
    >>> q = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], covariances=[[2.0, 1.0], [1.0, 2.0]])
    >>> q.dimension, q.form, q.shared
    (2, 'full', True)
    >>> q.log_density([[0.0, 0.0], [1.0, 0.0]])
    array([-2.7670687 , -3.10040204])
    """

    __slots__ = ("weights", "means", "sigmas", "covariances", "_factors", "_gap", "_packed")  # noqa: RUF023  (the order of the constructor)
    _fields = ("weights", "means", "sigmas", "covariances")

    weights: FloatArray
    means: FloatArray
    sigmas: FloatArray
    covariances: FloatArray | None
    _factors: FloatArray | None
    _gap: float
    _packed: packs.Packed

    def __init__(
        self, weights: ArrayLike, means: ArrayLike, sigmas: ArrayLike | None = None, *,
        covariances: ArrayLike | None = None,
    ) -> None:
        if covariances is None and self._set_short(weights, means, sigmas):
            return
        w = validate.probabilities("weights", weights)
        in_range = ("finite and at most 1e300 in size", lambda x: np.abs(x) <= packs.MAX_MAGNITUDE)
        m = validate.real("means", means, *in_range, answer=False)
        if (sigmas is None) == (covariances is None):
            passed = "neither" if sigmas is None else "both"
            raise DomainError(
                f"sigmas must be given, or else covariances, and not both; got {passed}. "
                "Pass standard deviations as sigmas, or matrices as covariances=."
            )
        if m.ndim <= 1 and covariances is None:
            self._set_univariate(w, validate.vector("means", m), sigmas)
            return
        m = m.reshape(-1, 1) if m.ndim <= 1 else m
        if m.ndim != 2 or m.size == 0:
            raise ShapeError(
                f"means must have one row a component and at least one coordinate; got shape {np.shape(means)}. "
                "Pass shape (k, d), or (k,) in one dimension."
            )
        if len(m) != len(w):
            raise ShapeError(
                f"means must have one row for each of the {len(w)} weights; got shape {m.shape}. Pass shape (k, d)."
            )
        used = w > 0
        if covariances is None:
            self._set(weights=w[used], **matrices.simplest_form(m[used], matrices.sigma_rows(sigmas, *m.shape)[used]))
            return
        stack, factors = matrices.validated_covariances(covariances, used, m.shape[1])
        if factors is None:
            self._set(weights=w[used], **matrices.simplest_form(m[used], np.sqrt(stack)))
        else:
            self._set(weights=w[used], means=m[used], sigmas=None, covariances=stack, _factors=factors)

    def _set_short(self, weights: Any, means: Any, sigmas: Any) -> bool:
        """Whether the arguments are short and plain vectors of a univariate mixture, which is then set.

        What is found wrong here is left to the checks of all other arguments, which say what it is.
        """
        w, m = validate.short_vector(weights), validate.short_vector(means)
        if w is None or m is None:
            return False
        k = len(w)
        s = [sigmas] * k if type(sigmas) is float else validate.short_vector(sigmas)
        if s is None or not len(m) == len(s) == k:
            return False
        if not (min(w) > 0.0 and abs(math.fsum(w) - 1.0) < validate.SAFE_SUM_TOLERANCE):
            return False
        if not (min(s) >= 1 / packs.MAX_MAGNITUDE and max(s) <= packs.MAX_MAGNITUDE >= max(max(m), -min(m))):
            return False
        table = np.array((w, m, s), dtype=np.float64)
        table.setflags(write=False)
        put = object.__setattr__
        put(self, "weights", table[0])
        put(self, "means", table[1])
        put(self, "sigmas", table[2])
        put(self, "covariances", None)
        put(self, "_factors", None)
        return True

    def _set_univariate(self, w: FloatArray, m: FloatArray, sigmas: ArrayLike | None) -> None:
        s = validate.vector("sigmas", matrices.validated_sigmas(sigmas))
        if s.size == 1:
            s = np.full(w.shape, s[0])
        if not w.shape == m.shape == s.shape:
            raise ShapeError(
                f"weights, means and sigmas must have equal lengths; got {w.size}, {m.size} and {s.size}. "
                "Pass one entry of each a component."
            )
        used = w > 0
        self._set(weights=w[used], means=m[used], sigmas=s[used], covariances=None, _factors=None)

    @classmethod
    def single(
        cls, mean: ArrayLike, sigma: ArrayLike | None = None, *, covariance: ArrayLike | None = None
    ) -> GaussianMixture:
        """One Gaussian: N(mean, sigma^2) in one dimension, or with a mean of shape (d,) in d dimensions.

        ``sigma`` is then a scalar or of shape (d,); ``covariance`` of shape (d, d) takes its place.
        """
        if {type(mean), type(sigma)} == {float} and covariance is None:
            return cls([1.0], [mean], sigma)  # type: ignore[arg-type]
        centre = validate.real("mean", mean, answer=False)
        if centre.ndim == 0:
            if covariance is None:
                return cls([1.0], [float(centre)], None if sigma is None else [validate.scalar("sigma", sigma)])
            centre = centre.reshape(1)
        row = validate.vector("mean", centre)[None, :]
        if sigma is not None:
            spread = validate.real("sigma", sigma, answer=False)
            if spread.shape not in ((), (1,), row[0].shape):
                raise ShapeError(
                    f"sigma must be a number or of shape {row[0].shape}; got {spread.shape}. "
                    "A matrix goes to covariance=."
                )
            sigma = spread if spread.ndim == 0 else spread[None, :]
        return cls([1.0], row, sigma, covariances=covariance)

    @property
    def dimension(self) -> int:
        """The number of coordinates d."""
        return 1 if self.means.ndim == 1 else self.means.shape[1]

    @property
    def form(self) -> Literal["univariate", "isotropic", "diagonal", "full"]:
        """The simplest form of the covariances that holds them."""
        if self.covariances is not None:
            return "full"
        if self.means.ndim == 1:
            return "univariate"
        return "isotropic" if self.sigmas.ndim == 1 else "diagonal"

    @property
    def shared(self) -> bool:
        """Whether all components have the same covariance."""
        if self.covariances is not None:
            return len(self.covariances) == 1
        return bool(np.all(self.sigmas == self.sigmas[0]))

    @property
    def factors(self) -> FloatArray | None:
        """Lower Cholesky factors of ``covariances``, of the same shape; None but for the full form."""
        if self.covariances is not None and self._factors is None:
            self._set(_factors=matrices.validated_factors(self.covariances))
        return self._factors

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def packed(self) -> packs.Packed:
        """The arrays that the kernels take, computed on first use; as large as ``factors`` in the full form."""
        if not hasattr(self, "_packed"):
            object.__setattr__(self, "_packed", packs.pack(self))
        return self._packed

    @property
    def mass_gap(self) -> float:
        """Distance of the sum of the weights from 1, a relative error of all of them; 0 where it is 1 as a double."""
        try:
            return self._gap
        except AttributeError:
            object.__setattr__(self, "_gap", validate.rounded_sum_gap(self.weights))
            return self._gap

    def log_density(self, x: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Natural logarithm of the density at each point.

        Parameters
        ----------
        x : array_like, shape (n, d) or (d,); in one dimension (n,), (n, 1) or a scalar
            Points, finite.
        n_jobs : int, optional
            Threads; -1 for all cores, by default what ``joblib.parallel_config`` says, one when it says nothing. It
            changes no bit.

        Returns
        -------
        ndarray, shape (n,), or a scalar for one point
            Minus infinity where the logarithm lies below the range of doubles.

        Raises
        ------
        DomainError
            For points that are not finite.
        ShapeError
            For points of another dimension.

        Notes
        -----
        **Accuracy** a few ulps of the largest term of the exponent, times the condition number of the matrix scaled to
        unit variances in the full form; tests/kernels/test_mixture_points.py.

        Examples
        --------
        >>> from fastpriv import GaussianMixture
        >>> p = GaussianMixture([1e-300, 1.0], [[0.0, 0.0], [1e8, 0.0]], 1.0)
        >>> p.log_density([[0.0, 0.0], [1e8, 0.0]])
        array([-692.61340496,   -1.83787707])
        """
        parallel.checked(n_jobs)
        rows, single = packs.point_rows("x", x, self.dimension)
        values = packs.mixture_log_density(self, rows, n_jobs)
        return values[0] if single else values

    def sample(self, size: int, *, rng: Any = None) -> FloatArray:
        """Independent samples.

        Parameters
        ----------
        size : int
            Their number n.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
            Source of randomness (SPEC 7). A Generator is used as it is; anything else is the seed of a new one, an
            integer as in ``numpy.random.default_rng``.

        Returns
        -------
        ndarray, shape (n, d); in one dimension (n,)
            Samples of the mixture with its weights divided by their sum.

        Raises
        ------
        DomainError
            For a size that is not an integer of at least 0, or an invalid rng.
        MemoryError
            If the points would need more memory than is free.

        Examples
        --------
        >>> from fastpriv import GaussianMixture
        >>> p = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [9.0, 9.0]], 1.0)
        >>> p.sample(1000, rng=1).shape
        (1000, 2)
        """
        n = validate.count("size", size, minimum=0)
        validate.memory("size", n * self.dimension * 8, "Draw and use the points in parts.")
        samples = packs.draw_samples(self, n, rng)
        return samples[:, 0] if self.means.ndim == 1 else samples

    def marginal(self, indices: ArrayLike) -> GaussianMixture:
        """The distribution of some coordinates, in the order given; one index gives a univariate mixture.

        Parameters
        ----------
        indices : int or sequence of int
            Distinct, counted from 0.

        Returns
        -------
        GaussianMixture
            With the same components.

        Raises
        ------
        DomainError
            For indices that are not integers, are out of range or repeated.

        Examples
        --------
        >>> from fastpriv import GaussianMixture
        >>> p = GaussianMixture([0.5, 0.5], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 1.0)
        >>> p.marginal([0, 2]).means
        array([[0., 2.],
               [3., 5.]])
        """
        wanted = f"different integers from 0 to {self.dimension - 1}"
        remedy = "Count coordinates from 0 and name each once."
        index = np.atleast_1d(
            validate.integers("indices", indices, 0, self.dimension - 1, constraint=wanted, remedy=remedy)
        )
        if index.ndim != 1 or index.size == 0:
            raise DomainError(f"indices must be one or more integers; got {indices!r}. Name the coordinates to keep.")
        if np.unique(index).size != index.size:
            raise DomainError(f"indices must be {wanted}; got {index.tolist()}. {remedy}")
        m = self.means.reshape(len(self), -1)[:, index]
        if self.covariances is not None:
            validate.memory("indices", len(self.covariances) * index.size**2 * 8, "Keep fewer coordinates.")
            stack = self.covariances[:, index[:, None], index]
            stack.setflags(write=False)
            return GaussianMixture(self.weights, m, covariances=stack)
        s = self.sigmas[:, None] if self.sigmas.ndim == 1 else self.sigmas[:, index]
        return GaussianMixture(self.weights, m, s)

    def affine(self, matrix: ArrayLike, shift: ArrayLike = 0.0) -> GaussianMixture:
        """The distribution of ``matrix @ X + shift``.

        Parameters
        ----------
        matrix : array_like, shape (m, d), (d,) or scalar
            Rows must be independent, so that the image has a density. A vector scales each coordinate, a scalar all.
        shift : array_like, shape (m,) or scalar, default 0
            Added to every point.

        Returns
        -------
        GaussianMixture
            In m dimensions; m = 1 gives a univariate mixture.

        Raises
        ------
        DomainError
            For dependent rows, zeros in a vector, or an image beyond 1e300.
        ShapeError
            For shapes that do not fit.

        Examples
        --------
        >>> from fastpriv import GaussianMixture
        >>> p = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, 4.0]], 1.0)
        >>> p.affine([[0.6, 0.8]])
        GaussianMixture([0.5, 0.5], [0.0, 5.0], [1.0, 1.0])
        """
        a = validate.real("matrix", matrix, "made of finite numbers", np.isfinite, answer=False)
        b = validate.real("shift", shift, "made of finite numbers", np.isfinite, answer=False)
        d = self.dimension
        if a.ndim > 2 or (a.ndim and (a.shape[-1] != d or not 1 <= len(a) <= d)):
            raise ShapeError(
                f"matrix must be a number, of shape ({d},) or of shape (m, {d}) with m from 1 to {d}; got {a.shape}. "
                "Pass one column a coordinate."
            )
        target = len(a) if a.ndim == 2 else d
        if b.shape not in ((), (target,)):
            raise ShapeError(f"shift must be a number or of shape ({target},); got {b.shape}. Pass one entry a row.")
        means, sigmas, covariances = packs.affine_image(self, a, b)
        try:
            return GaussianMixture(self.weights, means, sigmas, covariances=covariances)
        except DomainError as fault:
            raise DomainError(
                f"matrix must map to a distribution within the range of doubles, and not onto fewer dimensions; got an "
                f"image of which {fault}"
            ) from None

    def __reduce__(self) -> Any:
        if self.covariances is None:
            return GaussianMixture, (self.weights.copy(), self.means.copy(), self.sigmas.copy())
        return _unpickled, (self.weights, self.means, self.covariances)

    def __repr__(self) -> str:
        if len(self) > 4 or (self.covariances if self.covariances is not None else self.means).size > 16:
            space = "" if self.form == "univariate" else f" in {self.dimension} dimensions, {self.form}"
            return f"<GaussianMixture of {len(self)} component{'s' if len(self) != 1 else ''}{space}>"
        w, m = self.weights.tolist(), self.means.tolist()
        if self.covariances is not None:
            return f"GaussianMixture({w}, {m}, covariances={self.covariances.tolist()})"
        return f"GaussianMixture({w}, {m}, {self.sigmas.tolist()})"


def _unpickled(weights: FloatArray, means: FloatArray, covariances: FloatArray) -> GaussianMixture:
    """A mixture of the full form as it was when pickled; its factors are computed when asked for."""
    mixture = object.__new__(GaussianMixture)
    mixture._set(weights=weights, means=means, sigmas=None, covariances=covariances, _factors=None)
    return mixture
