"""Mutual information from privacy curves: Theorems 1(b) and 2(b), and the Kullback-Leibler integral behind them.

Notation: H_a(P||Q) = sup_E P(E) - a Q(E) with a = e^epsilon; P_x the distribution of the release of x, P_M that of the
release; delta(epsilon) a privacy curve: sup over pairs of inputs of H(P_x||P_x') for LDP, sup over x of
max{H(P_M||P_x), e^-epsilon H(P_x||P_M)} for LIP; mu the mutual information of input and release.

    KL(P||Q)    = integral of H_a(P||Q) + e^-epsilon H_a(Q||P)                              (20), probability measures
    mu, all priors <= integral of (1 + e^-epsilon) delta                                    (12), from LDP
    mu, two inputs <= integral of delta / (1 + e^epsilon)
    mu, one prior  <= integral of (e^epsilon + e^-epsilon) delta                            (14), from LIP
    mu, one prior  <= integral of sup_x H_a(P_x||P_M) + e^-epsilon sup_x H_a(P_M||P_x)

over epsilon from 0 to infinity, in nats. The second line after (20) is the f-divergence of Jensen and Shannon written
as an integral of hockey-sticks, with the two inputs equally likely; for any other input distribution the weight is
smaller. It is met by a Gaussian mechanism with two inputs. For n inputs, -log(1/n + (1 - 1/n) e^-mu2), mu2 its value,
has been seen to hold in numerical experiments but is not proved, so it is not offered.

Equation numbers: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, 2024.

Proofs: docs/proofs/conversions.md, theorem 12.7.
"""

# bounds: proved - docs/proofs/roundings.md, 13.12: rounding of closed forms, and underflow; the rest are limits of rtol

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, Information, NumberLike
from ..base.monotone import weakest
from ..base.numerics import LARGEST_DOUBLE, FloatArray, enclosure
from .curve_integrals import CheckedCurve, IntegralBracket, Weight, integral_of_function, integral_of_samples
from .declaration import Formula, conversion
from .vocabulary import EVERY_PAIR, NGO

if TYPE_CHECKING:
    from ..distributions import Pmf
    from ..mechanisms.gaussian import GaussianMechanism

# (epsilon, delta), or a function of epsilon
Curve = tuple[ArrayLike, NumberLike] | Sequence[ArrayLike] | Callable[[Any], Any]
_FORWARD, _BACKWARD = Weight((0,)), Weight((-1,))  # 1 and e^-epsilon: the weights of (20)
_LDP, _TWO_INPUTS, _LIP = Weight((0, -1)), Weight(()), Weight((1, -1))  # of (12), of two inputs, of (14)
# bound: none - what plain samples of a curve are taken to be right to, as the documentation says
_SAMPLE_ERROR = 9e-16  # relative: four units in the last place of a plain sample


@conversion("dp_curve", "kl", Formula(
    "tight", f"{NGO}, lemma 1, equation (20)", falling="decay",
    note="for probability measures; both directions of the curve",
))
def kl_from_dp_curve(
    forward: Curve, backward: Curve, *, decay: NumberLike | None = None, rtol: float = 1e-8,
    max_evaluations: int | None = None, unit: Information = "nats",
) -> Estimate:
    """Kullback-Leibler divergence KL(P||Q) from the two curves H_{e^epsilon}(P||Q) and H_{e^epsilon}(Q||P).

    Parameters
    ----------
    forward, backward : pair of array_like, or callable
        The curves H(P||Q) and H(Q||P), each as for ``ci_lmip_from_dp_curve``, for instance ``HockeyStickCurve``.
    decay : float or Estimate, optional
        As for ``ci_lmip_from_dp_curve``; stated for the forward curve. The backward one needs none.

    Returns
    -------
    Estimate
        As ``ci_lmip_from_dp_curve``.

    Notes
    -----
    Equation (20) holds for probability measures; otherwise it is off by Q - P of the whole space. With
    sup_x H(P_x||P_M) and sup_x H(P_M||P_x) in place of the curves the integral bounds I(X; M(X)), in all its priors
    or for one.

    **Accuracy** as ``ci_lmip_from_dp_curve``; compared with ``kl_divergence`` in
    ``tests/properties/test_hockey_stick_integral.py``.

    >>> from fastpriv import GaussianMixture
    >>> p, q = GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0)
    >>> forward, backward = conversions.HockeyStickCurve(p, q), conversions.HockeyStickCurve(q, p)
    >>> found = conversions.kl_from_dp_curve(forward, backward, rtol=1e-6)
    >>> round(found.value, 9), found.lower <= 0.5 <= found.upper, found.kind
    (0.5, True, 'certified')
    """
    options = _integral_options(decay, rtol, max_evaluations, unit)
    first = _integral("forward", forward, _FORWARD, options)
    second = _integral("backward", backward, _BACKWARD, (None, *options[1:]))
    return _estimate([first, second], (forward, backward), unit)


