"""The double-double functions over arrays of (hi, lo) pairs, for the tests alone.

The kernels call the C functions of ``fp_dd_normal.h`` directly.
"""

import numpy as np

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t

cdef extern from "special/fp_dd_functions.h" nogil:
    ctypedef void (*fp_dd_map)(int, const double *, const double *, const double *, const double *, double *,
                               double *, int64_t *, ptrdiff_t)
    fp_dd_map fp_dd_map_for(int isa)
    int fp_isa()
    int fp_isa_machine()

#: operation -> code, in the order of the C enumeration
OPERATIONS = {
    name: code
    for code, name in enumerate(
        "add add_d add_small sub mul mul_d div div_d sqr sqrt exp expm1 log log_scaled log1p mills phi "
        "ndtr_tail ndtr_diff exp_scaled phi_scaled ndtr_tail_scaled ndtr_diff_scaled".split()
    )
}


def machine_isa():
    """The widest variant of this machine: 0 baseline, 1 avx2, 2 avx512."""
    return fp_isa_machine()


def apply(str operation, double[::1] ah, double[::1] al, double[::1] bh=None, double[::1] bl=None, isa=None):
    """Apply ``operation`` to the pairs ``ah + al`` (and ``bh + bl``); returns arrays ``hi, lo, exponent``."""
    cdef int op = OPERATIONS[operation], variant = fp_isa() if isa is None else min(isa, fp_isa_machine())
    cdef ptrdiff_t n = ah.shape[0]
    if bh is None:
        bh, bl = ah, al
    if not al.shape[0] == bh.shape[0] == bl.shape[0] == n:
        raise ValueError("the four arrays must have one length")
    hi, lo, exponent = np.empty(n), np.empty(n), np.zeros(n, np.int64)
    cdef double[::1] rh = hi, rl = lo
    cdef int64_t[::1] k = exponent
    if n:
        with nogil:
            fp_dd_map_for(variant)(op, &ah[0], &al[0], &bh[0], &bl[0], &rh[0], &rl[0], &k[0], n)
    return hi, lo, exponent
