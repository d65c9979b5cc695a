"""Tasks with known truths, and scores: quantities of Gaussian mixtures for estimators, compositions for accountants.

The truths and the settings are in ``mixture_tasks.json`` and ``composition_tasks.json``, which ``tools/truths.py`` of
the repository computes and writes. Numbers are decimals that read back as the same doubles.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal
from zlib import crc32

from numpy.typing import NDArray

from ...base import random_streams, validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Result
from ...base.parallel import Progress, ordered_map
from ...base.random_streams import RNGLike
from ...base.remedies import shown
from ...base.table import CellType, Table, aligned
from ...distributions import GaussianMixture

# Quantities of the tasks for estimators, named after the functions of the engine.
QUANTITIES = ("mutual_information", "label_information", "kl_divergence", "total_variation", "entropy")

# Columns of the scores of estimators.
_ESTIMATOR_COLUMNS = ("task", "quantity", "dimension", "truth", "lower", "upper", "estimate", "error", "standard_error",
                      "seconds", "failure")
# Columns of the scores of accountants.
_ACCOUNTANT_COLUMNS = ("task", "epsilon", "direction", "truth", "lower", "upper", "delta", "verdict", "log_ratio",
                       "seconds", "failure")
_TEXTS = ("task", "quantity", "direction", "verdict", "failure")  # columns of text; the others are numbers


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class MixtureTask(Result):
    """One quantity of Gaussian mixtures, with its truth and samples for an estimator.

    Parameters
    ----------
    name : str
        A name of its own among all tasks.
    quantity : str
        ``"mutual_information"`` of the first ``x_dimension`` coordinates and the others; ``"label_information"``, the
        mutual information of a sample and its component; ``"kl_divergence"`` KL(P||Q); ``"total_variation"``;
        ``"entropy"``.
    description : str
        The distributions in words.
    truth : Estimate
        In nats, or a probability; ``kind`` is ``"exact"``, ``"certified"``, or ``"statistical"`` with bounds that are
        at most 2e-5 from the value and hold at a confidence of 0.999.
    p, q : GaussianMixture
        P, and Q of the divergences. The components of label tasks have independent coordinates.
    x_dimension : int, optional
        Of mutual information, the number of coordinates of X.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> task = datasets.mixture_tasks("mutual_information")[0]
    >>> print(f"{task.truth:.4f}", task.p.covariances.tolist())
    0.0323 [0.0322, 0.0323] [[[1.0, 0.25], [0.25, 1.0]]]
    >>> x, y = task.sample(1000, rng=1)
    >>> x.shape, y.shape
    ((1000, 1), (1000, 1))
    """

    name: str
    quantity: str
    description: str
    truth: Estimate
    p: GaussianMixture
    q: GaussianMixture | None = None
    x_dimension: int | None = None

    def sample(self, size: int, *, rng: RNGLike = None) -> tuple[NDArray[Any], ...]:
        """Independent samples, as an estimator takes them.

        Parameters
        ----------
        size : int
            Their number n.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
            Source of randomness (SPEC 7).

        Returns
        -------
        tuple of ndarray
            Mutual information: x and y, of shapes (n, d_x) and (n, d_y), rows that belong together. Label information:
            samples of shape (n, d) and their components, integers of shape (n,). Divergences: samples of P and samples
            of Q, independent, of shape (n, d). Entropy: one array of shape (n, d).

        Raises
        ------
        DomainError
            For a size that is not an integer of at least 0, or an invalid rng.
        MemoryError
            If the points would need more memory than is free.

        Notes
        -----
        **Accuracy** means of exact functions of samples are compared with the truths by
        ``tests/enclosures/test_known_truths.py``.
        """
        generator, p = random_streams.generator(rng), self.p
        if self.quantity == "label_information":
            size = validate.count("size", size, minimum=0)
            validate.memory("size", size * p.dimension * 24, "Draw and use the points in parts.")
            labels = generator.choice(len(p), size, p=p.weights / p.weights.sum())
            means, sigmas = p.means.reshape(len(p), -1), p.sigmas.reshape(len(p), -1)
            return means[labels] + sigmas[labels] * generator.standard_normal((size, p.dimension)), labels
        x = p.sample(size, rng=generator).reshape(-1, p.dimension)
        if self.q is not None:
            return x, self.q.sample(size, rng=generator).reshape(x.shape)
        return (x,) if self.x_dimension is None else (x[:, : self.x_dimension], x[:, self.x_dimension :])


@dataclass(frozen=True, slots=True)
class ReleaseStep:
    """Releases of one kind, with sensitivity 1 under the addition or removal of a record.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace"}
        Distribution of the noise.
    scale : float
        Standard deviation of Gaussian noise, scale of Laplace noise, density proportional to e^(-|x| / scale).
    rate : float
        Probability with which each record takes part in a release, independently; 1 for all records.
    count : int
        Number of releases.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> datasets.composition_tasks()[-1].steps[0]
    ReleaseStep(mechanism='gaussian', scale=0.7, rate=0.001, count=2000)
    """

    mechanism: Literal["gaussian", "laplace"]
    scale: float
    rate: float
    count: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class CompositionTask(Result):
    """A composition of releases with its true delta at one epsilon.

    Parameters
    ----------
    name : str
        A name of its own among all tasks.
    steps : tuple of ReleaseStep
        The releases; a later one may depend on earlier ones.
    epsilon : float
        In nats.
    direction : {"worst", "forward", "backward"}
        Whether delta is that of the removal of a record (forward), of its addition (backward), or the larger of both,
        as accountants of the relation add-or-remove report it.
    truth : Estimate
        Delta, certified, with bounds that are at most 1e-9 apart.
    log_truth : Estimate
        Its natural logarithm, for settings in which delta is tiny.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> task = datasets.composition_tasks()[0]
    >>> task.steps, task.epsilon
    ((ReleaseStep(mechanism='gaussian', scale=0.5, rate=1.0, count=1),), 5.99)
    >>> print(f"{task.truth:.6g}")
    0.0101015 [0.0101015, 0.0101016]
    """

    name: str
    steps: tuple[ReleaseStep, ...]
    epsilon: float
    direction: Literal["worst", "forward", "backward"]
    truth: Estimate
    log_truth: Estimate = field(repr=False)


def mixture_tasks(quantity: str = "all") -> tuple[MixtureTask, ...]:
    """Tasks for estimators of information and divergence: Gaussian mixtures in 1 to 50 dimensions with known truths.

    Parameters
    ----------
    quantity : {"all", "mutual_information", "label_information", "kl_divergence", "total_variation", "entropy"}
        Only tasks of this quantity; all 60 by default.

    Returns
    -------
    tuple of MixtureTask
        In the same order always.

    Raises
    ------
    DomainError
        For any other name of a quantity.

    Notes
    -----
    The mutual information comes from joint normal distributions, from noisy channels Y = A X + N with a mixture as X,
    and from mixtures as joint distributions. All parameters are dyadic rationals, so that sums and products that
    lead to a truth are exact: for channels, h(Y) - h(N) in independent coordinates, which integer matrices of
    determinant 1 then mix.

    **Accuracy** certified truths are proved enclosures of width at most 1e-11; the others are at most 2e-5 from their
    bounds, of confidence 0.999 each. ``tests/enclosures/test_known_truths.py`` compares them with closed forms, with
    quadrature of more digits, and with samples; the truths are those that ``tools/truths.py`` computes.

    Source: in the manner of Czyz, Grabowski, Vogt, Beerenwinkel and Marx 2023, Beyond Normal, and 2025, On the
    properties and estimation of pointwise mutual information profiles.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> len(datasets.mixture_tasks()), len(datasets.mixture_tasks("entropy"))
    (60, 8)
    """
    validate.choice("quantity", quantity, ("all", *QUANTITIES))
    return tuple(task for task in _tasks_of_file("mixture_tasks.json") if quantity in ("all", task.quantity))


def composition_tasks() -> tuple[CompositionTask, ...]:
    """Tasks for privacy accountants: 300 settings with their true delta.

    Returns
    -------
    tuple of CompositionTask
        In the same order always: Gaussian and Laplace noise, with and without Poisson sampling, and compositions of
        several kinds; 1 to 1e6 releases, rates from 1e-6, deltas from 1e-2 to 1e-30.

    Notes
    -----
    **Accuracy** the bounds of delta are at most 1e-9 apart, and at most 1e-7 of delta;
    ``tests/enclosures/test_known_truths.py`` compares them with independent arithmetic of more digits.

    Source: ``fastpriv.compose``; Zhu, Dong and Wang 2022, theorem 10.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> len(datasets.composition_tasks())
    300
    """
    return _tasks_of_file("composition_tasks.json")


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable(Table):
    """One row for each task; made by ``score_estimator`` and ``score_accountant``, which say its columns.

    ``print`` shows the table; ``to_frame``, ``to_csv``, ``to_json`` and ``to_parquet`` hold all digits.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    entries : tuple of tuple
        One row for each task, cells in the order of the columns; None where there is nothing.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> entropies = datasets.mixture_tasks("entropy")[:2]
    >>> scores = datasets.score_estimator(lambda x: 1.5, entropies, samples=10, repeats=2, rng=1)
    >>> scores
    <ScoreTable of 2 tasks, 0 with failures>
    >>> [round(line["error"], 3) for line in scores.named_rows()]
    [-0.458, 2.861]
    """

    names: tuple[str, ...]
    entries: tuple[tuple[Any, ...], ...]

    def column_types(self) -> dict[str, CellType]:
        """The columns by name, in order, with the type of their cells."""
        return {name: "text" if name in _TEXTS else "number" for name in self.names}

    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows, one for each task; None where there is nothing."""
        return self.entries

    def __repr__(self) -> str:
        failed = sum(line["failure"] is not None for line in self.named_rows())
        return f"<ScoreTable of {len(self.entries)} tasks, {failed} with failures>"

    def __str__(self) -> str:
        cells = [[f"{x:.6g}" if isinstance(x, float) else str(x or "") for x in entry] for entry in self.entries]
        return "\n".join(aligned([self.names, *cells], left=1))


