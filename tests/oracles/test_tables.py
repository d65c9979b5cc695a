"""Every stored truth keeps its inputs beside it, to the last bit."""

import json
import re

import numpy as np
import pytest

from oracles import pairs_nd
from oracles.mixture_pairs import FAMILIES, made_priors, pairs, priors
from oracles.tables import (
    FOLDER,
    array_from_text,
    array_to_text,
    inputs,
    matrix_from_text,
    matrix_to_text,
    rows,
)

HEXADECIMAL = re.compile(r"(\d+\*)?-?0x[01](\.[0-9a-f]+)?p[+-]\d+")
WITH_INPUTS = ("hockey_stick", "integrals", "notions", "mixtures_nd", "contours")


def test_an_array_comes_back_to_the_last_bit():
    for array in (
        np.array([0.1, 0.1, 0.1, -0.0, 5e-324, 1.7976931348623157e308, -1.5]), np.array([0.3]), np.zeros(0),
        np.array([[1 / 3, 2 / 3, 2 / 3], [1.0, 0.0, -1e-300]]),
    ):
        back = array_from_text(json.loads(json.dumps(array_to_text(array))))
        assert back.shape == array.shape
        assert back.tobytes() == array.tobytes()
    assert array_to_text([0.5, 0.5, 3.0]) == "2*0x1p-1 0x1.8p+1"
    matrices = np.array([[[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 3.0]]])
    assert np.array_equal(matrix_from_text(matrix_to_text(matrices)), matrices)
    with pytest.raises(ValueError, match="the matrices must be symmetric to the last bit"):
        matrix_to_text(np.array([[[1.0, 0.1], [0.2, 1.0]]]))


def words(entry):
    """The words of all strings below an entry."""
    if isinstance(entry, str):
        return entry.split()
    return [word for part in (entry.values() if isinstance(entry, dict) else entry) for word in words(part)]


@pytest.mark.parametrize("table", WITH_INPUTS)
def test_every_row_has_its_inputs_as_hexadecimal_doubles(table):
    assert {row[0] for row in rows(table)} == set(inputs(table))
    for name, entry in inputs(table).items():
        found = words(entry)
        assert found, name
        assert all(HEXADECIMAL.fullmatch(word) for word in found), (name, found[:3])


def test_the_rows_of_the_capacity_hold_hexadecimal_doubles():
    for _, amplitude, _, _, radii, p in rows("awgn_capacity"):
        assert all(HEXADECIMAL.fullmatch(word) for word in [amplitude, *radii.split(), *p.split()])


def test_no_table_is_forgotten():
    assert {path.stem for path in FOLDER.iterdir()} == {*WITH_INPUTS, "awgn_capacity", "far_components"}


def test_the_two_tables_of_pairs_on_the_line_have_the_same_inputs():
    assert inputs("hockey_stick") == inputs("integrals")


def check_near(made, stored, name):
    np.testing.assert_allclose(made, stored, rtol=1e-12, atol=1e-14, err_msg=name)


def test_the_stored_inputs_are_those_that_the_families_describe():
    stored = {pair.name: pair for pair in pairs()}
    made = [pair for family in FAMILIES.values() for pair in family()]
    assert [pair.name for pair in made] == list(inputs("hockey_stick"))
    for pair in made:
        for made_law, stored_law in ((pair.p, stored[pair.name].p), (pair.q, stored[pair.name].q)):
            for ours, theirs in zip(made_law, stored_law, strict=True):
                check_near(ours, theirs, pair.name)
        check_near(pair.grid, stored[pair.name].grid, pair.name)
    for name, prior in made_priors().items():
        for ours, theirs in zip(prior, priors()[name], strict=True):
            check_near(ours, theirs, name)
    assert list(pairs_nd.cases()) == list(inputs("mixtures_nd"))
    for name, laws in pairs_nd.made_laws.items():
        for law, stored_law in zip(laws, (pairs_nd.cases()[name].p, pairs_nd.cases()[name].q), strict=True):
            for part in ("weights", "means", "sigmas", "covariances"):
                ours, theirs = getattr(law, part), getattr(stored_law, part)
                assert (ours is None) == (theirs is None), (name, part)
                if ours is not None:
                    check_near(ours, theirs, f"{name} {part}")
