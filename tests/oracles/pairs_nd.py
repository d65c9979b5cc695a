"""Pairs of Gaussian mixtures in d dimensions whose divergences are known, and how each is known.

``cases()`` maps a name to a ``Case``: two laws and a list of (quantity, parameter, compute), where ``compute()``
returns (value, error) as the functions of ``oracles.mixtures_nd`` do. The value of the quantity ``log_hockey_stick`` is
a logarithm and its error is absolute; all other errors are relative. Weights are multiples of 2^-20 or coarser, so that
products of them are exact. The laws are those that the truth table stores, the same to the last bit on every machine;
what the table does not know yet is made here. To change a stored law, remove it from the table first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

import mpmath
import numpy as np

from oracles import mixture
from oracles import mixtures_nd as nd
from oracles.tables import array_from_text, array_to_text, inputs, matrix_from_text, matrix_to_text, rows

__all__ = ["Case", "Truth", "cases", "law_to_text", "made_laws", "table"]

RARE = 2.0**-20  # about 1e-6
EXCESS = 1e-9  # of the nuisance coordinates of q


@dataclass(frozen=True)
class Case:
    """Two laws (q may be None) and what is known of them."""

    p: nd.Law
    q: nd.Law | None
    truths: list[tuple[str, float | None, Callable]] = field(default_factory=list)


@cache
def cases():
    """All cases by name."""
    out = {}
    for family in (_products, _many_coordinates, _singles, _spherical, _nuisance, _collinear, _planes, _solid):
        out.update(family())
    return out


def law_to_text(law):
    """What the table stores of a law."""
    out = {"weights": array_to_text(law.weights), "means": array_to_text(law.means)}
    if law.covariances is not None:
        return out | {"covariances": matrix_to_text(law.covariances)}
    return out | {"sigmas": array_to_text(law.sigmas)}


def law_from_text(entry):
    weights, means = (array_from_text(entry[part]) for part in ("weights", "means"))
    if "covariances" in entry:
        return nd.Law(weights, means, None, matrix_from_text(entry["covariances"]))
    return nd.Law(weights, means, array_from_text(entry["sigmas"]))


@cache
def stored_laws(name):
    """P and Q of a case as the table stores them, or None."""
    entry = inputs("mixtures_nd").get(name)
    return entry and (law_from_text(entry["p"]), law_from_text(entry["q"]))


made_laws = {}  # name -> P and Q as this machine makes them, for the test that compares them with the stored ones


def kept_laws(name, p, q):
    """The stored laws of a case; those just made where the table has none."""
    made_laws[name] = p, q
    return stored_laws(name) or (p, q)


@dataclass(frozen=True)
class Truth:
    """A row of the table: the true value lies in [low, high]."""

    case: str
    quantity: str
    parameter: float | None
    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.case} {self.quantity}" + ("" if self.parameter is None else f" {self.parameter:g}")


@cache
def table():
    """All rows of ``truth/mixtures_nd.json``."""
    out = []
    for case, quantity, parameter, text, error in rows("mixtures_nd"):
        value = float(text)
        reach = 0.0 if np.isinf(value) else float(error) * (1.0 if quantity.startswith("log") else abs(value))
        reach += np.spacing(abs(value)) if np.isfinite(value) else 0.0
        known = float.fromhex(parameter) if parameter else None
        out.append(Truth(case, quantity, known, value, value - reach, value + reach))
    return tuple(out)


def affine(dimension, seed):
    """A matrix of condition about 7, a shift, and log |det|."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    scales = np.exp(np.linspace(-1, 1, dimension))
    return rotation * scales, rng.standard_normal(dimension), float(np.log(scales).sum())


def moved(case_p, case_q, seed):
    matrix, shift, log_det = affine(case_p.dimension, seed)
    return nd.affine_law(case_p, matrix, shift), nd.affine_law(case_q, matrix, shift), log_det


def one(mean=0.0, sigma=1.0):
    return [1.0], [mean], [sigma]


# products of laws on the line

TWO = ([0.25, 0.75], [0.0, 1.5], [1.0, 0.75])
OTHER = ([0.5, 0.5], [0.25, 1.0], [1.25, 1.5])
THREE = ([0.125, 0.375, 0.5], [-2.0, 0.5, 1.0], [0.5, 1.0, 0.75])
WIDE = ([0.75, 0.25], [0.0, -1.0], [1.5, 2.0])


