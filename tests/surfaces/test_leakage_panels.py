"""Panels of privacy against accuracy."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from fastpriv import figures
from fastpriv.base.errors import DomainError
from fastpriv.studies.leakage import Protection, SoftmaxRegression, accuracy_tradeoff, leakage_study

RNG = np.random.default_rng(1)
RECORDS = RNG.random((30, 4))


class Chance:
    """An attack that names random points."""

    def reconstruct(self, updates, rng):
        return SimpleNamespace(records=rng.random((2, 4)))


def study(**words):
    grid = [Protection(), Protection(noise="gaussian", scale=1.0), Protection(noise="laplace", scale=0.1)]
    return leakage_study(SoftmaxRegression(4, 2), RECORDS, np.arange(30) % 2, grid, attack=Chance(), pool=10, batch=2,
                         n_models=3, n_attacks=2, rng=1, **words)  # fmt: skip


def test_accuracy_against_privacy():
    ax = Figure().add_subplot()
    assert figures.accuracy_against_privacy(study(utility_rounds=3), ax) is ax
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"exact posterior", "attacks", "random attributions"} == set(names)
    exact = next(c for c in ax.containers if c.get_label() == "exact posterior")
    assert len(exact.lines[0].get_xdata()) == 2  # none is known for Laplace noise
    with pytest.raises(DomainError, match="study must have accuracies; got none. Pass utility_rounds to leakage_study"):
        figures.accuracy_against_privacy(study())
    with pytest.raises(DomainError, match="study must be what fastpriv.leakage.leakage_study returned; got 3"):
        figures.accuracy_against_privacy(3)


def test_misses_against_privacy():
    found = accuracy_tradeoff([[0.0], [0.1], [0.3]], [0.05, 0.1, 1.0], alpha=0.5)
    ax = Figure().add_subplot()
    assert figures.misses_against_privacy(found, ax) is ax
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert np.all(lines["worst of its neighbours"] <= lines["bound: corrected theorem"])
    with pytest.raises(DomainError, match="tradeoff must be what fastpriv.leakage.accuracy_tradeoff returned"):
        figures.misses_against_privacy(None)
