"""What the sampled quantities refuse, and in which words."""

import dataclasses
import subprocess
import sys
import typing

import numpy as np
import pytest

import fastpriv
from fastpriv import (
    Density,
    DomainError,
    GaussianMixture,
    Pmf,
    entropy,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from fastpriv.distributions import LogRatio
from fastpriv.divergences import label_information, log_hockey_stick_divergence
from fastpriv.errors import ShapeError
from fastpriv.sampling import Sampling
from fastpriv.sampling.options import INTERVALS, SIDES, IntervalKind, SamplingOptions, Side

P = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]])
Q = GaussianMixture([0.25, 0.75], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]])
SPACE = GaussianMixture([1.0], [[0.0, 0.0, 0.0]], 1.0)
CALLS = {
    "kl": lambda p=P, q=Q, **k: kl_divergence(p, q, **k),
    "js": lambda p=P, q=Q, **k: jensen_shannon(p, q, **k),
    "tv": lambda p=P, q=Q, **k: total_variation(p, q, **k),
    "hockey-stick": lambda p=P, q=Q, **k: hockey_stick_divergence(p, q, 1.0, **k),
    "log hockey-stick": lambda p=P, q=Q, **k: log_hockey_stick_divergence(p, q, 1.0, **k),
    "renyi": lambda p=P, q=Q, **k: renyi_divergence(p, q, 0.5, **k),
}
ONE_LAW = {"entropy": lambda **k: entropy(P, **k), "label": lambda **k: label_information(P, **k)}
BRIEF = {"max_samples": 2000, "rtol": 0.0, "rng": 1, "confidence": 1 - 1e-6}

WRONG = [
    *(("confidence", value, "confidence must be between 0 and 1") for value in (0.0, 1.0, -0.5, 1.5, np.nan, "high")),
    ("confidence", [0.9, 0.95], "confidence must be a single number"),
    ("side", "left", "side must be one of both, lower, upper; got 'left'"),
    ("side", None, "side must be one of both, lower, upper; got None"),
    *(("rtol", value, "rtol must be at least 0 and finite") for value in (-1e-3, np.nan, np.inf)),
    *(("atol", value, "atol must be at least 0 and finite") for value in (-1.0, np.nan, np.inf)),
    *(("max_samples", value, "max_samples must be") for value in (0, 7, -5, 1.5, np.nan, np.inf, 2**60, True, "many")),
    *(("max_seconds", value, "max_seconds must be positive") for value in (0.0, -1.0, np.nan)),
    *(("method", value, "method must be 'auto' or name a distr") for value in ("fast", "", None, 3, "sobol sobol")),
    ("interval", "normal", "interval must be one of replicates, guaranteed; got 'normal'"),
    *(("rng", value, "rng must be None, an integer of at least 0") for value in (-1, 1.5, "seed", [1, -2])),
    *(("n_jobs", value, "n_jobs must be a non-zero integer or None") for value in (0, 1.5, "all")),
    ("progress", 3, "progress must be True or False, or a function; got 3. A function is called with the number of p"),
    ("confidence", 95, "got 95.0. Divide percentages by 100"),
    ("max_seconds", None, "max_seconds must be positive; got None. Pass seconds, or infinity for no limit"),
]


def test_the_keywords_are_the_fields_of_sampling():
    fields, keywords = typing.get_type_hints(Sampling), typing.get_type_hints(SamplingOptions)
    assert fields == keywords
    assert list(fields) == list(keywords) == [field.name for field in dataclasses.fields(Sampling)]
    assert not SamplingOptions.__required_keys__
    for name in SIDES, INTERVALS:
        assert set(typing.get_args(Side)) | set(typing.get_args(IntervalKind)) >= set(name)


