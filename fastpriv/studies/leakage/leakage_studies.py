"""Attacks on updates of one batch under a grid of protections, beside the exact posterior of the same updates.

Notation: as ``privacy_estimates``. A pool of N records is given or drawn, and S of them are the batch, of which each
of M models, with starting weights w_m of its own, shares a protected update. Each update is attacked T times; the
reconstructions are matched to the pool.

Exact values. Where the update is a mean gradient with normal noise and nothing else, after examples were clipped, the
posterior over all S-subsets of the pool given this very update is known, and so is the
probability of inclusion p_d of every record. The belief about the record of a random place of the batch is p_d / S: it
takes the place of f_m(d) in C1 and kappa_3. Of a batch drawn from the prior, no attack is expected to recover more than
the S records with the largest p_d, nor the whole batch more often than the largest posterior probability. Of several
rounds the log likelihoods add up, since the weights of a round follow from what was shared before. The posterior of
more than 2e7 batches is sampled, and its values are then heuristic. Without noise the
batch is identified if no other one has its gradient: that is so if with a little normal noise it would be the likeliest
by far at this very gradient.

Every cell has a random stream of its own, by its settings alone; starting weights and noises belong to the model, so
that protections are compared on the same ones. Cells are kept in a store by their settings; a sweep keeps
numbers alone, where cells here are vectors.

Source: J. Zhang and K. Chen, Bridging Privacy and Robustness, appendices D to I, with the changes of
``privacy_estimates``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike

from ...base import executors, parallel, random_streams, validate
from ...base.errors import DomainError, SamplingWarning, ShapeError
from ...base.estimate import Estimate, Result
from ...base.files import json_safe
from ...base.numerics import LOG_2, SQRT_LOG_2_ABOVE, BoolArray, FloatArray, IntArray, jensen_shannon_generator
from ...base.parallel import Progress
from ...base.random_streams import RNGLike
from ...base.store import ResultStore, settings_digest
from ...base.table import CellType, Table, bounded_cells, bounded_names
from ...base.version import VERSION
from ...channels import SubsetLikelihood
from ...mechanisms import BatchGradient
from ...posteriors import posterior, sampled_subset_posterior
from ..membership.evaluation import mean_over_simulations
from . import privacy_estimates
from .federated_training import Training, Updates
from .gradient_inversion import GradientMatching
from .layered_models import SoftmaxRegression
from .protections import Protection
from .trainable_models import checked_labels, checked_model, checked_records, checked_weights, described

_MOST_BATCHES = 20_000_000  # of a pool whose posterior is enumerated for each update: half a second or so
# bound: none - noise, in lengths of the longest gradient, with which a batch without noise must be the likeliest
_LITTLE_NOISE = 1e-5
# bound: none - terms of an average are right to this part of them, beside the bounds of the probabilities
_ROUNDING = 1e-13
_MOST_REPETITIONS = 2**20  # models, and attacks on each: years of work, and lists that fit in memory
_CHAINS = 4  # of a posterior that is sampled: the fewest whose disagreement is a sign
_FEW = 16  # cells that are done before processes have started
# First entry of the key of a random stream, with what follows it
_POOL, _BATCH, _WEIGHTS, _UPDATE, _ATTACK, _ESTIMATE = 0, 1, 2, 3, 4, 6
_GUESSING = "better than guessing"  # in the remark on attacks that are not
# Columns of the table that are numbers with bounds.
_NUMBERS = (
    "c1", "c1_null", "exact_c1", "kappa_3", "kappa_3_null", "exact_kappa_3", "exact_kappa_3_smoothed", "c2",
    "recovered", "exact_recovered", "whole_batch", "exact_vulnerability", "exact_entropy", "distortion",
)


@dataclass(frozen=True, kw_only=True)
class LeakageDesign:
    """What a study of leakage repeats: the batch, the models, their training, and how estimates are made.

    Parameters
    ----------
    pool : int or array_like of int
        Number of candidate records, drawn from the data, or their indices there.
    batch : int or array_like of int
        Number of records of the batch, drawn from the pool, or their places in the pool.
    n_models, n_attacks : int
        M models, and T attacks on the update of each.
    weights : array_like, shape (M, P), optional
        Starting weights of the models; by default ``model.initial``.
    rounds, local_steps, learning_rate, share
        As ``Training``; every round takes the whole batch.
    threshold : float
        Largest distance at which a reconstruction counts as a record of the pool.
    pseudo_count, confidence
        As ``bayesian_privacy_estimate``.

    Notes
    -----
    ``leakage_study`` checks the numbers.

    Examples
    --------
    >>> from fastpriv.leakage import LeakageDesign
    >>> LeakageDesign(batch=1, n_models=4).n_attacks
    10
    """

    pool: Any = 100
    batch: Any = 4
    n_models: int = 8
    n_attacks: int = 10
    weights: Any = None
    rounds: int = 1
    local_steps: int = 1
    learning_rate: float = 0.1
    share: str = "gradient"
    threshold: float = math.inf
    pseudo_count: float = 1.0
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactLeakage(Result):
    """What the exact posterior of the same updates says: what no attack can surpass.

    Parameters
    ----------
    c1 : Estimate
        Root of the Jensen-Shannon divergence of the mean belief about a record and the prior, over these M updates.
    kappa_3 : Estimate
        Largest |ln| of a belief against the prior over these updates and all records.
    kappa_3_smoothed : Estimate
        The same of beliefs that are smoothed as those of the attacks.
    recovered : Estimate
        Mean fraction of the batch that the S records with the largest probabilities are expected to hold.
    vulnerability : Estimate
        Mean over updates of the largest posterior probability of a batch.
    entropy : Estimate
        Mean over updates of the entropy of the posterior over batches, in nats.
    identified : float
        Fraction of the updates whose most probable batch is the true one.
    method : str
        How the posterior was reached.

    Notes
    -----
    **Accuracy** certified for these updates, as ``posterior``, or heuristic, as ``sampled_subset_posterior``;
    ``tests/leakage/test_leakage_studies.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> noise = Protection(noise="gaussian", scale=0.01)
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [noise], pool=20, batch=2, n_models=2,
    ...                       n_attacks=1, rng=1)
    >>> bool(study.outcomes[0].exact.c1.value >= study.outcomes[0].estimate.c1.value - 0.01)
    True
    """

    c1: Estimate
    kappa_3: Estimate
    kappa_3_smoothed: Estimate
    recovered: Estimate
    vulnerability: Estimate
    entropy: Estimate
    identified: float
    method: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageOutcome(Result):
    """One protection: what the attacks attain, and what the best attack would.

    Parameters
    ----------
    label : str
        Name of the protection.
    protection : Protection
        The protection itself.
    estimate : BayesianPrivacyEstimate
        From the attacks.
    exact : ExactLeakage or None
        From the posterior; None where it is not known.
    distortion : Estimate
        Mean over models of the distance of the shared gradient from the mean gradient, in lengths of the latter.
    remark : str
        Why there is no exact value, and whether the attacks recovered no more than names at random would.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection(clip_batch=0.1)], pool=20, batch=2,
    ...                       n_models=2, n_attacks=1, rng=1)
    >>> study.outcomes[0].label, study.outcomes[0].exact is None
    ('clip mean 0.1', True)
    """

    label: str
    protection: Protection
    estimate: privacy_estimates.BayesianPrivacyEstimate
    exact: ExactLeakage | None
    distortion: Estimate
    remark: str = ""

    @property
    def no_better_than_guessing(self) -> bool:
        """Whether the attacks are not shown to recover more of the batch than names at random."""
        return _GUESSING in self.remark


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReconstructionExample(Result):
    """What the first attack on the first model reconstructs under a protection.

    Parameters
    ----------
    label : str
        The protection.
    records : ndarray, shape (S, D)
        Reconstructed records, each in the place of the record of the batch that it is matched to.
    recovered : ndarray of bool, shape (S,)
        Whether the record of the pool that a reconstruction is nearest to is this record of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection()], pool=20, batch=1, n_models=1,
    ...                       n_attacks=1, rng=1)
    >>> truth = records[study.pool[study.batch]]
    >>> np.allclose(study.examples[0].records, truth), study.examples[0].recovered
    (True, array([ True]))
    """

    label: str
    records: FloatArray
    recovered: BoolArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageStudy(Table, Result):
    """All protections of a grid.

    Parameters
    ----------
    outcomes : tuple of LeakageOutcome
        One a protection, in order.
    pool, batch : ndarray of int
        Records that were candidates, by their index in the data, and the places of the batch among them.
    attributions : ndarray of int, shape (protections, M, T, S)
        Places in the pool that each attack names, -1 for a miss.
    settings : mapping
        What ran, in plain types.
    examples : tuple of ReconstructionExample
        One reconstruction a protection.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection()], pool=20, batch=1, n_models=2,
    ...                       n_attacks=1, rng=1)
    >>> study.attributions.shape, study.columns()[:2]
    ((1, 2, 1, 1), ('protection', 'c1'))
    """

    outcomes: tuple[LeakageOutcome, ...]
    pool: IntArray
    batch: IntArray
    attributions: IntArray
    settings: Mapping[str, Any]
    examples: tuple[ReconstructionExample, ...] = ()

    def __getitem__(self, label: str) -> LeakageOutcome:
        outcomes = {outcome.label: outcome for outcome in self.outcomes}
        return outcomes[validate.choice("label", label, tuple(outcomes))]

    def column_types(self) -> dict[str, CellType]:
        """The columns by name; numbers have columns ``_lower`` and ``_upper`` beside."""
        return dict.fromkeys(("protection", *bounded_names(_NUMBERS), "remark"), "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row a protection; None where something is not known."""
        table = []
        for outcome in self.outcomes:
            numbers = outcome_numbers(outcome)
            table.append((outcome.label, *bounded_cells(map(numbers.get, _NUMBERS)), outcome.remark))
        return table

    def metadata(self) -> dict[str, Any]:
        """Settings."""
        return {"settings": dict(self.settings)}

    def __repr__(self) -> str:
        e = self.outcomes[0].estimate
        return f"<LeakageStudy of {len(self.outcomes)} protections, {e.releases} models, {e.attacks} attacks on each>"


