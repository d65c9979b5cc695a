"""An attack by a neural network, trained on simulated releases with scikit-learn.

Notation: m attributes of a release, K people. The network maps a release to K logits; its loss is the mean binary
cross-entropy over people and releases, in nats.

Source: Pedregosa et al. 2011 (scikit-learn); Kingma and Ba 2015 (Adam).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel, random_streams, validate
from ...base.errors import BackendMissingError, DomainError
from ...base.numerics import BoolArray, FloatArray
from ...base.random_streams import RNGLike
from .attackers import TrainedAttack, training_releases, unfitted

__all__ = ["NetworkAttacker"]

_HIDDEN_SHARES = (0.68, 0.4)  # of m, in hidden layers: 3400 and 2000 of 5000, as in the comparison that is the model
_ROWS = 1024  # releases that are scored at a time
_SMALLEST_BATCH = 2  # releases of a batch


class NetworkAttacker(TrainedAttack):
    """A neural network that maps a release to the membership probabilities of all people.

    Parameters
    ----------
    hidden : sequence of int, optional
        Widths of the hidden layers, each linear and rectified; by default 0.68 m and 0.4 m, at least
        K: for 5,000 attributes and 800 people 3,400 and 2,000.
    epochs : int
        Passes over the training releases.
    batch_size : int
        Releases a step of Adam, at least 2.
    learning_rate : float
        Of the first epoch; positive.
    decay : float
        Factor of the learning rate after each epoch, in (0, 1].
    validation : float
        Fraction of the releases, in [0, 1), that are held out: the weights of the epoch with the least loss there are
        kept. With 0 those of the last epoch are.
    rng : int, Generator or None
        Source of the initial weights, the order of releases and the choice of those held out.

    Attributes
    ----------
    history : list of (float, float)
        Mean cross-entropy of each epoch, of training and of held-out releases (NaN without them).

    Raises
    ------
    DomainError, ShapeError
        For parameters outside their range, and training data of wrong shapes.
    BackendMissingError
        Without scikit-learn.

    Notes
    -----
    Releases are centred and divided by their standard deviation in the training set. The same seed gives the same
    weights on one machine and version of scikit-learn.

    **Accuracy** ``tests/membership/test_networks.py`` compares with the exact posterior of a small model.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, NetworkAttacker, Panel
    >>> model = FrequencyRelease(Panel([[1, 0, 1], [0, 1, 1], [0, 0, 1]]), FixedSizeMembership(1), GaussianNoise(0.1))
    >>> training = model.simulate(2000, rng=1)
    >>> attack = NetworkAttacker(hidden=[16], epochs=5, rng=1)  # doctest: +SKIP
    >>> attack.fit(training.released, training.membership).claims([1.0, 0.0, 1.0])  # doctest: +SKIP
    array([ True, False, False])
    """

    name = "neural network"

    def __init__(
        self, hidden: Any = None, *, epochs: int = 30, batch_size: int = 128, learning_rate: float = 1e-3,
        decay: float = 0.95, validation: float = 0.1, rng: RNGLike = None,
    ) -> None:  # fmt: skip
        self.hidden = None if hidden is None else tuple(
            validate.count("hidden", width) for width in validate.sequence("hidden", hidden, "widths of layers")
        )
        self.epochs = validate.count("epochs", epochs)
        self.batch_size = validate.count("batch_size", batch_size, _SMALLEST_BATCH)
        self.learning_rate = validate.scalar(
            "learning_rate", learning_rate, "positive and finite", lambda x: (x > 0) & np.isfinite(x)
        )
        self.decay = validate.scalar("decay", decay, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
        self.validation = validate.scalar(
            "validation", validation, "at least 0 and below 1", lambda x: (x >= 0) & (x < 1)
        )
        random_streams.checked(rng)
        self.rng = rng
        self.history: list[tuple[float, float]] = []
        self._layers: Layers | None = None

    def fit(
        self, released: ArrayLike, membership: ArrayLike, *, progress: parallel.Progress = None
    ) -> NetworkAttacker:  # fmt: skip
        """Train the network.

        Parameters
        ----------
        released : array_like, shape (R, m)
            Simulated releases, at least 2 that are not held out.
        membership : array_like of bool, shape (R, K)
            Who is a member of each.
        progress : bool or callable, optional
            Whether a bar counts the epochs, or a function of the number done and the total.
        """
        try:
            from sklearn.neural_network import MLPClassifier
        except ImportError:
            raise BackendMissingError(
                "NetworkAttacker needs scikit-learn. Install it with: pip install 'fastpriv[attacks]'"
            ) from None
        people = np.shape(membership)[-1] if np.ndim(membership) else 0
        r, b = training_releases(released, membership, people)
        root = random_streams.root(self.rng)
        held_out = int(self.validation * len(r))
        rest = len(r) - held_out
        if rest < _SMALLEST_BATCH:
            raise DomainError(
                f"released must have at least {_SMALLEST_BATCH} releases that are not held out; got {len(r)}, of which "
                f"{held_out} are held out. Simulate more."
            )
        self._set_scale(r)
        order = np.random.default_rng(random_streams.stream_words(root, (0,), 4)).permutation(len(r))
        x, y = self._scaled(r)[0][order], b[order]
        labels, classes = (y[:, 0], [False, True]) if people == 1 else (y, np.arange(people))
        network = MLPClassifier(
            self._widths(r.shape[1], people), alpha=0.0, batch_size=min(self.batch_size, rest),
            learning_rate_init=self.learning_rate, shuffle=False,
            random_state=int(random_streams.stream_words(root, (1,), 1)[0] % 2**32),
        )  # fmt: skip
        report, close = parallel.progress_reporter(progress, self.epochs)
        history: list[tuple[float, float]] = []
        best, layers = math.inf, None
        try:
            for epoch in range(self.epochs):
                shuffled = np.random.default_rng(random_streams.stream_words(root, (2, epoch), 4)).permutation(rest)
                network.partial_fit(x[shuffled], labels[shuffled], classes=classes)
                network._optimizer.learning_rate_init *= self.decay  # scikit-learn has no option for Adam's
                pairs = zip(network.coefs_, network.intercepts_, strict=True)
                trained = Layers(tuple((matrix.copy(), shift.copy()) for matrix, shift in pairs))
                tested = _cross_entropy(trained.outputs(x[rest:]), y[rest:]) if held_out else math.nan
                history.append((float(network.loss_) / people, tested))
                if not tested >= best:
                    best, layers = tested, trained
                report(epoch + 1)
        finally:
            close()
        self._layers, self.history = layers, history
        return self

    def scores(self, released: ArrayLike) -> FloatArray:
        """Logits of membership, shape (..., K).

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        if self._layers is None:
            raise unfitted(self)
        rows, shape = self._scaled(released)
        logits = self._layers.outputs(rows)
        return logits.reshape(*shape, logits.shape[1])

    def predict_proba(self, released: ArrayLike) -> FloatArray:
        """Probabilities of membership as the network states them, shape (..., K).

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        from scipy.special import expit

        return np.asarray(expit(self.scores(released)))

    def _widths(self, n_attributes: int, people: int) -> tuple[int, ...]:
        if self.hidden is not None:
            return self.hidden
        return tuple(max(people, round(share * n_attributes)) for share in _HIDDEN_SHARES)

    def __repr__(self) -> str:
        trained = "not trained" if self._layers is None else f"{len(self.history)} epochs"
        return f"<NetworkAttacker, {trained}>"


@dataclass(frozen=True, eq=False)
class Layers:
    """A trained network: linear maps, and rectifiers with a slope below 0 between them."""

    maps: tuple[tuple[FloatArray, FloatArray], ...]  # matrices (inputs, outputs) and shifts
    slope: float = 0.0  # of all rectifiers but the first, whose slope is 0

    def outputs(self, x: FloatArray) -> FloatArray:
        """Outputs (n, outputs) of inputs (n, inputs)."""
        rows = [self._block(x[part]) for part in parallel.blocks(len(x), _ROWS)]
        return np.concatenate([np.zeros((0, len(self.maps[-1][1]))), *rows])

    def _block(self, x: FloatArray) -> FloatArray:
        for i, (matrix, shift) in enumerate(self.maps[:-1]):
            x = x @ matrix + shift
            x = np.where(x > 0.0, x, self.slope * x if i else 0.0 * x)
        matrix, shift = self.maps[-1]
        return np.asarray(x @ matrix + shift)


def _cross_entropy(logits: FloatArray, members: BoolArray) -> float:
    """Mean over people and releases, in nats."""
    return float(np.mean(np.logaddexp(0.0, np.where(members, -logits, logits))))
