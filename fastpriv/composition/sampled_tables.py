"""Tables of compositions: delta, epsilon and the least sigma of many settings of Poisson-sampled Gaussians at once.

A cell is one ``compose(PoissonSampledGaussian(sigma, rate), count)`` with its target. Cells go through one kernel
(``csrc/composition/fp_sampled_cells_solver.h``, with the proofs), sorted by sigma, rate and count, so that neighbours
share moments, nodes and sums; the result of a cell depends on this cell alone. Cells of rate 1 and of a single release
are single calls, of closed forms, and a cell without any loss has delta = 0.

Checks. With M = 1 + q^2 (e^(1/sigma^2) - 1), the moment of order 2 of one removal, the distance of total variation of
``count`` releases is at most sqrt(M^count - 1) / 2 (Cauchy and Schwarz), and at least the closed curve of one removal.
Either is a second enclosure of delta, whose reasoning the sums do not share.
"""

# bounds: proved - roundings of logarithms

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.estimate import Estimate, NumberLike
from ..base.monotone import monotone
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, reconcile_bounds
from ..calibration.root_search import Evaluation, Level, validated_rtol
from ..calibration.root_search import least_sigma as search_of_sigma
from ..kernels import _sampled_cells
from ..mechanisms.subsampled_gaussian import PoissonSampledGaussian
from .closing_checks import WIDENED
from .compositions import compose
from .targets import evaluation_at_log_delta, refuse_zero_delta

Bounds: TypeAlias = Literal["both", "upper"]
_QUANTITIES = {"log_delta": 0, "epsilon": 1}  # their numbers in the kernel
# ``method`` of the answers
_METHODS = {"both": "contour sums of both directions", "upper": "Chernoff bound of both directions"}
_MOST_RELEASES = 2**53  # whole numbers that are doubles
# bound: none - growth below which its factors may be subnormal: nothing is said of it
_LEAST_GROWTH = 1e-290
# bound: none - where the search of sigma stops
_RTOL = 1e-9


@monotone(falling="sigma epsilon")
def composed_delta(
    sigma: NumberLike, rate: ArrayLike, count: ArrayLike, epsilon: NumberLike, *, bounds: Bounds = "both"
) -> Estimate:
    """Delta at epsilon of many compositions of Poisson-sampled Gaussians.

    Parameters
    ----------
    sigma : array_like or Estimate
        Standard deviations of the noise over the sensitivity, positive; inf is a release without any loss.
    rate : array_like
        Probabilities that a record is in the sample, between 0 and 1.
    count : array_like
        Numbers of releases: whole numbers, 0 .. 2^53.
    epsilon : array_like or Estimate
        In nats, at least 0, and infinity. All four broadcast.
    bounds : {"both", "upper"}, default "both"
        ``"upper"`` returns Chernoff's upper bound, which is the Renyi bound of the best order, with the lower bound 0.

    Returns
    -------
    Estimate
        Probabilities of the broadcast shape, with certified bounds: the larger one of removal and addition of a record,
        as ``compose(PoissonSampledGaussian(sigma, rate), count).delta(epsilon)``. Numbers below the smallest double are
        between 0 and an upper bound.

    Raises
    ------
    DomainError
        For numbers out of range.
    ShapeError
        For arrays that do not broadcast.

    Notes
    -----
    Cells of one sigma and rate share their work: pass whole grids. The bits of a cell do not depend on the others.

    **Accuracy** the bounds contain the truth, and meet those of single calls:
    ``tests/enclosures/test_composition_tables.py``. Their relative width is about 1e-11.

    Source: the head of ``csrc/composition/fp_sampled_cells_solver.h``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.composition import composed_delta
    >>> table = composed_delta(np.array([[0.8], [1.6]]), 0.01, [1000, 4000], 2.0)
    >>> print(np.array2string(table.value, formatter={"float_kind": "{:.4e}".format}))
    [[8.6920e-04 6.0810e-02]
     [6.5931e-18 9.6988e-07]]
    """
    validate.choice("bounds", bounds, tuple(_METHODS))
    levels = validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    columns, shape, trivial = _columns(sigma, rate, count, epsilon=levels)
    numbers, is_widened = _log_deltas(columns, trivial | np.isposinf(columns[3]), bounds)
    rows = (row.reshape(shape) for row in numbers)
    method = _METHODS[bounds] + (f", {WIDENED}" if is_widened else "")
    return Estimate(*rows, kind="certified", unit="log probability", method=method).to("probability")


