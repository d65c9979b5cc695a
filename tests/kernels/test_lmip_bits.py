"""The curves of mutual-information privacy have the same bits on every instruction set the machine has."""

import pytest

from kernels.variants import check_same_lines, each_wider_variant

PROGRAM = """
import hashlib
import numpy as np
from fastpriv import special
rng = np.random.default_rng(3)
n = 2003
mu = np.where(rng.random(n) < 0.5, 10 ** rng.uniform(-300, 0, n), 2 * rng.random(n))
epsilon = np.where(rng.random(n) < 0.5, 10 ** rng.uniform(-12, 3, n), np.sqrt(mu) * 10 ** rng.uniform(-3, 3, n))
atom = np.where(rng.random(n) < 0.5, rng.random(n), 10 ** rng.uniform(-300, 0, n))
for name in sorted(special.__all__):
    if "lmip" in name or "pointwise" in name:
        f = getattr(special, name)
        arguments = (mu, atom) if "lip_saturation" in name else (mu, epsilon, atom)[: f.nin]
        print(name, hashlib.sha256(np.ascontiguousarray(f(*arguments)).tobytes()).hexdigest())
"""


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(PROGRAM, 11, variant)
