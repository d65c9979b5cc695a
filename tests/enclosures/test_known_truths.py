"""Shipped truths of fastpriv.datasets against closed forms, ball arithmetic, grids, samples and other accountants."""

import importlib.util
import math
from collections import Counter
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from fastpriv import datasets
from oracles import gaussian_mechanism, mixture
from oracles.mixtures_nd import Law, closed_form, grid_integral, log_density, number

TASKS = {task.name: task for task in datasets.mixture_tasks()}
COMPOSITIONS = {task.name: task for task in datasets.composition_tasks()}
TOOL = Path(__file__).parents[2] / "tools" / "truths.py"


@pytest.fixture(scope="module")
def tool():
    if not TOOL.exists():
        pytest.skip("needs the source tree")
    spec = importlib.util.spec_from_file_location("truths", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def law(p, indices=None):
    """The mixture for oracles, or its marginal."""
    d, k = p.dimension, len(p)
    index = np.arange(d) if indices is None else np.asarray(indices)
    means = p.means.reshape(k, d)[:, index]
    if p.covariances is None:
        return Law(p.weights, means, np.broadcast_to(p.sigmas.reshape(k, -1), (k, d))[:, index])
    return Law(p.weights, means, None, p.covariances[:, index[:, None], index])


def line(p):
    return p.weights, p.means, p.sigmas


def names_of(*beginnings):
    return [name for name in TASKS if name.startswith(beginnings)]


def contains(truth, value, slack=0.0):
    assert truth.lower - slack <= value <= truth.upper + slack, (truth, value)


def test_the_tasks_are_as_many_and_as_narrow_as_documented():
    assert len(TASKS) == 60
    assert Counter(task.quantity for task in TASKS.values()) == {
        "mutual_information": 26, "label_information": 10, "kl_divergence": 9, "total_variation": 7, "entropy": 8}
    assert {task.p.dimension for task in TASKS.values()} >= {1, 2, 3, 4, 5, 6, 10, 20, 25, 50}
    for task in TASKS.values():
        if task.truth.kind == "statistical":
            assert task.truth.confidence == 0.999
            assert task.truth.width <= 4e-5
        else:
            assert task.truth.width <= 1e-11
            assert task.truth.kind in ("exact", "certified")
        if task.quantity != "entropy":
            assert task.truth.lower >= 0.0
    assert len(COMPOSITIONS) == 300
    for task in COMPOSITIONS.values():
        assert task.truth.lower > 0.0
        assert task.truth.width <= 1e-9
        assert task.truth.kind == "certified"
        assert task.truth.width <= 1e-7 * task.truth.lower
        assert task.log_truth.value == pytest.approx(math.log(task.truth.value), rel=1e-9, abs=1e-9)
    assert min(task.truth.value for task in COMPOSITIONS.values()) < 1.1e-30
    assert max(step.count for task in COMPOSITIONS.values() for step in task.steps) == 10**6
    assert min(step.rate for task in COMPOSITIONS.values() for step in task.steps) == 1e-6


def test_a_quantity_selects_its_tasks_and_a_wrong_one_is_refused():
    assert {task.quantity for task in datasets.mixture_tasks("entropy")} == {"entropy"}
    with pytest.raises(ValueError, match=r"quantity must be .*label_information.*got 'mutual information'"):
        datasets.mixture_tasks("mutual information")


def test_samples_have_the_shapes_and_types_that_estimators_take():
    x, y = TASKS["gaussian-factor-1-24"].sample(7, rng=1)
    assert (x.shape, y.shape) == ((7, 1), (7, 24))
    x, label = TASKS["labels-widths-1"].sample(200, rng=1)
    assert (x.shape, label.shape, label.dtype.kind, set(label)) == ((200, 1), (200,), "i", {0, 1, 2})
    x, y = TASKS["kl-one-1"].sample(7, rng=1)
    assert (x.shape, y.shape) == ((7, 1), (7, 1))
    (x,) = TASKS["entropy-dense-4"].sample(0, rng=1)
    assert x.shape == (0, 4)
    for name in ("labels-widths-1", "kl-one-1"):
        assert all(map(np.array_equal, TASKS[name].sample(5, rng=3), TASKS[name].sample(5, rng=3)))
        with pytest.raises(ValueError, match="size must be an integer of at least 0; got -1"):
            TASKS[name].sample(-1)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if TASKS[name].p.dimension <= 6 else pytest.mark.slow) for name in names_of("gaussian")
])
def test_joint_normal_distributions(name):
    """I(X; Y) = h(X) + h(Y) - h(X, Y), by determinants of 40 digits."""
    task, d = TASKS[name], TASKS[name].p.dimension
    x, y = range(task.x_dimension), range(task.x_dimension, d)
    with mpmath.workdps(40):
        terms = [closed_form("entropy", *[law(task.p, index)] * 2)[0] for index in (x, y, None)]
        contains(task.truth, terms[0] + terms[1] - terms[2])


