"""Each constant that all headers use is written once."""

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
