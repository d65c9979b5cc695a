"""Twenty fixed attack tasks whose best attack is known: noisy gradients of secret batches, with exact posteriors.

Notation: a task has a pool of N records and T trials t. Each trial draws a batch A_t out of the pool, of a fixed size
or each record by itself (Poisson), and releases its mean gradient at known weights with normal noise, once or, at other
weights, several times. The attacker knows pool, weights, noise and how batches are drawn, and has the releases y_t.
"""

# bounds: tested by leakage/test_task_scores - size of the roundings of the log probability of a batch

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ... import posteriors
from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.files import atomic_write
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, IntArray
from ...channels.subset_likelihoods import SubsetLikelihood
from ...kernels import _matrix_product
from ...mechanisms.batch_gradient import BatchGradient
from ...posteriors.result import Posterior
from ..datasets import digits
from .federated_training import Training, Updates
from .layered_models import SoftmaxRegression
from .protections import Protection

__all__ = ["LeakageTask", "leakage_tasks"]

_SEED = 1602  # of all tasks; another one makes other tasks
_STEPS = 200  # of gradient descent at rate 1, to trained weights: four of five digits are recognised
# bound: tested by leakage/test_task_scores - roundings of a log probability: logarithms, products and sums
_ROUNDINGS = 16.0
# bound: proved - relative error of a mean over 2^18 Poisson batches besides that of their probabilities: roundings of a
#    pairwise sum, and of one probability against another
_MEAN_ERROR = 2e-12


