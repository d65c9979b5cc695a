"""What training and attacks ask of a model, and the checks of what they hand to it.

Notation: as the head of ``fastpriv.leakage``: S records of D features, C classes, P weights in one flat vector.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import FloatArray, IntArray
from ..kernels import _layered_model

# Attributes and methods that every model must have.
_REQUIRED = ("n_features", "n_classes", "n_parameters", "initial", "logits", "gradient", "per_example_gradients")


@runtime_checkable
class TrainableModel(Protocol):
    """A model that can be trained and attacked: any object with these attributes and methods.

    Weights are one flat vector of float64. The loss is the cross-entropy of the label, in nats.

    Parameters
    ----------
    args, kwargs
        None: this is a protocol, which classes satisfy and nobody builds.

    Attributes
    ----------
    n_features, n_classes, n_parameters : int
        D, C and P.

    Examples
    --------
    >>> from fastpriv.leakage import SoftmaxRegression, TrainableModel
    >>> isinstance(SoftmaxRegression(4, 3), TrainableModel), isinstance("a text", TrainableModel)
    (True, False)
    """

    @property
    def n_features(self) -> int:
        """Number of features of a record, D."""

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""

    @property
    def n_parameters(self) -> int:
        """Number of weights, P."""

    def initial(self, rng: Any = None) -> FloatArray:
        """Weights to start from, shape (P,)."""

    def logits(self, weights: ArrayLike, records: ArrayLike) -> FloatArray:
        """Scores of the classes, shape (S, C), whose softmax are their probabilities."""

    def gradient(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Mean gradient of the records' losses by the weights, shape (P,)."""

    def per_example_gradients(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Gradient of each record's loss, shape (S, P)."""


def checked_model(model: Any) -> Any:
    """The model itself; an error that names what it lacks."""
    lacking = [name for name in _REQUIRED if not hasattr(model, name)]
    if lacking:
        raise DomainError(
            f"model must be a trainable model, with {', '.join(_REQUIRED)}; got {validate.shown(model)}, which lacks "
            f"{', '.join(lacking)}. Take SoftmaxRegression or MultilayerPerceptron, or wrap yours in TorchModel."
        )
    return model


def described(thing: Any) -> str:
    """The repr of an object, or the name of its class where that repr is none of its own, but an address."""
    text = repr(thing)
    return type(thing).__qualname__ if " at 0x" in text else text


def checked_weights(model: Any, weights: ArrayLike, name: str = "weights") -> FloatArray:
    """Weights of a model, shape (P,)."""
    w = checked_numbers(name, weights)
    if w.shape != (model.n_parameters,):
        raise ShapeError(
            f"{name} must be one vector of the model's {model.n_parameters} weights; got shape {w.shape}. "
            "Take initial() of the model, or weights of its training."
        )
    return w


def checked_records(model: Any, records: ArrayLike) -> FloatArray:
    """Records of a model, shape (S, D)."""
    x = checked_numbers("records", records)
    if x.ndim != 2 or x.shape[1] != model.n_features or len(x) == 0:
        raise ShapeError(
            f"records must be a table of at least one row and {model.n_features} columns, the model's features; got "
            f"shape {x.shape}. Pass one row a record, flattened."
        )
    return x


def checked_labels(model: Any, labels: ArrayLike, n_records: int) -> IntArray:
    """Labels of records, shape (S,)."""
    if _is_plain(labels, np.int64) and np.shape(labels) == (n_records,):
        plain = np.asarray(labels)
        if _layered_model.are_classes(plain, model.n_classes):
            return plain
    y = validate.integers(
        "labels", labels, 0, model.n_classes - 1, remedy=f"The model has {model.n_classes} classes, numbered from 0."
    )
    if y.shape != (n_records,):
        raise ShapeError(f"labels must have one entry a record, {n_records}; got shape {y.shape}. Pass a flat list.")
    return y


def checked_label_logits(model: Any, logits: ArrayLike, n_records: int) -> FloatArray:
    """Logits whose softmax takes the place of labels, shape (S, C)."""
    u = checked_numbers("labels", logits)
    if u.shape != (n_records, model.n_classes):
        raise ShapeError(
            f"labels must be logits of shape {(n_records, model.n_classes)}, or one class a record; got shape "
            f"{u.shape}. Pass one row a record."
        )
    return u


def checked_numbers(name: str, values: ArrayLike) -> FloatArray:
    """A contiguous array of finite doubles; one that is such an array is not copied."""
    if _is_plain(values, np.float64):
        plain = np.asarray(values)
        if np.isfinite(plain).all():
            return plain
    return np.ascontiguousarray(validate.real(name, values, "finite numbers", np.isfinite, answer=False))


def _is_plain(values: Any, kind: Any) -> bool:
    """Whether this is a contiguous array of this type in memory, which attacks pass thousands of times."""
    return (
        type(values) is np.ndarray
        and values.dtype == kind
        and values.flags.c_contiguous
        and validate.map_of(values) is None
    )
