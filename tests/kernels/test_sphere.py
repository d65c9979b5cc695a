"""The moment generating function of a uniform point on a sphere against ball arithmetic, every dimension and radius."""

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest
from flint import arb

from fastpriv import special
from kernels.variants import check_same_lines, each_wider_variant
from oracles import sphere as oracle
from sizes import few_or_all

ROOT = Path(__file__).parents[2]
DIMENSIONS = [
    1, 2, 3, 4, 5, 7, 8, 10, 13, 15, 16, 17, 23, 31, 48, 49, 50, 51, 52, 64, 100, 1000, 4000, 100_000, 1_000_000,
]
LOG_RELATIVE, SCALED_ABSOLUTE, MEAN_RELATIVE = 6.5e-16, 5e-16, 5e-16  # as stated in fastpriv.special
CUT = 0.3125  # of p = b / sqrt(b^2 + x^2): the end of a piece


def radii(dimension):
    """Every magnitude, the bend at x = d, and both sides of every place where the computation changes."""
    rng = np.random.default_rng(dimension)
    b = (dimension + 1) / 2
    cuts = np.array([1.0, 60.0, b, b * math.sqrt(CUT**-2 - 1)])
    near = cuts[:, None] * (1 + np.concatenate([rng.uniform(-0.02, 0.02, 10), np.arange(-3, 4) * 2.0**-52]))
    return np.concatenate([
        10 ** np.linspace(-141, 12, 60) * rng.uniform(1, 2, 60), dimension * 10 ** rng.uniform(-2.5, 2, 140),
        near.ravel(), [1e12, 9.9e99, 1.1e100, 1e150],
    ])


def relative(got, want):
    return abs(float((arb(float(got)) / want - 1).mid()))


def absolute(got, want):
    return abs(float((arb(float(got)) - want).mid())) / (1 + abs(float(want.mid())))


QUANTITIES = {
    "sphere_log_mgf": (oracle.log_mgf, relative, LOG_RELATIVE),
    "sphere_log_mgf_scaled": (oracle.log_mgf_scaled, absolute, SCALED_ABSOLUTE),
    "sphere_mean": (oracle.mean, relative, MEAN_RELATIVE),
}


@pytest.mark.few(15)
@few_or_all("step", 7, 1)
@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_against_balls(dimension, name, step):
    true, error, bound = QUANTITIES[name]
    x = radii(dimension)[::step]
    x = x[x < 1e13] if name != "sphere_log_mgf_scaled" else x
    got = getattr(special, name)(dimension, x)
    errors = [error(value, true(dimension, place)) for value, place in zip(got, x, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, (
        f"{name}({dimension}, {float(x[worst])!r}): got {float(got[worst])!r}, "
        f"want {float(true(dimension, x[worst]).mid())!r}, error {errors[worst]:.3g}, bound {bound}"
    )


@pytest.mark.slow
def test_any_dimension():
    """Each dimension to 120 and some up to a thousand million, at radii of its own."""
    rng = np.random.default_rng(5)
    dimensions = np.concatenate([np.arange(1, 121), np.floor(10 ** rng.uniform(2, 8.9, 60)), [1e9]])
    x = dimensions * 10 ** rng.uniform(-2, 2, dimensions.size)
    for name, (true, error, bound) in QUANTITIES.items():
        for d, place, value in zip(dimensions, x, getattr(special, name)(dimensions, x), strict=True):
            assert error(value, true(d, place)) <= bound, (name, d, place, value, float(true(d, place).mid()))


def test_radii_near_zero_keep_their_leading_term():
    x = 10 ** np.linspace(-141, -9, 100)
    for dimension in DIMENSIONS:
        np.testing.assert_allclose(special.sphere_log_mgf(dimension, x), x / (2 * dimension) * x, rtol=5e-16)
        np.testing.assert_allclose(special.sphere_mean(dimension, x), x / dimension, rtol=5e-16)
    tiny = np.array([0.0, 5e-324, 1e-310, 1e-200])
    np.testing.assert_array_equal(special.sphere_log_mgf(2, tiny), 0.0)
    np.testing.assert_array_equal(special.sphere_mean(1, tiny), tiny)


def test_special_values():
    d = np.array([1.0, 2.0, 3.0, 9.0, 16.0, 1e6])
    inf = math.inf
    np.testing.assert_array_equal(special.sphere_log_mgf(d, inf), inf)
    np.testing.assert_array_equal(special.sphere_log_mgf_scaled(d, inf), [-math.log(2), *[-inf] * 5])
    np.testing.assert_array_equal(special.sphere_mean(d, [[inf], [1e308]]), 1.0)
    for name in QUANTITIES:
        function = getattr(special, name)
        np.testing.assert_array_equal(function(d, 0.0), 0.0)
        assert np.isnan(function(d, -1e-300)).all()
        assert np.isnan(function(d, [[-inf], [math.nan]])).all()
        assert np.isnan(function([0.0, -1.0, 1.5, 2.0000001, 1.1e9, inf, -inf, math.nan], 1.0)).all()


def test_the_mean_grows_with_the_radius_and_falls_with_the_dimension():
    x = 10 ** np.linspace(-3, 3, 400)
    means = np.array([special.sphere_mean(d, x) for d in (1, 2, 3, 4, 8, 15, 16, 17, 40, 1000)])
    assert (np.diff(means, axis=0) <= 0).all()
    assert (np.diff(means[1:], axis=1) > 0).all()
    assert (means <= 1).all()


def test_broadcasting_over_dimensions_is_the_loop_over_them():
    x = np.random.default_rng(1).uniform(0, 100, 700)
    dimensions = np.array([1, 2, 5, 20, 20, 7, 1.5])
    for name in QUANTITIES:
        function = getattr(special, name)
        grid = function(dimensions[:, None], x)
        np.testing.assert_array_equal(grid, [[function(d, place) for place in x] for d in dimensions])
        np.testing.assert_array_equal(grid, function(dimensions, x[:, None]).T)
        held = np.ascontiguousarray(np.broadcast_to(dimensions[:, None], grid.shape))
        np.testing.assert_array_equal(function(held, x, out=held), grid)


PROGRAM = """
import hashlib
import numpy as np
from fastpriv import special
x = 10 ** np.random.default_rng(3).uniform(-150, 12, 1001)
x[:600] = 10 ** np.random.default_rng(4).uniform(-3, 4, 600)
for dimension in (1, 2, 3, 4, 9, 15, 16, 100, 10**5):
    for name in ("sphere_log_mgf", "sphere_log_mgf_scaled", "sphere_mean"):
        values = getattr(special, name)(float(dimension), x)
        print(name, dimension, hashlib.sha256(values.tobytes()).hexdigest())
"""


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(PROGRAM, 27, variant)


def stored(name):
    header = (ROOT / "csrc/special/fp_sphere_tables.h").read_text()
    body = re.search(rf"fp_sphere_{name}\[\d+\]\[\d+\] = \{{(.*?)\n\}};", header, re.DOTALL)
    rows = re.findall(r"\{(.*?)\}", body[1], re.DOTALL)
    return [[float.fromhex(term) for term in row.replace(",", " ").split()] for row in rows]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["low", "middle", "high"])
def test_table(name):
    specification = importlib.util.spec_from_file_location("fit_sphere", ROOT / "tools" / "fit_sphere.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert stored(name) == module.TABLES[name]()