def leakage_study(
    model: Any, records: ArrayLike, labels: ArrayLike, protections: Mapping[str, Protection] | Sequence[Protection], *,
    attack: Any = None, design: LeakageDesign | None = None, rng: RNGLike = None,
    store: str | os.PathLike[str] | None = None, resume: bool = True, n_jobs: int | None = None, executor: Any = None,
    progress: Progress = None, **words: Any,
) -> LeakageStudy:
    """Attack the updates of one batch under each protection, and compare with the exact posterior of the same updates.

    Parameters
    ----------
    model : TrainableModel
        What is trained.
    records : array_like, shape (R, D)
        The data.
    labels : array_like of int, shape (R,)
        Classes, from 0.
    protections : mapping of str to Protection, or sequence of Protection
        The grid; labels are names, or ``Protection.label``.
    attack : object with ``reconstruct(updates, rng=)``, optional
        By default ``GradientMatching()``.
    design : LeakageDesign, optional
        What is repeated, and how.
    rng : int, Generator or None
        Source of all random numbers.
    store : path, optional
        A file that keeps finished cells: the same call goes on where it was stopped. It needs an integer ``rng``.
    resume : bool
        Whether cells of an existing store are kept; with False they are dropped.
    n_jobs : int, optional
        Number of workers: processes if there are several, since attacks are mostly Python.
    executor : optional
        Another engine, as ``sweep`` takes it.
    progress : bool or callable, optional
        Whether a bar counts cells, or a function of the number done and the total.
    **words
        Fields of ``LeakageDesign`` that take the place of those of ``design``, such as ``batch=1``.

    Returns
    -------
    LeakageStudy

    Raises
    ------
    DomainError, ShapeError
        For an empty grid, a batch larger than the pool, a pool larger than the data, labels out of range, a store of
        another study, and what models, trainings and attacks raise. Cells that were finished are kept in the store.

    Notes
    -----
    Exact values belong to the same updates as the estimates. They are certified for a pool with at most 2e7 batches,
    beyond which the posterior is sampled: ``heuristic``, with a remark where chains did not mix.

    **Accuracy** estimates as ``bayesian_privacy_estimate``; exact values are certified given the updates;
    ``tests/leakage/test_leakage_studies.py``. Source: the head of fastpriv/studies/leakage/leakage_studies.py.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((60, 6)), np.arange(60) % 3
    >>> grid = [Protection(), Protection(noise="gaussian", scale=10.0)]
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, grid, pool=40, batch=1, n_models=4,
    ...                       n_attacks=2, rng=1)
    >>> [round(one.exact.recovered.value, 1) for one in study.outcomes]
    [1.0, 0.0]
    """
    if design is not None:
        validate.instance("design", design, LeakageDesign)
    plan = replace(design or LeakageDesign(), **words)
    grid = _checked_grid(protections)
    root = random_streams.root(rng)
    if store is not None and not isinstance(rng, (int, np.integer)):
        raise DomainError(f"rng must be an integer with a store; got {validate.shown(rng)}. Pass rng=0, say.")
    x = checked_records(checked_model(model), records)
    y = checked_labels(model, labels, len(x))
    farthest = validate.scalar("threshold", plan.threshold, "at least 0", lambda d: d >= 0)
    models = validate.count("n_models", plan.n_models, 1, _MOST_REPETITIONS)
    attacks = validate.count("n_attacks", plan.n_attacks, 1, _MOST_REPETITIONS)
    executors.checked(executor, n_jobs)
    parallel.checked(n_jobs, progress)
    chosen = _indices("pool", plan.pool, len(x), _generator(root, _POOL))
    members = _indices("batch", plan.batch, chosen.size, _generator(root, _BATCH))
    attacker = GradientMatching() if attack is None else attack
    if not callable(getattr(attacker, "reconstruct", None)):
        raise DomainError(
            f"attack must have a method reconstruct(updates, rng=); got {validate.shown(attacker)}. Pass "
            "GradientMatching(), or leave it out."
        )
    if plan.weights is None:
        starts = np.array([model.initial(_generator(root, _WEIGHTS, m)) for m in range(models)])
    else:
        rows = validate.real("weights", plan.weights, "finite numbers", np.isfinite)
        if rows.ndim != 2 or len(rows) != models:
            raise ShapeError(
                f"weights must have one row a model, {models}; got shape {rows.shape}. Pass starting weights of each."
            )
        starts = np.array([checked_weights(model, row) for row in rows])
    unprotected = Training(model, rounds=plan.rounds, local_steps=plan.local_steps, learning_rate=plan.learning_rate,
                           batch="full", share=plan.share)
    trainings = tuple(unprotected.under(protection) for protection in grid.values())
    cells = _Cells(trainings, attacker, x, y, chosen, members, starts, farthest, root)
    tasks = [_Task(kind, c, m, t) for c in range(len(grid)) for m in range(models)
             for kind, count in ((_ATTACK, attacks), (_UPDATE, 1)) for t in range(count)]
    # what a store belongs to: keys of cells have the protections and models, and estimates are made anew
    belongs = {
        "attack": described(attacker), "pool": int(chosen.size), "batch_size": int(members.size),
        "training": repr(unprotected), "threshold": farthest,
        "rng": int(rng) if isinstance(rng, (int, np.integer)) else None,
    }
    settings = belongs | {
        "protections": {name: repr(item) for name, item in grid.items()}, "n_models": models, "n_attacks": attacks,
        "training": repr(trainings[0]), "pseudo_count": plan.pseudo_count,
        "confidence": plan.confidence,
    }
    data = settings_digest(x, y, chosen, members)
    identity = {"version": VERSION, "study": json.dumps(json_safe(belongs), sort_keys=True), "data": data}
    with nullcontext() if store is None else ResultStore.open(store, identity=identity, resume=resume) as selected:
        results = _computed(
            cells, tasks, [_cell_key(task, cells) for task in tasks], selected, n_jobs, executor, progress
        )
    return _study(grid, cells, tasks, results, attacks, plan, settings)


