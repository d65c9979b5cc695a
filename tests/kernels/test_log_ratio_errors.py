"""The stated errors of log(p / q) and of its slope hold the true ones, where they are hard to bound: by 60 digits."""

import shutil
import subprocess
from pathlib import Path

import pytest
from mpmath import mp, mpf

CSRC = Path(__file__).parents[2] / "csrc"
COMPILER = shutil.which("cc") or shutil.which("gcc")
PROGRAM = """
#include <stdio.h>
#include "line/fp_hockey_stick.h"
#include "line/fp_integrand.h"
int main(void)
{
    static double c[6][8];
    int n[2], count;
    while (scanf("%d %d %d", n, n + 1, &count) == 3) {
        for (int i = 0; i < n[0] + n[1]; i++)
            for (int k = 0; k < 3; k++)
                scanf("%la", i < n[0] ? &c[k][i] : &c[3 + k][i - n[0]]);
        fp_stop_token stop = fp_stop_token_make(NULL, INFINITY);
        fp_log_ratio r = {.stop = &stop};
        fp_log_ratio_build(&r, n[0], c[0], c[1], c[2], n[1], c[3], c[4], c[5]);
        const fp_frame frame = fp_frame_of(n[0], c[1], c[2], n[1], c[4], c[5]);
        for (int i = 0; i < count; i++) {
            double x, points[FP_LANES];
            fp_taylor at;
            fp_ratios_baseline some;
            scanf("%la", &x);
            x = (x - frame.shift) * frame.scale;
            for (int k = 0; k < FP_LANES; k++)
                points[k] = x;
            fp_log_ratio_at_baseline(&r, x, &at);
            fp_log_ratio_at_points_baseline(&r, points, &some);
            printf("%a %a %a %a %a ", frame.scale, at.value, at.error, at.slope, at.slope_error);
            printf("%a %a %a %a\\n", some.value[0], some.error[0], some.slope[0], some.slope_error[0]);
        }
        fp_log_ratio_free(&r);
    }
    double error;
    const double log_p = 2.8544339649379253, l = -1.0065560266375542; /* with an exact difference */
    const double value = fp_kl_node(log_p, log_p - l, l, 0.0, 0.0, 0.0, &error);
    printf("%a %a\\n", value, error);
    return 0;
}
"""

pytestmark = [
    pytest.mark.skipif(not (CSRC.is_dir() and COMPILER), reason="needs the source tree and a C compiler"),
    pytest.mark.all_variants, pytest.mark.slow,
]

CASES = {
    # a component and its match have equal density far from both: the two parts of dz cancel (144 times the error)
    "match": ([(1.0, 0.00024496831139568547, 1.0000021290213865)], [(1.0, 0.0, 1.0)],
              [-115.07015143644834, -115.0, 3.0]),
    # two components are equally large 4e8 standard deviations away: the slope is that of either (273 times the error)
    "far": ([(0.5, 0.0, 1.0), (0.5, 1062014714.7458493, 1.6881845680558611)], [(1.0, 395067633.1402035, 1.5)],
            [395067633.1402034, 395067633.1402035, 395067633.14020354, 395067633.1402036]),
    # a slope that is subnormal (an error of 0)
    "subnormal": ([(1.0, 0.0, 1.0)], [(1.0, 0.0, 2.0)], [5e-324, 1.5e-323]),
    "tilted": ([(0.5, -1e9, 1.0), (0.5, 2e9, 1.0)], [(1.0, 0.0, 1.0)], [5e8, 500000000.00000006, 1.0]),
}


def log_density(components, x):
    """Log density without sqrt(2 pi), and its derivative."""
    terms = [(mp.log(w / s) - ((x - m) / s) ** 2 / 2, -(x - m) / s**2) for w, m, s in components]
    top = max(h for h, _ in terms)
    shares = [mp.exp(h - top) for h, _ in terms]
    return top + mp.log(sum(shares)), sum(e * g for e, (_, g) in zip(shares, terms, strict=True)) / sum(shares)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("log_ratio") / "errors"
    subprocess.run([COMPILER, "-std=gnu11", "-DFP_HAVE_VARIANTS=0", "-ffp-contract=off", f"-I{CSRC}", "-x", "c", "-O0",
                    "-", "-o", str(path), "-lm"], input=PROGRAM, text=True, check=True)
    return path


@pytest.mark.parametrize("name", CASES)
def test_errors_of_the_log_ratio_hold(name, program):
    p, q, points = CASES[name]
    numbers = [x.hex() for component in p + q for x in component] + [x.hex() for x in points]
    text = f"{len(p)} {len(q)} {len(points)} " + " ".join(numbers)
    lines = subprocess.run([program], input=text, text=True, capture_output=True, check=True).stdout.splitlines()[:-1]
    with mp.workdps(60):
        sides = [[tuple(map(mpf, c)) for c in side] for side in (p, q)]
        for x, line in zip(points, lines, strict=True):
            scale, *results = map(float.fromhex, line.split())
            (log_p, score_p), (log_q, score_q) = (log_density(side, mpf(x)) for side in sides)
            for value, error, slope, slope_error in (results[:4], results[4:]):
                assert abs(mpf(value) - (log_p - log_q)) <= error
                assert abs(mpf(slope) - (score_p - score_q) / mpf(scale)) <= slope_error


def test_error_of_a_kullback_leibler_integrand_holds(program):
    """q + p (l - 1) cancels at l = -1: it missed by 1.035 times its stated error."""
    out = subprocess.run([program], input="", text=True, capture_output=True, check=True).stdout
    value, error = map(float.fromhex, out.split())
    with mp.workdps(60):
        log_p, log_ratio = mpf(2.8544339649379253), mpf(-1.0065560266375542)
        assert abs(value - (mp.exp(log_p - log_ratio) + mp.exp(log_p) * (log_ratio - 1))) <= error
