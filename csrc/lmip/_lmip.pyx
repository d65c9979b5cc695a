"""The ufuncs of mutual-information privacy; the mathematics is in csrc/lmip/fp_lmip_ldp.h and fp_lmip_lip.h."""

include "common/fp_ufunc.pxi"

cdef extern from "lmip/fp_lmip_ufuncs.h":
    fp_ufunc fp_lmip_ufuncs[1]
    const int FP_LMIP_UFUNCS


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_lmip_ufuncs, FP_LMIP_UFUNCS, documentation)