def test_keywords_override_the_fields_of_sampling():
    sampling = Sampling(**BRIEF, side="upper")
    for call in (*CALLS.values(), *ONE_LAW.values()):
        one, other = call(sampling=sampling), call(**BRIEF, side="upper")
        assert (one.value, one.lower, one.upper, one.cost) == (other.value, other.lower, other.upper, other.cost)
    assert kl_divergence(P, Q, sampling=sampling, confidence=0.5, side="lower").confidence == 0.5
    with pytest.raises(DomainError, match="must be a Sampling; got 0.01. Build a fastpriv.sampling.Sampling"):
        kl_divergence(P, Q, sampling=0.01)
    assert Sampling(max_samples=1e6) == Sampling(max_samples=10**6)


@pytest.mark.parametrize(("name", "near"), [("rtoll", "rtol"), ("certifed", "certified"), ("smpling", "sampling")])
def test_an_unknown_keyword_is_refused_as_python_does(name, near):
    said = rf"kl_divergence\(\) got an unexpected keyword argument '{name}'. Did you mean '{near}'\?"
    with pytest.raises(TypeError, match=said):
        kl_divergence(P, Q, **{name: 1})
    with pytest.raises(TypeError, match=r"entropy\(\) got an unexpected keyword argument 'q'$"):
        entropy(P, q=Q)


@pytest.mark.parametrize(("keyword", "value", "message"), WRONG, ids=lambda x: str(x)[:20])
def test_keywords_out_of_range_are_refused_by_every_quantity(keyword, value, message):
    for call in (*CALLS.values(), *ONE_LAW.values()):
        with pytest.raises((DomainError, ShapeError), match=message):
            call(**BRIEF | {keyword: value})


def test_keywords_are_checked_even_where_the_answer_is_exact():
    one = GaussianMixture.single([0.0, 1.0], 1.0)
    with pytest.raises(DomainError, match="confidence must be between 0 and 1"):
        kl_divergence(one, one, confidence=2.0)
    line = GaussianMixture.single(0.0, 1.0)
    with pytest.raises(DomainError, match="method must be 'auto' or name a distribution"):
        kl_divergence(line, line, method="best")
    said = r"method must name a distribution of this pair \(balanced, direct\); got 'tilted'. Take one of these."
    with pytest.raises(DomainError, match=said):
        kl_divergence(P, Q, method="tilted")


@pytest.mark.parametrize("name", CALLS)
def test_laws_must_be_laws_of_one_dimension(name):
    call = CALLS[name]
    with pytest.raises(ShapeError, match="q must have the dimension of p, 2; got 3"):
        call(P, SPACE)
    with pytest.raises(ShapeError, match="q must have the dimension of p, 2; got 1"):
        call(P, GaussianMixture.single(0.0, 1.0))
    for wrong in (None, [0.5, 0.5], "p", Pmf([0.0, 1.0], [0.5, 0.5])):
        with pytest.raises(DomainError, match="p must be a GaussianMixture or a Density"):
            call(wrong, Q)
        with pytest.raises(DomainError, match="q must be a GaussianMixture or a Density"):
            call(P, wrong)


@pytest.mark.parametrize("epsilon", [np.nan, [0.0, np.nan], "one", 1j])
@pytest.mark.parametrize("call", [hockey_stick_divergence, log_hockey_stick_divergence])
def test_epsilons_must_be_numbers(call, epsilon):
    with pytest.raises(DomainError, match="epsilon must be"):
        call(P, Q, epsilon)


@pytest.mark.parametrize("order", [0.0, -1.0, np.nan, "two"])
def test_orders_must_be_positive(order):
    with pytest.raises(DomainError, match="order must be"):
        renyi_divergence(P, Q, order)


def test_hostile_epsilons_are_answered():
    empty = hockey_stick_divergence(P, Q, np.zeros((0, 3)), **BRIEF)
    assert empty.shape == (0, 3)
    endless = hockey_stick_divergence(P, Q, np.inf)
    assert endless.value == endless.upper == 0
    assert log_hockey_stick_divergence(P, Q, np.inf).value == -np.inf
    block = hockey_stick_divergence(P, Q, [[0.0, 1e-300], [1e4, 1e300]], **BRIEF)
    assert block.shape == (2, 2)
    assert (block.upper[1] < 1e-300).all()
    assert (block.lower >= 0).all()


