"""The ufuncs of fastpriv.special; the mathematics is in csrc/special/fp_math.h."""

include "common/fp_ufunc.pxi"

cdef extern from "special/fp_special_ufuncs.h":
    fp_ufunc fp_special_ufuncs[1]
    const int FP_SPECIAL_UFUNCS

cdef extern from "common/fp_dispatch.h":
    int fp_isa_machine()

ISA = fp_isa_name().decode()
#: the widest variant of this machine, whatever FASTPRIV_ISA says: 0 baseline, 1 avx2, 2 avx512
MACHINE_ISA = fp_isa_machine()


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_special_ufuncs, FP_SPECIAL_UFUNCS, documentation)
