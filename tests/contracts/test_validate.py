"""Every argument check: what passes, and the sentence a fault gets."""

import numpy as np
import pytest

from fastpriv import DomainError, ShapeError, _validate


def positive(x):
    return x > 0


def test_real_takes_numbers_of_any_shape():
    assert _validate.real("x", 3).dtype == np.float64
    assert _validate.real("x", [[1, 2], [3, 4]]).shape == (2, 2)
    assert _validate.real("x", np.float32(0.5)) == 0.5
    assert _validate.real("x", [True, False]).tolist() == [1.0, 0.0]
    assert _validate.real("x", np.inf) == np.inf
    assert _validate.real("x", [10**400 // 10**390, 2]).tolist() == [1e10, 2.0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("3", "'3'"), (b"3", "b'3'"), (["1", "2"], r"\['1', '2'\]"), (None, "None"), (1j, "1j"), ({}, "{}"),
        (10**400, "1000"), (np.nan, "nan"), ([1.0, -1.0, 2.0, -2.0], r"-1.0 at index 1 \(2 of 4 entries\)"),
        ([[1.0, np.nan]], r"nan at index \(0, 1\) \(1 of 2 entries\)"),
        ([[1.0], [1.0, 2.0]], r"\[\[1.0\], \[1.0, 2.0\]\]"),
        (np.array(["a"]), "array"), (np.array([1, "a"], dtype=object), "array"),
    ],
)  # fmt: skip
def test_real_names_argument_constraint_value_and_remedy(value, shown):
    with pytest.raises(DomainError, match=f"^sigma must be positive; got {shown}.*Pass a noise level"):
        _validate.real("sigma", value, "positive", positive, remedy="Pass a noise level.")


def test_long_values_are_cut():
    with pytest.raises(DomainError, match=r"got \['a', .*\.\.\. Give") as caught:
        _validate.real("sigma", ["a"] * 1000)
    assert len(str(caught.value)) < 160


def test_scalar_and_vector_check_the_shape():
    assert _validate.scalar("x", np.array(2)) == 2.0
    assert _validate.vector("x", 2).tolist() == [2.0]
    assert _validate.vector("x", np.arange(6)[::2]).flags.c_contiguous
    with pytest.raises(ShapeError, match=r"x must be a single number; got an array of shape \(1,\). Pass one number"):
        _validate.scalar("x", [1.0])
    with pytest.raises(ShapeError, match=r"x must be one-dimensional; got shape \(1, 2\). Pass a flat sequence"):
        _validate.vector("x", [[1.0, 2.0]])
    with pytest.raises(ShapeError, match=r"x must have at least one entry; got an empty sequence. Pass one or more"):
        _validate.vector("x", [])
    with pytest.raises(DomainError, match=r"x must be finite numbers; got inf at index 0 \(1 of 1 entries\)"):
        _validate.vector("x", [np.inf])


def test_probabilities_are_never_renormalised():
    given = np.array([0.3, 0.7 + 5e-10])
    assert _validate.probabilities("weights", given).tobytes() == given.tobytes()
    with pytest.raises(DomainError, match=r"weights must sum to 1 within 1e-09; got a sum of 0\.8.* over 2 entries"):
        _validate.probabilities("weights", [0.3, 0.6])
    with pytest.raises(DomainError, match=r"weights must be probabilities between 0 and 1; got -0.5 at index 0"):
        _validate.probabilities("weights", [-0.5, 1.5])


def test_counts_flags_and_choices():
    assert _validate.count("n", np.int64(3)) == 3
    assert _validate.flag("f", np.True_) is True
    assert _validate.choice("c", "a", ("a", "b")) == "a"
    for value in (2.0, True, "3", None, 0, 11):
        with pytest.raises(DomainError, match="n must be an integer of at least 1 and at most 10; got "):
            _validate.count("n", value, 1, 10)
    with pytest.raises(DomainError, match="f must be True or False; got 1. Pass a bool"):
        _validate.flag("f", 1)
    with pytest.raises(DomainError, match="c must be one of a, b; got 'd'. Choose one of these"):
        _validate.choice("c", "d", ("a", "b"))
    with pytest.raises(DomainError, match="c must be one of a, b; got array"):
        _validate.choice("c", np.array(["a", "b"]), ("a", "b"))
