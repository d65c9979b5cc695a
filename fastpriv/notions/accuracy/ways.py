"""Which way a question of accuracy goes: a closed form, a sum over a row, or counted draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ..._parallel import Progress
from ..._values import FloatArray
from ...channels import AnyChannel, DiscreteLaplace
from ...distributions.user_functions import Sampler
from ...errors import DomainError, ShapeError, interruption
from ...estimate import Estimate
from ...mechanisms.gaussian import GaussianMechanism
from ...sampling.request import Request, request
from . import finite, normal, trials

__all__ = ["Answer", "Asked", "answered", "asked_of", "sampling_of"]

Found = TypeVar("Found")
_EXACT_OUTPUTS = 2**22
_NORMS = (1, 2, math.inf)
_Parts = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Asked:
    """The question: where the target is, which deviations count, in which norm."""

    target: FloatArray
    alpha: FloatArray  # distinct, in increasing order
    places: NDArray[np.intp]
    shape: tuple[int, ...]
    norm: float
    sampled: bool


@dataclass(frozen=True)
class Answer:
    """Value, lower and upper of shape (N, A) for distinct alphas, and the same of the largest, shape (A,)."""

    asked: Asked
    parts: _Parts
    largest: _Parts
    words: dict[str, Any]

    def per_secret(self, index: int | None = None) -> Estimate:
        """All secrets, or one of them."""
        rows = slice(None) if index is None else index
        return self._estimate(*(part[rows] for part in self.parts))

    def maximum(self) -> Estimate:
        """The largest."""
        return self._estimate(*self.largest)

    def whole(self, found: Found) -> Found:
        """The answer in the form that the caller gives it; raised where it was interrupted."""
        cost = self.words.get("cost", {})
        if cost.get("stopped") == "interrupted":
            raise interruption(found, f"the run was interrupted after {cost['samples']} draws.")
        return found

    def _estimate(self, *parts: FloatArray) -> Estimate:
        value, lower, upper = (
            part[..., self.asked.places].reshape((*part.shape[:-1], *self.asked.shape)) for part in parts
        )
        return Estimate(value, lower, upper, unit="probability", **self.words)


def asked_of(target: ArrayLike, alpha: ArrayLike, norm: float, method: str) -> Asked:
    """The question, validated."""
    centre = _validate.vector("target", target, remedy="Pass the number or vector that releases estimate.")
    edges = _validate.real("alpha", alpha, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
    if isinstance(norm, bool) or not isinstance(norm, (int, float, np.number)) or norm not in _NORMS:
        raise DomainError(f"norm must be 1, 2 or inf; got {_validate.shown(norm)}. Choose one of these.")
    distinct, places = np.unique(edges, return_inverse=True)
    sampled = _validate.choice("method", method, ("auto", "sampled")) == "sampled"
    return Asked(centre, distinct, places.reshape(-1), edges.shape, float(norm), sampled)


def sampling_of(
    confidence: float, side: str, rtol: float, atol: float, max_samples: float, max_seconds: float, rng: Any,
    n_jobs: int | None, progress: Progress,
) -> Request:  # fmt: skip
    """What is asked of counted draws, validated."""
    return request(
        confidence=confidence, side=side, rtol=rtol, atol=atol, max_samples=max_samples,  # type: ignore[arg-type]
        max_seconds=max_seconds, method="auto", interval="replicates", rng=rng, n_jobs=n_jobs, progress=progress,
    )  # fmt: skip


def answered(
    mechanism: Any, secrets: list[Any], decode: Any, asked: Asked, sampling: Request, name: str = "secret"
) -> Answer:
    """The answer for each secret; ``name`` is that of the argument that they came in."""
    if decode is not None and not isinstance(mechanism, AnyChannel):
        raise DomainError(
            f"decode must be left out for anything but a channel; got one with {_validate.shown(mechanism)}. "
            "Let the mechanism return numbers."
        )
    if isinstance(mechanism, GaussianMechanism):
        exact, samplers, how = _normal(mechanism, secrets, asked, name)
    elif isinstance(mechanism, AnyChannel):
        exact, samplers, how = _finite(mechanism, secrets, decode, asked, name)
    elif callable(mechanism):
        exact, how = None, ""
        samplers = [Sampler("mechanism", _told(mechanism, secret), asked.target.size) for secret in secrets]
    else:
        raise DomainError(
            f"mechanism must be a GaussianMechanism, a channel or a function; got {_validate.shown(mechanism)}. "
            "Pass a function of (rng, n) that returns n releases."
        )
    if asked.alpha.size == 0:
        none = np.zeros((len(secrets), 0))
        return Answer(asked, (none,) * 3, (none[0],) * 3, {"kind": "exact", "method": "no alpha"})
    if exact is not None:
        rows = [exact(i) for i in range(len(secrets))]
        value, lower, upper = (np.array([row[part] for row in rows]) for part in range(3))
        largest = value.max(axis=0), lower.max(axis=0), upper.max(axis=0)
        return Answer(asked, (value, lower, upper), largest, {"kind": "exact", "method": how})
    return _counted(samplers, asked, sampling)


def _normal(mechanism: GaussianMechanism, secrets: list[Any], asked: Asked, name: str) -> Any:
    sigma = _validate.scalar("sigma", mechanism.sigma)
    centres = []
    for secret in secrets:
        centre = _validate.vector(name, secret, remedy="Pass the value that noise is added to.")
        if centre.shape != asked.target.shape:
            raise ShapeError(
                f"{name} must have as many coordinates as target; got {centre.size} and {asked.target.size}. "
                "A release is the secret with noise, near the target if all is well."
            )
        centres.append(centre)
    gaps = [centre - asked.target for centre in centres]
    closed = not asked.sampled and all(normal.closed_form(gap, sigma, asked.alpha, asked.norm) for gap in gaps)

    def exact(i: int) -> _Parts:
        return normal.misses(gaps[i], sigma, asked.alpha, asked.norm)

    samplers = [Sampler("mechanism", _Noise(centre, sigma), centre.size) for centre in centres]
    return exact if closed else None, samplers, "closed form"


def _finite(channel: AnyChannel, secrets: list[Any], decode: Any, asked: Asked, name: str) -> Any:
    places = [_validate.count(name, secret, 0, channel.inputs - 1) for secret in secrets]
    plain = channel.sample([0], rng=0).shape == (1,)
    if decode is None and not plain:
        raise DomainError(
            f"decode must be given for a channel whose releases are sets, bits or tuples; got None for "
            f"{_validate.shown(channel)}. Pass a function of releases that returns estimates."
        )
    unbounded = isinstance(channel, DiscreteLaplace)
    small = channel._log2_shape()[1] <= 60 and channel.outputs <= _EXACT_OUTPUTS
    points = None
    if decode is not None and not callable(decode):
        points = _validate.real("decode", decode, "finite numbers", np.isfinite)
        if points.ndim not in (1, 2) or not channel._log2_shape()[1] <= 60 or len(points) != channel.outputs:
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


def _counted(samplers: list[Sampler], asked: Asked, sampling: Request) -> Answer:
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
    return Answer(asked, (value, lower, upper), largest, words)


def _told(mechanism: Callable[..., Any], secret: Any) -> Any:
    return mechanism if secret is None else _Told(mechanism, secret)


@dataclass(frozen=True)
class _Told:
    """A function of (rng, n) out of one of (rng, n, secret)."""

    function: Callable[..., Any]
    secret: Any
    more_arguments: ClassVar[str] = ", secret"

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
