"""Hockey-stick divergences and total variation, in any dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, NumberLike, stacked, with_negative_levels
from ..base.monotone import monotone
from ..base.numerics import FloatArray
from ..distributions import GaussianMixture, LogRatio
from ..distributions.other_libraries import takes_other_libraries
from ..sampling.options import Request, Sampling, SamplingOptions, sampling_request
from .arguments import Dispatch, Distribution, dispatch_of, exact_or_sampled, is_stack
from .one_dimension import monotone_pieces

_Blocks = Sequence[GaussianMixture]  # independent ones of a product
# The methods in one dimension, and for mixtures that are reduced to it.
_EXACT_METHODS = monotone_pieces.hockey_stick_divergence, lambda reductions: reductions.hockey_stick_divergence


@takes_other_libraries
@monotone(falling="epsilon")
def hockey_stick_divergence(
    p: Distribution | LogRatio | _Blocks, q: Distribution | _Blocks | None = None, epsilon: NumberLike = 0.0, *,
    both: bool = False, sampling: Sampling | None = None, **options: Unpack[SamplingOptions],
) -> Estimate:
    """H_{e^epsilon}(P||Q), the smallest delta for which P(E) <= e^epsilon Q(E) + delta for every event E.

    Parameters
    ----------
    p, q : GaussianMixture, MixtureStack, Density, Pmf or vector; or p a LogRatio, and no q; or two lists
        Any two distributions; neither equal covariances nor a common support are asked for. Of a stack every row is
        answered for: leading axes broadcast, and the last axis of ``epsilon`` belongs to each row. Two lists of as many
        GaussianMixtures are independent blocks of coordinates: P is the product of those of ``p``, Q of those of ``q``.
    epsilon : array_like or Estimate
        In nats, any shape; infinity gives 0. All of them share one analysis of the pair, or one set of samples; those
        below 0 take that of Q||P, by H_a(P||Q) = 1 - a + a H_{1/a}(Q||P). Sampled bounds hold at their level for each
        epsilon by itself.
    both : bool, default False
        Also the other direction, with a leading axis of length 2: P||Q, then Q||P.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``. ``certified`` in one dimension, and in d dimensions of the pairs that
        the notes name: the bounds contain the true divergence, with crossings, truncation and rounding included. Else
        ``statistical``. Below 1e-300 use ``log_hockey_stick_divergence``.

    Raises
    ------
    DomainError
        For a NaN epsilon, arguments that are no distributions, keywords out of range, lists of unequal lengths, or
        blocks of a list that are not certified by themselves.
    ShapeError
        For distributions of different dimensions.

    Notes
    -----
    Certified in d dimensions are two single Gaussians of any regular covariances, up to 1,000 dimensions; mixtures of
    one covariance with means on a line; and mixtures with independent coordinates, where the components are all
    combinations of one component of each coordinate, in any order and with products as weights, or where all but one
    coordinate, or but a line, are normal. A list of blocks of these kinds need not have its combinations written out.
    Everything else is sampled.

    Small divergences are sampled from tilted Gaussians whose weighted sum G is proved to be at least (p - e^epsilon
    q)^+ everywhere: the ratio lies in [0, 1] and its mean is of ordinary size, at delta = 1e-30 as at 0.1.

    **Accuracy** in one dimension the bounds always contain the truth. Their relative width is at most 1e-12, down to
    1e-300, on the families that ``tests/enclosures/test_hockey_stick.py`` holds against ball arithmetic: ordinary, far
    apart, narrow, and nearly identical (means that differ by 1e-8). Where many components of very different weights or
    nearly equal sigmas almost cancel the bracket can be wider: look at ``width``. Of two Gaussians in d dimensions it
    is at most 1e-8 down to e^-100 for condition numbers up to 1e6 and 256 dimensions, 1e-4 in more, and with larger
    condition numbers a pair may be sampled after all (``tests/enclosures/test_gaussian_pairs.py``). Of
    products it is about 1e-10 where all sigmas are equal, 1e-5 with a few coordinates of unequal sigmas, and 1e-3 with
    hundreds whose losses are bounded or at deltas below 1e-30 (``tests/enclosures/test_products.py``). Sampled
    intervals hold at their level by ``tests/intervals/test_divergence_coverage.py``.

    Source: Ngo et al. 2024, eq. (4); Balle, Barthe and Gaboardi 2018.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, hockey_stick_divergence
    >>> q = 0.01  # a Poisson-subsampled Gaussian mechanism, noise 1, remove direction
    >>> p = GaussianMixture([1 - q, q], [0.0, 1.0], 1.0)
    >>> e = hockey_stick_divergence(p, GaussianMixture.single(0.0, 1.0), [0.0, 0.1, 1.0])
    >>> e.upper
    array([3.82924923e-03, 7.29003770e-05, 2.73200926e-09])

    Forty independent coordinates of that kind, the mixture of 2^40 components:

    >>> print(f"{hockey_stick_divergence([p] * 40, [GaussianMixture.single(0.0, 1.0)] * 40, 0.5):.9f}")
    0.000017203 [0.000017203, 0.000017204]
    """
    request = partial(sampling_request, hockey_stick_divergence, sampling, options)
    return _hockey_stick(p, q, epsilon, request, logs=False, both=both)


@takes_other_libraries
@monotone(falling="epsilon")
def log_hockey_stick_divergence(
    p: Distribution | LogRatio | _Blocks, q: Distribution | _Blocks | None = None, epsilon: NumberLike = 0.0, *,
    both: bool = False, sampling: Sampling | None = None, **options: Unpack[SamplingOptions],
) -> Estimate:
    """Natural logarithm of H_{e^epsilon}(P||Q), for divergences far below 1e-300.

    Parameters
    ----------
    p, q : GaussianMixture, MixtureStack, Density, Pmf or vector; or p a LogRatio, and no q; or two lists
        Any two distributions; lists hold independent blocks, as in ``hockey_stick_divergence``.
    epsilon : array_like or Estimate
        In nats, any shape.
    both : bool, default False
        Also the other direction, with a leading axis of length 2.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``; ``rtol`` is the relative
        accuracy of the divergence, the absolute one of its logarithm.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``certified`` for the pairs that the notes of
        ``hockey_stick_divergence`` name, or ``statistical``; minus infinity where the divergence is 0.

    Raises
    ------
    DomainError, ShapeError
        As ``hockey_stick_divergence``.

    Notes
    -----
    **Accuracy** in one dimension relative width of the logarithm at most 1e-12 down to -3e5, a true but wider bracket
    below; tested by ``tests/enclosures/test_hockey_stick.py``. Of two Gaussians in d dimensions 1e-8 of 1 plus the
    size, down to -2000, for condition numbers up to 1e6 and 256 dimensions; of products as in
    ``hockey_stick_divergence``. Sampled: as ``hockey_stick_divergence``.

    Source: as ``hockey_stick_divergence``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.divergences import log_hockey_stick_divergence
    >>> p, q = GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0)
    >>> log_hockey_stick_divergence(p, q, 300.0).value
    -44862.4515...
    """
    request = partial(sampling_request, log_hockey_stick_divergence, sampling, options)
    return _hockey_stick(p, q, epsilon, request, logs=True, both=both)


@takes_other_libraries
def total_variation(
    p: Distribution | LogRatio | _Blocks, q: Distribution | _Blocks | None = None, *, sampling: Sampling | None = None,
    **options: Unpack[SamplingOptions],
) -> Estimate:
    """Total variation distance, sup_E |P(E) - Q(E)| = H_1(P||Q).

    Parameters
    ----------
    p, q : GaussianMixture, MixtureStack, Density, Pmf or vector; or p a LogRatio, and no q; or two lists
        Any two distributions; lists hold independent blocks, as in ``hockey_stick_divergence``.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``.

    Returns
    -------
    Estimate
        A scalar probability, ``certified`` for what ``hockey_stick_divergence`` certifies, else ``statistical``.

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
    if _lists_blocks(p) or _lists_blocks(q):
        return _of_blocks(p, q, np.zeros(()), sampling_request(total_variation, sampling, options))
    if is_stack(p, q):
        from . import rows_of_stacks

        def of_row(*row: Any, sampling: Sampling) -> Estimate:
            return total_variation(*row[:2], sampling=sampling)

        zero, request = np.zeros(()), sampling_request(total_variation, sampling, options)
        return rows_of_stacks.hockey_stick(p, q, zero, request, logs=False, function=of_row)
    dispatch, request = dispatch_of(p, q), sampling_request(total_variation, sampling, options)
    return exact_or_sampled(
        dispatch, request, *_EXACT_METHODS, lambda monte_carlo: monte_carlo.total_variation(p, q, request), p, q, 0.0
    )


