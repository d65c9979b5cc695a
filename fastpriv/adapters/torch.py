"""Divergences of Gaussian mixtures on the line for PyTorch, exact and with gradients.

Importing this module registers ``torch.distributions.kl_divergence`` of ``MixtureSameFamily`` of ``Normal``, and of one
against a ``Normal``.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import DomainError, explain_missing_package
from .differentiable import gradients, value

with explain_missing_package("fastpriv.adapters.torch", "PyTorch", "torch"):
    import torch
    from torch.distributions import MixtureSameFamily, Normal
    from torch.distributions.kl import register_kl


def divergence(
    quantity: str, p: Any, q: Any = None, *, order: float | None = None, epsilon: float | None = None
) -> Any:
    """A divergence of two distributions of PyTorch, or the entropy of one, that can be differentiated.

    Parameters
    ----------
    quantity : {"kl", "jensen_shannon", "renyi", "entropy", "hockey_stick"}
        As ``fastpriv.divergences.divergence_gradient``.
    p, q : torch.distributions.MixtureSameFamily of Normal, or Normal
        With batch shapes that broadcast.
    order, epsilon : float, optional
        Of "renyi" and "hockey_stick".

    Returns
    -------
    torch.Tensor
        Of the batch shape, in the dtype of the parameters of p, in nats. Its values are those of the functions of
        fastpriv, in float64; its gradients flow to weights, means and standard deviations.

    Raises
    ------
    BackendMissingError
        If PyTorch is not installed.
    DomainError
        For other distributions, and as ``divergence_gradient``.

    Notes
    -----
    **Accuracy** that of the functions of these names, and of ``divergence_gradient``;
    ``tests/surfaces/test_torch_divergences.py``.

    Source: PyTorch, torch.distributions.kl (version 2.13).

    Examples
    --------
    >>> import torch, fastpriv.adapters.torch  # doctest: +SKIP
    >>> p = torch.distributions.MixtureSameFamily(...)  # doctest: +SKIP
    >>> torch.distributions.kl_divergence(p, torch.distributions.Normal(0.0, 1.0)).backward()  # doctest: +SKIP
    """
    tensors = [tensor for item in ((p,) if q is None else (p, q)) for tensor in _parameters(item)]
    return _Divergence.apply(quantity, order, epsilon, *tensors)


def _parameters(item: Any) -> tuple[Any, Any, Any]:
    """Weights, means and sigmas, the components on the last axis."""
    if isinstance(item, MixtureSameFamily) and isinstance(item.component_distribution, Normal):
        normal = item.component_distribution
        return item.mixture_distribution.probs, normal.loc, normal.scale
    if isinstance(item, Normal):
        return torch.ones_like(item.loc)[..., None], item.loc[..., None], item.scale[..., None]
    raise DomainError(
        f"p and q must be MixtureSameFamily of Normal, or Normal; got {type(item).__name__}. Mixtures in several "
        "dimensions are sampled: take fastpriv.kl_divergence."
    )


class _Divergence(torch.autograd.Function):  # type: ignore[misc]
    """One quantity of one mixture or two; the derivatives are computed where they are asked for."""

    @staticmethod
    def forward(ctx: Any, quantity: str, order: float | None, epsilon: float | None, *tensors: Any) -> Any:
        ctx.setting = quantity, order, epsilon
        ctx.save_for_backward(*tensors)
        return _tensor_like(value(ctx.setting, _arrays(tensors)), tensors[0])

    @staticmethod
    def backward(ctx: Any, outer: Any) -> Any:
        parts = gradients(ctx.setting, _arrays(ctx.saved_tensors), outer.detach().cpu().numpy())
        return None, None, None, *map(_tensor_like, parts, ctx.saved_tensors)


def _arrays(tensors: Any) -> list[Any]:
    return [tensor.detach().cpu().numpy() for tensor in tensors]


def _tensor_like(array: Any, tensor: Any) -> Any:
    return torch.as_tensor(array, dtype=tensor.dtype, device=tensor.device)


for kinds in ((MixtureSameFamily, MixtureSameFamily), (MixtureSameFamily, Normal), (Normal, MixtureSameFamily)):
    register_kl(*kinds)(lambda p, q: divergence("kl", p, q))
