"""What every result can do: show its numbers, format them, make tables, be compared by value, be pickled."""

import copy
import json
import math
import pickle
import sys
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, Estimate
from fastpriv.base.estimate import Result


def estimate(value, lower, upper, **words):
    return Estimate(value, lower, upper, **({"kind": "certified", "unit": "nats", "method": "a test"} | words))


SCALAR = estimate(0.5, 0.4375, 0.625)
VECTOR = estimate(np.arange(7.0), np.arange(7.0) - 0.125, np.arange(7.0) + 0.125)
GRID = estimate(np.arange(16.0).reshape(2, 8), np.arange(16.0).reshape(2, 8) - 0.5, np.full((2, 8), 20.0))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inner(Result):
    maximum: Estimate


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outer(Result):
    information: Estimate
    curve: Estimate
    inner: Inner
    unknown: Estimate | None = None
    law: np.ndarray | None = None
    cost: dict | None = None


def outer(**changes):
    return Outer(**({"information": SCALAR, "curve": VECTOR, "inner": Inner(SCALAR), "law": np.arange(30)} | changes))


def test_the_repr_of_an_array_has_numbers_and_bounds():
    shown = repr(VECTOR)
    assert shown == (
        "Estimate([0.0, 1.0, 2.0, ..., 4.0, 5.0, 6.0], lower=[-0.125, 0.875, 1.875, ..., 3.875, 4.875, 5.875], "
        "upper=[0.125, 1.125, 2.125, ..., 4.125, 5.125, 6.125], shape=(7,), unit='nats', kind='certified', "
        "method='a test')"
    )
    assert repr(VECTOR[:2]).startswith("Estimate([0.0, 1.0], lower=[-0.125, 0.875], upper=[0.125, 1.125], unit=")
    assert repr(GRID).startswith("Estimate([[0.0, 1.0, 2.0, ..., 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, ..., 13.0,")
    assert "shape=(2, 8)" in repr(GRID)


def test_a_format_shows_the_value_with_bounds():
    assert f"{SCALAR:.2f}" == "0.50 [0.43, 0.63]"
    assert f"{SCALAR:.3g}" == "0.5 [0.437, 0.625]"
    assert f"{SCALAR}" == repr(SCALAR)
    assert f"{VECTOR[:2]:.1f}" == "[0.0, 1.0], lower=[-0.2, 0.8], upper=[0.2, 1.2]"
    with pytest.raises(ValueError, match="Unknown format code 'q'"):
        format(SCALAR, "q")


@pytest.mark.parametrize("spec", [".0f", ".3f", "f", ".0e", ".2e", "e", ".0g", ".1g", ".3g", "g", ".15g", ".3G", ".2E"])
def test_formatted_bounds_never_move_inward(spec):
    rng = np.random.default_rng(0)
    ordinary = rng.normal(size=100) * 10.0 ** rng.integers(-12, 12, 100)
    extreme = rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, 50)
    edges = [0.0, 5e-324, -5e-324, 1.7e308, 9.9996, 0.99951, -0.0995, 1e22, 1e-5, 1e-4]
    places = int(spec[1:-1]) if "." in spec else 6
    for x in [*ordinary.tolist(), *extreme.tolist(), *edges]:
        below, above = format(estimate(x, x, x), spec).partition(" [")[2].rstrip("]").split(", ")
        assert float(below) <= x <= float(above), (x, spec)
        if 1e-300 < abs(x) < 1e300:  # and by no more than one digit of the format
            digits = places + 1 if spec[-1] in "eE" else max(places, 1)
            digit = 10.0**-places if spec[-1] == "f" else abs(x) * 10.0 ** (1 - digits)
            assert float(above) - float(below) <= 1.01 * digit + math.ulp(x), (x, spec)


def test_infinite_bounds_are_formatted():
    assert f"{estimate(1.0, -math.inf, math.inf):.2f}" == "1.00 [-inf, inf]"


