"""Divergences of mixtures under JAX: values, gradients, jit and vmap, and NumPyro's dispatch."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import fastpriv  # noqa: E402
from fastpriv import DomainError, GaussianMixture  # noqa: E402
from fastpriv.adapters.jax import divergence  # noqa: E402

QUANTITIES = {"kl": {}, "jensen_shannon": {}, "renyi": {"order": 1.25}, "entropy": {},
              "hockey_stick": {"epsilon": 0.25}}


@pytest.fixture(autouse=True)
def _doubles():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def parameters(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(jax.numpy.asarray(0.5 * rng.standard_normal(shape)) for _ in range(3))


def of_free(quantity, free_p, free_q):
    sides = [(jax.nn.softmax(logits), means, jax.numpy.exp(logs)) for logits, means, logs in (free_p, free_q)]
    return divergence(quantity, *sides[: 1 if quantity == "entropy" else 2], **QUANTITIES[quantity])


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_gradients(quantity):
    p, q = parameters(3), parameters(2, seed=1)
    function = jax.jit(lambda p, q: of_free(quantity, p, q))
    found = jax.grad(function, argnums=(0, 1))(p, q)
    for side in range(1 if quantity == "entropy" else 2):
        for k in range(3):
            for i in range(len(p[0]) if side == 0 else len(q[0])):
                ends = []
                for sign in (1, -1):
                    moved = [list(p), list(q)]
                    moved[side][k] = moved[side][k].at[i].add(sign * 1e-5)
                    ends.append(float(function(tuple(moved[0]), tuple(moved[1]))))
                assert float(found[side][k][i]) == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_values_and_vmap():
    p, q = parameters(4, 3), parameters(2, seed=1)
    mine = [GaussianMixture(*(np.asarray(x) for x in (jax.nn.softmax(side[0]), side[1], jax.numpy.exp(side[2]))))
            for side in (tuple(x[2] for x in p), q)]
    together = of_free("kl", p, q)
    assert together.shape == (4,)
    assert float(together[2]) == pytest.approx(fastpriv.kl_divergence(*mine).value, rel=1e-12)
    mapped = jax.vmap(lambda *one: of_free("kl", one, q))(*p)
    assert np.allclose(mapped, together, rtol=1e-13)
    gradients = jax.vmap(jax.grad(lambda one: of_free("kl", one, q)))(p)
    whole = jax.grad(lambda several: of_free("kl", several, q).sum())(p)
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(gradients, whole, strict=True))
    assert divergence("kl", tuple(x.astype("float32") for x in ([1.0], [0.0], [1.0]) for x in [np.array(x)]),
                      tuple(np.array(x, dtype="float32") for x in ([1.0], [1.0], [1.0]))).dtype == np.float32


def test_numpyro():
    distributions = pytest.importorskip("numpyro.distributions")
    kl_divergence = pytest.importorskip("numpyro.distributions.kl").kl_divergence
    weights, means, sigmas = np.array([0.4, 0.6]), np.array([-1.0, 1.0]), np.array([0.5, 0.7])
    p = distributions.MixtureSameFamily(distributions.Categorical(probs=weights), distributions.Normal(means, sigmas))
    q = distributions.Normal(0.0, 2.0)
    mixture, normal = GaussianMixture(weights, means, sigmas), GaussianMixture.single(0.0, 2.0)
    assert float(kl_divergence(p, q)) == pytest.approx(fastpriv.kl_divergence(mixture, normal).value, rel=1e-12)
    assert float(kl_divergence(q, p)) == pytest.approx(fastpriv.kl_divergence(normal, mixture).value, rel=1e-12)
    assert float(kl_divergence(p, p)) == pytest.approx(0.0, abs=1e-15)
    other = distributions.MixtureSameFamily(distributions.Categorical(probs=weights),
                                            distributions.Laplace(means, sigmas))
    with pytest.raises(DomainError, match="p and q must be MixtureSameFamily of Normal, or Normal; got Laplace"):
        kl_divergence(other, q)
