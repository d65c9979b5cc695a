"""Mixtures that scikit-learn has fitted, wherever a mixture is taken."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from .mixtures import GaussianMixture

__all__ = ["mixture_of_fitted", "takes_fitted_mixtures"]

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


def takes_fitted_mixtures(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Let the arguments of a function that are mixtures also be mixtures of scikit-learn, which are read as such."""
    names = tuple(inspect.signature(function).parameters)

    def converted(name: str, argument: Any) -> Any:
        return mixture_of_fitted(name, argument) if hasattr(argument, "covariance_type") else argument

    @functools.wraps(function)
    def with_fitted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        positional = (*map(converted, names, args), *args[len(names) :])
        return function(*positional, **{name: converted(name, value) for name, value in kwargs.items()})

    return with_fitted
