"""Time budgets and interruptions: whatever the laws cost, an answer comes in time and says no more than was done.

The time is that of a clock which only counted work moves, so that no test here depends on how fast the machine is.
"""

import warnings

import numpy as np
import pytest

import fastpriv.sampling.options
import fastpriv.sampling.stopping
from contracts.work_clock import installed_work_clock
from fastpriv import Density, GaussianMixture, hockey_stick_divergence, kl_divergence, renyi_divergence, total_variation
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.errors import SamplingWarning
from fastpriv.sampling.options import TimeBudget
from fastpriv.sampling.proposals.renyi_proposals import renyi_proposal
from fastpriv.sampling.proposals.tilting import hockey_stick_proposals

SECONDS = 1.0


def mixture(k, d, seed, *, full=False):
    rng = np.random.default_rng(seed)
    weights, means = np.full(k, 1 / k), rng.standard_normal((k, d))
    if not full:
        return GaussianMixture(weights, means, rng.uniform(0.8, 1.3, (k, d)))
    a = rng.standard_normal((k, d, d)) / np.sqrt(d)
    return GaussianMixture(weights, means, covariances=a @ a.transpose(0, 2, 1) + np.eye(d))


def slow_law(d, seconds):
    def log_density(x):
        fastpriv.sampling.options.time.spend(seconds)
        return float(-0.5 * (x * x).sum() - d * 0.9189385332046727)

    return Density(log_density, lambda rng, n: rng.standard_normal((n, d)), dimension=d)


