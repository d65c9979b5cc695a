"""How close an attack comes to the best possible one: scores of attacks as fractions of exact optima.

Notation: T trials t, each with its releases y_t and a secret batch A_t out of N records; p_tk = P(k in A_t | y_t) and
P(A | y_t) are those of the exact posterior; s_tk the score that an attack gives record k, higher for members; A^_t its
guess of the batch. The truth is not needed: each number is the mean over trials of an expectation under the posterior,

    success        P(A^_t | y_t)                                      at most  max over A of P(A | y_t)
    AUC            E[pairs of a member and a non-member of the trial with the member above, ties 1/2] / E[such pairs]
    information    N h(m) + sum over k of p_tk log s_tk + (1 - p_tk) log(1 - s_tk)   at most  N h(m) - sum of h(p_tk)

with m the prior probability of being a member and h the entropy of a coin. With c_tk the number of records below k,
ties counted 1/2, the expected number of pairs in order is sum of p_tk c_tk - E[|A| (|A| - 1) / 2], whatever the joint
distribution, as each pair of two members is counted once on either side. The optimum has s = p, and its sum over pairs
of max(p_tk, p_tl) increases in each p_tk, so that its bounds are those at the bounds of p.

A fraction is that of the means over trials; of AUC, of what it exceeds 1/2 by. Its bounds are proved, for the releases
of the task. Its band is for new releases of the same kind: with H and M of a trial, -M <= H <= M, a candidate r is
refused by bets on H - r M, which is valid for any number of trials. Information has no lower bound, and its band, by
the spread of H - r M, is heuristic.

Sources: Bayes vulnerability, M. Alvim et al., The science of quantitative information flow (2020); Mann and Whitney
1947; logarithmic scores, I. Good 1952; bets, Waudby-Smith and Ramdas 2023.
"""

# bounds: tested by leakage/test_task_scores - roundings of means over trials and of sums over records

from __future__ import annotations

import csv
import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import BackendMissingError, DomainError, ShapeError
from ...base.estimate import Estimate, Result
from ...base.files import read_npz, write_csv
from ...base.inverse import bisect
from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from ...base.random_streams import RNGLike
from ...channels.subset_likelihoods import validated_subset
from ...sampling.statistics.confidence_sequences import BoundedMean
from ...sampling.statistics.intervals import replicate_interval
from .pool_matching import match_to_pool
from .tasks import LeakageTask, leakage_tasks

__all__ = ["AttackScore", "Scoreboard", "leakage_scoreboard", "read_task_scores", "score_attack"]

