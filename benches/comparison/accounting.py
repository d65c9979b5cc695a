"""Mechanisms, compositions, sampling, shuffling and calibration beside other accountants and lines of SciPy."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr
from scipy.stats import binom

from fastpriv import GaussianMechanism, Pmf, PoissonSampledGaussian, compose, special
from fastpriv.adapters.step_tables import make_step
from fastpriv.calibration import sigma_from_cd_lmip
from fastpriv.composition import RandomAllocation, composed_epsilon, trade_off_curve
from fastpriv.pairs import Shuffled

from .accountants import ACCOUNTANTS, CompositionQuestion
from .tasks import Peer, Task

# one release with Gaussian noise; r is half of the sensitivity over sigma


def ndtr_difference(r, epsilon):
    c = epsilon / (2 * r)
    return ndtr(r - c) - np.exp(epsilon) * ndtr(-r - c)


def erfcx_difference(r, epsilon):
    c = epsilon / (2 * r)
    a, b = (c - r) / np.sqrt(2), (c + r) / np.sqrt(2)
    return 0.5 * np.exp(-a * a) * (erfcx(a) - erfcx(b))


def epsilon_by_bisection(r, delta):
    """What a careful user writes: 60 halvings of a bracket for every setting at once."""
    low, high = np.zeros_like(r), 2 * r * (r + 40)
    for _ in range(60):
        middle = 0.5 * (low + high)
        with np.errstate(all="ignore"):
            over = ndtr_difference(r, middle) > delta
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return high


# calibration


def information_bits(points, weights, sigma):
    """I = h(M) - h(noise) in bits, by adaptive quadrature: loses digits when I is small."""

    def density(y):
        return np.dot(weights, np.exp(-0.5 * ((y - points) / sigma) ** 2)) / (sigma * math.sqrt(2 * math.pi))

    def integrand(y):
        q = density(y)
        return -q * math.log(q) if q > 0 else 0.0

    output = quad(integrand, -1 - 12 * sigma, 1 + 12 * sigma, epsabs=1e-13, epsrel=1e-13, limit=500)[0]
    return (output - 0.5 * math.log(2 * math.pi * math.e * sigma * sigma)) / math.log(2)


# structured sampling and shuffling

SAMPLES = 20_000


def plain_allocation(sigma, steps, epsilon):
    """The likelihood ratio of samples of P."""
    rng = np.random.default_rng(1)
    total = np.zeros(SAMPLES)
    for start in range(0, steps, 1000):
        z = rng.standard_normal((SAMPLES, min(1000, steps - start))) / sigma
        if start == 0:
            z[:, 0] += 1.0 / sigma**2
        total += np.exp(z - 0.5 / sigma**2).sum(axis=1)
    return np.maximum(1.0 - np.exp(epsilon) * steps / total, 0.0)


def shuffled_by_sums(local, n, epsilon):
    """Delta of the clone pair of Feldman, McMillan and Talwar: a sum over the clones, within 12 deviations of the mean.

    Of c clones half hold each answer; the user's answer is the first with probability p, the other one otherwise.
    """
    p, q = 1.0 / (1.0 + math.exp(-local)), math.exp(-local)
    middle, spread = (n - 1) * q, 12 * math.sqrt((n - 1) * q * (1 - q))
    total = 0.0
    for c in range(max(0, int(middle - spread)), min(n - 1, int(middle + spread)) + 1):
        half = binom.pmf(np.arange(-1, c + 2), c, 0.5)
        excess = (p - math.exp(epsilon) * (1 - p)) * half[:-1] + (1 - p - math.exp(epsilon) * p) * half[1:]
        total += binom.pmf(c, n - 1, q) * np.maximum(excess, 0.0).sum()
    return total


# tasks


def many_deltas():
    rng = np.random.default_rng(1)
    r, epsilon = 10 ** rng.uniform(-2, 1.2, 1_000_000), 10 ** rng.uniform(-3, 2, 1_000_000)
    sigma = 2.0 ** np.random.default_rng(2).integers(-3, 4, r.size)
    mechanism = GaussianMechanism(sigma, 2 * sigma * r)

    def quiet(line):
        def call():
            with np.errstate(all="ignore"):
                return np.nan_to_num(line(r, epsilon), nan=0.0)  # where it is infinity times zero

        return call

    return lambda: mechanism.delta(epsilon), {
        "NumPy and ndtr": Peer(lambda: quiet(ndtr_difference), 1e-9),
        "NumPy and erfcx": Peer(lambda: quiet(erfcx_difference), 1e-9),
    }


def many_epsilons():
    r = np.geomspace(0.05, 10, 1000)

    def ours():
        upper, lower = special.gaussian_epsilon(r, 1e-5), special.gaussian_epsilon_below(r, 1e-5)
        return upper, lower, upper

    return ours, {"NumPy, bisection on ndtr": Peer(lambda: lambda: epsilon_by_bisection(r, 1e-5), 1e-6)}


def noise_for_a_target():
    def ours():
        upper, lower = special.gaussian_noise(1.0, 1e-5), special.gaussian_noise_below(1.0, 1e-5)
        return upper, lower, upper

    def by_dp_accounting():
        from dp_accounting.pld import privacy_loss_mechanism
        from dp_accounting.pld.common import DifferentialPrivacyParameters

        parameters = DifferentialPrivacyParameters(1.0, 1e-5)
        return lambda: privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(parameters).standard_deviation

    return ours, {
        "SciPy brentq on ndtr": Peer(
            lambda: lambda: brentq(lambda s: ndtr_difference(0.5 / s, 1.0) - 1e-5, 0.1, 100.0, xtol=1e-14), 1e-9),
        "dp_accounting": Peer(by_dp_accounting, 1e-3),
    }


def noise_for_information():
    points = np.linspace(-1.0, 1.0, 21)
    weights = np.exp(-2.0 * points**2)
    weights /= weights.sum()
    prior = Pmf(points, weights)
    return lambda: sigma_from_cd_lmip(0.1, prior, unit="bits"), {
        "SciPy brentq on quad": Peer(
            lambda: lambda: brentq(lambda s: information_bits(points, weights, s) - 0.1, 1e-2, 1e2, rtol=1e-12), 1e-9),
    }


def _accountant(name, question):
    """A program of ``accountants``, compiled; of two answers, which are bounds, the upper one."""
    (accountant,) = (one for one in ACCOUNTANTS if one.name == name)
    code = compile("\n".join(accountant.program(question)), name, "exec")

    def make():
        __import__(accountant.module)

        def call():
            names = {}
            exec(code, names)  # a text of ``accountants``, never of a file
            answer = names["answer"]
            return max(answer) if isinstance(answer, tuple) else answer

        return call

    return make


_TRAINING = {"kind": "sampled_gaussian", "sigma": 2.0, "rate": 0.01, "count": 3000}
_EPSILON, _DELTA = 1.0, 4.648e-5  # delta(1) of the training to four digits


def _question(target):
    return CompositionQuestion((make_step(_TRAINING),), target, _EPSILON, _DELTA)


def delta_of_training():
    def ours():
        return compose(PoissonSampledGaussian(2.0, 0.01), 3000).delta(_EPSILON)

    # their upper bounds and estimates: on grids, and with an error of delta that they are asked for
    peers = {"dp_accounting PLD, pessimistic": 0.05, "prv_accountant": 0.2}
    question = _question("delta")
    return ours, {name: Peer(_accountant(name, question), error) for name, error in peers.items()}


def epsilon_of_training():
    def ours():
        return compose(PoissonSampledGaussian(2.0, 0.01), 3000).epsilon(_DELTA)

    peers = {"dp_accounting PLD, pessimistic": 0.05, "dp_accounting RDP": 0.3, "prv_accountant": 0.05,
             "riskcal CTD": 0.05, "opacus PRV": 0.05, "opacus RDP": 0.3}
    question = _question("epsilon")
    return ours, {name: Peer(_accountant(name, question), error) for name, error in peers.items()}


def table_of_trainings():
    sigma, rate, count = np.array([(0.8, 0.01, 1000), (1.2, 0.03, 5000), (2.0, 0.1, 20000)]).T

    def by_dp_accounting():
        from dp_accounting.pld import privacy_loss_distribution as pld

        return lambda: [
            pld.from_gaussian_mechanism(s, sampling_prob=q, value_discretization_interval=1e-3, use_connect_dots=True)
            .self_compose(int(n)).get_epsilon_for_delta(1e-5) for s, q, n in zip(sigma, rate, count, strict=True)
        ]

    def with_prv():
        import prv_accountant as prv

        return lambda: [
            prv.PRVAccountant([prv.PoissonSubsampledGaussianMechanism(q, s)], 0.05, 1e-8, [int(n)])
            .compute_epsilon(1e-5, [int(n)])[2] for s, q, n in zip(sigma, rate, count, strict=True)
        ]

    return lambda: composed_epsilon(sigma, rate, count.astype(int), 1e-5), {
        "dp_accounting PLD": Peer(by_dp_accounting, 1e-2), "prv_accountant": Peer(with_prv, 2e-2),
    }


def allocation():
    sigma, steps, epsilon = 1.0, 1000, 0.02

    def by_samples():
        return plain_allocation(sigma, steps, epsilon).mean()

    values = plain_allocation(sigma, steps, epsilon)
    tolerance = 5.0 * values.std() / math.sqrt(SAMPLES) / values.mean()
    return lambda: RandomAllocation(sigma, steps).delta(epsilon, direction="forward"), {
        "NumPy, 20,000 samples": Peer(lambda: by_samples, tolerance),
    }


def allocation_epsilon():
    def with_package():
        import PLD_accounting as peer

        params = peer.PrivacyParams(sigma=1.0, num_steps=1000, delta=1e-10)
        config = peer.AllocationSchemeConfig(loss_discretization=1e-2, tail_truncation=1e-13)
        return lambda: peer.gaussian_allocation_epsilon_configurable(params=params, config=config)

    return lambda: RandomAllocation(1.0, 1000).epsilon(1e-10, direction="forward"), {
        "PLD_accounting": Peer(with_package, 0.2),
    }


def shuffled():
    local, n, epsilon = 2.0, 10_000, 0.125
    return lambda: compose(Shuffled(local, n)).delta(epsilon), {
        "SciPy binomial sums": Peer(lambda: lambda: shuffled_by_sums(local, n, epsilon), 1e-6),
    }


def trade_off():
    alpha = np.concatenate([np.geomspace(1e-10, 0.5, 5000), 1 - np.geomspace(1e-10, 0.5, 5000)])

    def with_riskcal():
        from dp_accounting.pld import privacy_loss_distribution as pld
        from riskcal import analysis

        def call():
            many = pld.from_gaussian_mechanism(
                2.0, sampling_prob=0.01, value_discretization_interval=1e-4, use_connect_dots=True).self_compose(1000)
            return analysis.get_beta_from_pld(many, alpha)

        return call

    return lambda: trade_off_curve(compose(PoissonSampledGaussian(2.0, 0.01), 1000), None, alpha).beta, {
        "riskcal and dp_accounting": Peer(with_riskcal, 0.02),
    }


TASKS = (
    # at least an exponential and two normal distribution functions a setting
    Task("delta, 1,000,000 Gaussian mechanisms", many_deltas, "exp", 3e6),
    Task("epsilon, 1,000 Gaussian mechanisms", many_epsilons),
    Task("sigma for (1, 1e-5), Gaussian mechanism", noise_for_a_target, truth=(3.73063163481594, 1e-13)),
    Task("sigma for 0.1 bit, 21 values", noise_for_information, cold=True, truth=(1.16618639010826510130566, 1e-15)),
    Task("delta, 3,000 steps of training", delta_of_training, cold=True,
         truth=(math.exp(-9.976374281896600782), 2e-15)),
    Task("epsilon, 3,000 steps of training", epsilon_of_training, cold=True),
    Task("epsilon, table of three trainings", table_of_trainings, cold=True),
    Task("trade-off curve, 1,000 steps, 10,000 levels", trade_off, cold=True),
    Task("delta, random allocation to 1,000 steps", allocation, cold=True),
    Task("epsilon, random allocation to 1,000 steps", allocation_epsilon, cold=True),
    Task("delta, 10,000 shuffled reports", shuffled, cold=True),
)
