"""Mixtures packed for the kernels: constants, inverse factors, and common coordinates, against mpmath."""

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import dblquad

from fastpriv import GaussianMixture
from fastpriv.distributions import packed as room
from fastpriv.distributions.packed import log_density, log_density_information, pack, pack_together
from oracles import densities as oracle

RNG = np.random.default_rng(11)
WEIGHTS = np.array([0.5, 0.3, 0.2])


def covariance(d, condition=10.0, seed=0):
    rng = np.random.default_rng([seed, d])
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    matrix = (turn * np.geomspace(1, 1 / condition, d)) @ turn.T
    return (matrix + matrix.T) / 2


def laws(d=3, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 2, (3, d))
    return {
        "isotropic": GaussianMixture(WEIGHTS, means, [1.0, 2.0, 0.3]),
        "isotropic, shared": GaussianMixture(WEIGHTS, means, 0.7),
        "diagonal": GaussianMixture(WEIGHTS, means, rng.uniform(0.2, 3, (3, d))),
        "diagonal, shared": GaussianMixture(WEIGHTS, means, rng.uniform(0.2, 3, (1, d))),
        "full": GaussianMixture(WEIGHTS, means, covariances=np.stack([covariance(d, 30.0, s) for s in range(3)])),
        "full, shared": GaussianMixture(WEIGHTS, means, covariances=covariance(d)),
    }


def of_factors(law, x):
    """Log densities by forward substitution with the factors, or the sigmas, of the mixture itself."""
    found = []
    with mp.workdps(60):
        means = law.means.reshape(len(law), -1)
        d = means.shape[1]
        for column in x.T.tolist():
            terms = []
            for c, (w, mean) in enumerate(zip(law.weights.tolist(), means.tolist(), strict=True)):
                if law.factors is None:
                    lower = np.diag(np.broadcast_to(law.sigmas[c], (d,)))
                else:
                    lower = law.factors[c if len(law.factors) > 1 else 0]
                z, volume = [], mpf(0)
                for i, row in enumerate(lower.tolist()):
                    t = mpf(column[i]) - mpf(mean[i])
                    z.append((t - mp.fdot(zip(map(mpf, row[:i]), z, strict=True))) / mpf(row[i]))
                    volume += mp.log(mpf(row[i]))
                terms.append(mp.log(mpf(w)) - volume - d * mp.log(2 * mp.pi) / 2 - mp.fsum(a * a for a in z) / 2)
            found.append(oracle.log_sum(terms))
    return found


