"""Registers the ufuncs of the sphere; the mathematics is in csrc/fp_sphere.h."""

include "fp_ufunc.pxi"

cdef extern from "fp_sphere_room.h":
    fp_ufunc fp_sphere_ufuncs[1]
    const int FP_SPHERE_UFUNCS


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_sphere_ufuncs, FP_SPHERE_UFUNCS, documentation)