class _Task(NamedTuple):
    """A cell: what is done, for which protection and model, and which attack."""

    kind: int
    protection: int
    model: int
    attack: int


@dataclass(frozen=True)
class _Cells:
    """What all cells have in common; called with a task it returns the result of its cell, a vector."""

    trainings: tuple[Training, ...]
    attack: Any
    records: FloatArray
    labels: IntArray
    pool: IntArray
    batch: IntArray
    starts: FloatArray
    threshold: float
    root: SeedSequence

    def __call__(self, task: _Task) -> FloatArray:
        updates = self.updates(task)
        if task.kind == _UPDATE:
            return self.update(task, updates)
        words = _digest_words(self.trainings[task.protection].protection)
        stream = _generator(self.root, _ATTACK, task.model, task.attack, *words)
        result = self.attack.reconstruct(updates, rng=stream)
        pool = self.records[self.pool]
        named = privacy_estimates.match_to_pool(result.records, pool, threshold=self.threshold).astype(np.float64)
        if task.model or task.attack:
            return named
        indices = privacy_estimates.match_to_pool(result.records, pool[self.batch])
        remainder = np.setdiff1d(np.arange(indices.size), indices)  # for reconstructions with NaN
        indices[indices < 0] = remainder
        order = np.argsort(indices)
        recovered = named[order] == self.batch
        return np.concatenate([named, recovered, np.asarray(result.records, dtype=np.float64)[order].ravel()])

    def updates(self, task: _Task) -> Updates:
        """The updates of the batch that are attacked: the same for all attacks on a model."""
        members = self.pool[self.batch]
        return self.trainings[task.protection].run(
            self.records[members], self.labels[members], rng=random_streams.stream(self.root, _UPDATE, task.model),
            weights=self.starts[task.model],
        )

    def update(self, task: _Task, updates: Updates) -> FloatArray:
        """Distortion of the shared gradient, and where it is known the exact posterior, as ``_Exact.of`` reads it."""
        members, model = self.pool[self.batch], updates.model
        mean = model.gradient(updates.before[0], self.records[members], self.labels[members])
        length = float(np.linalg.norm(mean))
        distortion = float(np.linalg.norm(updates.gradient(0) - mean)) / length if length > 0 else math.nan
        stream = random_streams.stream(self.root, _UPDATE, task.model, *_digest_words(updates.training.protection))
        result = _exact_posterior(updates, self.records[self.pool], self.labels[self.pool], self.batch, stream)
        return np.concatenate([[distortion], result])


