"""Registers the ufuncs of the binary channel; the mathematics is in csrc/channel/fp_binary_channel.h."""

include "common/fp_ufunc.pxi"

cdef extern from "channel/fp_binary_channel_ufuncs.h":
    fp_ufunc fp_channel_table[1]
    const int FP_CHANNEL_SIZE


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_channel_table, FP_CHANNEL_SIZE, documentation)
