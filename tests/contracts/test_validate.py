"""Every argument check: what passes, and the sentence a fault gets."""

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.base import validate
from fastpriv.errors import ShapeError


def positive(x):
    return x > 0


def test_real_takes_numbers_of_any_shape():
    assert validate.real("x", 3).dtype == np.float64
    assert validate.real("x", [[1, 2], [3, 4]]).shape == (2, 2)
    assert validate.real("x", np.float32(0.5)) == 0.5
    assert validate.real("x", [True, False]).tolist() == [1.0, 0.0]
    assert validate.real("x", np.inf) == np.inf
    assert validate.real("x", [10**400 // 10**390, 2]).tolist() == [1e10, 2.0]


@pytest.mark.parametrize(
    ("value", "shown", "remedy"),
    [
        ("3", "'3'", r"Convert it with float\(\), or pass a number"), (b"3", "b'3'", "Convert it with float"),
        (["1", "2"], r"\['1', '2'\]", "Pass a noise level"),
        (None, "None", "Pass a noise level"),
        (1j, "1j", "Pass a noise level"),
        (np.array([1j]), "array", "Pass a noise level"),
        ({}, "{}", "Make a list of the numbers"), ({1.0}, "{1.0}", "Make a list of the numbers"),
        (iter([1.0]), "<list_iterator", "Make a list of the numbers"),
        (float, "<class .float.>", "Make a list of the numbers that it holds or gives"),
        (object(), "<object", "Pass a noise level"),
        (np.datetime64("2020-01-01"), "np.datetime64", "Pass a noise level"),
        (10**400, "an integer of 1329 bits", "Pass a number within the range of doubles"),
        (np.nan, "nan", "Pass a noise level"),
        ([1.0, -1.0, 2.0, -2.0], r"-1.0 at index 1 \(2 of 4 entries\)", "Pass a noise level"),
        ([[1.0, np.nan]], r"nan at index \(0, 1\) \(1 of 2 entries\)", "Pass a noise level"),
        ([[1.0], [1.0, 2.0]], r"\[\[1.0\], \[1.0, 2.0\]\]", "Pass a noise level"),
        (np.array([[1.0], [1.0, 2.0]], dtype=object), "array", "Pass a noise level"),
        (np.array(["a"]), "array", "Pass a noise level"),
        (np.array([1, "a"], dtype=object), "array", "Pass a noise level"),
    ],
)
def test_real_names_argument_constraint_value_and_remedy(value, shown, remedy):
    with pytest.raises(DomainError, match=f"^sigma must be positive; got {shown}.*{remedy}"):
        validate.real("sigma", value, "positive", positive, remedy="Pass a noise level.")


@pytest.mark.parametrize(
    ("value", "constraint", "remedy"),
    [
        (-1.0, "at least 0", "Check its sign, and what it was computed from"),
        (0.0, "positive", "Check its sign, and what it was computed from"),
        (np.inf, "positive and finite", "Look where the infinity comes from"),
        (np.nan, "positive", "Remove NaN entries, or fill them with numbers"),
        (95.0, "between 0 and 1", "Divide percentages by 100"),
        (2.0, "at most 1", "Check its unit, and what it was computed from"),
    ],
)
def test_a_number_out_of_range_gets_a_remedy_and_not_the_rule_again(value, constraint, remedy):
    with pytest.raises(DomainError, match=f"x must be {constraint}; got {value!r}. {remedy}"):
        validate.real("x", value, constraint, lambda x: x == 7.0)


def test_entries_that_are_none_are_missing():
    with pytest.raises(DomainError, match=r"x must have no missing values; got None at index 0 \(1 of 2 e"):
        validate.real("x", [None, 1.0])


def test_none_gets_a_remedy():
    with pytest.raises(DomainError, match="x must be a real number; got None. Pass a number, or an array"):
        validate.real("x", None)


def test_long_values_are_cut():
    with pytest.raises(DomainError, match=r"got \['a', .*\.\.\. Pass a number, or an array") as caught:
        validate.real("sigma", ["a"] * 1000)
    assert len(str(caught.value)) < 190


def test_any_value_is_shown_in_a_line():
    class Unseen:
        def __repr__(self):
            raise RuntimeError("no")

    assert validate.shown(Unseen()) == "an object of type Unseen"
    assert validate.shown(np.ones((3, 3))).count("\n") == 0
    assert validate.shown(3**100000) == "an integer of 158497 bits"
    assert validate.shown(2**100000) == "2**100000"
    assert validate.shown(True) == "True"


def test_scalar_and_vector_check_the_shape():
    assert validate.scalar("x", np.array(2)) == 2.0
    assert validate.vector("x", 2).tolist() == [2.0]
    assert validate.vector("x", np.arange(6)[::2]).flags.c_contiguous
    with pytest.raises(ShapeError, match=r"x must be a single number; got an array of shape \(1,\). Pass one number"):
        validate.scalar("x", [1.0])
    with pytest.raises(ShapeError, match=r"x must be one-dimensional; got shape \(1, 2\). Pass a flat sequence"):
        validate.vector("x", [[1.0, 2.0]])
    with pytest.raises(ShapeError, match=r"x must have at least one entry; got an empty sequence. Pass one or more"):
        validate.vector("x", [])
    with pytest.raises(DomainError, match=r"x must be finite numbers; got inf at index 0 \(1 of 1 entries\)"):
        validate.vector("x", [np.inf])


def test_probabilities_are_never_renormalised():
    given = np.array([0.3, 0.7 + 5e-10])
    assert validate.probabilities("weights", given).tobytes() == given.tobytes()
    with pytest.raises(DomainError, match=r"weights must sum to 1 within 1e-09; got a sum of 0\.8.* over 2 entries"):
        validate.probabilities("weights", [0.3, 0.6])
    with pytest.raises(DomainError, match=r"weights must be probabilities between 0 and 1; got -0.5 at index 0"):
        validate.probabilities("weights", [-0.5, 1.5])


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (2.0, "got 2.0. Write 2, without a decimal point"), (2.5, "got 2.5. Pass one integer: round"),
        (np.nan, "got nan. Pass one integer"), (True, "got True. Write the number itself: 1"),
        ("3", "got '3'. Pass one integer"), (None, "got None. Pass one integer"),
        ([3], r"got \[3\]. Pass one integer"), (-3, "got -3. Check its sign"), (0, "got 0. Pass 1 for the"),
        (11, "got 11. Pass 10 for the largest case"), (10**400, "got an integer of 1329 bits. Pass 10"),
    ],
)
def test_what_is_no_count(value, remedy):
    with pytest.raises(DomainError, match=f"^n must be an integer of at least 1 and at most 10; {remedy}"):
        validate.count("n", value, 1, 10)


