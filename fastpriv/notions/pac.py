"""PAC accuracy: how likely a release misses what it estimates by more than alpha, for one secret (standard) and for
each of several (robust).

Notation: M(d) is the release for the secret d, mu the target, beta(alpha) = P(||M(d) - mu|| > alpha).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .._parallel import Progress
from .._values import FloatArray
from ..channels import AnyChannel, DiscreteLaplace
from ..distributions.functions import Sampler
from ..errors import DomainError, ShapeError
from ..estimate import Estimate
from ..mechanisms.gaussian import GaussianMechanism
from ..sampling.request import Request, request
from .accuracy import finite, normal, trials

__all__ = ["RobustAccuracy", "pac_accuracy", "robust_accuracy"]

_EXACT_OUTPUTS = 2**22
_NORMS = (1, 2, math.inf)
_Parts = tuple[FloatArray, FloatArray, FloatArray]


def pac_accuracy(
    mechanism: Any, secret: Any, target: ArrayLike, alpha: ArrayLike, *, decode: Any = None, norm: float = 2,
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
    alpha : array_like
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
        ``cost["stopped"]`` one of target, max_samples, max_seconds, interrupted.

    Raises
    ------
    DomainError
        For a negative alpha, NaN, an unknown norm, a secret that a channel does not have, or a callable that raises,
        returns NaN or something else than numbers.
    ShapeError
        For shapes of secret, target, decoded outputs or draws that do not agree.
    KeyboardInterrupt
        When interrupted before anything could be said; later it gives what was reached.

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
    >>> miss = notions.pac_accuracy(median, None, 0.0, [0.5, 1.0], rng=1)
    >>> miss.kind, bool((miss.lower <= miss.value).all())
    ('statistical', True)
    """
    asked, sampling = _asked(target, alpha, norm, method), _sampling(
        confidence, side, rtol, atol, max_samples, max_seconds, rng, n_jobs, progress
    )
    found = _each(mechanism, [secret], decode, asked, sampling)
    return found.per_secret(0)


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


