"""The stated errors of the integrand of an information, and of components far in the tails, hold, by 60 digits."""

import shutil
import subprocess
from pathlib import Path

import pytest
from mpmath import mp, mpf

CSRC = Path(__file__).parents[2] / "csrc"
COMPILER = shutil.which("cc") or shutil.which("gcc")
PROGRAM = """
#include <stdio.h>
#include "line/fp_quadrature_solver.h"
int main(void)
{
    int n, far;
    double origin, h, w[8], m[8], s[8];
    fp_quadrature_select();
    while (scanf("%d %d %la %la", &far, &n, &origin, &h) == 4) {
        int index[8];
        fp_integral v = {.kind = FP_INFORMATION};
        for (int i = 0; i < n; i++)
            scanf("%la %la %la", w + i, m + i, s + i), index[i] = i;
        fp_gaussian_mixture_build(&v.q, n, w, m, s);
        fp_local_build(&v.side_q, n);
        fp_local_gather(&v.side_q, &v.q, index, n, origin, 0.0, h);
        if (far) {
            for (int i = 0; i < n; i++)
                printf("%a ", v.side_q.log_r[i]);
            printf("%d %a\\n", v.side_q.reference, v.side_q.slip);
            continue;
        }
        fp_quadrature_kernels_in_use()->centre(&v.side_q);
        double f[8], error[8];
        int r = 0;
        for (int j = 1; j < n; j++)
            r = v.side_q.r[j] > v.side_q.r[r] ? j : r;
        for (int j = 0; j < n; j++)
            v.side_q.offset[j] = (m[j] - m[r]) * v.q.is[r];
        const int direct = w[r] < 0.5 * v.side_q.r[r];
        const double *d = fp_legendre_nodes[0];
        fp_quadrature_kernels_in_use()->information(&v.side_q, w, r, direct, 0.0, 1.0, d, 8, f, error);
        for (int k = 0; k < 8; k++)
            printf("%a %a %a %a\\n", d[k], fp_legendre_tails[0][k], f[k], error[k]);
    }
    return 0;
}
"""

pytestmark = [
    pytest.mark.skipif(not (CSRC.is_dir() and COMPILER), reason="needs the source tree and a C compiler"),
    pytest.mark.all_variants, pytest.mark.slow,
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("information") / "nodes"
    subprocess.run([COMPILER, "-std=gnu11", "-DFP_HAVE_VARIANTS=0", "-ffp-contract=off", f"-I{CSRC}", "-x", "c", "-O0",
                    "-", "-o", str(path), "-lm"], input=PROGRAM, text=True, check=True)
    return path


def lines_of(program, far, origin, h, components):
    numbers = [origin, h, *(x for component in components for x in component)]
    text = f"{far:d} {len(components)} " + " ".join(x.hex() for x in numbers)
    out = subprocess.run([program], input=text, text=True, capture_output=True, check=True).stdout
    return [line.split() for line in out.splitlines()]


@pytest.mark.parametrize("gap", [2.5531, 7.3, 15.1, 28.7])
@pytest.mark.parametrize("share", [0.25, 0.005649888264237909, 1e-9])
@pytest.mark.parametrize("h", [2.0**-60, 2.0**-8, 0.5])
def test_errors_of_the_information_at_nodes_hold(gap, share, h, program):
    """Halfway between two inputs the roundings of a y and a^2 / 2 remain where they cancel: 300 times the old error."""
    means, priors, sigma = [0.1, 0.1 + 1.3 * gap], [share, 1.0 - share], 1.3
    origin = 0.1 + 1.3 * gap * 0.50005
    with mp.workdps(60):
        for line in lines_of(program, False, origin, h, [(w, m, sigma) for w, m in zip(priors, means, strict=True)]):
            d, tail, f, error = map(mpf, map(float.fromhex, line))
            x = origin + h * (d + tail)
            densities = [mp.npdf(x, m, mpf(sigma)) for m in means]
            q = mp.fdot(priors, densities)
            terms = (w * (y * mp.log(y / q) - y + q) for w, y in zip(priors, densities, strict=True))
            assert abs(f - h * mp.fsum(terms)) <= error


@pytest.mark.parametrize("away", [1e3, 1e6, 1e9])
def test_log_ratios_far_in_the_tails_have_the_stated_error(away, program):
    """Between components that far on both sides, 1e-9 was taken for the error; it is 223 at 1e9 standard deviations."""
    components = [(0.3, -away / 3.0, 1.1), (0.7, away / 1.7, 1.7)]
    origin = (components[0][1] * 1.7 + components[1][1] * 1.1) / 2.8  # as many sigmas from one as from the other
    *ratios, reference, slip = lines_of(program, True, origin, 1.0, components)[0]
    with mp.workdps(60):
        logs = [mp.log(mpf(w) / s) - ((origin - mpf(m)) / s) ** 2 / 2 for w, m, s in components]
        for ratio, log in zip(ratios, logs, strict=True):
            error = abs(float.fromhex(ratio) - (log - logs[int(reference)]))
            assert error <= float.fromhex(slip) + 1e-11
