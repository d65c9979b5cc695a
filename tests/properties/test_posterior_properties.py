"""What holds of every posterior: bounds between its numbers, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv import posterior

LOGS = st.one_of(st.floats(-700, 700), st.sampled_from([-np.inf, 0.0, -1e-9]))


@st.composite
def problems(draw):
    size = draw(st.integers(1, 40))
    logs = np.array(draw(st.lists(LOGS, min_size=size, max_size=size)))
    logs[draw(st.integers(0, size - 1))] = 0.5
    weights = np.array(draw(st.lists(st.floats(1e-3, 1.0), min_size=size, max_size=size)))
    return logs, weights / weights.sum()


@settings(max_examples=150, deadline=None)
@given(problems())
@pytest.mark.slow
def test_numbers_of_one_posterior_fit_together(problem):
    logs, prior = problem
    found = posterior(logs, prior, top=3)
    after = found.probabilities()
    assert abs(after.sum() - 1) < 1e-12
    assert found.xi.value == max(found.max_log_ratio.value, -found.min_log_ratio.value)
    assert found.js.lower <= min(np.log(2), 0.25 * found.kl.upper + 0.5 * found.max_log_ratio.upper)
    assert found.kl.lower <= found.max_log_ratio.upper + 1e-12
    assert found.entropy.lower <= np.log(logs.size) * (1 + 1e-12)
    assert found.vulnerability.lower <= 1 / max(1, found.ties)
    assert found.top.probabilities[0] == found.vulnerability.value * 1.0
    assert after.max() <= found.vulnerability.upper * (1 + 1e-13)
    assert found.map_index == found.top.indices[0]
    assert np.all(np.diff(found.top.probabilities) <= 0)


@pytest.mark.filterwarnings("ignore:likelihood must hold natural logarithms:UserWarning")
@settings(max_examples=100, deadline=None)
@given(problems(), st.floats(-1000, 1000), st.randoms(use_true_random=False))
def test_a_factor_and_an_order_change_nothing_but_the_evidence(problem, shift, random):
    logs, prior = problem
    order = list(range(logs.size))
    random.shuffle(order)
    found, other = posterior(logs, prior), posterior((logs + shift)[order], prior[order])
    for name in ("entropy", "kl", "js", "max_log_ratio", "vulnerability"):
        a, b = getattr(found, name), getattr(other, name)
        slack = 1e-11 * (1 + abs(a.value))  # of rounding logs + shift
        assert a.lower - slack <= b.upper, name
        assert b.lower - slack <= a.upper, name


@settings(max_examples=60, deadline=None)
@given(problems(), problems())
@pytest.mark.slow
def test_evidence_of_two_releases_multiplies(first, second):
    size = min(first[0].size, second[0].size)
    prior = first[1][:size] / first[1][:size].sum()
    one, two = first[0][:size] / 4, second[0][:size] / 4
    one[0], two[0] = 0.0, 0.0
    after = posterior(one, prior)
    again = posterior(two, after.probabilities())
    both = posterior(one + two, prior)
    total = after.log_evidence.value + again.log_evidence.value
    assert abs(total - both.log_evidence.value) < 1e-9 * (1 + abs(total))
