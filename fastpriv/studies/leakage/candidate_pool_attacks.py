"""The attack with a pool of candidates: the batch of them whose gradient is nearest.

Notation: N candidates with gradients g_i, a batch A of S of them, the gradient t that a round shared, a divisor d (S,
or the expected size of a Poisson batch). The batch is sought that maximises

    -|sum over A of g_i / d - t|^2 / 2 = constant + sum of a_i + sum over pairs of b_ij,
    a_i = <t, g_i> / d - K_ii / 2 d^2,   b_ij = -K_ij / d^2,   K_ij = <g_i, g_j>,

which with normal noise is the most probable batch, the mode of the exact posterior. A beam search adds candidates one
by one, and then exchanges that raise the sum are made, the best one first, as long as there are any. Larger batches
also start from the candidates of largest weight where weights in [0, 1], whose best values are a convex problem,
replace membership.

Source: S. Mallat and Z. Zhang 1993 (matching pursuit, of which this is the form with exchanges and several paths).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError
from ...base.numerics import FloatArray, IntArray
from ...base.random_streams import RNGLike
from ...base.values import ValueObject
from ...kernels import matrix_product
from ...mechanisms.batch_gradient import BatchGradient
from ..kernels import _gradient_matching
from .federated_training import Updates
from .gradient_inversion import ObservedRound, Reconstruction, observed_round
from .layered_models import SoftmaxRegression
from .trainable_models import checked_labels, checked_model, checked_records

__all__ = ["PoolPursuit", "batch_gradient"]

# bound: none - least rise of the sum, relative to its size, that an exchange must bring
_LEAST_RISE = 1e-12
# bound: none - objective relative to the squared length of the gradient at which the search for weights has found it
_SOLVED = 1e-12
_BEAM_SUFFICES = 4  # members up to which the beam alone finds the batch wherever it can be told
_FLAT, _EVALUATIONS = 1e-6, 300  # when the search for weights ends: relative decrease of the objective, evaluations
_CORRECTIONS = 3  # most repetitions with simulated local steps


class PoolPursuit(ValueObject):
    """The batch of candidates whose gradient is nearest to the one that was seen.

    Parameters
    ----------
    records : array_like, shape (N, D)
        The pool.
    labels : array_like of int, shape (N,)
        Labels of its records.
    beam : int
        Paths of the search that are followed at a time.

    Raises
    ------
    DomainError, ShapeError
        For numbers out of range; for records that are no table.

    Notes
    -----
    **Accuracy** the mode of the exact posterior over all batches of three records, wherever it is tested;
    ``tests/leakage/test_candidate_pool_attacks.py``. Source: the head of
    ``fastpriv/studies/leakage/candidate_pool_attacks.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import PoolPursuit, Protection, SoftmaxRegression, Training
    >>> records, labels = np.random.default_rng(1).random((50, 6)), np.arange(50) % 5
    >>> training = Training(SoftmaxRegression(6, 5), learning_rate=0.1, batch_size=4,
    ...                     protection=Protection(noise="gaussian", scale=0.005))
    >>> updates = training.run(records, labels, rng=3)
    >>> PoolPursuit(records, labels).reconstruct(updates).members, updates.batches[0]
    (array([...]), array([...]))
    """

    __slots__ = _fields = ("records", "labels", "beam")

    records: FloatArray
    labels: IntArray
    beam: int

    def __init__(self, records: ArrayLike, labels: ArrayLike, beam: int = 16) -> None:
        x = np.ascontiguousarray(validate.real("records", records, "finite numbers", np.isfinite, answer=False))
        self._set(records=x, labels=validate.integers("labels", labels), beam=validate.count("beam", beam))

    def reconstruct(self, updates: Updates, *, rng: RNGLike = None, round: int = 0) -> Reconstruction:
        """The batch of a round.

        Parameters
        ----------
        updates : Updates
            Of a training on this pool.
        rng : int, Generator or None
            Not used: the search is not random.
        round : int
            From 0.

        Returns
        -------
        Reconstruction
            With ``members``, indices in the pool, ascending. Their number is that of the batch, which the attacker
            knows.

        Raises
        ------
        DomainError, ShapeError
            For a pool that does not fit the model or is smaller than the batch.
        """
        random_streams.checked(rng)
        validate.instance("updates", updates, Updates)
        model = checked_model(updates.model)
        records = checked_records(model, self.records)
        labels = checked_labels(model, self.labels, len(records))
        seen = observed_round(updates, round)
        if seen.size > len(records):
            raise DomainError(
                f"records must be a pool of at least the {seen.size} records of a batch; got {len(records)}. Pass all "
                "candidates."
            )
        pool = batch_gradient(model, seen.weights, records, labels, updates.training.protection.clip_example)
        target, best = seen.gradient, None
        several = updates.training.local_steps > 1
        for _ in range(_CORRECTIONS if several else 1):
            members = _pursuit(pool, target, seen, self.beam)
            gradient = _batch_gradient(pool, members, seen.divisor)
            update = seen.update(records[members], labels[members]) if several and len(members) else gradient
            miss = float(((update - seen.gradient) ** 2).sum())
            if best is not None and not miss < best.objective:
                break
            best = Reconstruction(records[members], labels[members], miss, members)
            target = seen.gradient - update + gradient
        assert best is not None
        return best


def batch_gradient(
    model: Any, weights: FloatArray, records: FloatArray, labels: IntArray, clip: float | None, *,
    size: int = 1, sigma: float = 1.0,
) -> BatchGradient:  # fmt: skip
    """The mean gradient of ``size`` of these candidates, each clipped, with noise as a mechanism on the pool."""
    if isinstance(model, SoftmaxRegression):
        matrix = weights.reshape(model.n_classes, -1)
        return BatchGradient.softmax_regression(records, labels, matrix, size, sigma, clip=clip)
    validate.memory("records", 16 * len(records) * model.n_parameters, "Take a smaller pool.")
    rows = model.per_example_gradients(weights, records, labels)
    return BatchGradient.from_gradients(rows, size, sigma, clip=clip)


def _projections(pool: BatchGradient, target: FloatArray) -> FloatArray:
    """Inner products of the candidates' gradients with a vector."""
    rows = target.reshape(pool.errors.shape[1], pool.features.shape[1])
    return np.asarray((matrix_product.product(pool.features, rows) * pool.errors).sum(axis=1))


