"""``assess``: the quantities of columns under mechanisms, over grids.

The work is cut into blocks that do not depend on the number of threads. With a checkpoint each block is kept on disk,
so that a killed run can go on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel, validate
from ...base.errors import DomainError
from ...base.estimate import Estimate
from ...base.grids import Grid, parse_grid
from ...base.numerics import FloatArray
from ...base.parallel import Progress, blocks, ordered_map
from ...channels import AnyChannel
from ...distributions import Pmf
from .checkpoint import Checkpoint, open_store
from .families import MechanismFamily, family_of, required_parameters
from .quantities import QuantityGrid, compute_quantities
from .result import Assessment, Comparison, SensitivitySource
from .secret import MAX_CATEGORIES, SecretDistribution, assign_inputs, secret_distribution
from .statistics import Statistic, read_statistic

Data = ArrayLike | Pmf
_MAX_BLOCKS = 512  # of one column under one mechanism: enough for all threads, few enough files for a checkpoint
_MAX_CELLS = 5_000_000  # rows times epsilons of an assessment; a quantity then takes 120 MB
# bound: none - which levels of noise are tabulated
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-298, 1e297  # scales between which all of a default grid are normal doubles
# What to do about a refused grid.
_REMEDIES = {
    "sigma": "Pass standard deviations in the unit of the column, such as 1,10,100.",
    "level": "Pass levels of LDP in nats, such as 0.5,1,2 (--epsilon).",
    "epsilon": "Pass epsilons in nats, such as 0.1,1,10.",
}


def assess(
    data: Data | Mapping[str, Data] | None = None, *,
    mechanism: str | AnyChannel | Sequence[str | AnyChannel] = "gaussian", sigma: ArrayLike | str | None = None,
    level: ArrayLike | str | None = None, epsilon: ArrayLike | str | None = None, bins: int | None = None,
    sensitivity: float | None = None, statistic: str | None = None, bounds: ArrayLike | None = None,
    relation: str | None = None, name: str = "value", source: str = "data", n_jobs: int | None = None,
    progress: Progress = None, checkpoint: str | os.PathLike[str] | None = None, resume: bool = False,
) -> Assessment | Comparison:
    """Tabulate what releasing each value of a column through a mechanism leaks, or one statistic of it, with bounds.

    Several columns or several mechanisms make one table: each column under each mechanism.

    Parameters
    ----------
    data : array_like of numbers or names, shape (n,), or Pmf, or mapping of str to these, optional
        The sensitive column, or the distribution of its values. Its empirical distribution is the prior of the secret.
        For a channel it may be left out: the secret is then uniform over the inputs; a Pmf of as many points as the
        channel has inputs is a distribution over these.
        For mechanisms of any values, integers that no double is are categories by exact value, in their order, and
        everything that is not a number by its text: numbers by size, other text by alphabet. A mapping holds several
        columns by name.
    mechanism : str or AnyChannel, or sequence of these
        ``gaussian`` adds N(0, sigma^2) to each number once. Local mechanisms of a level, which is their LDP epsilon
        between the values that are farthest apart: ``rr`` (randomised response), ``oue``, ``sue`` (unary encodings),
        ``rappor``, ``subset`` and ``exponential`` for any values, also names; ``geometric`` and ``laplace-discrete``
        add noise to whole numbers. Or one channel, such as ``read_channel`` returns. With several, ``sigma`` is taken
        by gaussian, ``level`` by all others.
    sigma : array_like, shape (s,), or str, optional
        Standard deviations of Gaussian noise, in the unit of the column. Text such as ``"1,2,5"``, ``"0:10:101"``
        (equal steps) or ``"1..1000:31"`` (equal ratios) is a grid. Default: round numbers from a tenth of the column's
        standard deviation to a hundred times it.
    level : array_like, shape (s,), or str, optional
        Levels of the local mechanisms, in nats, positive. Default: 21 from 0.1 to 10, but beside ``epsilon`` it must be
        given, so that neither is taken for the other.
    epsilon : array_like, shape (e,), or str, optional
        Epsilons of the curves, in nats; not the LDP epsilon of a mechanism, which is its ``level``. Default: 81 from
        0.01 to 100.
    bins : int, optional
        A release that rounds each number to the centre of one of this many equal bins over the range, and then adds
        noise or answers. None, the default, is a release of the values as they are, however many there are.
    sensitivity : float, optional
        Largest distance between two possible numbers, for LDP. Default: the range of the values as they are, also with
        ``bins``. That is computed from the private data: it is no bound that is known beforehand, and table, page and
        files say so. Only for mechanisms that add noise to numbers.
    statistic : {"mean", "sum", "count", "histogram"}, optional
        The release is this number about all records, or the counts of a histogram, with Gaussian noise of ``sigma`` or
        Laplace noise (``laplace``) of the central epsilon ``level``. None, the default, releases each value.
    bounds : pair of float, optional
        Least and largest value that count, stated without a look at the data, for ``mean`` and ``sum``; values beyond
        are clipped. A ``count`` is of the values within bounds, or of all; a ``histogram`` has cells that were stated
        without a look at the data.
    relation : {"add_or_remove", "replace_one"}, optional
        Neighbouring data: one record is there or not, the default, or one is replaced by another, which is the only one
        for a mean: the number of records is then public.
    name, source : str
        What the column is called and where it comes from, for table and figure.
    n_jobs : int, optional
        Threads, as in joblib. The numbers do not depend on it.
    progress : bool or callable, optional
        True for a bar on stderr; a callable is called with (blocks done, blocks in all).
    checkpoint : path-like, optional
        A directory where finished blocks are kept, for this user alone, until the run is complete.
    resume : bool
        Take the blocks of an earlier run with the same data and settings from ``checkpoint``; a block that is damaged
        or of another version or setting is computed again.

    Returns
    -------
    Assessment or Comparison
        Table, summary, files and figure. A mapping of columns or a sequence of mechanisms gives a ``Comparison``, whose
        ``comparison[column, mechanism]`` is an ``Assessment``.

    Raises
    ------
    DomainError
        For NaN or infinite data, numbers that doubles do not hold, names where numbers are needed, fractions for noise
        on whole numbers without bins, a parameter that the mechanism does not have, a non-positive sigma or level, a
        negative epsilon, an epsilon without a level for a mechanism that has one, a constant column, more than 2**20
        values for a mechanism of categories, a grid of more than 5,000,000 cells, no column, no mechanism, one named
        twice, a statistic without bounds, of several columns or with another mechanism, or a checkpoint that another
        run writes.
    ShapeError
        For empty or multi-dimensional data, or a channel with another number of inputs than there are values.
    MemoryError
        For more values than a mechanism of categories or whole numbers can be written out for.

    Notes
    -----
    Nothing is rounded unasked. With bins, every number speaks of the mechanism "round, then release": a guess is one of
    the rounded value, all other quantities are the same for both; table, figure and files say so. The quantities are
    those of ``fastpriv.notions``, whose docstrings give the sources.

    One record changes at most (high - low) / n in a mean; high - low in a sum where it is replaced, the larger of
    |low| and |high| where it is there or not; 1 in a count; one count of a histogram by 1 where it is there or
    not, two where it is replaced. Information, LIP and guesses, which Gaussian noise has, are about one bit: which of
    two neighbours farthest apart the data are, at even odds. The answer without noise is private and shown nowhere.

    **Accuracy** Every number carries bounds; ``kind`` says what they claim. ``tests/surfaces/test_assess.py`` and
    ``test_assess_channels.py`` check that the table repeats the numbers of ``fastpriv.notions``.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="10,100", epsilon=[0.5, 1.0])
    >>> report["mutual_information"].upper.round(4)
    array([0.3283, 0.0048])
    >>> jobs = fastpriv.assess(["nurse", "nurse", "clerk", "judge"], mechanism="rr", level=[0.5, 1.0], epsilon=[0.1])
    >>> jobs["mbp_xi"].upper.round(4)
    array([0.3497, 0.6426])
    >>> ages = {"age": [31, 40, 40, 58]}
    >>> fastpriv.assess(ages, mechanism=["gaussian", "geometric"], sigma=[20], level=[1.0], epsilon=[0.1])
    <Comparison of age under gaussian, geometric>
    >>> mean = fastpriv.assess([31, 40, 40, 58], statistic="mean", bounds=(0, 120), sigma=[50.0], epsilon=[1.0])
    >>> mean["noise_half_width"].upper.round(2), mean["dp_epsilon"].upper.round(3)
    (array([98.]), array([2.445]))
    """
    parallel.checked(n_jobs, progress)
    one_mechanism = isinstance(mechanism, (str, AnyChannel)) or not np.iterable(mechanism)
    columns: Mapping[str, Any] = data if isinstance(data, Mapping) else {name: data}
    mechanisms = [mechanism] if one_mechanism else list(validate.sequence("mechanism", mechanism, "mechanisms"))
    known = None
    if statistic is not None:
        if len(columns) != 1 or len(mechanisms) != 1 or sensitivity is not None or bins is not None:
            raise DomainError(
                f"statistic must be of one column under one mechanism, without bins and sensitivity; got "
                f"{len(columns)} columns, {len(mechanisms)} mechanisms. Call assess for each; bounds say how sensitive."
            )
        known = read_statistic(statistic, next(iter(columns.values())), bounds, relation)
    elif bounds is not None or relation is not None:
        raise DomainError("bounds and relation must stand beside a statistic; got none. Pass statistic='mean'.")
    cases = _cases(columns, mechanisms, sigma, level, epsilon, bins, sensitivity, source, known)
    assessments = _run_cases(cases, n_jobs, progress, checkpoint, resume)
    is_comparison = isinstance(data, Mapping) or not one_mechanism
    return Comparison(tuple(assessments)) if is_comparison else assessments[0]


def _cases(
    columns: Mapping[str, Data], mechanisms: list[Any], sigma: Any, level: Any, epsilon: Any, bins: int | None,
    sensitivity: float | None, source: str, statistic: Statistic | None,
) -> list[_Case]:
    """Return each column under each mechanism, with the parameters that the mechanism takes."""
    families = [family_of(selected) if statistic is None else statistic.family(selected) for selected in mechanisms]
    names = [family.name for family in families]
    duplicates = [selected for selected in names if names.count(selected) > 1]
    if not columns or not mechanisms or duplicates:
        shown = f"{duplicates[0]!r} twice" if duplicates else f"{len(columns)} columns and {len(mechanisms)} mechanisms"
        raise DomainError(f"data and mechanism must be at least one each, all different; got {shown}. Name them.")
    for name, value, takers in (
        ("sigma", sigma, [family.parameter == "sigma" for family in families]),
        ("level", level, [family.parameter == "level" for family in families]),
        ("sensitivity", sensitivity, [family.has_sensitivity for family in families]),
    ):
        if value is not None and not any(takers):
            raise DomainError(
                f"{name} must be left out for a mechanism without it; got one with {names[0]!r}. Drop it."
            )
    points = {"sigma": sigma, "level": level}
    return [
        _case(
            column, source, data, selected, family, points.get(family.parameter), epsilon, bins,
            sensitivity if family.has_sensitivity else None, statistic,
        )
        for column, data in columns.items() for selected, family in zip(mechanisms, families, strict=True)
    ]


@dataclass(frozen=True)
class _Case:
    """One column under one family of mechanisms."""

    name: str
    source: str
    secret: SecretDistribution
    family: MechanismFamily
    sensitivity: float
    grid: FloatArray
    epsilon: FloatArray
    sensitivity_source: SensitivitySource
    statistic: Statistic | None = None

    def block(self, rows: slice) -> dict[str, QuantityGrid]:
        """Compute some rows of the grid."""
        estimates = [self._quantities(parameter) for parameter in self.grid[rows].tolist()]
        return {name: QuantityGrid.stack([row[name] for row in estimates]) for name in estimates[0]}

    def _quantities(self, parameter: float) -> dict[str, Estimate]:
        if self.statistic is not None:
            return self.statistic.quantities(self.family.name, parameter, self.epsilon)
        mechanism = self.family.build(parameter, self.sensitivity, self.secret)
        return compute_quantities(self.secret, mechanism, self.epsilon)

    def checkpoint(self, parent: str | os.PathLike[str] | None, resume: bool, stack: ExitStack) -> Checkpoint:
        """Open the checkpoint, which the end of ``stack`` closes; one that keeps nothing without ``parent``."""
        if parent is None:
            return Checkpoint(None)
        secret, family = self.secret, self.family
        channel = None if family.parameter else family.build(1.0, self.sensitivity, secret)
        settings = (
            self.name, family.name, channel, secret.labels, secret.prior, secret.input_indices, secret.inputs,
            secret.step, self.sensitivity, self.grid, self.epsilon, repr(self.statistic),
        )
        return Checkpoint(stack.enter_context(open_store(parent, settings, resume=resume)))

    def assessment(self, parts: list[dict[str, QuantityGrid]]) -> Assessment:
        """Join the blocks of all rows."""
        quantities = {name: QuantityGrid.concatenate([block[name] for block in parts]) for name in parts[0]}
        return Assessment(
            self.name, self.source, self.secret, self.family.name, self.family.noise, self.family.parameter,
            self.sensitivity, self.grid, self.epsilon, quantities,
            required_parameters(self.secret, self.family, self.sensitivity, self.statistic is not None),
            self.sensitivity_source, self.statistic,
        )


def _run_cases(
    cases: list[_Case], n_jobs: int | None, progress: Progress, checkpoint: str | os.PathLike[str] | None, resume: bool
) -> list[Assessment]:
    """Compute all blocks of all cases; the checkpoints are removed when all are done."""
    flag = validate.flag("resume", resume)
    tasks = [
        (index, rows)
        for index, case in enumerate(cases)
        for rows in blocks(case.grid.size, -(-case.grid.size // _MAX_BLOCKS))
    ]

    done: dict[int, dict[str, QuantityGrid]] = {}  # by position among the tasks
    report, close = parallel.progress_reporter(progress, len(tasks))
    with ExitStack() as stack:
        stack.callback(close)
        checkpoints = [case.checkpoint(checkpoint, flag, stack) for case in cases]
        for position, (index, rows) in enumerate(tasks):
            if (selected := checkpoints[index].load(rows)) is not None:
                done[position] = selected
                report(len(done))
        missing = [position for position in range(len(tasks)) if position not in done]
        computed = ordered_map(
            lambda task: cases[task[0]].block(task[1]), [tasks[position] for position in missing], n_jobs=n_jobs
        )
        for position, block in zip(missing, computed, strict=True):
            index, rows = tasks[position]
            checkpoints[index].save(rows, block)
            done[position] = block
            report(len(done))
        assessments = [
            case.assessment([done[position] for position, (index, _) in enumerate(tasks) if cases[index] is case])
            for case in cases
        ]
        for kept_blocks in checkpoints:
            kept_blocks.remove()
    return assessments


def _case(
    name: str, source: str, data: Data | None, mechanism: Any, family: MechanismFamily, points: Any, epsilon: Any,
    bins: int | None, sensitivity: float | None, statistic: Statistic | None,
) -> _Case:
    if statistic is not None:
        secret, title = statistic.secret, f"{statistic.name} of {name}"
        grids = _grids(secret, family, points, epsilon)
        return _Case(title, source, secret, family, statistic.sensitivity, *grids, "given", statistic)
    if data is None:
        if not isinstance(mechanism, AnyChannel):
            raise DomainError("data must be given unless the mechanism is a channel; got None. Pass a column.")
        data = _uniform(mechanism)
    secret = secret_distribution(data, bins, family.domain)
    if isinstance(mechanism, AnyChannel):
        secret = assign_inputs(secret, mechanism.inputs)
    span = secret.span
    origin: SensitivitySource = "given"
    if sensitivity is None:
        origin = "none" if not family.has_sensitivity else "distribution" if isinstance(data, Pmf) else "data"
        sensitivity = span
    else:
        sensitivity = validate.scalar(
            "sensitivity", sensitivity, f"finite and at least the range of the values, {span!r}",
            lambda x: np.isfinite(x) & (x >= span), remedy="Pass the largest distance between two possible values.",
        )
    grid, epsilons = _grids(secret, family, points, epsilon)
    return _Case(name, source, secret, family, sensitivity, grid, epsilons, origin)


def _uniform(channel: AnyChannel) -> Pmf:
    """Return the uniform distribution over the inputs of a channel."""
    size = channel.inputs
    if size > MAX_CATEGORIES:
        raise DomainError(
            f"mechanism must have at most {MAX_CATEGORIES} inputs to be assessed; got {validate.shown(size)}. Use "
            "fastpriv.notions, which never lists them."
        )
    return Pmf(np.arange(size), np.full(size, 1.0 / size))


def _grids(
    secret: SecretDistribution, family: MechanismFamily, points: Any, epsilon: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the grids of the parameter and of epsilon, the default ones for None."""
    parameter = family.parameter
    if family.parameter == "level" and points is None and epsilon is not None:
        raise DomainError(
            f"level must be given beside epsilon for a mechanism of a level; got epsilon alone with {family.name!r}. "
            "Pass level= for the LDP epsilon of the mechanism; epsilon= says where the curves are computed."
        )
    rows = Grid(1, lambda: np.zeros(1))
    if parameter:
        if points is None:
            points = default_sigma(secret.deviation) if parameter == "sigma" else default_level()
        remedy = _REMEDIES[parameter]
        rows = parse_grid(parameter, points, "positive and finite", lambda x: (x > 0) & np.isfinite(x), remedy)
    epsilon = default_epsilon() if epsilon is None else epsilon
    valid, remedy = "at least 0 and finite", _REMEDIES["epsilon"]
    epsilons = parse_grid("epsilon", epsilon, valid, lambda x: (x >= 0) & np.isfinite(x), remedy)
    cells = rows.count * epsilons.count  # a product that exceeds the memory is refused before anything is allocated
    if cells > _MAX_CELLS:
        raise DomainError(
            f"{parameter or '1'} x epsilon must be a grid of at most {_MAX_CELLS:,} cells; got {rows.count:,} x "
            f"{epsilons.count:,} = {cells:,}. Take fewer points: the curves are smooth, and 100 points a factor of ten "
            "draw them."
        )
    return rows.build(), epsilons.build()


def default_sigma(scale: float) -> FloatArray:
    """Round numbers (1, 1.5, 2, 3, 5, 7) from about a tenth of ``scale`` to a hundred times it."""
    scale = min(max(scale, _SMALLEST_SCALE), _LARGEST_SCALE)
    lowest = math.floor(math.log10(scale / 10.0))
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    points = np.array([float(f"{step}e{power}") for power in range(lowest, lowest + 5) for step in steps])
    return points[(points >= 0.08 * scale) & (points <= 120.0 * scale)]


def default_level() -> FloatArray:
    """Levels from 0.1 to 10 nats, ten to a factor of ten, round powers of ten included."""
    return np.unique([float(f"{10.0 ** (i / 10 - 1):.3g}") for i in range(21)])


def default_epsilon() -> FloatArray:
    """Epsilons from 0.01 to 100 nats, 20 to a factor of ten, round powers of ten included."""
    return np.unique([float(f"{10.0 ** (i / 20 - 2):.3g}") for i in range(81)])