def _hockey_stick(
    p: Any, q: Any, epsilon: ArrayLike, make_request: Callable[[], Request], *, logs: bool, both: bool
) -> Estimate:
    """The divergences, or their logarithms; the arguments that come first are checked first."""
    both = validate.flag("both", both)
    if _lists_blocks(p) or _lists_blocks(q):
        grid = validate.real("epsilon", epsilon, "a number", lambda e: e == e)
        result = [_of_blocks(p, q, grid, make_request(), logs, side) for side in ("forward", "backward")[: 1 + both]]
        return stacked(result, (2,)) if both else result[0]
    dispatch = None if is_stack(p, q) else dispatch_of(p, q)
    grid = validate.real("epsilon", epsilon, "a number", lambda e: e == e)
    request = make_request()
    if not (grid < 0.0).any():
        return _nonnegative_levels(p, q, grid, dispatch, request, logs=logs, both=both)
    if isinstance(p, LogRatio):
        raise DomainError(
            f"epsilon must be at least 0 with a LogRatio, which samples in one order; got {float(grid.min())!r}. Pass "
            "the ratio of Q and P and -epsilon: H_a(P||Q) = 1 - a + a H_{1/a}(Q||P), a = e^epsilon."
        )
    gap = sum(float(np.max(getattr(x, "mass_gaps", getattr(x, "mass_gap", 0.0)))) for x in (p, q))

    def curve(p: Any, q: Any) -> Callable[[FloatArray], Estimate]:
        return lambda levels: _nonnegative_levels(p, q, levels, dispatch, request, logs=logs, both=False)

    forward, backward = curve(p, q), curve(q, p)
    pairs = ((forward, backward), (backward, forward)) if both else ((forward, backward),)
    result = [with_negative_levels(grid, *pair, log=logs, gap=gap) for pair in pairs]
    return stacked(result, (2,)) if both else result[0]