def _batch_gradient(pool: BatchGradient, members: IntArray, divisor: float) -> FloatArray:
    """Sum of the gradients of some candidates, divided."""
    return np.asarray(matrix_product.product(pool.errors[members].T, pool.features[members].T).ravel() / divisor)


class _Sums:
    """What each candidate would add to a batch; rows of b are computed when they are asked for."""

    def __init__(self, pool: BatchGradient, target: FloatArray, divisor: float) -> None:
        self.pool, self.divisor = pool, divisor
        norms = (pool.errors**2).sum(axis=1) * (pool.features**2).sum(axis=1)
        self.linear = _projections(pool, target) / divisor - norms / (2.0 * divisor * divisor)
        self.known: dict[int, FloatArray] = {}

    def pair_terms(self, members: Any) -> FloatArray:
        """Rows of b, shape (len(members), N)."""
        lacking = [k for k in dict.fromkeys(map(int, members)) if k not in self.known]
        if lacking:
            rows = matrix_product.product(self.pool.errors[lacking], self.pool.errors)
            rows *= matrix_product.product(self.pool.features[lacking], self.pool.features)
            rows /= -self.divisor * self.divisor
            self.known.update(zip(lacking, rows, strict=True))
        return np.stack([self.known[int(k)] for k in members])


def _pursuit(pool: BatchGradient, target: FloatArray, seen: ObservedRound, beam: int) -> IntArray:
    """Members of the best batch, ascending."""
    if seen.size == 0:
        return np.empty(0, dtype=np.int64)
    sums = _Sums(pool, target, seen.divisor)
    batches: list[tuple[int, ...]] = [()]
    values, reach = np.zeros(1), sums.linear[None].copy()
    for _ in range(seen.size):
        batches, values, reach = _extended(sums, batches, values, reach, beam)
    result = [
        _exchanged(sums, batch, float(value), own) for batch, value, own in zip(batches, values, reach, strict=True)
    ]
    best = max(result, key=lambda item: item[0])
    if seen.size > _BEAM_SUFFICES:
        batch = _relaxed(pool, target, seen.divisor, seen.size)
        rows = sums.pair_terms(batch)
        within = rows[:, list(batch)]
        value = float(sums.linear[list(batch)].sum() + (within.sum() - np.trace(within)) / 2.0)
        best = max(best, _exchanged(sums, batch, value, sums.linear + rows.sum(axis=0)))
    return np.array(sorted(best[1]), dtype=np.int64)