def _exact_posterior(
    updates: Updates, records: FloatArray, labels: IntArray, batch: IntArray, stream: SeedSequence
) -> FloatArray:
    """A code, and where it is not positive: vulnerability and entropy with bounds, whether identified, inclusion."""
    training, guard = updates.training, updates.training.protection
    plain = guard.clip_batch is None and guard.keep_fraction == 1.0 and guard.levels is None
    if training.local_steps > 1 or not plain or guard.noise == "laplace":
        return np.array([_UNKNOWN])
    sampled = math.comb(len(records), batch.size) > _MOST_BATCHES
    if sampled and guard.noise == "none":
        return np.array([_TOO_MANY])
    ordered = np.sort(batch)
    if guard.noise == "none":
        step = _batch_gradient(updates.model, updates.before[0], records, labels, guard.clip_example, size=batch.size)
        longest = math.sqrt(float(np.max(np.einsum("nc,nc->n", step.errors, step.errors)
                                         * np.einsum("nd,nd->n", step.features, step.features))))
        if longest > 0.0:
            step = BatchGradient(step.errors, step.features, batch.size, _LITTLE_NOISE * longest)
        alone = posterior(step.column(updates.gradient(0)), n_jobs=1)
        if not (float(alone.vulnerability.lower) > 0.5 and alone.map_index == tuple(ordered.tolist())):
            return np.array([_ALIKE])
        inside = np.isin(np.arange(len(records)), batch).astype(np.float64)
        return np.concatenate([[_ENUMERATED], [1.0] * 3, [0.0] * 3, [1.0], inside, inside, inside])
    likelihood = _likelihood(updates, records, labels, batch.size)
    code = _ENUMERATED
    if sampled:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)  # said by the remark
            result: Any = sampled_subset_posterior(likelihood, chains=_CHAINS, rng=stream, n_jobs=1)
        code = _MIXED if result.mixed else _NOT_MIXED
    else:
        result = posterior(likelihood, n_jobs=1)
    identified = float(result.map_index == tuple(ordered.tolist()))
    numbers = result.vulnerability.floats(), result.entropy.floats()
    return np.concatenate([[code], *numbers, [identified], *result.inclusion.arrays()])


