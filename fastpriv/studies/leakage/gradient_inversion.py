"""Records from the gradient of their batch: in closed form, and by matching gradients.

Notation: as the head of ``fastpriv.leakage``; errors e_i = dl_i / dz_i of record i by the outputs z of a layer, whose
matrix has the gradient G = sum_i s e_i [x_i; 1]' with the share s = 1/S, or 1/(q N) in a Poisson batch. Its last
column, of the intercepts, is b = sum_i s e_i.

* One record: G = s e [x; 1]', so that x is G's other columns divided by b, row by row; weighted by b^2, x = G'b / b'b.
* Labels: the last layer's error is p_i - y_i, so that class c has n_c = S (mean of p_ic) - b_c / s records. As p is
  positive n_c > -b_c / s, and if these least whole numbers add up to S they are the labels.
* Batches: records whose gradient is nearest to the one that was seen, |g(x, y) - t|^2, searched in a box from random
  starts. For softmax regression without noise the rows of G span the S < C records, and the search has S^2 unknowns.
* Several local steps: the shared mean of the steps' gradients is near the gradient g at the weights half-way, and is
  taken for it. Clipped gradients are taken for whole ones.

Sources: L. T. Phong et al. 2017, Privacy-preserving deep learning: revisited and enhanced (one record); B. Zhao, K. R.
Mopuri and H. Bilen 2020, iDLG (one label); L. Zhu, Z. Liu and S. Han 2019, Deep leakage from gradients, equation 3
(matching); J. Geiping et al. 2020, Inverting gradients (a box, restarts).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Result
from ...base.numerics import SMALLEST_NORMAL, FloatArray, IntArray
from ...base.random_streams import RNGLike
from ...base.values import ValueObject
from ...kernels import matrix_product
from ..kernels import _gradient_matching
from .federated_training import Training, Updates, descent
from .layered_models import LayeredModel, SoftmaxRegression
from .trainable_models import checked_labels, checked_model, checked_weights

# bound: none - what rounding may add to a count of labels that is a whole number
_COUNT_ROUNDING = 1e-9
# bound: none - standard deviations of the noise of a count that are granted before a label is taken as present
_COUNT_DEVIATIONS = 4.0
_LABEL_SETS = 5  # most label multisets that are tried where the gradient leaves a choice
_EXACT_LABEL_SETS = 60  # the same for softmax regression without noise, where a search takes less than a millisecond
_LISTED_SETS = 5000  # label multisets that are listed in order to find the most plausible ones
_FIRST_STARTS = 2  # in the space of the rows, for each of several label multisets
_REDUCED_STARTS = 8  # in the space of the rows, which cost a tenth of one in the box, for each restart
_REDUCED_SETS = 3  # label multisets that have so many starts
_REDUCED_STEPS = 100  # damped steps of one of them
_NETWORK_STEPS = 20  # of networks, from differences: a start that is good needs about ten
# bound: none - tolerance of SciPy that ends no search
_LEAST = 1e-15
# bound: none - step of the differences; what it misses only slows the search down
_DIFFERENCE = 2.0**-24
_SLOWER = 16  # how many times fewer starts there are for networks, whose searches take longer
# bound: none - objective relative to the squared length of the gradient at which a search has found a match
_SOLVED = 1e-26
# bound: none - the same for a search in the space of the rows, with the objective taken over all coordinates
_ACCEPTED = 1e-18
_OUTSIDE = 1e-6  # how far outside of the box a match may lie, relative to its width
# bound: none - length of a row without its projection on others, relative to the longest, that is rounding
_DEPENDENT = 1e-10
# bound: none - relative decrease of the objective, twice in a row, below which a search ends
_FLAT = 1e-7


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reconstruction(Result):
    """What an attack says was in a batch.

    Parameters
    ----------
    records : ndarray, shape (S, D)
        Reconstructed records, in no order.
    labels : ndarray of int, shape (S,)
        Their labels.
    objective : float
        Squared distance of their gradient from the one that was seen: of several reconstructions the least is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Reconstruction
    >>> Reconstruction(np.zeros((4, 64)), np.array([0, 3, 3, 7]), 1e-9)
    Reconstruction(4 records, objective=1e-09)
    """

    records: FloatArray
    labels: IntArray
    objective: float

    def __repr__(self) -> str:
        return f"Reconstruction({len(self.records)} records, objective={self.objective:.4g})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecoveredLabels(Result):
    """Labels of a batch.

    Parameters
    ----------
    labels : ndarray of int, shape (S,)
        Ascending.
    counts : ndarray of int, shape (C,)
        Records of each class.
    certain : bool
        Whether no other labels give this gradient; True only without noise.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import RecoveredLabels
    >>> RecoveredLabels(np.array([1, 1, 2]), np.array([0, 2, 1]), certain=True).labels
    array([1, 1, 2])
    """

    labels: IntArray
    counts: IntArray
    certain: bool


class ObservedRound(NamedTuple):
    """A round as an attacker sees it."""

    training: Training
    before: FloatArray  # (P,) weights that it started from
    weights: FloatArray  # (P,) half-way to where it ended
    gradient: FloatArray  # (P,) what it shared
    size: int  # S
    divisor: float  # of the sum of gradients
    variance: float  # of the noise of a coordinate, about

    @property
    def model(self) -> Any:
        """The model that is trained."""
        return self.training.model

    def update(self, records: FloatArray, labels: IntArray) -> FloatArray:
        """The mean gradient that these records would have shared, without noise."""
        training = self.training
        total = descent(
            training.model, self.before, records, labels, clip=training.protection.clip_example, size=self.divisor,
            steps=training.local_steps, rate=training.learning_rate,
        )
        return np.asarray(total / training.local_steps)


def observed_round(updates: Updates, index: int = 0) -> ObservedRound:
    """What an attacker sees of a round."""
    validate.instance("updates", updates, Updates)
    training = updates.training
    gradient, before = updates.gradient(index), updates.before[index]
    guard, steps = training.protection, training.local_steps
    variance = guard.scale**2 * (2.0 if guard.noise == "laplace" else 1.0) / (steps if guard.every_step else 1)
    if guard.levels is not None:  # rounding, up or down, by at most the distance of two levels
        variance += (2.0 * float(np.abs(gradient).max()) / (guard.levels - 1)) ** 2 / 6.0
    if guard.keep_fraction < 1.0:  # what was set to 0 is smaller than all that was kept
        selected = np.abs(gradient[gradient != 0.0])
        variance += (1.0 - guard.keep_fraction) * (float(selected.min()) if selected.size else 0.0) ** 2 / 3.0
    half_way = before - 0.5 * training.learning_rate * steps * gradient if steps > 1 else before
    size, divisor = len(updates.batches[index]), training.expected_size(updates.n_records)
    return ObservedRound(training, before, half_way, gradient, size, divisor, variance)


def invert_single_record(model: Any, gradient: ArrayLike) -> Reconstruction:
    """The record and the label of a gradient of one record, in closed form.

    Parameters
    ----------
    model : SoftmaxRegression or MultilayerPerceptron
        The model whose gradient was seen; its weights are not needed.
    gradient : array_like, shape (P,)
        Gradient of the loss of one record, or any multiple of it, as after clipping.

    Returns
    -------
    Reconstruction
        With ``objective`` the squared distance of the first layer's gradient from that of such a record: 0 up to
        rounding for one record, more with noise or for several records, of which it gives a mixture.

    Raises
    ------
    DomainError, ShapeError
        For another model, or a gradient of another length, that is not finite, or whose derivatives by the intercepts
        of the first layer are all 0: no record can be read from it.

    Notes
    -----
    **Accuracy** records to 1e-12 relative to their length; ``tests/leakage/test_gradient_inversion.py``. Source:
    L. T. Phong et al. 2017, section 3; the label as B. Zhao et al. 2020, equation 4.

    Examples
    --------
    >>> from fastpriv.leakage import SoftmaxRegression, invert_single_record
    >>> model = SoftmaxRegression(3, 4)
    >>> gradient = model.gradient(model.initial(rng=1), [[0.5, 0.25, 1.0]], [2])
    >>> found = invert_single_record(model, gradient)
    >>> found.records.round(12), found.labels
    (array([[0.5 , 0.25, 1.  ]]), array([2]))
    """
    matrices = _matrices(model, gradient)
    errors, remainder = matrices[0][:, -1], matrices[0][:, :-1]
    largest = float(np.abs(errors).max())
    if not largest > 0.0:
        raise DomainError(
            "gradient must have a derivative by an intercept of the first layer that is not 0; got zeros only. The "
            "record does not show in it: take another round."
        )
    weights = errors / largest
    record = matrix_product.product(remainder.T, weights[None])[:, 0] / math.fsum((weights * errors).tolist())
    gap = remainder - errors[:, None] * record
    label = np.array([int(np.argmin(matrices[-1][:, -1]))])
    return Reconstruction(record[None], label, float((gap * gap).sum()))


def recover_labels(
    model: Any, gradient: ArrayLike, size: int, *, weights: ArrayLike | None = None, records: ArrayLike | None = None,
    sigma: float = 0.0,
) -> RecoveredLabels:
    """How many records of each class are in a batch, from the gradient by the intercepts of the last layer.

    Parameters
    ----------
    model : SoftmaxRegression or MultilayerPerceptron
        The model whose gradient was seen.
    gradient : array_like, shape (P,)
        Mean gradient of the batch.
    size : int
        Number of records, S.
    weights : array_like, shape (P,), optional
        Weights at which it was taken; with ``records``.
    records : array_like, shape (M, D), optional
        Records like those of the batch: the mean of their class probabilities stands for that of the batch. By default
        all classes are as probable.
    sigma : float
        Standard deviation of the noise of a coordinate of the gradient.

    Returns
    -------
    RecoveredLabels
        ``certain`` is True where the gradient leaves no choice: without noise, whenever every class has a mean
        probability below 1/S, and often beyond.

    Raises
    ------
    DomainError, ShapeError
        For another model, shapes that do not fit it, or numbers out of range.

    Notes
    -----
    **Accuracy** labels that are certain are those of the batch; ``tests/leakage/test_gradient_inversion.py``. Source:
    B. Zhao et al. 2020 for one record; for batches the count at the head of
    ``fastpriv/studies/leakage/gradient_inversion.py``.

    Examples
    --------
    >>> from fastpriv.leakage import SoftmaxRegression, recover_labels
    >>> model = SoftmaxRegression(3, 5)
    >>> gradient = model.gradient(model.initial(rng=1), [[0.5, 0.2, 1.0], [0.1, 0.9, 0.0], [0.3, 0.3, 0.3]], [4, 1, 4])
    >>> found = recover_labels(model, gradient, 3)
    >>> found.labels, found.certain
    (array([1, 4, 4]), True)
    """
    intercepts = _matrices(model, gradient)[-1][:, -1]
    count = validate.count("size", size, 1, 2**31)
    noise = validate.scalar("sigma", sigma, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    if (weights is None) != (records is None):
        raise DomainError(
            f"weights must be given with records, and only with them; got {'None' if weights is None else 'weights'}. "
            "The probabilities of classes need both."
        )
    expected = _mean_probabilities(model, None if weights is None else checked_weights(model, weights), records)
    sets, certain = _label_sets(intercepts, count, count, expected, noise, 1)
    return RecoveredLabels(np.repeat(np.arange(model.n_classes), sets[0]), sets[0], certain)


class GradientMatching(ValueObject):
    """Reconstruction of a batch by matching its gradient.

    Parameters
    ----------
    restarts : int
        Searches from random starts, of which the one with the least objective is taken.
    max_evaluations : int
        Of the objective in each search.
    bounds : pair of float
        Least and largest value of a feature; infinite ones bound nothing.
    public_records : array_like, shape (M, D), optional
        Records like those of the batch, M at least 2. Searches start near them; class probabilities for the recovery of
        labels are theirs; and with noise their mean m and mean variance v are the prior: noise variance / v times
        |x - m|^2 is added to the objective.

    Raises
    ------
    DomainError, ShapeError
        For numbers out of range, bounds that are not ascending, or public records that are no table.

    Notes
    -----
    The search is limited-memory BFGS in the box with the analytic gradient. For softmax regression without noise a
    search by damped Gauss-Newton steps in the space of the rows of the gradient comes first. Every batch whose gradient
    is the same is as good a match: reconstructions are exact only where records are identifiable. Clipping is not
    modelled, local steps only by the weights half-way; what is quantised or set to 0 counts as noise.

    **Accuracy** derivatives against high-precision differences, recovery without noise to 1e-6;
    ``tests/leakage/test_gradient_inversion.py``. Source: L. Zhu et al. 2019, equation 3; J. Geiping et al. 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import GradientMatching, SoftmaxRegression, Training
    >>> records, labels = np.random.default_rng(1).random((20, 6)).round(2), np.arange(20) % 5
    >>> training = Training(SoftmaxRegression(6, 5), learning_rate=0.1, batch_size=2)
    >>> updates = training.run(records, labels, rng=3)
    >>> found = GradientMatching().reconstruct(updates, rng=1)
    >>> truth = records[updates.batches[0]]
    >>> float(min(np.abs(found.records - truth).max(), np.abs(found.records[::-1] - truth).max())) < 1e-9
    True
    """

    __slots__ = _fields = ("restarts", "max_evaluations", "bounds", "public_records")

    restarts: int
    max_evaluations: int
    bounds: tuple[float, float]
    public_records: FloatArray | None

    def __init__(
        self, restarts: int = 4, max_evaluations: int = 400, bounds: tuple[float, float] = (0.0, 1.0),
        public_records: ArrayLike | None = None,
    ) -> None:
        limits = validate.real(
            "bounds", bounds, "a least and a largest value, ascending", lambda x: x.shape != (2,) or x[0] < x[-1]
        )
        if limits.shape != (2,):
            raise ShapeError(f"bounds must be two numbers; got shape {limits.shape}. Pass the least and the largest.")
        public = None
        if public_records is not None:
            public = np.ascontiguousarray(
                validate.real("public_records", public_records, "finite numbers", np.isfinite, answer=False)
            )
            if public.ndim != 2 or len(public) < 2:
                raise ShapeError(
                    f"public_records must be a table of at least two rows; got shape {public.shape}. Leave it out "
                    "without such records."
                )
        self._set(
            restarts=validate.count("restarts", restarts), bounds=(float(limits[0]), float(limits[1])),
            max_evaluations=validate.count("max_evaluations", max_evaluations, 2, 2**31 - 1), public_records=public,
        )

    def reconstruct(
        self, updates: Updates, *, rng: RNGLike = None, round: int = 0, labels: ArrayLike | None = None
    ) -> Reconstruction:
        """Reconstruct the batch of a round.

        Parameters
        ----------
        updates : Updates
            Of a training; its model must have the method ``matching``.
        rng : int, Generator or None
            Source of the starts.
        round : int
            From 0.
        labels : array_like of int, shape (S,), optional
            Labels that the attacker knows; by default they are recovered.

        Returns
        -------
        Reconstruction
            Of as many records as the batch has, which the attacker knows.

        Raises
        ------
        DomainError, ShapeError
            For a model without ``matching``, a model with unknown layers and no labels, labels or public records that
            do not fit.
        """
        seen = observed_round(updates, round)
        model = checked_model(seen.model)
        if not hasattr(model, "matching"):
            raise DomainError(
                f"updates must be of a model with the method matching; got {validate.shown(model)}. Take "
                "SoftmaxRegression or MultilayerPerceptron, or give yours that method."
            )
        if self.public_records is not None and self.public_records.shape[1] != model.n_features:
            raise ShapeError(
                f"public_records must have {model.n_features} columns, the model's features; got "
                f"{self.public_records.shape[1]}. Pass one row a record."
            )
        if seen.size == 0:
            return Reconstruction(np.empty((0, model.n_features)), np.empty(0, dtype=np.int64), 0.0)
        stream = random_streams.generator(rng)
        sets = self._label_sets(seen) if labels is None else [checked_labels(model, labels, seen.size)]
        if seen.variance == 0.0:
            sets, exact = self._in_row_space(seen, sets, stream)
            if exact is not None:
                return exact
        # one search each where there is a choice, then all others with the best labels
        searches = self.restarts if len(sets) == 1 else 1
        result = [_MatchingProblem(seen, item, self).best(searches, stream) for item in sets]
        best = min(result, key=lambda element: element.objective)
        if len(sets) > 1 and self.restarts > 1:
            more = _MatchingProblem(seen, best.labels, self).best(self.restarts - 1, stream)
            best = min(best, more, key=lambda entry: entry.objective)
        return best

    def _in_row_space(
        self, seen: ObservedRound, sets: list[IntArray], stream: np.random.Generator
    ) -> tuple[list[IntArray], Reconstruction | None]:
        """A match in the space of the gradient's rows, if one is found; and the label sets that come nearest."""
        for starts in (_FIRST_STARTS, _REDUCED_STARTS * self.restarts):
            values = []
            for labels in sets:
                problem = _MatchingProblem(seen, labels, self)
                result = problem.in_row_space(starts, stream)
                if result is not None and problem.accepts(result):
                    return sets, Reconstruction(np.clip(result[0], *self.bounds), labels, result[1])
                values.append(math.inf if result is None else result[1])
            order = np.argsort(values, kind="stable")
            sets = [sets[k] for k in order[: _REDUCED_SETS if values[order[0]] < math.inf else _LABEL_SETS]]
            if not values[order[0]] < math.inf:
                break
        return sets, None

    def _label_sets(self, seen: ObservedRound) -> list[IntArray]:
        """The most plausible labels first."""
        model = seen.model
        intercepts = _matrices(model, seen.gradient)[-1][:, -1]
        expected = _mean_probabilities(model, seen.weights, self.public_records)
        noise = math.sqrt(seen.variance)
        exact = noise == 0.0 and isinstance(model, SoftmaxRegression)
        sets, _ = _label_sets(
            intercepts, seen.size, seen.divisor, expected, noise, _EXACT_LABEL_SETS if exact else _LABEL_SETS
        )
        return [np.repeat(np.arange(model.n_classes), counts) for counts in sets]

    def _starts(self, seen: ObservedRound, many: int, stream: np.random.Generator) -> FloatArray:
        """Random records, shape (many, S, D)."""
        shape = (many, seen.size, seen.model.n_features)
        low, high = self.bounds
        if self.public_records is not None:
            mean, deviation = self.public_records.mean(axis=0), self.public_records.std(axis=0)
            return np.asarray(np.clip(mean + deviation * stream.standard_normal(shape), low, high))
        if math.isfinite(low) and math.isfinite(high):
            return np.asarray(low + (high - low) * stream.random(shape))
        return np.asarray(np.clip(stream.standard_normal(shape), low, high))

    def _prior(self, seen: ObservedRound) -> tuple[FloatArray, float]:
        """Centre and weight of the ridge."""
        if self.public_records is None or seen.variance == 0.0:
            return np.zeros(seen.model.n_features), 0.0
        spread = float(self.public_records.var(axis=0).mean())
        return self.public_records.mean(axis=0), seen.variance / max(spread, SMALLEST_NORMAL)


