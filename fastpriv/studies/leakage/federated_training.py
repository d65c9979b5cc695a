"""Training in rounds, and the updates that it shares.

Notation: round r starts from weights w_r, draws a batch of the N records, takes k local steps of gradient descent on it
with learning rate eta, to v_r, and shares the mean gradient of its steps u_r = (w_r - v_r) / (eta k), or the weights
w_r - eta k u_r, with u_r protected. The next round starts from the weights that were shared. With one local step u_r is
the gradient of the batch at w_r. The sum of gradients is divided by the size of the batch, of Poisson batches by the
expected size q N, so that an empty batch has gradient 0.

Source: B. McMahan et al. 2017 (federated averaging); M. Abadi et al. 2016 (DP-SGD).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel, random_streams, validate
from ...base.errors import DomainError, NotConvergedError, ShapeError, interruption
from ...base.numerics import SMALLEST_NORMAL, FloatArray, IntArray
from ...base.random_streams import RNGLike
from .layered_models import LayeredModel
from .protections import Protection
from .trainable_models import checked_labels, checked_model, checked_records, checked_weights, described

_BATCHES = ("fixed", "poisson", "full")  # how a round draws its batch
_SHARED = ("gradient", "weights")  # what a round shares
# Keys of the random streams: starting weights; then, with the round, the batch and the noise.
_INITIAL, _BATCH, _NOISE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Updates:
    """What an attacker sees of a training, and who was in its batches. ``Training.run`` makes them.

    Parameters
    ----------
    model : TrainableModel
        The model.
    training : Training
        How it was trained.
    before : ndarray, shape (rounds, P)
        Weights that each round started from, which the attacker knows.
    shared : ndarray, shape (rounds, P)
        What each round shared: a mean gradient, or weights.
    batches : list of ndarray
        Indices of the records of each round's batch, ascending; the truth, for the evaluation of attacks.
    weights : ndarray, shape (P,)
        Weights after the last round.
    n_records : int
        Size of the pool that batches were drawn from.

    Examples
    --------
    >>> from fastpriv.leakage import SoftmaxRegression, Training
    >>> training = Training(SoftmaxRegression(1, 2), rounds=3, learning_rate=0.5, batch_size=2)
    >>> updates = training.run([[0.0], [1.0], [2.0]], [0, 1, 1], rng=1)
    >>> len(updates), updates.shared.shape, updates.batches[0]
    (3, (3, 4), array([0, 1]))
    """

    model: Any
    training: Training
    before: FloatArray
    shared: FloatArray
    batches: list[IntArray]
    weights: FloatArray
    n_records: int

    def __len__(self) -> int:
        return len(self.before)

    def gradient(self, round: int = 0) -> FloatArray:
        """Mean gradient of a round as an attacker infers it, shape (P,).

        Parameters
        ----------
        round : int
            From 0. Where weights were shared it is (before - shared) / (learning_rate * local_steps).
        """
        index = validate.count("round", round, 0, len(self.before) - 1)
        training, before, shared = self.training, self.before[index], self.shared[index]
        step = training.learning_rate * training.local_steps
        return np.asarray(shared if training.share == "gradient" else (before - shared) / step)


@dataclass(frozen=True, repr=False)
class Training:
    """Gradient descent in rounds, of which each shares a gradient or the new weights.

    Parameters
    ----------
    model : TrainableModel
        What is trained.
    rounds : int
        Number of rounds.
    local_steps : int
        Steps of a round, all on the batch of the round.
    learning_rate : float
        Positive.
    batch : {"fixed", "poisson", "full"}
        Whether a round's batch is ``batch_size`` different records; those that are drawn, each by itself with
        probability ``rate``; or all records.
    batch_size : int, optional
        Of fixed batches.
    rate : float, optional
        Of Poisson batches, in (0, 1].
    share : {"gradient", "weights"}
        What a round shares.
    protection : Protection
        What the shared vector goes through. It acts on the mean gradient of the round's steps, and where weights are
        shared these are the old ones minus ``learning_rate * local_steps`` times the protected gradient; with
        ``every_step``, as DP-SGD has it, it acts on the gradient of each local step instead.

    Raises
    ------
    DomainError
        For an object that is no model, numbers out of range, or a batch without its size or rate.

    Notes
    -----
    The next round starts from the weights that follow from what was shared. Poisson batches divide sums of gradients by
    their expected size. The same seed gives the same bits on every instruction set; streams belong to rounds, so that
    a longer training begins like a shorter one.

    **Accuracy** ``tests/leakage/test_federated_training.py`` trains by the definition. Source: as the head of
    ``fastpriv/studies/leakage/federated_training.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, Training
    >>> records, labels = np.eye(4), [0, 1, 0, 1]
    >>> training = Training(SoftmaxRegression(4, 2), rounds=5, local_steps=2, learning_rate=0.5, batch="full",
    ...                     share="weights", protection=Protection(clip_example=1.0))
    >>> updates = training.run(records, labels, rng=1)
    >>> bool(np.all(updates.shared[:-1] == updates.before[1:]))
    True
    """

    model: Any
    _: KW_ONLY
    rounds: int = 1
    local_steps: int = 1
    learning_rate: float
    batch: str = "fixed"
    batch_size: int | None = None
    rate: float | None = None
    share: str = "gradient"
    protection: Protection = field(default_factory=Protection)

    def __post_init__(self) -> None:
        kind, size, rate = validate.choice("batch", self.batch, _BATCHES), self.batch_size, self.rate
        for name, value, needed in (("batch_size", size, kind == "fixed"), ("rate", rate, kind == "poisson")):
            if (value is not None) != needed:
                raise DomainError(
                    f"{name} must be {'given' if needed else 'left out'} where batch is {kind!r}; got "
                    f"{validate.shown(value)}. Fixed batches have a batch_size, Poisson batches a rate."
                )
        guard: Any = self.protection
        guard = Protection() if guard is None else guard
        validate.instance("protection", guard, Protection)
        validate.choice("share", self.share, _SHARED)
        checked: dict[str, Any] = {"model": checked_model(self.model), "protection": guard}
        for name in ("rounds", "local_steps"):
            checked[name] = validate.count(name, getattr(self, name), 1, validate.MOST_ENTRIES)
        checked["learning_rate"] = validate.positive("learning_rate", self.learning_rate)
        if size is not None:
            checked["batch_size"] = validate.count("batch_size", size)
        if rate is not None:
            checked["rate"] = validate.scalar("rate", rate, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        values = ((item.name, getattr(self, item.name)) for item in fields(self)[1:])
        words = ", ".join(f"{name}={value!r}" for name, value in values if value is not None)
        return f"Training({described(self.model)}, {self.model.n_parameters} weights, {words})"

    def under(self, protection: Protection) -> Training:
        """The same training under another protection."""
        return replace(self, protection=protection)

    def expected_size(self, n_records: int) -> float:
        """The number that sums of gradients are divided by, out of a pool of ``n_records``."""
        if self.batch == "poisson":
            return float(self.rate) * n_records  # type: ignore[arg-type]
        return float(n_records if self.batch == "full" else self.batch_size)  # type: ignore[arg-type]

    def run(
        self, records: ArrayLike, labels: ArrayLike, *, rng: RNGLike = None, weights: ArrayLike | None = None,
        progress: parallel.Progress = None,
    ) -> Updates:
        """Train, and return what was shared.

        Parameters
        ----------
        records : array_like, shape (N, D)
            The pool that batches are drawn from.
        labels : array_like of int, shape (N,)
            Classes, from 0.
        rng : int, Generator or None
            Source of starting weights, batches and noise; each round has a stream of its own.
        weights : array_like, shape (P,), optional
            Weights to start from; by default ``model.initial``.
        progress : bool or callable, optional
            Whether a bar counts the rounds, or a function of the number done and the total.

        Returns
        -------
        Updates

        Raises
        ------
        DomainError, ShapeError
            For labels that are no classes, shapes that do not fit the model, a batch larger than the pool, a model
            that returns gradients of another shape.
        NotConvergedError
            If a round's gradient is NaN or infinite: the error names the round; its ``best`` has those before.
        """
        x = checked_records(self.model, records)
        y = checked_labels(self.model, labels, len(x))
        if self.batch_size is not None and self.batch_size > len(x):
            raise DomainError(
                f"batch_size must be at most the number of records, {len(x)}; got {self.batch_size}. Take a smaller "
                "batch, or batch='full'."
            )
        root = random_streams.root(rng)
        initial = self.model.initial(_generator(root, _INITIAL)) if weights is None else weights
        start = checked_weights(self.model, initial)
        before, shared = np.empty((self.rounds, start.size)), np.empty((self.rounds, start.size))
        batches: list[IntArray] = []
        current = start.copy()

        def done() -> Updates:
            k = len(batches)
            for array in (before, shared, current):
                array.setflags(write=False)
            return Updates(self.model, self, before[:k], shared[:k], batches, current, len(x))

        report, close = parallel.progress_reporter(progress, self.rounds)
        try:
            for index in range(self.rounds):
                before[index] = current
                members = self._drawn(root, index, len(x))
                shared[index] = self._round(current, x, y, members, _generator(root, _NOISE, index))
                following = self._following(current, shared[index])
                if not np.isfinite(following).all():
                    raise NotConvergedError(
                        f"gradient must be finite; got {_first_fault(shared[index], following)} in round {index} "
                        f"(of {self.rounds}, from 0). The {index} rounds before it are the attribute best of this "
                        "error; take a smaller learning_rate, or smaller records. If the model is your own, "
                        "compare its gradient with scipy.optimize.check_grad.",
                        done(),
                    )
                batches.append(members)
                current = following
                report(index + 1)
        except KeyboardInterrupt:
            raise interruption(done(), f"interrupted after {len(batches)} rounds") from None
        finally:
            close()
        return done()

    def _drawn(self, root: Any, index: int, n: int) -> IntArray:
        """The members of a round's batch, ascending."""
        stream = _generator(root, _BATCH, index)
        if self.batch == "full":
            return np.arange(n)
        if self.batch == "poisson":
            return np.flatnonzero(stream.random(n) < float(self.rate))  # type: ignore[arg-type]
        return np.sort(stream.choice(n, size=self.batch_size, replace=False)).astype(np.int64)

    def _round(self, w: FloatArray, x: FloatArray, y: IntArray, members: IntArray, stream: Any) -> FloatArray:
        """What a round shares."""
        size, rows, targets = self.expected_size(len(x)), x[members], y[members]
        guard, rate, steps = self.protection, self.learning_rate, self.local_steps
        clip = guard.clip_example
        with np.errstate(over="ignore", invalid="ignore"):
            if not guard.every_step:
                total = descent(self.model, w, rows, targets, clip=clip, size=size, steps=steps, rate=rate)
            else:
                total, local = np.zeros(w.size), w
                for _ in range(steps):
                    step = descent(self.model, local, rows, targets, clip=clip, size=size, steps=1, rate=0.0)
                    step = guard.protected(step, stream)
                    total += step
                    local = local - rate * step
            mean = total / steps
            if not guard.every_step:
                mean = guard.protected(mean, stream)
            return mean if self.share == "gradient" else w - rate * steps * mean

    def _following(self, before: FloatArray, shared: FloatArray) -> FloatArray:
        """Weights that the next round starts from."""
        if self.share == "weights":
            return shared.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            return before - self.learning_rate * self.local_steps * shared


