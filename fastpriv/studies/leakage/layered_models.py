"""Softmax regression and multilayer perceptrons: losses, gradients, steps, and the derivative of gradient matching.

Notation: layer l = 1 ... L has a matrix W_l, whose last column is the intercept, and maps a_{l-1}, with a 1 at its end,
to z_l = W_l [a_{l-1}; 1]; a_0 = x, a_l = f(z_l) with an activation f below layer L, and z_L are the logits. Weights are
W_1, ..., W_L one after another, row by row. The loss of label y is l = log sum exp z_L - z_{L,y}; its derivatives are

    e_L = softmax(z_L) - y,   e_{l-1} = f'(z_{l-1}) (W_l' e_l),   dl / dW_l = e_l [a_{l-1}; 1]',

with y as a one-hot vector or as any probabilities. The squared length of the gradient is the sum over layers of
|e_l|^2 (|a_{l-1}|^2 + 1), so that clipping needs no gradient of its own.

Gradient matching. F(x, y) = |g(x, y) - t|^2, g the mean gradient of S records. With v = 2 (g - t), dF is the derivative
of the directional derivative of the mean loss along v: V_l in place of W_l in the tangents

    z.l = V_l [a_{l-1}; 1] + W_l a.{l-1},   a.l = f'(z_l) z.l,   a.0 = 0,   l. = e_L' z.L,

whose reverse pass gives, with p = softmax(z_L), b_L = p (z.L - p' z.L) and

    d a_{l-1} = V_l' e_l + W_l' b_l,   b_{l-1} = f'(z) d a_{l-1} + f''(z) z. (W_l' e_l),

the gradient d a_0 / S by x and -z.L / S by y.

Source: D. Rumelhart, G. Hinton and R. Williams 1986 (gradients); B. Pearlmutter 1994 (derivatives along a direction);
I. Goodfellow 2015 (lengths of gradients); L. Zhu, Z. Liu and S. Han 2019 (gradient matching).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import ShapeError
from ...base.numerics import FloatArray, IntArray
from ...base.random_streams import RNGLike
from ...base.values import ValueObject
from ..kernels import _layered_model
from .trainable_models import checked_label_logits, checked_labels, checked_records, checked_weights

ACTIVATIONS = ("sigmoid", "tanh", "softplus", "relu")  # of hidden layers, in the order of their numbers in the kernel
_LARGEST_WIDTH = 2**20  # of a layer: beyond it the numbers of weights no longer fit in memory anyway


class LayeredModel(ValueObject):
    """Base of the models of this module: layers of these widths, from the features to the classes."""

    __slots__ = ()

    widths: tuple[int, ...]
    activation: str
    n_parameters: int

    def _set_layers(self, n_features: Any, hidden: tuple[int, ...], n_classes: Any) -> None:
        """Set the widths of the layers and the number of weights, P."""
        features = validate.count("n_features", n_features, 1, _LARGEST_WIDTH)
        widths = (features, *hidden, validate.count("n_classes", n_classes, 2, _LARGEST_WIDTH))
        self._set(widths=widths, n_parameters=sum(out * (inner + 1) for inner, out in pairwise(widths)))

    @property
    def n_features(self) -> int:
        """Number of features of a record, D."""
        return self.widths[0]

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return self.widths[-1]

    def initial(self, rng: RNGLike = None) -> FloatArray:
        """Weights to start from, shape (P,): uniform within sqrt(6 / (inputs + outputs)) of 0, intercepts 0.

        Source: X. Glorot and Y. Bengio 2010, equation 16. ``rng`` is a seed or a Generator.
        """
        stream = random_streams.generator(rng)
        parts = []
        for inner, out in pairwise(self.widths):
            limit = math.sqrt(6.0 / (inner + out))
            parts.append(np.concatenate([stream.uniform(-limit, limit, (out, inner)), np.zeros((out, 1))], axis=1))
        return np.concatenate([part.ravel() for part in parts])

    def logits(self, weights: ArrayLike, records: ArrayLike) -> FloatArray:
        """Scores of the classes, shape (S, C), of records of shape (S, D)."""
        w, x = checked_weights(self, weights), checked_records(self, records)
        return np.asarray(_layered_model.logits(self.widths, self._number, w, x))

    def losses(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Cross-entropy of each record, shape (S,), in nats."""
        scores = self.logits(weights, records)
        return np.asarray(_layered_model.losses(scores, checked_labels(self, labels, len(scores))))

    def gradient(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Mean gradient of the records' losses by the weights, shape (P,)."""
        w, x = checked_weights(self, weights), checked_records(self, records)
        y = checked_labels(self, labels, len(x))
        return np.asarray(_layered_model.summed_gradient(self.widths, self._number, w, x, y, math.inf, len(x)))

    def per_example_gradients(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Gradient of each record's loss by the weights, shape (S, P)."""
        w, x = checked_weights(self, weights), checked_records(self, records)
        y = checked_labels(self, labels, len(x))
        validate.memory("per_example_gradients", 8 * len(x) * self.n_parameters, "Take fewer records at a time.")
        return np.asarray(_layered_model.per_example_gradients(self.widths, self._number, w, x, y))

    def descent(
        self, weights: FloatArray, records: FloatArray, labels: IntArray, *, clip: float, size: float, steps: int,
        rate: float,
    ) -> FloatArray:
        """Sum of the gradients of some steps of gradient descent on one batch, shape (P,).

        The gradient of a step is the sum of the records' gradients, each scaled down to length ``clip``, divided by
        ``size``. Arguments are those of ``Training``, and not checked again.
        """
        shifted = weights.copy()
        return np.asarray(
            _layered_model.descent(self.widths, self._number, shifted, records, labels, clip, size, steps, rate)
        )

    def matching(
        self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike, target: ArrayLike
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Squared distance of the mean gradient of records from a target, and its derivatives.

        Parameters
        ----------
        weights : array_like, shape (P,)
            Weights at which the gradient is taken.
        records : array_like, shape (S, D)
            Records that are tried.
        labels : array_like
            Classes of the records, whole numbers of shape (S,), or logits of shape (S, C), whose softmax takes the
            place of the labels.
        target : array_like, shape (P,)
            The gradient that was shared.

        Returns
        -------
        value : float
            The squared distance.
        by_records : ndarray, shape (S, D)
            Its derivative by the records.
        by_logits : ndarray of shape (S, C), or None
            Its derivative by the label logits; None where labels are classes.
        """
        w, x = checked_weights(self, weights), checked_records(self, records)
        t = checked_weights(self, target, "target")
        if np.ndim(labels) != 2:
            y = checked_labels(self, labels, len(x))
            return _layered_model.matching(self.widths, self._number, w, x, y, None, t)  # type: ignore[no-any-return]
        u = checked_label_logits(self, labels, len(x))
        return _layered_model.matching(self.widths, self._number, w, x, None, u, t)  # type: ignore[no-any-return]

    def matrices(self, weights: FloatArray) -> list[FloatArray]:
        """The matrices of the layers, shape (out, inputs + 1), as views of the weights; the intercept is last."""
        result, start = [], 0
        for inner, out in pairwise(self.widths):
            result.append(weights[start : start + out * (inner + 1)].reshape(out, inner + 1))
            start += out * (inner + 1)
        return result

    @property
    def _number(self) -> int:
        return ACTIVATIONS.index(self.activation)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arrays()))})"


class SoftmaxRegression(LayeredModel):
    """Multinomial logistic regression with an intercept.

    Parameters
    ----------
    n_features : int
        Features of a record, D.
    n_classes : int
        Classes, C, at least 2.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    Weights are the C x (D + 1) matrix, row by row, with the intercept last in each row: the ``weights`` of
    ``BatchGradient.softmax_regression``, flattened. Starting weights are those of ``MultilayerPerceptron``.

    **Accuracy** gradients and derivatives of gradient matching against high-precision arithmetic;
    ``tests/leakage/test_layered_models.py``. Source: as the head of ``fastpriv/studies/leakage/layered_models.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import SoftmaxRegression
    >>> model = SoftmaxRegression(n_features=2, n_classes=2)
    >>> weights, records, labels = np.zeros(model.n_parameters), [[1.0, 2.0], [3.0, 4.0]], [0, 1]
    >>> model.gradient(weights, records, labels).reshape(2, 3)
    array([[ 0.5,  0.5,  0. ],
           [-0.5, -0.5,  0. ]])
    >>> model.losses(weights, records, labels).round(4)
    array([0.6931, 0.6931])
    """

    __slots__ = ("n_parameters", "widths")
    _fields = ("n_features", "n_classes")
    activation = ACTIVATIONS[0]  # there is no hidden layer

    def __init__(self, n_features: int, n_classes: int) -> None:
        self._set_layers(n_features, (), n_classes)


class MultilayerPerceptron(LayeredModel):
    """A network of fully connected layers with one activation, and softmax at its end.

    Parameters
    ----------
    n_features : int
        Features of a record, D.
    hidden : sequence of int
        Widths of the hidden layers, at least one.
    n_classes : int
        Classes, C, at least 2.
    activation : {"sigmoid", "tanh", "softplus", "relu"}
        Of the hidden layers. The derivative of relu at 0 is taken as 0.

    Raises
    ------
    DomainError
        For numbers out of range, or another activation.

    Notes
    -----
    Weights are the matrices of the layers, from the first on, each row by row with the intercept last.

    **Accuracy** gradients and derivatives of gradient matching against high-precision arithmetic;
    ``tests/leakage/test_layered_models.py``. Source: as the head of ``fastpriv/studies/leakage/layered_models.py``.

    Examples
    --------
    >>> from fastpriv.leakage import MultilayerPerceptron
    >>> model = MultilayerPerceptron(64, (32,), 10, activation="tanh")
    >>> weights = model.initial(rng=1)
    >>> model.n_parameters, model.gradient(weights, [[0.5] * 64], [3]).shape
    (2410, (2410,))
    """

    __slots__ = ("activation", "n_parameters", "widths")
    _fields = ("n_features", "hidden", "n_classes", "activation")

    def __init__(self, n_features: int, hidden: Any, n_classes: int, activation: str = "sigmoid") -> None:
        layers = tuple(
            validate.count("hidden", width, 1, _LARGEST_WIDTH)
            for width in validate.sequence("hidden", hidden, "widths of layers")
        )
        if not 0 < len(layers) < _layered_model.MOST_LAYERS:
            raise ShapeError(
                f"hidden must be the widths of 1 to {_layered_model.MOST_LAYERS - 1} layers; got {len(layers)}. Take "
                "SoftmaxRegression for none."
            )
        self._set_layers(n_features, layers, n_classes)
        self._set(activation=validate.choice("activation", activation, ACTIVATIONS))

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return self.widths[1:-1]
