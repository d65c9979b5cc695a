"""The numbers of figures 1 to 4 of the paper on local mutual-information privacy: tables with bounds, no pictures.

Notation: mu is mutual information in bits, epsilon is in nats, G is the Gaussian mechanism x + N(0, sigma^2 I) on
vectors of d coordinates and length at most sqrt(d) Delta, Delta = 1; its l2 sensitivity is 2 sqrt(d). Equation numbers
are those of Ngo, Ostman and Graell i Amat, On local mutual-information privacy, 2024.
"""

# bounds: none - widths at which capacities and integrals of the figures stop; their own bounds hold whatever it is

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import conversions
from ...base.estimate import Estimate, exact, stacked
from ...base.monotone import weakest
from ...base.numerics import FloatArray
from ...base.table import CellType, Table
from ...calibration import sigma_from_cd_lmip, sigma_from_ci_lmip
from ...capacity.awgn import awgn_capacity
from ...distributions import Pmf
from ...mechanisms.gaussian import GaussianMechanism
from ...notions import cd_lmip, lip_delta, pointwise_lmip
from .texts import texts_of

_EPSILON = np.array([float(f"{10.0 ** (k / 40):.3g}") for k in range(-80, 41)])  # 0.01 to 10, round numbers
_VARIANCE = np.array([float(f"{10.0 ** (k / 20):.3g}") for k in range(-26, 47)])  # 0.0501 to 200, round numbers
_INTEGRAL_RTOL = 1e-5  # tolerance of the integrals of figure 4; their values are more accurate
# bound: proved - docs/proofs/roundings.md, 13.29: rounding of sqrt(d) and sqrt(sigma^2), and of an entropy
_ROUNDING = 1e-15
# bound: proved - docs/proofs/roundings.md, 13.29: what the rounding of sqrt(sigma^2) does to integrals of LIP curves,
#    relative to 1 and to them
_SLACK = 1e-11
_CurveParts = tuple[Any, ...]  # name, estimate, and setting and axes where there are some, of a ``PaperCurve``
_NUMBER_COLUMNS = ("value", "lower", "upper", "kind", "unit", "method")  # last columns of the table of every figure


