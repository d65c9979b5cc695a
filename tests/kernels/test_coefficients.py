"""The tables in the headers are what tools/fit_coefficients.py prints."""

import importlib.util
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
HEADERS = "".join(
    (ROOT / "csrc" / name).read_text()
    for name in ("special/fp_elementary.h", "special/fp_erfc.h", "posterior/fp_posterior.h", "gauss/fp_gauss.h")
)


def fits():
    specification = importlib.util.spec_from_file_location("fit_coefficients", ROOT / "tools" / "fit_coefficients.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.TABLES


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "exp_tail", "log_tail", "erfcx_table", "mills_series", "mills_table", "tanh_tail", "atanh_tail",
        "divergence_tail",
    ],
)
def test_table(name):
    fitted, worst = fits()[name]()
    body = re.search(rf"fp_{name}\[\d+\] = \{{(.*?)\}};", HEADERS, re.DOTALL)
    stored = [float.fromhex(term) for term in body[1].replace(",", " ").split()]
    assert stored == [float(term) for term in fitted]
    assert worst < 1e-17


@pytest.mark.parametrize(("name", "least", "most"), [("erfcx", 6.1e-17, 6.2e-17), ("mills", 5.1e-17, 5.2e-17)])
def test_half_lines_with_coefficients_that_are_doubles(name, least, most):
    """Relative error of the fits as they are stored, evaluated without rounding."""
    body = re.search(rf"fp_{name}_table\[24\] = \{{(.*?)\}};", HEADERS, re.DOTALL)[1]
    table = [mpmath.mpf(float.fromhex(term)) for term in body.replace(",", " ").split()]
    limit = mpmath.mpf(float.fromhex("0x1.20dd750429b6dp-1")) if name == "erfcx" else mpmath.mpf(1)
    worst = 0
    for x in [0.0, *(4.0 / (1.0 - t) * 2 - 4.0 for t in np.cos(np.linspace(0.02, np.pi, 300))), 0.01177]:
        x = mpmath.mpf(max(x, 0.0))
        scaled = x if name == "erfcx" else x / mpmath.sqrt(2)
        truth = mpmath.exp(scaled**2) * mpmath.erfc(scaled) * (1 if name == "erfcx" else mpmath.sqrt(mpmath.pi / 2))
        r = 1 / (x + 4)
        fit = r * (limit + r * mpmath.fsum(term * (1 - 8 * r) ** k for k, term in enumerate(table)))
        worst = max(worst, abs(fit / truth - 1))
    assert least < worst < most
