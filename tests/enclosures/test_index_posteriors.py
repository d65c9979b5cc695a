"""Posteriors from a function of the secret have the bits of its values as an array."""

import numpy as np
import pytest

from fastpriv import posterior
from fastpriv.channels import IndexLikelihood


def test_all_secrets_are_evaluated():
    def function(d):
        return 2.0 * np.sin(1e-4 * d) + 0.01 * np.cos(3e-3 * d)

    found, dense = posterior(IndexLikelihood(function, 600_000)), posterior(function(np.arange(600_000)))
    for name, estimate in dense.estimates().items():
        assert found.estimates()[name].to_dict() == estimate.to_dict()
    assert found.top.indices.tolist() == dense.top.indices.tolist()
    np.testing.assert_array_equal(found.probabilities(5, 300_000), dense.probabilities(5, 300_000))


@pytest.mark.slow
def test_a_jitted_function_and_a_prior_by_a_function():
    numba = pytest.importorskip("numba")

    @numba.njit
    def function(d):
        return -0.5 * ((d - 700.5) / 200.0) ** 2

    n = 2000
    weights = 2.0 * np.arange(1, n + 1) / (n * (n + 1))
    found = posterior(IndexLikelihood(function, n), lambda d: 2.0 * (d + 1) / (n * (n + 1)), n_jobs=2)
    dense = posterior(-0.5 * ((np.arange(n) - 700.5) / 200.0) ** 2, weights)
    assert found.kl.value == pytest.approx(dense.kl.value, rel=1e-12)
    assert found.map_index == dense.map_index