def score_estimator(
    estimator: Callable[..., Any], tasks: Sequence[MixtureTask] | None = None, *, samples: int = 1000,
    repeats: int = 5, rng: RNGLike = None, progress: Progress = None,
) -> ScoreTable:
    """Errors of an estimator of information, divergence or entropy, beside the truths.

    Parameters
    ----------
    estimator : callable
        Called with the arrays that ``MixtureTask.sample`` returns, (x, y) or (x,); it returns a number, or an Estimate,
        of which ``value`` counts.
    tasks : sequence of MixtureTask, optional
        By default ``mixture_tasks("mutual_information")``.
    samples : int, default 1000
        Samples of each distribution in each call.
    repeats : int, default 5
        Calls for each task, with samples of their own; at most 10,000.
    rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Source of randomness. The samples of a task depend on it, on the name of the task and on nothing else.
    progress : bool or callable, optional
        Shows, or is called with, the number of tasks done and their number.

    Returns
    -------
    ScoreTable
        Columns ``task``, ``quantity``, ``dimension`` (of all coordinates together), ``truth`` with its bounds ``lower``
        and ``upper``; ``estimate``, the mean of the answers; ``error``, what it exceeds the truth by;
        ``standard_error`` of the mean; ``seconds`` in the estimator in all; ``failure``, the first error, or the first
        answer that is no finite number. What fails counts neither in the mean nor ends the run.

    Raises
    ------
    DomainError
        If the estimator cannot be called, tasks are no MixtureTask, or counts or the seed are out of range.

    Notes
    -----
    A truth may miss the centre of its bounds by 2e-5, far below the standard error of any estimator of few samples.

    **Accuracy** what an estimator of known bias is said to miss is compared by ``tests/surfaces/test_scores.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import datasets
    >>> def gaussian_estimate(x, y):
    ...     return -0.5 * np.log1p(-np.corrcoef(x[:, 0], y[:, 0])[0, 1] ** 2)
    >>> one_to_one = [task for task in datasets.mixture_tasks("mutual_information") if task.p.dimension == 2]
    >>> scores = datasets.score_estimator(gaussian_estimate, one_to_one, rng=1)
    >>> errors = {line["task"]: round(line["error"], 2) for line in scores.named_rows()}
    >>> errors["gaussian-weak-1-1"], errors["mixture-cross-1-1"]
    (0.0, -0.33)
    """
    tasks = mixture_tasks("mutual_information") if tasks is None else tasks
    tasks = _checked("estimator", estimator, tasks, MixtureTask)
    size, count = validate.count("samples", samples), validate.count("repeats", repeats, maximum=10_000)
    root = random_streams.root(rng)

    def score_task(task: MixtureTask) -> tuple[Any, ...]:
        streams = [random_streams.stream(root, crc32(task.name.encode()), repeat) for repeat in range(count)]
        outcomes = [_answer(estimator, *task.sample(size, rng=stream)) for stream in streams]
        answers = [answer for answer, _, _ in outcomes if answer is not None]
        mean = statistics.fmean(answers) if answers else None
        error = None if mean is None else mean - float(task.truth.value)
        deviation = statistics.stdev(answers) / math.sqrt(len(answers)) if len(answers) > 1 else None
        failure = next((text for _, _, text in outcomes if text is not None), None)
        head = task.name, task.quantity, task.p.dimension, task.truth.value, task.truth.lower, task.truth.upper
        return *head, mean, error, deviation, sum(seconds for _, seconds, _ in outcomes), failure

    return ScoreTable(_ESTIMATOR_COLUMNS, tuple(ordered_map(score_task, tasks, progress=progress, brief=True)))


