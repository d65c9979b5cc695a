"""Property tests draw the same cases every time; with FASTPRIV_FRESH_DRAWS in the environment they draw new ones.

A suite that was started in the background ignores interrupts, and so would the processes that tests interrupt. Every
test starts with the same number of digits in mpmath (``MPMATH_DIGITS`` of its module, or 60) and in ball arithmetic,
whatever the tests before it have set. With FASTPRIV_SKIPS=listed in the environment, as ``.ci/run`` sets it, a run
fails if a test was skipped for a reason that is not one of LISTED_SKIPS.
"""

import gc
import os
import re
import signal
import sys

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


@pytest.fixture(autouse=True)
def _digits_of_every_test(request):
    mpmath.mp.dps, flint.ctx.prec = getattr(request.module, "MPMATH_DIGITS", DIGITS), BITS


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
