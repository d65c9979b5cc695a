"""Functions of single numbers that can be called inside functions compiled by numba.

``fastpriv.nb`` has the functions of ``fastpriv.special`` under their names: normal tails, the curves of the Gaussian
mechanism and of the subsampled one with their inverses, entropies and capacities of binary channels, the capacity under
a peak-power constraint, mutual-information privacy. They take and return float64, their bits are those of the ufuncs,
and they start no threads; integers and float32 are converted. Of a ufunc with bounds the function ``<name>`` returns
the value, and ``<name>_bounds`` returns value, lower and upper bound. A function that calls them may be compiled with
``cache=True``, ``nogil=True``, ``parallel=True`` or as ``numba.cfunc``.

>>> import numba
>>> from fastpriv import nb
>>> @numba.njit
... def largest_delta(r, epsilons):
...     most = 0.0
...     for epsilon in epsilons:
...         most = max(most, nb.gaussian_delta(r, epsilon))
...     return most
>>> round(largest_delta(0.5, (1.0, 2.0)), 12)
0.126936737507
"""

from __future__ import annotations

from typing import Any

from . import special
from .kernels.jit import scalar_functions

__all__: list[str] = []  # no star import: a function is compiled when its name is first used, which takes a second

scalar_functions.declared(special.__pyx_capi__)


def __getattr__(name: str) -> Any:
    if name not in special.__pyx_capi__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    capsule, ufunc = special.__pyx_capi__[name], getattr(special, name.removesuffix("_bounds"))
    result = scalar_functions.function(name, scalar_functions.signature_of(capsule), ufunc.__doc__)
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return sorted(special.__pyx_capi__)
