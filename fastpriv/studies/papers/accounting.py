"""What is said of accounting and does not hold, each with a counterexample that runs.

A counterexample is a pair of data sets, or a mechanism, whose delta or epsilon is larger than the statement says. Both
sides are certified values of ``compose``, or sums of fractions over all outcomes that are exact but for one rounding.

Source: the works and programs that the statements name, in ``texts.toml``.
"""

# bounds: proved - roundings of fractions, and of a few exponentials

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product

from ...base.estimate import Estimate, exact
from ...base.numerics import UNIT_ROUNDOFF
from ...composition import compose
from ...distributions import GaussianMixture
from ...mechanisms import GaussianMechanism, LaplaceMechanism, PoissonSampledGaussian, RandomizedResponse
from .false_statements import Game, PaperStatements, make_statement
from .texts import texts_of

# bound: proved - relative to 1, of a sum of at most 256 products of exponentials between 0 and 1
_SUM_ERROR = 2**12 * UNIT_ROUNDOFF

Masses = Mapping[tuple[int, ...], Fraction]


def accounting_statements() -> PaperStatements:
    """Statements of papers, accountants and practice that are false, each with a counterexample that is computed here.

    Returns
    -------
    PaperStatements
        One entry a statement: both sides of it, and of what holds, in one example. It takes about a second.

    Notes
    -----
    **Accuracy** Both sides have proved bounds; ``tests/membership/test_false_statements.py`` checks them against sums
    and integrals of its own.

    Source: the works and programs that the statements name; Lebeda, Regehr, Kamath and Steinke 2024 for the second.

    Examples
    --------
    >>> from fastpriv.studies.papers import accounting_statements
    >>> statements = accounting_statements()
    >>> all(one.fails and one.right_form_holds for one in statements)
    True
    >>> one = statements["Removal is the worse direction"]
    >>> print(f"{one.printed_left.value:.5f} {one.printed_relation} {one.printed_right.value:.5f}")
    0.28750 <= 0.26875
    """
    texts = texts_of("accounting")
    return PaperStatements(tuple(make_statement(name, texts[name], *game()) for name, game in _GAMES.items()))


def _removal_of_responses() -> Game:
    """A Poisson sample at rate 1/2 that answers by randomised response, 3 to 1, twice."""
    steps = compose([([0.5, 0.5], [0.25, 0.75])], [2])
    forward, backward, worst = (steps.delta(math.log(1.1), direction=way) for way in ("forward", "backward", "worst"))
    return (backward, "<=", forward), (backward, "<=", worst)


def _worst_pair_of_one_step() -> Game:
    """Two of five records, geometric noise of ratio 1/2; what lies beyond the two means has one likelihood ratio."""
    base: Masses = {(0,): Fraction(2, 3), (1,): Fraction(1, 6), (2,): Fraction(1, 6)}
    shifted: Masses = {(0,): Fraction(1, 6), (1,): Fraction(1, 6), (2,): Fraction(2, 3)}
    sampled = {key: Fraction(2, 5) * shifted[key] + Fraction(3, 5) * base[key] for key in base}
    twice = _hockey_stick(_product(sampled, sampled), _product(base, base), Fraction(2))
    one_each = _hockey_stick(_product(sampled, base), _product(base, sampled), Fraction(2))
    above, below = sampled[2,], base[2,]
    symmetric: Masses = {(0,): above, (1,): below, (2,): 1 - above - below}
    mirrored: Masses = {(0,): below, (1,): above, (2,): 1 - above - below}
    bound = _hockey_stick(_product(symmetric, symmetric), _product(mirrored, mirrored), Fraction(2))
    return (one_each, "<=", twice), (one_each, "<=", bound)


def _fixed_size() -> tuple[GaussianMixture, GaussianMixture]:
    """A sample of 8 of 64 at sigma 2, whose other records are all opposite to the one that is removed."""
    return GaussianMixture([0.875, 0.125], [0.0, 2.0], 2.0), GaussianMixture.single(0.0, 2.0)


