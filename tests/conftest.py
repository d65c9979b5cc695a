"""Property tests draw the same cases every time; with FASTPRIV_FRESH_DRAWS in the environment they draw new ones.

A suite that was started in the background ignores interrupts, and so would the processes that tests interrupt.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
if "FASTPRIV_FRESH_DRAWS" not in os.environ:
    settings.load_profile("steady")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
