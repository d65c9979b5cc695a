"""Property tests draw the same cases every time; with FASTPRIV_FRESH_DRAWS in the environment they draw new ones."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
if "FASTPRIV_FRESH_DRAWS" not in os.environ:
    settings.load_profile("steady")
