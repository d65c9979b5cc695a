"""Lists of releases of other accountants, as compositions: events of dp_accounting, histories of Opacus.

Notation: a noise multiplier is the scale of the noise over the largest norm of what one record adds to a sum; where a
record is replaced, the sum moves by up to twice that norm. This is the convention of dp_accounting's PLDAccountant; its
RdpAccountant takes the multiplier over the distance of neighbouring sums instead, which means twice the noise. Several
Gaussians sigma_i on one Poisson sample are one Gaussian of sensitivity sqrt(sum 1 / sigma_i^2) and noise 1; its bounds
as doubles bracket the curve, which rises with the sensitivity.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.exact_linear_algebra import square_root_enclosure
from ..base.inverse import bisect
from ..base.numerics import next_above
from ..composition import Composition, RandomAllocation, compose
from ..distributions import GaussianMixture
from ..mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism, PoissonSampledGaussian
from ..pairs import events
from ..pairs.discrete_pairs import DiscretePair
from ..pairs.protocol import BoundingPairs
from ..pairs.sampled import FixedSizeSampled, PoissonSampled, TruncatedPoissonSampled
from ..pairs.selected import NegativeBinomial, Poisson, Selected

Relation = Literal["add_or_remove", "replace_one", "zero_out"]

_MAX_DEPTH = 100  # events within events
# bound: none - gamma of numbers of runs, and the width of its bracket, whose lower end counts
_LEAST_GAMMA, _GAMMA_WIDTH, _HALVINGS = 1e-300, 1e-13, 200
_MOST_ON_A_SAMPLE = 1000  # releases on one sample
# Events of noise whose scale is the multiplier, and of discrete noise.
_NOISES: Mapping[str, Any] = {
    "GaussianDpEvent": GaussianMechanism, "LaplaceDpEvent": LaplaceMechanism,
    "DiscreteLaplaceDpEvent": GeometricMechanism,
}
# bound: proved - relative error of a fraction that is rounded to a double
_ROUNDING = 2.0**-52


def composition_from_dp_events(event: Any, *, relation: Relation = "add_or_remove") -> Composition:
    """The composition of a DpEvent of dp_accounting.

    Parameters
    ----------
    event : DpEvent of dp_accounting, or dict
        Every class but UnsupportedDpEvent, nested and composed in any way, where the fields have a meaning for the
        relation. A dictionary has the name of the class as ``class_name``, such as ``"GaussianDpEvent"``, and the
        attributes of the event, as its JSON form does; dp_accounting need not be installed. A RandomAllocationDpEvent,
        which dp_accounting lacks, has ``noise_multiplier`` and ``num_steps``.
    relation : {"add_or_remove", "replace_one", "zero_out"}, default "add_or_remove"
        Which data sets are neighbours: by adding or removing a record; by replacing one, which randomised response asks
        for, and which doubles the sensitivity of Gaussian, Laplace and discrete Laplace noise and of trees, whose
        multipliers are over ONE contribution; or by replacing one with a record that contributes zero. The sensitivity
        of a DiscreteGaussianDpEvent is the distance of neighbours itself, and EpsilonDelta, ZC, ExponentialMechanism
        and PermuteAndFlip events hold for whatever relation their guarantee has.

    Returns
    -------
    Composition
        Its worst direction is what an accountant reports.

    Raises
    ------
    DomainError
        For an event of another kind, parameters out of range, or an event whose guarantee is for the other relation.

    Notes
    -----
    Mechanisms may be chosen adaptively, as dp_accounting says of compositions: exponential mechanisms count as such.
    ZCDpEvents give upper bounds alone, and RepeatAndSelectDpEvents bounds for any score. A discrete Gaussian of several
    or unknown dimensions counts by its zCDP. ``source_dataset_size`` is that of the larger data set.

    **Accuracy** that of ``compose``; ``tests/surfaces/test_event_lists.py``.

    Source: the documentation of dp_accounting, dp_event (version 0.6.0, and commit b5b0286).

    Examples
    --------
    >>> from fastpriv import adapters
    >>> gaussian = {"class_name": "GaussianDpEvent", "noise_multiplier": 4.0}
    >>> events = {"class_name": "SelfComposedDpEvent", "event": gaussian, "count": 16}
    >>> print(f"{adapters.composition_from_dp_events(events).epsilon(1e-5):.6f}")
    4.377178 [4.377178, 4.377179]
    """
    validate.choice("relation", relation, ("add_or_remove", "replace_one", "zero_out"))
    return _composition(event, relation, 0)


def composition_from_opacus(history: Any) -> Composition:
    """The composition of the steps that an accountant of Opacus has recorded.

    Parameters
    ----------
    history : list of (noise_multiplier, sample_rate, num_steps)
        Or an accountant with an attribute ``history``, or its ``state_dict()``.

    Returns
    -------
    Composition
        Of Gaussians on Poisson samples, for neighbours by adding or removing a record.

    Raises
    ------
    DomainError
        For another form, or numbers out of range.

    Notes
    -----
    **Accuracy** that of ``compose``; ``tests/surfaces/test_event_lists.py``.

    Source: the documentation of Opacus, opacus.accountants.

    Examples
    --------
    >>> from fastpriv import adapters
    >>> training = adapters.composition_from_opacus([(1.0, 0.01, 1000)])
    >>> training.count
    1000
    """
    rows = history.get("history") if isinstance(history, Mapping) else getattr(history, "history", history)
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, (list, tuple)) and len(row) == 3 for row in rows):
        raise DomainError(
            f"history must be a list of (noise_multiplier, sample_rate, num_steps); got {validate.shown(history)}. "
            "Pass accountant.history, or accountant.state_dict()."
        )
    pairs = [_sampled_gaussian(noise, rate) for noise, rate, _ in rows]
    return compose(pairs, [number for _, _, number in rows])


def opacus_history(composition: Composition) -> list[tuple[float, float, int]]:
    """The history that an accountant of Opacus would have recorded of a composition.

    Parameters
    ----------
    composition : Composition
        Of ``PoissonSampledGaussian`` alone, one record at a time.

    Returns
    -------
    list of (noise_multiplier, sample_rate, num_steps)
        Like steps are counted together, in the order of their first. The multiplier is sigma over sensitivity, rounded
        down where it is no double, so that nobody counts on more noise than there is.

    Raises
    ------
    DomainError
        For another composition.

    Notes
    -----
    **Accuracy** ``composition_from_opacus`` reads the same composition; ``tests/surfaces/test_event_lists.py``.

    Source: the documentation of Opacus, opacus.accountants.

    Examples
    --------
    >>> from fastpriv import PoissonSampledGaussian, adapters, compose
    >>> adapters.opacus_history(compose(PoissonSampledGaussian(1.0, 0.01), 1000))
    [(1.0, 0.01, 1000)]
    """
    validate.instance("composition", composition, Composition)
    history = []
    for release in composition.releases:
        step = release.mechanism
        if not isinstance(step, PoissonSampledGaussian) or step.group_size != 1 or step.sensitivity == 0.0:
            raise DomainError(
                f"composition must consist of PoissonSampledGaussian, of one record and a positive sensitivity; got "
                f"{release.text}. Account for other releases with compose itself."
            )
        multiplier = step.sigma / step.sensitivity
        if Fraction(multiplier) * Fraction(step.sensitivity) > Fraction(step.sigma):
            multiplier = math.nextafter(multiplier, 0.0)
        history.append((multiplier, step.rate, release.times))
    if sum(steps for *_, steps in history) != composition.count:
        raise DomainError(f"composition must name its releases; got {validate.shown(composition)}. Make it by compose.")
    return history


def _fields(event: Any) -> tuple[str, Callable[..., Any]]:
    """The name of the class of an event, and its attributes, with a default where one may be left out."""
    if isinstance(event, Mapping) and "class_name" in event:
        name, read = event["class_name"], event.__getitem__
    else:
        name, read = getattr(event, "class_name", type(event).__name__), functools.partial(getattr, event)

    def field(key: str, *default: Any) -> Any:
        try:
            return read(key)
        except (AttributeError, KeyError):
            if default:
                return default[0]
            raise DomainError(f"event must have {key} in a {name}; got {validate.shown(event)}. Add it.") from None

    return str(name), field


def _composition(event: Any, relation: Relation, depth: int) -> Composition:
    if depth > _MAX_DEPTH:
        raise DomainError(f"event must have at most {_MAX_DEPTH} events within each other; got more. Flatten it.")
    name, field = _fields(event)
    shifted = 2 if relation == "replace_one" else 1  # norms of a record by which neighbouring sums differ
    if name == "ComposedDpEvent":
        return compose([_composition(item, relation, depth + 1) for item in field("events")])
    if name == "SelfComposedDpEvent":
        return compose(_composition(field("event"), relation, depth + 1), field("count"))
    if name == "NoOpDpEvent":
        return compose([])
    if name == "NonPrivateDpEvent":
        return _without_privacy()
    if name in _NOISES:
        noise = _noise_mechanism(name, field, shifted)
        return _without_privacy() if noise is None else compose(noise)
    if name == "RandomizedResponseDpEvent":
        _require("replace_one", relation, name, "it hides what a record is, not whether it is there")
        return _randomized_response(field("noise_parameter"), field("num_buckets"))
    if name == "MixtureOfGaussiansDpEvent":
        _require("add_or_remove", relation, name, "its pair has the records on one side only")
        return _mixture_of_gaussians(*(field(key) for key in ("standard_deviation", "sensitivities", "sampling_probs")))
    if name == "PoissonSampledDpEvent":
        return _poisson_sampled(field("event"), field("sampling_probability"), relation)
    if name in ("SampledWithReplacementDpEvent", "SampledWithoutReplacementDpEvent"):
        size, sample = field("source_dataset_size"), field("sample_size")
        base, again = _base_of_sample(_noises(field("event"))), name == "SampledWithReplacementDpEvent"
        return compose(FixedSizeSampled(base, size, sample, replacement=again, relation=relation))
    if name == "TruncatedSubsampledGaussianDpEvent":
        base = GaussianMechanism(_noise(field("noise_multiplier")), 1.0)
        size, rate, cap = (field(key) for key in ("dataset_size", "sampling_probability", "truncated_batch_size"))
        return compose(TruncatedPoissonSampled(base, size, rate, cap, relation=relation))
    if name == "RandomAllocationDpEvent":
        _require("add_or_remove", relation, name, "of a replaced record the pair is another one")
        return compose(RandomAllocation(field("noise_multiplier"), field("num_steps")))
    if name == "EpsilonDeltaDpEvent":
        return compose(events.ApproximateDP(field("epsilon"), field("delta")))
    if name == "ExponentialMechanismDpEvent":
        return compose(events.BoundedRange(field("epsilon")))
    if name == "PermuteAndFlipDpEvent":
        return compose(events.PermuteAndFlip(field("epsilon")))
    if name == "ZCDpEvent":
        return compose(events.ZeroConcentratedDP(field("rho"), field("xi", 0.0)))
    if name == "DiscreteGaussianDpEvent":
        return _discrete_gaussian(field("sigma"), field("sensitivity", 1.0), field("dimension", None))
    if name == "SingleEpochTreeAggregationDpEvent":
        sigma, steps = _noise(field("noise_multiplier")), field("step_counts")
        return compose(events.TreeAggregation(steps, sigma, float(shifted))) if sigma else _without_privacy()
    if name == "RepeatAndSelectDpEvent":
        return _selected(_composition(field("event"), relation, depth + 1), field("mean"), field("shape"))
    raise DomainError(
        "event must be a NoOp, NonPrivate, Gaussian or another event of dp_accounting with a guarantee, or a "
        f"composition of these; got {validate.shown(event)}. Compose others from pairs that dominate them, by "
        "fastpriv.compose; noise multipliers are over one contribution."
    )


def _discrete_gaussian(sigma: Any, sensitivity: Any, dimension: Any) -> Composition:
    noise = validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    span = validate.scalar("sensitivity", sensitivity, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    if dimension == 1 and span.is_integer():
        return compose(events.DiscreteGaussianMechanism(noise, int(span)))
    rho = Fraction(span) ** 2 / (2 * Fraction(noise) ** 2)
    return compose(events.ZeroConcentratedDP(next_above(float(rho))))


def _selected(base: Composition, mean: Any, shape: Any) -> Composition:
    """The best of runs of this mean number; without bounds from below, which the rounding of gamma would touch."""
    runs: NegativeBinomial | Poisson
    eta = validate.scalar("shape", shape, "at least 0", lambda x: x >= 0)
    if eta == np.inf:
        runs = Poisson(validate.scalar("mean", mean, "positive and at most 1e15", lambda x: (x > 0) & (x <= 1e15)))
    else:
        number = validate.scalar("mean", mean, "from 1 to 1e15", lambda x: (x >= 1) & (x <= 1e15))
        if number == 1.0:
            return base
        low, _ = bisect(  # the mean falls with gamma; a smaller one has the larger bound
            lambda gamma: NegativeBinomial(eta, gamma).mean < number, _LEAST_GAMMA, 1.0, _HALVINGS,
            lambda low, high: math.sqrt(low * high), _GAMMA_WIDTH,
        )
        runs = NegativeBinomial(eta, low * (1.0 - _GAMMA_WIDTH))
    result = compose(Selected(base, runs))
    forward, backward = (
        BoundingPairs(side.dominating, ((),)) for side in (result.forward_pairs, result.backward_pairs)
    )
    return Composition(forward, backward, 1, False, result.releases)


def _base_of_sample(noises: list[tuple[Any, int]]) -> Any:
    """The mechanism on a sample, with the sensitivity of one contribution, or a list of several on one sample."""
    validate.count("count", sum(count for _, count in noises), 0, _MOST_ON_A_SAMPLE)
    mechanisms = [GaussianMechanism(0.0, 1.0) if item is None else item for item, count in noises for _ in range(count)]
    return mechanisms[0] if len(mechanisms) == 1 else mechanisms


def _noises(event: Any, depth: int = 0) -> list[tuple[Any, int]]:
    """The mechanisms in an event, each with its number, for one contribution; None for one that adds no noise."""
    name, field = _fields(event)
    if name in _NOISES:
        return [(_noise_mechanism(name, field, 1), 1)]
    if name == "NoOpDpEvent":
        return []
    if name == "SelfComposedDpEvent" and depth < _MAX_DEPTH:
        count = validate.count("count", field("count"), 0)
        return [(item, number * count) for item, number in _noises(field("event"), depth + 1) if count]
    if name == "ComposedDpEvent" and depth < _MAX_DEPTH:
        return [noise for part in field("events") for noise in _noises(part, depth + 1)]
    raise DomainError(
        f"event must be Gaussian, Laplace or discrete Laplace noise, or a composition of them, inside a sample; got "
        f"{validate.shown(event)}. Compose others from pairs that dominate them, by fastpriv.compose."
    )


def _noise_mechanism(name: str, field: Callable[..., Any], norm_multiple: int) -> Any:
    """The noise of an event; sums of neighbours differ by ``norm_multiple`` norms. None where its scale is 0."""
    if name == "DiscreteLaplaceDpEvent":
        span = validate.count("sensitivity", field("sensitivity"), 1)
        return GeometricMechanism(norm_multiple * span + 1, field("noise_parameter"))
    scale = _noise(field("noise_multiplier"))
    return _NOISES[name](scale, float(norm_multiple)) if scale else None


def _require(needed: Relation, relation: Relation, name: str, reason: str) -> None:
    if relation != needed:
        raise DomainError(
            f"relation must be {needed!r} for a {name}, since {reason}; got {relation!r}. Pass relation={needed!r}, "
            "and account for events of the other relation by themselves."
        )


def _noise(multiplier: Any) -> float:
    return validate.scalar("noise_multiplier", multiplier, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))


def _without_privacy() -> Composition:
    return _unordered(compose((np.array([1.0, 0.0]), np.array([0.0, 1.0]))))


def _sampled_gaussian(multiplier: Any, rate: Any) -> Any:
    sigma = _noise(multiplier)
    if sigma:
        return PoissonSampledGaussian(sigma, rate)
    share = validate.scalar("sample_rate", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    return _sample_without_noise(share, "add_or_remove")


def _sample_without_noise(share: float, relation: Relation) -> Composition:
    """What tells whether a record was drawn, and of one that is replaced also which of both."""
    p, q = np.array([1.0 - share, share, 0.0]), np.array([1.0, 0.0, 0.0])
    return _unordered(compose((p, p[[0, 2, 1]] if relation == "replace_one" else q)))


def _poisson_sampled(event: Any, rate: Any, relation: Relation) -> Composition:
    """Gaussians on one Poisson sample, or other noise."""
    share = validate.scalar("sampling_probability", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    noises = _noises(event)
    if not noises:
        return compose([])
    if any(element is None for element, _ in noises):
        return _sample_without_noise(share, relation)
    if relation != "add_or_remove" or not all(isinstance(element, GaussianMechanism) for element, _ in noises):
        return compose(PoissonSampled(_base_of_sample(noises), share, relation=relation))
    if share == 0.0:
        return compose([])
    sigmas = [(float(item.sigma), count) for item, count in noises]
    if len(sigmas) == 1 and sigmas[0][1] == 1:
        return compose(_sampled_gaussian(sigmas[0][0], share))
    square = sum((count / Fraction(sigma) ** 2 for sigma, count in sigmas), Fraction(0))
    low, high = square_root_enclosure((square, square))
    above, below = (compose(PoissonSampledGaussian(1.0, share, span)) for span in (high, low))
    if low == high:
        return above
    forward, backward = (
        BoundingPairs(entry.dominating, (other.dominating,))
        for entry, other in ((above.forward_pairs, below.forward_pairs), (above.backward_pairs, below.backward_pairs))
    )
    return Composition(forward, backward, 1, False)


def _randomized_response(noise: Any, buckets: Any) -> Composition:
    """The truth with probability 1 - noise, else any of the buckets."""
    share = validate.scalar("noise_parameter", noise, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    k = validate.count("num_buckets", buckets, 1)
    if k == 1:
        return compose([])
    lie = Fraction(share) / k
    p = np.array([float(x) for x in (1 - (k - 1) * lie, lie, (k - 2) * lie)])
    pair = DiscretePair(p[p > 0.0], p[[1, 0, 2]][p > 0.0], 1, _ROUNDING, _ROUNDING)
    if share == 0.0:
        return _without_privacy()
    pairs = BoundingPairs((pair,))
    return Composition(pairs, pairs, 1, False)


def _mixture_of_gaussians(deviation: Any, sensitivities: Any, probabilities: Any) -> Composition:
    sigma = _noise(deviation)
    if not sigma:
        return _without_privacy()
    p, q = GaussianMixture(probabilities, sensitivities, sigma), GaussianMixture.single(0.0, sigma)
    return _unordered(compose((p, q)))


def _unordered(composition: Composition) -> Composition:
    """The same without an order of its two distributions."""
    steps = composition.forward_pairs, composition.backward_pairs
    return Composition(*steps, composition.count, False, composition.releases)