COVARIANCES = [
    ([[1.0, 2.0], [2.0, 1.0]], DomainError),
    ([[0.0, 0.0], [0.0, 1.0]], DomainError),
    ([[1.0, 1.0], [1.0, 1.0]], DomainError),
    ([[1.0, 0.5], [0.0, 1.0]], DomainError),
    ([[np.nan, 0.0], [0.0, 1.0]], DomainError),
    ([[np.inf, 0.0], [0.0, 1.0]], DomainError),
    ([[-1.0, 0.0], [0.0, 1.0]], DomainError),
    ([1.0, 1.0], ShapeError),
    (np.eye(3), ShapeError),
    (np.ones((3, 2, 2)), ShapeError),
    (np.zeros((0, 0)), ShapeError),
]


@pytest.mark.parametrize(("covariances", "error"), COVARIANCES, ids=range(len(COVARIANCES)))
def test_covariances_must_be_positive_definite(covariances, error):
    with pytest.raises(error, match="covariances must be"):
        GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], covariances=covariances)


@pytest.mark.parametrize("sigmas", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0], np.ones((3, 2)), np.ones((2, 3)), 1e-320])
def test_sigmas_must_be_positive_and_fit(sigmas):
    with pytest.raises((DomainError, ShapeError), match="sigmas must"):
        GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], sigmas)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_extreme_units_change_nothing(scale):
    moved = [GaussianMixture(law.weights, law.means * scale, law.sigmas * scale) for law in (P, Q)]
    for call in (kl_divergence, jensen_shannon, total_variation):
        np.testing.assert_allclose(call(*moved, **BRIEF).value, call(P, Q, **BRIEF).value, rtol=1e-9)


def test_one_scale_far_from_the_others_is_right_or_refused():
    narrow = GaussianMixture([1.0], [[0.0, 0.0]], [[1e-150, 1.0]])
    kl = kl_divergence(P, GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [[1e-150, 1.0]]), **BRIEF)
    assert kl.lower > 1e200  # finite in truth, about 1e300
    kl = kl_divergence(narrow, Q, **BRIEF)
    assert 300 < kl.lower <= kl.upper < 400  # log(1e150) = 345 and a little


# densities only their owner knows


def uniform(high):
    def log_density(x):
        inside = (x[:, 0] >= 0) & (x[:, 0] < high)
        return np.where(inside, -np.log(high), -np.inf)

    def sampler(rng, n):
        return rng.random((n, 1)) * high

    return Density(log_density, sampler, dimension=1, vectorized=True)


def test_where_q_is_zero_infinity_is_the_answer():
    wide, narrow = uniform(2.0), uniform(1.0)
    kl = kl_divergence(wide, narrow, **BRIEF)
    assert kl.value == np.inf
    assert kl.upper == np.inf
    with pytest.warns(fastpriv.errors.SamplingWarning, match="have the same log ratio"):
        back = kl_divergence(narrow, wide, **BRIEF)
    assert back.lower <= np.log(2) <= back.upper
    stick = hockey_stick_divergence(wide, narrow, [0.0, 5.0, 50.0], **BRIEF)
    assert ((stick.lower <= 0.5 + 1e-12) & (stick.upper >= 0.5 - 1e-12)).all()
    none = hockey_stick_divergence(narrow, wide, 1.0, **BRIEF)
    assert none.lower == 0
    tv = total_variation(wide, narrow, **BRIEF)
    assert tv.lower <= 0.5 <= tv.upper
    js = jensen_shannon(wide, narrow, **BRIEF)
    want = (0.5 * np.log(2) + 0.5 * np.log(2 / 3) + np.log(4 / 3)) / 2
    assert js.lower <= want <= js.upper
    assert renyi_divergence(wide, narrow, 2.0, **BRIEF).upper == np.inf