class _MatchingProblem:
    """Matching of the gradient of a round with given labels."""

    def __init__(self, seen: ObservedRound, labels: IntArray, attack: GradientMatching) -> None:
        self.seen, self.labels, self.target, self.attack = seen, labels, seen.gradient, attack
        self.shares = np.full(len(labels), 1.0 / seen.divisor)
        self.centre, self.ridge = attack._prior(seen)
        self.square = max(_square(self.target), SMALLEST_NORMAL)
        self.kernel: Any = None
        if isinstance(seen.model, SoftmaxRegression):
            shape = seen.model.n_classes, seen.model.n_features + 1
            self.weights, self.rows = seen.weights.reshape(shape), self.target.reshape(shape)
            self.one_hot = np.zeros((len(labels), shape[0]))
            self.one_hot[np.arange(len(labels)), labels] = 1.0
            self.kernel = _gradient_matching.Matching(self.shares, self.weights, self.rows)

    def best(self, restarts: int, stream: np.random.Generator) -> Reconstruction:
        """The best of searches from random starts."""
        best: tuple[FloatArray, float] | None = None
        for start in self.attack._starts(self.seen, restarts, stream):
            records, value = self.search(start)
            if best is None or value < best[1]:
                best = records, value
            if best[1] <= _SOLVED * self.square:
                break
        assert best is not None
        return Reconstruction(best[0], self.labels, self.distance(best[0]))

    def search(self, start: FloatArray) -> tuple[FloatArray, float]:
        """The records of one search in the box, and their objective with its ridge."""
        low, high = self.attack.bounds
        most, solved = self.attack.max_evaluations, _SOLVED * self.square
        if self.kernel is not None:
            records, value, _ = self.kernel.search(
                start, self.one_hot, self.centre, self.ridge, low, high, _FLAT, solved, most
            )
            return records, value
        result, value, _ = _gradient_matching.bounded_minimum(
            self._objective, start.ravel(), low, high, _FLAT, solved, most
        )
        return result.reshape(start.shape), value

    def _objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The objective with its ridge, and its derivatives, of any model."""
        records = x.reshape(len(self.labels), -1)
        factor = float(self.shares.sum())  # of the mean gradient in the sum with its shares
        value, slope, _ = self.seen.model.matching(self.seen.weights, records, self.labels, self.target / factor)
        gap = records - self.centre
        return value * factor**2 + self.ridge * float((gap * gap).sum()), slope * factor**2 + 2.0 * self.ridge * gap

    def gradient(self, records: FloatArray) -> FloatArray:
        """The sum of the records' gradients times their share."""
        model, weights = self.seen.model, self.seen.weights
        if isinstance(model, LayeredModel):
            return np.asarray(model.gradient(weights, records, self.labels) * (len(records) * self.shares[0]))
        rows = model.per_example_gradients(weights, records, self.labels)
        return np.asarray((rows * self.shares[:, None]).sum(axis=0))

    def distance(self, records: FloatArray) -> float:
        """Squared distance of their gradient from the target."""
        return _square(self.gradient(records) - self.target)

    def accepts(self, candidate: tuple[FloatArray, float]) -> bool:
        """Whether these records match the target and lie in the box."""
        return candidate[1] <= _ACCEPTED * self.square and self._inside(candidate[0])

    def _inside(self, records: FloatArray) -> bool:
        low, high = self.attack.bounds
        slack = _OUTSIDE * (high - low if math.isfinite(high - low) else 1.0)
        return bool(np.all((records >= low - slack) & (records <= high + slack)))

    def in_row_space(self, many: int, stream: np.random.Generator) -> tuple[FloatArray, float] | None:
        """Records spanned by the rows of the first layer's target, where these span those of the batch."""
        size, model = len(self.labels), self.seen.model
        if self.seen.variance > 0.0 or not isinstance(model, LayeredModel):
            return None
        if size == 1:
            try:
                record = invert_single_record(model, self.target).records  # in closed form, where there is one
            except DomainError:
                return None
            return record, self.distance(record)
        rows = model.matrices(self.target)[0]
        if size >= len(rows):
            return None
        basis = _orthonormal_rows(rows[:, :-1], size)
        if len(basis) < size:
            return None
        reduced = None
        if self.kernel is not None:
            weights, target = (
                np.concatenate([matrix_product.product(a[:, :-1], basis), a[:, -1:]], axis=1)
                for a in (self.weights, self.rows)
            )
            reduced = _gradient_matching.Matching(self.shares, weights, target)
        best: tuple[FloatArray, float] | None = None
        solved = _SOLVED * self.square
        for start in self.attack._starts(self.seen, many if reduced is not None else -(-many // _SLOWER), stream):
            y = matrix_product.product(start, basis)
            if reduced is not None:
                y, value, _ = reduced.descend(y, self.one_hot, np.zeros(size), 0.0, solved, _REDUCED_STEPS)
            else:
                y, value = self._in_span(y, basis)
            if best is not None and not value < best[1]:
                continue
            best = matrix_product.product(y, basis.T), value
            if value <= 100.0 * solved and self._inside(best[0]):
                break
        assert best is not None
        return best[0], self.distance(best[0])

    def _in_span(self, start: FloatArray, basis: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of records in a basis: the method of Levenberg and Marquardt, with differences of gradients."""

        def miss(y: FloatArray) -> FloatArray:
            return self.gradient(matrix_product.product(y.reshape(start.shape), basis.T)) - self.target

        def steps(y: FloatArray) -> FloatArray:
            residual = miss(y)
            return np.stack([(miss(y + _DIFFERENCE * axis) - residual) / _DIFFERENCE for axis in np.eye(y.size)]).T

        from scipy.optimize import least_squares

        result = least_squares(
            miss, start.ravel(), steps, method="lm", ftol=_FLAT, xtol=_LEAST, gtol=_LEAST, max_nfev=_NETWORK_STEPS
        )
        return result.x.reshape(start.shape), _square(result.fun)


def _matrices(model: Any, gradient: ArrayLike) -> list[FloatArray]:
    """The gradient's layers."""
    remedy = "The intercepts of other models are unknown: pass labels."
    validate.instance("model", model, LayeredModel, "a SoftmaxRegression or a MultilayerPerceptron", remedy)
    return list(model.matrices(checked_weights(model, gradient, "gradient")))


def _mean_probabilities(model: Any, weights: FloatArray | None, records: Any) -> FloatArray:
    """Mean of the class probabilities of some records; without records, all classes are as probable."""
    if records is None:
        return np.full(model.n_classes, 1.0 / model.n_classes)
    z = model.logits(weights, records)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p.mean(axis=0))


def _label_sets(
    intercepts: FloatArray, size: int, divisor: float, expected: FloatArray, noise: float, most: int
) -> tuple[list[IntArray], bool]:
    """Counts of classes, the most plausible ones first, at most ``most``; whether there is no choice."""
    seen = -divisor * intercepts  # n_c - S (mean of p_c), for S records
    slack = _COUNT_ROUNDING * max(1.0, float(size)) + _COUNT_DEVIATIONS * divisor * noise
    least = np.maximum(np.ceil(seen - slack), 0.0).astype(np.int64)
    wanted = seen + size * expected
    left = size - int(least.sum())
    if left < 0:  # more than there are: of a clipped gradient, or another size
        least, left = np.zeros(len(seen), dtype=np.int64), size
    certain = left == 0 and noise == 0.0
    if left == 0:
        return [least], certain
    classes = len(seen)
    if most > 1 and math.comb(classes + left - 1, left) <= _LISTED_SETS:
        rows = np.array([np.bincount(extra, minlength=classes)
                         for extra in itertools.combinations_with_replacement(range(classes), left)])
        gaps = ((rows + least - wanted) ** 2).sum(axis=1)
        return [rows[k] + least for k in np.argsort(gaps, kind="stable")[:most]], False
    counts = least.copy()
    for _ in range(left):  # each to the class that lacks most
        counts[int(np.argmax(wanted - counts))] += 1
    return [counts], False


def _orthonormal_rows(rows: FloatArray, most: int) -> FloatArray:
    """An orthonormal basis of the space of rows, shape (rank, D), of at most ``most`` of them: the longest first."""
    remainder = rows.copy()
    basis: list[FloatArray] = []
    squares = (remainder * remainder).sum(axis=1)
    scale = math.sqrt(float(squares.max()))
    while len(basis) < min(most, len(rows)):
        k = int(np.argmax(squares))
        if not math.sqrt(float(squares[k])) > _DEPENDENT * scale:
            break
        row = remainder[k]
        for known in basis:  # once more: what rounding left
            row = row - float((row * known).sum()) * known
        row = row / math.sqrt(float((row * row).sum()))
        basis.append(row)
        remainder = remainder - (remainder * row).sum(axis=1)[:, None] * row
        squares = (remainder * remainder).sum(axis=1)
    return np.array(basis).reshape(len(basis), rows.shape[1])


def _square(x: FloatArray) -> float:
    return float((x * x).sum())
