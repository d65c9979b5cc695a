"""Divergences of Gaussian mixtures on the line for JAX, exact and with gradients, and for NumPyro.

Where NumPyro is installed, importing this module registers its ``kl_divergence`` of ``MixtureSameFamily`` of
``Normal``, and of one against a ``Normal``.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import numpy as np

from ..base.errors import DomainError, explain_missing_package
from .differentiable import Setting, gradients, value

with explain_missing_package("fastpriv.adapters.jax", "JAX", "jax"):
    import jax
    import jax.numpy as jnp


def divergence(
    quantity: str, p: tuple[Any, Any, Any], q: tuple[Any, Any, Any] | None = None, *, order: float | None = None,
    epsilon: float | None = None,
) -> Any:
    """A divergence of two mixtures, or the entropy of one, under ``jax.grad``, ``jit`` and ``vmap``.

    Parameters
    ----------
    quantity : {"kl", "jensen_shannon", "renyi", "entropy", "hockey_stick"}
        As ``fastpriv.divergences.divergence_gradient``.
    p, q : tuple of (weights, means, sigmas)
        Arrays of JAX, components on the last axis, with leading axes that broadcast.
    order, epsilon : float, optional
        Of "renyi" and "hockey_stick".

    Returns
    -------
    jax.Array
        Of the leading shape, in the dtype of the weights of p, in nats: the values of fastpriv's functions, computed on
        the host in float64. Second derivatives are not offered.

    Raises
    ------
    BackendMissingError
        If JAX is not installed.
    DomainError
        As ``divergence_gradient``.

    Notes
    -----
    **Accuracy** that of the functions of these names, and of ``divergence_gradient``;
    ``tests/surfaces/test_jax_divergences.py``.

    Source: JAX, jax.custom_vjp and jax.pure_callback (version 0.10).

    Examples
    --------
    >>> import fastpriv.adapters.jax as adapter  # doctest: +SKIP
    >>> jax.grad(lambda means: adapter.divergence("kl", (w, means, s), (v, n, t)))(means)  # doctest: +SKIP
    """
    parameters = tuple(map(jnp.asarray, (*p, *(() if q is None else q))))
    return _divergence((quantity, order, epsilon), parameters)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _divergence(setting: Setting, parameters: tuple[Any, ...]) -> Any:
    shape = jnp.broadcast_shapes(*(x.shape[:-1] for x in parameters))
    dtype = parameters[0].dtype
    return jax.pure_callback(
        lambda *arrays: value(setting, arrays).astype(dtype), jax.ShapeDtypeStruct(shape, dtype), *parameters,
        vmap_method="broadcast_all",
    )


def _backward(setting: Setting, parameters: tuple[Any, ...], outer: Any) -> tuple[Any]:
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in parameters)

    def derivatives(outer: Any, *arrays: Any) -> tuple[Any, ...]:
        parts = gradients(setting, arrays, np.asarray(outer))
        return tuple(part.astype(x.dtype) for part, x in zip(parts, shapes, strict=True))

    return (jax.pure_callback(derivatives, shapes, outer, *parameters, vmap_method="sequential"),)


_divergence.defvjp(lambda setting, parameters: (_divergence(setting, parameters), parameters), _backward)

if importlib.util.find_spec("numpyro") is not None:
    from numpyro.distributions import MixtureSameFamily, Normal
    from numpyro.distributions.kl import kl_divergence

    def _parts(item: Any) -> tuple[Any, Any, Any]:
        if isinstance(item, Normal):
            loc, scale = jnp.broadcast_arrays(item.loc, item.scale)
            return jnp.ones_like(loc)[..., None], loc[..., None], scale[..., None]
        normal = item.component_distribution
        if not isinstance(normal, Normal):
            raise DomainError(
                f"p and q must be MixtureSameFamily of Normal, or Normal; got {type(normal).__name__} components. "
                "Mixtures in several dimensions are sampled: take fastpriv.kl_divergence."
            )
        return item.mixing_distribution.probs, normal.loc, normal.scale

    for kinds in ((MixtureSameFamily, MixtureSameFamily), (MixtureSameFamily, Normal), (Normal, MixtureSameFamily)):
        kl_divergence.register(*kinds)(lambda p, q: divergence("kl", _parts(p), _parts(q)))
