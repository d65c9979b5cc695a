"""Constants of bounds that no other test attacks: quadrature rules, a strip of even dimensions, closed bounds."""

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest

from fastpriv import special
from fastpriv.base import binomial
from fastpriv.composition import engines, gaussian_fits
from fastpriv.conversions import differential_privacy, mutual_information_privacy
from fastpriv.kernels import _awgn
from fastpriv.pairs import allocations, log_normal_sums
from kernels import test_gaussian_mechanism, test_lmip_accuracy, test_special_accuracy

CSRC = Path(__file__).parents[2] / "csrc"


def stored(kind, n):
    header = (CSRC / "line/fp_gauss_legendre_tables.h").read_text()
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
    """24 e^(b^2) is twice ten times this, for heights up to 1.5: csrc/awgn/fp_awgn_quadrature_bounds_loops.h."""
    assert abs(modulus(dimension, 3.0, 0.0) - 1) < 1e-6, "a density"
    for height in (0.2, 0.7, 1.2, 1.5):
        for radius in (1e-3, 0.5, 1.5, 4.0, 12.0, 40.0):
            found = modulus(dimension, radius, height) / np.exp(height**2)
            assert found <= 1.2, (dimension, radius, height, found)


def test_the_mean_of_the_modulus_in_odd_dimensions():
    """K_d e^(-b^2 / 2) for d = 2 n + 1 < 101 and b <= 5 is below 2.1: theorem 6.3 of docs/proofs/awgn.md."""
    low = np.linspace(0.0, 12.5, 4001)[:-1]  # of b^2 / 2, in parts on which the sum is largest at the right end
    high, largest = low + 12.5 / 4000, 0.0
    for n in range(50):
        total, power, quotient = np.zeros_like(low), np.ones_like(low), 1.0  # (b^2 / 2)^k / k!, m(n) / m(n - k)
        for k in range(n + 1):
            total += power * quotient
            power *= high / (k + 1)
            quotient *= (n - k) / (n - k - 0.5)
        largest = max(largest, float(np.max(total * np.exp(-low))))
    assert 2.0 < largest < 2.1 - 1e-9


def closed_bounds(dimension, radius):
    """The bounds of csrc/awgn/fp_awgn_capacity_solver.h from their formulas, in many digits."""
    d, r, log = mpmath.mpf(dimension), mpmath.mpf(radius), mpmath.log
    entropy = log(2 * mpmath.pi * mpmath.e)
    log_volume = d * log(r) + d / 2 * log(mpmath.pi) - mpmath.loggamma(d / 2 + 1)
    upper = [d / 2 * mpmath.log1p(r**2 / d), r**2 / 2]
    if d == 1:
        upper.append(mpmath.log1p(2 * r / mpmath.sqrt(2 * mpmath.pi * mpmath.e)))
    elif r > d:
        a, b = (d - 1) / r, mpmath.sqrt(2 * log(r / d))
        phi, tail = mpmath.npdf(b), mpmath.ncdf(-b)
        skirt = d / r * mpmath.exp(a * b) * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(a**2 / 2) * mpmath.ncdf(a)
        beyond = ((1 + b**2) * tail - b * phi) / 2 + ((d + 1) * phi - d * b * tail) / (2 * r) + d * (d + 2) / (8 * r**2)
        upper.append(log_volume - d / 2 * entropy + log((1 + b / r) ** d + skirt) + beyond)
    return min(upper), d / 2 * mpmath.log1p(mpmath.exp(2 / d * log_volume - entropy))


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 30, 1000, 10**6])
def test_the_closed_bounds_of_the_peak_power_capacity_are_outward(dimension):
    with mpmath.workdps(60):
        for radius in (2e-7, 3e-4, 0.7, 5.0, 300.0, 1.1e5, 3.3e7, 1e12, 7e150):
            upper, lower = closed_bounds(dimension, radius)
            _, low, high, *_ = _awgn.closed_form(dimension, radius, np.log(radius)).numbers
            assert high >= upper, (dimension, radius, high, upper)
            assert low <= lower, (dimension, radius, low, lower)
            assert high - upper <= 3e-13 * (upper + dimension), "no wider than the allowance"