def _products():
    rng = np.random.default_rng(42)
    means, sigmas = rng.normal(0, 0.2, 13).tolist(), (2 ** rng.uniform(-1, 1, 13)).tolist()
    sixteen = [one(m, s) for m, s in zip(means, sigmas, strict=True)]
    shifted = [one(m[0] + float(d), s[0]) for (_, m, s), d in zip(sixteen, rng.normal(0, 0.1, 13), strict=True)]
    if stored_laws("product-16"):  # the truth is that of the stored factors
        sixteen, shifted = (
            [one(m, s) for m, s in zip(law.means[0, :13].tolist(), law.sigmas[0, :13].tolist(), strict=True)]
            for law in stored_laws("product-16")
        )
    tiny = [([0.25, 0.75], [0.0, 1.5], [1.0, 0.75]), ([0.5, 0.5], [-1.0, 1.0], [1.0, 2.0])]
    near = [([0.25, 0.75], [2.0**-16, 1.5], [1.0, 0.75]), ([0.5, 0.5], [-1.0, 1.0 - 2.0**-17], [1.0, 2.0])]
    rare = ([1 - RARE, RARE], [0.0, 40.0], [1.0, 1.0])
    dominant = ([1 - 2.0**-10, 2.0**-10], [0.0, 60.0], [1.0, 1.0])  # nearly all of the divergence
    families = {
        "product-2": ([TWO, THREE], [OTHER, WIDE], (0.5, 2.0, 3.0)),
        "product-3": ([TWO, THREE, TWO], [OTHER, WIDE, WIDE], (0.5, 2.0)),
        "product-16": ([*sixteen, TWO, THREE, TWO], [*shifted, OTHER, WIDE, WIDE], (0.5, 2.0)),
        "tiny-2": (tiny, near, (2.0,)),
        "tiny-8": ([*tiny, *[one()] * 6], [*near, *[one(0.0, 1 + 2.0**-18)] * 6], (2.0,)),
        "narrow-q-4": ([TWO, THREE, one(), one()], [one(0.5, 0.25), one(0.0, 0.25), one(0, 0.5), one(0, 0.5)], ()),
        "rare-4": ([rare, TWO, one(), one()], [one(), OTHER, one(0.125), one()], ()),
        "dominant-3": ([dominant, TWO, one()], [one(), OTHER, one(0.125)], ()),
        # order 3 diverges where q is narrower than sqrt(2/3) = 0.8165, order 5 where it is narrower than 0.8944
        "heavy-renyi-3": ([TWO, one(0.25), one()], [one(1.0, 0.84), one(0.0, 0.84), one(0.0, 0.825)], (3.0, 4.0)),
        "heavy-renyi-5": ([([0.5, 0.5], [-0.5, 0.5], [1.0, 1.0]), one()], [one(0.0, 0.91), one(0.0, 0.9)], (5.0,)),
    }
    out = {}
    for name, (ps, qs, orders) in families.items():
        p, q = nd.product_law(ps), nd.product_law(qs)
        for label, (first, second, log_det) in (("", (p, q, 0.0)), ("-affine", moved(p, q, 7))):
            truths = [
                ("kl_PQ", None, partial(nd.product_truth, "kl", ps, qs)),
                ("kl_QP", None, partial(nd.product_truth, "kl", qs, ps)),
                ("entropy", None, partial(nd.product_truth, "entropy", ps, ps, log_determinant=log_det)),
                ("label_information", None, partial(nd.product_truth, "label", ps, ps)),
                *(("renyi", a, partial(nd.product_truth, "renyi", ps, qs, a)) for a in orders),
            ]
            if label:  # rounding of the moved means and covariances
                slack = 1e-9 if name.startswith("tiny") else 1e-12
                truths = [(quantity, a, partial(_widened, compute, slack)) for quantity, a, compute in truths]
            out[name + label] = Case(*kept_laws(name + label, first, second), truths)
    return out


def _many_coordinates():
    """Means on the diagonal of 1000 coordinates: h(p) is that of a mixture on the line, and E_p log q is elementary."""
    d, weights, at, shift, sigma = 1000, [0.25, 0.75], [0.0, 0.0625], 0.03125, 1.015625
    p = nd.Law(np.array(weights), np.outer(at, np.ones(d)), np.ones((2, d)))
    q = nd.Law(np.ones(1), np.full((1, d), shift), np.full((1, d), sigma))

    def kl():
        with mpmath.workdps(nd.DIGITS):
            distances = [mpmath.mpf(m) * mpmath.sqrt(d) for m in at]
            inner = nd.number(mixture.entropy((weights, [float(x) for x in distances], [1.0, 1.0])))
            own = inner + (d - 1) * mpmath.log(2 * mpmath.pi * mpmath.e) / 2
            square = d * (1 + mpmath.fsum(w * (mpmath.mpf(m) - shift) ** 2 for w, m in zip(weights, at, strict=True)))
            s = mpmath.mpf(sigma)
            return square / (2 * s**2) + d * mpmath.log(2 * mpmath.pi * s**2) / 2 - own, 1e-13

    return {"diagonal-1000": Case(*kept_laws("diagonal-1000", p, q), [("kl_PQ", None, kl)])}


