"""Divergences of Gaussian mixtures beside quadrature, roots, sums and samples as one would write them."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import binom, logsumexp, ndtr

import fastpriv
from fastpriv import GaussianMechanism, GaussianMixture, Pmf, notions, special

from .tasks import Peer, Task


def random_mixture(rng, size, spread=0.0):
    sigmas = rng.uniform(0.5, 2, size) if spread == 0.0 else np.exp(rng.normal(0, spread, size))
    return GaussianMixture(rng.dirichlet(np.ones(size)), rng.normal(0, 3, size), sigmas)


def log_density(mixture, x):
    t = (np.asarray(x)[..., None] - mixture.means) / mixture.sigmas
    return logsumexp(np.log(mixture.weights / mixture.sigmas) - t * t / 2, axis=-1) - np.log(2 * np.pi) / 2


# hockey-sticks


def hockey_stick_by_quad(p, q, epsilon, low=-30.0, high=30.0):
    def excess(x):
        return max(0.0, np.exp(log_density(p, x)) - np.exp(epsilon + log_density(q, x)))

    return quad(excess, low, high, limit=500)[0]


def crossings(p, q, epsilon, low=-30.0, high=30.0):
    """Where the log ratio crosses epsilon, as far as 2001 points show."""
    x = np.linspace(low, high, 2001)
    ratio = log_density(p, x) - log_density(q, x) - epsilon
    return [
        brentq(lambda t: log_density(p, t) - log_density(q, t) - epsilon, x[i], x[i + 1], xtol=1e-13)
        for i in np.flatnonzero(np.sign(ratio[1:]) != np.sign(ratio[:-1]))
    ]


def hockey_stick_by_roots(p, q, epsilon, low=-30.0, high=30.0):
    edges = np.array([-np.inf, *crossings(p, q, epsilon, low, high), np.inf])
    mass = [
        mixture.weights @ np.diff(ndtr((edges[None, :] - mixture.means[:, None]) / mixture.sigmas[:, None]), axis=1)
        for mixture in (p, q)
    ]
    return float(np.sum(np.maximum(mass[0] - np.exp(epsilon) * mass[1], 0.0)))


def hockey_stick_by_mpmath(p, q, epsilon):
    """The same with 30 digits in the normal distribution functions; the crossings need not be that exact."""
    from mpmath import mp, mpf

    with mp.workdps(30):
        def mass(mixture, edge):
            terms = zip(*(np.broadcast_to(field, mixture.weights.shape).tolist()
                          for field in (mixture.weights, mixture.means, mixture.sigmas)), strict=True)
            return mp.fsum(mpf(w) * mp.ncdf((edge - mpf(m)) / mpf(s)) for w, m, s in terms)

        edges = [-mp.inf, *map(mpf, crossings(p, q, epsilon)), mp.inf]
        excess = [mass(p, edge) - mp.exp(mpf(epsilon)) * mass(q, edge) for edge in edges]
        return float(mp.fsum(max(b - a, mpf(0)) for a, b in itertools.pairwise(excess)))


def hockey_stick_by_samples(p, q, epsilon, n=100_000):
    rng = np.random.default_rng(1)
    label = rng.choice(len(p.weights), n, p=p.weights / p.weights.sum())
    x = p.means[label] + p.sigmas[label] * rng.standard_normal(n)
    return np.maximum(-np.expm1(epsilon + log_density(q, x) - log_density(p, x)), 0.0).mean()


def lip_by_sums(prior, sigma, epsilon):
    """LIP on a grid of outputs: no bounds, no tails."""
    x, w = prior.values, prior.probabilities
    y = np.linspace(x[0] - 12 * sigma, x[-1] + 12 * sigma, 4001)
    single = np.exp(-(((y[:, None] - x) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
    mixed, step = single @ w, y[1] - y[0]
    best = np.zeros(len(epsilon))
    for k in range(len(x)):
        for i, e in enumerate(epsilon):
            first = np.maximum(mixed - np.exp(e) * single[:, k], 0).sum()
            second = np.exp(-e) * np.maximum(single[:, k] - np.exp(e) * mixed, 0).sum()
            best[i] = max(best[i], first * step, second * step)
    return best


def subsampled_delta(rate, sigma, epsilon):
    """Delta of the subsampled Gaussian: the crossing, and two differences of normal distribution functions."""
    u = np.log1p(np.expm1(epsilon) / rate)
    return rate * (ndtr(0.5 / sigma - u * sigma) - np.exp(u) * ndtr(-0.5 / sigma - u * sigma))


# integrals


def kl_integrand(p, q):
    def f(x):
        lp, lq = log_density(p, x), log_density(q, x)
        return np.exp(lp) * (lp - lq)

    return f


def by_quad(integrand, high=60.0):
    return quad(integrand, -high, high, limit=400)[0]


def by_trapezoid(integrand, high=60.0):
    x = np.linspace(-high, high, 6001)
    return np.trapezoid(integrand(x), x)


def kl_by_mpmath(p, q, high=40):
    """The trapezoidal rule with 20 digits; its error falls as exp(-2 pi 64 d), d the distance of complex zeros."""
    from mpmath import mp, mpf

    def logarithm(terms, x):
        return mp.log(mp.fsum(w / s * mp.exp(-((x - m) / s) ** 2 / 2) for w, m, s in terms))

    with mp.workdps(20):
        tables = [
            [tuple(map(mpf, term)) for term in zip(*(x.tolist() for x in (p.weights, p.means, p.sigmas)), strict=True)]
            for p in (p, q)
        ]
        step, total = mpf(1) / 64, mpf(0)
        for i in range(-64 * high, 64 * high + 1):
            first, second = (logarithm(terms, i * step) for terms in tables)
            total += mp.exp(first) * (first - second)
        return float(total * step / mp.sqrt(2 * mp.pi))


def log_densities(mixtures, x):
    """(rows, nodes) of a stack, on nodes (rows, nodes)."""
    w, m, s = (np.broadcast_to(field, np.broadcast_shapes(*map(np.shape, mixtures))) for field in mixtures)
    t = (x[..., None] - m[:, None]) / s[:, None]
    return logsumexp(np.log(w / s)[:, None] - t * t / 2, axis=-1) - np.log(2 * np.pi) / 2


def trapezoid_of_rows(p, q, half_width):
    """KL of each row by the trapezoidal rule on 801 nodes of its own."""
    x = np.linspace(-half_width, half_width, 801, axis=-1) * np.ones((len(p[0]), 1))
    lp, lq = log_densities(p, x), log_densities(q, x)
    return np.trapezoid(np.exp(lp) * (lp - lq), x, axis=-1)


def binomial_sums(rates, sigmas, order):
    """Renyi divergences of an integer order by the sum of Mironov, Talwar and Zhang, in NumPy."""
    k = np.arange(order + 1)
    terms = np.log(binom(order, k)) + (order - k) * np.log1p(-rates)[:, None] + k * np.log(rates)[:, None]
    return logsumexp(terms + k * (k - 1) / (2 * sigmas[:, None] ** 2), axis=1) / (order - 1)


def renyi_by_dp_accounting(rates, sigmas, order):
    """The same by dp_accounting."""
    from dp_accounting import dp_event, rdp

    out = []
    for rate, sigma in zip(rates.tolist(), sigmas.tolist(), strict=True):
        account = rdp.RdpAccountant([order])
        account.compose(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma)))
        out.append(account._rdp[0])
    return np.array(out)


# samples: n of P, and the mean of log p - log q over them


def mixtures_in_space(size, dimension):
    """Two diagonal mixtures that overlap."""
    rng = np.random.default_rng([size, dimension])
    out = []
    for _ in range(2):
        means = rng.normal(0, 1.0 if dimension > 1 else 3.0, (size, dimension))
        sigmas = np.exp(rng.normal(0, 0.2, (size, dimension)))
        shape = (size,) if dimension == 1 else (size, dimension)
        out.append(GaussianMixture(rng.dirichlet(np.full(size, 5.0)), means.reshape(shape), sigmas.reshape(shape)))
    return tuple(out)


def arrays(mixture):
    means = mixture.means.reshape(len(mixture), -1)
    return mixture.weights, means, np.broadcast_to(mixture.sigmas.reshape(len(mixture), -1), means.shape)


def numpy_samples(p, q):
    tables = []
    for w, m, s in map(arrays, (p, q)):
        precision = 1 / (s * s)
        constant = np.log(w) - np.log(s).sum(axis=1) - (m * m * precision).sum(axis=1) / 2
        tables.append((-0.5 * precision.T, (m * precision).T, constant))
    w, m, s = arrays(p)

    def log_density(x, table):
        logs = (x * x) @ table[0] + x @ table[1] + table[2]
        top = logs.max(axis=1)
        logs -= top[:, None]
        np.exp(logs, out=logs)
        return top + np.log(logs.sum(axis=1))

    def run(n, seed=1):
        rng = np.random.default_rng(seed)
        block, total = max(256, 2**20 // len(w)), 0.0
        for start in range(0, n, block):
            size = min(block, n - start)
            label = np.repeat(np.arange(len(w)), rng.multinomial(size, w / w.sum()))
            x = m[label] + s[label] * rng.standard_normal((size, m.shape[1]))
            total += (log_density(x, tables[0]) - log_density(x, tables[1])).sum()
        return total / n

    return run


def sklearn_samples(p, q):
    from sklearn import mixture

    models = []
    for w, m, s in map(arrays, (p, q)):
        model = mixture.GaussianMixture(len(w), covariance_type="diag")
        model.weights_, model.means_, model.covariances_ = w / w.sum(), m, s * s
        model.precisions_cholesky_ = 1 / s
        models.append(model)

    def run(n, seed=1):
        models[0].random_state = seed
        x, _ = models[0].sample(n)
        return float(np.mean(models[0].score_samples(x) - models[1].score_samples(x)))

    return run


def torch_samples(p, q):
    import torch

    mixtures = []
    for w, m, s in map(arrays, (p, q)):
        w, m, s = (torch.tensor(np.array(part), dtype=torch.float64) for part in (w, m, s))
        parts = torch.distributions.Independent(torch.distributions.Normal(m, s), 1)
        mixtures.append(torch.distributions.MixtureSameFamily(torch.distributions.Categorical(w), parts))

    def run(n, seed=1):
        torch.manual_seed(seed)
        block, total = max(64, 2**24 // p.means.size), 0.0
        for start in range(0, n, block):
            x = mixtures[0].sample((min(block, n - start),))
            total += float((mixtures[0].log_prob(x) - mixtures[1].log_prob(x)).sum())
        return total / n

    return run


def jax_samples(p, q):
    import jax

    jax.config.update("jax_enable_x64", True)
    numpy = jax.numpy
    tables = [tuple(map(numpy.asarray, arrays(mixture))) for mixture in (p, q)]
    block = int(max(64, 2**20 // p.means.size))

    def log_density(x, table):
        w, m, s = table
        scaled = (x[:, None, :] - m) / s
        return jax.scipy.special.logsumexp(numpy.log(w) - numpy.log(s).sum(1) - (scaled * scaled).sum(-1) / 2, axis=1)

    @jax.jit
    def block_sum(key):
        first, second = jax.random.split(key)
        w, m, s = tables[0]
        label = jax.random.categorical(first, numpy.log(w), shape=(block,))
        x = m[label] + s[label] * jax.random.normal(second, (block, m.shape[1]), dtype=numpy.float64)
        return (log_density(x, tables[0]) - log_density(x, tables[1])).sum()

    def run(n, seed=1):
        count = max(1, round(n / block))
        keys = jax.random.split(jax.random.PRNGKey(seed), count)
        return float(sum(block_sum(key).block_until_ready() for key in keys)) / (count * block)

    run(block)
    return run


# tasks


def one_hockey_stick():
    rng = np.random.default_rng(1)
    p, q, epsilon = random_mixture(rng, 8), random_mixture(rng, 8), 1.0
    deviation = 1.0 / math.sqrt(100_000)  # of a mean of numbers between 0 and 1
    value = fastpriv.hockey_stick_divergence(p, q, epsilon).value
    return lambda: fastpriv.hockey_stick_divergence(p, q, epsilon), {
        "SciPy roots and ndtr": Peer(lambda: lambda: hockey_stick_by_roots(p, q, epsilon), 1e-9),
        "SciPy quad": Peer(lambda: lambda: hockey_stick_by_quad(p, q, epsilon), 1e-7),
        "NumPy, 1e5 samples": Peer(lambda: lambda: hockey_stick_by_samples(p, q, epsilon), 5 * deviation / value),
        "mpmath, 30 digits": Peer(
            lambda: _with_mpmath(lambda: hockey_stick_by_mpmath(p, q, epsilon)), 1e-12, error=1e-15, slow=True),
    }


def curve_of_hockey_sticks():
    rng = np.random.default_rng(1)
    p, q, grid = random_mixture(rng, 8), random_mixture(rng, 8), np.linspace(0, 5, 201)
    return lambda: fastpriv.hockey_stick_divergence(p, q, grid), {
        "SciPy roots and ndtr": Peer(lambda: lambda: np.array([hockey_stick_by_roots(p, q, e) for e in grid]), 1e-9),
    }


def many_subsampled():
    rng = np.random.default_rng(1)
    rate, sigma, epsilon = (10 ** rng.uniform(*ends, 100_000) for ends in ((-5, -0.5), (-0.5, 1), (-2, 0.5)))

    return lambda: special.sampled_gaussian_delta_remove(sigma, rate, epsilon), {
        "NumPy and ndtr": Peer(lambda: lambda: subsampled_delta(rate, sigma, epsilon), 1e-12),
    }


def curve_of_subsampled():
    rate, sigma, grid = 0.01, 1.0, np.linspace(0.0, 3.0, 1000)
    p, q = GaussianMixture([1 - rate, rate], [0.0, 1.0], sigma), GaussianMixture.single(0.0, sigma)

    def by_dp_accounting():
        from dp_accounting.pld import privacy_loss_mechanism as module

        loss = module.GaussianPrivacyLoss(sigma, sampling_prob=rate, adjacency_type=module.AdjacencyType.REMOVE)
        return lambda: loss.get_delta_for_epsilon(grid.tolist())

    return lambda: fastpriv.hockey_stick_divergence(p, q, grid), {
        "NumPy and ndtr": Peer(lambda: lambda: subsampled_delta(rate, sigma, grid), 1e-12),
        "dp_accounting": Peer(by_dp_accounting, 1e-9),
    }


def one_kl():
    rng = np.random.default_rng(1)
    p, q = random_mixture(rng, 8, 0.7), random_mixture(rng, 8, 0.7)
    integrand = kl_integrand(p, q)
    return lambda: fastpriv.kl_divergence(p, q, certified=True), {
        "NumPy trapezoid": Peer(lambda: lambda: by_trapezoid(integrand), 1e-7),
        "SciPy quad": Peer(lambda: lambda: by_quad(integrand), 1e-7),
        "mpmath, 20 digits": Peer(lambda: _with_mpmath(lambda: kl_by_mpmath(p, q)), 1e-12, error=1e-15, slow=True),
    }


def many_kl():
    rng = np.random.default_rng(1)
    rates, sigmas = 10 ** rng.uniform(-4, -1, 1000), 10 ** rng.uniform(-0.2, 1, 1000)
    sampled = (np.stack([1 - rates, rates], axis=1), np.array([0.0, 1.0]), np.stack([sigmas] * 2, axis=1))
    plain = (np.ones(1), np.zeros(1), sigmas[:, None])
    return lambda: special.mixture_kl(*sampled, *plain), {
        "NumPy trapezoid": Peer(lambda: lambda: trapezoid_of_rows(sampled, plain, 12 * sigmas + 1), 1e-6),
    }


def many_renyi():
    rng, order = np.random.default_rng(1), 8
    rates, sigmas = 10 ** rng.uniform(-4, -1, 1000), 10 ** rng.uniform(-0.2, 1, 1000)
    sampled = (np.stack([1 - rates, rates], axis=1), np.array([0.0, 1.0]), np.stack([sigmas] * 2, axis=1))
    plain = (np.ones(1), np.zeros(1), sigmas[:, None])

    def by_dp_accounting():
        import dp_accounting.rdp  # noqa: F401

        return lambda: renyi_by_dp_accounting(rates, sigmas, order)

    return lambda: special.mixture_renyi(*sampled, *plain, float(order)), {
        "NumPy binomial sums": Peer(lambda: lambda: binomial_sums(rates, sigmas, order), 1e-9),
        "dp_accounting, one by one": Peer(by_dp_accounting, 1e-9),
    }


_SPACE = (64, 16, 50_000)  # components of each mixture, dimensions, samples


def sampled_kl():
    size, dimension, n = _SPACE
    p, q = mixtures_in_space(size, dimension)
    x = p.sample(4000, rng=1)
    logs = p.log_density(x) - q.log_density(x)
    tolerance = 6 * float(logs.std() / abs(logs.mean())) * math.sqrt(2 / n)
    peers = {"NumPy and BLAS": numpy_samples, "scikit-learn": sklearn_samples, "torch": torch_samples,
             "jax": jax_samples}

    def peer(make):
        run = make(p, q)
        return lambda: run(n)

    return lambda: fastpriv.kl_divergence(p, q, rtol=0.0, max_samples=n, max_seconds=math.inf, n_jobs=1, rng=1), {
        name: Peer(lambda make=make: peer(make), tolerance) for name, make in peers.items()
    }


def lip_curve():
    points, grid = np.linspace(-1, 1, 21), np.linspace(0, 5, 200)
    weights = np.exp(-2 * points**2)
    prior, sigma = Pmf(points, weights / weights.sum()), 0.3
    return lambda: notions.lip_delta(prior, GaussianMechanism(sigma), grid), {
        "NumPy sums": Peer(lambda: lambda: lip_by_sums(prior, sigma, grid), 1e-3),
    }


def _with_mpmath(call):
    import mpmath  # noqa: F401

    return call


TASKS = (
    Task("hockey-stick, 8 + 8 components, one epsilon", one_hockey_stick),
    Task("hockey-stick, 8 + 8 components, 201 epsilons", curve_of_hockey_sticks),
    # at least an exponential, a logarithm and two normal distribution functions a setting
    Task("delta, 100,000 sampled Gaussians", many_subsampled, "exp", 4e5),
    Task("delta, one sampled Gaussian, 1,000 epsilons", curve_of_subsampled, "exp", 4e3),
    Task("KL, 8 + 8 components, certified", one_kl),
    Task("KL, 1,000 sampled Gaussians", many_kl),
    Task("Renyi of order 8, 1,000 sampled Gaussians", many_renyi),
    # of each sample, mixture and component: two products and two sums a coordinate
    Task("KL, 64 + 64 components in 16 dimensions, 50,000 samples", sampled_kl, "flops",
         4.0 * 2 * _SPACE[0] * _SPACE[1] * _SPACE[2]),
    Task("LIP curve, 21 values, 200 epsilons", lip_curve),
)
