"""What every conversion does with the numbers that it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .parameters import PARAMETERS

__all__ = ["validated"]

FloatArray = NDArray[np.float64]
_LN2 = 0.6931471805599453


def validated(*, unit: Any = "nats", **values: ArrayLike) -> tuple[FloatArray, ...]:
    """Each number checked by its range, all broadcast to one shape; amounts of information, in ``unit``, as nats."""
    _validate.choice("unit", unit, ("nats", "bits"))
    checked: dict[str, FloatArray] = {}
    for name, value in values.items():
        parameter = PARAMETERS[name]
        array = _validate.real(name, value, parameter.constraint, parameter.valid)
        for other, partner in checked.items():
            _validate.broadcastable(name, array, other, partner)
        checked[name] = array * _LN2 if unit == "bits" and parameter.information else array
    if len(checked) > 2:  # every pair of them fits
        _validate.grid(" with ".join(checked), np.broadcast_shapes(*(array.shape for array in checked.values())))
    return tuple(np.broadcast_arrays(*checked.values()))