@pytest.mark.parametrize(("name", "low", "high"), [
    ("exp", -700.0, 700.0), ("exp", -1e-3, 1e-3), ("expm1", -30.0, 300.0), ("expm1", -1e-3, 1e-3),
    ("log", 1e-300, 1e-290), ("log", 0.5, 2.0), ("log", 2.0, 1e300), ("log1p", -0.999, 3.0), ("log1p", -1e-3, 1e-3),
    ("sin", -300.0, 300.0), ("cos", -300.0, 300.0),
])
def test_functions_of_numpy_are_as_exact_as_proofs_take_them_to_be(name, low, high):
    """Two ulps, four units of roundoff: theorem 7.8 of docs/proofs/finite_capacity.md."""
    x = np.random.default_rng(5).uniform(low, high, 300)
    found = getattr(np, name)(x)
    with mpmath.workdps(60):
        truth = [getattr(mpmath, name)(mpmath.mpf(t)) for t in x.tolist()]
        errors = [abs(y / want - 1) for y, want in zip(found.tolist(), truth, strict=True)]
        assert max(errors) <= 4 * 2.0**-53, (name, x[int(np.argmax(errors))], max(errors) * 2**53)


ULP = 2.0**-52  # at most, relative


@pytest.mark.parametrize(
    ("module", "name", "tested"),
    [
        (differential_privacy, "_GAUSSIAN_DELTA_ERROR", test_gaussian_mechanism.DELTA_RELATIVE),
        (gaussian_fits, "_CURVE_ERROR", test_gaussian_mechanism.DELTA_RELATIVE),
        (allocations, "_GAUSSIAN_ERROR", test_gaussian_mechanism.DELTA_RELATIVE),
        (engines, "_GAUSSIAN_ERROR", test_gaussian_mechanism.LOG_RELATIVE),
        (mutual_information_privacy, "_RELATIVE_ERROR", test_lmip_accuracy.RELATIVE),
        (mutual_information_privacy, "_RELATIVE_ERROR_CD", test_lmip_accuracy.RELATIVE_ATOM),
        (engines, "_NORMAL_ERROR", ULP * test_special_accuracy.UNARY["log_ndtr"][0]),
        (log_normal_sums, "_NORMAL_ERROR", ULP * 6),  # of ndtr_difference, as its docstring and its test have it
    ],
    ids=lambda word: getattr(word, "__name__", None),
)
def test_errors_of_kernels_are_not_smaller_than_their_tests_know(module, name, tested):
    """The test that BOUNDS.md names for such a constant knows the kernel alone, not the modules that rest on it."""
    assert tested <= getattr(module, name) <= 4 * tested


def test_binomial_probabilities():
    """Lemma 14.1 of docs/proofs/notions.md: the table of Stirling's remainders, and deviances near and far."""
    with mpmath.workdps(60):
        for n in range(1, 16):
            rest = mpmath.loggamma(n + 1) - (n + 0.5) * mpmath.log(n) + n - mpmath.log(2 * mpmath.pi) / 2
            assert abs(binomial._REMAINDERS[n] - rest) <= 67 * 2.0**-53, n
        rng = np.random.default_rng(14)
        for _ in range(200):
            n, log_q = int(10 ** rng.uniform(0.3, 7)), float(-(10 ** rng.uniform(-2, 2.8)))
            q = mpmath.exp(mpmath.mpf(log_q))
            x = min(n, max(0, round(float(n * q) * 10 ** rng.uniform(-0.3, 0.3)) + int(rng.integers(0, 3))))
            other = float(mpmath.log1p(-q))
            got = float(binomial.log_binomial_pmf(np.array([x]), n, log_q, other)[0])
            want = mpmath.log(mpmath.binomial(n, x)) + x * mpmath.mpf(log_q) + (n - x) * mpmath.log1p(-q)
            size = sum(a * mpmath.log(a / (n * b)) + n * b - a for a, b in ((x, q), (n - x, 1 - q)) if a)
            moved = 10 * abs(x - n * q) * (1 + abs(other))  # of both means, by exp and other
            assert abs(got - want) <= (161 * size + 220 + 10 * abs(want) + moved) * 2.0**-53, (n, x, log_q, got, want)
