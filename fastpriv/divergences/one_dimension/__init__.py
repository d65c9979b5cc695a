"""Divergences in one dimension: closed forms, quadrature and monotone pieces, with proved bounds."""