def _like_poisson() -> Game:
    attained = compose(_fixed_size()).delta(1.0, direction="forward")
    bound = _probability(0.125 * _upper(GaussianMechanism(2.0, 2.0).delta(math.log1p(math.expm1(1.0) / 0.125))))
    return (attained, "<=", compose(PoissonSampledGaussian(2.0, 0.125)).delta(1.0)), (attained, "<=", bound)


def _antipodal() -> Game:
    attained = compose(_fixed_size()).delta(1.0, direction="forward")
    pair = tuple(GaussianMixture([0.875, 0.125], [0.0, mean], 2.0) for mean in (1.0, -1.0))
    return (attained, "<=", compose(pair).delta(1.0)), _like_poisson()[1]


def _counts_of_two_values() -> Game:
    """Others all hold a third value: the numbers of reports of the values 1, 2, 3 and others."""
    n, k, ratio, alpha = 5, 4, Fraction(739, 100), Fraction(272, 100)
    p = 1 / (ratio + k - 1)
    others = _counts(n - 1, (p, p, ratio * p, (k - 3) * p))
    first, second = (
        _plus_one(others, probabilities)
        for probabilities in ((ratio * p, p, p, (k - 3) * p), (p, ratio * p, p, (k - 3) * p))
    )
    concrete = _hockey_stick(first, second, alpha)
    pair = _counts(n - 1, (p, p, 1 - 2 * p))
    others_share = 1 - (ratio + 1) * p
    likely, unlikely = (
        _plus_one(pair, probabilities) for probabilities in ((ratio * p, p, others_share), (p, ratio * p, others_share))
    )
    clones = _counts(n - 1, (1 / ratio / 2, 1 / ratio / 2, 1 - 1 / ratio))
    truth, lie = ratio / (ratio + 1), 1 / (ratio + 1)
    above, below = (_plus_one(clones, (*probabilities, Fraction(0))) for probabilities in ((truth, lie), (lie, truth)))
    bounds = _hockey_stick(likely, unlikely, alpha), _hockey_stick(above, below, alpha)
    return (concrete, "<=", bounds[0]), (concrete, "<=", bounds[1])


def _with_replacement() -> Game:
    """Four draws of two records at sigma = s: the other record opposite, or 0."""
    weights = [math.comb(4, j) / 16 for j in range(5)]

    def mixture(step: float) -> GaussianMixture:
        return GaussianMixture(weights, [step * j for j in range(5)], 1.0)

    opposite = compose((mixture(2.0), GaussianMixture.single(0.0, 1.0))).delta(0.0)
    zero = compose((mixture(1.0), mixture(-1.0))).delta(0.0)
    terms = [weights[j] * _upper(GaussianMechanism(1.0, 2.0 * j).delta(0.0)) for j in range(1, 5)]
    return (zero, "<=", opposite), (zero, "<=", _probability(math.fsum(terms)))


def _forgotten_count() -> Game:
    """100 exponential mechanisms of epsilon 1, with losses of 1/2 and -1/2 at most; here with 0.505 and -0.495."""
    steps = compose(_exponential(0.505), 100)
    target = exact(1e-6, 0.0, unit="probability", method="target")
    bound = compose(RandomizedResponse(2, 1.0), 100).delta(1.0058)
    return (steps.delta(1.0058), "<=", target), (steps.delta(1.0058), "<=", bound)


def _chosen_in_advance() -> Game:
    """Two exponential mechanisms of epsilon 1, the second chosen by the outcome of the first, at epsilon 1/4."""
    first = _exponential(0.5)
    second = (_exponential(0.375), _exponential(0.875))
    adaptive = tuple([first[i][j] * second[j][i][m] for j in (0, 1) for m in (0, 1)] for i in (0, 1))
    attained = compose(adaptive).delta(0.25)
    largest = max(_two_in_advance(min(max((0.25 + j) / 3, 0.0), 1.0)) for j in (1, 2, 3))
    return (attained, "<=", _probability(largest)), (attained, "<=", compose(RandomizedResponse(2, 1.0), 2).delta(0.25))