def _lists_blocks(side: Any) -> bool:
    return isinstance(side, (list, tuple)) and any(isinstance(block, GaussianMixture) for block in side)


def _of_blocks(
    p: Any, q: Any, epsilon: FloatArray, request: Request, logs: bool = False, direction: str = "forward"
) -> Estimate:
    """The divergences of independent blocks of coordinates, listed for P and for Q."""
    from .reductions import factored_quantities

    for name, blocks in (("p", p), ("q", q)):
        if not (isinstance(blocks, (list, tuple)) and len(blocks) == len(p) and all(
            isinstance(block, GaussianMixture) for block in blocks)):
            raise DomainError(
                f"{name} must be a list of GaussianMixtures, as many as in the other list; got "
                f"{validate.shown(blocks)}. List the independent blocks of coordinates of both in one order."
            )
    if request.forced:
        raise DomainError(
            "method must be 'auto' with lists of independent blocks, which are composed; got one that samples. Drop it."
        )
    pairs = list(zip(p, q, strict=True))
    return factored_quantities.hockey_stick_of_blocks(pairs, epsilon, logs=logs, direction=direction)


def _nonnegative_levels(
    p: Any, q: Any, grid: FloatArray, dispatch: Dispatch | None, request: Request, *, logs: bool, both: bool
) -> Estimate:
    """The curve of P||Q at epsilon >= 0; ``dispatch`` is None for stacks."""
    if dispatch is None:
        from . import rows_of_stacks

        function = log_hockey_stick_divergence if logs else hockey_stick_divergence
        pairs = ((p, q), (q, p)) if both else ((p, q),)
        result = [rows_of_stacks.hockey_stick(*pair, grid, request, logs=logs, function=function) for pair in pairs]
        return stacked(result, (2,)) if both else result[0]
    return exact_or_sampled(
        dispatch, request, *_EXACT_METHODS,
        lambda monte_carlo: monte_carlo.hockey_stick(p, q, grid, request, logs=logs, both=both), p, q, grid, both=both,
        logs=logs, n_jobs=request.n_jobs,
    )