def faulty(value, where=0.5, *, shape=None):
    def log_density(x):
        out = -np.abs(x[:, 0]) - np.log(2.0)
        out = np.where(x[:, 0] > where, value, out)
        return out if shape is None else out[:shape]

    def sampler(rng, n):
        return rng.laplace(size=(n, 1))

    return Density(log_density, sampler, dimension=1, vectorized=True)


GOOD = faulty(0.0, np.inf)


@pytest.mark.parametrize("law", [faulty(np.nan), faulty(np.inf)], ids=["nan", "inf"])
def test_numbers_that_are_no_log_densities_are_named(law):
    for p, q in ((law, GOOD), (GOOD, law)):
        for call in (CALLS["kl"], CALLS["js"], CALLS["tv"], CALLS["hockey-stick"]):
            with pytest.raises(DomainError, match="log_density must be a number"):
                call(p, q, **BRIEF)


def test_nan_that_hides_in_the_tail_is_an_error_not_an_answer():
    with pytest.raises(DomainError, match="log_density must be a number"):
        kl_divergence(faulty(np.nan, 6.0), GOOD, max_samples=200_000, rtol=0.0, rng=1)


def test_wrong_shapes_of_user_functions_are_named():
    with pytest.raises(ShapeError, match="log_density must return one number a point"):
        kl_divergence(faulty(0.0, np.inf, shape=3), GOOD, **BRIEF)
    lying = Density(lambda x: -np.abs(x[:, 0]), lambda rng, n: rng.random((n + 1, 1)), dimension=1, vectorized=True)
    with pytest.raises(ShapeError, match="sampler must return n points as an array of shape"):
        kl_divergence(lying, GOOD, **BRIEF)
    endless = Density(lambda x: -np.abs(x[:, 0]), lambda rng, n: np.full((n, 1), np.inf), dimension=1, vectorized=True)
    with pytest.raises(DomainError, match="sampler must draw finite points"):
        kl_divergence(endless, GOOD, **BRIEF)


def test_a_law_without_a_sampler_can_only_be_the_second_but_for_total_variation():
    silent = Density(lambda x: -np.abs(x[:, 0]) - np.log(2.0), dimension=1, vectorized=True)
    kl = kl_divergence(GaussianMixture.single(0.0, 1.0), silent, **BRIEF | {"max_samples": 20_000})
    want = -0.5 * np.log(2 * np.pi * np.e) + np.log(2.0) + np.sqrt(2 / np.pi)
    assert kl.lower <= want <= kl.upper
    normal = GaussianMixture.single(0.0, 1.0)
    for call in (jensen_shannon, kl_divergence, hockey_stick_divergence, renyi_divergence):
        with pytest.raises(DomainError, match="p must have a sampler for this quantity; got none. Pass Density.log_de"):
            call(silent, normal, **BRIEF)
    for call in (jensen_shannon, lambda p, q, **k: kl_divergence(p, q, both=True, **k)):
        with pytest.raises(DomainError, match="q must have a sampler for this quantity; .* or LogRatio.*sampler_q="):
            call(normal, silent, **BRIEF)
    enough = BRIEF | {"max_samples": 20_000}
    either = [total_variation(*laws, **enough) for laws in ((silent, normal), (normal, silent))]
    assert either[0].value == either[1].value
    x = np.linspace(-20, 20, 400_001)
    gap = np.abs(np.exp(-np.abs(x)) / 2 - np.exp(-x * x / 2) / np.sqrt(2 * np.pi))
    assert either[0].lower <= np.trapezoid(gap, x) / 2 <= either[0].upper


