"""Each solver of csrc compiled and run without Python, against an answer known otherwise; every header stands alone."""

import math
import re
import shutil
import subprocess
from pathlib import Path
from statistics import NormalDist

import pytest

CSRC = Path(__file__).parents[2] / "csrc"
COMPILER = shutil.which("cc") or shutil.which("gcc")
#: A call that no longer fits a signature is an error, as in C of 2023 and in C++; older compilers only warn.
ERRORS = ("incompatible-pointer-types", "int-conversion", "implicit-function-declaration")
FLAGS = ["-std=gnu11", *(f"-Werror={name}" for name in ERRORS), "-DFP_HAVE_VARIANTS=0", "-ffp-contract=off",
         f"-I{CSRC}", "-x", "c"]

pytestmark = [
    pytest.mark.skipif(not (CSRC.is_dir() and COMPILER), reason="needs the source tree and a C compiler"),
    pytest.mark.all_variants,
]

PHI = NormalDist().cdf
#: delta(1) of the Gaussian mechanism with sensitivity = sigma: Phi(-1/2) - e Phi(-3/2)
DELTA = PHI(-0.5) - math.e * PHI(-1.5)


def binary_input_information():
    """I(X; X + Z) for X = +-1 with equal probabilities: log 2 - E log(1 + e^(-2 - 2 Z)), by the trapezoidal rule."""
    nodes = [k / 64 for k in range(-640, 641)]
    lost = sum(math.exp(-z * z / 2) * math.log1p(math.exp(-2 - 2 * z)) for z in nodes) / 64 / math.sqrt(2 * math.pi)
    return math.log(2) - lost


