"""Registers the ufuncs of fastpriv.special; the mathematics is in csrc/fp_math.h."""

include "fp_ufunc.pxi"

cdef extern from "fp_special.h":
    fp_ufunc fp_special_table[1]
    const int FP_SPECIAL_SIZE

ISA = fp_isa_name().decode()


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_special_table, FP_SPECIAL_SIZE, documentation)