_COLUMNS = ("task", "record", "score")  # of files in long form; a column "release" may join them
_HALVINGS = 30  # of the bisection for a band: 1e-9
_EXTRA = "Run: pip install 'fastpriv[table]'"  # remedy for a missing pyarrow
# bound: proved - roundings of a sum of products, in units of u: pairwise sums in NumPy, over at most 2^40 records
_SUM_ROUNDINGS = 200.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackScore(Result):
    """What an attack attains on one task, beside the best possible; None where the attack gave no such answers.

    Parameters
    ----------
    task : str
        Name of the task.
    success, best_success : Estimate
        Probability of the guessed batch, and Bayes vulnerability, means over trials.
    success_fraction, success_band : Estimate
        Their quotient: for the releases of the task (certified), and for new ones (statistical).
    auc, best_auc, auc_fraction, auc_band : Estimate
        Membership AUC within a release; the fraction is that of AUC - 1/2.
    information, best_information, information_fraction, information_band : Estimate
        Nats about memberships, of records one by one, that scores as probabilities tell: below 0 where they mislead.
        Losses have no bound, so that the band is heuristic.
    found : int
        Trials in which the guess is the true batch.
    trials : int
        Number of trials.

    Examples
    --------
    >>> from fastpriv.leakage import leakage_tasks, score_attack
    >>> task, = leakage_tasks("gaussian-triples")
    >>> score = score_attack(task, task.gradient_products())
    >>> score.auc_fraction.kind, float(score.auc_fraction) < 1
    ('certified', True)
    """

    task: str
    success: Estimate | None
    best_success: Estimate | None
    success_fraction: Estimate | None
    success_band: Estimate | None
    auc: Estimate | None
    best_auc: Estimate | None
    auc_fraction: Estimate | None
    auc_band: Estimate | None
    information: Estimate | None
    best_information: Estimate | None
    information_fraction: Estimate | None
    information_band: Estimate | None
    found: int
    trials: int


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """Scores of an attack on several tasks; printed as a table.

    Parameters
    ----------
    scores : tuple of AttackScore
        One a task.

    Examples
    --------
    >>> from fastpriv.leakage import leakage_scoreboard, leakage_tasks
    >>> board = leakage_scoreboard(lambda task: task.gradient_products(), leakage_tasks("gaussian-triples"))
    >>> board.rows()[0]["task"]
    'gaussian-triples'
    """

    scores: tuple[AttackScore, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One dict a task: values of all numbers, with the bounds of fractions and bands; plain types."""
        rows = []
        for score in self.scores:
            row: dict[str, Any] = {"task": score.task, "trials": score.trials, "found": score.found}
            for name, number in score.estimates().items():
                row[name] = float(number.value)
                row |= {f"{name}_lower": float(number.lower), f"{name}_upper": float(number.upper)}
            rows.append(row)
        return rows

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write ``rows`` to a file, empty where a number is not known.

        Examples
        --------
        >>> import os, tempfile
        >>> from fastpriv.leakage import leakage_scoreboard, leakage_tasks
        >>> board = leakage_scoreboard(lambda task: task.gradient_products(), leakage_tasks("gaussian-triples"))
        >>> board.to_csv(os.path.join(tempfile.mkdtemp(), "scores.csv"))
        """
        rows = self.rows()
        header = list(dict.fromkeys(key for row in rows for key in row))
        write_csv(path, header, ([row.get(key, "") for key in header] for row in rows))

    def __str__(self) -> str:
        kinds = ("success", "auc", "information")
        lines = [f"{'task':28}" + "".join(f"{kind:>13} {'best':>8} {'fraction':>8} {'band':>14}" for kind in kinds)]
        for score in self.scores:
            line = f"{score.task:28}"
            for kind in kinds:
                numbers = [getattr(score, name) for name in (kind, f"best_{kind}", f"{kind}_fraction")]
                line += "".join(
                    " " * width if one is None else f"{float(one.value):{width}.4f}"
                    for one, width in zip(numbers, (13, 9, 9), strict=True)
                )
                band = getattr(score, f"{kind}_band", None)
                ends = "" if band is None else f"{band:.2f}".partition(" ")[2]  # the bounds, without the value
                line += f"{ends:>15}"
            lines.append(line.rstrip())
        return "\n".join(lines)


def score_attack(
    task: LeakageTask, scores: ArrayLike | None = None, *, guesses: Sequence[ArrayLike] | None = None,
    records: Sequence[ArrayLike] | None = None, probabilities: bool = False, confidence: float = 0.95,
) -> AttackScore:  # fmt: skip
    """What an attack attains on a task, as fractions of the exact optimum.

    Parameters
    ----------
    task : LeakageTask
        One of ``leakage_tasks()``.
    scores : array_like, shape (trials, N), optional
        Score of each record at each trial, higher for members; infinities are scores like others. Where nothing else is
        given, the guess is the records of highest score, the first of equal ones: as many as a batch has; of Poisson
        batches those above 1/2 of probabilities, otherwise as many as expected.
    guesses : sequence of array_like of int, optional
        A batch for each trial, as indices of records.
    records : sequence of array_like, shape (S, D), optional
        Reconstructed records of each trial: the guess is the different records that are nearest to them in all, by sums
        of squares (Hungarian method).
    probabilities : bool
        Whether scores are probabilities of being a member; only then is their information scored. A 0 or 1 of what is
        not quite certain misleads infinitely.
    confidence : float
        Level of each band.

    Returns
    -------
    AttackScore

    Raises
    ------
    DomainError, ShapeError
        Without answers, or with two kinds of guesses; for NaN, probabilities outside [0, 1], records that do not exist,
        or shapes that do not fit the task.

    Notes
    -----
    **Accuracy** bounds of success, AUC, information and fractions hold those of the posterior and the roundings of
    sums; ``tests/leakage/test_task_scores.py`` compares with sums over all batches. Bands are as those of
    ``fastpriv.sampling.BoundedMean``.

    Source: as the head of this module; the assignment problem, H. Kuhn 1955.

    Examples
    --------
    >>> from fastpriv.leakage import leakage_tasks, score_attack
    >>> task, = leakage_tasks("gaussian-triples")
    >>> best = score_attack(task, [task.posterior(t).inclusion.value for t in range(task.trials)], probabilities=True)
    >>> round(float(best.auc_fraction), 9), round(float(best.information_fraction), 9)
    (1.0, 1.0)
    """
    validate.instance("task", task, LeakageTask)
    validate.flag("probabilities", probabilities)
    level = validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    table = None if scores is None else _validated_scores(task, scores, probabilities)
    if guesses is not None and records is not None:
        raise DomainError("guesses and records must not both be given; got both. Pass one of them.")
    if records is not None:
        batches = _matched(task, records)
    elif guesses is not None:
        batches = _of_trials("guesses", task, guesses)
    elif table is not None:
        batches = [task.guess(row, probabilities) for row in table]
    else:
        raise DomainError("scores must be given, or guesses or records; got none of them. Pass what the attack found.")
    numbers: dict[str, Any] = {}
    guessed = task.log_probabilities(batches)
    best = [task.posterior(t).vulnerability for t in range(task.trials)]
    success = np.array([[math.exp(x - e), math.exp(x), min(math.exp(x + e), 1.0)] for x, e in guessed])
    optimum = np.array([[float(one.lower), float(one.value), float(one.upper)] for one in best])
    numbers |= _compared("success", success, optimum, level, "probability")
    numbers |= dict.fromkeys(("auc", "best_auc", "auc_fraction", "auc_band"))
    numbers |= dict.fromkeys(("information", "best_information", "information_fraction", "information_band"))
    if table is not None:
        attained, optimum = (np.array(one) for one in zip(*(_auc(task, t, table[t]) for t in range(task.trials)),
                                                          strict=True))  # fmt: skip
        numbers |= _compared("auc", attained, optimum, level, "1", chance=0.5)
    if table is not None and probabilities:
        attained, optimum = (np.array(one) for one in zip(
            *(_information(task, t, table[t]) for t in range(task.trials)), strict=True))  # fmt: skip
        numbers |= _compared("information", attained, optimum, level, "nats")
    found = sum(np.array_equal(np.sort(a), b) for a, b in zip(batches, task.batches, strict=True))
    return AttackScore(task=task.name, **numbers, found=int(found), trials=task.trials)


def leakage_scoreboard(
    scores: Any,
    tasks: Sequence[LeakageTask] | None = None, *, probabilities: bool = False, confidence: float = 0.95,
    rng: RNGLike = None,
) -> Scoreboard:  # fmt: skip
    """Score an attack on several tasks.

    Parameters
    ----------
    scores : mapping, path-like, attack or callable
        Scores by the name of each task, shape (trials, N), or a file as ``read_task_scores`` takes it: tasks without
        scores are left out. An attack, with a method ``reconstruct(updates, rng=)`` or
        ``scores(updates, records, labels)``, which gets the ``updates`` of each trial. Or a function of a task that
        returns scores or an attack.
    tasks : sequence of LeakageTask, optional
        None means all of ``leakage_tasks()``.
    probabilities, confidence
        As of ``score_attack``.
    rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Source of random numbers of an attack: each trial has a stream of its own.

    Returns
    -------
    Scoreboard

    Raises
    ------
    DomainError, ShapeError
        As ``score_attack`` and ``read_task_scores``; for scores of no task.

    Notes
    -----
    **Accuracy** as of ``score_attack``; ``tests/leakage/test_task_scores.py``.

    Examples
    --------
    >>> from fastpriv.leakage import leakage_scoreboard, leakage_tasks
    >>> print(leakage_scoreboard(lambda task: task.gradient_products(), leakage_tasks("gaussian-triples")))
    task ...
    gaussian-triples ...
    """
    chosen = _checked_tasks(tasks)
    options: dict[str, Any] = {"probabilities": probabilities, "confidence": confidence}
    if callable(scores) or _is_attack(scores):
        root = random_streams.root(rng)
        return Scoreboard(tuple(
            score_attack(task, **options, **_answers(scores if _is_attack(scores) else scores(task), task, root, i))
            for i, task in enumerate(chosen)
        ))  # fmt: skip
    if isinstance(scores, Mapping):
        table: Mapping[str, ArrayLike] = scores
        _check_names("scores", list(scores), chosen)
    else:
        table = read_task_scores(validate.path("scores", scores), chosen)
    if not table:
        raise DomainError("scores must be those of at least one task; got none. Pass scores by the names of tasks.")
    return Scoreboard(tuple(score_attack(task, table[task.name], **options) for task in chosen if task.name in table))


def _checked_tasks(tasks: Any) -> tuple[LeakageTask, ...]:
    if tasks is None:
        return leakage_tasks()
    chosen: tuple[LeakageTask, ...] = validate.sequence("tasks", tasks, "LeakageTask objects")
    for task in chosen:
        validate.instance("tasks", task, LeakageTask)
    return chosen


def _is_attack(value: Any) -> bool:
    return hasattr(value, "reconstruct") or hasattr(value, "scores")


def _answers(answer: Any, task: LeakageTask, root: Any, index: int) -> dict[str, Any]:
    """What an attack says of a task, as arguments of ``score_attack``; an array is scores."""
    if not _is_attack(answer):
        return {"scores": answer}
    trials = [task.updates(t) for t in range(task.trials)]
    if not hasattr(answer, "reconstruct"):
        return {"scores": [answer.scores(updates, task.records, task.labels) for updates in trials]}
    words = [random_streams.stream_words(root, (index, t), 4) for t in range(task.trials)]
    seeds = [np.random.SeedSequence(entropy.tolist()) for entropy in words]
    found = [answer.reconstruct(updates, rng=seed) for updates, seed in zip(trials, seeds, strict=True)]
    members = [getattr(one, "members", None) for one in found]
    if all(one is not None for one in members):
        return {"guesses": members}
    return {"records": [one.records for one in found]}


def read_task_scores(
    path: str | os.PathLike[str], tasks: Sequence[LeakageTask] | None = None
) -> dict[str, FloatArray]:  # fmt: skip
    """Read the scores that another tool gave the records of tasks.

    Parameters
    ----------
    path : path-like
        ``.csv`` or ``.parquet``: columns ``task``, ``record`` and ``score``, and ``release``, the trial from 0, where a
        task has more than one; a line for each record and trial, in any order. ``.npz``: an array (trials, N) for each
        task, under its name.
    tasks : sequence of LeakageTask, optional
        None means all of ``leakage_tasks()``.

    Returns
    -------
    dict of str to ndarray, shape (trials, N)
        Scores of each task that the file has.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DomainError, ShapeError
        For other endings, columns that are missing, tasks, trials or records that do not exist, scores that are no
        numbers, repeat, or are missing: errors name the line or the entry.
    BackendMissingError
        For Parquet without pyarrow.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from fastpriv.leakage import leakage_tasks, read_task_scores
    >>> task, = leakage_tasks("gaussian-triples")
    >>> path = os.path.join(tempfile.mkdtemp(), "scores.npz")
    >>> np.savez(path, **{task.name: task.gradient_products()})
    >>> read_task_scores(path)[task.name].shape
    (32, 60)
    """
    file = validate.path("path", path)
    if file.suffix not in (".csv", ".npz", ".parquet"):
        raise DomainError(f"path must end in .csv, .npz or .parquet; got {str(file)!r}. Convert the file.")
    if not file.is_file():
        raise FileNotFoundError(f"path must be an existing file; got {str(file)!r}. Check the path.")
    by_name = {task.name: task for task in _checked_tasks(tasks)}
    if file.suffix == ".npz":
        remedy = "Score fewer tasks at a time."
        arrays = read_npz(file, lambda keys: _check_names("path", keys, tuple(by_name.values())), remedy)
        return {name: _validated_scores(by_name[name], values) for name, values in arrays.items()}
    found: dict[str, FloatArray] = {}
    seen: dict[str, Any] = {}
    rows = _csv_rows(file) if file.suffix == ".csv" else _parquet_rows(file)
    for where, name, release, record, score in rows:
        if name not in by_name:
            _check_names("path", [name], tuple(by_name.values()), f" in {where}")
        task = by_name[name]
        if name not in found:
            found[name] = np.zeros((task.trials, task.n_records))
            seen[name] = np.zeros((task.trials, task.n_records), dtype=bool)
        try:
            t, k, value = int(release), int(record), float(score)
        except (TypeError, ValueError, OverflowError):
            t, k, value = -1, -1, math.nan
        if not (0 <= t < task.trials and 0 <= k < task.n_records and value == value):
            raise DomainError(
                f"path must have releases from 0 to {task.trials - 1}, records from 0 to {task.n_records - 1} and "
                f"scores that are numbers; got {validate.shown([release, record, score])} in {where}, of {name}. Mend "
                "the file."
            )
        if seen[name][t, k]:
            raise DomainError(
                f"path must have one score a record and release; got another of record {k}, release {t} of {name} in "
                f"{where}. Leave one out, or name the release."
            )
        found[name][t, k], seen[name][t, k] = value, True
    for name, mask in seen.items():
        if not mask.all():
            t, k = np.argwhere(~mask)[0]
            raise DomainError(
                f"path must score every record at every release of {name}; got none of record {k}, release {t} "
                f"({int((~mask).sum())} of {mask.size} are missing). Add them, with -inf for records ruled out."
            )
    return found


def _csv_rows(file: Path) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Where a row is, its task, release, record and score."""
    with open(file, encoding="utf-8-sig", newline="") as stream:
        try:
            lines = csv.reader(stream)
            header = [name.strip() for name in next(lines, [])]
            _check_columns(file, header)
            places = [header.index(name) for name in _COLUMNS]
            release = header.index("release") if "release" in header else None
            for line in lines:
                if not line:
                    continue
                if len(line) != len(header):
                    raise DomainError(
                        f"path must have {len(header)} cells a line; got {len(line)} in line {lines.line_num} of "
                        f"{str(file)!r}. Mend the file."
                    )
                name, record, score = (line[i] for i in places)
                yield f"line {lines.line_num}", name.strip(), "0" if release is None else line[release], record, score
        except (UnicodeDecodeError, csv.Error) as error:
            raise DomainError(f"path must be a CSV file in UTF-8; got {str(file)!r}: {error}. Save it so.") from None


def _parquet_rows(file: Path) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """As ``_csv_rows``."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise BackendMissingError(f"pyarrow must be installed to read Parquet; got none. {_EXTRA}.") from None
    try:
        table = parquet.read_table(file)
    except (arrow.ArrowException, OSError) as error:
        raise DomainError(f"path must be a whole Parquet file; got {str(file)!r}: {error}. Write it anew.") from None
    _check_columns(file, table.column_names)
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    releases = table.column("release").to_pylist() if "release" in table.column_names else [0] * table.num_rows
    for i, (name, record, score, release) in enumerate(zip(*columns, releases, strict=True)):
        yield f"row {i}", name, release, record, score


def _check_columns(file: Path, names: Sequence[str]) -> None:
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise DomainError(
            f"path must have columns {', '.join(_COLUMNS)}; got {validate.shown(list(names))} in {str(file)!r}, "
            f"without {', '.join(missing)}. Name them in the first line."
        )


def _check_names(argument: str, names: Sequence[Any], tasks: Sequence[LeakageTask], where: str = "") -> None:
    known = [task.name for task in tasks]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DomainError(
            f"{argument} must name tasks, such as {known[0] if known else 'none'}; got {validate.shown(unknown[0])}"
            f"{where} ({len(unknown)} of {len(names)}). See [task.name for task in leakage_tasks()]."
        )


def _validated_scores(task: LeakageTask, scores: ArrayLike, probabilities: bool = False) -> FloatArray:
    """Scores as an array of shape (trials, N)."""
    if probabilities:
        table = validate.real("scores", scores, "probabilities, from 0 to 1", lambda x: (x >= 0) & (x <= 1))
    else:
        table = validate.real("scores", scores, "numbers, not NaN", lambda x: x == x)
    if table.shape != (task.trials, task.n_records):
        raise ShapeError(
            f"scores must have a row a trial and a column a record, {(task.trials, task.n_records)} of {task.name}; "
            f"got shape {table.shape}. Score every record at every trial."
        )
    return table


def _of_trials(name: str, task: LeakageTask, values: Sequence[Any]) -> list[Any]:
    """One validated guess a trial."""
    rows = validate.sequence(name, values, "batches, one a trial")
    if len(rows) != task.trials:
        raise ShapeError(f"{name} must have one entry a trial, {task.trials}; got {len(rows)}. Attack every trial.")
    poisson = task.members is None
    batches = [validated_subset(name, row, task.n_records, least=int(not poisson)) for row in rows]
    for t, batch in enumerate(batches):
        if batch.ndim != 1 or (not poisson and batch.size != task.members):
            raise ShapeError(
                f"{name} must be batches of {'any number of' if poisson else task.members} records; got shape "
                f"{batch.shape} at trial {t}. Name all members once."
            )
    return batches


def _matched(task: LeakageTask, records: Sequence[ArrayLike]) -> list[Any]:
    """The different records of the pool that are nearest to reconstructed ones."""
    batches = [
        validate.with_argument_name("reconstructions", "records", partial(match_to_pool, one, task.records))
        for one in validate.sequence("records", records, "tables, one a trial")
    ]
    for t, batch in enumerate(batches):
        if np.any(batch < 0):
            raise DomainError(
                f"records must be finite; got one that is not at trial {t}. Pass guesses for attacks that diverge."
            )
    return _of_trials("records", task, batches)


def _auc(task: LeakageTask, t: int, scores: FloatArray) -> tuple[list[float], list[float]]:
    """Lower bound, value and upper bound of the AUC within one trial, and of the best one."""
    inclusion = task.posterior(t).inclusion
    assert inclusion is not None
    bounds = [np.asarray(one, dtype=np.float64) for one in (inclusion.lower, inclusion.value, inclusion.upper)]
    doubles, pairs = task.pairs_of_members(t)  # E[|A| (|A| - 1) / 2], E[|A| (N - |A|)], each with an error
    ordered = np.sort(scores)
    below = 0.5 * (np.searchsorted(ordered, scores, "left") + (np.searchsorted(ordered, scores, "right") - 1.0))
    ranks = np.arange(float(scores.size))
    slack = [-1.0, 0.0, 1.0]

    def of(counts: FloatArray, values: list[FloatArray]) -> list[float]:
        answer = []
        for one, sign in zip(values, slack, strict=True):
            most = float(np.sum(one * counts))
            rounding = sign * (UNIT_ROUNDOFF * _SUM_ROUNDINGS * most + doubles[1])
            answer.append((most - doubles[0] + rounding) / (pairs[0] - sign * pairs[1]))
        return answer

    return of(below, bounds), of(ranks, [np.sort(one) for one in bounds])


def _information(task: LeakageTask, t: int, scores: FloatArray) -> tuple[list[float], list[float]]:
    """Lower bound, value and upper bound of the information of probabilities, and of the best ones."""
    inclusion = task.posterior(t).inclusion
    assert inclusion is not None
    low, p, high = (np.asarray(one, dtype=np.float64) for one in (inclusion.lower, inclusion.value, inclusion.upper))
    m = task.membership_rate
    prior = task.n_records * _coin_entropy(np.array(m))
    with np.errstate(divide="ignore"):
        member, other = np.log(scores), np.log1p(-scores)
    # a score of 0 or 1 stands for all probabilities that round to it where the posterior may be one of them
    member = np.where((scores == 0.0) & (low <= 0.0), math.log(5e-324), member)
    other = np.where((scores == 1.0) & (high >= 1.0), math.log(0.5 * UNIT_ROUNDOFF), other)

    def log_score(chance: FloatArray) -> FloatArray:
        """What each record adds, of this probability: linear in it."""
        with np.errstate(invalid="ignore"):
            return np.where(chance > 0, chance * member, 0.0) + np.where(chance < 1, (1 - chance) * other, 0.0)

    ends = np.array([log_score(low), log_score(high)])
    best = -_coin_entropy(p)
    inner = (low <= 0.5) & (high >= 0.5)
    coin = np.array([_coin_entropy(low), _coin_entropy(high)])
    most = np.where(inner, math.log(2.0), coin.max(axis=0))
    answers = []
    for rows in ([ends.min(axis=0), log_score(p), ends.max(axis=0)], [-most, best, -coin.min(axis=0)]):
        sums = [float(np.sum(row)) for row in rows]
        size = float(np.sum(np.abs(rows[1]), where=np.isfinite(rows[1]))) + float(prior)
        rounding = UNIT_ROUNDOFF * _SUM_ROUNDINGS * size
        answers.append([float(prior) + x + sign * rounding for x, sign in zip(sums, (-1.0, 0.0, 1.0), strict=True)])
    return answers[0], answers[1]


def _coin_entropy(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -(np.where(p > 0, p * np.log(p), 0.0) + np.where(p < 1, (1 - p) * np.log1p(-p), 0.0))


def _compared(
    name: str, attained: FloatArray, best: FloatArray, level: float, unit: Any, chance: float = 0.0
) -> dict[str, Estimate | None]:
    """Means over trials, their fraction, and its band; columns are lower bounds, values and upper bounds."""
    method = "mean over trials of expectations under the exact posterior"
    rounding = 1.0 + np.array([-1.0, 0.0, 1.0]) * UNIT_ROUNDOFF * (len(best) + 4.0)

    def certified(ends: FloatArray, unit: Any, most: float) -> Estimate:
        value, ordered = min(float(ends[1]), most), np.minimum(np.sort(ends), most)
        return Estimate(
            value, min(float(ordered[0]), value), max(float(ordered[2]), value), kind="certified", unit=unit,
            method=method,
        )  # fmt: skip

    def outward(means: FloatArray) -> FloatArray:
        return np.where(means >= 0, means * rounding, means * rounding[::-1])

    mean, optimum = outward(attained.mean(axis=0)), outward(best.mean(axis=0))
    largest = math.inf if name == "information" else 1.0
    answer: dict[str, Estimate | None] = {
        name: certified(mean, unit, largest), f"best_{name}": certified(optimum, unit, largest)
    }  # fmt: skip
    gain, most = mean - chance, optimum - chance
    fraction = None
    if most[0] > 0.0:
        quotients = np.array([gain[0] / (most[2] if gain[0] >= 0 else most[0]), gain[1] / most[1],
                              gain[2] / (most[0] if gain[2] >= 0 else most[2])])  # fmt: skip
        fraction = certified(outward(quotients), "1", 1.0)  # nothing exceeds the optimum
    answer[f"{name}_fraction"] = fraction
    each, optima = attained[:, 1] - chance, best[:, 1] - chance
    band = None
    if fraction is not None and name == "information":
        band = _unbounded_band(each, optima, float(fraction.value), level)
    elif fraction is not None:
        band = _band(each, optima, float(fraction.value), level, 2.0 * chance, 1.0 - chance)
    return answer | {f"{name}_band": band}


def _unbounded_band(gain: FloatArray, most: FloatArray, value: float, level: float) -> Estimate | None:
    """Interval of E gain / E most over new releases, where gain has no lower bound: Student's, of the quotient made
    linear; None where there is one trial, a loss is infinite, or the trials do not differ."""
    if len(gain) < 2 or not np.isfinite(gain).all():
        return None
    found = replicate_interval(value + (gain - value * most) / most.mean(), level)
    if not math.isfinite(float(found.lower)):
        return None
    return Estimate(
        value, min(float(found.lower), value), max(min(float(found.upper), 1.0), value), kind="heuristic", unit="1",
        method=f"Student's interval of {len(gain)} trials",
    )  # fmt: skip


def _band(gain: FloatArray, most: FloatArray, value: float, level: float, floor: float, top: float) -> Estimate:
    """Interval of E gain / E most over new releases, where 0 <= most <= top and -floor most <= gain <= most."""
    gain = np.clip(gain, -floor * most, most)  # by rounding beyond

    def proved(sign: float, r: float) -> bool:
        """Whether sign (gain - r most) is proved to have a mean above 0."""
        if not -floor < r < 1.0:
            return True
        ends = sorted((-sign * (floor + r) * top, sign * (1.0 - r) * top))
        mean = BoundedMean(low=ends[0], high=ends[1])
        mean.update(sign * (gain - r * most))
        return bool(mean.exceeds(np.zeros(1), 0.5 * (1.0 - level))[0])

    inner, ends = min(max(value, -floor), 1.0), []
    for sign, end in ((1.0, 0.0 - floor), (-1.0, 1.0)):
        proof = functools.partial(proved, sign)
        ends.append(bisect(proof, inner, end, _HALVINGS)[1])
    return Estimate(
        value, min(ends[0], value), max(ends[1], value), kind="statistical", confidence=level, unit="1",
        method=f"bets on {len(gain)} trials",
    )  # fmt: skip