def kl_of_bernoulli(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


# header; body of main, which prints numbers; what they must be, and how closely
CASES = {
    "lmip/fp_lmip_ufuncs.h": (
        """const double mu = 0.1, *in[] = {&mu};
        double p;
        ci_lmip_ldp_saturation_baseline(in, &p, 1);
        const double q = 1.0 - exp(-mu);
        printf("%.17g", p * log(p / q) + (1.0 - p) * log((1.0 - p) / (1.0 - q)));""",
        [0.1], 1e-12,
    ),
    "gauss/fp_gauss_ufuncs.h": (
        f"""const double r = 0.5, delta = {DELTA!r}, *in[] = {{&r, &delta}};
        double epsilon, log_delta = log(delta), from_log;
        const double *in_log[] = {{&r, &log_delta}};
        gaussian_epsilon_baseline(in, &epsilon, 1);
        gaussian_epsilon_from_log_delta_baseline(in_log, &from_log, 1);
        printf("%.17g %.17g", epsilon, from_log);""",
        [1.0, 1.0], 1e-12,
    ),
    "mixture/fp_density_solver.h": (
        """const double x[] = {0.0, 3.0}, mean = 0.0, inverse = 1.0, constant = -0.5 * log(2.0 * FP_PI);
        double out[2];
        fp_density p = {.form = FP_ISOTROPIC, .k = 1, .d = 1, .constants = &constant, .means = &mean,
                        .scales = &inverse};
        const int status = fp_density_run(fp_density_tile_baseline, &p, 2, x, out, NULL);
        printf("%d %.17g %.17g", status, out[0], out[1]);""",
        [0, -0.5 * math.log(2 * math.pi), -0.5 * math.log(2 * math.pi) - 4.5], 1e-12,
    ),
    "mixture/fp_grouping_solver.h": (
        """const double x[] = {-1.0, -1.0 / 3, 1.0 / 3, 1.0}, w[] = {0.25, 0.25, 0.25, 0.25}, cost[4] = {1, 1, 1, 1};
        double node[4], weight[4];
        ptrdiff_t atom[5], first[5];
        fp_grouping g = {.n = 4, .x = x, .w = w, .width = 3.0, .k = 2, .cost = cost, .tolerance = 1e-9, .node = node,
                         .weight = weight, .first_atom = atom, .first_node = first};
        while (fp_grouping_run(&g, 2))
            ;
        printf("%td %.17g %.17g %.17g", g.nodes, node[0], node[1], weight[0]);""",
        [2, -math.sqrt(5) / 3, math.sqrt(5) / 3, 0.5], 1e-12,
    ),
    "line/fp_quadrature_solver.h": (
        """const double one = 1.0, zero = 0.0;
        fp_integral w = {.kind = FP_KL, .target = 1e-12, .max_panels = 1000, .max_work = 1000000};
        fp_quadrature_select();
        for (int round = 0; round < 2; round++) { /* the memory is used again */
            fp_gaussian_mixture_build(&w.p, 1, &one, &zero, &one);
            fp_gaussian_mixture_build(&w.q, 1, &one, &one, &one);
            const int status = fp_integral_start(&w) || fp_integral_run(&w);
            printf("%d %.17g ", status, fp_accumulator_value(&w.sum));
        }
        fp_integral_free(&w);""",
        2 * [0, 0.5], 1e-11,
    ),
    "line/fp_mixture_integrals_ufuncs.h": (
        """double w[] = {0.5, 0.5, 1.0}, m[] = {-1.0, 1.0, 0.0}, s[] = {1.0, 1.0, 1.0}, out[3];
        char *args[] = {(char *)w, (char *)m, (char *)s, (char *)out, (char *)(out + 1), (char *)(out + 2)};
        const ptrdiff_t dimensions[] = {1, 2}, steps[] = {0, 0, 0, 0, 0, 0, 8, 8, 8};
        fp_mixture_integrals_select();
        mixture_entropy_loop(args, dimensions, steps, NULL);
        printf("%.17g %.17g %.17g", out[0], out[1], out[2]);""",
        3 * [0.5 * math.log(2 * math.pi * math.e) + binary_input_information()], 1e-11,
    ),
    "line/fp_hockey_stick.h": (
        """const double one = 1.0, zero = 0.0;
        fp_bracket out;
        long cost[6];
        const int status = fp_hockey_stick_curve_baseline(1, &one, &zero, &one, 1, &one, &one, &one, &one, 1, 1e-12, 0,
                                                          NULL, INFINITY, &out, cost);
        printf("%d %.17g %.17g %.17g", status, out.value, out.lower, out.upper);""",
        [0, DELTA, DELTA, DELTA], 1e-11,
    ),
    "line/fp_mixture_ufuncs.h": (
        """double w = 1.0, m[] = {1.0, 0.0}, s = 1.0, out[3];
        char *args[] = {(char *)&w, (char *)m, (char *)&s, (char *)&w, (char *)(m + 1), (char *)&s,
                        (char *)out, (char *)(out + 1), (char *)(out + 2)};
        const ptrdiff_t dimensions[] = {1, 1, 1}, steps[15] = {0};
        fp_mixture_total_variation_loop(args, dimensions, steps, fp_hockey_stick_curve_baseline);
        printf("%.17g %.17g %.17g", out[0], out[1], out[2]);""",
        3 * [2.0 * PHI(0.5) - 1.0], 1e-11,
    ),
    "line/fp_lip.h": (
        """const double w[] = {0.5, 0.5}, x[] = {-1.0, 1.0}, epsilon = 0.0;
        fp_bracket out;
        long cost[4];
        const int status = fp_lip_curve_baseline(2, w, x, 1.0, NULL, &epsilon, 1, 1e-12, 0, NULL, &out, cost);
        printf("%d %.17g %.17g %.17g", status, out.value, out.lower, out.upper);""",
        [0, *3 * [PHI(1.0) - 0.5]], 1e-11,
    ),
    "channel/fp_channel_ufuncs.h": (
        """double Q[] = {0.9, 0.1, 0.1, 0.9}, out[3];
        char *args[] = {(char *)Q, (char *)out, (char *)(out + 1), (char *)(out + 2)};
        const ptrdiff_t dimensions[] = {1, 2, 2}, steps[] = {0, 0, 0, 0, 16, 8};
        fp_channel_loop(args, dimensions, steps, channel_ldp_epsilon_baseline);
        printf("%.17g %.17g %.17g", out[0], out[1], out[2]);""",
        3 * [math.log(9)], 1e-12,
    ),
    "channel/fp_capacity.h": (
        """const double Q[] = {0.9, 0.1, 0.1, 0.9}, gap[] = {0.0, 0.0};
        double numbers[5], input[2], output[2], K[2];
        fp_capacity_solve_baseline(1, 2, 2, Q, gap, 1e-12, 100, numbers, input, output, K);
        printf("%.17g %.17g %.17g %.17g", numbers[0], numbers[1], numbers[2], input[0]);""",
        [*3 * [kl_of_bernoulli(0.1, 0.5)], 0.5], 1e-11,
    ),
    "awgn/fp_awgn_ufuncs.h": (
        """static fp_awgn_result out;
        fp_awgn_solve_baseline(1.0, 1.0, 1e-10, NULL, &out);
        printf("%d %.17g ", out.status, out.value);
        fp_awgn_solve_baseline(1.0, 4.0, 1e-8, NULL, &out);
        printf("%d %d ", out.status, out.upper - out.lower <= 1e-8 * out.lower);
        fp_awgn_solve_baseline(1.0, 1000.0, 1e-8, NULL, &out);
        const double uniform_input = log(2000.0 / sqrt(2.0 * FP_PI * exp(1.0)));
        printf("%d %d", out.status, fabs(out.value - uniform_input) < 4e-3);""",
        [0, binary_input_information(), 0, 1, 0, 1], 1e-9,
    ),
    "leakage/fp_bounded_lbfgs.h": (
        """const double lower[8] = {-9, -9, -9, 0.5}, upper[8] = {9, 9, 1, 9};
        double quadratic(void *centre, const double *x, double *slope, int *status)
        {
            double value = 0.0;
            for (int k = 0; k < 8; k++) {
                const double gap = x[k] - ((const double *)centre)[k];
                value += (k + 1) * gap * gap;
                slope[k] = 2.0 * (k + 1) * gap;
            }
            return value;
        }
        double x[8] = {0}, centre[8] = {1, -2, 3, -4}, work[300];
        fp_bounded_lbfgs b = {.n = 8, .lower = lower, .upper = upper, .memory = 5, .most = 200, .tolerance = 1e-16};
        const int status = fp_bounded_lbfgs_run_baseline(&b, quadratic, centre, x, work, NULL);
        printf("%d %td %.17g %.17g %.17g %.17g %.17g", status, fp_bounded_lbfgs_work(&b) - 130, x[0], x[1], x[2],
               x[3], b.value);""",
        [0, 0, 1, -2, 1, 0.5, 93], 1e-7,
    ),
    "leakage/fp_gradient_matching.h": (
        """double weights[16] = {0.5, 0.25, [8] = -0.5, 0.125}, target[16] = {0}, x[8] = {0.75, 1}, work[500];
        const double label[2] = {1, 0}, centre[8] = {0}, one = 1.0;
        fp_matching m = {1, 2, 1, 8, weights, target, &one};
        for (int k = 0; k < 2; k++) { /* the gradient of the record 0.75 */
            const double p = 1.0 / (1.0 + exp(0.875)), error = k ? p : -p;
            target[8 * k] = 0.75 * error, target[8 * k + 1] = error;
        }
        printf("%.17g ", fp_matching_value_baseline(&m, x, label, work, NULL, NULL));
        x[0] = 0.2;
        fp_matching_descent d = {.ridge = 0.0, .tolerance = 0.0, .centre = centre, .most = 50};
        const int status = fp_matching_descend_baseline(&m, label, x, work, &d, NULL);
        printf("%d %d %.17g %.17g", status, fp_matching_descent_work(&m) <= 500, x[0], d.value);""",
        [0, 0, 1, 0.75, 0], 1e-12,
    ),
    "composition/fp_contour_shell_tables_solver.h": (
        f"""fp_contour_windows_select();
        const double w = 1.0, p = 1.0, q = 0.0, s = 5.0, excess[] = {{0.0, 0.0}};
        fp_contour_factor factor[2];
        fp_contour_one_sigma nodes;
        fp_contour_gaussians closed;
        fp_composition c;
        fp_contour_answer a;
        fp_contour_one_sigma_make(&nodes, 1, &w, &p, &s, 1, &w, &q, &s, excess);
        fp_contour_one_sigma_factor(factor, &nodes, 9.0);
        fp_contour_gaussians_make(&closed, p, s, q, s, excess);
        fp_contour_gaussians_factor(factor + 1, &closed, 0.0, 16.0);
        fp_composition_make(&c, 2, factor, 1, 1e-14);
        printf("%d ", fp_contour_at(&c, FP_CONTOUR_DELTA, 1.0, 0.0, &a, NULL));
        printf("%.17g %.17g %d", a.lower, a.upper, a.lower <= log({DELTA!r}) && log({DELTA!r}) <= a.upper);
        const double half[] = {{0.5, 0.5}}, means[] = {{0.0, p}}, both[] = {{s, s}};
        fp_contour_answer cut; /* of a pair that can be cut: the same by shells */
        fp_contour_one_sigma_make(&nodes, 2, half, means, both, 1, &w, &q, &s, excess);
        fp_contour_one_sigma_factor(factor, &nodes, 25.0);
        fp_composition_make(&c, 1, factor, 1, 1e-14);
        printf(" %d", fp_contour_at(&c, FP_CONTOUR_DELTA, 1.0, 0.0, &a, NULL));
        printf(" %d", fp_shells_at(&c, FP_CONTOUR_DELTA, 1.0, &cut, NULL));
        printf(" %d", a.lower <= cut.upper && cut.lower <= a.upper && cut.upper - cut.lower < 1e-9);
        fp_composition_close(&c);
        long double worst = 0.0L; /* error of e^(2 i y) - 1, relative to its size 2 |sin y| */
        for (double y = -0x1p28; y < 0x1p28; y += y * y < 100.0 ? 0.01171875 : fmin(24989.3, 0.01 * fabs(y))) {{
            double sine, cosine;
            fp_sin_cos_mod_pi(y, &sine, &cosine);
            const long double t = sinl((long double)y), u = cosl((long double)y), size = 2.0L * fabsl(t) + 1e-300L;
            const long double a2 = fabsl(2.0L * (sine * sine) - 2.0L * t * t) / size;
            const long double b2 = fabsl(2.0L * (sine * cosine) - 2.0L * t * u) / size;
            worst = a2 > worst ? a2 : worst, worst = b2 > worst ? b2 : worst;
        }}
        printf(" %d", worst < 5.0L * 0x1p-53L);
        worst = 0.0L; /* relative error of e^u - 1 - u */
        for (double u = -3.0; u < 3.0; u += 0x1.23p-8) {{
            const long double excess_of_exp = expm1l((long double)u) - u;
            worst = fmaxl(worst, fabsl(fp_exp_excess(u) - excess_of_exp) / excess_of_exp);
        }}
        printf(" %d", worst < 13.0L * 0x1p-53L);
        /* log M(t) by the few nodes of a search, which Chernoff's bounds need: p has zeros pi / 3 from the line */
        const double rare[] = {{0.9, 0.1}}, apart[] = {{0.0, 3.0}}, unit[] = {{1.0, 1.0}};
        fp_contour_one_sigma_make(&nodes, 2, rare, apart, unit, 1, &w, &q, &p, excess);
        fp_contour_one_sigma_factor(factor, &nodes, 1.0);
        static fp_contour_window part = {{.side = 1.0, .bend = 1.0, .means = 2, .mean = {{0.0, 3.0}}}};
        part.weight[0] = rare[0], part.weight[1] = rare[1], part.pair = &nodes;
        factor[1] = *factor, factor[1].pair = &part, factor[1].nodes.capacity = 0, factor[1].nodes.block = NULL;
        printf(" %d", fp_contour_build(factor, 0.3, 0.0, 46.0) + fp_window_glance(factor + 1, 0.3, 20.0));
        printf(" %d", fabs(factor[0].kappa - factor[1].kappa) < factor[0].kappa_error + factor[1].kappa_error);""",
        [0, math.log(DELTA), math.log(DELTA), 1, 0, 0, 1, 1, 1, 0, 1], 1e-12,
    ),
    # Cells of 3000 releases of sigma 2 at the rate 0.01, as "remove" of tests/oracles/contours.py
    "composition/fp_sampled_cells_solver.h": (
        """fp_contour_windows_select();
        const double sigma[] = {2.0, 2.0}, rate[] = {0.01, 0.01}, count[] = {3000.0, 3000.0}, rounding[] = {0.0, 0.0};
        const double level[] = {1.0, 2.0};
        double target[2];
        fp_contour_answer a[2];
        printf("%d", fp_sampled_cells(2, sigma, rate, count, level, rounding, FP_CELL_DELTA, 0, a, NULL));
        for (int i = 0; i < 2; i++)
            printf(" %.17g %.17g", a[i].lower, a[i].upper), target[i] = a[i].value;
        printf(" %d", fp_sampled_cells(2, sigma, rate, count, target, rounding, FP_CELL_EPSILON, 0, a, NULL));
        for (int i = 0; i < 2; i++)
            printf(" %.17g %.17g %d", a[i].lower, a[i].upper, a[i].lower <= level[i] && level[i] <= a[i].upper);
        printf(" %d", fp_sampled_cells(2, sigma, rate, count, target, rounding, FP_CELL_EPSILON, 1, a, NULL));
        printf(" %d", a[0].upper > 1.0 && a[0].upper < 1.3 && a[1].upper > 2.0 && a[1].upper < 2.3);""",
        [0, *2 * [-9.9763742818966008], *2 * [-26.960243679975548], 0, 1.0, 1.0, 1, 2.0, 2.0, 1, 0, 1], 1e-10,
    ),
    # The sigma of the former, twice, and of rare losses; by Chernoff's bound
    "composition/fp_sampled_sigma_solver.h": (
        """fp_contour_windows_select();
        const double rate[] = {0.01, 0.01, 0.002}, count[] = {3000.0, 3000.0, 200.0}, epsilon[] = {1.0, 2.0, 1.5};
        const double target[] = {-9.9763742818966008, -26.960243679975548, -12.0}, rounding[] = {1e-15, 1e-15, 1e-15};
        fp_sigma_answer a[3];
        printf("%d", fp_sampled_sigmas(3, rate, count, epsilon, target, rounding, 1e-9, 0, a, NULL));
        for (int i = 0; i < 2; i++)
            printf(" %.17g %.17g %.17g", a[i].value, a[i].lower, a[i].upper);
        printf(" %d", a[2].value > 0.6 && a[2].upper - a[2].lower < 1e-9);
        printf(" %d", fp_sampled_sigmas(3, rate, count, epsilon, target, rounding, 1e-9, 1, a, NULL));
        printf(" %d", a[0].upper > 2.1 && a[0].upper < 2.2 && a[0].lower == 0.0);""",
        [0, *6 * [2.0], 1, 0, 1], 1e-9,
    ),
}


def closure(header, reached=None):
    """The headers that a header includes, directly or through others, and itself."""
    reached = set() if reached is None else reached
    if header not in reached:
        reached.add(header)
        for name in re.findall(r'"(\w+/fp_\w+\.h)"', (CSRC / header).read_text()):
            closure(name, reached)
    return reached


def test_every_solver_has_a_case():
    solvers = {path.relative_to(CSRC).as_posix() for path in CSRC.rglob("*_solver.h")}
    assert solvers
    assert not solvers - {name for header in CASES for name in closure(header)}


@pytest.mark.few(3)
@pytest.mark.parametrize("header", CASES)
def test_solver_without_python(header, tmp_path):
    body, wanted, tolerance = CASES[header]
    program = f'#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n{body}\nreturn 0;\n}}\n'
    command = [COMPILER, *FLAGS, "-O0", "-", "-o", str(tmp_path / "solver"), "-lm"]
    subprocess.run(command, input=program, text=True, check=True)
    out = subprocess.run([str(tmp_path / "solver")], capture_output=True, text=True, check=True).stdout
    assert [float(x) for x in out.split()] == pytest.approx(wanted, rel=tolerance, abs=tolerance), out


@pytest.mark.slow
@pytest.mark.parametrize("third", range(3))
def test_every_header_with_a_guard_compiles_alone(third):
    guarded = [path for path in sorted(CSRC.rglob("*.h")) if f"#ifndef {path.stem.upper()}_H\n" in path.read_text()]
    assert len(guarded) > 40
    command = [COMPILER, *FLAGS, "-fsyntax-only", *map(str, guarded[third::3])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
