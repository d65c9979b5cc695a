"""Capacity of the Gaussian channel under peak power: the most that a release leaks about a secret in a ball.

Notation: Y = X + sigma Z with Z standard normal in R^d and ||X|| <= A, R = A/sigma. The capacity

    C(d, R) = sup I(X; Y)   over all distributions of X in the ball,

is equation (8) of the local mutual-information privacy paper (Ngo, Oestman and Graell i Amat), the optimal CI-LMIP
parameter of the Gaussian mechanism. The best input is uniform on finitely many spheres; csrc/awgn finds them, with a
uniform ball in place of the inner ones where R is large, and proves the bracket I(P) <= C <= max_r i(r; P). Beyond
R = 1e7 the bracket consists of bounds in closed form (csrc/awgn/fp_awgn_capacity_solver.h). Arrays of settings are
solved in ascending order of R, each from the solution of the one before.
"""

# bounds: proved - docs/proofs/roundings.md, 13.20: outward steps of the inverse, in units of _ROUNDING; the rest are
#    limits of rtol, of the search, and of the arguments for which single numbers need no array

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import special
from ..base import parallel, validate
from ..base.estimate import Estimate, Information, NumberLike, Unit
from ..base.monotone import monotone
from ..base.numerics import LOG_2, FloatArray, IndexArray
from ..kernels import _awgn

_BLOCK = 32  # settings of one dimension solved in a row, each from the solution of the one before
# bound: proved - docs/proofs/roundings.md, 13.20: relative rounding of R = A / sigma and of the unit
_ROUNDING = 1e-15
# bound: none - part of the relative width that is reserved for _ROUNDING
_RESERVED = 6e-15
_ONE_SPHERE_RUN = 2048  # settings in one task of the solver with a single sphere
_NEIGHBOUR = 0.6  # largest difference of R at which the solution of one setting is a start for another
_CLOSED_FORM = "average-power, volume and entropy-power bounds"  # ``method`` of an Estimate by closed bounds
_LOG_2_PI_E = math.log(2.0 * math.pi * math.e)  # twice the entropy of a standard normal variable, in nats
_MAX_DIMENSION = 1_000_000  # largest dimension for which the accuracy of the solver was tested


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AwgnCapacity(Estimate):
    """A peak-power capacity with its certificate: an ``Estimate`` that also has the input it rests on.

    Parameters
    ----------
    value, lower, upper, kind, unit, method, confidence, cost
        As for ``Estimate``.
    slope : float or ndarray
        dC/dA, in the unit of the capacity per unit of amplitude.
    radii, probabilities : ndarray
        The input: spheres and their weights, radii in the unit of the amplitude, ascending; for d = 1 a radius r > 0
        stands for the two points -r and r, with half the weight each. For array arguments they are object arrays.
        Where ``method`` begins with "uniform ball" the first radius r_0, ahead of the spheres and larger than some,
        stands for a density that is uniform but for a ramp at its edge, proportional to
        Phi((r_0 - ||x||) / (1.2 sigma)); with bounds in closed form the only radius stands for the uniform density in
        the ball.

    Examples
    --------
    >>> from fastpriv import awgn_capacity
    >>> result = awgn_capacity(1, 2.0)
    >>> result.radii, result.probabilities
    (array([0., 2.]), array([0.137..., 0.862...]))
    """

    slope: float | FloatArray = field(kw_only=True)
    radii: NDArray[Any] = field(kw_only=True)
    probabilities: NDArray[Any] = field(kw_only=True)

    def __post_init__(self) -> None:
        Estimate.__post_init__(self)
        slope = np.array(self.slope, dtype=np.float64)
        slope.setflags(write=False)
        object.__setattr__(self, "slope", float(slope) if slope.ndim == 0 else slope)

    def to(self, unit: Unit) -> AwgnCapacity:
        """Convert between nats and bits, slope included; bounds are rounded outward."""
        if isinstance(unit, str) and unit == self.unit:
            return self
        plain = Estimate.to(self, unit)
        factor = 1.0 / LOG_2 if unit == "bits" else LOG_2
        return self._with(plain, np.multiply(self.slope, factor), self.radii, self.probabilities)

    def __getitem__(self, index: Any) -> AwgnCapacity:
        plain = Estimate.__getitem__(self, index)
        return self._with(plain, np.asarray(self.slope)[index], self.radii[index], self.probabilities[index])

    @staticmethod
    def _with(plain: Estimate, slope: Any, radii: Any, probabilities: Any) -> AwgnCapacity:
        description = {item.name: getattr(plain, item.name) for item in fields(Estimate)}
        return AwgnCapacity(**description, slope=slope, radii=radii, probabilities=probabilities)


