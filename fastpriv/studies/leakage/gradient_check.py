"""A model's gradient compared with differences of its losses.

Notation: F(w) the mean loss of records at weights w, d_j = (F(w + h e_j) - F(w - h e_j)) / 2h, its central difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import FloatArray
from ...base.random_streams import RNGLike
from .trainable_models import checked_labels, checked_model, checked_records, checked_weights

__all__ = ["check_gradient"]

# Steps of the differences relative to a weight: the cube root of the rounding of doubles balances it with the
# curvature; the second is for losses with a kink near by.
_STEPS = (2.0**-17, 2.0**-21)
# bound: none - how far a difference of doubles is off by rounding, relative to the loss: it only checks a model
_NOISE = 1e-9


def check_gradient(
    model: Any, weights: ArrayLike, records: ArrayLike, labels: ArrayLike, *, rtol: float = 1e-4,
    coordinates: int | None = None, rng: RNGLike = 0,
) -> float:  # fmt: skip
    """Compare a model's gradient, and those of single records, with central differences of its losses.

    Parameters
    ----------
    model : TrainableModel
        Any object with its methods.
    weights : array_like, shape (P,)
        Where to compare.
    records, labels : array_like, shapes (S, D) and (S,)
        What the loss is of.
    rtol : float
        Largest difference, relative to the largest coordinate of the gradient, that is accepted; positive.
    coordinates : int, optional
        Number of weights that are varied, chosen at random; by default all of them.
    rng : int, Generator or None
        What chooses them.

    Returns
    -------
    float
        The largest difference that was met, relative to the largest coordinate.

    Raises
    ------
    DomainError
        If a gradient disagrees; the error names the worst coordinate.
    DomainError, ShapeError
        For arguments out of range, and a model whose answers have other shapes.

    Examples
    --------
    >>> from fastpriv.leakage import SoftmaxRegression, check_gradient
    >>> model = SoftmaxRegression(2, 3)
    >>> check_gradient(model, model.initial(rng=1), [[0.5, -1.0]], [2]) < 1e-8
    True
    """
    from scipy.optimize import approx_fprime

    checked_model(model)
    x = checked_records(model, records)
    w, y = checked_weights(model, weights), checked_labels(model, labels, len(x))
    tolerance = validate.scalar("rtol", rtol, "positive and finite", lambda r: (r > 0) & (r < np.inf))
    chosen = np.arange(w.size)
    if coordinates is not None:
        count = validate.count("coordinates", coordinates)
        if count < w.size:
            chosen = np.sort(random_streams.generator(rng).choice(w.size, size=count, replace=False))
    found = _answer("gradient", model.gradient(w, x, y), w.shape)
    single = _answer("per_example_gradients", model.per_example_gradients(w, x, y), (len(x), w.size))
    base = float(np.mean(_answer("losses", model.losses(w, x, y), (len(x),))))
    scale = np.max(np.abs(found), initial=0.0)
    allowed = tolerance * scale + _NOISE * (1.0 + abs(base))
    def mean_loss(varied: FloatArray) -> float:
        moved = w.copy()
        moved[chosen] = varied
        return float(np.mean(model.losses(moved, x, y)))

    def differences(step: float) -> FloatArray:
        """Central differences: means of the forward and the backward ones."""
        steps = step * np.maximum(1.0, np.abs(w[chosen]))
        return np.asarray(sum(approx_fprime(w[chosen], mean_loss, sign * steps) for sign in (1.0, -1.0)) / 2.0)

    numeric = differences(_STEPS[0])
    if not np.all(np.abs(numeric - found[chosen]) <= allowed):
        finer = differences(_STEPS[1])
        numeric = np.where(np.abs(finer - found[chosen]) < np.abs(numeric - found[chosen]), finer, numeric)
    errors = np.abs(numeric - found[chosen])
    worst = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    if not errors[worst] <= allowed:
        raise DomainError(
            f"model must have a gradient that agrees with differences of its losses; got {found[chosen[worst]]:.6g} at "
            f"weight {chosen[worst]}, where they give {numeric[worst]:.6g}. Mend gradient() or losses(), in double "
            "precision."
        )
    apart = np.abs(np.mean(single, axis=0) - found)
    if not np.all(apart <= allowed):
        j = int(np.argmax(np.where(np.isnan(apart), np.inf, apart)))
        raise DomainError(
            f"model must have per-example gradients whose mean is its gradient; got {np.mean(single[:, j]):.6g} and "
            f"{found[j]:.6g} at weight {j}. Mend per_example_gradients(), or the mean in gradient()."
        )
    return float(errors[worst] / scale) if scale > 0.0 else 0.0


def _answer(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    answer = np.asarray(value, dtype=np.float64)
    if answer.shape != shape:
        raise ShapeError(f"model must return an array of shape {shape} from {name}(); got shape {answer.shape}. "
                         "Return one number for each.")  # fmt: skip
    return answer
