"""Attacks by scikit-learn: one classifier for each person, trained on simulated releases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel, random_streams, validate
from ...base.errors import BackendMissingError, DomainError
from ...base.numerics import BoolArray, FloatArray
from ...base.random_streams import RNGLike
from .attackers import TrainedAttack, training_releases, unfitted

__all__ = ["ClassifierAttacker"]

# Kind: module and class of scikit-learn, and options that differ from its own.
_KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tree": ("sklearn.tree", "DecisionTreeClassifier", {}),
    "svm": ("sklearn.svm", "SVC", {}),
    "logistic": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}),  # 100 often end with a warning
}


class ClassifierAttacker(TrainedAttack):
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
        names = {"tree": "decision trees", "svm": "support vector machines", "logistic": "logistic regressions"}
        return names[self.kind]

    def _classifier(self, seed: dict[str, int]) -> Any:
        """A new classifier of scikit-learn."""
        from importlib import import_module

        module, name, defaults = _KINDS[self.kind]
        try:
            made = getattr(import_module(module), name)
        except ImportError:
            raise BackendMissingError(
                "ClassifierAttacker needs scikit-learn. Install it with: pip install 'fastpriv[attacks]'"
            ) from None
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
        self._set_scale(r)
        inputs, _ = self._scaled(r)

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
        return self._answers(released, lambda model, x: (
            model.predict_proba(x)[:, 1] if self.kind == "tree" else model.decision_function(x)
        ))  # fmt: skip

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
