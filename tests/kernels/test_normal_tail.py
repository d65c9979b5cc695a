"""Normal tails between doubles and double-doubles in accuracy, against mpmath; their table against its script."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")
PROGRAM = """
#include <stdio.h>
#include "special/fp_normal_tail.h"
int main(void)
{
    double x, mean, high, low;
    while (scanf("%la %la %la %la", &x, &mean, &high, &low) == 4) {
        const fp_unevaluated z = fp_standard_score(x, mean, high, low), tail = fp_normal_tail(z.high, z.low);
        printf("%a %a %a %a\\n", z.high, z.low, tail.high, tail.low);
    }
    return 0;
}
"""
TAIL_ERROR, SCORE_ERROR = mp.mpf(2) ** -62, mp.mpf(2) ** -74  # less than FP_NORMAL_TAIL_ERROR; of fp_standard_score

pytestmark = pytest.mark.skipif(
    not ((ROOT / "csrc").is_dir() and COMPILER), reason="needs the source tree and a C compiler"
)


def run(rows, folder):
    command = [COMPILER, "-std=gnu11", "-O1", "-ffp-contract=off", f"-I{ROOT / 'csrc'}", "-x", "c", "-", "-lm"]
    subprocess.run([*command, "-o", str(folder / "tails")], input=PROGRAM, text=True, check=True)
    text = "\n".join(" ".join(float(x).hex() for x in row) for row in rows)
    out = subprocess.run([str(folder / "tails")], input=text, capture_output=True, text=True, check=True).stdout
    return [[mp.mpf(float.fromhex(x)) for x in line.split()] for line in out.splitlines()]


def standardised():
    """Points, means and sigmas whose scores lie in the table, near its points, between them, and at both its ends."""
    rng = np.random.default_rng(1)
    scores = np.concatenate([
        rng.uniform(-12, 12, 1500), 10.0 ** rng.uniform(-300, 1, 300), -(10.0 ** rng.uniform(-9, 1, 300)),
        (rng.integers(0, 383, 600) + 0.5) / 32 * (1 + 1e-12 * rng.normal(size=600)), rng.integers(-383, 383, 300) / 32,
        [0.0, 12 * (1 - 1e-9), -12 * (1 - 1e-9)],
    ])
    means, sigmas = rng.normal(0, 10.0 ** rng.uniform(-3, 3, scores.size)), 10.0 ** rng.uniform(-5, 5, scores.size)
    means[::7], sigmas[::7] = 0.0, 1.0
    return [(m + z * s, m, s) for z, m, s in zip(scores.tolist(), means.tolist(), sigmas.tolist(), strict=True)]


@pytest.mark.slow
def test_scores_and_tails(tmp_path):
    with mp.workprec(300):
        cases, rows = standardised(), []
        for x, mean, sigma in cases:
            high = float((np.array([1 / sigma]).view(np.int64) & ~np.int64(0x7FFFFFF)).view(np.float64)[0])  # 26 bits
            rows.append((x, mean, high, float(1 / mp.mpf(sigma) - mp.mpf(high))))
        worst = mp.mpf(0)
        for (x, mean, sigma), (high, low, tail, rest) in zip(cases, run(rows, tmp_path), strict=True):
            z = (mp.mpf(x) - mp.mpf(mean)) / mp.mpf(sigma)
            assert abs(high + low - z) <= SCORE_ERROR * abs(z), (x, mean, sigma)
            if abs(z) < 12:
                size = abs(high + low)
                truth = mp.erfc(size / mp.sqrt(2)) / 2
                error = abs(tail + rest - truth) / truth / (1 + size**2)
                worst = max(worst, error)
                assert error <= TAIL_ERROR, (x, mean, sigma, error)
        assert worst > TAIL_ERROR / 64  # the bound says something


def test_beyond_the_table(tmp_path):
    with mp.workprec(300):
        least = mp.erfc(12 / mp.sqrt(2)) / 2
        rows = [(z, 0.0, 1.0, 0.0) for z in (12.0, -12.0, 12.1, -40.0, 1e100, -1e300)]
        for high, _, tail, rest in run(rows, tmp_path):
            assert abs(high) >= 12
            assert abs(tail + rest - least) <= 1e-12 * least
        assert least < mp.mpf(1.8e-33)


def test_table():
    specification = importlib.util.spec_from_file_location("fit_normal_tail", ROOT / "tools" / "fit_normal_tail.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert (ROOT / "csrc/special/fp_normal_tail_table.h").read_text(encoding="utf-8") == module.text()
