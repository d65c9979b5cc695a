"""Times, memory and the limits of the machine.

Times are of the processor, of all threads together, in seconds: other programs that run at the same time change them
less than wall time, and an answer from two threads counts as much as it costs. The limits are measured in the same
unit, so that they are those of one core. Memory is resident memory at its peak, as Linux counts it.
"""

from __future__ import annotations

import ctypes
import gc
import math
import re
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from fastpriv import special

from .tasks import Call

_SAMPLE = 0.005  # seconds of one sample: short calls are repeated until they last as long
_POINTS = (2**10, 2**13, 2**16)  # doubles that exponentials are taken of: 8 KiB, 64 KiB, 512 KiB
_COPIED, _ORDER = 2**25, 768  # doubles that are copied, 256 MiB, and the order of matrices that are multiplied
_PROCESS = Path("/proc/self")


def seconds_of(call: Call, forget: Call | None = None, repetitions: int = 1) -> float:
    """Processor time of one call: the mean over repetitions, or of one call after ``forget``."""
    if forget is not None:
        forget()
    collects = gc.isenabled()
    gc.disable()
    start = time.process_time()
    for _ in range(repetitions):
        call()
    spent = time.process_time() - start
    if collects:
        gc.enable()
    return spent / repetitions


def best_times(calls: dict[str, tuple[Call, Call | None]], budget: float, rounds: int = 3) -> dict[str, float]:
    """Least processor time of each call, in turn over rounds; each call gets about ``budget`` seconds.

    The calls are pairs with what is to be forgotten before each, or None. All of them have been made before.
    """
    best = dict.fromkeys(calls, math.inf)
    repetitions, spent = dict.fromkeys(calls, 1), dict.fromkeys(calls, 0.0)
    for turn in range(rounds):
        for name, (call, forget) in calls.items():
            limit = budget * (turn + 1) / rounds
            while spent[name] + (best[name] / 2 if spent[name] else 0.0) < limit:
                seconds = seconds_of(call, forget, repetitions[name])
                spent[name] += max(seconds * repetitions[name], 1e-6)
                best[name] = min(best[name], seconds)
                if forget is None and seconds * repetitions[name] < _SAMPLE:
                    repetitions[name] = math.ceil(_SAMPLE / max(seconds, 1e-8))
    return best


def peak_memory(call: Call, forget: Call | None = None) -> int | None:
    """Bytes by which the resident memory of the process grows at most while a call runs; None where Linux hides it.

    The C library first returns what it has freed; what it still keeps, a call can use without growth.
    """
    if forget is not None:
        forget()
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        (_PROCESS / "clear_refs").write_text("5")  # the peak becomes the present amount
        before = _resident("VmRSS")
        call()
        return max(0, _resident("VmHWM") - before)
    except (OSError, AttributeError, TypeError):
        return None


def _resident(name: str) -> int:
    """Bytes of an entry of the status of this process."""
    found = re.search(rf"{name}:\s*(\d+) kB", (_PROCESS / "status").read_text())
    return 1024 * int(found[1])  # type: ignore[index]


def forget_results() -> None:
    """Drop all results that modules of fastpriv keep for equal calls."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "fastpriv" and module is not None:
            for item in list(vars(module).values()):
                if callable(clear := getattr(item, "cache_clear", None)):
                    clear()


def machine_limits(budget: float) -> dict[str, float]:
    """What one core does at best, a second: exponentials in the first cache, bytes read and written, operations.

    ``exp``: the best of NumPy's and fastpriv's ufunc on arrays of three sizes that fit into caches. ``bytes``: a copy
    of 256 MiB, which reads and writes each byte once. ``flops``: a matrix product of BLAS, a fused multiplication
    counted as two.
    """
    rng = np.random.default_rng(0)
    copied, goal = np.ones(_COPIED), np.empty(_COPIED)
    matrix = rng.random((_ORDER, _ORDER))
    product = np.empty_like(matrix)
    calls: dict[str, tuple[Call, float]] = {
        "bytes": (lambda: np.copyto(goal, copied), 2.0 * copied.nbytes),
        "flops": (lambda: np.matmul(matrix, matrix, out=product), 2.0 * float(_ORDER) ** 3),
    }
    for size in _POINTS:
        points, out = rng.uniform(-1.0, 1.0, size), np.empty(size)
        for name, function in (("NumPy", np.exp), ("fastpriv", special.exp)):
            calls[f"exp of {name}, {size} points"] = (partial(function, points, out=out), size)
    for call, _ in calls.values():
        call()
    times = best_times({name: (call, None) for name, (call, _) in calls.items()}, budget)
    rates = {name: work / times[name] for name, (_, work) in calls.items()}
    fastest = max(rate for name, rate in rates.items() if name.startswith("exp"))
    return {"exp": fastest, "bytes": rates["bytes"], "flops": rates["flops"]}
