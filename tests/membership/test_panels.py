"""Panels: bits, names, choices, and what is refused."""

import pickle

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import Panel


@pytest.fixture
def values():
    return np.random.default_rng(0).random((11, 37)) < 0.4


@pytest.fixture
def panel(values):
    return Panel(values, people=[f"p{k}" for k in range(11)], attributes=[f"s{j}" for j in range(37)])


def test_bits_are_packed_from_the_least_significant_one(values, panel):
    np.testing.assert_array_equal(panel.packed, np.packbits(values, axis=1, bitorder="little"))
    np.testing.assert_array_equal(panel.to_array(), values)
    assert (panel.packed[:, -1] >> 5 == 0).all()
    assert (panel.n_people, panel.n_attributes) == values.shape


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.float32, float, object, bool])
def test_numbers_of_any_kind(values, kind):
    assert Panel(values.astype(kind)) == Panel(values)
    assert Panel(values.astype(int).tolist()) == Panel(values)


def test_panels_are_immutable_values_and_small_when_pickled(values, panel):
    wide = Panel(np.random.default_rng(0).random((100, 8000)) < 0.5)
    data = pickle.dumps(wide)
    assert len(data) < 102_000, "bits, not bytes"
    assert pickle.loads(data) == wide
    assert pickle.loads(pickle.dumps(panel)) == panel
    assert hash(pickle.loads(pickle.dumps(panel))) == hash(panel)
    assert panel != Panel(values)
    assert panel.packed.nbytes == 11 * 5
    with pytest.raises(ValueError, match="read-only"):
        panel.packed[0, 0] = 1
    with pytest.raises(AttributeError, match="Panel is immutable"):
        panel.packed = None
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(panel)).packed[0, 0] = 1


def test_the_callers_array_is_not_kept(values):
    packed = np.packbits(values, axis=1, bitorder="little")
    panel = Panel.from_packed(packed, 37)
    packed[:] = 0
    np.testing.assert_array_equal(panel.to_array(), values)
    packed.setflags(write=False)
    assert Panel.from_packed(packed, 37).packed is packed


def test_frequencies(values, panel):
    np.testing.assert_array_equal(panel.frequencies(), values.sum(axis=0) / 11)


def test_selections(values, panel):
    np.testing.assert_array_equal(panel.select(people=[3, 1]).to_array(), values[[3, 1]])
    np.testing.assert_array_equal(panel.select(attributes=[36, 0, 8]).to_array(), values[:, [36, 0, 8]])
    found = panel.select(people=["p10", "p2"], attributes=["s9", "s10", "s8"])
    np.testing.assert_array_equal(found.to_array(), values[[10, 2]][:, [9, 10, 8]])
    assert found.people.tolist() == ["p10", "p2"]
    assert found.attributes.tolist() == ["s9", "s10", "s8"]
    np.testing.assert_array_equal(panel.select(attributes=slice(1, None, 2)).to_array(), values[:, 1::2])
    mask = np.arange(11) % 3 == 0
    np.testing.assert_array_equal(panel.select(people=mask).to_array(), values[mask])
    assert panel.select() == panel


def test_selections_that_are_refused(panel, values):
    with pytest.raises(DomainError, match=r"people must be names of the panel; got 'x' \(1 of 2 are unknown\)"):
        panel.select(people=["p1", "x"])
    with pytest.raises(DomainError, match="people must be numbers, as the panel has no names of its people; got 'p1'"):
        Panel(values).select(people=["p1"])
    with pytest.raises(DomainError, match="attributes must be integers from 0 to 36; got 37"):
        panel.select(attributes=[0, 37])
    with pytest.raises(DomainError, match="people must be at least one; got an empty choice"):
        panel.select(people=[False] * 11)
    with pytest.raises(DomainError, match="people must be different ones; got a repeated one among 2"):
        panel.select(people=[1, 1])
    with pytest.raises(ShapeError, match="people must be a mask of 11 entries; got 10"):
        panel.select(people=[True] * 10)
    with pytest.raises(ShapeError, match=r"people must be a flat sequence; got shape \(\)"):
        panel.select(people=3)
    twice = Panel(values[:, :3], attributes=["a", "b", "a"])
    assert twice.select(attributes=["b"]).n_attributes == 1
    with pytest.raises(DomainError, match="attributes must be names that stand for one each; got 'a', which several"):
        twice.select(attributes=["a"])


