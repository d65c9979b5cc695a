"""Compositions whose loss has atoms, by contour sums of the same with a little Gaussian noise.

Notation: S is the sum of all losses, delta its curve; f_mu the curve of the composition with one pair N(mu, 1), N(0, 1)
more, whose loss G is normal. H_mu is the curve of that pair alone, h(u) = (1 - e^u)^+; E is over S under P.

    f_mu(epsilon) = E H_mu(epsilon - S),    delta(epsilon) = E h(epsilon - S).

The sum along the contour of f_mu converges like e^(-mu^2 w^2 / 2), whatever atoms S has.

Above: f_mu >= delta, since H_mu >= h (one release more reveals no less).

Below: for mu <= 1/2 and C = 1 / (1 - mu^2 / 3),

    H_mu - h <= C (H_{2 mu} - H_mu),  hence  delta >= (1 + C) f_mu - C f_{2 mu}.

Proof. For u < 0 both sides are e^u times what they are at -u, as H(u) = 1 - e^u + e^u H(-u). For u >= 0, h = 0 and the
claim is R(u) = H_{2 mu}(u) / H_mu(u) >= 1 + 1 / C. -H_mu'(u) = e^u Phi(-mu/2 - u/mu). The ratio of these tails of 2 mu
and of mu rises in u, for with y = u/mu and Mills' hazard m = phi / Phi(-.), which rises, its logarithmic derivative
times mu is m(mu/2 + y) - m(mu + y/2) / 2 >= 0: where y >= mu the first argument is the larger one, else m(mu + y/2) <=
m(3/4) < 1.4 < 2 m(0). So R, a ratio of integrals of these from u on, rises too, and R(0) = erf(mu / sqrt 2) / erf(mu /
(2 sqrt 2)) >= 2 (1 - mu^2 / 6) = 1 + 1 / C, by x - x^3/3 <= erf(x) sqrt(pi) / 2 <= x.

Both sides are off by about mu^2 times the density of S at epsilon: half a mu, a quarter of the width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..distributions import GaussianMixture
from ..numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from .contour import contour_bounds
from .log_bounds import LogBounds
from .steps import AtomStep, LaplaceStep, MixtureStep, Step
from .tilted_transforms import infinite_log_mass

__all__ = ["smoothed_bounds"]

# bound: proved - the largest mu of the text at the head is 1/2
_FIRST_MU, _LAST_MU = 0.125, 2.0**-20
_ENOUGH = 1e-11  # width of the brackets of log delta beyond which mu is halved no further
_FREQUENCIES = 40_000  # of all contour sums: mu is halved while the next sum keeps below it
_GROWTH = 2.5  # of the frequencies when mu is halved, at most


def smoothed_bounds(steps: Sequence[Step], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where a step is no mixture, Laplace noise or atoms."""
    if not all(isinstance(step, (MixtureStep, LaplaceStep, AtomStep)) for step in steps):
        return None
    atoms = [step for step in steps if isinstance(step, AtomStep)]
    infinite = infinite_log_mass([(math.fsum(step.p[step.q == 0.0].tolist()), step.count) for step in atoms])
    finite = [_finite_part(step) if isinstance(step, AtomStep) else step for step in steps]
    lower, upper = np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)
    mu, spent, before = _FIRST_MU, 0, None
    while mu >= _LAST_MU:
        noise = MixtureStep(GaussianMixture.single(mu, 1.0), GaussianMixture.single(0.0, 1.0), 1)
        found = contour_bounds([*finite, noise], epsilon)
        if found is None:
            return None
        upper = np.minimum(upper, found.upper)
        if before is not None:
            lower = np.maximum(lower, _extrapolated(found.lower, before.upper, mu))
        frequencies = int(found.cost["frequencies"])
        spent += frequencies
        with np.errstate(invalid="ignore"):
            narrow = upper - lower <= _ENOUGH
        if narrow.all() or spent + _GROWTH * frequencies > _FREQUENCIES * max(1.0, math.sqrt(epsilon.size)):
            break
        mu, before = 0.5 * mu, found
    if infinite[1] > -math.inf:
        lower, upper = (np.logaddexp(x, y) for x, y in zip((lower, upper), infinite, strict=True))
        lower, upper = next_below(lower, 4), np.minimum(next_above(upper, 4), 0.0)
    lower = np.minimum(lower, upper)
    with np.errstate(invalid="ignore"):
        value = np.clip(np.where(lower > -math.inf, 0.5 * (lower + upper), upper), lower, upper)
    return LogBounds(value, lower, upper, {"frequencies": spent}, "contour sum with a little noise")


def _finite_part(step: AtomStep) -> AtomStep:
    """Outcomes that occur under P, with a finite loss."""
    kept = (step.p > 0.0) & (step.q > 0.0)
    return AtomStep(step.p[kept], step.q[kept], step.count)


def _extrapolated(narrow: FloatArray, wide: FloatArray, mu: float) -> FloatArray:
    """The logarithm of (1 + C) e^narrow - C e^wide, rounded down; ``wide`` has noise of 2 mu."""
    factor = 1.0 / (1.0 - mu * mu / 3.0) * (1.0 + 4 * UNIT_ROUNDOFF)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        excess = factor * np.expm1(np.maximum(wide - narrow, 0.0)) * (1.0 + 8 * UNIT_ROUNDOFF)
        excess += 4 * UNIT_ROUNDOFF * (1.0 + np.abs(narrow) + np.abs(wide))
        found = next_below(narrow + np.log1p(-excess) * (1.0 + 4 * UNIT_ROUNDOFF), 2)
    return np.where(excess < 1.0, found, -math.inf)
