"""Entries that are masked, missing or no numbers are refused, of every kind; test_public_calls.py asks all calls."""

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import (
    Channel,
    DomainError,
    notions,
)
from fastpriv.base.validate import array, integers, real

# Logarithms between 0 and 1 are rare outside of these tests, and warned of.
pytestmark = pytest.mark.filterwarnings("ignore:.*must hold natural logarithms:UserWarning")


def absent():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    return {
        "Int64": pandas.Series([1, None], dtype="Int64"), "Float64": pandas.array([0.5, None], dtype="Float64"),
        "boolean": pandas.array([True, None], dtype="boolean"), "string": pandas.array(["a", None], dtype="string"),
        "category": pandas.Categorical([1, None]), "frame": pandas.DataFrame({"a": pandas.array([1, None])}),
        "index": pandas.Index([1, None], dtype="Int64"), "arrow in pandas": pandas.Series([1.0, None],
                                                                                        dtype="double[pyarrow]"),
        "times": pandas.to_datetime(["2020", None]), "arrow": arrow.array([1, None]),
        "arrow chunks": arrow.chunked_array([[1.0], [None]]), "arrow words": arrow.array(["a", None]),
        "arrow booleans": arrow.array([True, None]), "list": [1.0, pandas.NA], "NaT": [pandas.NaT, 1.0],
        "objects": np.array([1.0, pandas.NA], dtype=object),
        "masked objects": np.array([1.0, np.ma.masked], dtype=object),
        "nested": [np.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, 2.0]], "deep": ([1.0, [np.ma.masked]],),
        "records": np.ma.array(np.zeros(2, dtype="i4,f4"), mask=[(0, 0), (0, 1)]),
    }


@pytest.mark.slow
def test_missing_values_of_every_kind():
    for name, value in absent().items():
        with pytest.raises(DomainError, match="x must have no missing values; got .* at index .*Fill them in"):
            array("x", value)
        with pytest.raises(DomainError, match="x must have no missing values; got"):
            real("x", value)
        with pytest.raises(DomainError, match="x must have no missing values; got"):
            integers("x", value)
        if name in ("Int64", "Float64", "category", "index", "arrow in pandas", "arrow", "arrow chunks", "arrow words"):
            with pytest.raises(DomainError, match="data must have no missing values"):
                fp.assess(value, mechanism="rr", level=[1.0], epsilon=[1.0])
    try:
        import polars
    except ImportError:
        return
    with pytest.raises(DomainError, match="x must have no missing values"):
        array("x", polars.Series([1, None]))


@pytest.mark.parametrize("likelihood", [np.ma.array([0.5, 0.5], mask=[0, 1]), [0.5, None]])
def test_what_is_missing_is_refused_when_a_posterior_looks_at_it(likelihood):
    for made in (
        lambda: fp.channels.DenseLikelihood(likelihood), lambda: fp.channels.ShardedLikelihood([likelihood, [0.0]]),
        lambda: fp.channels.ProductLikelihood([likelihood, [0.0, -1.0]], [1, 2]),
        lambda: lambda: iter([[0.5, 0.5], likelihood]),
        lambda: fp.channels.IndexLikelihood(lambda d: likelihood, 2),
    ):
        with pytest.raises(DomainError, match="must have no missing values; got"):
            fp.posterior(made())


@pytest.mark.parametrize("value", [
    [1 + 0j, 2], np.array(["2020", "2021"], dtype="M8[Y]"), np.array([1, 2], dtype="m8[s]"), ["1", "2"],
    np.zeros(2, dtype="i4,f4"), np.array([b"1", b"2"]), np.array([1, "2"], dtype=object), [1, [2, 3]],
    np.array([np.timedelta64(1, "s"), 1], dtype=object), np.array([np.complex128(1), 1], dtype=object), [{}, {}],
    np.array([np.datetime64("2020"), 1], dtype=object), np.array([bytearray(b"1"), 1], dtype=object),
])
def test_what_is_no_number_is_not_made_one(value):
    with pytest.raises(DomainError, match="x must be a real number; got"):
        real("x", value)
    with pytest.raises(ValueError, match="x must be (integers from|an array with rows of one length; got)"):
        integers("x", value)