@conversion("dp_curve", "ci_lmip", Formula(
    "as_published", f"{NGO}, theorem 1(b), equation (12)", falling="decay", assumptions=(EVERY_PAIR,),
    note="true, infinite where delta does not vanish; form='two_inputs' is sharp for two inputs",
))
def ci_lmip_from_dp_curve(
    curve: Curve | GaussianMechanism, *, form: Literal["as_published", "two_inputs"] = "as_published",
    decay: NumberLike | None = None, rtol: float = 1e-8, max_evaluations: int | None = None, unit: Information = "nats",
) -> Estimate:
    """Context-independent mutual-information privacy mu that an LDP curve delta(epsilon) implies.

    Parameters
    ----------
    curve : pair of array_like, callable, or GaussianMechanism
        The LDP curve: ``(epsilon, delta)``, increasing epsilons with their deltas (numbers in [0, 1] taken as exact to
        four units in the last place, or an Estimate, whose bounds are used); or a function of an array of
        epsilons that returns numbers or an Estimate; or a mechanism, whose parameters may be arrays.
    form : {"as_published", "two_inputs"}
        Equation (12), for any input distribution; or the sharp integral of delta / (1 + e^epsilon), which bounds the
        capacity of a mechanism with TWO possible inputs only.

    Returns
    -------
    Estimate
        A scalar, or of the shape of the mechanism's parameters. A guarantee quotes ``upper``; infinity is an answer:
        (12) is infinite whenever delta does not vanish, a single pair (epsilon, delta) included. Kind ``exact`` for
        the published form of a mechanism, whose value is (sensitivity / sigma)^2 / 2 nats; ``certified`` for samples,
        for Estimates, and for functions with a known tail; ``heuristic`` for functions that return plain numbers,
        since their rounding is unknown, and for those that vanish by underflow only.

    Raises
    ------
    DomainError
        For NaN, a delta outside [0, 1], a curve that rises with epsilon, a function that does not answer one number
        for each epsilon, epsilons that do not increase, or settings out of range.
    ShapeError
        For samples of unequal length.

    Notes
    -----
    A privacy curve is convex in e^epsilon: it lies below the chords of the samples, and above the continuations of the
    neighbouring chords. Samples that contradict convexity by less than 1e-8 are taken as rounded by that much; beyond,
    the bounds use monotonicity alone and say so in ``method``. Below the first sample delta is at most 1. A curve
    object with a method ``tail(epsilon, rate)``, an upper bound of the integral of e^(rate e) delta(e) beyond epsilon,
    gets a closed bracket; ``HockeyStickCurve`` and ``LipCurve`` are such.

    **Accuracy** the bounds hold the truth for every form of curve; ``tests/enclosures/test_information_from_curves.py``
    against closed forms and 50-digit integrals.

    >>> from fastpriv import GaussianMechanism
    >>> mechanism = GaussianMechanism(sigma=2.0, sensitivity=1.0)
    >>> conversions.ci_lmip_from_dp_curve(mechanism, unit="nats").value
    0.125
    >>> conversions.ci_lmip_from_dp_curve(mechanism, form="two_inputs", unit="nats").value
    0.030311...
    >>> conversions.ci_lmip_from_dp_curve(([1.0], [1e-5])).upper
    inf
    """
    from ..mechanisms.gaussian import GaussianMechanism

    validate.choice("form", form, ("as_published", "two_inputs"))
    options = _integral_options(decay, rtol, max_evaluations, unit)
    if isinstance(curve, GaussianMechanism):
        estimate = _gaussian_published(curve) if form == "as_published" else _gaussian_two_inputs(curve)
        with np.errstate(over="ignore"):
            return estimate.to(unit)
    weight = _LDP if form == "as_published" else _TWO_INPUTS
    return _estimate([_integral("curve", curve, weight, options)], (curve,), unit)


