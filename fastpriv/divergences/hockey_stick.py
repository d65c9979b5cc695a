"""Hockey-stick divergences and total variation, in any dimension."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import ArrayLike

from .. import _validate
from .._estimates import monotone
from .._parallel import Progress
from ..distributions import LogRatio
from ..estimate import Estimate, NumberLike
from .arguments import Law, asked, both_ways, deadline, exactly, laws
from .one_dimension import monotone_pieces
from .reductions import factored_quantities

__all__ = ["hockey_stick_divergence", "log_hockey_stick_divergence", "total_variation"]


@monotone(falling="epsilon")
def hockey_stick_divergence(
    p: Law | LogRatio, q: Law | None = None, epsilon: NumberLike = 0.0, *, both: bool = False, confidence: float = 0.95,
    side: str = "both", rtol: float = 1e-3, atol: float = 0.0, max_samples: int = 10**8, max_seconds: float = 60.0,
    method: str = "auto", interval: str = "replicates", rng: Any = None, n_jobs: int | None = None,
    progress: Progress = None,
) -> Estimate:  # fmt: skip
    """H_{e^epsilon}(P||Q), the smallest delta for which P(E) <= e^epsilon Q(E) + delta for every event E.

    Parameters
    ----------
    p, q : GaussianMixture or Density, of one dimension; or p a LogRatio, and q None
        Any two laws; neither equal covariances nor a common support are asked for.
    epsilon : array_like or Estimate
        Non-negative, in nats, any shape; infinity gives 0. All of them share one analysis of the pair, or one set of
        samples. Sampled bounds hold at their level for each epsilon by itself.
    both : bool, default False
        Also the other direction, with a leading axis of length 2: P||Q, then Q||P.
    confidence, side, rtol, atol, max_samples, max_seconds, method, interval, rng, n_jobs, progress
        How to sample where nothing exact applies: see ``help(fastpriv.divergences)``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``. On the line, and where the pair reduces to it, ``certified``: the
        bounds contain the true divergence, with crossings, truncation and rounding included. Else ``statistical``.
        Below 1e-300 use ``log_hockey_stick_divergence``.

    Raises
    ------
    DomainError
        For a negative or NaN epsilon, arguments that are no laws, or keywords out of range.
    ShapeError
        For laws of different dimensions.

    Notes
    -----
    Small divergences are sampled from tilted normals whose weighted sum G is proved to be at least (p - e^epsilon q)^+
    everywhere: the ratio lies in [0, 1] and its mean is of ordinary size, at delta = 1e-30 as at 0.1.

    **Accuracy** on the line the bounds always contain the truth. Their relative width is at most 1e-12, down to 1e-300,
    on the families that ``tests/enclosures/test_hockey_stick.py`` holds against ball arithmetic: ordinary, far apart,
    narrow, and nearly identical (means that differ by 1e-8). Where many components of very different weights or nearly
    equal sigmas almost cancel the bracket can be wider: look at ``width``. Sampled intervals hold at their level by
    ``tests/intervals/test_divergence_coverage.py``.

    Source: Ngo et al. 2024, eq. (4); Balle, Barthe and Gaboardi 2018.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, hockey_stick_divergence
    >>> q = 0.01  # a Poisson-subsampled Gaussian mechanism, noise 1, remove direction
    >>> p = GaussianMixture([1 - q, q], [0.0, 1.0], 1.0)
    >>> e = hockey_stick_divergence(p, GaussianMixture.single(0.0, 1.0), [0.0, 0.1, 1.0])
    >>> e.upper
    array([3.82924923e-03, 7.29003770e-05, 2.73200926e-09])
    """
    return _sticks(
        p, q, epsilon, False, both, confidence, side, rtol, atol, max_samples, max_seconds, method, interval, rng,
        n_jobs, progress,
    )  # fmt: skip


@monotone(falling="epsilon")
def log_hockey_stick_divergence(
    p: Law | LogRatio, q: Law | None = None, epsilon: NumberLike = 0.0, *, both: bool = False, confidence: float = 0.95,
    side: str = "both", rtol: float = 1e-3, atol: float = 0.0, max_samples: int = 10**8, max_seconds: float = 60.0,
    method: str = "auto", interval: str = "replicates", rng: Any = None, n_jobs: int | None = None,
    progress: Progress = None,
) -> Estimate:  # fmt: skip
    """Natural logarithm of H_{e^epsilon}(P||Q), for divergences far below 1e-300.

    Parameters
    ----------
    p, q : GaussianMixture or Density, of one dimension; or p a LogRatio, and q None
        Any two laws.
    epsilon : array_like or Estimate
        Non-negative, in nats, any shape.
    both : bool, default False
        Also the other direction, with a leading axis of length 2.
    confidence, side, rtol, atol, max_samples, max_seconds, method, interval, rng, n_jobs, progress
        How to sample where nothing exact applies: see ``help(fastpriv.divergences)``; ``rtol`` is the relative accuracy
        of the divergence, the absolute one of its logarithm.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``certified`` or ``statistical``; minus infinity where the
        divergence is 0.

    Raises
    ------
    DomainError, ShapeError
        As ``hockey_stick_divergence``.

    Notes
    -----
    **Accuracy** on the line relative width of the logarithm at most 1e-12 down to -3e5, a true but wider bracket below;
    tested by ``tests/enclosures/test_hockey_stick.py``. Sampled: as ``hockey_stick_divergence``.

    Source: as ``hockey_stick_divergence``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, log_hockey_stick_divergence
    >>> p, q = GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0)
    >>> log_hockey_stick_divergence(p, q, 300.0).value
    -44862.4515...
    """
    return _sticks(
        p, q, epsilon, True, both, confidence, side, rtol, atol, max_samples, max_seconds, method, interval, rng,
        n_jobs, progress,
    )  # fmt: skip


def total_variation(
    p: Law | LogRatio, q: Law | None = None, *, confidence: float = 0.95, side: str = "both", rtol: float = 1e-3,
    atol: float = 0.0, max_samples: int = 10**8, max_seconds: float = 60.0, method: str = "auto",
    interval: str = "replicates", rng: Any = None, n_jobs: int | None = None, progress: Progress = None,
) -> Estimate:  # fmt: skip
    """Total variation distance, sup_E |P(E) - Q(E)| = H_1(P||Q).

    Parameters
    ----------
    p, q : GaussianMixture or Density, of one dimension; or p a LogRatio, and no q
        Any two laws.
    confidence, side, rtol, atol, max_samples, max_seconds, method, interval, rng, n_jobs, progress
        How to sample where nothing exact applies: see ``help(fastpriv.divergences)``.

    Returns
    -------
    Estimate
        A scalar probability, ``certified`` on the line and for what reduces to it, else ``statistical``.

    Raises
    ------
    DomainError, ShapeError
        As ``hockey_stick_divergence``.

    Notes
    -----
    **Accuracy** as ``hockey_stick_divergence`` at epsilon 0; ``tests/enclosures/test_hockey_stick.py``.

    Source: Ngo et al. 2024, section I, with alpha = 1.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, total_variation
    >>> total_variation(GaussianMixture.single(0, 1), GaussianMixture.single(2, 1)).value
    0.68268949213708...
    """
    way = laws(p, q)
    request = asked(
        way, confidence, side, rtol, atol, max_samples, max_seconds, method, interval, rng, n_jobs, progress
    )
    if exactly(way, request):
        until = deadline(request)
        exact: Any = monotone_pieces if way == "line" else factored_quantities
        found = exact.hockey_stick_divergence(p, q, 0.0, deadline=until)
        if found is not None:
            return cast(Estimate, found)
    from . import monte_carlo

    assert request is not None
    return monte_carlo.total_variation(p, q, request)


def _sticks(p: Any, q: Any, epsilon: ArrayLike, logs: bool, both: bool, *keywords: Any) -> Estimate:
    both = _validate.flag("both", both)
    way = laws(p, q)
    grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    request = asked(way, *keywords)
    if exactly(way, request):
        until = deadline(request)
        exact: Any = monotone_pieces if way == "line" else factored_quantities
        found = exact.hockey_stick_divergence(p, q, grid, logs=logs, deadline=until)
        if found is not None and both:
            return both_ways(found, exact.hockey_stick_divergence(q, p, grid, logs=logs, deadline=until))
        if found is not None:
            return cast(Estimate, found)
    from . import monte_carlo

    assert request is not None
    return monte_carlo.hockey_stick(p, q, grid, request, logs=logs, both=both)
