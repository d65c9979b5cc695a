"""Constants of bounds that no other test attacks: Gauss-Legendre rules, the modulus on the strip of even dimensions."""

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest

from fastpriv import special

CSRC = Path(__file__).parents[2] / "csrc"


def stored(kind, n):
    header = (CSRC / "fp_gauss_legendre.h").read_text()
    body = re.search(rf"fp_legendre_{kind}_{n}\[{n}\] = \{{(.*?)\}};", header, re.DOTALL)
    return [float.fromhex(x) if "x" in x else float(x) for x in body[1].replace(",", " ").split()]


@pytest.mark.parametrize("n", [8, 16, 24, 32])
def test_gauss_legendre_rules_are_correctly_rounded(n):
    nodes, tails, weights = (stored(kind, n) for kind in ("nodes", "tails", "weights"))
    with mpmath.workdps(50):
        assert len(set(nodes)) == n
        for node, tail, weight in zip(nodes, tails, weights, strict=True):
            x = mpmath.mpf(node)
            for _ in range(4):
                lower, upper = mpmath.mpf(1), x
                for k in range(2, n + 1):
                    lower, upper = upper, ((2 * k - 1) * x * upper - (k - 1) * lower) / k
                slope = n * (x * upper - lower) / (x * x - 1)
                x -= upper / slope
            want = 2 / ((1 - x * x) * slope**2)
            assert (node, tail, weight) == (float(x), float(x - float(x)), float(want)), (n, node, tail, weight)


def modulus(dimension, radius, height):
    """The integral over t of |w(rho(t + ib) | r) rho'(t + ib)|, rho = log(1 + e^t), from |G(r z)| <= G(r Re z)."""
    centre = np.sqrt(dimension + radius**2)
    t = np.linspace(max(centre - 14, 0) - 40 / dimension - 2 if centre < 16 else centre - 14, centre + 14, 8001)
    power = np.exp(np.minimum(t, 700) + 1j * height)
    rho = np.where(t > 300, t + 1j * height, np.log1p(power))
    slope = np.abs(1 / (1 + 1 / power))
    real = np.maximum(rho.real, 1e-300)
    norm = float((1 - mpmath.mpf(dimension) / 2) * mpmath.log(2) - mpmath.loggamma(mpmath.mpf(dimension) / 2))
    log_w = (dimension - 1) * np.log(np.abs(rho)) + norm - ((rho**2).real + radius**2) / 2
    log_w += special.sphere_log_mgf(dimension, radius * real)
    return np.trapezoid(np.exp(log_w) * slope, t)


@pytest.mark.parametrize("dimension", [2, 4, 6, 8, 12, 20, 50, 100, 300, 1000, 2048, 2600])
def test_the_modulus_on_the_strip_is_a_tenth_of_what_is_used(dimension):
    """csrc/fp_awgn_bounds_loops.h, fp_awgn_rule_error: 24 e^(b^2) is twice ten times this, for heights up to 1.5."""
    assert abs(modulus(dimension, 3.0, 0.0) - 1) < 1e-6, "a density"
    for height in (0.2, 0.7, 1.2, 1.5):
        for radius in (1e-3, 0.5, 1.5, 4.0, 12.0, 40.0):
            found = modulus(dimension, radius, height) / np.exp(height**2)
            assert found <= 1.2, (dimension, radius, height, found)