@conversion("lip_curve", "cd_lmip", Formula(
    "as_published", f"{NGO}, theorem 2(b), equation (14)", falling="decay", note="true, very loose",
))
def cd_lmip_from_lip_curve(
    curve: Curve, *, decay: NumberLike | None = None, rtol: float = 1e-6, max_evaluations: int | None = None,
    unit: Information = "nats",
) -> Estimate:
    """Context-dependent mutual-information privacy mu that a LIP curve delta(epsilon) implies, as published.

    Parameters
    ----------
    curve : pair of array_like, or callable
        The LIP curve, as for ``ci_lmip_from_dp_curve``; for a prior under a Gaussian mechanism ``LipCurve``.
    decay : float or Estimate, optional
        As for ``ci_lmip_from_dp_curve``; more than 1, or the tail stays unknown.

    Returns
    -------
    Estimate
        As ``ci_lmip_from_dp_curve``. Beyond 1e308 the value is inf and ``lower`` about the largest double.

    Notes
    -----
    LIP curves are costly: about 10 microseconds an epsilon for 21 points, growing with the square of their number; and
    the number of epsilons, some 3,000 at the default, grows with the root of 1/rtol.

    True, and very loose: for the paper's 21 points of [-1, 1] (figure 3) it is 10.9 times the mutual information where
    that is 0.1 bit (sigma = 1.166), and 3e15 times at sigma = 0.3. ``cd_lmip_from_hockey_sticks`` keeps both
    directions apart.

    **Accuracy** as ``ci_lmip_from_dp_curve``.

    >>> from fastpriv import GaussianMechanism, Pmf
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> curve = conversions.LipCurve(prior, GaussianMechanism(20.0))
    >>> conversions.cd_lmip_from_lip_curve(curve, rtol=1e-3).value
    3.70134...
    """
    options = _integral_options(decay, rtol, max_evaluations, unit)
    return _estimate([_integral("curve", curve, _LIP, options)], (curve,), unit)


@conversion("lip_curve", "cd_lmip", Formula(
    "bound", f"{NGO}, theorem 2(b) with both curves kept apart, equation (38)",
    note="from Python: takes prior and mechanism",
))
def cd_lmip_from_hockey_sticks(
    prior: Pmf, mechanism: GaussianMechanism, *, rtol: float = 1e-6, max_evaluations: int | None = None,
    unit: Information = "nats",
) -> Estimate:
    """Bound of the mutual information of a prior under a Gaussian mechanism from both hockey-stick curves, worst point.

    Parameters
    ----------
    prior : Pmf
        The distribution of the secret.
    mechanism : GaussianMechanism
        Its sigma is used; one number.

    Returns
    -------
    Estimate
        The integral of sup_x H_a(P_x||P_M) + e^-epsilon sup_x H_a(P_M||P_x), kind ``certified``. It lies between
        sup_x KL(P_x||P_M) and the published bound ``cd_lmip_from_lip_curve(LipCurve(prior, mechanism))``.

    Raises
    ------
    DomainError
        For a prior that is no Pmf, a mechanism that is not Gaussian, or settings out of range.

    Notes
    -----
    With the mean over x under the prior in place of the supremum the integral is the mutual information itself,
    ``notions.cd_lmip``.

    **Accuracy** as ``ci_lmip_from_dp_curve``.

    >>> from fastpriv import GaussianMechanism, Pmf
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> conversions.cd_lmip_from_hockey_sticks(prior, GaussianMechanism(20.0), rtol=1e-3).value
    0.43904...
    """
    from .privacy_curves import WorstHockeyStickCurve

    _integral_options(None, rtol, max_evaluations, unit)
    toward, back = (WorstHockeyStickCurve(prior, mechanism, first) for first in (False, True))
    return kl_from_dp_curve(toward, back, rtol=rtol, max_evaluations=max_evaluations, unit=unit)


