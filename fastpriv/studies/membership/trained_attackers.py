"""Attacks by scikit-learn, trained on simulated releases: a classifier for each person, or one neural network.

Notation: m attributes of a release, K people. The network maps a release to K logits; its loss is the mean binary
cross-entropy over people and releases, in nats.

Source: Pedregosa et al. 2011 (scikit-learn); Kingma and Ba 2015 (Adam).
"""

from __future__ import annotations

import math
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...base import parallel, random_streams, validate
from ...base.errors import BackendMissingError, DomainError
from ...base.numerics import BoolArray, FloatArray
from ...base.random_streams import RNGLike
from .attackers import Attacker, released_array, training_releases, unfitted

__all__ = ["ClassifierAttacker", "NetworkAttacker"]

# Kind: module and class of scikit-learn, options that differ from its own, and what tables and legends call it.
_KINDS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "tree": ("sklearn.tree", "DecisionTreeClassifier", {}, "decision trees"),
    "svm": ("sklearn.svm", "SVC", {}, "support vector machines"),
    # 100 iterations often end with a warning
    "logistic": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}, "logistic regressions"),
}
_HIDDEN_SHARES = (0.68, 0.4)  # of m, in hidden layers: 3400 and 2000 of 5000, as in the comparison that is the model
_ROWS = 1024  # releases that are scored at a time
_SMALLEST_BATCH = 2  # releases of a batch


