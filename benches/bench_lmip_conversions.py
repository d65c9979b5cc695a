"""Curves of mutual-information privacy over 300 x 300 settings, against a numerical optimiser on a few of them."""

import math

import numpy as np
import pytest
from comparison.capacities import ldp_by_scipy, pointwise_by_scipy

from fastpriv import special

SIDE = 300
ATOM = 0.01


@pytest.fixture(scope="module")
def settings():
    return np.logspace(-12, math.log10(2), SIDE)[:, None], np.logspace(-9, math.log10(700), SIDE)


@pytest.fixture(scope="module")
def few():
    """Mild settings that an optimiser can do: 8 x 8 of them."""
    return [(mu, epsilon) for mu in np.linspace(0.04, 0.62, 8) for epsilon in np.linspace(0.1, 2, 8)]


@pytest.mark.benchmark(group="LDP curve under mutual information, 300 x 300")
def test_ldp_fastpriv(benchmark, settings):
    delta = benchmark(special.ci_lmip_ldp_delta, *settings)
    assert ((delta > 0) & (delta <= 1)).all()


@pytest.mark.benchmark(group="LIP curve under pointwise information, 300 x 300")
def test_pointwise_fastpriv(benchmark, settings):
    delta = benchmark(special.pointwise_lip_delta, *settings)
    assert ((delta > 0) & (delta <= 1)).all()


@pytest.mark.benchmark(group="LIP curve under mutual information, 300 x 300")
@pytest.mark.parametrize("atom", [0.5, ATOM, 1e-9])
def test_atom_fastpriv(benchmark, settings, atom):
    delta = benchmark(special.cd_lmip_lip_delta, *settings, atom)
    assert ((delta > 0) & (delta <= 1)).all()


@pytest.mark.benchmark(group="LDP curve under mutual information, 64 settings")
def test_ldp_few_fastpriv(benchmark, few):
    benchmark(special.ci_lmip_ldp_delta, *np.array(few).T)


@pytest.mark.benchmark(group="LDP curve under mutual information, 64 settings")
def test_ldp_few_scipy(benchmark, few):
    found = benchmark.pedantic(lambda: [ldp_by_scipy(*row) for row in few], rounds=1)
    np.testing.assert_allclose(found, special.ci_lmip_ldp_delta(*np.array(few).T), rtol=1e-6)


@pytest.mark.benchmark(group="LIP curve under pointwise information, 64 settings")
def test_pointwise_few_fastpriv(benchmark, few):
    benchmark(special.pointwise_lip_delta, *np.array(few).T)


@pytest.mark.benchmark(group="LIP curve under pointwise information, 64 settings")
def test_pointwise_few_scipy(benchmark, few):
    found = benchmark.pedantic(lambda: [pointwise_by_scipy(*row) for row in few], rounds=1)
    np.testing.assert_allclose(found, special.pointwise_lip_delta(*np.array(few).T), rtol=1e-6)
