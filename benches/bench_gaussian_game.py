"""Gaussian information of a stack of covariances beside the NumPy lines people write."""

import numpy as np
import pytest

from fastpriv.capacity import gaussian_information

MATRICES, DIMENSION = 1000, 8


@pytest.fixture(scope="module")
def covariances():
    a = np.random.default_rng(1).normal(size=(2, MATRICES, DIMENSION, DIMENSION))
    return a @ a.swapaxes(-1, -2) + np.eye(DIMENSION)


def slogdet_difference(x, y):
    return 0.5 * (np.linalg.slogdet(x + y)[1] - np.linalg.slogdet(y)[1])


@pytest.mark.benchmark(group="gaussian information, 1000 pairs of 8 x 8")
def test_information_fastpriv(benchmark, covariances):
    got = benchmark(gaussian_information, *covariances)
    np.testing.assert_allclose(got.value, slogdet_difference(*covariances), rtol=1e-12)


@pytest.mark.benchmark(group="gaussian information, 1000 pairs of 8 x 8")
def test_information_slogdet(benchmark, covariances):
    got = benchmark(slogdet_difference, *covariances)  # loses everything when the signal is small, and has no bounds
    np.testing.assert_allclose(got, gaussian_information(*covariances).value, rtol=1e-12)
