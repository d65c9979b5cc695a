"""Privacy curves of many settings at once: their bounds hold the truth, near every limit of the quick way."""

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

from fastpriv import DomainError, GaussianMechanism
from fastpriv.errors import ShapeError
from oracles import gaussian_mechanism as oracle

COUNT = 2**13 + 77


def log_curve(sigma, span, epsilon):
    r = mpf(float(span)) / (2 * mpf(float(sigma)))
    e = mpf(float(epsilon))
    c = e / (2 * r)

    def tail(x):
        return mp.erfc(x / mp.sqrt(2)) / 2

    return mp.log(tail(c - r) - mp.exp(e) * tail(c + r))


@pytest.fixture(scope="module")
def settings():
    rng = np.random.default_rng(3)
    sigma, epsilon = 10.0 ** rng.uniform(-4, 4, COUNT), 10.0 ** rng.uniform(-6, 3, COUNT)
    sigma[:6], epsilon[:6] = [0.005, 0.00499, 0.0051, 1e300, 1e-300, 1.0], [1.0, 30.0, 300.0, 1.0, 1.0, np.inf]
    epsilon[6:12] = 0.0
    return sigma, epsilon


def test_blocks_hold_the_truth(settings):
    sigma, epsilon = settings
    mechanism = GaussianMechanism(sigma, 1.0)
    delta, log_delta = mechanism.delta(epsilon), mechanism.log_delta(epsilon)
    for k in [*range(12), *range(12, COUNT, 150)]:
        if not np.isfinite(epsilon[k]) or sigma[k] in (1e300, 1e-300):
            continue
        r = 0.5 / sigma[k]
        if r > 20.0 or epsilon[k] / (2 * r) > 30.0:
            continue
        with mp.workdps(500):
            truth = log_curve(sigma[k], 1.0, epsilon[k])
            assert log_delta.lower[k] <= truth <= log_delta.upper[k], (sigma[k], epsilon[k])
            assert delta.lower[k] <= mp.exp(truth) <= delta.upper[k], (sigma[k], epsilon[k])


def test_blocks_agree_with_single_settings(settings):
    sigma, epsilon = settings
    for name in ("delta", "log_delta"):
        many = getattr(GaussianMechanism(sigma, 1.0), name)(epsilon)
        assert (many.lower <= many.value).all()
        assert (many.value <= many.upper).all()
        for part in (slice(0, 500), slice(5000, 5500), slice(COUNT - 500, COUNT)):
            few = getattr(GaussianMechanism(sigma[part], 1.0), name)(epsilon[part])
            assert (many.value[part] == few.value).all()
            assert (many.lower[part] == few.lower).all()
            assert (many.upper[part] == few.upper).all()


def test_bounds_are_narrow_and_hold_the_truth_at_the_limits_of_the_quick_way():
    """r around 1e-280, where 1 - delta leaves the doubles, and the usual ones; b = epsilon / (2r) + r around 1e6."""
    rng = np.random.default_rng(8)
    ratio = np.concatenate([rng.uniform(37.0, 39.5, 60), 1e-280 * 2 ** rng.uniform(-2, 2, 40),
                            10 ** rng.uniform(-9, 1.6, 140), 1e6 * 2 ** rng.uniform(-0.01, 0.01, 20)])
    edge = np.concatenate([10 ** rng.uniform(-9, -3, 60), 10 ** rng.uniform(-3, 1.5, 80),
                           1e6 * 2 ** rng.uniform(-0.01, 0.01, 60), 10 ** rng.uniform(1, 6, 40),
                           1e6 * 2 ** rng.uniform(-2e-5, 2e-5, 20)])
    sigma = 10 ** rng.uniform(-3, 3, ratio.size)
    span, epsilon = 2 * sigma * ratio, 2 * ratio * edge
    mechanism = GaussianMechanism(sigma, span)
    delta, log_delta = mechanism.delta(epsilon), mechanism.log_delta(epsilon)
    for k in range(ratio.size):
        truth = oracle.log_delta_of(lambda k=k: arb(float(span[k])) / 2 / arb(float(sigma[k])), float(epsilon[k]))
        ctx.prec = 200
        row = float(sigma[k]), float(span[k]), float(epsilon[k])
        assert arb(float(log_delta.lower[k])) <= truth <= arb(float(log_delta.upper[k])), row
        assert not truth.exp() < arb(float(delta.lower[k])), row
        assert not truth.exp() > arb(float(delta.upper[k])), row
    slope = 3 + (epsilon / (2 * ratio) + ratio) ** 2  # of log delta by log r, at most
    size = np.abs(log_delta.value)
    plain = (epsilon / (2 * ratio) + ratio < 0.99e6) & (ratio > 1.01e-280)
    most = np.where(plain, 1.5e-15 * size + 1.7e-14 * np.minimum(size, 1.0), 2e-14 * size) + 4e-16 * slope
    assert (log_delta.width <= most).all()


def test_subnormal_sensitivities():
    """Half of an odd subnormal number is none."""
    for span, sigma in ((5e-324, 1e-10), (1.5e-323, 1e-12), (3.5e-323, 3e-300), (5e-324, 2.0)):
        mechanism = GaussianMechanism(sigma, span)
        delta, log_delta = mechanism.delta(0.0), mechanism.log_delta(0.0)
        truth = oracle.log_delta_of(lambda span=span, sigma=sigma: arb(span) / 2 / arb(sigma), 0.0)
        ctx.prec = 200
        assert arb(delta.lower) <= truth.exp() <= arb(delta.upper)
        assert arb(log_delta.lower) <= truth <= arb(log_delta.upper)


def test_blocks_broadcast_and_check_as_before(settings):
    sigma, epsilon = settings
    square = GaussianMechanism(sigma[:100, None], 1.0).delta(epsilon[:100])
    assert square.shape == (100, 100)
    assert square.value[3, 50] == GaussianMechanism(sigma[3], 1.0).delta(epsilon[50]).value
    whole = GaussianMechanism(2.0, np.zeros(COUNT)).delta(1.0)
    assert (whole.upper == 0.0).all()
    assert (GaussianMechanism(2.0, 1.0).delta(np.full(COUNT, np.inf)).upper == 0.0).all()
    assert GaussianMechanism(2.0, 1.0).delta(np.ones(COUNT, dtype=np.int64)).shape == (COUNT,)
    assert not whole.value.flags.writeable
    bad = np.ones(COUNT)
    bad[7] = np.nan
    with pytest.raises(DomainError, match="epsilon must be a number; got nan"):
        GaussianMechanism(2.0, 1.0).delta(bad)
    with pytest.raises(ShapeError, match="epsilon must be of a shape that broadcasts with sigma and sensitivity"):
        GaussianMechanism(sigma, 1.0).delta(np.ones(5))
    with pytest.raises(DomainError, match="sensitivity must be given for the privacy curve"):
        GaussianMechanism(sigma).delta(epsilon)


@pytest.mark.parametrize(("sigma", "span", "epsilon"), [
    (8.822925630448133e280, 1.2524051279210577e-34, 3.0742503e-316), (5e280, 1e-38, 2.5e-319), (3e280, 2e-42, 5e-323),
])
def test_log_delta_where_products_of_r_underflow(sigma, span, epsilon):
    """r of some 1e-316: c = epsilon / 2r is then known to five of the least doubles over r."""
    log_delta = GaussianMechanism(sigma, span).log_delta(epsilon)
    truth = oracle.log_delta_of(lambda: arb(span) / 2 / arb(sigma), epsilon)
    assert arb(log_delta.lower) <= truth <= arb(log_delta.upper)
