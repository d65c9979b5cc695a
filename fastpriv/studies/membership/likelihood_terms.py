"""The parts of the log likelihood of releases, as the exact posterior and Gibbs sampling take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...base import parallel, validate
from ...base.errors import DomainError
from ...base.numerics import FloatArray
from .noises import GaussianNoise, GeneratorNoise, LaplaceNoise, NoNoise, ScaledNoise
from .releases import CombinedReleases, FrequencyRelease

__all__ = ["LikelihoodTerm", "checked_releases", "releases_of", "terms_of"]

# bound: proved - distance up to which an exact release equals frequencies: those of sizes up to 24 differ by 1/600
_SAME_FREQUENCY = 1e-12
_TABULATED_PEOPLE = 16  # people up to which a likelihood without a kernel of its own is written for all memberships
_TABULATED_AT_ONCE = 2**18  # numbers of frequencies that are written at a time: 2 MiB
# bound: tested by membership/test_releases - relative error of a log likelihood
_LIKELIHOOD_ERROR = 1e-12
# bound: none - the least scale of noise, and the largest scale and release: their squares, and quotients of them, stay
#    doubles
_LEAST_SCALE, _LARGEST = 1e-100, 1e45


class LikelihoodTerm(NamedTuple):
    """A part of the log likelihood of one release.

    ``kind`` is gaussian, laplace, linfinity, none (exact frequencies), censored (each attribute is at the lower end of
    the range, with Gaussian noise) or tabulated. ``scale`` holds the parameter of the noise at n = 1 ... K.
    """

    kind: str
    attributes: FloatArray  # (K, m), zeros and ones; tabulated: (0, 0)
    released: FloatArray  # (m,); tabulated: the log likelihood of each b, in the order of its index sum b_k 2^k
    scale: FloatArray  # (K,); none: the distance up to which frequencies agree; tabulated: not used
    densities: int = 0  # attributes that the noise has a density in, and no probability
    error: float = 0.0  # tabulated: bound on the error of the log likelihood


def releases_of(model: Any) -> tuple[FrequencyRelease, ...]:
    """The releases of a model, after a check that their likelihood is known."""
    if isinstance(model, FrequencyRelease):
        parts: tuple[FrequencyRelease, ...] = (model,)
    elif isinstance(model, CombinedReleases):
        parts = model.releases
    else:
        raise DomainError(
            f"model must be a FrequencyRelease or CombinedReleases; got {validate.shown(model)}. Build one of "
            "fastpriv.membership."
        )
    for part in parts:
        if isinstance(part.noise, GeneratorNoise):
            raise DomainError(
                f"model must have noise of a known likelihood; got {part.noise!r}. Train an attacker on simulated "
                "releases instead."
            )
        if not isinstance(part.noise, ScaledNoise):
            continue
        scales = part.noise.scale_of(np.arange(1, part.n_people + 1))
        if np.min(scales) < _LEAST_SCALE:
            raise DomainError(
                f"model must have noise of a scale of at least {_LEAST_SCALE:g}; got {part.noise!r}. Use NoNoise()."
            )
        if np.max(scales) > _LARGEST:
            raise DomainError(
                f"model must have noise of a scale of at most {_LARGEST:g}; got {part.noise!r}. The posterior of more "
                "noise is the prior."
            )
    return parts


def checked_releases(model: Any, released: Any) -> tuple[list[FloatArray], tuple[int, ...]]:
    """One array (count, m_i) for each release of a model, and the shape of the axes before the last."""
    if isinstance(model, FrequencyRelease):
        result = [model.checked_release(released)]
    else:
        parts = model._one_for_each(released)
        result = [release.checked_release(part) for release, part in zip(model.releases, parts, strict=True)]
    for item in result:
        if item.size and np.abs(item).max() > _LARGEST:
            raise DomainError(
                f"released must be within {_LARGEST:g} of 0; got {float(item.flat[np.abs(item).argmax()])!r}. "
                "Frequencies are between 0 and 1."
            )
    shape = np.broadcast_shapes(*(part.shape[:-1] for part in result))
    return [np.broadcast_to(entry, (*shape, entry.shape[-1])).reshape(-1, entry.shape[-1]) for entry in result], shape


def terms_of(part: FrequencyRelease, people: FloatArray, released: FloatArray) -> list[LikelihoodTerm]:
    """The parts of the log likelihood of one release, with people as zeros and ones (K, m)."""
    noise, count = part.noise, len(people)
    if isinstance(noise, NoNoise):
        return [LikelihoodTerm("none", people, released, np.full(count, _SAME_FREQUENCY))]
    assert isinstance(noise, ScaledNoise)
    scale = noise.scale_of(np.arange(1, count + 1))
    low, high = (released == 0.0, released == 1.0) if part.clip else (np.zeros(released.size, dtype=bool),) * 2
    inside = ~(low | high)
    if isinstance(noise, LaplaceNoise):  # probabilities of the ends of the range are exp(-|r - f| / scale) / 2
        return [LikelihoodTerm("laplace", people, released, scale, int(inside.sum()))]
    if isinstance(noise, GaussianNoise):
        ends = [people[:, low], 1.0 - people[:, high]]
        result = [LikelihoodTerm("censored", end, np.zeros(end.shape[1]), scale) for end in ends if end.size]
        if inside.any():
            result.append(LikelihoodTerm("gaussian", people[:, inside], released[inside], scale, int(inside.sum())))
        return result
    if inside.all():
        return [LikelihoodTerm("linfinity", people, released, scale, released.size)]
    return [_tabulated(part, released)]


def _tabulated(part: FrequencyRelease, released: FloatArray) -> LikelihoodTerm:
    """The log likelihood of each membership, for noise that the kernel has no term of."""
    people = part.n_people
    if people > _TABULATED_PEOPLE:
        raise DomainError(
            f"model must be of at most {_TABULATED_PEOPLE} people where L-infinity noise is clipped; got {people}. "
            "Release without clipping, or add Laplace or Gaussian noise."
        )
    logs = np.full(2**people, -np.inf)
    step = max(1, _TABULATED_AT_ONCE // part.n_attributes)
    for block in parallel.blocks(2**people - 1, step):
        index = np.arange(block.start, block.stop) + 1
        members = (index[:, None] >> np.arange(people)) & 1 == 1
        logs[index] = part.log_likelihood(released, members)
    error = _LIKELIHOOD_ERROR * float(np.max(np.abs(logs[1:]), initial=1.0, where=np.isfinite(logs[1:])))
    return LikelihoodTerm("tabulated", np.zeros((0, 0)), logs, np.ones(people), error=error)
