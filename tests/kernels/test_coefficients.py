"""The tables in the headers are what tools/fit_coefficients.py prints."""

import importlib.util
import re
from pathlib import Path

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
