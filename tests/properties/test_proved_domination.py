"""Domination with full covariances, proved of the stored numbers in high precision up to condition numbers of 1e12."""

import mpmath
import numpy as np
import pytest

from fastpriv import GaussianMixture
from fastpriv.sampling.proposals.full_covariances import FullTilting
from fastpriv.sampling.proposals.tilting import tilting_of

DIGITS = 80
LEAST = {1.0: 3, 1e3: 3, 1e6: 3, 1e9: 3, 1e12: 3}  # by condition: bounds below 1 among twelve components


def common_root(rng, d, condition):
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return turn * condition ** (-0.5 * rng.permutation(np.linspace(0.0, 1.0, d)))


def law(rng, k, root, shared):
    """Components that differ in the coordinates of the root."""
    d = len(root)
    number = 1 if shared else k
    turns = rng.normal(size=(number, d, 3 * d)) / np.sqrt(3 * d)
    covariances = root @ turns @ turns.transpose(0, 2, 1) @ root.T
    covariances = 0.5 * (covariances + covariances.transpose(0, 2, 1))
    means = 2.0 * rng.normal(size=(k, d)) @ root.T
    return GaussianMixture(rng.dirichlet(np.full(k, 3.0)), means, covariances=covariances[0] if shared else covariances)


class Quadratic:
    """level + slope x - x' matrix x / 2 in numbers of many digits."""

    def __init__(self, level, slope, matrix):
        self.level, self.slope, self.matrix = level, slope, matrix

    @classmethod
    def normal(cls, mean, factor):
        """The normal law of this lower factor, which is what densities are evaluated and samples drawn with."""
        root, m = mpmath.matrix(factor.tolist()), mpmath.matrix(mean.tolist())
        cov = root * root.T
        precision = cov**-1
        slope = precision * m
        level = -(mpmath.log(mpmath.det(cov)) + (m.T * slope)[0]) / 2
        return cls(level, slope, precision)

    def plus(self, other, times):
        return Quadratic(self.level + times * other.level, self.slope + times * other.slope,
                         self.matrix + times * other.matrix)

    def largest(self):
        """The largest value; infinite where there is none."""
        try:
            mpmath.cholesky(self.matrix)
        except ValueError:
            return mpmath.inf
        return self.level + (self.slope.T * mpmath.lu_solve(self.matrix, self.slope))[0] / 2


def factor(law, index):
    return law.factors[index if len(law.factors) > 1 else 0]


@pytest.mark.few(2)
@pytest.mark.parametrize("condition", LEAST)
@pytest.mark.parametrize("shared", [False, True])
def test_every_tilted_normal_dominates_to_the_last_digit(condition, shared):
    proved = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, int(np.log10(condition)), shared])
        d, k, j = int(rng.integers(1, 6)) + 1, 2, int(rng.integers(1, 4))
        root = common_root(rng, d, condition)
        p, q = law(rng, k, root, shared), law(rng, j, root, shared)
        epsilon = float(10 ** rng.uniform(-1, 2))
        levels = np.log(q.weights) + epsilon
        pair = tilting_of(p, q, levels)
        assert isinstance(pair, FullTilting)
        tilts = pair.tilted(np.zeros((k, j)))
        tilts = pair.certified_normals(tilts, np.zeros((k, j)))
        with mpmath.workdps(DIGITS):
            for i in range(k):
                bound, tau = tilts.log_bounds[i], [mpmath.mpf(float(t)) for t in tilts.exponents[i]]
                if not bound < 0.0:  # the component itself serves
                    continue
                total = mpmath.fsum(tau)
                spread = tilts.spreads[i if len(tilts.spreads) > 1 else 0]
                tilted = GaussianMixture.single(tilts.means[i], covariance=spread)
                found = Quadratic(mpmath.mpf(0), mpmath.zeros(d, 1), mpmath.zeros(d, d))
                found = found.plus(Quadratic.normal(p.means[i], factor(p, i)), 1 + total)
                for index, t in enumerate(tau):
                    if t > 0:
                        found = found.plus(Quadratic.normal(q.means[index], factor(q, index)), -t)
                        found.level += t * (mpmath.log(t) - mpmath.mpf(float(levels[index])))
                found.level -= (1 + total) * mpmath.log(1 + total) + mpmath.mpf(float(bound))
                found = found.plus(Quadratic.normal(tilted.means[0], factor(tilted, 0)), -1)
                most = found.largest()
                assert most <= 0, f"seed {seed}, component {i}, {d} dimensions: above by {mpmath.nstr(most, 5)}"
                proved += 1
    assert proved >= LEAST[condition]
