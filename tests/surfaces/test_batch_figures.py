"""Panels of posteriors over batches."""

import numpy as np
import pytest

import fastpriv
from fastpriv import BatchGradient, ShapeError, figures, posterior

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def seen():
    steps = [BatchGradient.from_gradients(np.eye(9), 2, sigma) for sigma in (1.0, 0.1)]
    return [posterior(step.column(step.sample([3, 7], rng=1))) for step in steps]


def test_panels_take_and_return_an_ax(seen):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert figures.membership([1.0, 0.1], seen, [3, 7], ax) is ax
    assert figures.batch_entropy([1.0, 0.1], seen) is not ax
    assert [line.get_label() for line in ax.lines][:3] == ["record 3", "record 7", "likeliest other record"]
    assert ax.lines[0].get_xdata().tolist() == [0.1, 1.0]


def test_levels_and_posteriors_belong_together(seen):
    with pytest.raises(ShapeError, match="posteriors must be one posterior over subsets for each of 1 levels of noise"):
        figures.membership([1.0], seen, [3, 7])
    with pytest.raises(ShapeError, match="posteriors must be one posterior over subsets"):
        figures.batch_entropy([1.0], [fastpriv.Estimate(1, 1, 1, kind="exact", unit="1", method="none")])
