"""Mixtures that scikit-learn has fitted, and frozen distributions of SciPy, wherever a distribution is taken."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from .densities import Density
from .mixtures import GaussianMixture

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def mixture_of_fitted(name: str, fitted: Any) -> GaussianMixture:
    """The distribution of a fitted GaussianMixture or BayesianGaussianMixture; refuse anything else."""
    try:
        weights, means, kind = fitted.weights_, fitted.means_, fitted.covariance_type
        covariances = np.asarray(fitted.covariances_)
    except AttributeError:
        raise DomainError(
            f"{name} must be a fitted GaussianMixture of scikit-learn; got {validate.shown(fitted)}. Call its fit "
            "method first."
        ) from None
    validate.choice("covariance_type", kind, ("full", "tied", "diag", "spherical"))
    if kind in ("full", "tied"):
        return GaussianMixture(weights, means, covariances=covariances)
    return GaussianMixture(weights, means, np.sqrt(covariances))


def distribution_of_frozen(name: str, frozen: Any) -> GaussianMixture | Density:
    """A normal distribution for one of SciPy, in any dimension; a ``Density`` that is sampled for any other."""
    if hasattr(frozen, "cov_object"):
        return GaussianMixture([1.0], [frozen.mean], covariances=[frozen.cov])
    if not hasattr(frozen, "logpdf") or hasattr(frozen, "pmf"):
        raise DomainError(
            f"{name} must have a density; got {validate.shown(frozen)}. Pass the vector of its probabilities, "
            f"{name}.pmf(outcomes), for both."
        )
    family = str(frozen.dist.name)
    if family == "norm":
        return GaussianMixture.single(float(frozen.mean()), float(frozen.std()))
    return Density(
        lambda x: frozen.logpdf(x[:, 0]), lambda rng, n: frozen.rvs(size=n, random_state=rng), dimension=1, name=family,
        vectorized=True,
    )


def takes_other_libraries(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Let arguments that are distributions also be fits of scikit-learn and frozen distributions of SciPy."""
    names = tuple(inspect.signature(function).parameters)

    def converted(name: str, argument: Any) -> Any:
        if hasattr(argument, "covariance_type"):
            return mixture_of_fitted(name, argument)
        return distribution_of_frozen(name, argument) if hasattr(argument, "rvs") else argument

    @functools.wraps(function)
    def with_fitted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        positional = (*map(converted, names, args), *args[len(names) :])
        return function(*positional, **{name: converted(name, value) for name, value in kwargs.items()})

    return with_fitted