class _TrainedAttack(Attacker):
    """Base of the attacks that are trained on simulated releases, which are centred and divided by their deviation."""

    _mean: FloatArray
    _spread: FloatArray

    def _standardised(self, released: FloatArray) -> FloatArray:
        """The training releases in the scale of the attack, which they set."""
        spread = released.std(axis=0)
        self._mean, self._spread = released.mean(axis=0), np.where(spread > 0.0, spread, 1.0)
        return self._scaled(released)[0]

    def _scaled(self, released: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        """Releases as rows in the scale of the training, and the shape of their axes before the last."""
        r = released_array(released, len(self._mean))
        return (r.reshape(-1, r.shape[-1]) - self._mean) / self._spread, r.shape[:-1]

    def predict_proba(self, released: ArrayLike) -> FloatArray:
        """Probabilities of membership, shape (..., K)."""
        raise NotImplementedError

    def claims(self, released: ArrayLike, gamma: float = 0.5) -> BoolArray:
        """Who is claimed to be a member: probabilities above gamma.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        gamma : float
            Between 0 and 1.
        """
        level = validate.scalar("gamma", gamma, "between 0 and 1", lambda g: (g >= 0) & (g <= 1))
        return np.asarray(self.predict_proba(released) > level)


class ClassifierAttacker(_TrainedAttack):
    """One decision tree, support vector machine or logistic regression a person, which sees the whole release.

    Parameters
    ----------
    kind : {"tree", "svm", "logistic"}
        ``DecisionTreeClassifier``, ``SVC`` or ``LogisticRegression`` of scikit-learn, which has to be installed.
    rng : int, Generator or None
        Source of the seeds of the classifiers.
    options
        Further arguments of the class of scikit-learn, such as ``max_depth=4`` or ``kernel="linear"``.

    Raises
    ------
    DomainError, ShapeError
        For an unknown kind or option, and training data of wrong shapes.
    BackendMissingError
        Without scikit-learn.

    Notes
    -----
    Attributes are centred and divided by their standard deviation in the training releases, since noise is often much
    smaller than frequencies. A person who is always, or never, a member in the training releases gets the score 0.

    **Accuracy** ``tests/membership/test_classifiers.py`` compares with scikit-learn itself. Scores depend on the seed
    and on the version of scikit-learn, not on ``n_jobs``.

    Source: Pedregosa et al. 2011 (scikit-learn).

    Examples
    --------
    >>> from fastpriv.membership import ClassifierAttacker, FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel
    >>> model = FrequencyRelease(Panel([[1, 0, 1], [0, 1, 1], [0, 0, 1]]), FixedSizeMembership(1), GaussianNoise(0.1))
    >>> training = model.simulate(200, rng=1)
    >>> attack = ClassifierAttacker("logistic", rng=1)  # doctest: +SKIP
    >>> attack.fit(training.released, training.membership).claims([1.0, 0.0, 1.0])  # doctest: +SKIP
    array([ True, False, False])
    """

    def __init__(self, kind: str, *, rng: RNGLike = None, **options: Any) -> None:
        self.kind = validate.choice("kind", kind, tuple(_KINDS))
        random_streams.checked(rng)
        self.rng, self.options = rng, options
        self._models: list[Any] | None = None
        self._classifier({})

    @property
    def name(self) -> str:
        """What tables and legends call it."""
        return _KINDS[self.kind][3]

    def _classifier(self, seed: dict[str, int]) -> Any:
        """A new classifier of scikit-learn."""
        module, name, defaults, _ = _KINDS[self.kind]
        made = _of_scikit_learn(module, name, self)
        try:
            return made(**defaults | seed | self.options)
        except TypeError as error:
            raise DomainError(
                f"options must be arguments of {module}.{name}; got {', '.join(self.options)}: {error}. See its "
                "documentation."
            ) from None

    def fit(
        self, released: ArrayLike, membership: ArrayLike, *, n_jobs: int | None = None,
        progress: parallel.Progress = None,
    ) -> ClassifierAttacker:  # fmt: skip
        """Train one classifier for each person.

        Parameters
        ----------
        released : array_like, shape (R, m)
            Simulated releases.
        membership : array_like of bool, shape (R, K)
            Who is a member of each.
        n_jobs : int, optional
            Number of workers; the result does not depend on it.
        progress : bool or callable, optional
            Whether a bar counts the people, or a function of the number done and the total.
        """
        people = np.shape(membership)[-1] if np.ndim(membership) else 0
        r, b = training_releases(released, membership, people)
        root = random_streams.root(self.rng)
        inputs = self._standardised(r)

        def trained(person: int) -> Any:
            member = b[:, person]
            if member.all() or not member.any():
                return None
            seed = int(random_streams.stream_words(root, (person,), 1)[0] % 2**32)
            return self._classifier({"random_state": seed}).fit(inputs, member)

        tasks = range(people)
        self._models = list(parallel.ordered_map(trained, tasks, n_jobs=n_jobs, progress=progress, shared=True))
        return self

    def scores(self, released: ArrayLike) -> FloatArray:
        """Scores of the people, shape (..., K): probabilities of trees, decision functions of the others.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        return self._answers(
            released,
            lambda model, x: model.predict_proba(x)[:, 1] if self.kind == "tree" else model.decision_function(x),
        )

    def predict_proba(self, released: ArrayLike) -> FloatArray:
        """Probabilities of membership as the classifiers state them, shape (..., K); not of support vector machines.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        if self.kind == "svm":
            raise DomainError(
                "kind must be tree or logistic for probabilities; got 'svm'. Use scores, which order people too."
            )
        return self._answers(released, lambda model, x: model.predict_proba(x)[:, 1])

    def claims(self, released: ArrayLike, gamma: float = 0.5) -> BoolArray:
        """Who is claimed to be a member: probabilities above gamma, or positive scores of support vector machines.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        gamma : float
            Between 0 and 1; not used by support vector machines.
        """
        if self.kind == "svm":
            return np.asarray(self.scores(released) > 0.0)
        return super().claims(released, gamma)

    def _answers(self, released: ArrayLike, answer: Any) -> FloatArray:
        if self._models is None:
            raise unfitted(self)
        rows, shape = self._scaled(released)
        columns = [np.zeros(len(rows)) if model is None else answer(model, rows) for model in self._models]
        return np.stack(columns, axis=-1).reshape(*shape, -1)

    def __repr__(self) -> str:
        trained = "not trained" if self._models is None else f"{len(self._models)} people"
        return f"<ClassifierAttacker of {self.name}, {trained}>"


class NetworkAttacker(_TrainedAttack):
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
        self, hidden: Any = None, *, epochs: int = 30, batch_size: int = 128, learning_rate: float = 2e-3,
        decay: float = 0.95, validation: float = 0.1, rng: RNGLike = None,
    ) -> None:  # fmt: skip
        self.hidden = (
            None
            if hidden is None
            else tuple(
                validate.count("hidden", width) for width in validate.sequence("hidden", hidden, "widths of layers")
            )
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
        self._layers: _Layers | None = None

    def fit(self, released: ArrayLike, membership: ArrayLike, *, progress: parallel.Progress = None) -> NetworkAttacker:
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
        classifier = _of_scikit_learn("sklearn.neural_network", "MLPClassifier", self)
        people = np.shape(membership)[-1] if np.ndim(membership) else 0
        r, b = training_releases(released, membership, people)
        root = random_streams.root(self.rng)
        held_out = int(self.validation * len(r))
        remainder = len(r) - held_out
        if remainder < _SMALLEST_BATCH:
            raise DomainError(
                f"released must have at least {_SMALLEST_BATCH} releases that are not held out; got {len(r)}, of which "
                f"{held_out} are held out. Simulate more."
            )
        order = np.random.default_rng(random_streams.stream_words(root, (0,), 4)).permutation(len(r))
        x, y = self._standardised(r)[order], b[order]
        # scikit-learn knows what two labels are; of a single person it would take them for two classes
        labels = y if people > 1 else np.repeat(y, 2, axis=1)
        network = classifier(
            self._widths(r.shape[1], people), alpha=0.0, batch_size=min(self.batch_size, remainder), shuffle=False,
            max_iter=1, warm_start=True, random_state=int(random_streams.stream_words(root, (1,), 1)[0] % 2**32),
        )  # fmt: skip
        report, close = parallel.progress_reporter(progress, self.epochs)
        history: list[tuple[float, float]] = []
        best, layers = math.inf, None
        try:
            for epoch in range(self.epochs):
                shuffled = np.random.default_rng(random_streams.stream_words(root, (2, epoch), 4)).permutation(
                    remainder
                )
                network.set_params(learning_rate_init=self.learning_rate * self.decay**epoch)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that one epoch does not converge
                    network.fit(x[shuffled], labels[shuffled])
                trained = _layers_of(network, people)
                tested = _cross_entropy(_logits(trained, x[remainder:]), y[remainder:]) if held_out else math.nan
                history.append((float(network.loss_) / labels.shape[1], tested))
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
        logits = _logits(self._layers, rows)
        return logits.reshape(*shape, logits.shape[1])

    def predict_proba(self, released: ArrayLike) -> FloatArray:
        """Probabilities of membership as the network states them, shape (..., K).

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        return np.asarray(special.expit(self.scores(released)))

    def _widths(self, n_attributes: int, people: int) -> tuple[int, ...]:
        if self.hidden is not None:
            return self.hidden
        return tuple(max(people, round(share * n_attributes)) for share in _HIDDEN_SHARES)

    def __repr__(self) -> str:
        trained = "not trained" if self._layers is None else f"{len(self.history)} epochs"
        return f"<NetworkAttacker, {trained}>"


_Layers = list[tuple[FloatArray, FloatArray]]  # matrices (inputs, outputs) and shifts, with rectifiers between them


def _of_scikit_learn(module: str, name: str, user: Attacker) -> Any:
    """A class of scikit-learn, which may not be installed."""
    try:
        return getattr(import_module(module), name)
    except ImportError:
        raise BackendMissingError(
            f"{type(user).__name__} needs scikit-learn. Install it with: pip install 'fastpriv[attacks]'"
        ) from None


def _layers_of(network: Any, people: int) -> _Layers:
    """A copy of the weights of a network of scikit-learn, with one output a person."""
    layers = [(matrix.copy(), shift.copy()) for matrix, shift in zip(network.coefs_, network.intercepts_, strict=True)]
    matrix, shift = layers.pop()
    return [*layers, (matrix[:, :people], shift[:people])]


def _logits(layers: _Layers, x: FloatArray) -> FloatArray:
    """Outputs (n, outputs) of inputs (n, inputs)."""
    *hidden, (last, last_shift) = layers
    result = np.zeros((len(x), last.shape[1]))
    for part in parallel.blocks(len(x), _ROWS):
        rows = x[part]
        for matrix, shift in hidden:
            rows = np.maximum(rows @ matrix + shift, 0.0)
        result[part] = rows @ last + last_shift
    return result


def _cross_entropy(logits: FloatArray, members: BoolArray) -> float:
    """Mean over people and releases, in nats."""
    return float(np.mean(np.logaddexp(0.0, np.where(members, -logits, logits))))
