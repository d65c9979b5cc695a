"""The parts of the log likelihood of releases, as the exact posterior and Gibbs sampling take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...base import validate
from ...base.errors import DomainError
from ...base.numerics import FloatArray
from .noises import GaussianNoise, LaplaceNoise, NoNoise, ScaledNoise
from .releases import CombinedReleases, FrequencyRelease

# bound: proved - distance up to which an exact release equals frequencies: those of sizes up to 24 differ by 1/600
_SAME_FREQUENCY = 1e-12
# bound: none - the least scale of noise, and the largest scale and release: their squares, and quotients of them, stay
#    doubles
_LEAST_SCALE, _LARGEST = 1e-100, 1e45


class LikelihoodTerm(NamedTuple):
    """A part of the log likelihood of one release.

    ``kind`` is gaussian, laplace, linfinity, none (exact frequencies), censored (each attribute is at the lower end of
    the range, with Gaussian noise) or tabulated. ``scale`` holds the parameter of the noise at n = 1 ... K.
    """

    kind: str
    attributes: FloatArray  # (K, m), zeros and ones
    released: FloatArray  # (m,)
    scale: FloatArray  # (K,); none: the distance up to which frequencies agree
    densities: int = 0  # attributes that the noise has a density in, and no probability


def releases_of(model: Any) -> tuple[FrequencyRelease, ...]:
    """The releases of a model, after a check that their likelihood is known."""
    kinds, remedy = (FrequencyRelease, CombinedReleases), "Build one of fastpriv.membership."
    validate.instance("model", model, kinds, "a FrequencyRelease or CombinedReleases", remedy)
    parts: tuple[FrequencyRelease, ...] = (model,) if isinstance(model, FrequencyRelease) else model.releases
    for part in parts:
        if not part.noise.has_likelihood(part.clip):
            raise DomainError(
                f"model must have noise of a known likelihood; got {part!r}. Train an attacker on simulated releases "
                "instead."
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
    return [LikelihoodTerm("linfinity", people, released, scale, released.size)]
