"""A clock that only counted work moves: what keeps to a time budget keeps to it on every machine."""

import threading

import numpy as np

import fastpriv.distributions.user_functions
import fastpriv.sampling.options
import fastpriv.sampling.stopping
from fastpriv.kernels import _density

__all__ = ["MODULES", "WorkClock", "installed_work_clock"]

MODULES = (fastpriv.sampling.options, fastpriv.sampling.stopping, fastpriv.distributions.user_functions)


class WorkClock:
    """Stands in for the module ``time``: each look takes ``look`` seconds, and work what ``spend`` is told."""

    def __init__(self, look):
        self.look, self.now, self.lock = look, 0.0, threading.Lock()

    def spend(self, seconds):
        with self.lock:
            self.now += seconds
            return self.now

    def monotonic(self):
        return self.spend(self.look)

    def perf_counter_ns(self):
        return round(1e9 * self.monotonic())


def installed_work_clock(monkeypatch, *, look=1e-2, term=1e-7):
    """The clock that sampling now reads; ``term`` is for one component, coordinate and sample of a log density."""
    clock = WorkClock(look)
    for module in MODULES:
        monkeypatch.setattr(module, "time", clock)

    def counting(evaluate, means, samples):
        def counted(*arguments):
            clock.spend(term * np.size(arguments[means]) * np.shape(arguments[samples])[1])
            return evaluate(*arguments)

        return counted

    for name, means, samples in (("log_density", 2, 4), ("log_density_information", 3, 5)):
        monkeypatch.setattr(_density, name, counting(getattr(_density, name), means, samples))
    return clock