def _permute_and_flip() -> Game:
    """Scores (0, 0) and (-1, 1) of two candidates at epsilon 1; the curve at epsilon 1/2."""
    less = 0.5 * math.exp(-1.0)
    attained = compose(([0.5, 0.5], [less, 1.0 - less])).delta(0.5)
    laplace = compose(LaplaceMechanism(1.0)).delta(0.5)
    return (attained, "=", laplace), (attained, "<=", laplace)


def _unit_of_noise() -> Game:
    """Epsilon at delta = 1e-6 of one release with the noise multiplier 2, where a record is replaced."""
    distance, contribution = (compose(GaussianMechanism(2.0, span)).epsilon(1e-6) for span in (1.0, 2.0))
    return (distance, "=", contribution), (compose(GaussianMechanism(1.0, 1.0)).epsilon(1e-6), "=", contribution)


def _unit_of_sampled_noise() -> Game:
    attained = compose(_fixed_size()).delta(0.8438, direction="forward")
    bound = _probability(0.125 * _upper(GaussianMechanism(2.0, 2.0).delta(math.log1p(math.expm1(0.8438) / 0.125))))
    return (attained, "<=", exact(1e-6, 0.0, unit="probability", method="target")), (attained, "<=", bound)


def _exponential(shift: float) -> tuple[list[float], list[float]]:
    """Exponential mechanism of epsilon 1 with two outcomes of the losses ``shift`` and shift - 1."""
    q = math.exp(-shift) * math.expm1(shift - 1.0) / math.expm1(-1.0)
    p = q * math.exp(shift)
    return [p, 1.0 - p], [q, 1.0 - q]


def _two_in_advance(shift: float) -> float:
    (p, _), (q, _) = _exponential(shift)
    terms = [
        math.comb(2, j) * (p**j * (1 - p) ** (2 - j) - math.exp(0.25) * q**j * (1 - q) ** (2 - j)) for j in (0, 1, 2)
    ]
    return sum(term for term in terms if term > 0)


def _counts(number: int, probabilities: Sequence[Fraction]) -> Masses:
    """Distribution of how many of so many reports have each value."""
    result: Masses = {(0,) * len(probabilities): Fraction(1)}
    for _ in range(number):
        result = _plus_one(result, probabilities)
    return result


def _plus_one(counts: Masses, probabilities: Sequence[Fraction]) -> Masses:
    """The same with one more report of these probabilities."""
    result: dict[tuple[int, ...], Fraction] = {}
    for number, mass in counts.items():
        for j, p in enumerate(probabilities):
            more = (*number[:j], number[j] + 1, *number[j + 1 :])
            result[more] = result.get(more, Fraction(0)) + mass * p
    return result


def _product(first: Masses, second: Masses) -> Masses:
    return {a + b: first[a] * second[b] for a, b in product(first, second)}


def _hockey_stick(p: Masses, q: Masses, alpha: Fraction) -> Estimate:
    """Delta at e^epsilon = alpha, exactly, and rounded once."""
    delta = sum((max(p[key] - alpha * q[key], Fraction(0)) for key in p), Fraction(0))
    return exact(float(delta), float(delta) * UNIT_ROUNDOFF, unit="probability", method="sum of fractions")


def _upper(estimate: Estimate) -> float:
    return float(estimate.upper)


def _probability(value: float) -> Estimate:
    """A sum of a few exponentials."""
    return exact(value, _SUM_ERROR, unit="probability", method="closed form")


# Every statement by its name.
_GAMES: dict[str, Callable[[], Game]] = {
    "Removal is the worse direction": _removal_of_responses,
    "Worst pair of one step": _worst_pair_of_one_step,
    "Fixed size is like Poisson": _like_poisson,
    "Fixed size, antipodal pair": _antipodal,
    "Shuffling, counts of two values": _counts_of_two_values,
    "With replacement, opposite others": _with_replacement,
    "Composed exponential mechanisms": _forgotten_count,
    "Exponential mechanisms in advance": _chosen_in_advance,
    "Permute-and-flip is Laplace": _permute_and_flip,
    "Unit of the noise": _unit_of_noise,
    "Unit of the noise of a sample": _unit_of_sampled_noise,
}
