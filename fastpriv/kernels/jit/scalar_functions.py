"""Functions of single numbers for code that numba compiles: calls of the compiled kernels by name.

The functions of ``special.__pyx_capi__`` become symbols of LLVM, named ``fastpriv_`` and the name of the function. A
symbol, unlike an address, may stand in a file that numba cached in another process, so that ``cache=True`` works.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .point_loops import _numba

__all__ = ["declared", "function", "signature_of"]

_PREFIX = "fastpriv_"  # of the symbols, so that no other library's function of the name is taken


def declared(capsules: dict[str, Any]) -> None:
    """Make the functions known to LLVM, under stable names."""
    _numba()
    import llvmlite.binding

    for name, capsule in capsules.items():
        llvmlite.binding.add_symbol(_PREFIX + name, _pointer(capsule))


def function(name: str, signature: str, documentation: str) -> Any:
    """A jitted function that calls the symbol; ``signature`` is that of the capsule.

    A function that writes three numbers becomes one that returns them.
    """
    numba = _numba()
    count = signature.count("double") - 1
    types = numba.types
    if signature.endswith("*)"):
        import numpy as np

        write = types.ExternalFunction(_PREFIX + name, types.void(*(types.float64,) * 3, types.CPointer(types.float64)))

        def bounds(x: Any, y: Any, z: Any) -> Any:
            result = np.empty(3)
            write(x, y, z, result.ctypes)
            return result[0], result[1], result[2]

        bounds.__name__, bounds.__doc__ = name, documentation
        return numba.njit(bounds)
    symbol = types.ExternalFunction(_PREFIX + name, types.float64(*(types.float64,) * count))
    plain: Any = (
        lambda x: symbol(x), lambda x, y: symbol(x, y), lambda x, y, z: symbol(x, y, z),
        lambda x, y, z, w: symbol(x, y, z, w),
    )[count - 1]
    plain.__name__, plain.__doc__ = name, documentation
    return numba.njit(plain)


def _pointer(capsule: Any) -> int:
    """The address in a capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, signature_of(capsule).encode()))


def signature_of(capsule: Any) -> str:
    """The type of the function in a capsule, such as ``double (double, double)``."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return str(name(capsule).decode())
