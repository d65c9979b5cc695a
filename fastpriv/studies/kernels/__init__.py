"""Compiled kernels that only the studies use, built from csrc/membership and csrc/leakage."""