@monotone(falling="sigma delta")
def composed_epsilon(
    sigma: NumberLike, rate: ArrayLike, count: ArrayLike, delta: NumberLike, *, bounds: Bounds = "both"
) -> Estimate:
    """The least epsilon at delta of many compositions of Poisson-sampled Gaussians.

    Parameters
    ----------
    sigma, rate, count : array_like
        As in ``composed_delta``.
    delta : array_like or Estimate
        Between 0 and 1. All four broadcast.
    bounds : {"both", "upper"}, default "both"
        As in ``composed_delta``.

    Returns
    -------
    Estimate
        In nats. At ``upper`` the true delta is at most the requested one, at ``lower`` it is at least that, or
        ``lower`` is 0. Infinite for delta = 0, as the losses are unbounded.

    Raises
    ------
    DomainError
        For numbers out of range.
    ShapeError
        For arrays that do not broadcast.

    Notes
    -----
    The search of a cell evaluates one table of sums; both ends are proved by its bounds.

    **Accuracy** both ends are proved: ``tests/enclosures/test_composition_tables.py``. Their relative
    distance is about 1e-12.

    Source: the head of ``csrc/composition/fp_sampled_cells_solver.h``.

    Examples
    --------
    >>> from fastpriv.composition import composed_epsilon
    >>> print(f"{composed_epsilon(1.0, 0.01, [100, 1000, 10_000], 1e-5):.6f}")
    [0.718036, 1.828237, 6.187712], lower=[0.718035, 1.828236, 6.187712], upper=[0.718036, 1.828237, 6.187713]
    >>> composed_epsilon(1.0, 0.01, 1000, 1e-5, bounds="upper").upper
    2.10164738...
    """
    validate.choice("bounds", bounds, tuple(_METHODS))
    targets = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    columns, shape, trivial = _columns(sigma, rate, count, delta=targets)
    with np.errstate(divide="ignore"):
        logs = np.log(columns[3])
    result = np.zeros((3, logs.size))
    result[:, ~trivial & np.isneginf(logs)] = np.inf
    noisy = logs - 4 * UNIT_ROUNDOFF * np.abs(logs) >= _log_total_variation(*columns[:3])  # epsilon is 0
    cells = np.flatnonzero(~trivial & np.isfinite(logs) & ~noisy)
    result[:, cells] = _numbers([*columns[:3, cells], logs[cells]], 2 * UNIT_ROUNDOFF * np.abs(logs[cells]), "epsilon",
                                bounds)
    chosen = cells[np.isfinite(result[2, cells])]
    least = special.sampled_gaussian_delta_remove(columns[0, chosen], columns[1, chosen], result[2, chosen])[1]
    false = chosen[least > columns[3, chosen]]
    result[1, false], result[2, false] = 0.0, np.inf
    method = _METHODS[bounds] + (f", {WIDENED}" if false.size else "")
    return Estimate(*(row.reshape(shape) for row in result), kind="certified", unit="nats", method=method)


