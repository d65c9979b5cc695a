"""Mixtures of scikit-learn and SciPy, there and back."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from fastpriv import DomainError, GaussianMixture, adapters, divergences, posterior
from fastpriv.errors import BackendMissingError, ShapeError

W = [0.25, 0.75]
FULL = [[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.5], [0.5, 4.0]]]
MIXTURES = {
    "line": GaussianMixture(W, [0.0, 3.0], [1.0, 0.5]),
    "spherical": GaussianMixture(W, [[0.0, 1.0], [3.0, 2.0]], [1.0, 0.5]),
    "diag": GaussianMixture(W, [[0.0, 1.0], [3.0, 2.0]], [[1.0, 2.0], [0.5, 0.25]]),
    "tied": GaussianMixture(W, [[0.0, 1.0], [3.0, 2.0]], covariances=[[2.0, 1.0], [1.0, 2.0]]),
    "full": GaussianMixture(W, [[0.0, 1.0], [3.0, 2.0]], covariances=FULL),
    "one, full": GaussianMixture([1.0], [[0.0, 1.0]], covariances=[[2.0, 1.0], [1.0, 2.0]]),
}
POINTS = np.array([[0.0, 1.0], [-3.0, 2.0], [7.0, 0.5]])


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.slow
def test_there_and_back_by_scikit_learn(name):
    pytest.importorskip("sklearn.mixture")
    mixture = MIXTURES[name]
    fitted = adapters.sklearn_from_mixture(mixture)
    points = POINTS[:, : mixture.dimension]
    assert np.allclose(fitted.score_samples(points), mixture.log_density(points), rtol=1e-12)
    assert fitted.covariance_type == {"line": "spherical", "one, full": "full"}.get(name, name)
    assert fitted.sample(3)[0].shape == (3, mixture.dimension)
    assert adapters.mixture_from_sklearn(fitted) == mixture


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_fit_of_scikit_learn(kind):
    sklearn = pytest.importorskip("sklearn.mixture")
    i = np.arange(1, 201)
    data = np.stack([(i * 0.618) % 1 + (i % 2) * 3, (i * 0.414) % 1 * (1 + i % 2)], axis=1)
    fitted = sklearn.GaussianMixture(2, covariance_type=kind, random_state=0).fit(data)
    mixture = adapters.mixture_from_sklearn(fitted)
    assert np.allclose(fitted.score_samples(data), mixture.log_density(data), rtol=1e-9)


def test_the_attributes_are_all_that_is_read():
    fitted = SimpleNamespace(weights_=W, means_=[[0.0], [3.0]], covariances_=[1.0, 0.25], covariance_type="spherical")
    assert adapters.mixture_from_sklearn(fitted) == MIXTURES["line"]


def test_there_and_back_by_scipy():
    if not hasattr(stats, "Mixture"):
        pytest.skip("SciPy is older than 1.15")
    there = adapters.scipy_from_mixture(MIXTURES["line"])
    x = np.array([-4.0, 0.3, 2.0])
    assert np.allclose(there.logpdf(x), MIXTURES["line"].log_density(x[:, None]), rtol=1e-13)
    assert adapters.mixture_from_scipy(there) == MIXTURES["line"]
    assert adapters.mixture_from_scipy(stats.Normal(mu=2.0, sigma=3.0)) == GaussianMixture.single(2.0, 3.0)
    with pytest.raises(DomainError, match="distribution must be a scipy.stats.Mixture of Normal components; got"):
        adapters.mixture_from_scipy(stats.Mixture([stats.Uniform(a=0.0, b=1.0)]))


def test_what_is_refused(monkeypatch):
    with pytest.raises(DomainError, match="fitted must be a fitted GaussianMixture of scikit-learn; got 3"):
        adapters.mixture_from_sklearn(3)
    unknown = SimpleNamespace(weights_=W, means_=W, covariances_=W, covariance_type="free")
    with pytest.raises(DomainError, match="covariance_type must be"):
        adapters.mixture_from_sklearn(unknown)
    with pytest.raises(ShapeError, match="mixture must have dimension 1 for scipy.stats; got 2"):
        adapters.scipy_from_mixture(MIXTURES["diag"])
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(BackendMissingError, match="sklearn_from_mixture needs scikit-learn. Install it with: pip"):
        adapters.sklearn_from_mixture(MIXTURES["line"])
    monkeypatch.delattr(stats, "Mixture", raising=False)
    with pytest.raises(BackendMissingError, match=r"scipy_from_mixture needs scipy.stats.Mixture. Install it with"):
        adapters.scipy_from_mixture(MIXTURES["line"])


QUANTITIES = {
    "kl": divergences.kl_divergence, "jensen_shannon": divergences.jensen_shannon,
    "renyi": lambda p, q: divergences.renyi_divergence(p, q, 0.5),
    "hockey_stick": lambda p, q: divergences.hockey_stick_divergence(p, q, 0.5),
    "log_hockey_stick": lambda p, q: divergences.log_hockey_stick_divergence(p=p, q=q, epsilon=0.5),
    "total_variation": divergences.total_variation,
    "entropy": lambda p, q: divergences.entropy(p),
    "label_information": lambda p, q: divergences.label_information(p),
    "gradient": lambda p, q: divergences.divergence_gradient("kl", p, q).p_means,
}


def fitted_pair(line):
    """Two fits of scikit-learn, one of them Bayesian, and the data of the first."""
    sklearn = pytest.importorskip("sklearn.mixture")
    random = np.random.default_rng(3)
    data = random.normal(size=(300, 1 if line else 2)) * 0.5 + 3.0 * (random.random((300, 1)) < 0.4)
    kinds = ("spherical", "full") if line else ("tied", "tied")
    p = sklearn.GaussianMixture(2, covariance_type=kinds[0], random_state=0).fit(data)
    q = sklearn.BayesianGaussianMixture(n_components=2, covariance_type=kinds[1], random_state=0).fit(data + 0.5)
    return p, q, data


@pytest.mark.parametrize("name", QUANTITIES)
def test_fits_are_taken_as_they_are(name):
    p, q, _ = fitted_pair(line=True)
    expected = QUANTITIES[name](adapters.mixture_from_sklearn(p), adapters.mixture_from_sklearn(q))
    found = QUANTITIES[name](p, q)
    assert found == expected
    assert np.all(found.lower < found.upper)


def test_fits_in_two_dimensions_are_taken_as_they_are():
    p, q, _ = fitted_pair(line=False)
    read = adapters.mixture_from_sklearn(p), adapters.mixture_from_sklearn(q)
    options = {"max_samples": 20_000, "rng": 1}
    assert divergences.kl_divergence(p, q, **options) == divergences.kl_divergence(*read, **options)


def test_probabilities_of_components_are_posteriors():
    p, _, data = fitted_pair(line=False)
    mixture = adapters.mixture_from_sklearn(p)
    shared = mixture.covariances[0]
    components = [GaussianMixture([1.0], mixture.means[i : i + 1], covariances=shared) for i in range(2)]
    for point, expected in zip(data[:20], p.predict_proba(data[:20]), strict=True):
        likelihood = [component.log_density(point[None])[0] for component in components]
        most = posterior(likelihood, mixture.weights, top=2).top
        assert np.allclose(most.probabilities[np.argsort(most.indices)], expected, rtol=1e-9, atol=1e-300)


def test_a_fit_that_is_none_is_refused():
    unfitted = SimpleNamespace(covariance_type="full")
    with pytest.raises(DomainError, match="q must be a fitted GaussianMixture of scikit-learn; got .*Call its fit met"):
        divergences.kl_divergence(MIXTURES["line"], q=unfitted)
