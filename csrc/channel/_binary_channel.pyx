"""The ufuncs of the binary channel; the mathematics is in csrc/channel/fp_binary_channel.h."""

include "common/fp_ufunc.pxi"

cdef extern from "channel/fp_binary_channel_ufuncs.h":
    fp_ufunc fp_binary_channel_ufuncs[1]
    const int FP_BINARY_CHANNEL_UFUNCS


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_binary_channel_ufuncs, FP_BINARY_CHANNEL_UFUNCS, documentation)