def _widened(compute, slack):
    """The error that rounding the laws themselves to doubles can cost, on top."""
    value, error = compute()
    return value, error + slack


def _singles():
    out = {}
    for d in (2, 16, 64):
        rng = np.random.default_rng(d)
        base = nd.Law(np.ones(1), np.zeros((1, d)), np.ones((1, d)))
        scales = 2 ** rng.uniform(-0.25, 0.25, (1, d))
        other = nd.Law(np.ones(1), rng.normal(0, 1 / np.sqrt(d), (1, d)), scales)
        p, q, _ = moved(base, other, d)
        p, q = kept_laws(f"single-{d}", p, q)
        out[f"single-{d}"] = Case(p, q, [
            ("kl_PQ", None, partial(nd.closed_form, "kl", p, q)),
            ("kl_QP", None, partial(nd.closed_form, "kl", q, p)),
            ("entropy", None, partial(nd.closed_form, "entropy", p, q)),
            *(("renyi", a, partial(nd.closed_form, "renyi", p, q, a)) for a in (0.5, 2.0)),
        ])
    return out


# hockey-sticks


def _log(compute):
    value, error = compute()
    return (mpmath.log(value), error) if value > 0 else (-mpmath.inf, 0.0)


# (dimension, sigma of p, sigma of q): epsilons at which H is near 1e-9, 1e-12, 1e-30; log(p/q) <= 2.0273 in the second
SPHERES = {
    (2, 1.25, 1.0): (10.636, 14.521, 37.835),
    (5, 1.0, 1.5): (1.0, 2.0, 2.02),
    (16, 1.125, 1.0): (7.7063, 9.9064, 22.203),
    (64, 1.0625, 1.0): (5.8427, 7.2576, 14.572),
}


def _spherical():
    out = {}
    for (d, s, t), tails in SPHERES.items():
        p, q = (nd.Law(np.ones(1), np.zeros((1, d)), np.full((1, d), sigma)) for sigma in (s, t))
        if d in (5, 64):
            p, q, _ = moved(p, q, d)
        truths = []
        for epsilon in (0.0, 0.5, *tails):
            compute = partial(_widened, partial(nd.spherical_hockey_stick, d, s, t, epsilon), 1e-11)
            truths += [("hockey_stick", epsilon, compute), ("log_hockey_stick", epsilon, partial(_log, compute))]
        truths.append(("total_variation", None, truths[0][2]))
        out[f"sphere-{d}"] = Case(*kept_laws(f"sphere-{d}", p, q), truths)
    return out


# p1 x N(0, 1)^(d-1) against q1 x N(0, (1 + EXCESS)^2)^(d-1), moved: the pair on the line, the dimension, and epsilons
# at which H is near 1e-9, 1e-12 and 1e-30 among others; the last of "far" is near e^-100000
SUBSAMPLED = ([1 - 2.0**-7, 2.0**-7], [0.0, 1.0], [1.0, 1.0]), one()
UNEQUAL = ([0.25, 0.5, 0.25], [-1.0, 0.0, 1.5], [1.0, 1.25, 1.125]), ([0.5, 0.5], [-0.5, 0.5], [1.0, 1.0])
RARE_PAIR = ([1 - RARE, RARE], [0.0, 4.0], [1.0, 1.0]), one(0.0, 1.0)
NUISANCE = {
    "subsampled-2": (*SUBSAMPLED, 2, (0.0, 0.93993, 1.8302, 6.4601)),
    "subsampled-16": (*SUBSAMPLED, 16, (0.0, 0.93993, 1.8302, 6.4601)),
    "unequal-4": (*UNEQUAL, 4, (1.0, 10.128, 13.144, 29.969)),
    "unequal-8": (*UNEQUAL, 8, (1.0, 10.128, 13.144, 29.969)),
    "rare-tail-3": (*RARE_PAIR, 3, (0.0, 1.0, 5.7073, 12.455, 34.419)),
    "far-3": (one(1.0), one(0.0), 3, (100.0, 447.5)),
}