def test_entries_that_are_no_bits(values):
    genotypes = values.astype(int)
    genotypes[4, 7] = 2
    with pytest.raises(DomainError, match=r"values must be binary, 0 or 1; got 2 for person 'p4' at attribute 's7' \("):
        Panel(genotypes, people=[f"p{k}" for k in range(11)], attributes=[f"s{j}" for j in range(37)])
    with pytest.raises(DomainError, match=r"got 2 for person 4 at attribute 7 .*values >= 1 for carriers"):
        Panel(genotypes)
    missing = values.astype(float)
    missing[4, 7] = np.nan
    with pytest.raises(DomainError, match=r"values must be .*got nan for person 4 at attribute 7 .*Missing entries ha"):
        Panel(missing)
    with pytest.raises(DomainError, match="values must have no missing values; got a masked entry"):
        Panel(np.ma.masked_array(values, mask=missing != missing))
    with pytest.raises(DomainError, match="values must be a real number; got"):
        Panel([["0", "1"]])


def test_shapes_and_names_that_are_refused(values):
    for wrong in ([1, 0], [[]], np.zeros((0, 3)), np.zeros((2, 2, 2))):
        with pytest.raises(ShapeError, match="values must be a matrix with one row a person and one column an attribu"):
            Panel(wrong)
    with pytest.raises(ShapeError, match="people must be 2 names, one for each; got 3"):
        Panel([[1], [0]], people=["a", "b", "c"])
    with pytest.raises(DomainError, match=r"people must have different names; got 'a' more than once \(1 repeats amon"):
        Panel([[1], [0]], people=["a", "a"])
    with pytest.raises(DomainError, match="people must be a sequence of names; got 'ab'"):
        Panel([[1], [0]], people="ab")


def test_packed_bits_that_are_refused():
    with pytest.raises(ShapeError, match=r"bits must have one row a person, of 2 bytes for 9 attributes; got shape \("):
        Panel.from_packed([[1]], 9)
    with pytest.raises(DomainError, match="bits must be 0 beyond the last of 9 attributes; got 2 as last byte of row "):
        Panel.from_packed([[255, 1], [0, 2]], 9)
    with pytest.raises(DomainError, match="bits must be integers from 0 to 255; got 256"):
        Panel.from_packed([[256]], 8)
    with pytest.raises(DomainError, match="n_attributes must be an integer of at least 1.*; got 0"):
        Panel.from_packed([[1]], 0)


def test_products_and_counts_that_are_refused(panel):
    with pytest.raises(ShapeError, match=r"x must have one row an attribute, here 37; got shape \(3, 37\). Transpose"):
        panel.products(np.ones((3, 37)))
    with pytest.raises(ShapeError, match=r"x must have one row an attribute, here 37; got shape \(\)"):
        panel.products(1.0)
    wrong = np.ones((37, 5))
    wrong[30, 2] = np.inf
    for layout in (wrong, wrong.T.copy().T):
        with pytest.raises(DomainError, match=r"x must be finite numbers; got inf at index \(30, 2\)"):
            panel.products(layout)
    with pytest.raises(DomainError, match=r"x must be finite numbers; got nan at index 3 \(1 of 37"):
        panel.products([1.0, 1.0, 1.0, np.nan] + [1.0] * 33)
    with pytest.raises(ShapeError, match=r"membership must have one entry a person, here 11; got shape \(12,\)"):
        panel.counts([True] * 12)
    with pytest.raises(DomainError, match="membership must be 0 or 1, or True or False; got 2"):
        panel.counts([2] * 11)
    with pytest.raises(ShapeError, match=r"membership must have at most two axes; got shape \(1, 1, 11\)"):
        panel.counts(np.ones((1, 1, 11), dtype=bool))


def test_references_that_are_in_the_pool(values, panel):
    others = Panel(~values, people=[f"q{k}" for k in range(11)], attributes=panel.attributes)
    found = panel.overlap(others)
    assert found.people == []
    assert found.rows.shape == (0, 2)
    panel.require_disjoint(others)
    mixed = others.to_array()
    mixed[3] = values[8]
    same = Panel(mixed, people=others.people)
    assert panel.overlap(same).rows.tolist() == [[8, 3]]
    with pytest.raises(DomainError, match="got identical rows, of person 'p8' and of reference 'q3' .1 of 11 people."):
        panel.require_disjoint(same)
    panel.require_disjoint(same, same_rows=True)
    named = Panel(~values, people=["p5", *[f"q{k}" for k in range(10)]])
    assert panel.overlap(named).people == ["p5"]
    with pytest.raises(DomainError, match="references must be other people than those of the panel; got 'p5' in both"):
        panel.require_disjoint(named, same_rows=True)
    with pytest.raises(ShapeError, match="references must have the 37 attributes of the panel; got 36"):
        panel.overlap(others.select(attributes=slice(36)))
    with pytest.raises(DomainError, match="references must have the attributes of the panel, in its order; got 's1' i"):
        panel.overlap(others.select(attributes=[1, 0, *range(2, 37)]))
    with pytest.raises(DomainError, match="references must be a Panel; got"):
        panel.overlap(values)
