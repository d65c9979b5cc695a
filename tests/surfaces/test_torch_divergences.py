"""Divergences of mixtures of PyTorch: values, gradients, batches, and a fit by the exact KL divergence."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fastpriv  # noqa: E402
from fastpriv import DomainError, GaussianMixture  # noqa: E402
from fastpriv.adapters.torch import divergence  # noqa: E402

QUANTITIES = {"kl": {}, "jensen_shannon": {}, "renyi": {"order": 1.25}, "entropy": {},
              "hockey_stick": {"epsilon": 0.25}}


def mixture(logits, means, log_sigmas):
    normal = torch.distributions.Normal(means, torch.exp(log_sigmas))
    return torch.distributions.MixtureSameFamily(torch.distributions.Categorical(logits=logits), normal)


def parameters(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [(0.5 * torch.randn(*shape, generator=generator, dtype=torch.float64)).requires_grad_() for _ in range(3)]


def test_values_are_those_of_fastpriv():
    p, q = mixture(*parameters(3)), mixture(*parameters(2, seed=1))
    parts = [(x.mixture_distribution.probs, x.component_distribution.loc, x.component_distribution.scale)
             for x in (p, q)]
    mine = [GaussianMixture(*(tensor.detach().numpy() for tensor in part)) for part in parts]
    truth = fastpriv.kl_divergence(*mine)
    assert torch.distributions.kl_divergence(p, q).item() == pytest.approx(truth.value, rel=1e-12)
    normal = torch.distributions.Normal(torch.tensor(0.5), torch.tensor(2.0))
    other = fastpriv.kl_divergence(mine[0], GaussianMixture.single(0.5, 2.0)).value
    assert torch.distributions.kl_divergence(p, normal).item() == pytest.approx(other, rel=1e-6)
    assert torch.distributions.kl_divergence(normal, p).dtype == torch.float32


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_gradients(quantity):
    several = [*parameters(2, 3), *parameters(3, seed=1)]

    def function(*tensors):
        q = None if quantity == "entropy" else mixture(*tensors[3:])
        return divergence(quantity, mixture(*tensors[:3]), q, **QUANTITIES[quantity])

    assert function(*several).shape == (2,)
    assert torch.autograd.gradcheck(function, several[: 3 if quantity == "entropy" else 6], eps=1e-5, atol=1e-7)


def test_a_mixture_is_fitted_by_its_exact_divergence():
    target = mixture(torch.tensor([0.0, 1.0]), torch.tensor([-1.0, 2.0]), torch.tensor([-0.5, 0.2]))
    fitted = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in ([0.1, 0.0], [-0.3, 0.4], [0.0, 0.1])]
    optimizer = torch.optim.LBFGS(fitted, max_iter=60, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = torch.distributions.kl_divergence(target, mixture(*fitted)).double()
        value.backward()
        return value

    assert loss().item() > 0.05
    for _ in range(3):
        optimizer.step(loss)
    assert loss().item() < 1e-6
    assert np.allclose(fitted[1].detach().numpy(), [-1.0, 2.0], atol=1e-2)


def test_what_is_no_mixture_on_the_line():
    with pytest.raises(DomainError, match="p and q must be MixtureSameFamily of Normal"):
        divergence("kl", torch.distributions.Laplace(0.0, 1.0), torch.distributions.Normal(0.0, 1.0))
    with pytest.raises(DomainError, match="quantity must be"):
        divergence("l2", mixture(*parameters(2)), mixture(*parameters(2)))