def _integral_options(decay: Any, rtol: Any, max_evaluations: Any, unit: Any) -> tuple[float | None, float, int | None]:
    validate.choice("unit", unit, ("nats", "bits"))
    if decay is not None:
        decay = validate.scalar("decay", decay, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    rtol = validate.scalar("rtol", rtol, "between 1e-15 and 1", lambda x: (x >= 1e-15) & (x <= 1))
    if max_evaluations is not None:
        max_evaluations = validate.count("max_evaluations", max_evaluations, minimum=100, maximum=100_000_000)
    return decay, rtol, max_evaluations


def _integral(
    name: str, curve: Any, weight: Weight, options: tuple[float | None, float, int | None]
) -> IntegralBracket:
    decay, rtol, limit = options
    if isinstance(curve, (tuple, list)) and len(curve) == 2:
        return integral_of_samples(*_samples(name, *curve), weight, decay)
    if not callable(curve):
        raise DomainError(
            f"{name} must be a pair (epsilon, delta) or a function of epsilon; got {type(curve).__name__}. "
            "Pass two sequences of equal length, or a callable such as HockeyStickCurve or LipCurve."
        )
    function: Callable[[Any], Any] = curve
    return integral_of_function(CheckedCurve(name, function, decay), weight, rtol, limit)


def _samples(name: str, epsilon: Any, delta: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    grid = validate.vector(
        "epsilon", epsilon, "at least 0 and finite", lambda e: (e >= 0) & (e < np.inf),
        remedy="Leave the infinite epsilon out; state decay, or end with a delta of 0.",
    )
    columns = [delta, delta, delta]
    if isinstance(delta, Estimate):
        if delta.unit != "probability":
            raise DomainError(f"delta must be a probability; got an Estimate in {delta.unit!r}. Pass deltas.")
        columns = [delta.value, delta.lower, delta.upper]
    value, low, high = (
        validate.vector("delta", column, "between 0 and 1", lambda x: (x >= 0) & (x <= 1)) for column in columns
    )
    if value.size != grid.size:
        raise ShapeError(
            f"epsilon and delta must have equal lengths; got {grid.size} and {value.size}. Pass one delta a point."
        )
    rises = np.append(True, np.diff(grid) > 0)
    validate.real(
        "epsilon", grid, "strictly increasing", lambda e: rises, remedy="Sort the pairs and drop repeated epsilons."
    )
    if not isinstance(delta, Estimate):
        low, high = value * (1 - _SAMPLE_ERROR), np.minimum(value * (1 + _SAMPLE_ERROR), 1.0)
    falls = np.append(True, low[1:] <= high[:-1])
    validate.real(
        "delta", value, "non-increasing in epsilon", lambda d: falls,
        remedy=f"More epsilon cannot need more delta: check {name}.",
    )
    return grid, value, low, high


def _estimate(parts: list[IntegralBracket], curves: tuple[Curve, ...], unit: Information) -> Estimate:
    value, lower, upper = (math.fsum(getattr(part, side) for part in parts) for side in ("value", "lower", "upper"))
    if len(parts) > 1:
        lower, upper = math.nextafter(lower, 0.0), math.nextafter(upper, math.inf)
    estimate = Estimate(
        min(max(value, lower), upper), lower, upper,
        kind="certified" if all(part.proved for part in parts) else "heuristic", unit="nats",
        method="; ".join(dict.fromkeys(part.method for part in parts)),
        cost={"evaluations": sum(part.evaluations for part in parts)},
    )
    samples = [curve[1] for curve in curves if isinstance(curve, (tuple, list)) and isinstance(curve[1], Estimate)]
    kind, confidence = weakest(estimate, *samples, times=(1, *(int(np.size(delta.value)) for delta in samples)))
    return replace(estimate, kind=kind, confidence=confidence).to(unit)


def _gaussian_published(mechanism: GaussianMechanism) -> Estimate:
    """(sensitivity / sigma)^2 / 2, by the symmetry of the Gaussian pair: (12) is 2 KL / (1) there."""
    sigma, span = np.broadcast_arrays(*mechanism._arrays_of_curve()[:2])
    with np.errstate(over="ignore", under="ignore"):
        ratio = span / sigma
        value = ratio * ratio / 2
    # a ratio that underflows loses more than its last places
    error = np.where((span == 0.0) | np.isinf(value), 0.0, 2e-15 * value + 1e-320)
    value, lower, upper = enclosure(value, error, 0.0)
    lower = np.minimum(lower, LARGEST_DOUBLE / 2)
    return Estimate(value, lower, upper, kind="exact", unit="nats", method="closed form")


def _gaussian_two_inputs(mechanism: GaussianMechanism) -> Estimate:
    """The mutual information of two equally likely inputs at the distance of the sensitivity."""
    from ..distributions import Pmf
    from ..divergences.one_dimension.integrals import mutual_information

    sigma, span = np.broadcast_arrays(*mechanism._arrays_of_curve()[:2])
    coins = [Pmf([0.0, s], [0.5, 0.5]) if s > 0.0 else Pmf([0.0], [1.0]) for s in span.ravel().tolist()]
    parts = [mutual_information(coin, s, certified=True) for coin, s in zip(coins, sigma.ravel().tolist(), strict=True)]
    value, lower, upper = (
        np.array([getattr(part, side) for part in parts]).reshape(span.shape) for side in ("value", "lower", "upper")
    )
    method = "mutual information of two inputs"
    return Estimate(value, lower, upper, kind="certified", unit="nats", method=method)
