"""Kernels refuse arrays whose shapes do not fit, before they read or write anything."""

import numpy as np
import pytest

from fastpriv.kernels import _contour, _hockey_stick_curves, _quadrature, _type_sums
from fastpriv.studies.kernels import _bit_matrix, _layered_model, _membership_gibbs

ONE, TWO, NONE = np.ones(1), np.ones(2), np.empty(0)
D, X = np.zeros((9, 2), dtype=np.uint8), np.zeros((12, 3))
B = np.zeros((4, 2), dtype=np.uint8)
WIDTHS = (3, 2)  # softmax regression: 8 parameters
RECORDS, LABELS = np.zeros((4, 3)), np.array([0, 1, 1, 0])


def counts(shape):
    return np.zeros(shape, dtype=np.int64)


def add_products(d=D, attributes=12, x=X, out=(9, 3), block=(0, 9, 0, 3)):
    _bit_matrix.add_products(d, attributes, x, np.zeros(out), *block)


def gradients(labels, widths=WIDTHS, weights=8, records=RECORDS):
    return _layered_model.summed_gradient(widths, 0, np.zeros(weights), records, labels, 1.0, 1.0)


def pairs(p=(ONE, ONE, ONE), q=(ONE, ONE, ONE)):
    return _hockey_stick_curves.pair_curve(*p, *q, ONE, 1e-9, False)


def stacks(p=((3, 2),) * 3, levels=(3, 1), rows=(0, 1, 2), shape=(3,), out=(3, 1, 6), cost=(3, 6), dtype=float):
    fields = tuple(np.ones(one, dtype) for one in p)
    _hockey_stick_curves.stack_curves(
        fields, fields, np.ones(levels), np.array(rows), shape, 1e-9, False, np.inf, np.zeros(out), counts(cost)
    )


def integrals(p=((3, 2),) * 3, q=((3, 2),) * 3, kind="kl", order=None, out=3, status=3, cost=None):
    columns = [None if one is None else np.ones(one) for one in (*p, *q)]
    bits = [np.zeros(n, dtype=np.intc) for n in (status, 3)]
    _quadrature.stack_integrals(
        _quadrature.KINDS[kind], *columns, order, np.zeros(3), np.zeros(out), np.zeros(3), *bits,
        cost=None if cost is None else counts(cost),
    )


def contour(add):
    add(_contour.ContourSums(1))


def twice(sums):
    sums.add_laplace(1.0, 1.0, 1.0)
    sums.add_laplace(1.0, 1.0, 1.0)