_ENUMERATED, _MIXED, _NOT_MIXED, _UNKNOWN, _TOO_MANY, _ALIKE = 0.0, -1.0, -2.0, 1.0, 2.0, 3.0
# Why there is no exact value, by code; codes that are not positive say how it was reached.
_REMARKS = {
    _UNKNOWN: "the exact posterior is known for one local step with normal noise, or none, and nothing behind it",
    _TOO_MANY: f"the pool has more than {_MOST_BATCHES:,} batches, which are not sampled without noise",
    _ALIKE: "without noise, other batches have the gradient of this one, or nearly so",
}


def _likelihood(updates: Updates, records: FloatArray, labels: IntArray, size: int) -> SubsetLikelihood:
    """Log likelihoods of all rounds together."""
    guard = updates.training.protection
    rounds = (
        _batch_gradient(updates.model, weights, records, labels, guard.clip_example, size=size, sigma=guard.scale)
        for weights in updates.before
    )
    return SubsetLikelihood.combined([item.column(updates.gradient(r)) for r, item in enumerate(rounds)])


def _batch_gradient(
    model: Any, weights: FloatArray, records: FloatArray, labels: IntArray, clip: float | None, *,
    size: int = 1, sigma: float = 1.0,
) -> BatchGradient:
    """The mean gradient of ``size`` of these candidates, each clipped, with noise as a mechanism on the pool."""
    if isinstance(model, SoftmaxRegression):
        matrix = weights.reshape(model.n_classes, -1)
        return BatchGradient.softmax_regression(records, labels, matrix, size, sigma, clip=clip)
    validate.memory("records", 16 * len(records) * model.n_parameters, "Take a smaller pool.")
    rows = model.per_example_gradients(weights, records, labels)
    return BatchGradient.from_gradients(rows, size, sigma, clip=clip)


