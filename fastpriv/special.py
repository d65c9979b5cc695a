"""Special functions as NumPy ufuncs: broadcasting, ``out=``, scalars in and scalars out, the GIL released.

Notation: phi and Phi are the density and the distribution function of the standard normal law, R(x) =
(1 - Phi(x)) / phi(x) is the Mills ratio. Arguments and results are float64. Outside its domain a function returns
NaN, without a warning. Every instruction set gives the same bits.
"""

from __future__ import annotations

import numpy as np

from .kernels import _special

__all__ = [
    "erfc", "erfcx", "exp", "expm1", "log", "log1mexp", "log1p", "log_ndtr", "logaddexp", "mills_ratio", "ndtr",
    "ndtr_difference",
]  # fmt: skip

_TEXT = dict.fromkeys(__all__, "")
_made: dict[str, np.ufunc] = _special.ufuncs(_TEXT)

exp: np.ufunc = _made["exp"]