def test_counts_flags_and_choices():
    assert validate.count("n", np.int64(3)) == 3
    assert validate.flag("f", np.True_) is True
    assert validate.choice("c", "a", ("a", "b")) == "a"
    with pytest.raises(DomainError, match="f must be True or False; got 1. Write True"):
        validate.flag("f", 1)
    with pytest.raises(DomainError, match="f must be True or False; got 'yes'. Write True or False without quotes"):
        validate.flag("f", "yes")
    with pytest.raises(DomainError, match="f must be True or False; got None. Leave it out for the default"):
        validate.flag("f", None)
    with pytest.raises(DomainError, match="c must be one of a, b; got 'd'. Choose one of these"):
        validate.choice("c", "d", ("a", "b"))
    with pytest.raises(DomainError, match="c must be one of a, b; got array"):
        validate.choice("c", np.array(["a", "b"]), ("a", "b"))


def test_sequences_and_paths():
    assert validate.sequence("s", (1, 2), "numbers") == (1, 2)
    for value in (1, "12", None):
        with pytest.raises(DomainError, match="s must be a sequence of numbers; got .*Put a single one in a list"):
            validate.sequence("s", value, "numbers")
    assert validate.text("t", "a") == "a"
    for value in (None, b"a", ["a"]):
        with pytest.raises(DomainError, match="t must be text; got .*Put it in quotes"):
            validate.text("t", value)
    assert [validate.flat("n", value).shape for value in (2, [2, 3])] == [(), (2,)]
    with pytest.raises(ShapeError, match="n must be one-dimensional; got shape"):
        validate.flat("n", [[1.0]])
    assert validate.path("p", b"a/b").name == "b"
    for value in (1, None, "", "a\0b", ["a"]):
        with pytest.raises(DomainError, match="p must be the name of a file or a directory; got .*Pass text or a"):
            validate.path("p", value)


def test_what_does_not_fit_is_refused_before_it_is_made():
    one = np.broadcast_to(1.0, 10**15)
    with pytest.raises(MemoryError, match=r"epsilon of shape \(10+,\) must fit in memory; got a need of 6.4e\+07 GB"):
        validate.real("epsilon", one)
    with pytest.raises(MemoryError, match=r"weights of shape \(10+,\) must fit in memory; got a need of 1e\+07 GB"):
        validate.vector("weights", one)
    column, row = np.broadcast_to(1.0, (10**12, 1)), np.broadcast_to(1.0, (1, 10**12))
    with pytest.raises(MemoryError, match=r"epsilon with sigma of shape .*fewer entries at a time"):
        validate.broadcastable("epsilon", column, "sigma", row)
    with pytest.raises(MemoryError, match=r"channel must fit in memory; got a need of at least 1e301\d+ GB"):
        validate.memory("channel", 2**10_000_000, "Ask for less.")


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (3, 1)), ((5, 1, 2), (4, 3))])
def test_shapes_that_do_not_broadcast(shapes):
    with pytest.raises(ShapeError, match=r"a must be of a shape that broadcasts with b; got \(.*Add axes of length 1"):
        validate.broadcastable("a", np.ones(shapes[0]), "b", np.ones(shapes[1]))


@pytest.mark.parametrize("shapes", [((), (4,)), ((0,), (1,)), ((2, 1), (3,)), ((5, 1, 2), (4, 1)), ((0,), (0,))])
def test_shapes_broadcast_as_numpy_has_them(shapes):
    assert validate._broadcast_shape(*shapes) == np.broadcast_shapes(*shapes)
