"""Each counterexample violates the printed statement and satisfies the right form, by sums in 50 digits."""

import doctest
from itertools import product
from pathlib import Path

import pytest
from mpmath import mp, mpf

from fastpriv import DomainError
from fastpriv.studies.papers import paper_statements

STATEMENTS = paper_statements()
mp.dps = 50


def entropy(table):
    total = sum(table.values())
    return -sum(p / total * mp.log(p / total) for p in table.values() if p)


def tables(rows, prior):
    """Joint distribution, and both marginals, of (b, r) for dictionaries P(r | b) and theta(b)."""
    joint, output = {}, {}
    for b, p in prior.items():
        for r, q in rows(b).items():
            joint[b, r] = joint.get((b, r), 0) + p * q
            output[r] = output.get(r, 0) + p * q
    return joint, output


def contains(estimate, truth):
    return mpf(float(estimate.lower)) <= truth <= mpf(float(estimate.upper))


def test_every_statement_fails_and_every_right_form_holds():
    assert [one.name for one in STATEMENTS] == [
        "Lemma 3", "Theorem 5, identity", "Theorem 5, bound", "Proposition 7, if", "Proposition 7, only if",
        "Proposition 8", "Proposition 10", "Theorem 12, (1) to (2) and (3)", "Theorem 12, (2) to (1)",
    ]
    for one in STATEMENTS:
        assert one.fails, one.name
        assert one.right_form_holds, one.name


def test_a_statement_that_is_true_does_not_fail():
    one = STATEMENTS["Lemma 3"]
    fields = {name: getattr(one, name) for name in one.__dataclass_fields__}
    true = type(one)(**fields | {"printed_left": one.printed_right})
    assert not true.fails
    broken = type(one)(**fields | {"right_left": one.printed_right})
    assert not broken.right_form_holds
    for relation, fails in (("<=", True), (">=", False)):
        assert type(one)(**fields | {"printed_relation": relation}).fails is fails
        assert type(one)(**fields | {"right_left": one.printed_right, "right_relation": relation}).right_form_holds is (
            relation == "<="
        )


def test_entropies_of_lemma_3_and_the_bound_of_theorem_5():
    assert contains(STATEMENTS["Lemma 3"].printed_left, 2 * mp.log(2))
    assert contains(STATEMENTS["Lemma 3"].printed_right, mp.log(2))
    # the determinant of 2 pi e (Cov + I/12): eigenvalues 1/2 + 1/12 and 1/12
    bound = mp.log((2 * mp.pi * mp.e) ** 2 * (mpf(1) / 2 + mpf(1) / 12) / 12) / 2
    assert contains(STATEMENTS["Theorem 5, bound"].right_right, bound)


def test_composition_of_theorem_5():
    panel = [(1, 1), (1, 0), (0, 1), (1, 1)]
    prior = {b: mpf(1) / 15 for b in product((0, 1), repeat=4) if any(b)}

    def release(b, columns):
        return tuple(mpf(sum(x * row[j] for x, row in zip(b, panel, strict=True))) / sum(b) for j in columns)

    def risk(columns):
        joint, output = tables(lambda b: {release(b, columns): mpf(1)}, prior)
        return entropy(joint) - entropy(output), entropy(output)

    both, alone = risk((0, 1)), [risk((j,)) for j in (0, 1)]
    one = STATEMENTS["Theorem 5, identity"]
    assert both[0] > 0.01
    assert contains(one.printed_left, both[0])
    assert contains(one.printed_right, alone[0][0] + alone[1][0])
    right = alone[0][0] + alone[1][0] - entropy(prior) + alone[0][1] + alone[1][1] - both[1]
    assert contains(one.right_right, right)
    assert abs(right - both[0]) < 1e-40


def test_losses_of_proposition_7():
    only_if = STATEMENTS["Proposition 7, only if"]
    assert contains(STATEMENTS["Proposition 7, if"].printed_left, -mp.log(mpf("0.9")) - mp.log(mpf("0.1")))
    assert contains(only_if.printed_left, mpf("0.695"))
    signal = {(0, 0): mpf("0.99"), (0, 1): mpf("0.01"), (1, 0): mpf("0.4"), (1, 1): mpf("0.6")}
    sums = {w: signal[0, w] + signal[1, w] for w in (0, 1)}
    assert contains(only_if.right_left, 2 * (entropy(signal) - entropy(sums)))


def test_generator_and_xor():
    assert float(STATEMENTS["Proposition 8"].printed_left) == 1.0
    assert contains(STATEMENTS["Proposition 8"].printed_right, (mp.exp(5) - 1 + 2 * mpf(0.1)) / (mp.exp(5) + 1))
    ten = STATEMENTS["Proposition 10"]
    assert float(ten.printed_left) == 1.0
    assert contains(ten.right_left, mp.log(mpf("0.6") / mpf("0.4")))
    assert contains(ten.right_right, -2 * mp.log(mpf("0.8")))
    assert "within 1 of it" in ten.printed  # the marginal posteriors are the priors


def test_channels_of_theorem_12():
    def information(q, rows):
        prior = {0: 1 - q, 1: q}
        joint, output = tables(lambda b: rows[b], prior)
        return entropy(output) + entropy(prior) - entropy(joint)

    symmetric = {0: {0: mpf("0.9"), 1: mpf("0.1")}, 1: {0: mpf("0.1"), 1: mpf("0.9")}}
    erasure = {0: {0: mpf("0.6"), 2: mpf("0.4")}, 1: {1: mpf("0.6"), 2: mpf("0.4")}}
    for k in range(1, 400):
        q = mpf(k) / 400
        assert information(q, erasure) > information(q, symmetric)
    first = STATEMENTS["Theorem 12, (1) to (2) and (3)"]
    assert contains(first.printed_left, mpf("0.8"))
    assert contains(first.printed_right, mpf("0.6"))
    second = STATEMENTS["Theorem 12, (2) to (1)"]
    known = mp.log(2) - information(mpf("0.5"), symmetric)
    assert contains(second.printed_left, 2 * known)
    assert contains(second.printed_right, known + mp.log(2))


def test_the_table():
    assert len(STATEMENTS) == len(STATEMENTS.rows()) == 9
    assert all(len(row) == len(STATEMENTS.columns()) for row in STATEMENTS.rows())
    assert {row[1] for row in STATEMENTS.rows()} == {"false"}
    assert "right: " in repr(STATEMENTS)
    with pytest.raises(DomainError, match=r"^name must be one of 'Lemma 3'.*; got 'Lemma 4'\. Take one of them\.$"):
        STATEMENTS["Lemma 4"]


def test_the_examples_of_the_documentation():
    path = Path(__file__).parents[2] / "docs" / "membership.md"
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 10
    assert not result.failed