def score_accountant(
    accountant: Callable[[CompositionTask], Any], tasks: Sequence[CompositionTask] | None = None, *,
    progress: Progress = None,
) -> ScoreTable:
    """Where the deltas of a privacy accountant are below the truth, and how far above it they are elsewhere.

    Parameters
    ----------
    accountant : callable
        Called with a CompositionTask; it returns its delta at ``task.epsilon``, as a number, or as an Estimate, of
        which ``value`` counts: hand on ``.upper`` where that is what the accountant promises.
    tasks : sequence of CompositionTask, optional
        By default ``composition_tasks()``.
    progress : bool or callable, optional
        Shows, or is called with, the number of tasks done and their number.

    Returns
    -------
    ScoreTable
        Columns ``task``, ``epsilon``, ``direction``, ``truth`` with its bounds ``lower`` and ``upper``; ``delta``, the
        answer; ``verdict``: ``"unsafe"`` below the lower bound, ``"above"`` the upper one, or ``"within"``;
        ``log_ratio``, log(answer / truth); ``seconds`` in the accountant; ``failure``, its error, or an answer that
        is no finite number. What fails does not end the run.

    Raises
    ------
    DomainError
        If the accountant cannot be called, or tasks are no CompositionTask.

    Notes
    -----
    **Accuracy** verdicts on answers around the bounds are compared by ``tests/surfaces/test_scores.py``.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> tasks = datasets.composition_tasks()[:3]
    >>> scores = datasets.score_accountant(lambda task: 1e-5, tasks)
    >>> [line["verdict"] for line in scores.named_rows()]
    ['unsafe', 'unsafe', 'above']
    """
    tasks = _checked("accountant", accountant, composition_tasks() if tasks is None else tasks, CompositionTask)

    def score_task(task: CompositionTask) -> tuple[Any, ...]:
        delta, seconds, failure = _answer(accountant, task)
        verdict, ratio = None, None
        if delta is not None:
            verdict = "unsafe" if delta < task.truth.lower else "above" if delta > task.truth.upper else "within"
            ratio = math.log(delta) - float(task.log_truth.value) if delta > 0.0 else -math.inf
        head = task.name, task.epsilon, task.direction, task.truth.value, task.truth.lower, task.truth.upper
        return *head, delta, verdict, ratio, seconds, failure

    return ScoreTable(_ACCOUNTANT_COLUMNS, tuple(ordered_map(score_task, tasks, progress=progress, brief=True)))