@monotone(rising="amplitude", falling="sigma")
def awgn_capacity(
    dimension: ArrayLike, amplitude: NumberLike, sigma: NumberLike = 1.0, *, rtol: float = 1e-9,
    unit: Information = "nats", n_jobs: int | None = None, progress: parallel.Progress = None,
) -> AwgnCapacity:
    """Capacity of Y = X + N(0, sigma^2 I_d) with ||X|| <= amplitude: the optimal CI-LMIP parameter of Gaussian noise.

    Parameters
    ----------
    dimension : array_like of int
        Dimension d of the secret, from 1 to 1,000,000.
    amplitude : array_like or Estimate
        Largest norm of the secret, not negative and finite; sqrt(d) Delta in the paper.
    sigma : array_like or Estimate, default 1
        Standard deviation of the noise in each coordinate, positive; ``inf`` leaks nothing. The three broadcast.
    rtol : float, default 1e-9
        Relative width of the bracket to reach, from 1e-13 to 0.1.
    unit : {"nats", "bits"}
        Unit of the answer.
    n_jobs : int, optional
        Threads for arrays; None means what ``joblib.parallel_config`` says. The answer does not depend on it.
    progress : bool or callable, optional
        As for ``assess``.

    Returns
    -------
    AwgnCapacity
        Kind ``certified``: lower is the information of the input in ``radii`` and ``probabilities`` (where there is
        one), upper the largest divergence of any input point from its output. Errors of quadrature,
        of interpolation and of rounding are bounded by proof (page 6 of docs/proofs). ``value`` is the lower bound
        before its errors; for amplitudes beyond 1e7 sigma it is the asymptotic form
        log(V_d(R) (1 + 3.98160794705 d / (2 R)) / (2 pi e)^(d/2)), whose constant is empirical, between bounds that are
        not, and the slope is d / R.

    Raises
    ------
    DomainError
        For a dimension that is not a whole number from 1 to 1,000,000, a negative or infinite amplitude, sigma that is
        not positive, NaN, rtol out of range or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: the bracket holds always, and its relative width is at most ``rtol`` for amplitudes up to 10 sqrt(d)
    sigma in every dimension (d = 1: up to 25 sigma, at 1e-9 up to 60), by
    ``tests/enclosures/test_awgn_capacity.py``; beyond, it is at most 1e-6 at every amplitude in every dimension, and
    1e-8 for d = 1 up to 100,000 sigma, by ``tests/enclosures/test_awgn_large_balls.py``.

    One sphere takes microseconds in any dimension; m spheres take about m^2 times the number of quadrature nodes, which
    grows like R: some milliseconds at amplitude 10 sqrt(d), and up to half a second where about 80 standard deviations
    lie between the innermost and the outermost sphere that matter. Beyond that a uniform ball takes the place of the
    inner ones, and 20 to 100 milliseconds do for every R. Arrays are solved from one amplitude to the next.

    Source: equation (8); certificate Smith 1971 and Shamai and Bar-David 1995; one sphere Dytso, Al, Poor and Shamai
    2019.

    Examples
    --------
    >>> from fastpriv import awgn_capacity
    >>> float(awgn_capacity(1, 1.0)), float(awgn_capacity(10, 10**0.5, unit="bits"))
    (0.336830820346..., 4.97451525742...)
    >>> awgn_capacity([1, 2, 4], 3.0).value
    array([0.881..., 1.503..., 2.274...])
    """
    parallel.checked(n_jobs, progress)
    validate.choice("unit", unit, ("nats", "bits"))
    if type(rtol) is not float or not 1e-13 <= rtol <= 0.1:
        rtol = validate.scalar("rtol", rtol, "between 1e-13 and 0.1", lambda x: (x >= 1e-13) & (x <= 0.1))
    if _are_ordinary(dimension, amplitude, sigma):
        return _scalar_capacity(float(dimension), float(amplitude), float(sigma), rtol).to(unit)  # type: ignore[arg-type]
    d = _dimension(dimension)
    a = validate.real("amplitude", amplitude, "not negative and finite", lambda x: (x >= 0) & np.isfinite(x))
    s = validate.real("sigma", sigma, "positive", lambda x: x > 0)
    validate.broadcastable("dimension", d, "amplitude", a)
    validate.broadcastable("dimension and amplitude", d + a, "sigma", s)
    d, a, s = np.broadcast_arrays(d, a, s)
    with np.errstate(over="ignore", under="ignore"):
        solved = _solve_all(d.ravel(), a.ravel(), s.ravel(), rtol, n_jobs, progress)
    return _array_capacity(solved, a, s).to(unit)


