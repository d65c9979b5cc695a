"""What a shared vector goes through before anyone sees it.

Notation: g in R^P, the mean gradient of a batch, or what a round changed the weights by in units of a gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError
from ...base.numerics import FloatArray
from ...base.random_streams import RNGLike

_NOISES = ("none", "gaussian", "laplace")  # of the coordinates, independent of each other
_MOST_LEVELS = 2**31  # of quantisation: beyond that a coordinate of 32 bits is not shortened


@dataclass(frozen=True, kw_only=True, repr=False)
class Protection:
    """A chain of protections; the default protects nothing.

    Applied in this order, each where it is given: every example's gradient is scaled down to length ``clip_example``
    (L2); the mean is taken; it is scaled down to length ``clip_batch``; noise is added; the largest coordinates are
    kept and the others set to 0; those that are kept are rounded to ``levels`` values.

    Parameters
    ----------
    clip_example, clip_batch : float, optional
        Largest L2 norms, positive.
    noise : {"none", "gaussian", "laplace"}
        Of every coordinate of the mean, independent.
    scale : float
        Standard deviation of normal noise, or scale b of Laplace noise (density exp(-|x| / b) / 2b), in the units of
        the mean gradient. 0 without noise.
    keep_fraction : float
        Fraction of the coordinates that are kept, in (0, 1], rounded up; of equal ones the first.
    levels : int, optional
        Values that a coordinate can take, at least 2, equally far apart from -m to m, m the largest coordinate in size.
        Rounding is stochastic, to the value below or above, and right in the mean (unbiased).
    every_step : bool
        Whether each local step of a round is protected, as in DP-SGD, and not what the round shares. Gradients of
        examples are clipped in every step in both cases.

    Raises
    ------
    DomainError
        For numbers out of range, a noise without a scale, or a scale without noise.

    Notes
    -----
    Source: M. Abadi et al. 2016 (clipping and normal noise); A. Aji and K. Heafield 2017 (largest coordinates);
    D. Alistarh et al. 2017 (stochastic quantisation).

    Examples
    --------
    >>> from fastpriv.leakage import Protection
    >>> Protection(clip_batch=1.0, keep_fraction=0.5).apply([3.0, 0.1, -4.0, 0.2])
    array([ 0.599..., 0.        , -0.799..., 0.        ])
    >>> Protection.dp_sgd(clip=1.0, noise_multiplier=1.1, batch_size=64).label
    'DP-SGD, clip 1, noise 0.0171875'
    """

    clip_example: float | None = None
    clip_batch: float | None = None
    noise: str = "none"
    scale: float = 0.0
    keep_fraction: float = 1.0
    levels: int | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        clips: dict[str, Any] = {"clip_example": self.clip_example, "clip_batch": self.clip_batch}
        clips = {name: validate.positive(name, clip) for name, clip in clips.items() if clip is not None}
        size = validate.scalar("scale", self.scale, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        kind = validate.choice("noise", self.noise, _NOISES)
        if (kind == "none") != (size == 0.0):
            raise DomainError(
                f"scale must be positive with noise, and 0 without; got {size!r} with noise {kind!r}. Name the noise, "
                "'gaussian' or 'laplace', and its scale."
            )
        constraint = ("above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
        part = validate.scalar("keep_fraction", self.keep_fraction, *constraint)
        checked = clips | {
            "noise": kind, "scale": size, "keep_fraction": part,
            "levels": None if self.levels is None else validate.count("levels", self.levels, 2, _MOST_LEVELS),
            "every_step": validate.flag("every_step", self.every_step),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def dp_sgd(cls, clip: float, noise_multiplier: float, batch_size: float) -> Protection:
        """The protection of DP-SGD: examples clipped, normal noise of noise_multiplier * clip / batch_size a step.

        Parameters
        ----------
        clip : float
            Largest L2 norm of an example's gradient.
        noise_multiplier : float
            Standard deviation of the noise of the sum of gradients, in units of ``clip``; positive.
        batch_size : float
            Number of records that the sum is divided by: the size of fixed batches, the expected one of Poisson ones.
        """

        longest, multiplier = validate.positive("clip", clip), validate.positive("noise_multiplier", noise_multiplier)
        deviation = multiplier * longest / validate.positive("batch_size", batch_size)
        validate.scalar("clip * noise_multiplier / batch_size", deviation, "finite", np.isfinite)
        return cls(clip_example=longest, noise="gaussian", scale=deviation, every_step=True)

    @property
    def label(self) -> str:
        """A few words for tables."""
        parts = ["DP-SGD"] if self.every_step and self.noise == "gaussian" and self.clip_example else []
        if self.clip_example is not None:
            parts.append(f"clip {self.clip_example:g}")
        if self.clip_batch is not None:
            parts.append(f"clip mean {self.clip_batch:g}")
        if self.noise != "none":
            parts.append(f"{'noise' if parts[:1] == ['DP-SGD'] else self.noise} {self.scale:g}")
        if self.keep_fraction < 1.0:
            parts.append(f"largest {100 * self.keep_fraction:g} %")
        if self.levels is not None:
            parts.append(f"{self.levels} levels")
        return ", ".join(parts) or "none"

    def apply(self, mean: ArrayLike, *, rng: RNGLike = None) -> FloatArray:
        """What is shared of a mean gradient of clipped examples, shape (P,); ``rng`` is a seed or a Generator."""
        vector = validate.vector("mean", mean)
        return self.protected(vector, random_streams.generator(rng))

    def protected(self, mean: FloatArray, stream: np.random.Generator) -> FloatArray:
        """``apply`` without checks; NaN and infinities pass through."""
        g = mean
        if self.clip_batch is not None:
            length = _length(g)
            g = g * (self.clip_batch / length) if length > self.clip_batch else g
        if self.noise != "none":
            g = g + self.scale * (stream.standard_normal if self.noise == "gaussian" else stream.laplace)(size=g.size)
        if self.keep_fraction < 1.0:
            selected = np.argsort(-np.abs(g), kind="stable")[: math.ceil(self.keep_fraction * g.size)]
            g, full = np.zeros(g.size), g
            g[selected] = full[selected]
        if self.levels is not None:
            g = _quantised(g, self.levels, stream)
        return g

    def __repr__(self) -> str:
        """The arguments that are not left out."""
        values = (
            (field.name, getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"Protection({', '.join(f'{name}={value!r}' for name, value in values)})"


def _length(vector: FloatArray) -> float:
    """The L2 norm, without overflow and summed in one order on every machine."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    if not 0.0 < largest < math.inf:
        return largest
    return largest * math.sqrt(math.fsum((vector / largest) ** 2))


def _quantised(g: FloatArray, levels: int, stream: np.random.Generator) -> FloatArray:
    """Coordinates rounded at random to one of ``levels`` values, those of 0 kept."""
    largest = np.max(np.abs(g), initial=0.0)
    uniforms = stream.random(g.size)
    if not 0.0 < largest < math.inf:
        return g
    position = (g / largest + 1.0) * (0.5 * (levels - 1))
    lower = np.floor(position)
    chosen = np.minimum(lower + (uniforms < position - lower), levels - 1)
    return np.where(g == 0.0, 0.0, largest * (2.0 * chosen / (levels - 1) - 1.0))
