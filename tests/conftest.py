"""Property tests draw the same cases every time; with FASTPRIV_FRESH_DRAWS in the environment they draw new ones.

A suite that was started in the background ignores interrupts, and so would the processes that tests interrupt. Every
test starts with the same number of digits in mpmath (``MPMATH_DIGITS`` of its module, or 60) and in ball arithmetic,
whatever the tests before it have set. Where pytest-run-parallel runs a test in several threads
(``--parallel-threads``), each thread has its own digits of mpmath, and the bits of balls and the lengths of series,
which all threads share, only grow; tests that call what THREAD_UNSAFE lists, or have the mark ``thread_unsafe``, stay
in one. With FASTPRIV_SKIPS=listed in the environment, as ``.ci/run`` sets it, a run fails if a test was skipped for a
reason that is not one of LISTED_SKIPS.
"""

import gc
import os
import re
import signal
import sys
import threading

import flint
import mpmath
import pytest
from hypothesis import settings

DIGITS, BITS = 60, 256
#: Packages outside of the extra ``test``, and what a machine may lack; everything else is there where all tests run.
LISTED_SKIPS = re.compile(
    r"could not import '(cupy|flwr|jax|jax_privacy|nvidia|opacus|opendp|pfl|polars|ray|riskcal|torch|xarray)\b"
    r"|not run: this CPU has no|this machine lacks it"
    r"|needs a compiler for aarch64 and qemu-user"
    r"|no extended precision here|root writes everywhere|plain samples do not see the rare component"
    r"|SciPy is older than 1.15"
    r"|not run: (sollya|gappa)"
)
#: What one process has once: streams, signals, counts of memory and of time, the environment, the current directory.
THREAD_UNSAFE = (
    "doctest.*", "signal.*", "tracemalloc.*", "resource.*", "contextlib.redirect_stdout", "contextlib.redirect_stderr",
    "sys.setswitchinterval", "os.chdir", "kernels.lock.*", "kernels.variants.*",
)
mpmath.mp.dps = DIGITS  # for what modules compute when they are imported


# A busy machine may take seconds for a case.
settings.register_profile("steady", derandomize=True, max_examples=60, deadline=None)
settings.register_profile("fresh", max_examples=100, deadline=None)
settings.load_profile("fresh" if "FASTPRIV_FRESH_DRAWS" in os.environ else "steady")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection(session):
    if session.config.getoption("dist", "no") == "no":  # where tests are collected, and not handed to workers
        gc.disable()  # thousands of tests are made, and none is garbage


def pytest_collection_finish():
    gc.enable()
    gc.freeze()  # nor are they looked through while tests run


class _DigitsOfThread(threading.local):
    """What mpmath keeps in a list of bits and rounding, and in two attributes; each thread begins as its test does."""

    def __init__(self):
        self.dps, self.pair = DIGITS_OF_TEST[0], [mpmath.libmp.dps_to_prec(DIGITS_OF_TEST[0]), "n"]

    def __iter__(self):
        return iter(self.pair)

    def __getitem__(self, index):
        return self.pair[index]

    def __setitem__(self, index, value):
        self.pair[index] = value


class _GrowingContext:
    """The context of python-flint, whose precision and length of series are only raised."""

    def __getattr__(self, name):
        return getattr(_flint_context, name)

    def __setattr__(self, name, value):
        grows = name in ("prec", "cap")
        setattr(_flint_context, name, max(value, getattr(_flint_context, name)) if grows else value)


DIGITS_OF_TEST = [DIGITS]
_flint_context, LENGTH_OF_SERIES = flint.ctx, flint.ctx.cap


def pytest_configure(config):
    if int(config.getoption("parallel_threads", None) or 1) > 1:
        for name in THREAD_UNSAFE:
            config.addinivalue_line("thread_unsafe_functions", name)
        pair, kind = _DigitsOfThread(), type(mpmath.mp)
        kind._dps = property(lambda context: pair.dps, lambda context, digits: setattr(pair, "dps", digits))
        kind._prec = property(lambda context: pair[0], lambda context, bits: None)  # the list has it too
        mpmath.mp._prec_rounding = pair
        for number in (mpmath.mp.mpf, mpmath.mp.mpc, mpmath.mp.constant):
            number._ctxdata[2] = pair
        flint.ctx = _GrowingContext()


@pytest.fixture(autouse=True)
def _digits_of_every_test(request):
    DIGITS_OF_TEST[0] = getattr(request.module, "MPMATH_DIGITS", DIGITS)
    mpmath.mp.dps, _flint_context.prec, _flint_context.cap = DIGITS_OF_TEST[0], BITS, LENGTH_OF_SERIES


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items):
    """Parameters of a test with ``few(n)`` that are neither slow already nor among n that are spread over all."""
    groups = {}
    for item in items:
        if item.get_closest_marker("all_variants"):  # processes that one thread starts and another one waits for
            item.add_marker("thread_unsafe")
        mark = item.get_closest_marker("few")
        if mark and not item.get_closest_marker("slow"):
            groups.setdefault((item.path, item.originalname, item.cls, *mark.args), []).append(item)
    for (*_, count), cases in groups.items():
        kept = {i * len(cases) // count for i in range(count)}
        for i, item in enumerate(cases):
            if i not in kept:
                item.add_marker("slow")


_unlisted_skips = []


def pytest_runtest_logreport(report):
    if os.environ.get("FASTPRIV_SKIPS") == "listed" and report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr if isinstance(report.longrepr, tuple) else (str(report.longrepr),)
        if not LISTED_SKIPS.match(reason.removeprefix("Skipped: ")):
            _unlisted_skips.append(f"{report.nodeid}: {reason}")


pytest_collectreport = pytest_runtest_logreport  # of files that are skipped as a whole


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if _unlisted_skips and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if _unlisted_skips:
        terminalreporter.section("skipped for a reason that tests/conftest.py does not list")
        terminalreporter.line("\n".join(_unlisted_skips))
