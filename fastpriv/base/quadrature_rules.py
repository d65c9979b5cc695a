"""Gauss-Legendre and trapezoidal rules for analytic functions, with proved errors.

Notation: the ellipse of rho > 1 around a cell has its foci at the ends of the cell; of a cell of half length a its
semi-axes are a (rho + 1/rho) / 2 along the cell and a (rho - 1/rho) / 2 across it. Of a function that is analytic in
the ellipse and at most M there, Gauss's rule of n nodes errs by at most

    (64/15) a M rho^(-2n) / (1 - rho^(-2))          (Trefethen, Approximation Theory and Practice, theorem 19.3).

The trapezoidal rule with step h of a function that is analytic in the strip |Im x| <= w errs by at most the integrals
of its modulus over both edges of the strip, divided by e^(2 pi w / h) - 1 (Trefethen and Weideman 2014, theorem 5.1).
"""

# bounds: proved - the factor of the theorem, and 1e-12 for the rounding of a logarithm

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .numerics import FloatArray

__all__ = ["ellipse_axes", "gauss_error", "gauss_legendre", "log_gauss_error", "strip_divisor"]

_RHO = np.array([1.4, 2.0, 3.0, 5.0, 9.0])[:, None]  # of the ellipses around a cell, of which the best is taken


@lru_cache(maxsize=16)
def gauss_legendre(count: int, extended: bool = False) -> tuple[Any, Any, Any]:
    """Nodes x on (0, 1), 1 - x and weights, each right to rounding, in doubles or in extended precision."""
    from decimal import Decimal, localcontext  # slow to load

    kind, rows = np.longdouble if extended else np.float64, []
    with localcontext() as context:
        context.prec = 40
        for start in np.polynomial.legendre.leggauss(count)[0].tolist():
            node = Decimal(start)
            for _ in range(2):  # steps of Newton from 15 digits
                before, value = Decimal(1), node
                for n in range(2, count + 1):
                    before, value = value, ((2 * n - 1) * node * value - (n - 1) * before) / n
                slope = count * (before - node * value) / (1 - node * node)
                node -= value / slope
            rows.append([kind(str(x)) for x in ((1 + node) / 2, (1 - node) / 2, 1 / ((1 - node * node) * slope**2))])
    return tuple(np.array(rows, dtype=kind).T)


def ellipse_axes(half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both semi-axes of the ellipses around cells of these half lengths, a row for each of five rho."""
    return 0.5 * half * (_RHO + 1.0 / _RHO), 0.5 * half * (_RHO - 1.0 / _RHO)


def gauss_error(nodes: int, rho: float) -> float:
    """Error of Gauss's rule over a cell of half length 1, of a function that is at most 1 on the ellipse of rho."""
    return float(64.0 / 15.0 * rho ** (-2.0 * nodes) / (1.0 - rho**-2.0))


def log_gauss_error(log_modulus: FloatArray, nodes: int) -> FloatArray:
    """Logarithm of the error over cells of half length 1, by bounds on the ellipses of ``ellipse_axes``, a row each."""
    fall = math.log(64.0 / 15.0) - 2.0 * nodes * np.log(_RHO) - np.log1p(-(_RHO**-2.0)) + 1e-12
    return np.asarray((log_modulus + fall).min(axis=0))


def strip_divisor(width: float, step: float) -> float:
    """e^(2 pi w / h) - 1 of the trapezoidal rule."""
    return math.expm1(2 * math.pi * width / step)
