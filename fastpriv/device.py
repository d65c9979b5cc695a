"""The functions of the C header on a GPU: source text for NVRTC, and kernels for CuPy.

``source()`` is ``fastpriv.h`` with all that it includes, as one text that NVRTC compiles for devices from sm_80 on with
``OPTIONS``: sums and products are not fused, and functions belong to the device. The header calls no mathematical
library, only operations that IEEE 754 rounds correctly, in the order of the CPU.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from . import special
from .base import validate
from .base.errors import explain_missing_package
from .base.include import get_include

__all__ = ["OPTIONS", "kernel", "source"]

#: What NVRTC is to be told: no fused multiplication and addition; functions without a mark run on the device; no
#: warning of pragmas of GCC, nor of functions that nobody calls.
OPTIONS = ("--fmad=false", "--device-as-default-execution-space", "--diag-suppress=161,177")
# Names of the functions that the header declares, after the prefix of all.
_FUNCTION = re.compile(r"^(?:FASTPRIV_\w+\(|static inline double fastpriv_)([a-z]\w+)\b", re.M)


def source() -> str:
    """The C header with everything that it includes, as one text.

    Returns
    -------
    str
        To be compiled by NVRTC with ``OPTIONS``, before kernels that call ``fastpriv_gaussian_delta(r, epsilon)`` and
        the other functions of ``fastpriv.h``. From the directory ``get_include()``, ``#include <fastpriv.h>`` does too.

    Notes
    -----
    **Accuracy** in the compiled text no product is fused with a sum but where the source writes a fused operation, for
    sm_80, sm_90 and sm_100, by ``tests/contracts/test_device.py``. These tests have no GPU: they do not run the result.

    Source: the headers themselves name theirs.

    Examples
    --------
    >>> from fastpriv import device
    >>> device.source()[:32]
    '/* Functions of fastpriv for C: '
    """
    folder = Path(get_include())
    included = set()

    def text_of(name: str) -> str:
        included.add(name)
        text = (folder / name).read_text(encoding="utf-8")
        return re.sub(r'^#include "(.+)"$', lambda m: "" if m[1] in included else text_of(m[1]), text, flags=re.M)

    return text_of("fastpriv.h")


def kernel(name: str) -> Any:
    """A CuPy kernel that evaluates a function of ``fastpriv.special`` at every element of its arrays.

    Parameters
    ----------
    name : str
        A function of the C header: ``"gaussian_delta"``, ``"log_ndtr"``, ``"bac_capacity"``,
        ``"sampled_gaussian_delta_remove"``, ...

    Returns
    -------
    cupy.ElementwiseKernel
        It takes and returns float64 arrays on the device, and broadcasts as the ufunc does. Of a function with bounds
        it returns value, lower and upper bound.

    Raises
    ------
    DomainError
        For a name that the header does not have.
    BackendMissingError
        If CuPy is not installed.

    Notes
    -----
    **Accuracy** that of ``source``.

    Source: CuPy's ``ElementwiseKernel``.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> from fastpriv import device
    >>> delta = device.kernel("gaussian_delta")  # doctest: +SKIP
    >>> delta(0.5, cupy.linspace(0.0, 4.0, 1_000_000))  # doctest: +SKIP
    """
    text = source()
    validate.choice("name", name, tuple(_FUNCTION.findall(text)))
    with explain_missing_package("kernel", "CuPy", "cupy-cuda12x"):
        import cupy
    ufunc = getattr(special, name)
    arguments = "abcd"[: ufunc.nin]
    results = ("value", "lower", "upper")[: ufunc.nout]
    call = f"fastpriv_{name}({', '.join(arguments)})"
    body = f"value = {call};"
    if len(results) > 1:
        body = f"fastpriv_bounds found = {call}; " + " ".join(f"{word} = found.{word};" for word in results)
    inputs, outputs = (", ".join(f"float64 {word}" for word in words) for words in (arguments, results))
    return cupy.ElementwiseKernel(inputs, outputs, body, f"fastpriv_{name}_kernel", preamble=text, options=OPTIONS)


def __dir__() -> list[str]:
    return __all__