#: pattern of the error -> calls
WRONG = {
    "shapes must fit: d .n, bytes of the attributes., x": [
        lambda: add_products(x=X[:8]), lambda: add_products(d=D[:, :1].copy()), lambda: add_products(attributes=17),
        lambda: add_products(out=(8, 3)), lambda: add_products(out=(9, 2)), lambda: add_products(block=(0, 10, 0, 3)),
        lambda: add_products(block=(0, 9, 0, 4)), lambda: add_products(block=(-1, 9, 0, 3)),
        lambda: add_products(block=(0, 9, -1, 3)), lambda: add_products(block=(0, 9, 3, 0)),
    ],
    "shapes must fit: b .releases, bytes of the people": [
        lambda: _bit_matrix.counts(B[:, :1].copy(), D, 12, counts((4, 12)), 0, 12),
        lambda: _bit_matrix.counts(B, D, 17, counts((4, 17)), 0, 17),
        lambda: _bit_matrix.counts(B, D, 12, counts((3, 12)), 0, 12),
        lambda: _bit_matrix.counts(B, D, 12, counts((4, 11)), 0, 12),
        lambda: _bit_matrix.counts(B, D, 12, counts((4, 12)), 0, 13),
        lambda: _bit_matrix.counts(B, D, 12, counts((4, 12)), 4, 12),
        lambda: _bit_matrix.counts(B, D, 12, counts((4, 12)), -8, 12),
    ],
    "shapes must fit: d .n, bytes of the attributes., out .n, n": [
        lambda: _bit_matrix.add_gram(D, counts((8, 8)), 0, 8), lambda: _bit_matrix.add_gram(D, counts((9, 8)), 0, 9),
        lambda: _bit_matrix.add_gram(D, counts((9, 9)), 0, 10), lambda: _bit_matrix.add_gram(D, counts((9, 9)), -1, 9),
    ],
    "labels must have a class of the model for each record": [
        lambda: _layered_model.losses(np.zeros((4, 2)), LABELS[:3]),
        lambda: _layered_model.losses(np.zeros((4, 2)), np.array([0, 1, 2, 0])),
        lambda: _layered_model.losses(np.zeros((4, 2)), np.array([0, -1, 1, 0])),
        lambda: _layered_model.losses(np.zeros((4, 0)), LABELS),
        lambda: gradients(LABELS[:3]), lambda: gradients(LABELS + 1), lambda: gradients(LABELS - 1),
        lambda: _layered_model.per_example_gradients(WIDTHS, 0, np.zeros(8), RECORDS, LABELS + 1),
        lambda: _layered_model.descent(WIDTHS, 0, np.zeros(8), RECORDS, LABELS + 1, 1.0, 1.0, 1, 0.1),
        lambda: _layered_model.matching(WIDTHS, 0, np.zeros(8), RECORDS, LABELS + 1, None, np.zeros(8)),
        lambda: _layered_model.matching(WIDTHS, 0, np.zeros(8), RECORDS, LABELS[:3], None, np.zeros(8)),
    ],
    "records must have the width of the first layer": [
        lambda: gradients(LABELS, records=RECORDS[:, :2].copy()),
        lambda: _layered_model.logits(WIDTHS, 0, np.zeros(8), np.zeros((4, 2))),
    ],
    "records and target must fit the layers": [
        lambda: _layered_model.matching(WIDTHS, 0, np.zeros(8), RECORDS, LABELS, None, np.zeros(7)),
    ],
    "logits must have a row for each record": [
        lambda: _layered_model.matching(WIDTHS, 0, np.zeros(8), RECORDS, None, np.zeros((4, 3)), np.zeros(8)),
    ],
    "weights must be those of the layers": [lambda: gradients(LABELS, weights=7)],
    "widths must be at least 1": [
        lambda: gradients(LABELS, widths=(3, 0)), lambda: gradients(LABELS, widths=(-1, 2), weights=0)],
    "there must be from 1 to 16 layers": [
        lambda: gradients(LABELS, widths=(3,)), lambda: gradients(LABELS, widths=(3,) * 18)],
    "the arrays must fit the people": [
        lambda: _membership_gibbs.Model(NONE, ONE, ONE, ONE, False, [{}]),
        lambda: _membership_gibbs.Model(ONE, TWO, TWO, NONE, False, [{}]),
    ],
    "a pair must have arrays of one length, not empty": [
        lambda: contour(lambda sums: sums.add_mixtures(1.0, ONE, TWO, TWO, ONE, ONE, ONE, 0.0, 0.0)),
        lambda: contour(lambda sums: sums.add_mixtures(1.0, ONE, ONE, ONE, TWO, TWO, ONE, 0.0, 0.0)),
        lambda: contour(lambda sums: sums.add_mixtures(1.0, NONE, NONE, NONE, ONE, ONE, ONE, 0.0, 0.0)),
        lambda: contour(lambda sums: sums.add_atoms(1.0, TWO, ONE, 0.0)),
        lambda: contour(lambda sums: sums.add_atoms(1.0, NONE, NONE, 0.0)),
        lambda: contour(twice), lambda: _contour.ContourSums(-3).add_laplace(1.0, 1.0, 1.0),
    ],
    "the pair must be one that was added": [
        lambda: contour(lambda sums: sums.moments(0, 0.1, ONE)),
        lambda: contour(lambda sums: sums.moments(-1, 0.1, ONE)),
    ],
    "there must be a pair": [
        lambda: contour(lambda sums: sums.bounds(0, ONE)), lambda: contour(lambda sums: sums.tilts(ONE))],
    "a mixture must have a weight, a mean": [
        lambda: pairs((TWO, TWO, ONE)), lambda: pairs(q=(TWO, ONE, TWO)), lambda: pairs((NONE, NONE, NONE)),
        lambda: pairs(q=(NONE, NONE, NONE)), lambda: _hockey_stick_curves.PairAnalysis(ONE, TWO, ONE, ONE, ONE, ONE),
    ],
    "rows must have the six numbers of a bracket": [lambda: _hockey_stick_curves.wide_brackets(np.zeros((3, 5)), 1.0)],
    "p and q must hold weights": [
        lambda: stacks(p=((3, 2), (3, 1), (3, 2))), lambda: stacks(p=((3, 2), (3, 2), (2, 2))),
        lambda: stacks(shape=(4,)), lambda: stacks(dtype=np.float32),
    ],
    "shapes must fit: epsilon .rows, levels": [
        lambda: stacks(levels=(2, 1)), lambda: stacks(out=(2, 1, 6)), lambda: stacks(out=(3, 2, 6)),
        lambda: stacks(out=(3, 1, 5)), lambda: stacks(cost=(2, 5)), lambda: stacks(cost=(3, 4)),
    ],
    "rows must be indices of the stacks": [lambda: stacks(rows=(0, 1, 3)), lambda: stacks(rows=(-1, 1, 2))],
    "means and standard deviations must have an entry for each component": [
        lambda: integrals(((3, 2), (3, 3), (3, 2))), lambda: integrals(q=((3, 3), (3, 3), (3, 2))),
        lambda: integrals(((3, 0), (3, 1), (3, 1))),
        lambda: _quadrature.row_integral(_quadrature.KINDS["kl"], np.ones(3), np.ones(3), TWO, ONE, ONE, ONE),
        lambda: _quadrature.row_integral(_quadrature.KINDS["kl"], ONE, ONE, ONE, np.ones(3), TWO, ONE),
        lambda: _quadrature.row_integral(_quadrature.KINDS["entropy"], NONE, ONE, ONE),
    ],
    "columns, orders and results must have an entry for each row": [
        lambda: integrals(((3, 2), (2, 2), (3, 2))), lambda: integrals(out=2), lambda: integrals(status=2),
        lambda: integrals(kind="renyi", order=TWO), lambda: integrals(cost=(2, 2)), lambda: integrals(cost=(3, 1)),
    ],
    "both mixtures must have as many rows": [lambda: integrals(q=((2, 2),) * 3)],
    "a divergence must have two mixtures": [
        lambda: integrals(q=(None,) * 3), lambda: integrals(kind="entropy"),
        lambda: _quadrature.row_integral(_quadrature.KINDS["js"], ONE, ONE, ONE),
    ],
    "an atom must have a weight for each count": [
        lambda: _type_sums.splits([((0.0, 0.0), 0.0, NONE)], [], 1.0, 0.0, 1, (0.0, 0.0), 1.0)],
}


@pytest.mark.parametrize(
    ("pattern", "k"), [(pattern, k) for pattern, calls in WRONG.items() for k in range(len(calls))]
)
def test_wrong_shapes_are_refused(pattern, k):
    with pytest.raises(ValueError, match=pattern):
        WRONG[pattern][k]()


def test_right_shapes_are_taken():
    add_products()
    add_products(block=(3, 3, 1, 1))
    _bit_matrix.counts(B, D, 12, counts((4, 12)), 8, 12)
    _bit_matrix.add_gram(D, counts((9, 9)), 0, 9)
    _bit_matrix.add_gram(D[:, :0].copy(), counts((9, 9)), 0, 9)
    assert _layered_model.losses(np.zeros((4, 2)), LABELS) == pytest.approx(np.full(4, np.log(2.0)))
    gradients(LABELS)
    pairs()
    stacks()
    integrals()
    integrals(((3, 2), (3, 1), (3, 1)), (None,) * 3, "information")
    assert _hockey_stick_curves.PairAnalysis(*(ONE,) * 6).curve(NONE, 1e-9, False)[0].shape == (0, 6)
