"""Values and gradients of divergences of mixtures on the line as plain arrays, for frameworks that differentiate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .. import divergences
from ..base.numerics import FloatArray
from ..distributions import MixtureStack

Setting: TypeAlias = tuple[str, float | None, float | None]  # a quantity, its order and its epsilon
# The function of each quantity.
_FUNCTIONS: dict[str, Any] = {
    "entropy": divergences.entropy, "hockey_stick": divergences.hockey_stick_divergence,
    "jensen_shannon": divergences.jensen_shannon, "kl": divergences.kl_divergence,
    "renyi": divergences.renyi_divergence,
}


def value(setting: Setting, parameters: Sequence[Any]) -> FloatArray:
    """The quantity of one mixture or two: weights, means and sigmas of each, with leading axes that broadcast."""
    (quantity, order, epsilon), stacks = setting, _stacks(parameters)
    if quantity not in _FUNCTIONS:
        divergences.divergence_gradient(quantity, *stacks)  # raises
    options = {name: number for name, number in (("order", order), ("epsilon", epsilon)) if number is not None}
    return np.array(_FUNCTIONS[quantity](*stacks, **options).value)


def gradients(setting: Setting, parameters: Sequence[Any], outer: Any) -> list[FloatArray]:
    """The derivatives by all parameters, of their shapes, times those of what follows by the quantity."""
    quantity, order, epsilon = setting
    result = divergences.divergence_gradient(quantity, *_stacks(parameters), order=order, epsilon=epsilon)
    return [_summed(np.asarray(outer)[..., None] * np.asarray(part.value), np.shape(parameter))
            for part, parameter in zip(result.estimates().values(), parameters, strict=True)]


def _stacks(parameters: Sequence[Any]) -> list[MixtureStack]:
    arrays = [np.asarray(parameter, dtype=np.float64) for parameter in parameters]
    return [MixtureStack(weights / weights.sum(axis=-1, keepdims=True), means, sigmas)
            for weights, means, sigmas in zip(arrays[::3], arrays[1::3], arrays[2::3], strict=True)]


def _summed(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Summed over the axes along which a parameter of this shape was broadcast."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    ones = tuple(axis for axis, size in enumerate(shape) if size == 1 and array.shape[axis] > 1)
    return np.asarray(array.sum(axis=ones, keepdims=True))