def _nuisance():
    out = {}
    for name, (p1, q1, d, epsilons) in NUISANCE.items():
        rest_p, rest_q = [one()] * (d - 1), [one(0.0, 1 + EXCESS)] * (d - 1)
        p, q, _ = moved(nd.product_law([p1, *rest_p]), nd.product_law([q1, *rest_q]), d)
        truths = []
        for epsilon in epsilons:
            compute = partial(_bracketed, p1, q1, epsilon, d)
            truths.append(("log_hockey_stick", epsilon, compute))
            if name != "far-3":
                truths.append(("hockey_stick", epsilon, partial(_exp, compute)))
        out[name] = Case(*kept_laws(name, p, q), truths)
    return out


def _bracketed(p1, q1, epsilon, d):
    low, high = nd.nuisance_bracket(p1, q1, epsilon, d, EXCESS)
    # the moved covariances are rounded by 1e-15, which a tail at epsilon takes times epsilon^2
    return (low + high) / 2, (high - low) / 2 + 1e-12 + (2e-7 if epsilon > 400 else 0.0)


def _exp(compute):
    value, error = compute()
    return mpmath.exp(value), error


# means on one line and one covariance: a problem on the line in other clothes

LINE = [0.25, 0.125, 0.375, 0.25], [-1.0, 0.0, 0.75, 2.0]
LINE_Q = [0.5, 0.5], [-0.5, 1.0]


def _collinear():
    out = {}
    for d in (3, 24):
        (wp, mp), (wq, mq) = LINE, LINE_Q
        direction = np.eye(d)[0]
        p, q = (
            nd.Law(np.array(w), np.outer(m, direction), np.ones((len(w), d))) for w, m in ((wp, mp), (wq, mq))
        )
        p, q, log_det = moved(p, q, d)
        covariance = p.covariances[:1]
        p, q = nd.Law(p.weights, p.means, None, covariance), nd.Law(q.weights, q.means, None, covariance)
        p1, q1 = (wp, mp, [1.0] * len(wp)), (wq, mq, [1.0] * len(wq))
        rest = [one()] * (d - 1)
        epsilons = (0.0, 1.0, 6.0)
        truths = [
            ("kl_PQ", None, partial(nd.product_truth, "kl", [p1], [q1])),
            ("renyi", 2.0, partial(nd.product_truth, "renyi", [p1], [q1], 2.0)),
            ("entropy", None, partial(nd.product_truth, "entropy", [p1, *rest], [p1, *rest], log_determinant=log_det)),
            ("jensen_shannon", None, partial(_ball, mixture.js, p1, q1)),
            ("total_variation", None, partial(_ball, mixture.total_variation, p1, q1)),
            ("label_information", None, partial(_ball, mixture.mutual_information, (mp, wp), 1.0)),
            *(("hockey_stick", e, partial(_ball, mixture.hockey_stick, p1, q1, e)) for e in epsilons),
            *(("log_hockey_stick", e, partial(_ball, mixture.log_hockey_stick, p1, q1, e)) for e in (*epsilons, 40.0)),
        ]
        truths = [(name, a, partial(_widened, compute, 1e-11)) for name, a, compute in truths]
        out[f"collinear-{d}"] = Case(*kept_laws(f"collinear-{d}", p, q), truths)
    return out


def _ball(function, *arguments):
    return nd.number(function(*arguments)), 1e-15


# laws on the plane and in space, by grids

PLANE_P = nd.Law(
    np.array([0.25, 0.5, 0.25]), np.array([[0.0, 0.0], [1.5, 0.5], [-0.5, 2.0]]),
    np.array([[1.0, 0.75], [0.75, 1.25], [1.25, 1.0]]),
)
PLANE_Q = nd.Law(
    np.array([0.5, 0.5]), np.array([[0.5, 0.0], [0.25, 1.5]]), np.array([[1.25, 1.0], [1.0, 1.5]])
)
# one covariance, means that span the plane: nothing reduces to the line
SHARED_P = nd.Law(
    np.array([0.5, 0.25, 0.125, 0.125]), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.5, 1.5]]), np.ones((4, 2))
)
SHARED_Q = nd.Law(np.array([0.75, 0.25]), np.array([[0.0, 0.0], [-0.5, 0.25]]), np.ones((2, 2)))
FULL_P = nd.Law(
    np.array([0.25, 0.75]), np.array([[0.0, 1.0], [1.0, -0.5]]), None,
    np.array([[[1.0, 0.5], [0.5, 1.25]], [[0.75, -0.25], [-0.25, 0.5]]]),
)
FULL_Q = nd.Law(
    np.array([0.5, 0.25, 0.25]), np.array([[0.5, 0.5], [1.0, -1.0], [-1.0, 1.0]]), None,
    np.array([[[1.0, 0.25], [0.25, 1.0]], [[1.0, 0.0], [0.0, 1.5]], [[0.75, 0.25], [0.25, 0.75]]]),
)
PLANE_EPSILONS = (1.0, 9.351, 11.64, 21.04)
SHARED_EPSILONS = (1.0, 11.88, 14.24, 24.01)