def _computed(
    cells: _Cells, tasks: list[_Task], keys: list[int], store: ResultStore | None, n_jobs: int | None, executor: Any,
    progress: Progress,
) -> list[FloatArray]:
    """Results of all cells in order, those of the store first of all."""
    wanted, answer = set(keys), {}
    if store is not None:
        answer = {key: store.unpacked(payload, np.frombuffer) for key, payload in store.items() if key in wanted}
    missing = [i for i, key in enumerate(keys) if key not in answer]
    report, close = parallel.progress_reporter(progress, len(tasks))
    backend, workers = parallel.configured_workers(n_jobs)
    threads = workers != 1 and getattr(backend, "supports_sharedmem", False)
    if executor is None and threads and len(missing) > _FEW and parallel.pickled_or_none(cells) is not None:
        executor = "processes"
    with ExitStack() as stack:
        stack.callback(close)
        results = executors.ordered(cells, [tasks[i] for i in missing], executor=executor, n_jobs=n_jobs)
        stack.callback(results.close)
        report(len(answer))
        for done, (i, result) in enumerate(zip(missing, results, strict=True), start=len(answer) + 1):
            answer[keys[i]] = result
            if store is not None:
                store.put_many([(keys[i], np.ascontiguousarray(result).tobytes())])
            report(done)
    return [answer[key] for key in keys]


