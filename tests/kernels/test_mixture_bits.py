"""The mixture engines give the same bits on every instruction set the machine has."""


import pytest

from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import hashlib
import numpy as np
from fastpriv import GaussianMechanism, GaussianMixture, Pmf, notions
from fastpriv import hockey_stick_divergence, jensen_shannon, kl_divergence
from fastpriv.divergences import log_hockey_stick_divergence

rng = np.random.default_rng(7)
digest = hashlib.sha256()

def mixture(size):
    return GaussianMixture(rng.dirichlet(np.ones(size)), rng.normal(0, 3, size), rng.uniform(0.2, 2, size))

def add(estimate):
    for part in (estimate.value, estimate.lower, estimate.upper):
        digest.update(np.asarray(part).tobytes())

grid = np.array([0.0, 1e-9, 0.1, 1.0, 5.0, 40.0])
for size in (1, 2, 3, 8, 9, 17):
    p, q = mixture(size), mixture(size + 1)
    near = GaussianMixture(p.weights, p.means + 1e-7, p.sigmas)
    for a, b in ((p, q), (q, p), (p, near)):
        add(hockey_stick_divergence(a, b, grid))
        add(log_hockey_stick_divergence(a, b, grid))
        add(kl_divergence(a, b))
        add(jensen_shannon(a, b))
prior = Pmf(np.linspace(-1, 1, 21), rng.dirichlet(np.ones(21)))
for sigma in (0.3, 3.0):
    for part in notions.lip_curves(prior, GaussianMechanism(sigma), grid):
        add(part)
    add(notions.cd_lmip(prior, GaussianMechanism(sigma)))
prior = Pmf(np.unique(rng.normal(0, 5, 300)), rng.dirichlet(np.ones(300)))
for sigma in (0.02, 0.5, 400.0):
    for part in notions.lip_curves(prior, GaussianMechanism(sigma), grid):
        add(part)
many = Pmf(np.arange(400) ** 2 / 999.0, np.full(400, 1 / 400))
for sigma in (0.1, 20.0, 1e5):
    shift = notions.abp(many, GaussianMechanism(sigma))
    for part in (shift.per_value, shift.maximum, shift.mean):
        add(part)
print(digest.hexdigest())
"""


@pytest.mark.few(1)
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)
