"""The Gaussian mechanism and the binary channel give the same bits on every instruction set the machine has."""


import pytest

from kernels.variants import check_same_lines, each_wider_variant

PROGRAM = """
import hashlib
import numpy as np
from fastpriv import GaussianMechanism, special
rng = np.random.default_rng(3)
n = 3001
r = 10 ** rng.uniform(-300, 150, n)
r[: n // 2] = 10 ** rng.uniform(-3, 3, n // 2)
epsilon = 2 * r * (r + rng.uniform(-8, 40, n))
epsilon = np.where(epsilon < 0, 0, epsilon)
delta = np.where(rng.random(n) < 0.5, rng.random(n), 10 ** rng.uniform(-320, 0, n))
log_delta = -(10 ** rng.uniform(-17, 6, n))
a, b = rng.random(n), 10 ** rng.uniform(-300, 0, n)
results = {
    "gaussian_delta": (r, epsilon), "gaussian_log_delta": (r, epsilon),
    "gaussian_epsilon": (r, delta), "gaussian_epsilon_below": (r, delta),
    "gaussian_epsilon_from_log_delta": (r, log_delta), "gaussian_epsilon_below_from_log_delta": (r, log_delta),
    "gaussian_noise": (epsilon, delta), "gaussian_noise_below": (epsilon, delta),
    "gaussian_noise_from_log_delta": (epsilon, log_delta), "gaussian_noise_below_from_log_delta": (epsilon, log_delta),
    "binary_entropy": (a,), "binary_entropy_with_complement": (1 - b, b),
    "bac_capacity": (a, b), "bac_capacity_with_complements": (1 - b, b, a, 1 - a),
}
for name, arguments in results.items():
    print(name, hashlib.sha256(np.ascontiguousarray(getattr(special, name)(*arguments)).tobytes()).hexdigest())
for name in ("delta_remove", "delta_add", "log_delta_remove", "log_delta_add"):
    found = getattr(special, "sampled_gaussian_" + name)(0.5 / r, a, b * np.where(a < 0.5, epsilon, 1.0))
    print(name, hashlib.sha256(np.stack(found).tobytes()).hexdigest())
mechanism = GaussianMechanism(a + 0.1, 2 * (a + 0.1) * 10 ** rng.uniform(-9, 2, n))
for name in ("delta", "log_delta"):
    found = getattr(mechanism, name)(b * 100)
    print(name, hashlib.sha256(np.stack([found.value, found.lower, found.upper]).tobytes()).hexdigest())
"""


@pytest.mark.slow
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(PROGRAM, 20, variant)