def robust_accuracy(
    mechanism: Any, neighbours: Sequence[Any], target: ArrayLike, alpha: ArrayLike, *, decode: Any = None,
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
    asked, sampling = _asked(target, alpha, norm, method), _sampling(
        confidence, side, rtol, atol, max_samples, max_seconds, rng, n_jobs, progress
    )
    if isinstance(neighbours, (str, bytes)) or not hasattr(neighbours, "__len__") or len(neighbours) == 0:
        raise DomainError(
            f"neighbours must be a sequence of at least one secret; got {_validate.shown(neighbours)}. List those "
            "whose accuracy counts."
        )
    found = _each(mechanism, list(neighbours), decode, asked, sampling)
    return RobustAccuracy(found.per_secret(), found.maximum())


@dataclass(frozen=True)
class _Asked:
    """The question: where the target is, which deviations count, in which norm."""

    target: FloatArray
    alpha: FloatArray  # distinct, in increasing order
    places: NDArray[np.intp]
    shape: tuple[int, ...]
    norm: float
    sampled: bool


@dataclass(frozen=True)
class _Answer:
    """Value, lower and upper of shape (N, A) for distinct alphas, and the same of the largest, shape (A,)."""

    asked: _Asked
    parts: _Parts
    largest: _Parts
    words: dict[str, Any]

    def per_secret(self, index: int | None = None) -> Estimate:
        rows = slice(None) if index is None else index
        return self._estimate(*(part[rows] for part in self.parts))

    def maximum(self) -> Estimate:
        return self._estimate(*self.largest)

    def _estimate(self, *parts: FloatArray) -> Estimate:
        value, lower, upper = (
            part[..., self.asked.places].reshape((*part.shape[:-1], *self.asked.shape)) for part in parts
        )
        return Estimate(value, lower, upper, unit="probability", **self.words)


def _asked(target: ArrayLike, alpha: ArrayLike, norm: float, method: str) -> _Asked:
    centre = _validate.vector("target", target, remedy="Pass the number or vector that releases estimate.")
    edges = _validate.real("alpha", alpha, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
    if edges.size == 0:
        raise ShapeError("alpha must have at least one entry; got an empty sequence. Pass one or more tolerances.")
    if isinstance(norm, bool) or norm not in _NORMS:
        raise DomainError(f"norm must be 1, 2 or inf; got {_validate.shown(norm)}. Choose one of these.")
    distinct, places = np.unique(edges, return_inverse=True)
    sampled = _validate.choice("method", method, ("auto", "sampled")) == "sampled"
    return _Asked(centre, distinct, places.reshape(-1), edges.shape, float(norm), sampled)


def _sampling(
    confidence: float, side: str, rtol: float, atol: float, max_samples: float, max_seconds: float, rng: Any,
    n_jobs: int | None, progress: Progress,
) -> Request:  # fmt: skip
    return request(
        confidence=confidence, side=side, rtol=rtol, atol=atol, max_samples=max_samples,  # type: ignore[arg-type]
        max_seconds=max_seconds, method="auto", interval="replicates", rng=rng, n_jobs=n_jobs, progress=progress,
    )  # fmt: skip


def _each(mechanism: Any, secrets: list[Any], decode: Any, asked: _Asked, sampling: Request) -> _Answer:
    if decode is not None and not isinstance(mechanism, AnyChannel):
        raise DomainError(
            f"decode must be left out for anything but a channel; got one with {_validate.shown(mechanism)}. "
            "Let the mechanism return numbers."
        )
    if isinstance(mechanism, GaussianMechanism):
        exact, samplers, how = _normal(mechanism, secrets, asked)
    elif isinstance(mechanism, AnyChannel):
        exact, samplers, how = _finite(mechanism, secrets, decode, asked)
    elif callable(mechanism):
        exact, how = None, ""
        samplers = [Sampler("mechanism", _told(mechanism, secret), asked.target.size) for secret in secrets]
    else:
        raise DomainError(
            f"mechanism must be a GaussianMechanism, a channel or a function; got {_validate.shown(mechanism)}. "
            "Pass a function of (rng, n) that returns n releases."
        )
    if exact is not None:
        rows = [exact(i) for i in range(len(secrets))]
        value, lower, upper = (np.array([row[part] for row in rows]) for part in range(3))
        largest = value.max(axis=0), lower.max(axis=0), upper.max(axis=0)
        return _Answer(asked, (value, lower, upper), largest, {"kind": "exact", "method": how})
    return _counted(samplers, asked, sampling)


def _normal(mechanism: GaussianMechanism, secrets: list[Any], asked: _Asked) -> Any:
    sigma = _validate.scalar("sigma", mechanism.sigma)
    centres = []
    for secret in secrets:
        centre = _validate.vector("secret", secret, remedy="Pass the value that noise is added to.")
        if centre.shape != asked.target.shape:
            raise ShapeError(
                f"secret must have as many coordinates as target; got {centre.size} and {asked.target.size}. "
                "A release is the secret with noise, near the target if all is well."
            )
        centres.append(centre)
    gaps = [centre - asked.target for centre in centres]
    closed = not asked.sampled and all(normal.closed_form(gap, sigma, asked.alpha, asked.norm) for gap in gaps)

    def exact(i: int) -> _Parts:
        return normal.misses(gaps[i], sigma, asked.alpha, asked.norm)

    samplers = [Sampler("mechanism", _Noise(centre, sigma), centre.size) for centre in centres]
    return exact if closed else None, samplers, "closed form"


def _finite(channel: AnyChannel, secrets: list[Any], decode: Any, asked: _Asked) -> Any:
    places = [_validate.count("secret", secret, 0, channel.inputs - 1) for secret in secrets]
    plain = channel.sample([0], rng=0).shape == (1,)
    if decode is None and not plain:
        raise DomainError(
            f"decode must be given for a channel whose releases are sets, bits or tuples; got None for "
            f"{_validate.shown(channel)}. Pass a function of releases that returns estimates."
        )
    unbounded = isinstance(channel, DiscreteLaplace)
    small = channel.outputs <= _EXACT_OUTPUTS
    points = None
    if decode is not None and not callable(decode):
        points = _validate.real("decode", decode, "finite numbers", np.isfinite)
        if points.ndim not in (1, 2) or len(points) != channel.outputs:
            raise ShapeError(
                f"decode must have one entry or row for each of the {_validate.shown(channel.outputs)} outputs; got "
                f"shape {points.shape}. Pass a function for channels with many."
            )
    elif plain and small and not unbounded:
        points = np.arange(channel.outputs, dtype=np.float64)
        if decode is not None:
            points = Sampler("decode", lambda rng, n: decode(np.arange(n)), asked.target.size)(
                np.zeros(4, dtype=np.uint64), channel.outputs
            ).T
    if points is not None:
        points = points.reshape(len(points), -1)
        if points.shape[1] != asked.target.size:
            raise ShapeError(
                f"decode must give as many coordinates as target; got {points.shape[1]} and {asked.target.size}. "
                "Pass a target of that length."
            )
    samplers = [Sampler("decode", _Release(channel, place, decode, points), asked.target.size) for place in places]
    if asked.sampled:
        return None, samplers, ""
    if points is not None and small:
        return (
            lambda i: finite.misses(channel, places[i], points, asked.target, asked.alpha, asked.norm),
            samplers, "sum over a row",
        )  # fmt: skip
    if isinstance(channel, DiscreteLaplace) and decode is None and asked.target.size == 1:
        return (
            lambda i: finite.discrete_laplace_misses(channel, places[i], float(asked.target[0]), asked.alpha),
            samplers, "two geometric tails",
        )  # fmt: skip
    return None, samplers, ""


def _counted(samplers: list[Sampler], asked: _Asked, sampling: Request) -> _Answer:
    found, repeatable = trials.run(samplers, asked.target, asked.alpha, asked.norm, sampling)
    each = [trial.interval(sampling) for trial in found]
    value, lower, upper = (np.array([getattr(one, end) for one in each]) for end in ("value", "lower", "upper"))
    floors = lower
    if sampling.side != "upper" and len(found) > 1:
        floors = np.array([trial.interval(sampling, share=len(found)).lower for trial in found])
    largest = value.max(axis=0), floors.max(axis=0), upper.max(axis=0)
    stopped = [trial.stopped for trial in found]
    worst = next(word for word in ("interrupted", "max_seconds", "max_samples", "target") if word in stopped)
    counts = [trial.count for trial in found]
    cost = {"samples": sum(counts), "looks": max(trial.look for trial in found), "stopped": worst,
            "repeatable": repeatable}  # fmt: skip
    words = {"kind": "statistical", "confidence": sampling.confidence, "method": "counted draws", "cost": cost}
    return _Answer(asked, (value, lower, upper), largest, words)


def _told(mechanism: Callable[..., Any], secret: Any) -> Any:
    return mechanism if secret is None else _Told(mechanism, secret)


@dataclass(frozen=True)
class _Told:
    """A function of (rng, n) out of one of (rng, n, secret)."""

    function: Callable[..., Any]
    secret: Any

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, rng: np.random.Generator, n: int) -> Any:
        return self.function(rng, n, self.secret)


@dataclass(frozen=True)
class _Noise:
    """The Gaussian mechanism as a sampler."""

    centre: FloatArray
    sigma: float

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.centre + self.sigma * rng.standard_normal((n, self.centre.size))


@dataclass(frozen=True)
class _Release:
    """A channel and its decoder as a sampler."""

    channel: AnyChannel
    secret: int
    decode: Any
    points: FloatArray | None

    @property
    def __name__(self) -> str:
        return str(getattr(self.decode, "__name__", "decode"))

    def __call__(self, rng: np.random.Generator, n: int) -> Any:
        kind: Any = np.int64 if self.secret < 2**63 else object
        releases = self.channel.sample(np.full(n, self.secret, dtype=kind), rng=rng)
        if callable(self.decode):
            return self.decode(releases)
        return releases.astype(np.float64) if self.points is None else self.points[releases]
