"""Functions of a user, for sweeps."""

import os
import signal
import time

from fastpriv import Estimate


def product(x, y=1.0):
    return x * y


def parts(x):
    root = x**0.5
    return {"half": x / 2, "root": Estimate(root, root - 1e-9, root + 1e-9, kind="heuristic", unit="1", method="")}


def drawn(n, rng):
    return float(rng.normal(size=int(n)).sum())


def fragile(x):
    if x == 3:
        raise ValueError("three is no number")
    return float("nan") if x == 5 else 1.0 / x


def deadly(x):
    if x in (3, 17):
        os.kill(os.getpid(), signal.SIGKILL)
    return 2.0 * x


def slow(x, y, rng):
    time.sleep(0.0002)
    return float(x * y + rng.random())


def slower(x, y, rng):
    time.sleep(0.01)
    return float(x * y + rng.random())


def endless(x):
    time.sleep(60)
    return x


def nothing(x):
    return None if x == 4 else x


def word(x):
    return "a word" if x == 4 else x


def several(x):
    return [x, x] if x == 4 else x


def noted(x, folder):
    """Leave a trace of each call, and end the process at some cells."""
    with open(os.path.join(folder, f"{x:g}"), "a") as stream:
        stream.write("x")
    return deadly(x)


class Unpicklable:
    """A function that no other process can have."""

    __qualname__ = "Unpicklable"

    def __call__(self, x):
        return deadly(x)

    def __reduce__(self):
        raise TypeError("this stays here")


def leaving(x):
    if x == 4:
        raise SystemExit("no more")
    return x
