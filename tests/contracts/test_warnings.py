"""A warning points at the line that called, says why, and what to do."""

import math
import sys
import warnings

import numpy as np
import pytest

import fastpriv
from fastpriv import Density, GaussianMixture, kl_divergence
from fastpriv.errors import SamplingWarning

P = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]])
Q = GaussianMixture([0.5, 0.5], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]])
LINE = {"dimension": 1, "vectorized": True}


def uniform(high, sampled=True):
    inside = -math.log(high)
    return Density(
        lambda x: np.where((x[:, 0] >= 0) & (x[:, 0] <= high), inside, -np.inf),
        (lambda rng, n: high * rng.random((n, 1))) if sampled else None, **LINE,
    )


def interrupting(after):
    def progress(done, total):
        progress.calls += 1
        if progress.calls > after:
            raise KeyboardInterrupt

    progress.calls = 0
    return progress


def said(call):
    """What a call warned of; all of it on the line below."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        line, answer = sys._getframe().f_lineno, call()
    for warning in seen:
        assert warning.category is SamplingWarning
        assert (warning.filename, warning.lineno) in {(__file__, line), (__file__, call.__code__.co_firstlineno)}
    return answer, " ".join(str(warning.message) for warning in seen)


@pytest.mark.few(4)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("kl_divergence", (P, Q)), ("jensen_shannon", (P, Q)), ("total_variation", (P, Q)),
     ("hockey_stick_divergence", (P, Q, 1.0)), ("log_hockey_stick_divergence", (P, Q, 1.0)),
     ("renyi_divergence", (P, Q, 2.0)), ("entropy", (P,)), ("label_information", (P,))],
)
def test_an_interruption_is_an_error_that_carries_the_answer(name, arguments, n_jobs):
    words = {"rtol": 0.0, "max_samples": 4_000_000, "rng": 1, "n_jobs": n_jobs, "method": "plain"}
    with pytest.raises(KeyboardInterrupt, match="the run was interrupted after") as stopped:
        getattr(fastpriv.divergences, name)(*arguments, progress=interrupting(8), **words)
    assert stopped.value.best.kind == "statistical"


@pytest.mark.parametrize("name", ["kl_divergence", "jensen_shannon", "total_variation", "hockey_stick_divergence"])
def test_plain_python_is_told_where_the_call_was(name):
    slow = Density(lambda x: -abs(float(x[0])) - math.log(2.0), lambda rng, n: rng.laplace(size=(n, 1)), dimension=1)
    _, text = said(lambda: getattr(fastpriv.divergences, name)(slow, uniform(1.0), max_samples=100, rng=1))
    assert "is plain Python, called once a sample" in text


def test_a_heavy_tail_is_told_where_the_call_was():
    normal = GaussianMixture.single(0.0, 1.0)
    cauchy = Density(
        lambda x: -np.log1p(x[:, 0] ** 2) - math.log(math.pi), lambda rng, n: rng.standard_cauchy((n, 1)), **LINE
    )
    _, text = said(lambda: kl_divergence(cauchy, normal, max_samples=4000, rtol=0.0, rng=1))
    assert "the log ratio must have a light tail" in text


@pytest.mark.parametrize("side", ["both", "upper"])
def test_a_guaranteed_interval_without_an_upper_end_says_why(side):
    words = {"interval": "guaranteed", "max_samples": 5000, "rng": 1}
    found, text = said(lambda: kl_divergence(uniform(1.0), uniform(2.0), side=side, **words))
    assert found.upper == math.inf
    assert "nothing bounds the log ratio of these distributions" in text
    assert said(lambda: kl_divergence(uniform(1.0), uniform(2.0), side="lower", **words))[1] == ""


def test_a_constant_log_ratio_is_bounded_below_and_says_why_it_is_not_above():
    found, text = said(lambda: kl_divergence(uniform(1.0), uniform(2.0, sampled=False), rng=1))
    assert "have the same log ratio, so that nothing tells how far it goes" in text
    assert found.upper == math.inf
    assert 0.99 * math.log(2.0) <= found.lower < math.log(2.0)
    assert found.cost["stopped"] == "constant"
    assert found.cost["samples"] < 300_000


def test_a_constant_log_ratio_with_samples_of_both_laws_has_both_ends():
    found, text = said(lambda: kl_divergence(uniform(1.0), uniform(2.0), rtol=1e-2, confidence=1 - 1e-6, rng=1))
    assert found.method.startswith("balanced")
    assert found.lower <= math.log(2.0) <= found.upper < 0.71
    assert text == ""


@pytest.mark.parametrize("hidden", [1e-3, 1e-2])
def test_the_lower_bound_holds_where_a_small_part_differs(hidden):
    """P has a part of this mass in which q is as large as what is left of it allows: no law has a lower divergence."""
    rest = 1.0 - (1.0 - hidden) * 0.5  # q on [0, 1 - hidden] is p / 2
    truth = (1.0 - hidden) * math.log(2.0) + hidden * math.log(hidden / rest)

    def log_q(x):
        return np.where(x[:, 0] < 1.0 - hidden, -math.log(2.0), math.log(rest / hidden))

    misses = 0
    for seed in range(60):
        words = {"rtol": 0.0, "max_samples": 512, "rng": seed, "side": "lower"}
        found, _ = said(lambda words=words: kl_divergence(uniform(1.0), Density(log_q, **LINE), **words))
        misses += found.lower > truth
    assert misses <= 9  # 3 expected at 0.95; a chance of 1e-3
