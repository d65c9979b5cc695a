"""The ufuncs of the sphere; the mathematics is in csrc/special/fp_sphere.h."""

include "common/fp_ufunc.pxi"

cdef extern from "special/fp_sphere_ufuncs.h":
    fp_ufunc fp_sphere_ufuncs[1]
    const int FP_SPHERE_UFUNCS


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_sphere_ufuncs, FP_SPHERE_UFUNCS, documentation)