@pytest.mark.parametrize("name", ["kl-normal-5", "entropy-normal-50"])
def test_normal_distributions(name):
    task = TASKS[name]
    contains(task.truth, closed_form(name.split("-")[0], law(task.p), law(task.q or task.p))[0], 1e-25)


def output_and_noise(p, indices):
    """Output Y of a channel of one input X as a mixture on the line, and the variance of its noise, exact."""
    x, y = indices
    stack = np.broadcast_to(p.covariances, (len(p), *p.covariances.shape[1:]))
    noise = {Fraction(c[y, y]) - Fraction(c[x, y]) ** 2 / Fraction(c[x, x]) for c in stack}
    assert len(noise) == 1
    return (p.weights, p.means[:, y], np.sqrt(stack[:, y, y])), noise.pop()


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["channel-two-1-1", "channel-skewed-1-1", "channel-outliers-1-1", "channel-four-1-1",
                                  "channel-two-2-2", "channel-sum-9-1", "channel-repeated-1-16"])
def test_channels(name):
    """h(Y) - h(N) in ball arithmetic, from the joint distribution that the task ships."""
    task = TASKS[name]
    p, dx = task.p, task.x_dimension
    if name.startswith("channel-sum"):  # the sum of nine inputs is one input
        p = p.affine(np.block([[np.ones((1, 9)), np.zeros((1, 1))], [np.zeros((1, 9)), np.ones((1, 1))]]))
        dx = 1
    elif name.startswith("channel-repeated"):  # the mean of the outputs is sufficient
        p = p.affine(np.block([[np.ones((1, 1)), np.zeros((1, 16))], [np.zeros((1, 1)), np.full((1, 16), 1 / 16)]]))
    total = mpmath.mpf(0)
    with mpmath.workdps(30):
        for i in range(dx):
            output, noise = output_and_noise(p, (i, dx + i))
            merged = {}
            for w, m, s in zip(*output, strict=True):  # components of the other coordinate
                merged[m, s] = merged.get((m, s), 0.0) + w
            weights, points = list(merged.values()), list(merged)
            h = number(mixture.entropy((weights, [m for m, _ in points], [s for _, s in points])))
            variance = mpmath.mpf(noise.numerator) / noise.denominator
            total += h - mpmath.log(2 * mpmath.pi * mpmath.e * variance) / 2
        contains(task.truth, total)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["kl-one-1", "kl-outliers-1", "tv-one-1", "tv-close-1", "entropy-one-1",
                                  "entropy-narrow-1", "labels-two-1", "labels-widths-1", "labels-levels-1"])
def test_mixtures_on_the_line(name):
    task, quantity = TASKS[name], TASKS[name].quantity
    if quantity == "label_information":
        with mpmath.workdps(30):
            noise = mpmath.fsum(float(w) * mpmath.log(2 * mpmath.pi * mpmath.e * mpmath.mpf(s) ** 2) / 2
                                for w, s in zip(task.p.weights, task.p.sigmas.tolist(), strict=True))
            contains(task.truth, number(mixture.entropy(line(task.p))) - noise)
    else:
        arguments = [line(p) for p in (task.p, task.q) if p is not None]
        contains(task.truth, number(getattr(mixture, quantity)(*arguments)))


def log_density_of_task(task, x, y):
    """What the quantity is a mean of under the distribution of the samples."""
    if task.quantity == "mutual_information":
        d = task.p.dimension
        joint = log_density(law(task.p), np.hstack([x, y]))
        return joint - log_density(law(task.p, range(task.x_dimension)), x) - log_density(
            law(task.p, range(task.x_dimension, d)), y)
    of_p, own = log_density(law(task.p), x), law(task.p)
    if task.quantity == "label_information":
        components = np.stack([log_density(Law(np.ones(1), own.means[i:i + 1], own.sigmas[i:i + 1]), x)
                               for i in range(len(own.weights))])
        return components[y, np.arange(len(x))] - of_p
    if task.quantity == "entropy":
        return -of_p
    ratio = of_p - log_density(law(task.q), x)
    return ratio if task.quantity == "kl_divergence" else np.maximum(-np.expm1(-ratio), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_truths_are_means_over_the_samples(name):
    """Within five standard errors, by densities that are none of the package; the sampler is tested too."""
    task = TASKS[name]
    arrays = task.sample(20_000, rng=2)
    values = log_density_of_task(task, *arrays, *([None] if len(arrays) == 1 else []))
    error = values.std() / math.sqrt(len(values))
    assert error < 0.1
    contains(task.truth, values.mean(), 5 * error + 1e-12)


@pytest.mark.slow
def test_samples_of_q_are_of_q():
    task = TASKS["kl-two-2"]
    _, y = task.sample(20_000, rng=3)
    values = -log_density(law(task.q), y)
    exact = datasets.MixtureTask(name="q", quantity="entropy", description="", truth=task.truth, p=task.q)
    (again,) = exact.sample(20_000, rng=4)
    other = -log_density(law(task.q), again)
    assert abs(values.mean() - other.mean()) < 5 * math.hypot(values.std(), other.std()) / math.sqrt(20_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*names_of("mixture-cross", "mixture-fence", "mixture-ring", "mixture-tilted"),
                                  "labels-circle-2", "kl-two-2", "entropy-circle-2"])
