"""Stacks of priors and arrays of sigma, and expected posteriors of stacks of channels, beside single calls."""

import numpy as np
import pytest

from fastpriv import Channel, GaussianMechanism, Pmf, notions
from fastpriv.channels import ChannelStack
from fastpriv.distributions import PmfStack

RNG = np.random.default_rng(11)
LEVELS = np.linspace(0.0, 3.0, 10)
SIGMAS = np.geomspace(0.2, 20.0, 200)
VALUES, PRIORS = np.arange(8.0), RNG.dirichlet(np.ones(8), 200)
STACK = RNG.dirichlet(np.ones(8), (1000, 8))
PRIOR = RNG.dirichlet(np.ones(8))


def compared(benchmark, way, of_stack, of_one, count):
    """One call of a stack, with one or two threads, or the loop over single calls: the same bits."""
    want = of_stack(1)
    if way == "a loop":
        found = benchmark(lambda: np.array([of_one(k) for k in range(count)]))
    else:
        found = benchmark(of_stack, 2 if "threads" in way else 1)
    np.testing.assert_array_equal(found, want)


WAYS = pytest.mark.parametrize("way", ["one call", "one call, 2 threads", "a loop"])


@pytest.mark.benchmark(group="200 priors with a Gaussian mechanism each: LIP at 10 levels")
@WAYS
def test_lip_of_priors(benchmark, way):
    compared(
        benchmark, way,
        lambda jobs: notions.lip_delta(PmfStack(VALUES, PRIORS), GaussianMechanism(SIGMAS), LEVELS, n_jobs=jobs).value,
        lambda k: notions.lip_delta(Pmf(VALUES, PRIORS[k]), GaussianMechanism(SIGMAS[k]), LEVELS).value, SIGMAS.size,
    )


@pytest.mark.benchmark(group="1,000 channels 8 x 8: average Bayesian privacy")
@WAYS
def test_abp_of_channels(benchmark, way):
    compared(
        benchmark, way, lambda jobs: notions.abp(PRIOR, ChannelStack(STACK), n_jobs=jobs).mean.value,
        lambda k: notions.abp(PRIOR, Channel(STACK[k])).mean.value, len(STACK),
    )


@pytest.mark.benchmark(group="1,000 channels 8 x 8: likeliest secrets")
@WAYS
def test_map_of_channels(benchmark, way):
    compared(
        benchmark, way, lambda jobs: notions.map_secrets(PRIOR, ChannelStack(STACK), n_jobs=jobs),
        lambda k: notions.map_secrets(PRIOR, Channel(STACK[k])), len(STACK),
    )
