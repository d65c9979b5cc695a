"""A number about all records, or several: what one record changes in it, and what its release with noise tells.

Notation: n values x, each clipped to [a, b]. Neighbouring data sets differ by one record, which is replaced by another
(``replace_one``; n is public), or which is there or not (``add_or_remove``). One record then changes at most

    mean        (b - a) / n        replace_one alone: a mean of n and one of n + 1 values differ by more than a term
    sum         b - a              replace_one
                max(|a|, |b|)      add_or_remove: the term of the record appears or goes
    count       1                  a term of 0 or 1; replace_one for values within bounds, others are as many as before
    histogram   one count by 1     add_or_remove: l1 and l2 sensitivity 1
                two counts by 1    replace_one: l1 sensitivity 2, l2 sensitivity sqrt(2)

and each is attained. Gaussian noise of a vector depends on the l2 sensitivity s alone (rotate the difference onto an
axis): delta, LIP and information are those of one number that moves by s. Laplace noise is independent in each count,
so that two counts are a composition of two releases.

LIP and information are about one bit: which of two neighbours at the largest distance the data are, at even odds, for
somebody who knows all other records. The distribution of the column is no prior here: information under it would show
the statistic of a column of zeros and ones. For Laplace noise they are not computed: its pure epsilon bounds both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ... import notions
from ...base import validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, exact
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, doubles_around, next_above
from ...composition import compose
from ...distributions import Pmf
from ...mechanisms import GaussianMechanism, LaplaceMechanism
from .families import MechanismFamily, Parameter
from .quantities import LDP_DELTA
from .secret import SecretDistribution

# The mechanisms that add noise to a statistic: the noise in words, and its parameter.
_MECHANISMS: Mapping[str, tuple[str, Parameter]] = {
    "gaussian": ("answer + N(0, sigma^2)", "sigma"),
    "laplace": ("answer + Laplace noise, level its pure epsilon", "level"),
}
# bound: proved - docs/proofs/roundings.md, 13.3: half-width of the interval that holds 95 % of a noise over its
#    deviation, to 3 units
_HALF_WIDTHS = {"gaussian": 1.959963984540054, "laplace": math.log(20.0) / math.sqrt(2.0)}
# bound: proved - docs/proofs/roundings.md, 13.3: rounding of a product of a few doubles
_ROUNDING = 16 * UNIT_ROUNDOFF
# bound: proved - docs/proofs/roundings.md, 13.3: absolute error of the standard deviation of numbers in [0, 1]
_SPREAD_ERROR = 256 * UNIT_ROUNDOFF
_LARGEST_BOUND = 1e150  # bounds beyond it have sums and scales of noise that no double holds


@dataclass(frozen=True)
class Statistic:
    """A statistic of a column, with what was stated of it and what one record changes.

    Attributes
    ----------
    name : {"mean", "sum", "count", "histogram"}
        What it is.
    description : str
        The same in words, with its bounds and with the relation of neighbouring data.
    change : float
        Most that one record changes in each number that it changes, rounded up.
    numbers : int
        How many numbers a record changes.
    from_data : tuple of str
        What was read off the private data, in words.
    sampling_error : Estimate, optional
        Standard error of a mean as an estimate of a population's, from the deviation of the clipped values.
    """

    name: str
    description: str
    change: float
    numbers: int = 1
    from_data: tuple[str, ...] = ()
    sampling_error: Estimate | None = None

    @property
    def sensitivity(self) -> float:
        """Euclidean distance between the statistics of two neighbours, rounded up."""
        return self.change if self.numbers == 1 else float(next_above(self.change * math.sqrt(self.numbers)))

    @property
    def secret(self) -> SecretDistribution:
        """The bit: which of two neighbours at the largest distance the data are, at even odds."""
        return SecretDistribution(Pmf([0.0, self.sensitivity], [0.5, 0.5]), None, 0, None, np.arange(2), 2, 1.0)

    def family(self, mechanism: Any) -> MechanismFamily:
        """The mechanism of this name for this statistic."""
        name = validate.choice("mechanism", mechanism, tuple(_MECHANISMS))
        return MechanismFamily(name, *_MECHANISMS[name], "numbers", lambda level, *_: self.mechanism(name, level))

    def scale(self, level: float) -> float:
        """Scale of Laplace noise with this pure epsilon, rounded up."""
        return float(next_above(self.numbers * self.change / level))

    def mechanism(self, name: str, parameter: float) -> Any:
        """The release, as ``compose`` takes it, with noise of this sigma, or Laplace noise of this level."""
        if name == "gaussian":
            return GaussianMechanism(parameter, self.sensitivity)
        laplace = LaplaceMechanism(self.scale(parameter), self.change)
        return laplace if self.numbers == 1 else compose(laplace, self.numbers)

    def noise(self, name: str, parameter: float) -> tuple[Estimate, Estimate]:
        """Standard deviation of the noise, and half the width of the interval around the answer that holds 95 %."""
        deviation = parameter if name == "gaussian" else math.sqrt(2.0) * self.scale(parameter)
        return _rounded(deviation), _rounded(deviation * _HALF_WIDTHS[name])

    def quantities(self, name: str, parameter: float, epsilon: FloatArray) -> dict[str, Estimate]:
        """The quantities of the release at one level of noise, the curves at all of ``epsilon``."""
        mechanism, (deviation, half_width) = self.mechanism(name, parameter), self.noise(name, parameter)
        computed = {
            "noise_deviation": deviation, "noise_half_width": half_width, "dp_delta": mechanism.delta(epsilon),
            "dp_epsilon": mechanism.epsilon(LDP_DELTA), "pure_dp_epsilon": mechanism.epsilon(0.0),
        }
        if self.sampling_error is not None:
            ratios = (error / float(deviation.value) for error in self.sampling_error.floats())
            value, high, low = (1.0 / (1.0 + ratio * ratio) for ratio in ratios)
            low, high = low * (1.0 - _ROUNDING), min(high * (1.0 + _ROUNDING), 1.0)
            computed["noise_share"] = Estimate(value, low, high, kind="exact", unit="1", method="closed form")
        if name == "gaussian":
            prior = self.secret.prior
            computed["lip_delta"] = notions.lip_delta(prior, mechanism, epsilon)
            computed["mutual_information"] = notions.cd_lmip(prior, mechanism)
            computed["bayes_vulnerability"] = notions.bayes_vulnerability(prior, mechanism)
        return computed


def read_statistic(name: Any, data: Any, bounds: Any, relation: Any) -> Statistic:
    """Return the statistic of a column; of the data, only how many are clipped and how far a mean's values spread."""
    name = validate.choice("statistic", name, ("mean", "sum", "count", "histogram"))
    default = "replace_one" if name == "mean" else "add_or_remove"
    relations = tuple(dict.fromkeys((default, "replace_one")))
    replaced = validate.choice("relation", default if relation is None else relation, relations) == "replace_one"
    neighbours = f"neighbours: one record {'replaced by another' if replaced else 'there or not'}"
    low = high = math.nan
    if bounds is not None:
        ends = validate.vector("bounds", bounds, "numbers of at most 1e150", lambda x: np.abs(x) <= _LARGEST_BOUND)
        if ends.size != 2 or ends[0] > ends[1] or (ends[0] == ends[1] and name != "count"):
            raise DomainError(f"bounds must be two numbers, the lower first; got {ends.tolist()}. Pass (0, 120).")
        low, high = ends.tolist()
    elif name in ("mean", "sum") or (name == "count" and replaced):
        raise DomainError(
            f"bounds must be given for a {name} here; got None. State the least and the largest value without a look "
            "at the data (--bounds 0 120): bounds that are read off the data are a release of their own."
        )
    if name in ("count", "histogram"):
        counted = "count of records" if name == "count" else "counts of cells that were stated before"
        between = "" if bounds is None else f", values from {low:.6g} to {high:.6g}"
        return Statistic(name, f"{counted}{between}; {neighbours}", 1.0, 2 if name == "histogram" and replaced else 1)
    values = validate.vector("data", data, "finite numbers", remedy="Remove or correct these entries.")
    clipped = f"Clipping to the bounds changed {np.count_nonzero((values < low) | (values > high)):,} values."
    span = Fraction(high) - Fraction(low)
    largest = span if replaced else Fraction(max(abs(low), abs(high)))
    text = f"values, each clipped to {low:.6g} to {high:.6g}; {neighbours}"
    if name == "sum":
        return Statistic(name, f"sum of {text}", doubles_around(largest)[1], 1, (clipped,))
    of_mean = float(span) / math.sqrt(values.size)
    spread = of_mean * float(np.std((np.clip(values, low, high) - low) / float(span)))
    from_data = (clipped, "The share of the noise rests on the spread of the values.")
    return Statistic(
        name, f"mean of {values.size:,} {text}", doubles_around(span / values.size)[1], 1, from_data,
        exact(spread, _SPREAD_ERROR * of_mean, unit="1", method="standard deviation", least=0.0),
    )


def _rounded(value: float) -> Estimate:
    """A product of a few doubles with their rounding."""
    return exact(value, _ROUNDING * value, unit="1", method="closed form")
