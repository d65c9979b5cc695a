"""Registers the ufuncs of the Gaussian mechanism; the mathematics is in csrc/fp_gauss.h."""

include "fp_ufunc.pxi"

cdef extern from "fp_gauss_table.h":
    fp_ufunc fp_gauss_table[1]
    const int FP_GAUSS_SIZE


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_gauss_table, FP_GAUSS_SIZE, documentation)