def _study(
    grid: dict[str, Protection], cells: _Cells, tasks: list[_Task], results: list[FloatArray], attacks: int,
    plan: LeakageDesign, settings: Mapping[str, Any],
) -> LeakageStudy:
    """Estimates and exact values from the results of all cells."""
    models, size = len(cells.starts), cells.batch.size
    attributions = np.empty((len(grid), models, attacks, size), dtype=np.int64)
    details: dict[tuple[int, int], FloatArray] = {}
    examples: list[ReconstructionExample] = []
    for (kind, c, m, t), result in zip(tasks, results, strict=True):
        if kind == _ATTACK:
            attributions[c, m, t] = result[:size]
            if not m and not t:
                records, recovered_records = result[2 * size :].reshape(size, -1), result[size : 2 * size] == 1.0
                examples.append(ReconstructionExample(list(grid)[c], records, recovered_records))
        else:
            details[c, m] = result
    estimates = [
        privacy_estimates.bayesian_privacy_estimate(
            attributions[c], cells.pool.size, batch=cells.batch, pseudo_count=plan.pseudo_count,
            confidence=plan.confidence, rng=random_streams.stream(cells.root, _ESTIMATE),
        )
        for c in range(len(grid))
    ]
    outcomes = []
    for c, (label, guard) in enumerate(grid.items()):
        rows = [details[c, m] for m in range(models)]
        exact, remark = _exact_leakage([row[1:] for row in rows], size, cells.pool.size, estimates[c].smoothing)
        recovered, chance = float(estimates[c].recovered.value), size / cells.pool.size
        remark = "; ".join(filter(None, (remark, guessing_remark(recovered, chance, models, plan.confidence))))
        distortion = mean_over_simulations(np.array([row[0] for row in rows]), plan.confidence, "mean over models")
        outcomes.append(LeakageOutcome(label, guard, estimates[c], exact, distortion, remark))
    return LeakageStudy(tuple(outcomes), cells.pool, cells.batch, attributions, settings, tuple(examples))


def _exact_leakage(rows: list[FloatArray], size: int, pool: int, smoothing: float) -> tuple[ExactLeakage | None, str]:
    """Exact values from the posteriors of all models, or None and why."""
    for row in rows:
        if row[0] > 0.0:
            return None, _REMARKS[float(row[0])]
    codes = [float(row[0]) for row in rows]
    table = np.array([row[1:] for row in rows])
    middle, low, high = np.moveaxis(table[:, 7:].reshape(len(rows), 3, pool), 1, 0)  # (M, N) each
    prior = np.full(pool, 1.0 / pool)
    mean = middle.mean(axis=0)
    c1 = float(privacy_estimates.average_bayesian_privacy(mean * (pool / size) - 1.0, prior))
    width = _root_distance(mean / size, low.mean(axis=0) / size, high.mean(axis=0) / size) + _ROUNDING
    method = "posterior over all batches" if min(codes) == _ENUMERATED else "posterior over sampled batches"
    words: dict[str, Any] = {"kind": "certified" if min(codes) == _ENUMERATED else "heuristic", "method": method}
    unmixed = codes.count(_NOT_MIXED)
    remark = f"chains did not mix for {unmixed} of {len(rows)} updates" if unmixed else ""
    ordered = [np.sort(element, axis=1)[:, -size:].sum(axis=1).mean() / size for element in (middle, low, high)]
    numbers = {
        "c1": Estimate(c1, max(c1 - width, 0.0), min(c1 + width, max(SQRT_LOG_2_ABOVE, c1)), unit="1", **words),
        "recovered": _bracket(*(float(number) for number in ordered), unit="probability", **words),
        "vulnerability": _bracket(*table[:, :3].mean(axis=0).tolist(), unit="probability", **words),
        "entropy": _bracket(*table[:, 3:6].mean(axis=0).tolist(), unit="nats", **words),
    }
    for name, weight in (("kappa_3", 0.0), ("kappa_3_smoothed", smoothing)):
        with np.errstate(divide="ignore"):
            value, entry, two = (np.log((1.0 - weight) * part * (pool / size) + weight) for part in (middle, low, high))
        least = np.maximum(np.maximum(entry, -two), 0.0).max()
        numbers[name] = _bracket(float(np.abs(value).max()), float(least),
                                 float(np.maximum(np.abs(entry), np.abs(two)).max()), unit="nats", **words)
    return ExactLeakage(**numbers, identified=float(table[:, 6].mean()), method=method), remark


