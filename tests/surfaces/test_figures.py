"""Figures: files of each kind, axes in and out, no pyplot, harsh reports drawn without a warning."""

import subprocess
import sys

import numpy as np
import pytest

import fastpriv
from fastpriv import figures

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def report():
    return fastpriv.assess([31.0, 40.0, 40.0, 58.0], sigma="3..300:7", epsilon="0.1..10:9", name="age")


@pytest.mark.parametrize("panel", [figures.column, figures.information, figures.curves])
def test_panels_take_and_return_an_ax(report, panel):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert panel(report, ax) is ax
    assert panel(report) is not ax
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_title(loc="left")


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_files_are_written(report, tmp_path, kind, start):
    report.to_figure(tmp_path / f"a.{kind}")
    assert (tmp_path / f"a.{kind}").read_bytes().startswith(start)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([0.0, 1.0], {"sigma": 1, "epsilon": 1}), ([0.0, 1.0], {"sigma": [1, 2], "epsilon": [0, 1]}),
        ([0.0, 1.0], {"sigma": 1e6, "epsilon": [50, 60]}), ([-1e-6, 2e-6, 1e-5], {}), ([1e9, 2e9, 2.5e9], {}),
        (np.linspace(0, 1, 700) ** 2, {"bins": 16, "sigma": "0.1..1:3", "epsilon": [1, 2]}),
    ],
)
def test_harsh_reports_are_drawn(data, words, tmp_path):
    fastpriv.assess(data, **words).to_figure(tmp_path / "a.png", dpi=40)
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_text_stays_inside_the_page(report):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = report.plot()
    FigureCanvasAgg(figure).draw()
    page = figure.bbox
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1


def test_pyplot_is_not_loaded():
    code = (
        "import sys, fastpriv; fastpriv.assess([1, 2], sigma=1, epsilon=[1, 2]).plot(); "
        "papers = fastpriv.studies.papers; papers.paper_panel(papers.paper(2)['figure2']); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