def _generator(root: Any, *key: int) -> np.random.Generator:
    return np.random.default_rng(random_streams.stream_words(root, key, 4))


def descent(
    model: Any, weights: FloatArray, records: FloatArray, labels: IntArray, *, clip: float | None, size: float,
    steps: int, rate: float,
) -> FloatArray:
    """Sum of the gradients of some steps on one batch, each a sum of clipped gradients divided by ``size``."""
    if isinstance(model, LayeredModel):
        longest = math.inf if clip is None else clip
        return model.descent(weights, records, labels, clip=longest, size=size, steps=steps, rate=rate)
    total, local = np.zeros(weights.size), weights
    for _ in range(steps if len(records) else 0):
        if clip is None:
            result = _answer("gradient", model.gradient(local, records, labels), weights.shape)
            step = result * (len(records) / size)
        else:
            shape = len(records), weights.size
            rows = _answer("per_example_gradients", model.per_example_gradients(local, records, labels), shape)
            step = (rows * clipping(rows, clip)[:, None]).sum(axis=0) / size
        total += step
        local = local - rate * step
    return total


def _answer(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """What a method of a user's model returned, which must be of this shape."""
    answer = np.asarray(value, dtype=np.float64)
    if answer.shape != shape:
        raise ShapeError(
            f"model must return an array of shape {shape} from {name}(); got shape {answer.shape}. Return one number "
            "for each."
        )
    return answer


def clipping(gradients: FloatArray, longest: float) -> FloatArray:
    """Factors that scale the rows down to this length."""
    lengths = np.linalg.norm(gradients, axis=1)
    return np.asarray(np.minimum(1.0, longest / np.maximum(lengths, SMALLEST_NORMAL)))


def _first_fault(shared: FloatArray, following: FloatArray) -> str:
    """The first number of what was shared that is not finite, or of the weights that follow from it."""
    array = following if np.isfinite(shared).all() else shared
    index = int(np.argmin(np.isfinite(array)))
    return f"{float(array[index])!r} at weight {index}"