def worst(got, want):
    return max(float(abs(mpf(float(a)) - b) / (1 + abs(b))) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("name", laws())
@pytest.mark.parametrize("d", [2, 3, 20])
def test_densities_of_packed_mixtures(name, d):
    law = laws(d)[name]
    x = RNG.normal(0, 2, (d, 6))
    packed = pack(law)
    assert packed.form == room.ISOTROPIC + ["isotropic", "diagonal", "full"].index(law.form)
    assert (len(packed), packed.dimension) == (3, d)
    assert worst(log_density(packed, x), of_factors(law, x)) <= 4e-15
    values, told = log_density_information(packed, x)
    assert np.array_equal(values, log_density(packed, x))
    assert (told >= 0).all()
    assert (told <= -np.log(0.2) + 1e-12).all()


def test_a_law_on_the_line_has_one_dimension():
    law = GaussianMixture(WEIGHTS, [0.0, 1.0, -4.0], [1.0, 0.1, 3.0])
    packed = pack(law)
    assert (packed.form, packed.means.shape, packed.spreads.shape) == (0, (3, 1), (3,))
    x = RNG.normal(0, 3, (1, 9))
    assert worst(log_density(packed, x), of_factors(law, x)) <= 1e-15


@pytest.mark.parametrize("size", [1e-290, 1e-150, 1e150, 1e290])
def test_extreme_units(size):
    for name, law in laws().items():
        if law.form == "full":
            scaled = GaussianMixture(WEIGHTS, law.means * 2.0**400, covariances=law.covariances * 2.0**800)
            x = RNG.normal(0, 2, (3, 4)) * 2.0**400
        else:
            scaled = GaussianMixture(WEIGHTS, law.means * size, law.sigmas * size)
            x = RNG.normal(0, 2, (3, 4)) * size
        assert worst(log_density(pack(scaled), x), of_factors(scaled, x)) <= 4e-15, name


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("d", [5, 30])
def test_ill_conditioned_covariances(condition, d):
    """Relative to the law of the factors: u d times the condition of the factor, the root of that of the matrix.

    The factors themselves are those of a matrix within d u of the one given, and that no method can undo.
    """
    rng = np.random.default_rng(5)
    law = GaussianMixture(WEIGHTS, rng.normal(0, 1, (3, d)), covariances=covariance(d, condition))
    x = law.means.T + law.factors[0] @ rng.normal(0, 1, (d, 3))
    assert worst(log_density(pack(law), x), of_factors(law, x)) <= 2e-16 * d * condition**0.5


def test_rows_of_different_units_cost_nothing():
    """A covariance whose condition comes of units alone is as exact as without them."""
    units = 2.0 ** np.arange(-60, 61, 12)
    d = len(units)
    given = covariance(d, 5.0) * units * units[:, None]
    law = GaussianMixture(WEIGHTS, RNG.normal(0, 1, (3, d)) * units, covariances=given)
    x = RNG.normal(0, 2, (d, 5)) * units[:, None]
    assert worst(log_density(pack(law), x), of_factors(law, x)) <= 4e-15


@pytest.mark.parametrize("name", laws())
def test_common_coordinates_keep_every_log_ratio(name):
    p = laws()[name]
    q = GaussianMixture([0.6, 0.4], p.means[:2] + 0.5, *(() if p.covariances is not None else (p.sigmas[:2],)),
                        covariances=None if p.covariances is None else p.covariances[:2])
    (a, b), log_determinant = pack_together(p, q)
    if "shared" in name and not name.startswith("isotropic"):
        assert (a.form, b.form) == (0, 0)
        assert (a.scales == 1).all()
    # the map, from where it takes points
    points = RNG.normal(0, 1, (3, 4))
    matrix, shift = np.eye(3), np.zeros(3)
    if log_determinant or a.form != pack(p).form:
        lower = np.diag(p.sigmas[0]) if p.factors is None else p.factors[0]
        matrix = np.linalg.inv(lower)
    shift = p.means[0] - np.linalg.solve(matrix, a.means[0])
    y = np.ascontiguousarray(matrix @ (points - shift[:, None]))
    for mixture, together in ((p, a), (q, b)):
        want = log_density(pack(mixture), points)
        assert log_density(together, y) + log_determinant == pytest.approx(want, rel=1e-12)


def test_a_shift_is_taken_off_only_where_it_is_exact():
    p = GaussianMixture([0.5, 0.5], [[1e8, 0.0, -3.0], [1e8 + 1e-7, 5.0, -2.0]], 1.0)
    q = GaussianMixture([1.0], [[1e8 + 1, 1.0, -2.5]], 1.0)
    (a, b), log_determinant = pack_together(p, q)
    assert log_determinant == 0
    assert np.array_equal(a.means, [[0, 0, 0], [(1e8 + 1e-7) - 1e8, 5, 1]])
    assert np.array_equal(b.means, [[1, 1, 0.5]])


def test_means_too_far_apart_are_not_whitened():
    for d, keywords in ((2, {"covariances": [[2.0, 1.0], [1.0, 2.0]]}), (2, {"sigmas": [[1.0, 2.0]]})):
        p = GaussianMixture([0.5, 0.5], [[0.0] * d, [1e7] * d], **keywords)
        (a,), log_determinant = pack_together(p)
        assert a.form == pack(p).form
        assert log_determinant == 0


def test_an_entropy_is_that_of_the_pack_less_the_log_determinant():
    law = GaussianMixture.single([1.0, 2.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    (a,), log_determinant = pack_together(law)

    def integrand(y, x):
        value = log_density(a, np.array([[x], [y]]))[0]
        return -np.exp(value) * value

    entropy = dblquad(integrand, -8, 8, -8, 8, epsabs=1e-7)[0]
    assert entropy - log_determinant == pytest.approx(1 + np.log(2 * np.pi) + 0.5 * np.log(3), abs=1e-6)


def test_what_is_not_shared_by_all_is_left_alone():
    p = GaussianMixture.single([0.0, 0.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    q = GaussianMixture.single([0.0, 0.0], covariance=[[2.0, 1.5], [1.5, 2.0]])
    r = GaussianMixture([1.0], [[0.0, 0.0]], 1.0)
    assert [packed.form for packed in pack_together(p, q, r).packs] == [2, 2, 0]
