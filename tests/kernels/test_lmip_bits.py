"""The curves of mutual-information privacy have the same bits on every instruction set the machine has."""

import os
import subprocess
import sys

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


def test_every_instruction_set_gives_the_same_bits():
    outputs = {}
    for isa in ("baseline", "avx2", "avx512"):  # one that the machine lacks falls back to the best it has
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "FASTPRIV_ISA": isa}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs[isa] = done.stdout.splitlines()
    assert len(outputs["baseline"]) == 11
    for isa in ("avx2", "avx512"):
        pairs = zip(outputs["baseline"], outputs[isa], strict=True)
        different = [line.split()[0] for line, other in pairs if line != other]
        assert not different, f"{isa} differs from baseline in {different}"
