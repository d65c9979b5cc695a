"""Each constant that all headers use is written once, and only headers of solvers allocate memory."""

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "csrc"


@pytest.mark.parametrize("number", ["3.14159265", "0.91893853", "1.11022302"])
def test_number_stands_once(number):
    places = [path.name for path in CSRC.rglob("*.h") if number in path.read_text()]
    assert places in ([], ["fp_constants.h"])


@pytest.mark.parametrize("name", ["FP_PI", "FP_LOG_SQRT_2PI", "FP_U", "FP_LANES", "FP_LANE_LOOP"])
def test_macro_is_defined_once(name):
    defined = [path.name for path in CSRC.rglob("*.h") if re.search(rf"#define {name}\b", path.read_text())]
    assert len(defined) == 1, defined


def test_only_solvers_allocate():
    call = re.compile(r"\b(?:malloc|calloc|realloc|aligned_alloc|free)\s*\(")
    headers = sorted(CSRC.rglob("*.h"))
    allocate = {path.name for path in headers if call.search(path.read_text())}
    assert allocate or not headers
    wrong = sorted(name for name in allocate if not name.endswith("_solver.h"))
    assert not wrong, f"{wrong} take or release memory: move that to a *_solver.h header, or let the caller do it"