@monotone(falling="epsilon delta")
def least_sampled_sigma(
    rate: ArrayLike, count: ArrayLike, epsilon: NumberLike, delta: NumberLike, *, bounds: Bounds = "both",
    rtol: float = _RTOL,
) -> Estimate:
    """The least sigma with which many compositions of Poisson-sampled Gaussians are (epsilon, delta)-private.

    Parameters
    ----------
    rate, count : array_like
        As in ``composed_delta``.
    epsilon, delta : array_like or Estimate
        The targets: epsilon at least 0, in nats, delta between 0 and 1. All four broadcast.
    bounds : {"both", "upper"}, default "both"
        ``"upper"`` returns a sigma at which Chernoff's bound meets the target, with the lower bound 0: several times
        as fast.
    rtol : float, default 1e-9
        Relative width of the bracket at which the search of a cell stops.

    Returns
    -------
    Estimate
        Unit ``1``, that of sigma over the sensitivity. ``upper`` is proved to meet the target, ``lower`` to miss it; 0
        where no noise is needed.

    Raises
    ------
    DomainError
        For numbers out of range, and for delta = 0, which no noise meets.
    ShapeError
        For arrays that do not broadcast.
    NotConvergedError
        If the bounds of delta are too wide to prove a sigma.

    Notes
    -----
    Ends lie on a grid of log sigma, so that they do not depend on the other cells. Neighbours in rate, count and target
    share where the search starts: pass whole grids.

    **Accuracy** both ends are proved: ``tests/enclosures/test_composition_tables.py``.

    Source: the head of ``csrc/composition/fp_sampled_sigma_solver.h``; single releases, and cells that it cannot prove,
    by the search of ``fastpriv.composition.least_sigma``.

    Examples
    --------
    >>> from fastpriv.composition import least_sampled_sigma
    >>> least_sampled_sigma(0.01, [1000, 10_000], epsilon=2.0, delta=1e-5).upper.round(4)
    array([0.9591, 2.1274])
    """
    validate.choice("bounds", bounds, tuple(_METHODS))
    tolerance = validated_rtol(rtol)
    levels = validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    targets = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    (_, *tasks), shape, trivial = _columns(1.0, rate, count, epsilon=levels, delta=targets)
    no_noise = trivial | (tasks[3] == 1.0) | np.isposinf(tasks[2])
    refuse_zero_delta((~no_noise & (tasks[3] == 0.0)).any())
    numbers, solved, evaluations = _tabulated_sigmas(tasks, ~no_noise, bounds, tolerance)

    def level(task: FloatArray) -> Level:
        def evaluate(sigma: float) -> Evaluation:
            numbers, _ = _log_deltas(np.array([sigma, *task[:3]])[:, np.newaxis], np.zeros(1, bool), "both")
            value, lower, upper = numbers[:, 0].tolist()
            return evaluation_at_log_delta((value, lower, upper), float(task[3]))

        return evaluate

    others = np.flatnonzero(~no_noise & ~solved)
    single = search_of_sigma("delta", np.stack(tasks, axis=-1)[others], np.zeros(others.size, bool), level,
                             lambda task: max(0.5, float(task[0] * np.sqrt(task[1]))), tolerance, 1, "")
    numbers[:, others] = single.arrays()
    method = "inverse interpolation between two proofs" if bounds == "both" else _METHODS[bounds]
    method += "; 0 where none is needed" if no_noise.any() else ""
    cost = {"evaluations": evaluations + single.cost["evaluations"]}
    return Estimate(*(row.reshape(shape) for row in numbers), kind="certified", unit="1", method=method, cost=cost)


def _tabulated_sigmas(
    tasks: list[FloatArray], noisy: BoolArray, bounds: Bounds, rtol: float
) -> tuple[FloatArray, BoolArray, int]:
    """Rows of value, lower and upper sigma by the kernel of tables, where it proves them and the checks of the text at
    the head do not deny them; for which cells; and how often delta was bounded.
    """
    numbers, solved = np.zeros((3, noisy.size)), np.zeros(noisy.size, bool)
    cells = np.flatnonzero(noisy & (tasks[0] < 1.0) & (tasks[1] > 1.0))
    cells = cells[np.lexsort([column[cells] for column in reversed(tasks)])]
    rate, count, epsilon, delta = (np.ascontiguousarray(column[cells]) for column in tasks)
    target = np.log(delta)
    result = _sampled_cells.sigmas(rate, count, epsilon, target, 2 * UNIT_ROUNDOFF * np.abs(target), rtol,
                                   bounds == "upper").T
    proved = np.isfinite(result[0])
    lower, upper = np.where(proved, result[1:3], 1.0)
    proved &= special.sampled_gaussian_delta_remove(upper, rate, epsilon)[1] <= delta
    proved &= (lower == 0.0) | (_log_total_variation(np.maximum(lower, 1e-300), rate, count) >= target)
    numbers[:, cells[proved]], solved[cells[proved]] = result[:3, proved], True
    return numbers, solved, int(result[3].sum())


