"""PAC accuracy: how likely a release misses what it estimates by more than alpha, for one secret (standard) and for
each of several (robust).

Notation: M(d) is the release for the secret d, mu the target, beta(alpha) = P(||M(d) - mu|| > alpha).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _parallel, _validate
from .._estimates import monotone
from .._parallel import Progress
from ..errors import DomainError
from ..estimate import Estimate, NumberLike
from .accuracy.ways import answered, asked_of, sampling_of

__all__ = ["RobustAccuracy", "pac_accuracy", "robust_accuracy"]


@monotone(falling="alpha")
def pac_accuracy(
    mechanism: Any, secret: Any, target: ArrayLike, alpha: NumberLike, *, decode: Any = None, norm: float = 2,
    method: str = "auto", confidence: float = 0.95, side: str = "both", rtol: float = 0.01, atol: float = 1e-4,
    max_samples: float = 1e7, max_seconds: float = 60.0, rng: Any = None, n_jobs: int | None = None,
    progress: Progress = None,
) -> Estimate:  # fmt: skip
    """Probability that a release misses its target by more than alpha: beta(alpha) = P(||M(d) - mu|| > alpha).

    A mechanism has standard accuracy alpha with confidence 1 - beta when this is at most beta.

    Parameters
    ----------
    mechanism : GaussianMechanism, AnyChannel or callable
        A Gaussian mechanism adds its noise to ``secret``. A channel releases one of finitely many outputs, which
        ``decode`` reads as numbers. A callable is called as ``mechanism(rng, n)`` with a ``numpy.random.Generator``
        and returns n independent releases, shape (n,) or (n, k), or, where ``secret`` is not None, as
        ``mechanism(rng, n, secret)``. One jitted by numba is called as ``mechanism(rng, x)`` and fills x, of shape
        (k,), with one release; with a secret as the others.
    secret : array_like, int or any object
        The value that noise is added to, number or shape (k,); the input of a channel, counted from 0; or what a
        callable is told.
    target : array_like
        mu, a number or of shape (k,).
    alpha : array_like or Estimate
        Tolerances, at least 0 and finite, any shape; all of them share one set of samples.
    decode : array_like of shape (outputs,) or (outputs, k), or callable, optional
        Only for channels: the estimate that each output stands for, or a function of releases as ``channel.sample``
        gives them, shape (n,) or (n, ...), to (n,) or (n, k). Default: integer releases are the estimates.
    norm : {2, 1, inf}
        Of the deviation.
    method : {"auto", "sampled"}
        ``sampled`` counts draws also where a closed form or a sum applies.
    confidence : float
        Level of a sampled interval, for each alpha.
    side : {"both", "lower", "upper"}
        Spend the whole error on one end.
    rtol, atol : float
        A sampled run stops when half the width is at most ``max(atol, rtol * beta)`` for every alpha; both 0 spend
        the whole budget.
    max_samples, max_seconds : float
        Budget of a sampled run; it ends there with a wider interval.
    rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator
        Equal integers give equal bits, for any number of threads.
    n_jobs : int, optional
        Threads, as in joblib.
    progress : bool or callable, optional
        True for a bar; a callable is called with (blocks done, blocks in all).

    Returns
    -------
    Estimate
        Probabilities of the shape of ``alpha``. Kind ``exact`` for a Gaussian mechanism (in closed form) and for a
        channel whose row is summed; ``statistical`` for counted draws, with the limits of Clopper and Pearson, and
        ``cost["stopped"]`` one of target, max_samples, max_seconds; interrupted in the answer that an error carries.

    Raises
    ------
    DomainError
        For a negative alpha, NaN, an unknown norm, a secret that a channel does not have, or a callable that raises,
        returns NaN or something else than numbers.
    ShapeError
        For shapes of secret, target, decoded outputs or draws that do not agree.
    KeyboardInterrupt
        When interrupted; its attribute ``best`` carries the answer that was reached, if there was one.

    Notes
    -----
    A sampled run draws a pilot and looks at fixed multiples of what the pilot asks for. The looks share the error, so
    that the interval holds at whichever look the run stops. Without a target (rtol = atol = 0) there is one look.

    **Accuracy** 1e-11 relative in closed form, 1e-12 for sums, whether or not a release lies on the edge;
    ``tests/enclosures/test_pac.py``. ``tests/intervals/test_pac_coverage.py`` counts the misses of the intervals over
    many seeds.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.4; Clopper and Pearson 1934.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, RandomizedResponse, notions
    >>> notions.pac_accuracy(GaussianMechanism(1.0), [0.0, 0.0], [0.0, 0.0], [1.0, 3.0]).value
    array([0.60653066, 0.011109  ])
    >>> notions.pac_accuracy(RandomizedResponse(5, 2.0), 3, target=3.0, alpha=1.0).upper
    0.175...
    >>> import numpy as np
    >>> median = lambda rng, n: np.median(rng.laplace(size=(n, 15)), axis=1)
    >>> miss = notions.pac_accuracy(median, None, 0.0, [0.5, 1.0], rng=1, atol=0.01)
    >>> miss.kind, bool((miss.lower <= miss.value).all())
    ('statistical', True)
    """
    _parallel.checked(n_jobs, progress)
    asked = asked_of(target, alpha, norm, method)
    sampling = sampling_of(
        confidence, side, rtol, atol, max_samples, max_seconds, rng, n_jobs, progress
    )
    found = answered(mechanism, [secret], decode, asked, sampling)
    return found.whole(found.per_secret(0))


@dataclass(frozen=True, slots=True)
class RobustAccuracy:
    """How likely the releases of several secrets miss one target, each with its bounds, and the largest of them.

    Parameters
    ----------
    per_neighbour : Estimate
        Shape (N, *alpha.shape): row i belongs to neighbour i. Sampled intervals hold at ``confidence`` each.
    maximum : Estimate
        Of the shape of ``alpha``: the largest probability. Its lower bound pays for having been chosen among N, by
        the union bound; its upper bound needs no correction, since it is above that of the secret that attains the
        maximum, whichever that is.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, notions
    >>> found = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 0.5, -1.0], 0.0, 2.0)
    >>> found.per_neighbour.value.round(4), round(found.maximum.value, 4)
    (array([0.0455, 0.073 , 0.16  ]), 0.16)
    """

    per_neighbour: Estimate
    maximum: Estimate


@monotone(falling="alpha")
def robust_accuracy(
    mechanism: Any, neighbours: Sequence[Any], target: ArrayLike, alpha: NumberLike, *, decode: Any = None,
    norm: float = 2, method: str = "auto", confidence: float = 0.95, side: str = "both", rtol: float = 0.01,
    atol: float = 1e-4, max_samples: float = 1e7, max_seconds: float = 60.0, rng: Any = None,
    n_jobs: int | None = None, progress: Progress = None,
) -> RobustAccuracy:  # fmt: skip
    """Probability that the release of each other secret misses the same target: P(||M(d') - mu|| > alpha), all d'.

    A mechanism has robust accuracy alpha with confidence 1 - gamma when the largest of these is at most gamma.

    Parameters
    ----------
    mechanism : GaussianMechanism, AnyChannel or callable
        As for ``pac_accuracy``; a callable is called as ``mechanism(rng, n, secret)``.
    neighbours : sequence
        The secrets d', at least one. Only those that are listed are looked at.
    target, alpha, decode, norm, method
        As for ``pac_accuracy``.
    confidence, side, rtol, atol, max_samples, max_seconds, rng, n_jobs, progress
        As for ``pac_accuracy``; ``max_samples`` counts for each neighbour, ``max_seconds`` for the whole call.

    Returns
    -------
    RobustAccuracy
        ``per_neighbour`` and ``maximum``.

    Raises
    ------
    DomainError, ShapeError, KeyboardInterrupt
        As ``pac_accuracy``, and for an empty list of neighbours.

    Notes
    -----
    What a privacy guarantee implies for secrets that are not listed is in ``fastpriv.conversions``:
    ``robustness_from_mbp(xi, beta)`` is T_xi(T_xi(beta)) with T_x(b) = min(e^x b, 1 - e^-x (1 - b)), and
    ``robustness_from_ldp``. The published (1 + 4 xi) beta is false for xi above 0.628.

    **Accuracy** as ``pac_accuracy``; ``tests/intervals/test_pac_coverage.py`` covers the maximum.

    Source: Zhang and Chen, definition IV.6.

    Examples
    --------
    >>> from fastpriv import notions
    >>> import numpy as np
    >>> mean = lambda rng, n, data: np.mean(data) + rng.laplace(scale=0.1, size=n)
    >>> found = notions.robust_accuracy(mean, [[1, 2, 3], [1, 2, 4]], 2.0, 0.5, rng=1, rtol=0.1)
    >>> found.per_neighbour.shape, found.maximum.lower < 0.0952 < found.maximum.upper
    ((2,), True)
    """
    _parallel.checked(n_jobs, progress)
    asked = asked_of(target, alpha, norm, method)
    sampling = sampling_of(
        confidence, side, rtol, atol, max_samples, max_seconds, rng, n_jobs, progress
    )
    listed = isinstance(neighbours, (Sequence, np.ndarray)) and not isinstance(neighbours, (str, bytes))
    if not listed or getattr(neighbours, "ndim", 1) == 0 or len(neighbours) == 0:
        raise DomainError(
            f"neighbours must be a sequence of at least one secret; got {_validate.shown(neighbours)}. List those "
            "whose accuracy counts."
        )
    found = answered(mechanism, list(neighbours), decode, asked, sampling, "neighbours")
    return found.whole(RobustAccuracy(found.per_secret(), found.maximum()))
