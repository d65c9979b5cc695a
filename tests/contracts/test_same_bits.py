"""The same bits for any instruction set of the kernels and any number of threads of the library that NumPy calls.

Other bits have what rests on log densities of samples and on posteriors, whose kernels use fused multiply-adds where
the machine has them, and what LAPACK computes; they are answers to the same question all the same.
"""

import json
import os
import subprocess
import sys

import pytest

from fastpriv.kernels.instruction_sets import of_this_machine

CALLS = """
import json, sys, warnings
import numpy as np
import fastpriv as f
from fastpriv import calibration, notions
warnings.simplefilter("ignore")

def counts(*shape, seed=0):
    return np.random.default_rng(seed).integers(1, 1000, shape).astype(float)

def rows(n, m):
    cells = counts(n, m)
    return f.Channel(cells / cells.sum(axis=1, keepdims=True))

def law(n, seed):
    return f.GaussianMixture(weights(n), counts(n, seed=seed) / 50, counts(n, seed=seed + 1) / 500 + 0.1)

def weights(n):
    return counts(n, seed=9) / counts(n, seed=9).sum()

def mixture(seed):
    return f.GaussianMixture(weights(3), counts(3, 4, seed=seed) / 500, counts(3, 4, seed=seed + 1) / 500 + 0.5)

wide, tall = rows(40, 20_000), rows(20_000, 30)
prior = f.Pmf(np.arange(20.0), weights(20))
far = np.zeros(20_000), counts(20_000) / 1e5
same = {
    "abp": notions.abp(weights(40), wide).mean,
    "information": notions.cd_lmip(weights(40), wide),
    "leakage": notions.maximal_leakage(weights(20_000), tall),
    "ldp": notions.ldp_delta(weights(40), wide, [0.1, 1.0]),
    "lip": notions.lip_delta(weights(40), wide, [0.1, 1.0]),
    "robust": notions.robust_accuracy(f.GaussianMechanism(1.0), far, far[0], 142.0).maximum,
    "capacity": f.channel_capacity(rows(20, 30)).capacity,
    "awgn": f.awgn_capacity([1, 2, 9], [4.0, 7.0, 5.0]),
    "hockey-stick": f.hockey_stick_divergence(law(40, 1), law(30, 3), [0.1, 1.0]),
    "kl": f.kl_divergence(law(40, 1), law(30, 3)),
    "mutual information": f.mutual_information(prior, 2.0),
    "sigma": calibration.sigma_from_lip(0.5, 1e-3, prior),
    "assess": f.assess(list("aabbbc"), mechanism="rr", level=[0.5, 1.0], epsilon=[0.1])["mutual_information"],
}
budget = {"rtol": 0.0, "max_samples": 50_000, "rng": 1}
close = {
    "sampled kl": f.kl_divergence(mixture(1), mixture(5), **budget),
    "sampled hockey-stick": f.hockey_stick_divergence(mixture(1), mixture(5), [1.0, 9.0], **budget),
    "posterior": f.posterior(-counts(1000) / 100).log_evidence,
}

def numbers(found):
    return [[x.hex() for x in np.ravel(end).tolist()] for end in (found.value, found.lower, found.upper)]

print(json.dumps([{name: numbers(found) for name, found in part.items()} for part in (same, close)]))
"""


def found(**settings):
    run = subprocess.run(
        [sys.executable, "-c", CALLS], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def usual():
    return found(OPENBLAS_NUM_THREADS="1")


@pytest.mark.parametrize(
    "settings",
    [
        {"OPENBLAS_NUM_THREADS": "2", "FASTPRIV_ISA": "baseline"},
        *(
            pytest.param(words, marks=pytest.mark.slow)
            for words in ({"OPENBLAS_NUM_THREADS": "8"}, {"FASTPRIV_ISA": "avx2"}, {"FASTPRIV_ISA": "avx512"})
        ),
    ],
    ids=lambda settings: ", ".join(settings.values()),
)
def test_bits_depend_neither_on_kernels_nor_on_threads(settings, usual):
    if settings.get("FASTPRIV_ISA", "baseline") not in of_this_machine():
        pytest.skip("this machine lacks it")
    same, close = found(**settings)
    assert same == usual[0]
    for name, numbers in close.items():
        (_, lower, upper), (value, _, _) = numbers, usual[1][name]
        for low, middle, high in zip(lower, value, upper, strict=True):
            assert float.fromhex(low) <= float.fromhex(middle) <= float.fromhex(high), name