P, Q = mixture(400, 4, 1), mixture(400, 4, 2)
CALLS = {
    "kl": lambda **k: kl_divergence(P, Q, **k),
    "hockey-stick": lambda **k: hockey_stick_divergence(P, Q, [0.5, 3.0, 20.0], **k),
    "log hockey-stick": lambda **k: log_hockey_stick_divergence(P, Q, np.linspace(0, 50, 26), **k),
    "renyi": lambda **k: renyi_divergence(P, Q, 1.5, **k),
    "guaranteed kl": lambda **k: kl_divergence(P, Q, interval="guaranteed", **k),
    "full": lambda **k: hockey_stick_divergence(mixture(6, 60, 1, full=True), mixture(6, 60, 2, full=True), 30.0, **k),
    "forced": lambda **k: kl_divergence(P, Q, method="direct sobol", **k),
    "slow function": lambda **k: kl_divergence(mixture(2, 2, 1), slow_law(2, 1e-3), **k),
    "slow function, guaranteed": lambda **k: total_variation(
        slow_law(2, 1e-3), mixture(2, 2, 1), interval="guaranteed", **k
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CALLS)
def test_large_laws_and_slow_functions_are_answered_in_time(name, monkeypatch):
    clock = installed_work_clock(monkeypatch, term=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        answer = CALLS[name](rtol=0.0, max_samples=10**9, max_seconds=SECONDS, rng=1)
    assert SECONDS <= clock.now < 2.0 * SECONDS
    assert (np.asarray(answer.lower) <= answer.value).all()
    assert (np.asarray(answer.value) <= answer.upper).all()
    assert answer.cost["stopped"] == "max_seconds"
    assert not answer.cost["repeatable"]


def test_a_search_that_is_late_gives_bounds_that_are_true_but_wide():
    p, q = mixture(6, 3, 1), mixture(6, 3, 2)
    for law in (p, mixture(6, 3, 3, full=True)):
        ((proposal, places),) = hockey_stick_proposals(law, q, [1.0, 5.0], expired=lambda: True)
        assert list(places) == [0, 1]
        assert 0.0 <= proposal.log_scale < 1e-12
        np.testing.assert_allclose(proposal.mixture.means, law.means)
        found = renyi_proposal(law, q, 1.2, expired=lambda: True)
        assert not found.bounded
        assert not found.diverges


def test_a_clock_tells_its_whole_that_it_was_felt():
    whole = TimeBudget(np.inf)
    part = TimeBudget(0.0, whole)
    assert not whole.expired()
    assert not whole.affected
    assert part.expired()
    assert whole.affected
    assert whole.portion(0.5).remaining == np.inf
    assert TimeBudget(100.0).portion(0.5).seconds <= 50.0


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.slow
def test_epsilons_that_an_interruption_left_out_are_not_zero(n_jobs, logs):
    p, q = mixture(3, 2, 1), mixture(3, 2, 2)
    call = log_hockey_stick_divergence if logs else hockey_stick_divergence
    epsilon = np.array([12.0, 0.0, np.inf, 6.0])
    truth = call(p, q, epsilon, rng=2)
    stages = []

    def stop_in_the_second_group(done, total):
        if done == 1:
            stages.append(total)
        if len(stages) > 4 or (len(stages) == 4 and done > 20):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="interrupted after") as stopped:
        call(p, q, epsilon, rtol=1e-6, max_samples=10**7, rng=1, n_jobs=n_jobs, progress=stop_in_the_second_group)
    answer = stopped.value.best
    assert answer.cost["stopped"] == "interrupted"
    assert not answer.cost["repeatable"]
    assert (answer.lower <= truth.upper).all()
    assert (answer.upper >= truth.lower).all()
    assert answer.upper[0] > answer.lower[0]
    assert answer.upper[2] == (-np.inf if logs else 0.0)


def test_what_no_clock_touched_is_repeatable():
    p, q = mixture(3, 2, 1), mixture(3, 2, 2)
    for keywords in ({}, {"interval": "guaranteed", "rtol": 0.1}):
        one, two = (kl_divergence(p, q, rng=1, n_jobs=n, max_seconds=500, **keywords) for n in (1, 2))
        assert (one.value, one.lower, one.upper) == (two.value, two.lower, two.upper)
        assert one.cost["repeatable"]


class Stalled:
    """A clock of a machine that stands still at some looks: ``stalls`` gives the seconds of each, by its number."""

    def __init__(self, stalls):
        self.stalls, self.looks, self.now = stalls, 0, 0.0

    def monotonic(self):
        self.now += 1e-4 + self.stalls(self.looks)
        self.looks += 1
        return self.now


@pytest.mark.parametrize(
    "stalls",
    [
        lambda look: 1.5 * (look == 2), lambda look: 0.4 * (look < 6), lambda look: 0.03,
        lambda look: 0.2 * (look % 3 == 0),
    ],
    ids=["an import", "a slow start", "a busy machine", "a very busy machine"],
)
@pytest.mark.slow
def test_a_busy_machine_has_no_say_where_there_is_time(stalls, monkeypatch):
    p, q = mixture(3, 2, 1), mixture(3, 2, 2)
    calls = [
        lambda: kl_divergence(p, q, rng=1), lambda: total_variation(p, q, rng=1),
        lambda: hockey_stick_divergence(p, q, 8.0, rng=1),
        lambda: total_variation(p, q, interval="guaranteed", rtol=0.1, rng=1),
    ]
    quiet = [call() for call in calls]
    for call, one in zip(calls, quiet, strict=True):
        with monkeypatch.context() as patch:
            clock = Stalled(stalls)
            for module in (fastpriv.sampling.options, fastpriv.sampling.stopping):
                patch.setattr(module, "time", clock)
            two = call()
        assert clock.looks > 4
        assert (one.value, one.lower, one.upper, one.method) == (two.value, two.lower, two.upper, two.method)
        assert one.cost == two.cost
        assert two.cost["repeatable"]


def test_a_slow_machine_with_little_time_says_that_the_clock_had_a_say(monkeypatch):
    clock = Stalled(lambda look: 0.3)
    for module in (fastpriv.sampling.options, fastpriv.sampling.stopping):
        monkeypatch.setattr(module, "time", clock)
    answer = kl_divergence(mixture(3, 2, 1), mixture(3, 2, 2), rng=1, max_seconds=5.0)
    assert not answer.cost["repeatable"]
    assert answer.lower <= answer.value <= answer.upper
