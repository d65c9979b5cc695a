"""Figures: files of each kind, axes in and out, no pyplot, harsh reports drawn without a warning."""

import subprocess
import sys
from types import SimpleNamespace

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_text_stays_inside_the_page(report):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = report.plot()
    FigureCanvasAgg(figure).draw()
    page = figure.bbox
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1


@pytest.mark.slow
def test_pyplot_is_not_loaded():
    code = (
        "import sys, fastpriv; fastpriv.assess([1, 2], sigma=1, epsilon=[1, 2]).plot(); "
        "papers = fastpriv.studies.papers; papers.paper_panel(papers.paper(2)['figure2']); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def drawn(ax):
    """Axes whose figure has been drawn, so that layout and ticks are final."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(ax.get_figure()).draw()
    return ax


def tick_texts(axis):
    low, high = sorted(axis.get_view_interval())
    return [text.get_text() for tick, text in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            if low * 0.999 <= tick <= high * 1.001]


def audit(scores):
    result = fastpriv.auditing.audit_scores(scores, np.arange(2000) % 2 == 0, delta=1e-2)
    return figures.audit(result, truth=2.3, claim=9.0)


def scores():
    return np.random.default_rng(1).normal(size=2000) + (np.arange(2000) % 2 == 0)


def profile_of(count):
    epsilon = np.linspace(0.0, 4.0, 9)
    deltas = [fastpriv.GaussianMechanism(sigma, 1.0).delta(epsilon) for sigma in np.linspace(0.3, 4.0, count)]
    return figures.profile(deltas, epsilon, labels=[f"mechanism number {k}" for k in range(count)])


LEGENDS = {
    "column": lambda report: figures.column(report), "curves": lambda report: figures.curves(report),
    "few": lambda report: profile_of(2), "many": lambda report: profile_of(12), "audit": lambda report: audit(scores()),
    "composition": lambda report: figures.composed_profile(
        fastpriv.GaussianMechanism(0.2, 1.0).log_delta([0.0, 1.0]), [0.0, 1.0]),
    "figure of three": lambda report: report.plot().axes[2],
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", LEGENDS)
def test_legends_cover_no_curve_and_stay_on_the_page(report, name):
    ax = drawn(LEGENDS[name](report))
    legend, page = ax.get_legend().get_window_extent(), ax.get_figure().bbox
    assert legend.y1 < ax.xaxis.label.get_window_extent().y0
    assert page.x0 <= legend.x0 < legend.x1 <= page.x1
    assert page.y0 <= legend.y0


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((0.4, 3.0), ["0.5", "1", "2"]), ((0.009, 12.0), ["0.01", "0.1", "1", "10"]), ((1.0, 2.2), ["1", "1.5", "2"]),
        ((1e-8, 1e-2), None), ((1.0, 1.0000001), ["0.5", "1", "2"]), ((8.0, 2100.0), ["10", "100", "1000"]),
    ],
)
def test_numbers_on_logarithmic_axes_are_plain_where_they_are_short(ends, texts):
    @figures.style.panel
    def line(ax=None):
        """Draw a line."""
        ax.set(xscale="log", xlim=ends)
        ax.plot(ends, [1.0, 2.0])
        return "line"

    axis = drawn(line()).xaxis
    shown = tick_texts(axis)
    assert shown == texts if texts else all("10^{" in text for text in shown if text)
    assert not any(text.get_text() for text in axis.get_ticklabels(minor=True))


def test_one_sigma_has_bars():
    ax = figures.information(fastpriv.assess([0.0, 1.0, 3.0], sigma=1.0, epsilon=1.0))
    assert ax.get_xscale() == "linear"
    assert [text.get_text().split(":")[0] for text in ax.texts] == ["all there is", "a release"]
    assert not ax.lines


def test_a_spike_hides_no_other_bar(report):
    spike = np.concatenate([np.zeros(900), np.random.default_rng(1).lognormal(7.0, 2.0, 100)])
    ax = figures.column(fastpriv.assess(spike, sigma=[1e3, 1e4], epsilon=[1.0], bins=64))
    assert ax.get_yscale() == "log"
    assert figures.column(report).get_yscale() == "linear"


def test_outlying_thresholds_leave_room_for_the_others():
    outlying = scores()
    outlying[:3] = 1e6
    assert audit(outlying).get_xscale() == "symlog"
    assert audit(scores()).get_xscale() == "linear"


@pytest.mark.slow
def test_a_panel_is_pyplots_current_one_and_files_leave_none_behind(tmp_path):
    code = (
        "import sys, matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt, fastpriv; "
        "report = fastpriv.assess([1, 2], sigma=[1, 2], epsilon=[1, 2]); ax = fastpriv.figures.curves(report); "
        "assert plt.gca() is ax; plt.title('mine'); assert ax.get_title() == 'mine'; plt.close('all'); "
        "report.to_figure(sys.argv[1]); assert not plt.get_fignums(); "
        "report.plot(); assert plt.get_fignums(); plt.close('all'); "
        "mine = plt.figure(); ax = mine.add_subplot(); fastpriv.figures.curves(report, ax); "
        "assert plt.get_fignums() == [mine.number]"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "a.png")]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("least_rate", "noted"), [(0.04, True), (0.0, False)])
@pytest.mark.slow
def test_a_band_that_jumps_has_a_note(least_rate, noted):
    from fastpriv.studies.membership.attack_panels import roc_axes

    rates = np.array([0.0, 0.5, 1.0])
    fpr = SimpleNamespace(value=rates, lower=rates, upper=np.maximum(rates, least_rate))
    tpr = SimpleNamespace(value=np.array([0.5, 0.7, 1.0]), lower=np.array([0.4, 0.6, 1.0]), upper=np.ones(3))
    title = drawn(roc_axes([("Bayes", SimpleNamespace(fpr=fpr, tpr=tpr))], "none")).get_legend().get_title().get_text()
    assert title.startswith("The band begins at 0 up to FPR 0.03") is noted


def test_four_defences_have_two_rows():
    from fastpriv.studies.membership.attack_panels import attack_figure

    study = SimpleNamespace(defences=lambda: list("abcd"), outcomes=[])
    width, height = attack_figure(study).get_size_inches()
    assert width < 1.2 * height