def test_a_sampler_that_ignores_its_generator_is_named():
    state = np.random.default_rng(1)

    def log_density(x):
        return -np.abs(x[:, 0]) - np.log(2.0)

    fickle = Density(log_density, lambda rng, n: state.laplace(size=(n, 1)), dimension=1, vectorized=True)
    with pytest.raises(DomainError, match="sampler must"):
        kl_divergence(fickle, GOOD, **BRIEF)


@pytest.mark.parametrize("points", ["sobol", "antithetic", "plain"])
def test_a_guaranteed_interval_does_not_pretend_to_other_points(points):
    with pytest.raises(DomainError, match="method must leave the points open for interval='guaranteed'.*; got 'direct"):
        kl_divergence(P, Q, method=f"direct {points}", interval="guaranteed")
    assert "random" in kl_divergence(P, Q, method="balanced random", **BRIEF | {"interval": "guaranteed"}).method


def test_a_function_of_the_other_form_is_told_how_to_say_so():
    def many(x):
        return -np.abs(x).sum(axis=1) - np.log(4.0)

    def one(x):
        return float(-np.abs(x @ np.ones(2)))

    def laplace(rng, n):
        return rng.laplace(size=(n, 2))

    with pytest.raises(DomainError, match=r"If it takes points of shape \(n, d\), pass vectorized=True"):
        kl_divergence(Density(many, laplace, dimension=2), P, **BRIEF)
    with pytest.raises(DomainError, match="If it takes one point, drop vectorized=True"):
        kl_divergence(Density(one, laplace, dimension=2, vectorized=True), P, **BRIEF)


def test_what_follows_a_log_ratio_is_given_by_name():
    ratio = LogRatio(lambda x: x[:, 0] - 0.5, lambda rng, n: 1 + rng.standard_normal(n), dimension=1, vectorized=True)
    for call in (hockey_stick_divergence, renyi_divergence):
        with pytest.raises(DomainError, match="Pass the ratio alone, and what follows by its name: epsilon=, order="):
            call(ratio, 2.0)


@pytest.mark.slow
def test_the_keywords_are_explained_where_docstrings_say():
    code = "import fastpriv; assert 'max_seconds' in fastpriv.sampling.Sampling.__doc__"
    subprocess.run([sys.executable, "-c", code], check=True)
    calls = (entropy, kl_divergence, total_variation)
    assert all("help(fastpriv.sampling.Sampling)" in call.__doc__ for call in calls)


def test_variances_at_the_edge_of_doubles_only_change_the_units():
    narrow = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], covariances=[[1e-300, 5e-151], [5e-151, 1.0]])
    wide = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]])
    for call in (total_variation, hockey_stick_divergence):
        found = call(narrow, wide, **BRIEF)
        assert found.value == found.upper == 1.0
    assert renyi_divergence(narrow, wide, 2.0, **BRIEF).upper > 345.0
    assert renyi_divergence(wide, narrow, 2.0, **BRIEF).value == np.inf
    other = GaussianMixture([0.25, 0.75], [[0.5, 0.0], [1.0, 1.0]], covariances=[[1.0, -0.5], [-0.5, 1.0]])
    base = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], covariances=[[1.0, 0.5], [0.5, 1.0]])
    for scale in (2.0**-490, 2.0**490):
        for call in (kl_divergence, total_variation, hockey_stick_divergence):
            scaled = call(base.affine([scale, 1.0]), other.affine([scale, 1.0]), **BRIEF)
            assert scaled.value == pytest.approx(call(base, other, **BRIEF).value, rel=1e-13)


def test_a_sampled_upper_end_below_the_range_of_doubles_is_not_0():
    found = hockey_stick_divergence(P, Q, [1e3, np.inf], **BRIEF)
    assert found.upper.tolist() == [5e-324, 0.0]


def test_the_sampled_names_are_public():
    names = {"distributions": "LogRatio", "divergences": "label_information", "errors": "SamplingWarning"}
    for room, name in names.items():
        assert name in dir(getattr(fastpriv, room))
