"""The trade-off curve of many subsampled Gaussian releases at 10,000 levels; riskcal beside, on a grid.

Run: pytest benches/bench_trade_off_compositions.py. The first call of a composition makes its tables, others use them.
"""

import numpy as np
import pytest

from fastpriv import GaussianMechanism, GaussianMixture, compose
from fastpriv.composition import gaussian_dp_fit, trade_off_curve, true_positive_rate

SIGMA, RATE, COUNT = 2.0, 0.01, 1000
ALPHA = np.concatenate([np.geomspace(1e-10, 0.5, 5000), 1 - np.geomspace(1e-10, 0.5, 5000)])
GROUP = "trade-off curve of 1000 subsampled releases, 10,000 levels"


def subsampled():
    noise = GaussianMixture.single(0.0, SIGMA)
    return compose((GaussianMixture([1 - RATE, RATE], [0.0, 1.0], SIGMA), noise), COUNT)


@pytest.mark.benchmark(group=GROUP)
def test_trade_off(benchmark):
    found = benchmark(lambda: trade_off_curve(subsampled(), None, ALPHA).beta)
    assert found.width.max() < 1e-11


@pytest.mark.benchmark(group=GROUP)
def test_riskcal(benchmark):
    """Its curve is that of a discretised loss, without bounds: 1e-4 from the certified one here."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    analysis = pytest.importorskip("riskcal.analysis")
    one = pld.from_gaussian_mechanism(SIGMA, sampling_prob=RATE, value_discretization_interval=1e-4,
                                      use_connect_dots=True)
    many = one.self_compose(COUNT)
    theirs = benchmark(lambda: analysis.get_beta_from_pld(many, ALPHA))
    assert np.allclose(theirs, trade_off_curve(subsampled().reversed, None, ALPHA).beta.value, atol=0.02)


@pytest.mark.benchmark(group="powers of 100 Gaussian releases, 10,000 levels")
@pytest.mark.parametrize("way", ["tail probabilities", "closed curve"])
def test_gaussian(benchmark, way):
    many, one = compose(GaussianMechanism(10.0, 1.0), 100), GaussianMechanism(1.0, 1.0)
    pair = one if way == "closed curve" else many
    found = benchmark(lambda: true_positive_rate(pair, None, ALPHA))
    assert np.allclose(found.value, true_positive_rate(one, None, ALPHA).value, rtol=1e-12)


@pytest.mark.benchmark(group="least mu of Gaussian privacy of 1000 subsampled releases, delta at least 1e-8")
def test_gaussian_fit(benchmark):
    found = benchmark(lambda: gaussian_dp_fit(subsampled(), least_delta=1e-8))
    assert found.upper - found.lower < 1e-8
