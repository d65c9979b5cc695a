"""The compiled kernels, built from csrc/. The import fails if ``FASTPRIV_ISA`` is no instruction set of this CPU."""

import os

from .instruction_sets import check_forced

check_forced(os.environ.get("FASTPRIV_ISA"))