class Checked(HTMLParser):
    """Collects the text of cells, and fails where a tag is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def test_a_notebook_shows_a_table():
    cells = Checked(SCALAR._repr_html_()).cells
    assert cells == ["Estimate: nats, certified, a test", "value", "lower", "upper", "0.5", "0.4375", "0.625"]
    cells = Checked(estimate(*(np.arange(50.0) for _ in range(3)), method="<b>")._repr_html_()).cells
    assert "Estimate: nats, certified, <b>" in cells
    assert cells.count("\N{HORIZONTAL ELLIPSIS}") == 4
    assert "49" in cells
    assert "(1, 7)" in Checked(GRID._repr_html_()).cells
    cells = Checked(outer()._repr_html_()).cells
    assert "inner_maximum" in cells
    assert "curve[6]" in cells
    statistical = estimate(1.0, 0.5, 2.0, kind="statistical", confidence=0.95)
    assert "Estimate: nats, statistical at confidence 0.95, a test" in Checked(statistical._repr_html_()).cells


def test_tables_have_a_row_an_entry():
    assert SCALAR.to_frame().to_dict("records") == [
        {"value": 0.5, "lower": 0.4375, "upper": 0.625, "unit": "nats", "kind": "certified", "method": "a test"}
    ]
    assert VECTOR.to_frame()["upper"].tolist() == VECTOR.upper.tolist()
    assert GRID.to_frame().loc[(1, 7), "lower"] == 14.5
    frame = outer().to_frame()
    assert frame["quantity"].tolist() == ["information", *["curve"] * 7, "inner_maximum"]
    assert frame.loc[3, "index"] == (2,)
    assert "index" not in Inner(SCALAR).to_frame()


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(fastpriv.errors.BackendMissingError, match="to_frame needs pandas. Install it with: pip"):
        SCALAR.to_frame()


def test_dictionaries_are_plain():
    found = json.loads(json.dumps(outer().to_dict()))
    assert found["information"]["upper"] == 0.625
    assert found["inner"]["maximum"]["lower"] == 0.4375
    assert found["curve"]["value"] == VECTOR.value.tolist()
    assert found["law"] == list(range(30))
    assert found["unknown"] is None


RESULTS = [
    SCALAR, VECTOR, GRID, outer(), fastpriv.awgn_capacity(1, [1.0, 2.0]),
    fastpriv.conversions.convert("abp", "lip", epsilon=[0.5, 1.0], pi_min=0.4),
]


@pytest.mark.parametrize("one", RESULTS, ids=lambda one: type(one).__name__)
def test_copies_and_pickles_are_equal(one):
    for copied in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert copied == one
        assert hash(copied) == hash(one)
        assert repr(copied) == repr(one)


def test_equality_is_by_value():
    assert estimate(0.5, 0.4375, 0.625, cost={"samples": 3}) == SCALAR
    level = {"kind": "statistical", "confidence": 0.9}
    for other in ({"unit": "bits"}, {"kind": "exact"}, {"method": "another"}, level):
        assert estimate(0.5, 0.4375, 0.625, **other) != SCALAR
    assert estimate(0.5, 0.4375, math.nextafter(0.625, 1)) != SCALAR
    assert estimate([0.5], [0.4375], [0.625]) != SCALAR
    assert SCALAR != 0.5
    assert VECTOR[1] == estimate(1.0, 0.875, 1.125)
    assert VECTOR[:3] != VECTOR
    assert hash(estimate(0.0, -0.0, 0.0)) == hash(estimate(-0.0, 0.0, -0.0))
    assert outer() == outer(cost={"seconds": 3.0})
    assert outer() != outer(law=np.arange(1, 31))
    assert outer() != outer(inner=Inner(VECTOR))
    assert Inner(SCALAR) != SCALAR
    assert len({SCALAR, VECTOR, outer(), outer()}) == 3


def test_a_result_shows_its_numbers():
    assert repr(Inner(SCALAR)) == "Inner(maximum=0.5 [0.4375, 0.625])"
    assert f"{Inner(SCALAR):.2f}" == "Inner(maximum=0.50 [0.43, 0.63])"
    shown = repr(outer(curve=VECTOR[:1]))
    assert shown == (
        "Outer(information=0.5 [0.4375, 0.625], curve=[0], lower=[-0.125], upper=[0.125], "
        "inner=Inner(maximum=0.5 [0.4375, 0.625]), law=<array of shape (30,), int64>)"
    )


def test_numbers_as_floats_and_as_arrays():
    assert SCALAR.floats() == (0.5, 0.4375, 0.625)
    value, lower, upper = GRID.arrays()
    assert value.shape == lower.shape == upper.shape == (2, 8)
    assert [array.shape for array in SCALAR.arrays()] == [()] * 3
    with pytest.raises(fastpriv.errors.ShapeError, match=r"must be a scalar to give floats; got shape \(7,\)"):
        VECTOR.floats()


def test_an_estimate_still_refuses_what_is_no_number():
    with pytest.raises(DomainError, match="value must be a number"):
        estimate("1", 0.0, 2.0)