def _columns(
    sigma: Any, rate: Any, count: Any, **targets: FloatArray
) -> tuple[FloatArray, tuple[int, ...], BoolArray]:
    """Rows sigma, rate, count and targets of all cells, their shape, and which cells have no loss."""
    parts = [
        ("sigma", validate.real("sigma", sigma, "positive", lambda x: x > 0)),
        ("rate", validate.real("rate", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))),
        ("count", validate.real("count", count, "a whole number from 0 to 2^53",
                                lambda x: (x >= 0) & (x <= _MOST_RELEASES) & (x == np.floor(x)))),
        *targets.items(),
    ]
    for (name, first), (other, second) in itertools.combinations(parts, 2):
        validate.broadcastable(name, first, other, second)
    shape = np.broadcast_shapes(*(values.shape for _, values in parts))
    columns = np.stack([np.broadcast_to(values, shape).ravel() for _, values in parts])
    return columns, shape, np.isposinf(columns[0]) | (columns[1] == 0.0) | (columns[2] == 0.0)


def _log_deltas(columns: FloatArray, trivial: BoolArray, bounds: Bounds) -> tuple[FloatArray, bool]:
    """Rows of log delta, its lower and upper bounds, reconciled with the checks of the text at the head, and whether
    these disagree somewhere.
    """
    result = np.full((3, trivial.size), -np.inf)
    cells = np.flatnonzero(~trivial)
    sigma, rate, count, epsilon = columns[:, cells]
    value, lower, upper = _numbers([sigma, rate, count, epsilon], np.zeros(cells.size), "log_delta", bounds)
    with np.errstate(divide="ignore"):
        least = np.log(special.sampled_gaussian_delta_remove(sigma, rate, epsilon)[1])
    least = np.where(np.isfinite(least), least - 4 * UNIT_ROUNDOFF * (1.0 + np.abs(least)), -np.inf)
    least = least if bounds == "both" else np.full(cells.size, -np.inf)
    low, high, disagree = reconcile_bounds((lower, upper), (least, _log_total_variation(sigma, rate, count)))
    result[:, cells] = np.clip(value, low, high), low, high
    return result, bool(disagree.any())


def _log_total_variation(sigma: FloatArray, rate: FloatArray, count: FloatArray) -> FloatArray:
    """An upper bound of log delta at epsilon = 0, by the text at the head."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        growth = count * np.log1p(rate * rate * np.expm1(1.0 / (sigma * sigma))) * (1.0 + 1e-13)
        most = 0.5 * np.log(np.expm1(growth)) - math.log(2.0)
        most = np.minimum(most + 1e-13 * (1.0 + np.abs(most)), 0.0)
    return np.where(np.isfinite(most) & (growth > _LEAST_GROWTH), most, 0.0)


def _numbers(columns: list[FloatArray], rounding: FloatArray, quantity: str, bounds: Bounds) -> FloatArray:
    """Rows of value, lower and upper bound of cells with losses; ``rounding`` is that of the targets."""
    result = np.empty((3, rounding.size))
    sigma, rate, count, target = columns
    sums = (rate < 1.0) & (count > 1.0)
    order = np.flatnonzero(sums)
    order = order[np.lexsort((target[order], count[order], rate[order], sigma[order]))]
    cells = [np.ascontiguousarray(column[order]) for column in (*columns, rounding)]
    result[:, order] = _sampled_cells.cells(*cells, _QUANTITIES[quantity], bounds == "upper").T
    for index in np.flatnonzero(~sums).tolist():  # closed forms
        composition = compose(PoissonSampledGaussian(sigma[index], rate[index]), int(count[index]))
        answer = (composition.log_delta(target[index]) if quantity == "log_delta"
                  else composition.epsilon(log_delta=target[index]))
        result[:, index] = answer.floats()
    return result
