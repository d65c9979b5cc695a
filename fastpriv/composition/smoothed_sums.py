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

Where delta is near P's mass there is a bound without a sum: what they differ by is E min(1, e^(epsilon - S)), at most
E e^((epsilon - S) / 2) = e^(epsilon / 2) prod E e^(-L_i / 2)^count_i, with the affinity of P and Q.

Both sides are off by about mu^2 times the density of S at epsilon, that is, log delta by mu^2 t (t + 1) where t is the
tilt at epsilon and S is smooth on the scale of mu. Most frequencies up to 6 / mu, where the noise ends the sum, are
passed by: the kernel shows in one step that no term up to the next near return of all losses counts.
"""

# bounds: proved - roundings of the combination of two logarithms

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, next_above, next_below
from ..distributions import GaussianMixture
from .contour import contour_bounds, contour_tilts
from .log_bounds import LogBounds
from .steps import AtomStep, LaplaceStep, MixtureStep, Step
from .tilted_transforms import infinite_log_mass

__all__ = ["smoothed_bounds"]

# bound: proved - the largest mu of the text at the head is 1/2
_LARGEST_MU = 0.125
# bound: none - mu^2 t (t + 1), about the width of a bracket at the tilt t; and widths that say what else is at work
_NOISE, _WIDE = 4e-10, 1e-6
# bound: none - where no more is sought
_CERTAIN = 1e-14  # log delta nearer to that of P's mass, relative to 1 - it, needs no sum
_TRIAL = 32.0  # mu of the first sum, beside the one that is aimed at
# bound: none - relative size of what the sums leave out, which their bounds contain
_CUT = 1e-11
_FREQUENCIES = 1_000_000  # of the last sum for one epsilon, a quarter of a second; for n epsilons sqrt(n) as many


def smoothed_bounds(steps: Sequence[Step], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where a step is no mixture, Laplace noise or atoms."""
    if not all(isinstance(step, (MixtureStep, LaplaceStep, AtomStep)) for step in steps):
        return None
    atoms = [step for step in steps if isinstance(step, AtomStep)]
    infinite = infinite_log_mass([(math.fsum(step.p[step.q == 0.0].tolist()), step.count) for step in atoms])
    finite = [_finite_part(step) if isinstance(step, AtomStep) else step for step in steps]
    lower, most = _by_affinity(finite, epsilon)
    upper, spent = np.full(epsilon.size, most), 0
    open_rows = lower < most - _CERTAIN * (1.0 - most)
    tilts = contour_tilts(finite, epsilon[open_rows])
    if tilts is None:
        return None
    wanted = np.exp2(np.floor(np.log2(np.minimum(np.sqrt(_NOISE / (tilts * (tilts + 1.0))), _LARGEST_MU))))
    for mu in np.unique(wanted).tolist():
        rows = np.flatnonzero(open_rows)[wanted == mu]
        share = _FREQUENCIES * rows.size / math.sqrt(epsilon.size)
        below, above, frequencies = _with_noise(finite, epsilon[rows], mu, share)
        lower[rows], upper[rows] = np.maximum(lower[rows], below), np.minimum(upper[rows], above)
        spent += frequencies
    if infinite[1] > -math.inf:
        lower, upper = (np.logaddexp(x, y) for x, y in zip((lower, upper), infinite, strict=True))
        lower, upper = next_below(lower, 4), np.minimum(next_above(upper, 4), 0.0)
    lower = np.minimum(lower, upper)
    with np.errstate(invalid="ignore"):
        value = np.clip(np.where(lower > -math.inf, 0.5 * (lower + upper), upper), lower, upper)
    return LogBounds(value, lower, upper, {"frequencies": spent}, "contour sum with a little noise")


def _with_noise(
    steps: Sequence[Step], epsilon: FloatArray, least: float, frequencies: float
) -> tuple[FloatArray, FloatArray, int]:
    """Bounds by noise of ``least``, or of as much more as the frequencies of a sum say, and the frequencies taken."""
    spent, upper = 0, np.zeros(epsilon.size)

    def noisy(mu: float) -> tuple[LogBounds, BoolArray, int]:
        """The bounds with noise, which of them are wide, and the frequencies taken."""
        nonlocal spent, upper
        noise = MixtureStep(GaussianMixture.single(mu, 1.0), GaussianMixture.single(0.0, 1.0), 1)
        found = contour_bounds([*steps, noise], epsilon, cut=_CUT)
        assert found is not None  # as the steps have tilts
        taken = int(found.cost["frequencies"])
        spent, upper = spent + taken, np.minimum(upper, found.upper)
        with np.errstate(invalid="ignore"):
            return found, ~(found.upper - found.lower <= _WIDE), taken

    mu, taken = min(_TRIAL * least, _LARGEST_MU), 0
    while True:  # more noise where a sum is not finished
        before, wide, taken = noisy(mu)
        if not wide.any() or mu >= _LARGEST_MU:
            break
        mu = min(_TRIAL * mu, _LARGEST_MU)
    finer = max(least, mu * taken / frequencies)
    if finer < mu:
        mu = finer
        before, wide, taken = noisy(mu)
    lower = np.full(epsilon.size, -math.inf)
    while True:
        after, unfinished, _ = noisy(2.0 * mu)
        lower = np.maximum(lower, _extrapolated(before.lower, after.upper, mu))
        if not wide.any() or mu >= _LARGEST_MU:
            return lower, upper, spent
        mu, before, wide = 2.0 * mu, after, unfinished


def _by_affinity(steps: Sequence[Step], epsilon: FloatArray) -> tuple[FloatArray, float]:
    """Lower bounds of log delta by the text at the head, and the logarithm of P's mass, rounded up."""
    affinities, masses = [], []
    for step in steps:
        if isinstance(step, AtomStep):
            affinity = math.fsum((np.sqrt(step.p) * np.sqrt(step.q)).tolist()) * (1.0 + 8 * UNIT_ROUNDOFF)
            excess = math.fsum([*step.p.tolist(), -1.0])
            if affinity == 0.0 or excess <= -1.0:
                return np.full(epsilon.size, -math.inf), 0.0
            affinities.append(step.count * math.log(affinity))
            masses.append(step.count * math.log1p(excess))
        elif isinstance(step, LaplaceStep):
            half = 0.5 * step.shift / step.scale
            affinities.append(step.count * (math.log1p(half) - half + 8 * UNIT_ROUNDOFF * half))
        else:
            return np.full(epsilon.size, -math.inf), 0.0
    mass = math.fsum(masses)
    slack = 8 * UNIT_ROUNDOFF * math.fsum(map(abs, masses))
    exponent = math.fsum(affinities) + 8 * UNIT_ROUNDOFF * math.fsum(map(abs, affinities)) + 0.5 * next_above(epsilon)
    exponent = next_above(exponent - (mass - slack), 2)
    with np.errstate(divide="ignore", under="ignore"):
        lower = next_below(np.log(-np.expm1(np.minimum(exponent, 0.0))) + mass, 8) - slack
    return np.where(exponent < 0.0, lower, -math.inf), min(mass + slack, 0.0)


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