def _grid_quantities(p, q, step, orders=(0.5, 2.0)):
    """(name, order, compute) of everything smooth."""

    def integral(f, laws, after=lambda total: total):
        value, error = nd.grid_integral(f, laws, step)
        with mpmath.workdps(nd.DIGITS):
            return after(value), error

    def logs(x):
        return nd.log_density(p, x), nd.log_density(q, x)

    def kl(x, sign=1):
        first, second = logs(x)[::sign]
        ratio = first - second
        return np.exp(first) * (ratio + np.expm1(-ratio))

    def js(x):
        first, second = logs(x)
        middle = np.logaddexp(first, second) - np.log(2)
        return (np.exp(first) * (first - middle) + np.exp(second) * (second - middle)) / 2

    def power(x, a):
        first, second = logs(x)
        return np.exp(a * first + (1 - a) * second)

    def surprise(x):
        first = nd.log_density(p, x)
        return -np.exp(first) * first

    def label(x):
        first = nd.log_density(p, x)
        total = np.zeros(len(x))
        for i, w in enumerate(p.weights):
            one_law = nd.Law(np.ones(1), p.means[i : i + 1], *(
                None if rows is None else rows[i : i + 1] for rows in (p.sigmas, p.covariances)
            ))
            conditional = nd.log_density(one_law, x)
            ratio = conditional - first
            total += w * np.exp(conditional) * (ratio + np.expm1(-ratio))
        return total

    return [
        ("kl_PQ", None, lambda: integral(kl, [p, q])),
        ("kl_QP", None, lambda: integral(lambda x: kl(x, -1), [p, q])),
        ("jensen_shannon", None, lambda: integral(js, [p, q])),
        ("entropy", None, lambda: integral(surprise, [p])),
        ("label_information", None, lambda: integral(label, [p])),
        *(
            ("renyi", a, lambda a=a: integral(lambda x: power(x, a), [p, q], lambda total: mpmath.log(total) / (a - 1)))
            for a in orders
        ),
    ]


def _nested(p, q, epsilon):
    value, error = nd.nested_hockey_stick(p, q, epsilon)
    return mpmath.mpf(value), error


def _planes():
    out = {}
    for name, p, q, epsilons in (
        ("plane", PLANE_P, PLANE_Q, PLANE_EPSILONS), ("shared-plane", SHARED_P, SHARED_Q, SHARED_EPSILONS),
        ("full-plane", FULL_P, FULL_Q, ()),
    ):
        truths = _grid_quantities(p, q, 0.05)
        for epsilon in epsilons:
            compute = partial(_nested, p, q, epsilon)
            truths += [("log_hockey_stick", epsilon, compute), ("hockey_stick", epsilon, partial(_exp, compute))]
        if epsilons:
            truths.append(("total_variation", None, partial(_exp, partial(_nested, p, q, 0.0))))
        out[name] = Case(*kept_laws(name, p, q), truths)
    # the same problem in 16 dimensions: standard normal coordinates on both sides, then a linear map
    plane = out["shared-plane"]
    rest = np.zeros((4, 14)), np.zeros((2, 14))
    p, q = (
        nd.Law(law.weights, np.hstack([law.means, extra]), np.ones((len(law.weights), 16)))
        for law, extra in zip((SHARED_P, SHARED_Q), rest, strict=True)
    )
    p, q, _ = moved(p, q, 16)
    p, q = (nd.Law(law.weights, law.means, None, p.covariances[:1]) for law in (p, q))
    kept = [(n, a, partial(_widened, compute, 1e-11)) for n, a, compute in plane.truths if n != "entropy"]
    out["shared-plane-in-16"] = Case(*kept_laws("shared-plane-in-16", p, q), kept)
    return out


def _solid():
    p = nd.Law(
        np.array([0.5, 0.5]), np.array([[0.0, 0.5, 0.0], [1.0, 0.0, -1.0]]),
        np.array([[1.0, 1.25, 1.0], [1.0, 1.0, 1.5]]),
    )
    q = nd.Law(
        np.array([0.25, 0.75]), np.array([[0.0, 0.0, 0.0], [0.5, 1.0, -0.5]]),
        np.array([[1.25, 1.0, 1.0], [1.5, 1.0, 1.25]]),
    )
    return {"solid": Case(*kept_laws("solid", p, q), [row for row in _grid_quantities(p, q, 0.2) if row[1] != 0.5])}
