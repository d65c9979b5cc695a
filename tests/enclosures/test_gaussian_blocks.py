"""Privacy curves of many settings at once: their bounds hold the truth, near every limit of the quick way."""

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import DomainError, GaussianMechanism, ShapeError

COUNT = 2**13 + 77  # a block and a part of one


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
    for name in ("delta",):
        many = getattr(GaussianMechanism(sigma, 1.0), name)(epsilon)
        assert (many.lower <= many.value).all()
        assert (many.value <= many.upper).all()
        for part in (slice(0, 500), slice(5000, 5500), slice(COUNT - 500, COUNT)):
            few = getattr(GaussianMechanism(sigma[part], 1.0), name)(epsilon[part])
            assert (many.value[part] == few.value).all()
            assert (many.lower[part] <= few.value).all()
            assert (few.value <= many.upper[part]).all()
            with np.errstate(invalid="ignore"):
                wide, own = many.upper[part] - many.lower[part], few.upper - few.lower
            usual = np.isfinite(own) & (few.value != 0.0)
            assert (wide[usual] <= 8.0 * own[usual] + 1e-14 * np.abs(few.value[usual]) + 1e-320).all()


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
    with pytest.raises(DomainError, match="epsilon must be at least 0; got nan"):
        GaussianMechanism(2.0, 1.0).delta(bad)
    with pytest.raises(ShapeError, match="epsilon must be of a shape that broadcasts with sigma and sensitivity"):
        GaussianMechanism(sigma, 1.0).delta(np.ones(5))
    with pytest.raises(DomainError, match="sensitivity must be given for the privacy curve"):
        GaussianMechanism(sigma).delta(epsilon)