def test_ufuncs_keep_the_mask():
    hidden = np.ma.array([0.25, 0.5, 0.75], mask=[0, 1, 0])
    for name in fp.special.__all__:
        function = getattr(fp.special, name)
        if function.signature is not None:
            continue
        with np.errstate(all="ignore"):
            answer = function(*[hidden] * function.nin)
        for one in answer if isinstance(answer, tuple) else (answer,):
            assert np.ma.getmaskarray(one).tolist() == [False, True, False], name
    with pytest.raises(ValueError):
        fp.special.log_sum_exp(hidden)


@pytest.mark.parametrize(
    "value", [1.5, [0.5, 1.0], [0, 2.5], [np.nan], [np.inf], [True], ["1"], [-1], [9], [1j], [2.0**60]]
)
def test_indices_are_whole_and_in_range(value):
    calls = {
        "x": lambda: integers("x", value, 0, 5), "secrets": lambda: Channel(np.eye(6)).sample(value),
        "indices": lambda: fp.channels.DefaultLikelihood(6, -1.0, value, [0.0]),
        "indices ": lambda: fp.channels.DefaultLikelihood(2**200, -1.0, value if value != [9] else [-9], [0.0]),
        "subset": lambda: fp.channels.rank_of_subset(np.atleast_1d(np.array(value)), 6),
        "rank": lambda: fp.channels.subset_of_rank(value, 6, 1),
        "secret": lambda: notions.abp(None, np.eye(6), secret=value),
        "post": lambda: Channel(np.eye(6)).then(np.resize(np.array(value), 6)) if value not in ([9], [2.0**60]) else
        integers("x", 9, 0, 5),
    }
    for name, call in calls.items():
        with pytest.raises(DomainError, match=" must be .*; got") as caught:
            call()
        text = str(caught.value)
        assert name.strip() in text.partition(" must")[0] or text.startswith("x must"), text


def test_whole_floats_are_indices():
    assert integers("x", [0.0, 3.0], 0, 5).tolist() == [0, 3]
    assert integers("x", [2.0, 2**70], 0, 2**80).tolist() == [2, 2**70]
    assert integers("x", [], 0, 5).dtype == np.int64
    assert integers("x", np.array([2**63], dtype=np.uint64), 0, 2**80).tolist() == [2**63]
    assert integers("x", np.array([3], dtype=np.uint8), 0, 2**80).tolist() == [3]
    with pytest.raises(DomainError, match="x must be integers from 0 to 9223372036854775807; got 9223372036854775808"):
        integers("x", np.array([2**63], dtype=np.uint64))
    with pytest.raises(DomainError, match=r"got 0.5 at index \(1, 0\) \(1 of 4 entries\). Pass whole numbers, rounded"):
        integers("x", [[0, 1], [0.5, 3]])
    found, meant = (fp.channels.DefaultLikelihood(1000, -1.0, x, [0.0, -2.0]) for x in ([1.0, 5.0], [1, 5]))
    assert found == meant


@pytest.mark.parametrize("neighbours", [
    np.ma.array([0.0, 1.0], mask=[0, 1]), [0.0, np.ma.masked], [np.ma.array([0.0], mask=[1])],
])
def test_masked_neighbours_are_refused(neighbours):
    for mechanism in (fp.GaussianMechanism(1.0), lambda rng, n, secret: rng.normal(np.mean(secret), size=n)):
        with pytest.raises(fp.DomainError, match="neighbours must have no missing values; got a masked entry"):
            fp.notions.robust_accuracy(mechanism, neighbours, 0.0, 1.0, rng=1)
    plain = fp.notions.robust_accuracy(fp.GaussianMechanism(1.0), [0.0, 1.0], 0.0, 1.0)
    unmasked = fp.notions.robust_accuracy(fp.GaussianMechanism(1.0), np.ma.array([0.0, 1.0], mask=False), 0.0, 1.0)
    np.testing.assert_array_equal(unmasked.per_neighbour.value, plain.per_neighbour.value)
