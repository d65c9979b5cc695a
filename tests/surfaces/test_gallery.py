"""Every picture of the gallery is drawn, without a warning."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

PICTURES = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_picture(path, monkeypatch):
    mpl.use("agg")
    import matplotlib.pyplot as plt

    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.append(plt.gcf()))
    with mpl.rc_context():
        runpy.run_path(str(path))
    (figure,) = drawn
    figure.canvas.draw()
    assert all(ax.has_data() for ax in figure.axes)
    plt.close("all")
