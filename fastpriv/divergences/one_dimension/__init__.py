"""Divergences on the line: closed forms, quadrature and monotone pieces, certified."""
