"""PAC accuracy: how likely a release misses what it estimates by more than alpha, for one secret (standard) and for
each of several (robust).

Notation: M(d) is the release for the secret d, mu the target, beta(alpha) = P(||M(d) - mu|| > alpha).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...base import validate
from ...base.errors import DomainError, ShapeError, interruption
from ...base.estimate import Estimate, NumberLike, Result
from ...base.monotone import monotone
from ...base.numerics import FloatArray, IndexArray
from ...distributions.user_functions import Sampler
from ...mechanisms.gaussian import GaussianMechanism
from ...sampling.options import Request, Sampling, SamplingOptions, sampling_request
from .exact_accuracy import Bounds, gaussian_misses, has_gaussian_form
from .monte_carlo import count_misses

Norm: TypeAlias = Literal[1, 2] | float
ReleaseMechanism: TypeAlias = GaussianMechanism | Callable[..., Any]
Accuracy = TypeVar("Accuracy")

_DEFAULT = Sampling(rtol=0.01, atol=1e-4, max_samples=1e7)  # of a call without ``sampling``
# Rows of each secret, lower bounds that hold for all of them at once, and what the Estimate says besides
_Misses: TypeAlias = tuple[Bounds, FloatArray, dict[str, Any]]


@monotone(falling="alpha")
def pac_accuracy(
    mechanism: ReleaseMechanism, secret: object, target: ArrayLike, alpha: NumberLike, *, norm: Norm = 2,
    sampling: Sampling | None = None, **options: Unpack[SamplingOptions],
) -> Estimate:
    """Probability that a release misses its target by more than alpha: beta(alpha) = P(||M(d) - mu|| > alpha).

    A mechanism has standard accuracy alpha with confidence 1 - beta when this is at most beta.

    Parameters
    ----------
    mechanism : GaussianMechanism or callable
        A Gaussian mechanism adds its noise to ``secret``. A callable is called as ``mechanism(rng, n)`` with a
        ``numpy.random.Generator``
        and returns n independent releases, shape (n,) or (n, k), or, where ``secret`` is not None, as
        ``mechanism(rng, n, secret)``. One jitted by numba is called as ``mechanism(rng, x)`` and fills x, of shape
        (k,), with one release; with a secret as the others.
    secret : array_like, int or any object
        The value that noise is added to, number or shape (k,); or what a callable takes.
    target : array_like
        mu, a number or of shape (k,).
    alpha : array_like or Estimate
        Tolerances, at least 0 and finite, any shape; all of them share one set of samples.
    norm : {2, 1, inf}
        Of the deviation.
    sampling, **options : Sampling, and its fields by name, which override it
        How samples are counted where nothing exact applies, or, with a ``method`` such as "direct", anyway: see
        ``help(fastpriv.sampling.Sampling)``. Without ``sampling``, ``rtol`` is 0.01, ``atol`` 1e-4 and ``max_samples``
        1e7. A run stops when half the width is at most ``max(atol, rtol * beta)`` for every alpha. ``interval``,
        ``executor`` and ``store`` are not taken.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``alpha``. Kind ``exact`` for a Gaussian mechanism, in closed form;
        ``statistical`` for counted samples, with the limits of Clopper and Pearson, and
        ``cost["stopped"]`` one of target, max_samples, max_seconds; interrupted in the answer that an error carries.

    Raises
    ------
    DomainError
        For a negative alpha, NaN, an unknown norm, or a callable that raises, returns NaN or something else than
        numbers.
    ShapeError
        For shapes of secret, target or samples that do not agree.
    KeyboardInterrupt
        When interrupted; its attribute ``best`` carries the answer that was reached, if there was one.

    Notes
    -----
    A sampled run draws a pilot and stops at an interim analysis, at fixed multiples of what the pilot asks for. The
    analyses share the error, so that the interval holds whichever the run stops at. Without a target
    (rtol = atol = 0) there is one analysis.

    Behind a channel with rows of numbers ``points`` it is one sum,
    ``channel.rows(d, d + 1)[0][abs(points - mu) > alpha].sum()``.

    **Accuracy** 2e-11 relative in closed form; ``tests/enclosures/test_pac.py``.
    ``tests/intervals/test_pac_coverage.py`` counts the misses of the intervals over many seeds. Source: Zhang and Chen,
    Bridging Privacy and Robustness, definition IV.4; Clopper and Pearson 1934.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, notions
    >>> notions.pac_accuracy(GaussianMechanism(1.0), [0.0, 0.0], [0.0, 0.0], [1.0, 3.0]).value
    array([0.60653066, 0.011109  ])
    >>> import numpy as np
    >>> median = lambda rng, n: np.median(rng.laplace(size=(n, 15)), axis=1)
    >>> miss = notions.pac_accuracy(median, None, 0.0, [0.5, 1.0], rng=1, atol=0.01)
    >>> miss.kind, bool((miss.lower <= miss.value).all())
    ('statistical', True)
    """
    question, request = _question(target, alpha, norm), _request(pac_accuracy, sampling, options)
    bounds, _, words = _misses(mechanism, [secret], question, request)
    return _raised_if_interrupted(question.estimate([row[0] for row in bounds], **words), words.get("cost", {}))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RobustAccuracy(Result):
    """How likely the releases of several secrets miss one target, each with its bounds, and the largest of them.

    Parameters
    ----------
    per_neighbour : Estimate
        Shape (N, *alpha.shape): row i belongs to neighbour i. Sampled intervals hold at ``confidence`` each.
    maximum : Estimate
        Of the shape of ``alpha``: the largest probability. Its lower bound pays for the choice among N, by the union
        bound; its upper bound needs no correction, since it is above that of the secret that attains the maximum,
        whichever that is.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, notions
    >>> accuracy = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 0.5, -1.0], 0.0, 2.0)
    >>> accuracy.per_neighbour.value.round(4), round(accuracy.maximum.value, 4)
    (array([0.0455, 0.073 , 0.16  ]), 0.16)
    """

    per_neighbour: Estimate
    maximum: Estimate


@monotone(falling="alpha")
def robust_accuracy(
    mechanism: ReleaseMechanism, neighbours: Sequence[object], target: ArrayLike, alpha: NumberLike, *,
    norm: Norm = 2, sampling: Sampling | None = None, **options: Unpack[SamplingOptions],
) -> RobustAccuracy:
    """Probability that the release of each other secret misses the same target: P(||M(d') - mu|| > alpha), all d'.

    A mechanism has robust accuracy alpha with confidence 1 - gamma when the largest of these is at most gamma.

    Parameters
    ----------
    mechanism : GaussianMechanism or callable
        As for ``pac_accuracy``; a callable is called as ``mechanism(rng, n, secret)``.
    neighbours : sequence
        The secrets d', at least one. Only those that are listed count.
    target, alpha, norm
        As for ``pac_accuracy``.
    sampling, **options : Sampling, and its fields by name, which override it
        As for ``pac_accuracy``; ``max_samples`` counts for each neighbour, ``max_seconds`` for the whole call.

    Returns
    -------
    RobustAccuracy
        ``per_neighbour`` and ``maximum``.

    Notes
    -----
    What a privacy guarantee implies for secrets that are not listed is in ``fastpriv.conversions``:
    ``robustness_from_mbp(xi, beta)`` is T_xi(T_xi(beta)) with T_x(b) = min(e^x b, 1 - e^-x (1 - b)), and
    ``robustness_from_ldp``. The published (1 + 4 xi) beta is false for xi above 0.628.

    Raises as ``pac_accuracy``, and for an empty list of neighbours. **Accuracy** as ``pac_accuracy``;
    ``tests/intervals/test_pac_coverage.py`` covers the maximum. Source: Zhang and Chen, definition IV.6.

    Examples
    --------
    >>> from fastpriv import notions
    >>> import numpy as np
    >>> mean = lambda rng, n, data: np.mean(data) + rng.laplace(scale=0.1, size=n)
    >>> accuracy = notions.robust_accuracy(mean, [[1, 2, 3], [1, 2, 4]], 2.0, 0.5, rng=1, rtol=0.1)
    >>> accuracy.per_neighbour.shape, accuracy.maximum.lower < 0.0952 < accuracy.maximum.upper
    ((2,), True)
    """
    question, request = _question(target, alpha, norm), _request(robust_accuracy, sampling, options)
    listed = isinstance(neighbours, (Sequence, np.ndarray)) and not isinstance(neighbours, (str, bytes))
    if not listed or getattr(neighbours, "ndim", 1) == 0 or len(neighbours) == 0:
        raise DomainError(
            f"neighbours must be a sequence of at least one secret; got {validate.shown(neighbours)}. List those "
            "whose accuracy counts."
        )
    secrets: list[Any] = list(validate.sequence("neighbours", neighbours, "secrets"))
    for secret in secrets:
        if isinstance(secret, np.ndarray):  # other objects are the mechanism's own
            validate.array("neighbours", secret)
    bounds, simultaneous, words = _misses(mechanism, secrets, question, request, "neighbours")
    largest = bounds[0].max(axis=0), simultaneous.max(axis=0), bounds[2].max(axis=0)
    per_secret, maximum = question.estimate(bounds, **words), question.estimate(largest, **words)
    return _raised_if_interrupted(RobustAccuracy(per_secret, maximum), per_secret.cost)


def _raised_if_interrupted(answer: Accuracy, cost: Mapping[str, Any]) -> Accuracy:
    """The answer, or a KeyboardInterrupt that carries it if the run was interrupted."""
    if cost.get("stopped") == "interrupted":
        raise interruption(answer, f"the run was interrupted after {cost['samples']} draws.")
    return answer


class _Question(NamedTuple):
    """The validated request: the target, the deviations that count, and the norm."""

    target: FloatArray
    alpha: FloatArray  # distinct, in increasing order
    inverse: IndexArray | slice  # position of each requested alpha among the distinct ones
    shape: tuple[int, ...]
    norm: float

    def estimate(self, bounds: Iterable[FloatArray], **words: Any) -> Estimate:
        """For the requested alphas, from numbers of shape (..., A) for the distinct ones."""
        numbers = (x[..., self.inverse].reshape((*x.shape[:-1], *self.shape)) for x in bounds)
        return Estimate(*numbers, unit="probability", **words)


def _question(target: ArrayLike, alpha: Any, norm: float) -> _Question:
    centre = validate.vector("target", target, remedy="Pass the number or vector that releases estimate.")
    edges = validate.real("alpha", alpha, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
    if isinstance(norm, bool) or not isinstance(norm, (int, float, np.number)) or norm not in (1, 2, math.inf):
        raise DomainError(f"norm must be 1, 2 or inf; got {validate.shown(norm)}. Choose one of these.")
    flat = np.ascontiguousarray(edges).reshape(-1)
    if (flat[1:] > flat[:-1]).all():
        return _Question(centre, flat, slice(None), edges.shape, float(norm))
    distinct, inverse = np.unique(flat, return_inverse=True)
    return _Question(centre, distinct, inverse, edges.shape, float(norm))


def _request(function: Callable[..., Any], sampling: Sampling | None, options: SamplingOptions) -> Request:
    """The options of a call, of which those that counted samples do not have must be left out."""
    request = sampling_request(function, _DEFAULT if sampling is None else sampling, options)
    for name in ("interval", "executor"):
        if getattr(request, name) != getattr(Sampling, name):
            raise DomainError(
                f"{name} must be left out for counted samples; got {validate.shown(getattr(request, name))}. Their "
                "interval is that of Clopper and Pearson, their blocks run in threads."
            )
    return request


def _misses(
    mechanism: Any, secrets: list[Any], question: _Question, request: Request, name: str = "secret"
) -> _Misses:
    """``name`` is that of the argument that holds the secrets."""
    if isinstance(mechanism, GaussianMechanism):
        return _gaussian_misses(mechanism, secrets, question, request, name)
    if not callable(mechanism):
        raise DomainError(
            f"mechanism must be a GaussianMechanism or a function; got {validate.shown(mechanism)}. Pass a function of "
            "(rng, n) that returns n releases."
        )
    functions = [mechanism if secret is None else _WithSecret(mechanism, secret) for secret in secrets]
    samplers = [Sampler("mechanism", function, question.target.size) for function in functions]
    if question.alpha.size:
        return _count(samplers, question, request)
    empty = np.zeros((len(secrets), 0))
    return (empty, empty, empty), empty, {"kind": "exact", "method": "no alpha"}


def _gaussian_misses(
    mechanism: GaussianMechanism, secrets: list[Any], question: _Question, request: Request, name: str
) -> _Misses:
    sigma = validate.scalar("sigma", mechanism.sigma)
    centres = []
    for secret in secrets:
        centre = validate.vector(name, secret, remedy="Pass the value that noise is added to.")
        if centre.shape != question.target.shape:
            raise ShapeError(
                f"{name} must have as many coordinates as target; got {centre.size} and {question.target.size}. "
                "A release is the secret with noise, near the target if all is well."
            )
        centres.append(centre)
    gaps = [centre - question.target for centre in centres]
    alpha, norm = question.alpha, question.norm
    closed = all(has_gaussian_form(gap, sigma, alpha, norm) for gap in gaps)
    if alpha.size and (request.forced or not closed):
        return _count([_gaussian_sampler(centre, sigma) for centre in centres], question, request)
    rows = [gaussian_misses(gap, sigma, alpha, norm) for gap in gaps]
    value, lower, upper = (np.array([row[end] for row in rows]) for end in range(3))
    return (value, lower, upper), lower, {"kind": "exact", "method": "closed form"}


def _gaussian_sampler(centre: FloatArray, sigma: float) -> Sampler:
    def sample(rng: np.random.Generator, n: int) -> FloatArray:
        return centre + sigma * rng.standard_normal((n, centre.size))

    return Sampler("mechanism", sample, centre.size)


def _count(samplers: list[Sampler], question: _Question, request: Request) -> _Misses:
    counts, repeatable = count_misses(samplers, question.target, question.alpha, question.norm, request)
    intervals = [count.interval(request) for count in counts]
    value, lower, upper = (
        np.array([getattr(interval, name) for interval in intervals]) for name in ("value", "lower", "upper")
    )
    simultaneous = lower
    if request.side != "upper" and len(counts) > 1:
        simultaneous = np.array([count.interval(request, len(counts)).lower for count in counts])
    reasons = [count.stopped for count in counts]
    stopped = next(word for word in ("interrupted", "max_seconds", "max_samples", "target") if word in reasons)
    cost = {"samples": sum(count.samples for count in counts), "interim_analyses": max(c.analysis for c in counts),
            "stopped": stopped, "repeatable": repeatable}
    words = {"kind": "statistical", "confidence": request.confidence, "method": "counted draws", "cost": cost}
    return (value, lower, upper), simultaneous, words


@dataclass(frozen=True)
class _WithSecret:
    """A function of (rng, n) from one of (rng, n, secret)."""

    function: Callable[..., Any]
    secret: Any
    more_arguments: ClassVar[str] = ", secret"

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, rng: np.random.Generator, n: int) -> Any:
        return self.function(rng, n, self.secret)