@monotone(falling="capacity", rising="amplitude")
def awgn_sigma_from_capacity(
    capacity: NumberLike, dimension: ArrayLike, amplitude: NumberLike, *, rtol: float = 1e-9,
    unit: Information = "nats", n_jobs: int | None = None,
) -> Estimate:
    """Sigma at which the peak-power capacity is a given number: the inverse of ``awgn_capacity``.

    The capacity at ``upper`` is proved to be at most the target, that at ``lower`` at least the target. Newton's method
    on log C against log R with dC/dR = p_R i'(R) starts each step from the input of the one before; both sides are then
    certified. ``rtol``, from 1e-12 to 0.1, is the relative width of the capacities that prove the two sides; sigma is
    two to six times as wide, and more where the capacity cannot be had to ``rtol``. ``calibration.sigma_from_ci_lmip``
    documents the arguments.
    """
    parallel.checked(n_jobs)
    validate.choice("unit", unit, ("nats", "bits"))
    rtol = validate.scalar("rtol", rtol, "between 1e-12 and 0.1", lambda x: (x >= 1e-12) & (x <= 0.1))
    if _are_ordinary(dimension, amplitude, 1.0, capacity):
        size, nats = float(amplitude), float(capacity) * (LOG_2 if unit == "bits" else 1.0)  # type: ignore[arg-type]
        ((low, high, middle),) = _inverse_block([(float(dimension), nats)], rtol).tolist()  # type: ignore[arg-type]
        return _sigma_estimate(size / middle, size / high, size / low)
    target = validate.real("capacity", capacity, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
    d = _dimension(dimension)
    a = validate.real("amplitude", amplitude, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
    validate.broadcastable("capacity", target, "dimension", d)
    validate.broadcastable("capacity and dimension", target + d, "amplitude", a)
    target, d, a = np.broadcast_arrays(target * (LOG_2 if unit == "bits" else 1.0), d, a)
    bounds = np.empty((target.size, 3))
    order = np.lexsort((target.ravel(), d.ravel()))
    pairs = list(zip(d.ravel()[order].tolist(), target.ravel()[order].tolist(), strict=True))
    blocks = parallel.blocks(len(pairs), _BLOCK)
    results = parallel.ordered_map(lambda block: _inverse_block(pairs[block], rtol), blocks, n_jobs=n_jobs)
    for block, rows in zip(blocks, results, strict=True):
        bounds[order[block]] = rows
    low, high, middle = bounds.reshape(*target.shape, 3).transpose(-1, *range(target.ndim))
    with np.errstate(over="ignore"):
        return _sigma_estimate(a / middle, a / high, a / low)


def _sigma_estimate(value: Any, lower: Any, upper: Any) -> Estimate:
    lower, upper = np.nextafter(lower, 0.0), np.nextafter(upper, np.inf)
    return Estimate(
        np.clip(value, lower, upper), lower, upper, kind="certified", unit="1",
        method="Newton's method on the certified capacity",
    )


def _dimension(dimension: ArrayLike) -> FloatArray:
    return validate.real(
        "dimension", dimension, f"a whole number from 1 to {_MAX_DIMENSION}",
        lambda x: (x >= 1) & (x <= _MAX_DIMENSION) & (x == np.floor(x)),
    )


def _are_ordinary(dimension: Any, *others: Any) -> bool:
    """Whether all are Python numbers of moderate size, so that the answer is computed without arrays."""
    return (
        type(dimension) is int
        and 1 <= dimension <= _MAX_DIMENSION
        and all(type(x) in (int, float) and 1e-100 < x < 1e100 for x in others)
    )


def _scalar_capacity(d: float, a: float, s: float, rtol: float) -> AwgnCapacity:
    solution = _solve(d, a / s, rtol)
    lower = min(solution.lower * (1 - _ROUNDING), solution.value)
    upper = max(solution.upper * (1 + _ROUNDING), solution.value)
    return AwgnCapacity(
        solution.value, lower, upper, kind="certified", unit="nats", method=solution.method,
        cost={"evaluations": solution.evaluations}, slope=solution.slope / s, radii=np.minimum(solution.radii * s, a),
        probabilities=solution.probabilities,
    )


def _array_capacity(solved: _SolvedArray, a: FloatArray, s: FloatArray) -> AwgnCapacity:
    shape = a.shape
    value, lower, upper, slope, _ = (column.reshape(shape) for column in solved.numbers[solved.position].T)
    lower, upper = lower * (1 - _ROUNDING), upper * (1 + _ROUNDING)
    radii, probabilities = np.empty(a.size, dtype=object), np.empty(a.size, dtype=object)
    radii[:] = list(a.reshape(-1, 1))
    probabilities[:] = [np.ones(1)] * a.size
    scale = np.where(np.isfinite(s), s, 0.0).ravel()
    for index in np.flatnonzero(np.isin(solved.position, list(solved.solutions))).tolist():
        solution = solved.solutions[int(solved.position[index])]
        if len(solution.radii) > 1:
            radii[index] = np.minimum(solution.radii * scale[index], a.flat[index])
            probabilities[index] = solution.probabilities
    methods = {solution.method for solution in solved.solutions.values()} | {"one sphere" if a.size else "none"}
    cost = {"evaluations": int(solved.numbers[:, 4].sum())}
    return AwgnCapacity(
        value, np.minimum(lower, value), np.maximum(upper, value), kind="certified", unit="nats",
        method="; ".join(sorted(methods)), cost=cost, slope=slope / s,
        radii=radii[0] if shape == () else radii.reshape(shape),
        probabilities=probabilities[0] if shape == () else probabilities.reshape(shape),
    )


@dataclass(slots=True)
class _SolvedSetting:
    """The capacity of one setting, its bounds and its input."""

    value: float
    lower: float
    upper: float
    slope: float  # dC/dR
    method: str
    radii: FloatArray
    probabilities: FloatArray
    evaluations: int = 0
    state: Any = None


def _solve(d: float, radius: float, rtol: float, start: Any = None) -> _SolvedSetting:
    """C(d, R) to relative width ``rtol``; ``start`` is the ``state`` of a neighbouring setting."""
    return _solved_setting(_awgn.solve(d, radius, rtol - _RESERVED, start), radius)


def _solved_setting(state: Any, radius: float) -> _SolvedSetting:
    """A solution of the kernel with its input in full and its method in words."""
    value, lower, upper, slope, method, evaluations = state.numbers
    radii, probabilities = state.spheres
    words = [name for bit, name in (
        (_awgn.ONE_SPHERE, "one sphere"), (_awgn.SPHERES, "spheres by Newton's method"),
        (_awgn.BALL, "uniform ball and spheres"), (_awgn.CLOSED_FORM, _CLOSED_FORM),
    ) if method & bit]
    return _SolvedSetting(value, lower, upper, slope, " within ".join(words), radii, probabilities, evaluations, state)


@dataclass(slots=True)
class _SolvedArray:
    """Many settings: ``numbers[position[k]]`` has value, lower, upper, slope and evaluations of setting k.

    ``solutions`` maps a position to its solution where that is not one sphere of full radius by the solver.
    """

    position: IndexArray
    numbers: FloatArray
    solutions: dict[int, _SolvedSetting]


def _solve_all(
    d: FloatArray, a: FloatArray, s: FloatArray, rtol: float, n_jobs: int | None, progress: parallel.Progress
) -> _SolvedArray:
    """Solve the settings of three flat arrays, equal ones once, in ascending order of R = a/s for each dimension."""
    radius = a / s
    log_radius = special.log(a) - special.log(s)
    order = np.lexsort((log_radius, radius, d))
    keys = np.stack((d, radius, log_radius))[:, order]
    new = np.ones(d.size, dtype=bool)  # keys that differ from the one before
    new[1:] = np.any(keys[:2, 1:] != keys[:2, :-1], axis=0) | np.isinf(keys[1, 1:])
    position = np.empty(d.size, dtype=np.intp)
    position[order] = np.cumsum(new) - 1
    d, radius, log_radius = np.ascontiguousarray(keys[:, new])
    numbers = np.full((d.size, 5), -1.0)
    solvable = (radius >= _awgn.SMALLEST_RADIUS) & (radius <= _awgn.LARGEST_RADIUS)
    edges = np.append(np.flatnonzero(np.diff(d, prepend=0.0)), d.size)
    runs = [
        slice(start + block.start, start + block.stop)
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for block in parallel.blocks(end - start, _ONE_SPHERE_RUN)
    ]

    def one_sphere(run: slice) -> FloatArray:
        radii = np.where(solvable[run], radius[run], 1.0)
        return np.asarray(_awgn.one_sphere(float(d[run.start]), radii, rtol - _RESERVED))

    for run, rows in zip(runs, parallel.ordered_map(one_sphere, runs, n_jobs=n_jobs), strict=True):
        numbers[run] = rows
    solutions = {
        k: replace(_solved_setting(_awgn.closed_form(d[k], radius[k], log_radius[k]), radius[k]), state=None)
        for k in np.flatnonzero(~solvable).tolist()
    }
    remaining = np.flatnonzero(solvable & (numbers[:, 1] < 0.0))
    of_dimensions = np.split(remaining, np.flatnonzero(np.diff(d[remaining])) + 1)
    tasks = [part[block] for part in of_dimensions for block in parallel.blocks(part.size, _BLOCK)]
    results = parallel.ordered_map(
        lambda part: _solve_block(d[part], radius[part], rtol), tasks, n_jobs=n_jobs, progress=progress
    )
    for part, block_solutions in zip(tasks, results, strict=True):
        solutions.update(zip(part.tolist(), block_solutions, strict=True))
    for k, solution in solutions.items():
        numbers[k] = solution.value, solution.lower, solution.upper, solution.slope, solution.evaluations
    return _SolvedArray(position, numbers, solutions)


def _start(state: Any, distance: float) -> Any:
    """The state of another setting if it is a start: in large balls the input near the edge is the same for every R."""
    near = state is not None and (abs(distance) <= _NEIGHBOUR or state.numbers[4] & _awgn.BALL)
    return state if near else None


def _solve_block(d: FloatArray, radii: FloatArray, rtol: float) -> list[_SolvedSetting]:
    solutions: list[_SolvedSetting] = []
    for dimension, radius in zip(d.tolist(), radii.tolist(), strict=True):
        last = solutions[-1] if solutions else None
        start = _start(last.state, radius - last.radii[-1]) if last else None
        solutions.append(_solve(dimension, radius, rtol, start))
    # Only neighbouring settings use a state, and it cannot be pickled.
    return [replace(solution, state=None) for solution in solutions]


def _inverse_block(pairs: Sequence[tuple[float, float]], rtol: float) -> FloatArray:
    """For pairs (d, C): a radius of capacity at most C, one of capacity at least C, and the best approximation."""
    rows = np.empty((len(pairs), 3))
    last: tuple[float, float, Any] | None = None  # dimension, radius and state of the previous setting
    for index, (d, target) in enumerate(pairs):
        rows[index], radius, state = _inverse(d, target, rtol, _radius_of_upper_bound(d, target), last)
        last = (d, radius, state)
    return rows


def _inverse(d: float, target: float, rtol: float, radius: float, last: Any) -> tuple[tuple[float, ...], float, Any]:
    """R with C(R) <= target, R with C(R) >= target and R itself, by Newton's method; then R and its solver state."""
    if radius > 1e300:
        return (1e299, math.inf, 1e300), radius, None
    state = None
    for step in range(60):
        if state is None and last is not None and last[0] == d:
            state = _start(last[2], radius - last[1])
        solution = _solve(d, radius, (1e-2, 1e-4)[step] if step < 2 else rtol, state)
        elasticity = min(max(radius * solution.slope / solution.value, 0.02), 2.0) if solution.value > 0 else 2.0
        move = min(max(math.log(target / solution.value) / elasticity, -2.0), 2.0) if solution.value > 0 else 1.0
        previous, radius = radius, radius * math.exp(move)
        state = _start(solution.state, radius - previous)
        if step > 1 and move * move <= 0.01 * rtol:  # the step after this one would be as small as its square
            break
    # Far enough to either side that the target lies outside of any bracket of relative width rtol.
    width = max(4.0 * move * move, max(1.1 * rtol, (solution.upper - solution.lower) / solution.value) / elasticity)
    below, above = target * (1 - 4 * _ROUNDING), target * (1 + 4 * _ROUNDING)
    low = _beyond(radius, -width, lambda r: _bracket(d, r, rtol, state)[1] <= below)
    high = _beyond(radius, width, lambda r: _bracket(d, r, rtol, state)[0] >= above)
    return (low, high, min(max(radius, low), high)), previous, solution.state


def _bracket(d: float, radius: float, rtol: float, start: Any) -> tuple[float, float]:
    """Bounds, widened if they are wider than ``rtol``, since another start may give wider ones."""
    solution = _solve(d, radius, rtol, start)
    width = solution.upper - solution.lower
    margin = 0.0 if width <= rtol * solution.lower or radius < _awgn.SMALLEST_RADIUS else width
    return solution.lower - margin, solution.upper + margin


def _beyond(radius: float, width: float, reached: Callable[[float], bool]) -> float:
    """Move the radius by the relative ``width``, and by more until the target is certainly on the other side."""
    while 1e-300 < radius < 1e300:
        radius *= math.exp(min(max(width, -700.0), 700.0))
        if reached(radius):
            return radius
        width *= 2.0
    return 5e-324 if width < 0 else math.inf


def _radius_of_upper_bound(d: float, capacity: float) -> float:
    """The R at which an upper bound is ``capacity``, so that C(R) is at most that."""
    exponent = 2.0 * capacity / d
    root = math.sqrt(math.expm1(exponent)) if exponent < 600.0 else math.exp(0.5 * min(exponent, 1400.0))
    by_average_power = math.sqrt(d) * root
    if d == 1 and capacity < 600.0:
        return max(by_average_power, 0.5 * math.expm1(capacity) * math.exp(0.5 * _LOG_2_PI_E))
    return by_average_power
