"""``figures.profile``: curves of one's own with their bounds, in any form that they may come in."""

import logging
import warnings

import numpy as np
import pytest

from fastpriv import DomainError, Estimate, GaussianMechanism, figures
from fastpriv.errors import ShapeError

pytest.importorskip("matplotlib")

EPSILON = np.linspace(0.0, 4.0, 21)


def curve(sigma=1.0, epsilon=EPSILON):
    return GaussianMechanism(sigma, 1.0).delta(epsilon)


def wide(epsilon=EPSILON):
    value = np.exp(-epsilon)
    upper = np.minimum(2.0 * value, 1.0)
    return Estimate(value, 0.0 * value, upper, kind="certified", unit="probability", method="test")


def lines(ax):
    return [line for line in ax.lines if len(line.get_xdata())]


@pytest.fixture
def silent(caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        yield
    assert not caplog.records


def drawn(ax):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(ax.get_figure()).draw()
    return ax


@pytest.mark.usefixtures("silent")
class TestForms:
    @pytest.mark.slow
    def test_one_estimate(self):
        ax = drawn(figures.profile(curve(), EPSILON))
        (line,) = lines(ax)
        np.testing.assert_array_equal(line.get_ydata(), curve().value)
        assert ax.get_legend() is None
        assert (ax.get_xscale(), ax.get_yscale(), ax.get_title(loc="left")) == ("linear", "log", "Privacy profile")

    @pytest.mark.slow
    def test_several_estimates_with_labels_on_axes_of_ones_own(self):
        from matplotlib.figure import Figure

        ax = Figure().add_subplot()
        same = figures.profile([curve(), curve(2.0)], EPSILON, labels=["σ = 1", "σ = 2"], title="$5 δ", ax=ax)
        assert same is ax
        assert [text.get_text() for text in drawn(ax).get_legend().get_texts()] == ["σ = 1", "σ = 2"]
        assert ax.get_title(loc="left") == "$5 δ"

    @pytest.mark.parametrize("form", [lambda pair: pair, lambda pair: [pair], lambda pair: [pair, curve()]])
    @pytest.mark.slow
    def test_pairs(self, form):
        epsilon = np.array([0.1, 1.0, 10.0])
        ax = drawn(figures.profile(form((epsilon, curve(1.0, epsilon))), EPSILON))
        np.testing.assert_array_equal(lines(ax)[0].get_xdata(), epsilon)

    @pytest.mark.slow
    def test_any_order_of_epsilon_and_a_logarithmic_axis(self):
        epsilon = np.array([10.0, 0.1, 1.0])
        ax = drawn(figures.profile(curve(1.0, epsilon), epsilon))
        assert lines(ax)[0].get_xdata().tolist() == [0.1, 1.0, 10.0]
        assert ax.get_xscale() == "log"

    @pytest.mark.slow
    def test_logarithms(self):
        log_delta = GaussianMechanism(1.0, 1.0).log_delta(EPSILON)
        (line,) = lines(drawn(figures.profile(log_delta, EPSILON)))
        np.testing.assert_allclose(line.get_ydata(), curve().value, rtol=1e-12)

    @pytest.mark.slow
    def test_one_point_with_its_bounds(self):
        point = Estimate(0.25, 0.125, 0.5, kind="certified", unit="probability", method="test")
        ax = drawn(figures.profile(point, 1.0, labels="one"))
        (bars,) = ax.collections
        (segment,) = bars.get_segments()
        np.testing.assert_allclose(segment[:, 1], [0.125, 0.5])

    @pytest.mark.slow
    def test_bounds_that_reach_zero_are_filled(self):
        ax = drawn(figures.profile(wide(), EPSILON))
        (band,) = ax.collections
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() < 1e-300
        assert heights.max() == 1.0

    @pytest.mark.slow
    def test_a_delta_of_zero_is_no_point(self):
        zero = Estimate(np.zeros(3), np.zeros(3), np.zeros(3), kind="exact", unit="probability", method="test")
        (line,) = lines(drawn(figures.profile(zero, [0.0, 1.0, 2.0])))
        assert np.isnan(line.get_ydata()).all()

    @pytest.mark.slow
    def test_labels_in_any_script(self):
        labels = ["北京市", "_under", "$x$ \x07"]
        ax = drawn(figures.profile([curve(), curve(2.0), curve(3.0)], EPSILON, labels=labels, title="नमस्ते"))
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(texts) == 3
        assert texts[2] == r"$x$ \x07"


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        (([],), DomainError, "curves must have at least one Estimate; got none"),
        (([0.5],), DomainError, "curves must be Estimates of deltas, probabilities or their logarithms; got 0.5"),
        ((3,), DomainError, "curves must be a sequence of Estimates; got 3"),
        ((GaussianMechanism(1.0, 1.0).epsilon(1e-5), 1.0), DomainError, "curves must be Estimates.*got unit 'nats'"),
        ((curve(),), DomainError, "epsilon must be given for a curve without its own"),
        ((curve(), [1.0]), ShapeError, r"epsilon must be of the shape of its curve.*got \(1,\) and \(21,\)"),
        ((curve(), -EPSILON), DomainError, "epsilon must be at least 0 and finite; got -0.2"),
    ],
)
def test_wrong_curves_are_named(words, error, match):
    with pytest.raises(error, match=match):
        figures.profile(*words)


def test_wrong_labels_and_axes_are_named():
    with pytest.raises(ShapeError, match="labels must be one text for each of the 1 curves; got 2"):
        figures.profile(curve(), EPSILON, labels=["a", "b"])
    with pytest.raises(DomainError, match="ax must be axes of matplotlib; got 3"):
        figures.profile(curve(), EPSILON, ax=3)
    with pytest.raises(DomainError, match="title must be "):
        figures.profile(curve(), EPSILON, title=3)