class LeakageTask:
    """One task: what the attacker knows, and the exact posterior of each trial.

    Parameters
    ----------
    name, description : str
        What it is; trials are drawn by the name.
    records : array_like, shape (N, D)
        The pool.
    labels : array_like of int, shape (N,)
        Classes of the records.
    weights : array_like, shape (R, C, D + 1)
        Weights of softmax regression at each of R releases of a trial, the intercept last.
    trials : int
        Number of trials T.
    **mechanism
        ``size``, ``sigma``, and perhaps ``clip`` and ``sampling_rate``, of ``BatchGradient.softmax_regression``.

    Raises
    ------
    DomainError, ShapeError
        As ``BatchGradient.softmax_regression``; for weights that are not a stack of matrices.

    Attributes
    ----------
    outputs : ndarray, shape (T, R, C, D + 1)
        The releases: noisy mean gradients.
    batches : list of ndarray
        The true batch of each trial, ascending: no attacker may see it, and no score needs it.
    steps : tuple of BatchGradient
        The mechanism of each release: gradients, size or sampling rate, and noise.

    Examples
    --------
    >>> from fastpriv.leakage import leakage_tasks
    >>> task, = leakage_tasks("gaussian-triples")
    >>> task.outputs.shape, task.n_records, task.members, round(float(task.posterior(0).vulnerability), 3) > 0.0
    ((32, 1, 2, 11), 60, 3, True)
    """

    def __init__(
        self, name: str, description: str, records: ArrayLike, labels: ArrayLike, weights: ArrayLike, trials: int,
        **mechanism: Any,
    ) -> None:  # fmt: skip
        count = validate.count("trials", trials)
        table = np.array(validate.real("weights", weights, "finite", np.isfinite))
        if table.ndim != 3 or not len(table):
            raise ShapeError(
                f"weights must be a stack of matrices, one a release; got shape {table.shape}. Pass [weights] for one."
            )
        self.name, self.description, self._mechanism, self.weights = str(name), str(description), mechanism, table
        self.steps = tuple(BatchGradient.softmax_regression(records, labels, w, **mechanism) for w in table)
        self.records, self.labels = np.array(records, dtype=np.float64), np.array(labels, dtype=np.int64)
        rng = random_streams.generator([_SEED, *self.name.encode()])
        self.batches, outputs = [], []
        for _ in range(count):
            if self.members is None:
                batch = np.flatnonzero(rng.random(self.n_records) < self.membership_rate)
            else:
                batch = np.sort(rng.choice(self.n_records, self.members, replace=False))
            self.batches.append(batch)
            outputs.append([step.sample(batch, rng=rng) for step in self.steps])
        self.outputs = np.array(outputs)
        for array in (self.records, self.labels, self.weights, self.outputs, *self.batches):
            array.setflags(write=False)
        self._posteriors: dict[int, Posterior] = {}
        self._moments: dict[int, tuple[float, float]] = {}  # of Poisson batches: means of |A| and of |A|^2

    @property
    def trials(self) -> int:
        """Number of trials T."""
        return len(self.outputs)

    @property
    def n_records(self) -> int:
        """Number of records N of the pool."""
        return len(self.records)

    @property
    def members(self) -> int | None:
        """Number of records of a batch; None of Poisson batches."""
        return None if self.steps[0].sampling_rate is not None else int(self.steps[0].size)

    @property
    def membership_rate(self) -> float:
        """Prior probability of a record of being a member."""
        rate = self.steps[0].sampling_rate
        return float(self.steps[0].size / self.n_records if rate is None else rate)

    def likelihood(self, trial: int) -> SubsetLikelihood:
        """Log likelihood of all releases of a trial under every batch."""
        return self._likelihood(self._checked(trial), self.steps)

    def posterior(self, trial: int) -> Posterior:
        """The exact posterior over all batches; computed once, and kept without its likelihood."""
        t = self._checked(trial)
        if t not in self._posteriors:
            found = posteriors.posterior(self.likelihood(t), self.steps[0].odds, top=1)
            if self.members is None:
                law = found.probabilities()
                self._moments[t] = float(law @ self._sizes), float(law @ self._sizes**2)
            self._posteriors[t] = replace(found, _probabilities=None)
        return self._posteriors[t]

    def updates(self, trial: int) -> Updates:
        """The releases of a trial as those of a training in so many rounds, which attacks take.

        Its ``batches`` hold the truth, for the evaluation of attacks alone.
        """
        t, (rounds, classes, width) = self._checked(trial), self.weights.shape
        model, step = SoftmaxRegression(width - 1, classes), self.steps[0]
        batch: dict[str, Any] = {"batch": "fixed", "batch_size": self.members}
        if self.members is None:
            batch = {"batch": "poisson", "sampling_rate": step.sampling_rate}
        guard = Protection(clip_example=self._mechanism.get("clip"), noise="gaussian", scale=step.sigma)
        training = Training(model, rounds=rounds, learning_rate=1.0, protection=guard, **batch)
        before = self.weights.reshape(rounds, -1)
        shared = self.outputs[t].reshape(rounds, -1)
        return Updates(model, training, before, shared, [self.batches[t]] * rounds, before[-1], self.n_records)

    def gradient_products(self) -> FloatArray:
        """A simple attack: products of the releases with the gradient of each record, shape (T, N)."""
        scores = np.zeros((self.trials, self.n_records))
        for r, step in enumerate(self.steps):
            for t in range(self.trials):
                products = _matrix_product.product(step.features, np.ascontiguousarray(self.outputs[t, r]))
                scores[t] += np.einsum("nc,nc->n", products, step.errors)
        return scores

    def guess(self, scores: FloatArray, probabilities: bool) -> IntArray:
        """The batch that the scores of one trial, shape (N,), stand for: see ``score_attack``."""
        if self.members is None and probabilities:
            return np.flatnonzero(scores > 0.5)
        size = round(self.membership_rate * self.n_records)
        return np.sort(np.argsort(-scores, kind="stable")[:size])

    def log_probabilities(self, batches: Sequence[IntArray]) -> list[tuple[float, float]]:
        """Log posterior probability of a batch at each trial, and a bound on its error."""
        answer = []
        for t, batch in enumerate(batches):
            size, pool = len(batch), np.union1d(batch, [0])  # of a pool that holds the batch the sums are the same
            parts = [
                BatchGradient(step.errors[pool], step.features[pool], step.size, step.sigma, step.sampling_rate)
                for step in self.steps
            ]
            likelihood = self._likelihood(t, parts)
            evidence, rate = self.posterior(t).log_evidence, self.membership_rate
            if self.members is None:
                prior = size * math.log(rate) + (self.n_records - size) * math.log1p(-rate)
            else:
                prior = -math.log(math.comb(self.n_records, size))
            log = float(likelihood.log_likelihood(np.searchsorted(pool, batch)))
            error = likelihood.summation_error + float(evidence.width) + _ROUNDINGS * UNIT_ROUNDOFF * (
                abs(log) + abs(likelihood.constant) + abs(prior) + 1.0
            )  # fmt: skip
            answer.append((min(log + prior - float(evidence.value), 0.0), error))
        return answer

    def pairs_of_members(self, trial: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Posterior means of |A| (|A| - 1) / 2 and of |A| (N - |A|), each with a bound on its error."""
        n, size = float(self.n_records), self.members
        if size is not None:
            return (0.5 * size * (size - 1.0), 0.0), (size * (n - size), 0.0)
        largest = self.posterior(trial).vulnerability  # whose relative error is that of all batches
        first, second = self._moments[trial]
        error = _MEAN_ERROR + float(largest.width) / float(largest.value)
        return (0.5 * (second - first), error * second), (n * first - second, error * n * first)

    def to_npz(self, path: str | os.PathLike[str]) -> None:
        """Write what the attacker knows to a file, for tools in other languages: arrays as above, and numbers.

        Keys: ``records``, ``labels``, ``weights``, ``outputs``, ``sigma``, ``size`` (what sums are divided by),
        ``sampling_rate`` (0 where the size is fixed) and ``clip`` (infinite where nothing is clipped).

        Examples
        --------
        >>> import os, tempfile
        >>> from fastpriv.leakage import leakage_tasks
        >>> leakage_tasks("gaussian-triples")[0].to_npz(os.path.join(tempfile.mkdtemp(), "task.npz"))
        """
        numbers = {"sampling_rate": 0.0, "clip": math.inf} | self._mechanism
        with atomic_write(path) as stream:
            arrays: dict[str, Any] = {key: np.array(value, dtype=np.float64) for key, value in numbers.items()}
            for key in ("records", "labels", "weights", "outputs"):
                arrays[key] = getattr(self, key)
            np.savez_compressed(stream, **arrays)

    def __repr__(self) -> str:
        return f"<LeakageTask {self.name}: {self.description}>"

    @cached_property
    def _sizes(self) -> FloatArray:
        """Number of members of each subset of any size, by its number."""
        sizes = np.zeros(1)
        for _ in range(self.n_records):
            sizes = np.concatenate([sizes, sizes + 1.0])
        return sizes

    def _likelihood(self, t: int, steps: Sequence[BatchGradient]) -> SubsetLikelihood:
        return SubsetLikelihood.combined(
            [step.column(output) for step, output in zip(steps, self.outputs[t], strict=True)]
        )

    def _checked(self, trial: int) -> int:
        return validate.count("trial", trial, 0, self.trials - 1)


class _TaskPlan(NamedTuple):
    """How a task is made."""

    description: str
    pool: str  # "digits" or "gaussian"
    n_records: int
    trials: int
    mechanism: dict[str, Any]
    weights: tuple[str, ...] = ("random",)


def _plan(description: str, pool: str, n_records: int, trials: int, *weights: str, **mechanism: Any) -> _TaskPlan:
    return _TaskPlan(description, pool, n_records, trials, mechanism, weights or ("random",))


_PLANS: dict[str, _TaskPlan] = {
    "digits-single": _plan("one of 1797 digits", "digits", 1797, 64, size=1, sigma=0.6),
    "digits-single-low": _plan("one of 1797 digits, low noise", "digits", 1797, 64, size=1, sigma=0.3),
    "digits-single-clipped": _plan("one of 1797 digits, gradients clipped to 1", "digits", 1797, 64, size=1, sigma=0.2,
                                   clip=1.0),
    "digits-single-trained": _plan("one of 1797 digits, trained weights", "digits", 1797, 64, "trained", size=1,
                                   sigma=0.05),
    "digits-pairs": _plan("two of 400 digits", "digits", 400, 32, size=2, sigma=0.3),
    "digits-pairs-all": _plan("two of 1797 digits", "digits", 1797, 16, size=2, sigma=0.25),
    "digits-pairs-clipped": _plan("two of 400 digits, gradients clipped to 1", "digits", 400, 32, size=2, sigma=0.1,
                                  clip=1.0),
    "digits-pairs-trained": _plan("two of 400 digits, trained weights", "digits", 400, 32, "trained", size=2,
                                  sigma=0.03),
    "digits-pairs-two-rounds": _plan("two of 400 digits, releases at two weights", "digits", 400, 32, "random",
                                     "half-trained", size=2, sigma=0.3),
    "digits-triples": _plan("three of 100 digits", "digits", 100, 32, size=3, sigma=0.2),
    "digits-triples-high": _plan("three of 100 digits, high noise", "digits", 100, 32, size=3, sigma=0.5),
    "digits-triples-trained": _plan("three of 100 digits, trained weights", "digits", 100, 32, "trained", size=3,
                                    sigma=0.02),
    "digits-triples-three-rounds": _plan("three of 100 digits, releases at three weights", "digits", 100, 32, "random",
                                         "half-trained", "trained", size=3, sigma=0.3),
    "digits-triples-all": _plan("three of 1797 digits: 965,534,090 batches", "digits", 1797, 4, size=3, sigma=0.2),
    "digits-quadruples": _plan("four of 50 digits", "digits", 50, 32, size=4, sigma=0.15),
    "poisson-rare": _plan("Poisson batches of 18 digits, rate 0.1", "digits", 18, 32, size=1.8, sigma=0.5,
                          sampling_rate=0.1),
    "poisson-even": _plan("Poisson batches of 14 digits, rate 1/2", "digits", 14, 32, size=7.0, sigma=0.15,
                          sampling_rate=0.5),
    "poisson-clipped": _plan("Poisson batches of 16 digits, rate 1/4, clipped to 1 (DP-SGD)", "digits", 16, 32,
                             size=4.0, sigma=0.1, sampling_rate=0.25, clip=1.0),
    "gaussian-triples": _plan("three of 60 records of normal numbers", "gaussian", 60, 32, size=3, sigma=0.15),
    "gaussian-million": _plan("one of 1,000,000 records of normal numbers", "gaussian", 10**6, 4, size=1, sigma=0.1),
}  # fmt: skip


def leakage_tasks(*names: str) -> tuple[LeakageTask, ...]:
    """The twenty fixed tasks, or those of these names.

    Parameters
    ----------
    *names : str
        Names of tasks; none means all of them, which takes some 0.3 GB.

    Returns
    -------
    tuple of LeakageTask
        The same ones on any machine, to the rounding of the exponentials in the gradients.

    Raises
    ------
    DomainError
        For a name that no task has.

    Notes
    -----
    Pools are digits of ``fastpriv.datasets.digits``, pixels from 0 to 1, or normal numbers; weights are normal numbers
    times 0.1, or those after 200 steps (20: half-trained) of gradient descent at rate 1 on the whole pool.

    Examples
    --------
    >>> from fastpriv.leakage import leakage_tasks
    >>> [task.n_records for task in leakage_tasks("digits-single", "poisson-even")]
    [1797, 14]
    """
    unknown = [name for name in names if name not in _PLANS]
    if unknown:
        raise DomainError(
            f"names must be among {', '.join(_PLANS)}; got {validate.shown(unknown[0])}. Pass none for "
            "all of them."
        )
    return tuple(_made_task(name, _PLANS[name]) for name in (names or _PLANS))


def _made_task(name: str, plan: _TaskPlan) -> LeakageTask:
    """The task of a plan, with its pool and weights."""
    if plan.pool == "digits":
        pixels, labels = digits()
        records, labels = pixels[: plan.n_records] / 16.0, labels[: plan.n_records]
        train = (pixels / 16.0, digits()[1])
    else:
        rng = random_streams.generator([_SEED, plan.n_records])
        width, classes = (10, 2) if plan.n_records < 10**5 else (8, 2)
        records = rng.standard_normal((plan.n_records, width))
        labels = rng.integers(0, classes, plan.n_records)
        train = (records, labels)
    make: dict[str, Callable[[], FloatArray]] = {
        "random": lambda: _random_weights(train), "trained": lambda: _trained(train, _STEPS),
        "half-trained": lambda: _trained(train, _STEPS // 10),
    }  # fmt: skip
    weights = np.array([make[kind]() for kind in plan.weights])
    return LeakageTask(name, plan.description, records, labels, weights, plan.trials, **plan.mechanism)


def _random_weights(train: tuple[FloatArray, IntArray]) -> FloatArray:
    shape = (int(train[1].max()) + 1, train[0].shape[1] + 1)
    return 0.1 * random_streams.generator([_SEED, *shape]).standard_normal(shape)


def _trained(train: tuple[FloatArray, IntArray], steps: int) -> FloatArray:
    """Weights after some steps of gradient descent from zero, at rate 1."""
    x = np.column_stack([train[0], np.ones(len(train[0]))])
    one_hot = np.eye(int(train[1].max()) + 1)[train[1]]
    weights = np.zeros((one_hot.shape[1], x.shape[1]))
    for _ in range(steps):
        scores = _matrix_product.product(x, weights)
        law = np.exp(scores - scores.max(axis=1, keepdims=True))
        law /= law.sum(axis=1, keepdims=True)
        weights -= _matrix_product.product(np.ascontiguousarray((law - one_hot).T), np.ascontiguousarray(x.T)) / len(x)
    return weights
