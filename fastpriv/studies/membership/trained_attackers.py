"""Attacks by scikit-learn, trained on simulated releases: a classifier for each person, or one neural network."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...base import parallel, random_streams, validate
from ...base.errors import DomainError, explain_missing_package
from ...base.numerics import BoolArray, FloatArray
from ...base.random_streams import RNGLike
from .attackers import Attacker, training_releases, unfitted
from .panels import released_array

# Kind: module and class of scikit-learn, options that differ from its own, and what tables and legends call it.
_KINDS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "tree": ("sklearn.tree", "DecisionTreeClassifier", {}, "decision trees"),
    "svm": ("sklearn.svm", "SVC", {}, "support vector machines"),
    # 100 iterations often end with a warning
    "logistic": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}, "logistic regressions"),
    # a few passes with a strong penalty, as more of them learn the training releases by heart
    "network": (
        "sklearn.neural_network", "MLPClassifier", {"max_iter": 30, "learning_rate_init": 2e-3, "alpha": 1.0},
        "neural network",
    ),
}
_HIDDEN_SHARES = (0.68, 0.4)  # of m, in hidden layers: 3400 and 2000 of 5000, as in the comparison that is the model
_LEAST_HIDDEN = 16  # units of a hidden layer: a few rectified ones may all fall silent


class ClassifierAttacker(Attacker):
    """A tree, support vector machine or logistic regression for each person, or one neural network for all people.

    Parameters
    ----------
    kind : {"tree", "svm", "logistic", "network"}
        ``DecisionTreeClassifier``, ``SVC``, ``LogisticRegression`` or ``MLPClassifier`` of scikit-learn, which has to
        be installed. The network maps a release to the membership probabilities of all people; its hidden layers have
        0.68 m and 0.4 m units, at least K and 16, unless ``hidden_layer_sizes`` says otherwise.
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
    smaller than frequencies. A person who is always, or never, a member in the training releases gets the score 0 from
    a classifier.

    **Accuracy** ``tests/membership/test_classifiers.py`` compares with scikit-learn itself, and the network with the
    exact posterior of a small model. Scores depend on the seed and on the version of scikit-learn, not on ``n_jobs``.

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

    _mean: FloatArray
    _spread: FloatArray

    def __init__(self, kind: str, *, rng: RNGLike = None, **options: Any) -> None:
        self.kind = validate.choice("kind", kind, tuple(_KINDS))
        random_streams.checked(rng)
        self.rng, self.options = rng, options
        self._models: list[Any] | None = None
        self._people = 0
        self._classifier({})

    @property
    def name(self) -> str:
        """What tables and legends call it."""
        return _KINDS[self.kind][3]

    def _classifier(self, further: dict[str, Any]) -> Any:
        """A new classifier of scikit-learn."""
        module, name, defaults, _ = _KINDS[self.kind]
        with explain_missing_package("ClassifierAttacker", "scikit-learn", "'fastpriv[attacks]'"):
            made = getattr(import_module(module), name)
        try:
            return made(**defaults | further | self.options)
        except TypeError as error:
            raise DomainError(
                f"options must be arguments of {module}.{name}; got {', '.join(self.options)}: {error}. See its "
                "documentation."
            ) from None

    def fit(
        self, released: ArrayLike, membership: ArrayLike, *, n_jobs: int | None = None,
        progress: parallel.Progress = None,
    ) -> ClassifierAttacker:
        """Train one classifier for each person, or the network.

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
        spread = r.std(axis=0)
        self._mean, self._spread, self._people = r.mean(axis=0), np.where(spread > 0.0, spread, 1.0), people
        inputs = self._scaled(r)[0]

        def trained(person: int) -> Any:
            labels, seed = b[:, person], int(random_streams.stream_words(root, (person,), 1)[0] % 2**32)
            further: dict[str, Any] = {"random_state": seed}
            if self.kind == "network":
                # scikit-learn knows what two labels are; of a single person it would take them for two classes
                labels = b if people > 1 else np.repeat(b, 2, axis=1)
                further["hidden_layer_sizes"] = tuple(
                    max(people, round(share * r.shape[1]), _LEAST_HIDDEN) for share in _HIDDEN_SHARES
                )
            elif labels.all() or not labels.any():
                return None
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Stochastic Optimizer: Maximum iterations")  # as few as were meant
                return self._classifier(further).fit(inputs, labels)

        tasks = range(1 if self.kind == "network" else people)
        self._models = list(parallel.ordered_map(trained, tasks, n_jobs=n_jobs, progress=progress, shared=True))
        return self

    def scores(self, released: ArrayLike) -> FloatArray:
        """Scores of the people, shape (..., K): probabilities of trees, log odds of the network, decision functions.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        if self.kind == "network":
            return np.asarray(special.logit(self.predict_proba(released)))
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
                "kind must be tree, logistic or network for probabilities; got 'svm'. Use scores, which order people "
                "too."
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
        level = validate.scalar("gamma", gamma, "between 0 and 1", lambda g: (g >= 0) & (g <= 1))
        return np.asarray(self.predict_proba(released) > level)

    def _scaled(self, released: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        """Releases as rows in the scale of the training, and the shape of their axes before the last."""
        r = released_array(released, len(self._mean))
        return (r.reshape(-1, r.shape[-1]) - self._mean) / self._spread, r.shape[:-1]

    def _answers(self, released: ArrayLike, answer: Any) -> FloatArray:
        if self._models is None:
            raise unfitted(self)
        rows, shape = self._scaled(released)
        if self.kind == "network":
            (network,) = self._models
            columns = network.predict_proba(rows)[:, : self._people] if len(rows) else np.zeros((0, self._people))
        else:
            columns = np.stack(
                [np.zeros(len(rows)) if model is None else answer(model, rows) for model in self._models], axis=-1
            )
        return np.asarray(columns, dtype=np.float64).reshape(*shape, self._people)

    def __repr__(self) -> str:
        trained = "not trained" if self._models is None else f"{self._people} people"
        return f"<ClassifierAttacker of {self.name}, {trained}>"