@dataclass(frozen=True, eq=False)
class PaperCurve:
    """One line of a figure, or one number that belongs to it.

    Parameters
    ----------
    name : str
        What it is, in one word.
    meaning : str
        What it is, in a phrase, with its equation.
    estimate : Estimate
        The numbers, with their bounds; a scalar for a single number.
    setting : mapping of str to float
        The parameters that are the same all along the curve.
    axes : mapping of str to ndarray of float64
        The parameters that vary along the curve, in the shape of ``estimate``; none for a single number.
    """

    name: str
    meaning: str
    estimate: Estimate
    setting: Mapping[str, float] = field(default_factory=dict)
    axes: Mapping[str, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PaperFigure(Table):
    """The numbers of one figure of the paper.

    Parameters
    ----------
    name : str
        ``"figure1"`` to ``"figure4"``.
    parameters : mapping of str to str
        The parameters of the figure, in words.
    curves : tuple of PaperCurve
        Lines and single numbers.
    seconds : float
        How long the numbers took.

    Examples
    --------
    >>> import fastpriv
    >>> (figure,) = fastpriv.studies.papers.paper("figure3")
    >>> round(figure.curve("crossing", mu_bits=0.1).estimate.value, 5)
    1.21546
    >>> print(",".join(figure.columns()))
    figure,curve,mu_bits,epsilon_nats,sigma,value,lower,upper,kind,unit,method
    """

    name: str
    parameters: Mapping[str, str]
    curves: tuple[PaperCurve, ...]
    seconds: float

    def curve(self, name: str, **setting: float) -> PaperCurve:
        """The first curve of this name whose setting agrees; ``KeyError`` when there is none."""
        for curve in self.curves:
            if curve.name == name and all(curve.setting.get(key) == number for key, number in setting.items()):
                return curve
        raise KeyError(name)

    def meanings(self) -> dict[str, str]:
        """What the names of the curves stand for."""
        return {curve.name: curve.meaning for curve in self.curves}

    def column_types(self) -> dict[str, CellType]:
        """The columns of the table: what a number belongs to, its parameters, and its bounds."""
        return dict.fromkeys(("figure", "curve", *self._parameters(), *_NUMBER_COLUMNS), "")

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The tidy table row by row, in the order of ``columns``; None where a parameter does not apply."""
        names = self._parameters()
        for curve in self.curves:
            e = curve.estimate
            numbers = (np.atleast_1d(x).tolist() for x in (e.value, e.lower, e.upper))
            for i, (value, lower, upper) in enumerate(zip(*numbers, strict=True)):
                parameters = {**curve.setting, **{name: float(axis[i]) for name, axis in curve.axes.items()}}
                cells = (parameters.get(name) for name in names)
                yield self.name, curve.name, *cells, value, lower, upper, e.kind, e.unit, e.method

    def _parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for curve in self.curves for name in (*curve.setting, *curve.axes)))


def compute_figure(name: str) -> PaperFigure:
    """Compute one figure, and measure the time."""
    start = time.perf_counter()
    parts, texts = _FIGURES[name](), texts_of("figures")[name]
    least = float(np.min(_prior().probabilities))
    curves = tuple(PaperCurve(curve, texts["curves"][curve].format(worst=least), *numbers) for curve, *numbers in parts)
    return PaperFigure(name, texts["parameters"], curves, time.perf_counter() - start)


def _figure1() -> Iterator[_CurveParts]:
    for mu in (0.5, 0.1, 0.01):
        sigma = sigma_from_ci_lmip(mu, 10, math.sqrt(10.0), rtol=1e-12, unit="bits")
        setting, along = {"mu_bits": mu}, {"epsilon_nats": _EPSILON}
        noisy = setting | {"sigma": float(sigma.value)}
        gaussian = _over_sigma_bracket(sigma, lambda s: GaussianMechanism(s, 2.0 * math.sqrt(10.0)).delta(_EPSILON))
        yield from (
            ("ldp_delta_achievable", conversions.dp_delta_from_ci_lmip(mu, _EPSILON, unit="bits"), setting, along),
            ("saturation", conversions.dp_delta_from_ci_lmip(mu, np.inf, unit="bits"), setting),
            ("ldp_delta_gaussian", gaussian, noisy, along),
            ("sigma", sigma, setting),
        )


def _figure2() -> Iterator[_CurveParts]:
    sigma = np.sqrt(_VARIANCE)
    along = {"sigma_squared": _VARIANCE, "sigma": sigma}
    for dimension in (1, 10):
        radius = math.sqrt(dimension)
        mechanism = GaussianMechanism(sigma, 2.0 * radius)
        setting = {"dimension": dimension}
        bound = _with_rounding(conversions.ci_lmip_from_dp_curve(mechanism, unit="bits"))
        sharp = _with_rounding(conversions.ci_lmip_from_dp_curve(mechanism, form="two_inputs", unit="bits"))
        optimum = _with_rounding(awgn_capacity(dimension, radius, sigma, rtol=1e-12, unit="bits"))
        yield from (
            ("ci_lmip_from_ldp", bound, setting, along),
            ("ci_lmip_optimal", optimum, setting, along),
            ("two_inputs", sharp, setting, along),
            ("ratio", _ratio(bound, optimum), setting, along),
        )


def _figure3() -> Iterator[_CurveParts]:
    prior = _prior()
    for mu in (0.1, 0.01):
        sigma = sigma_from_cd_lmip(mu, prior, unit="bits")
        noise = GaussianMechanism(sigma.value)
        setting, along = {"mu_bits": mu}, {"epsilon_nats": _EPSILON}
        noisy = setting | {"sigma": float(sigma.value)}

        def exact(epsilon: FloatArray, sigma: Estimate = sigma) -> Estimate:
            return _over_sigma_bracket(sigma, lambda s: lip_delta(prior, GaussianMechanism(s), epsilon))

        def printed(epsilon: FloatArray, mu: float = mu) -> Estimate:
            return conversions.lip_delta_from_cd_lmip(mu, epsilon, form="as_published", unit="bits")

        pointwise = pointwise_lmip(prior, noise, certified=True)
        yield from (
            ("lip_delta_as_published", printed(_EPSILON), setting, along),
            ("saturation", conversions.lip_delta_from_pointwise_lmip(mu, np.inf, unit="bits"), setting),
            ("lip_delta_gaussian", exact(_EPSILON), noisy, along),
            ("lip_delta_tight", conversions.lip_delta_from_cd_lmip(mu, _EPSILON, prior, unit="bits"), setting, along),
            ("lip_delta_pointwise", conversions.lip_delta_from_pointwise_lmip(pointwise.upper, _EPSILON), noisy, along),
            ("pointwise_lmip", pointwise.to("bits"), noisy),
            ("crossing", _crossing(exact, printed), setting),
            ("sigma", sigma, setting),
        )


def _figure4() -> list[_CurveParts]:
    prior = _prior()
    variance = np.concatenate([_VARIANCE[6:30], _VARIANCE[30::2]])
    sigma = np.sqrt(variance)
    along = {"sigma_squared": variance, "sigma": sigma}
    mechanisms = [GaussianMechanism(s) for s in sigma.tolist()]
    integral: dict[str, Any] = {"rtol": _INTEGRAL_RTOL, "unit": "bits"}
    lip_curves = [conversions.LipCurve(prior, m) for m in mechanisms]
    bound = _with_rounding([conversions.cd_lmip_from_lip_curve(c, **integral) for c in lip_curves], _SLACK)
    both = _with_rounding([conversions.cd_lmip_from_hockey_sticks(prior, m, **integral) for m in mechanisms], _SLACK)
    optimum = _with_rounding([cd_lmip(prior, m).to("bits") for m in mechanisms])
    marked = sigma_from_cd_lmip(0.1, prior, unit="bits")
    there = GaussianMechanism(marked.value)
    bound_there = conversions.cd_lmip_from_lip_curve(conversions.LipCurve(prior, there), rtol=1e-8)
    return [
        ("cd_lmip_from_lip", bound, {}, along),
        ("cd_lmip_both_directions", both, {}, along),
        ("cd_lmip_optimal", optimum, {}, along),
        ("ratio", _ratio(bound, optimum), {}, along),
        ("ratio_both_directions", _ratio(both, optimum), {}, along),
        ("entropy", _entropy(prior)),
        ("ratio_at_tenth", _ratio(bound_there, cd_lmip(prior, there)), {"mu_bits": 0.1, "sigma": float(marked.value)}),
    ]


def _prior() -> Pmf:
    """The paper's N(0, 1/4), variance 1/4, on 21 points of [-1, 1]."""
    points = np.arange(-10, 11) / 10.0
    weights = np.exp(-2.0 * points**2)
    return Pmf(points, weights / math.fsum(weights))


def _over_sigma_bracket(sigma: Estimate, quantity: Callable[[float], Estimate]) -> Estimate:
    """Bound a quantity that falls as sigma grows, for all sigma within their bracket and the rounding of sqrt(d)."""
    middle = quantity(float(sigma.value))
    _, least, largest = sigma.floats()
    above, below = quantity(least * (1.0 - _ROUNDING)), quantity(largest * (1.0 + _ROUNDING))
    lower, upper = np.minimum(below.lower, middle.lower), np.maximum(above.upper, middle.upper)
    return Estimate(
        middle.value, lower, upper, kind=weakest(sigma, middle)[0], unit=middle.unit,
        method=f"{middle.method}; over the bracket of sigma",
    )


def _with_rounding(e: Estimate | list[Estimate], slack: float = 0.0) -> Estimate:
    """Widen the bounds by the rounding of sqrt(d) and of sqrt(sigma^2); a list becomes one curve first."""
    e = stacked(e, (len(e),)) if isinstance(e, list) else e
    lower = np.maximum(e.lower * (1.0 - 4.0 * _ROUNDING - slack) - slack, 0.0)
    upper = e.upper * (1.0 + 4.0 * _ROUNDING + slack) + slack
    return Estimate(e.value, lower, upper, kind=e.kind, unit=e.unit, method=e.method)


def _ratio(above: Estimate, below: Estimate) -> Estimate:
    lower = np.nextafter(above.lower / below.upper, 0.0)
    upper = np.nextafter(above.upper / below.lower, np.inf)
    return Estimate(
        above.value / below.value, lower, upper, kind=weakest(above, below)[0], unit="1",
        method="quotient of two curves",
    )


def _entropy(prior: Pmf) -> Estimate:
    p = prior.probabilities
    bits = -math.fsum(p * np.log2(p))
    return exact(bits, 8.0 * _ROUNDING * bits, unit="bits", method="closed form")


def _crossing(exact: Callable[[FloatArray], Estimate], printed: Callable[[FloatArray], Estimate]) -> Estimate:
    """Bracket the epsilon where the exact curve stops being above the printed one, by both bounds of both curves."""
    low, high = float(_EPSILON[0]), float(_EPSILON[-1])
    while True:
        epsilon = np.linspace(low, high, 33)
        exact_curve, printed_curve = exact(epsilon), printed(epsilon)
        last = int(np.flatnonzero(exact_curve.lower > printed_curve.upper)[-1])
        first = int(np.flatnonzero(exact_curve.upper < printed_curve.lower)[0])
        low, high = float(epsilon[last]), float(epsilon[first])
        if first - last > 16:  # the bounds of the curves overlap in between
            break
    kind = weakest(exact_curve, printed_curve)[0]
    return Estimate(0.5 * (low + high), low, high, kind=kind, unit="nats", method="subdivision, by both bounds")


# The figures of the paper, each with what computes its curves.
_FIGURES: dict[str, Callable[[], Iterable[_CurveParts]]] = {
    "figure1": _figure1, "figure2": _figure2, "figure3": _figure3, "figure4": _figure4,
}
NAMES = tuple(_FIGURES)  # names of all figures, in the order of the paper
