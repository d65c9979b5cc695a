"""Property tests draw the same cases every time; with FASTPRIV_FRESH_DRAWS in the environment they draw new ones.

A suite that was started in the background ignores interrupts, and so would the processes that tests interrupt. Every
test starts with the same number of digits in mpmath (``MPMATH_DIGITS`` of its module, or 60) and in ball arithmetic,
whatever the tests before it have set.
"""

import os
import signal

import flint
import mpmath
import pytest
from hypothesis import settings

DIGITS, BITS = 60, 256
mpmath.mp.dps = DIGITS  # for what modules compute when they are imported


settings.register_profile("steady", derandomize=True)
if "FASTPRIV_FRESH_DRAWS" not in os.environ:
    settings.load_profile("steady")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _digits_of_every_test(request):
    mpmath.mp.dps, flint.ctx.prec = getattr(request.module, "MPMATH_DIGITS", DIGITS), BITS
