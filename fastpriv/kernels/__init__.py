"""The compiled kernels land here (sources in csrc/). ``FASTPRIV_ISA`` is obeyed or stops the import."""

import os

from .instruction_sets import check_forced

check_forced(os.environ.get("FASTPRIV_ISA"))