def _root_distance(belief: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Bound of sqrt(JS) of a belief and any other one between low and high: a metric, and convex in each entry.

    JS is also at most ln 2 times the total variation, which is at most what the lower bounds leave.
    """
    known = belief > 0.0
    base = np.where(known, belief, 1.0)
    terms = [base * jensen_shannon_generator(np.maximum(end / base - 1.0, -1.0)) for end in (low, high)]
    worst = np.where(known, np.maximum(*terms), LOG_2 * high)
    left = LOG_2 * (max(1.0 - float(low.sum()), 0.0) + _ROUNDING)
    return math.sqrt(min(0.5 * float(worst.sum()), left) * (1.0 + _ROUNDING))


def _bracket(value: float, lower: float, upper: float, **words: Any) -> Estimate:
    """An estimate whose bounds are moved outward by the rounding of means and logarithms."""
    lower = lower if math.isinf(lower) else lower - _ROUNDING * (abs(lower) + 1.0)
    upper += _ROUNDING * (abs(upper) + 1.0)
    most = 1.0 if words["unit"] == "probability" else math.inf
    return Estimate(min(value, most), min(max(lower, 0.0), value), max(min(upper, most), min(value, most)), **words)


def outcome_numbers(outcome: LeakageOutcome) -> dict[str, Estimate | None]:
    """Numbers of an outcome by their column, those of the exact posterior as ``exact_``; absent where unknown."""
    result: dict[str, Estimate | None] = dict(outcome.estimate.estimates())
    if outcome.exact is not None:
        result |= {f"exact_{name}": item for name, item in outcome.exact.estimates().items()}
    return result | {"distortion": outcome.distortion}


def guessing_remark(recovered: float, chance: float, models: int, confidence: float) -> str:
    """What to say of attacks that recover no more than names at random, or not enough more to tell; "" for others.

    Of independent models, each with a mean in [0, 1] that is ``chance`` under guesses, the mean exceeds ``recovered``
    with probability exp(-models KL(recovered || chance)) at most (Hoeffding 1963, theorem 1).
    """
    if recovered > chance:
        left = (1.0 - recovered) * math.log((1.0 - recovered) / (1.0 - chance)) if recovered < 1.0 else 0.0
        if models * (recovered * math.log(recovered / chance) + left) >= -math.log(1.0 - confidence):
            return ""
    word = "no" if recovered <= chance else "not shown to be"
    return f"attack {word} {_GUESSING} (which recovers {chance:.3g} of the batch): says nothing about privacy"


def _checked_grid(protections: Any) -> dict[str, Protection]:
    """Protections by label."""
    named = isinstance(protections, Mapping)
    listed = tuple(protections.values()) if named else validate.sequence("protections", protections, "protections")
    for item in listed:
        validate.instance("protections", item, Protection)
    if not listed:
        raise DomainError("protections must have at least one entry; got none. Pass [Protection()].")
    grid = dict(zip(map(str, protections) if named else (entry.label for entry in listed), listed, strict=True))
    if len(grid) < len(listed):
        raise DomainError(
            f"protections must be different; got {len(listed)} of which {len(grid)} have different labels. Pass a "
            "mapping of names."
        )
    return grid


def _indices(name: str, value: Any, total: int, stream: np.random.Generator) -> IntArray:
    """So many of ``total``, or those that are named, in increasing order."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        count = validate.count(name, value, 1, total)
        return np.sort(stream.choice(total, count, replace=False))
    named = validate.integers(name, value, 0, total - 1)
    if named.ndim != 1 or named.size == 0 or np.unique(named).size != named.size:
        raise ShapeError(
            f"{name} must be a number of records, or a flat list of different indices; got {validate.shown(value)}. "
            "Name each record once."
        )
    return np.sort(named)


def _cell_key(task: _Task, cells: _Cells) -> int:
    """The place of a cell in the store: by its settings alone, so that a grid may grow."""
    guard, start = cells.trainings[task.protection].protection, cells.starts[task.model]
    text = repr((task.kind, repr(guard), task.model, task.attack)).encode() + start.tobytes()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)


def _digest_words(protection: Protection) -> tuple[int, int]:
    """Two words of 32 bits that stand for a protection in the key of a stream."""
    digest = hashlib.blake2b(repr(protection).encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def _generator(root: SeedSequence, *key: int) -> np.random.Generator:
    return np.random.default_rng(random_streams.stream(root, *key))