def test_sampled_truths_contain_integrals_on_a_grid(name):
    """By the trapezoidal rule in two dimensions, a thousand times as accurate as the sampled truth."""
    task = TASKS[name]
    p = law(task.p)

    def integrand(rows):
        density = np.exp(log_density(p, rows))
        if task.quantity == "label_information":
            terms = [log_density(Law(np.ones(1), p.means[i:i + 1], p.sigmas[i:i + 1]), rows)
                     for i in range(len(p.weights))]
            posterior = np.stack([w * np.exp(t) for w, t in zip(p.weights, terms, strict=True)])
            with np.errstate(invalid="ignore"):
                mean = (posterior * np.stack(terms)).sum(axis=0)
            return mean - density * log_density(p, rows)
        return density * log_density_of_task(task, *((rows[:, :1], rows[:, 1:]) if task.x_dimension else (rows, None)))

    value, error = grid_integral(integrand, [p], 0.04)
    assert error < 1e-8
    contains(task.truth, float(value), 1e-8)


def gaussian_only(task):
    return all(step.mechanism == "gaussian" and step.rate == 1.0 for step in task.steps)


def test_compositions_of_gaussian_noise_are_one_gaussian():
    """At all epsilons: delta is that of one Gaussian of the summed precision, in ball arithmetic."""
    tasks = [task for task in COMPOSITIONS.values() if gaussian_only(task)]
    assert len(tasks) >= 36
    for task in tasks[::3]:
        squared = sum(Fraction(step.count) / Fraction(step.scale) ** 2 for step in task.steps)
        radius = lambda squared=squared: (gaussian_mechanism.arb(squared.numerator) / squared.denominator).sqrt() / 2
        contains(task.log_truth, number(gaussian_mechanism.log_delta_of(radius, task.epsilon)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sampled-gaussian-001", "sampled-gaussian-026", "sampled-gaussian-053",
                                  "laplace-001", "laplace-006", "laplace-013", "sampled-laplace-001",
                                  "sampled-laplace-007", "sampled-laplace-015", "mixed-038", "mixed-002"])
def test_the_accountant_of_dp_accounting_brackets_the_truth(name):
    """By its pessimistic and its optimistic distribution of losses, of both directions."""
    dp = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    task = COMPOSITIONS[name]
    deltas = []
    for pessimistic in (True, False):
        total = None
        for step in task.steps:
            make = getattr(dp, f"from_{step.mechanism}_mechanism")
            one = make(step.scale, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4,
                       sampling_prob=step.rate).self_compose(step.count)
            total = one if total is None else total.compose(one)
        deltas.append(total.get_delta_for_epsilon(task.epsilon))
    upper, lower = deltas
    assert lower - 1e-12 <= task.truth.value <= upper + 1e-12
    assert upper < 1.05 * task.truth.value
    assert lower > 0.6 * task.truth.value


@pytest.mark.slow
def test_the_files_have_the_settings_and_truths_of_the_script(tool):
    """All settings, and truths of every kind; densities may differ in the last bits between processors."""
    names = ("gaussian-factor-1-24", "channel-mixed-25-25", "labels-grid-2", "labels-circle-2", "kl-line-50",
             "tv-normal-10", "entropy-product-3")
    for definition in tool.mixture_definitions():
        task = TASKS[definition.name]
        assert (task.p, task.q, task.quantity) == (definition.p, definition.q, definition.quantity)
        assert (task.x_dimension, task.description) == (definition.x_dimension, definition.description)
        if task.name in names:
            computed, truth = definition.truth(), task.truth
            slack = 1e-13 if truth.kind != "statistical" else 1e-9
            assert [computed.value, computed.lower, computed.upper] == pytest.approx(
                [truth.value, truth.lower, truth.upper], rel=slack, abs=slack)
            assert computed.kind == truth.kind


def test_the_files_have_the_compositions_of_the_script(tool):
    steps = [tuple(map(tuple, steps)) for _, steps, _, _ in tool.composition_settings() for _ in range(4)]
    assert steps == [tuple(map(astuple, task.steps)) for task in COMPOSITIONS.values()]


@pytest.mark.parametrize("name", ["gaussian-008", "sampled-gaussian-041", "laplace-010", "mixed-019"])
def test_the_script_computes_the_shipped_deltas(tool, name):
    task = COMPOSITIONS[name]
    entry = tool.composition_entry(name, list(map(astuple, task.steps)), task.direction, task.epsilon)
    truth = task.truth
    numbers = [entry["truth"][end] for end in ("value", "lower", "upper")]
    assert numbers == pytest.approx([truth.value, truth.lower, truth.upper], rel=1e-11)


def test_the_script_refuses_products_that_are_no_doubles(tool):
    with pytest.raises(ValueError, match="a product is no double"):
        tool.exact_product([[0.1]], [[0.1]])
    with pytest.raises(ValueError, match="no integer"):
        tool.line_information(tool.Line((1.0,), (0,), (7,)))