@cache
def _tasks_of_file(file: str) -> tuple[Any, ...]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    return tuple(json.loads(text, object_hook=_object)["tasks"])


def _object(fields: dict[str, Any]) -> Any:
    """What an object of a data file stands for; each class has a field that no other has."""
    if "steps" in fields:
        return CompositionTask(**fields | {"steps": tuple(fields["steps"])})
    classes = {"lower": Estimate, "weights": GaussianMixture, "mechanism": ReleaseStep, "quantity": MixtureTask}
    return next((kind(**fields) for name, kind in classes.items() if name in fields), fields)


def _checked(name: str, function: Any, tasks: Any, kind: type) -> tuple[Any, ...]:
    """The tasks, after a check of them and of what is to be scored."""
    if not callable(function):
        raise DomainError(f"{name} must be callable; got {shown(function)}. Pass the function, without calling it.")
    chosen = validate.sequence("tasks", tasks, kind.__name__)
    for index, task in enumerate(chosen):
        validate.instance(f"tasks[{index}]", task, kind)
    return chosen


def _answer(function: Callable[..., Any], *arguments: Any) -> tuple[float | None, float, str | None]:
    """Answer of a function of others, None if it failed; seconds that it took; what is wrong with it."""
    start = time.perf_counter()
    try:
        result = function(*arguments)
        answer = float(getattr(result, "value", result))
        failure = None if math.isfinite(answer) else f"the answer is {answer}"
    except Exception as fault:
        failure = f"{type(fault).__name__}: {fault}"
    return None if failure else answer, time.perf_counter() - start, failure
