"""Proposals: distributions to sample from whose density is proved to bound an integrand."""
