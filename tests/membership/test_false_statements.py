"""Each counterexample violates the printed statement and satisfies the right form, by sums in 50 digits."""

import doctest
from itertools import product
from pathlib import Path

import pytest
from mpmath import mp, mpf

from fastpriv import DomainError
from fastpriv.studies.papers import accounting_statements, paper_statements

STATEMENTS = paper_statements()
ACCOUNTING = accounting_statements()
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
        "Lemma 3",
        "Theorem 5, identity",
        "Theorem 5, bound",
        "Proposition 7, if",
        "Proposition 7, only if",
        "Proposition 8",
        "Proposition 10",
        "Theorem 12, (1) to (2) and (3)",
        "Theorem 12, (2) to (1)",
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
    assert float(ten.printed_left) == pytest.approx(1.0)
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
    with pytest.raises(DomainError, match=r"^name must be one of Lemma 3, .*; got 'Lemma 4'\. Did you mean Lemma 3\?$"):
        STATEMENTS["Lemma 4"]


def test_the_examples_of_the_documentation():
    path = Path(__file__).parents[2] / "docs" / "membership.md"
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 10
    assert not result.failed


def test_every_accounting_statement_fails_and_every_right_form_holds():
    assert len(ACCOUNTING) == 11
    for one in ACCOUNTING:
        assert one.fails, one.name
        assert one.right_form_holds, one.name


def printed_sides(name):
    one = ACCOUNTING[name]
    return one.printed_left, one.printed_right


def test_counterexamples_in_fractions():
    for name, expected in (("Removal is the worse direction", (mpf(23) / 80, mpf(43) / 160)),
                           ("Worst pair of one step", (mpf(17) / 180, mpf(9) / 100))):
        for side, number in zip(printed_sides(name), expected, strict=True):
            assert abs(float(side.value) - number) < 1e-15
            assert side.lower <= number * (1 + mpf(10) ** -15)
            assert side.upper >= number * (1 - mpf(10) ** -15)


def test_histograms_of_shuffled_reports():
    """All 4^5 lists of reports of the data sets (1, 3, 3, 3, 3) and (2, 3, 3, 3, 3)."""
    ratio, alpha = mpf(739) / 100, mpf(272) / 100
    total = ratio + 3
    tables = [{}, {}]
    for reports in product(range(4), repeat=5):
        for own, table in enumerate(tables):
            chance = mpf(1)
            for value, report in zip((own, 2, 2, 2, 2), reports, strict=True):
                chance *= (ratio if value == report else 1) / total
            counts = tuple(map(reports.count, range(4)))
            table[counts] = table.get(counts, 0) + chance
    delta = sum(max(p - alpha * tables[1][counts], 0) for counts, p in tables[0].items())
    assert contains(printed_sides("Shuffling, counts of two values")[0], delta)


def gaussian_delta(mu, epsilon):
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def test_fixed_size_and_poisson_samples_in_closed_form():
    q, sides = mpf(1) / 8, printed_sides("Fixed size is like Poisson")
    for side, distance in zip(sides, (2, 1), strict=True):
        level = mp.log1p(mp.expm1(1) / q)
        assert contains(side, q * gaussian_delta(mpf(distance) / 2, level))
    level = mp.log1p(mp.expm1(mpf(0.8438)) / q)
    assert contains(printed_sides("Unit of the noise of a sample")[0], q * gaussian_delta(mpf(1), level))


def test_other_counterexamples_in_closed_form():
    half = (1 - mp.exp(mpf(-1) / 2)) / 2
    assert contains(printed_sides("Permute-and-flip is Laplace")[0], half)
    assert contains(printed_sides("Permute-and-flip is Laplace")[1], 1 - mp.exp(mpf(-1) / 4))
    mean = [mp.binomial(4, j) / 16 for j in range(5)]
    apart = sum(w * (2 * mp.ncdf(mpf(j)) - 1) for j, w in enumerate(mean))  # of mixtures that cross once, at 0
    assert contains(printed_sides("With replacement, opposite others")[0], apart)
    for side, mu in zip(printed_sides("Unit of the noise"), (mpf(1) / 2, mpf(1)), strict=True):
        assert gaussian_delta(mu, mpf(float(side.lower))) >= mpf(10) ** -6 * (1 - mpf(10) ** -12)
        assert gaussian_delta(mu, mpf(float(side.upper))) <= mpf(10) ** -6 * (1 + mpf(10) ** -12)


def test_an_adaptive_choice_of_exponential_mechanisms():
    """The second mechanism is the best for the loss that is left: E of its delta over the outcomes of the first."""

    def mechanism(t):
        q = (mp.exp(-t) - mp.exp(-1)) / (1 - mp.exp(-1))
        return q * mp.exp(t), q

    p, _ = mechanism(mpf(1) / 2)
    total = mpf(0)
    for chance, loss, t in ((p, mpf(1) / 2, mpf(3) / 8), (1 - p, -mpf(1) / 2, mpf(7) / 8)):
        likely, unlikely = mechanism(t)
        total += chance * (likely - mp.exp(mpf(1) / 4 - loss) * unlikely)
    assert abs(float(printed_sides("Exponential mechanisms in advance")[0].value) - total) < 1e-13
    assert total > 0.2209