def _relaxed(pool: BatchGradient, target: FloatArray, divisor: float, size: int) -> tuple[int, ...]:
    """The candidates of largest weight where weights in [0, 1] take the place of membership: a convex problem."""
    shape = pool.errors.shape[1], pool.features.shape[1]
    seen = target.reshape(shape)

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        miss = matrix_product.product((pool.errors * w[:, None]).T, pool.features.T) / divisor - seen
        slope = (matrix_product.product(pool.features, miss) * pool.errors).sum(axis=1)
        return float((miss * miss).sum()), slope * (2.0 / divisor)

    n = len(pool.errors)
    solved = _SOLVED * float((target * target).sum())
    weights, _, _ = _gradient_matching.bounded_minimum(
        objective, np.full(n, min(divisor / n, 1.0)), 0.0, 1.0, _FLAT, solved, _EVALUATIONS
    )
    return tuple(sorted(np.argsort(-weights, kind="stable")[:size].tolist()))


def _extended(
    sums: _Sums, batches: list[tuple[int, ...]], values: FloatArray, reach: FloatArray, beam: int
) -> tuple[list[tuple[int, ...]], FloatArray, FloatArray]:
    """The best batches with one member more."""
    totals = values[:, None] + reach
    for row, batch in zip(totals, batches, strict=True):
        row[list(batch)] = -np.inf
    flat, n = totals.ravel(), totals.shape[1]
    many = min(flat.size, beam * (len(batches[0]) + 1))  # each batch is reached from each of its members at most
    order = np.argpartition(-flat, many - 1)[:many]
    order = order[np.lexsort((order, -flat[order]))]
    chosen: dict[tuple[int, ...], int] = {}
    for at in order.tolist():
        if flat[at] == -np.inf or len(chosen) == beam:
            break
        chosen.setdefault(tuple(sorted((*batches[at // n], at % n))), at)
    at = np.array(list(chosen.values()))
    return list(chosen), flat[at], reach[at // n] + sums.pair_terms(at % n)


def _exchanged(sums: _Sums, batch: tuple[int, ...], value: float, reach: FloatArray) -> tuple[float, tuple[int, ...]]:
    """The batch after all exchanges of a member for a candidate that raise the sum."""
    members = list(batch)
    while True:
        rows = sums.pair_terms(members)
        # without member i: the sum loses reach_i - b_ii, and what each candidate adds loses b_i
        less = value - (reach[members] - rows[np.arange(len(members)), members])
        totals = less[:, None] + (reach - rows)
        totals[:, members] = -np.inf
        out, into = divmod(int(np.argmax(totals)), len(reach))
        if not totals[out, into] > value + _LEAST_RISE * abs(value):
            return value, tuple(sorted(members))
        value = float(totals[out, into])
        reach = reach - rows[out] + sums.pair_terms([into])[0]
        members[out] = into
