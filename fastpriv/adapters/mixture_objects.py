"""Mixtures of scikit-learn and SciPy as mixtures of this package, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import BackendMissingError, DomainError, ShapeError, explain_missing_package
from ..distributions import GaussianMixture
from ..distributions.other_libraries import mixture_of_fitted


def mixture_from_sklearn(fitted: Any) -> GaussianMixture:
    """The distribution of a fitted ``sklearn.mixture.GaussianMixture``.

    Divergences, entropies and their gradients take the fitted object as it is.

    Parameters
    ----------
    fitted : sklearn.mixture.GaussianMixture or BayesianGaussianMixture
        Of covariance type ``full``, ``tied``, ``diag`` or ``spherical``.

    Raises
    ------
    DomainError
        For another object, or one that was not fitted.

    Notes
    -----
    Standard deviations are square roots of the variances there, rounded once.

    **Accuracy** log densities agree with those of scikit-learn by ``tests/contracts/test_mixture_adapters.py``.

    Source: the attributes that scikit-learn documents.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from fastpriv import adapters
    >>> fitted = SimpleNamespace(weights_=np.array([1.0]), means_=np.array([[2.0]]),
    ...                          covariances_=np.array([[4.0]]), covariance_type="diag")
    >>> adapters.mixture_from_sklearn(fitted).sigmas
    array([2.])
    """
    return mixture_of_fitted("fitted", fitted)


def sklearn_from_mixture(mixture: GaussianMixture) -> Any:
    """A fitted ``sklearn.mixture.GaussianMixture`` with the distribution of a mixture.

    Parameters
    ----------
    mixture : GaussianMixture
        In any dimension. A full form with one covariance for all components becomes ``tied``.

    Returns
    -------
    sklearn.mixture.GaussianMixture
        Ready to predict, score and sample.

    Raises
    ------
    DomainError
        For an argument that is no mixture.
    BackendMissingError
        If scikit-learn is not installed.

    Notes
    -----
    **Accuracy** as ``mixture_from_sklearn``.

    Source: the attributes that scikit-learn documents.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, adapters
    >>> p = GaussianMixture([0.5, 0.5], [0.0, 3.0], 1.0)
    >>> adapters.sklearn_from_mixture(p).predict([[-1.0], [4.0]])  # doctest: +SKIP
    array([0, 1])
    """
    validate.instance("mixture", mixture, GaussianMixture)
    with explain_missing_package("sklearn_from_mixture", "scikit-learn", "scikit-learn"):
        from sklearn import mixture as sklearn_mixture
    means = mixture.means.reshape(len(mixture), -1)
    if mixture.covariances is not None:
        matrices = np.array(mixture.covariances)
        roots = np.swapaxes(np.linalg.inv(np.linalg.cholesky(matrices)), -1, -2)
        precisions = roots @ np.swapaxes(roots, -1, -2)
        kind = "tied" if mixture.shared and len(mixture) > 1 else "full"
        covariances, roots, precisions = (x[0] if kind == "tied" else x for x in (matrices, roots, precisions))
    else:
        assert mixture.sigmas is not None
        kind = "diag" if mixture.sigmas.ndim == 2 else "spherical"
        covariances, roots, precisions = mixture.sigmas**2, 1 / mixture.sigmas, mixture.sigmas**-2.0
    fitted = sklearn_mixture.GaussianMixture(len(mixture), covariance_type=kind)
    fitted.weights_, fitted.means_, fitted.covariances_ = np.array(mixture.weights), np.array(means), covariances
    fitted.precisions_cholesky_, fitted.precisions_ = roots, precisions
    fitted.n_features_in_, fitted.converged_, fitted.n_iter_ = means.shape[1], True, 0
    return fitted


def mixture_from_scipy(distribution: Any) -> GaussianMixture:
    """The distribution of a ``scipy.stats.Mixture`` of normal components.

    Parameters
    ----------
    distribution : scipy.stats.Mixture or scipy.stats.Normal
        With ``Normal`` components alone (SciPy 1.15 or later).

    Raises
    ------
    DomainError
        For another object, or another component.

    Notes
    -----
    **Accuracy** parameters are taken as they are; ``tests/contracts/test_mixture_adapters.py``.

    Source: the attributes that SciPy documents.

    Examples
    --------
    >>> from scipy import stats
    >>> from fastpriv import adapters
    >>> mixture = stats.Mixture([stats.Normal(mu=0.0, sigma=1.0), stats.Normal(mu=2.0, sigma=0.5)], weights=[0.5, 0.5])
    >>> adapters.mixture_from_scipy(mixture).means
    array([0., 2.])
    """
    stats = _scipy_stats("mixture_from_scipy")
    components = getattr(distribution, "components", [distribution])
    if not all(isinstance(component, stats.Normal) for component in components):
        raise DomainError(
            "distribution must be a scipy.stats.Mixture of Normal components; got "
            f"{validate.shown(distribution)}. Write shifted and scaled components with mu and sigma."
        )
    weights = getattr(distribution, "weights", [1.0])
    return GaussianMixture(
        weights, [float(item.mu) for item in components], [float(entry.sigma) for entry in components]
    )


def scipy_from_mixture(mixture: GaussianMixture) -> Any:
    """A ``scipy.stats.Mixture`` with the distribution of a one-dimensional mixture.

    Parameters
    ----------
    mixture : GaussianMixture
        Of one dimension.

    Raises
    ------
    DomainError
        For an argument that is no mixture.
    ShapeError
        For a mixture of more than one dimension.
    BackendMissingError
        If SciPy is older than 1.15.

    Notes
    -----
    **Accuracy** as ``mixture_from_scipy``.

    Source: the attributes that SciPy documents.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, adapters
    >>> round(float(adapters.scipy_from_mixture(GaussianMixture([0.5, 0.5], [0.0, 3.0], 1.0)).mean()), 12)
    1.5
    """
    stats = _scipy_stats("scipy_from_mixture")
    validate.instance("mixture", mixture, GaussianMixture)
    if mixture.dimension != 1:
        raise ShapeError(
            f"mixture must have dimension 1 for scipy.stats; got {mixture.dimension}. Take mixture.marginal(0)."
        )
    assert mixture.sigmas is not None
    parameters = zip(mixture.means.tolist(), mixture.sigmas.tolist(), strict=True)
    return stats.Mixture([stats.Normal(mu=m, sigma=s) for m, s in parameters], weights=mixture.weights)


def _scipy_stats(function: str) -> Any:
    from scipy import stats

    if not hasattr(stats, "Mixture"):
        raise BackendMissingError(f"{function} needs scipy.stats.Mixture. Install it with: pip install 'scipy>=1.15'")
    return stats
