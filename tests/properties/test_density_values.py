"""The forms of a density agree with each other and with GaussianMixture, and draws depend on their stream alone."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from fastpriv import Density, GaussianMixture
from fastpriv.base.parallel import ordered_map
from fastpriv.base.random_streams import root, stream_words
from fastpriv.distributions import LogRatio
from kernels.lock import lets_others_run
from oracles import user_densities as given
from oracles.user_densities import D

PLAIN = Density(given.normal_plain, given.normal_sampler, dimension=D)
VECTORIZED = Density(given.normal_vectorized, given.normal_sampler, dimension=D, vectorized=True)
RATIO = LogRatio(given.log_ratio_vectorized, given.shifted_sampler, dimension=D, sampler_q=given.normal_sampler,
                 vectorized=True)
MIXTURE = GaussianMixture.single([0.0] * D, 1.0)


@cache  # compiled when a test uses them, and not in every process that collects tests
def jitted():
    return Density(given.normal_jitted, given.normal_sampler_jitted, dimension=D)


@cache
def compiled():
    return Density(given.normal_plain, given.normal_sampler, dimension=D, jit=True)


def tile(seed, n):
    return np.random.default_rng(seed).standard_normal((D, n)) * 3


@settings(max_examples=30, deadline=None)
@drawn(st.integers(0, 1000), st.integers(0, 200))
@pytest.mark.slow
def test_all_forms_agree(seed, n):
    x = tile(seed, n)
    kept = x.copy()
    want = MIXTURE.log_density(x.T) if n else np.empty(0)
    assert (jitted().form, compiled().form, PLAIN.form, VECTORIZED.form) == ("jitted", "jitted", "plain", "vectorized")
    for law in (jitted(), compiled(), PLAIN, VECTORIZED):
        np.testing.assert_allclose(law.evaluate(x), want, rtol=1e-14, err_msg=repr(law))
        np.testing.assert_array_equal(law.log_density(x.T), law.evaluate(x))
    np.testing.assert_array_equal(compiled().evaluate(x), PLAIN.evaluate(x))
    np.testing.assert_allclose(RATIO.evaluate(x), given.shifted_vectorized(x.T.copy()) - want, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(x, kept)  # the vectorised function overwrites what it is given


@pytest.mark.slow
def test_any_layout_of_a_tile_is_taken():
    x = tile(3, 60)
    x.setflags(write=False)
    for view in (x[:, ::2], x[:, 5:9], x[::-1], np.asfortranarray(x), x, x.astype(np.float32)):
        for law in (jitted(), VECTORIZED, PLAIN):
            np.testing.assert_array_equal(law.evaluate(view), law.evaluate(np.array(view, dtype=float, order="C")))


@pytest.mark.parametrize("make", [jitted, lambda: VECTORIZED], ids=["jitted", "plain"])
def test_draws_depend_on_their_stream_alone(make):
    law = make()
    key = root(11)
    tasks = [(stream_words(key, (0, k), 4), 50 + k) for k in range(24)]

    def work(task):
        x = law.draw(*task)
        return x, law.evaluate(x, drawn_from=True)

    runs = [list(ordered_map(work, tasks, n_jobs=n_jobs)) for n_jobs in (1, 2, 3)]
    runs.append([work(task) for task in reversed(tasks)][::-1])
    for run in runs[1:]:
        for (x, values), (same_x, same_values) in zip(runs[0], run, strict=True):
            np.testing.assert_array_equal(x, same_x)
            np.testing.assert_array_equal(values, same_values)
    everything = np.concatenate([x.ravel() for x, _ in runs[0]])
    assert len(np.unique(everything)) == everything.size
    assert abs(everything.mean()) < 5 / np.sqrt(everything.size)
    assert abs(everything.var() - 1) < 5 * np.sqrt(2 / everything.size)


def test_the_loops_release_the_gil():
    n = 200_000
    stream = stream_words(root(2), (), 4)
    x = jitted().draw(stream, n)
    assert lets_others_run(lambda: jitted().evaluate(x), 1000)
    assert lets_others_run(lambda: jitted().draw(stream, n), 1000)


def test_jitted_draws_are_those_of_numpy():
    stream = stream_words(root(5), (), 4)
    np.testing.assert_array_equal(
        jitted().draw(stream, 100), np.random.default_rng(stream).standard_normal((100, D)).T
    )
    np.testing.assert_array_equal(VECTORIZED.draw(stream, 100), jitted().draw(stream, 100))


def test_samples_repeat_by_their_seed():
    np.testing.assert_array_equal(jitted().sample(5, rng=3), jitted().sample(5, rng=3))
    assert jitted().sample(5, rng=3).shape == (5, D)
    generator = np.random.default_rng(3)
    assert (jitted().sample(5, rng=generator) != jitted().sample(5, rng=generator)).all()


def test_both_sides_of_a_ratio_are_drawn():
    stream = stream_words(root(5), (), 4)
    RATIO.trial(stream)
    assert RATIO.sides == ("p", "q")
    np.testing.assert_allclose(RATIO.draw(stream, 2000).mean(axis=1), given.SHIFT, atol=0.15)
    np.testing.assert_allclose(RATIO.draw(stream, 2000, "q").mean(axis=1), 0.0, atol=0.15)


def test_discrete_laws_are_densities_too():
    p = Density(given.poisson_log_density, given.poisson_sampler, dimension=1, vectorized=True)
    p.trial(stream_words(root(1), (), 4))
    support = np.arange(60.0)
    assert abs(np.exp(p.log_density(support)).sum() - 1) < 1e-13
    x = p.sample(4000, rng=2)
    assert x.dtype == np.float64
    assert abs(x.mean() - 3) < 0.15
    assert abs(-p.log_density(x).mean() - 1.9311) < 0.05  # the entropy of the Poisson law with mean 3


def test_bounded_laws_are_densities_too():
    p = Density(given.cube_jitted, lambda rng, n: rng.random((n, D)), dimension=D)
    p.trial(stream_words(root(1), (), 4))
    np.testing.assert_array_equal(p.evaluate(np.array([[0.5, 2.0]] * D)), [0.0, -np.inf])
