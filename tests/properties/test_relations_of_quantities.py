"""Brackets that contradict a relation between quantities of a channel are never handed out as certified."""

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from fastpriv import Channel, Estimate, RandomizedResponse, notions
from fastpriv.channels import ProductChannel
from fastpriv.notions.bayesian import larger_side
from fastpriv.notions.discrete import channel_with_prior, quantities, stack_quantities

RNG = np.random.default_rng(20)


def random_channel(n, m):
    matrix = RNG.dirichlet(np.full(m, 0.3), n)
    return RNG.dirichlet(np.full(n, 0.5)), Channel(matrix)


def false_brackets(monkeypatch, name, value):
    """The public functions get this number, certified to 1e-12, for one quantity, and what is right for the others."""
    right = stack_quantities.brackets

    def brackets(model, names, **options):
        found = right(model, names, **options)
        if name in found:
            found[name] = found[name]._replace(value=value, lower=value * (1 - 1e-12), upper=value * (1 + 1e-12))
        return found

    monkeypatch.setattr(stack_quantities, "brackets", brackets)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_false_information_of_a_written_channel_loses_its_claim(monkeypatch, factor):
    prior, channel = random_channel(64, 64)
    truth = notions.cd_lmip(prior, channel)
    assert truth.kind == "certified"
    false_brackets(monkeypatch, "cd_lmip", truth.value * factor)
    got = notions.cd_lmip(prior, channel)
    assert got.kind == "heuristic"
    assert "contradicts" in got.method


@pytest.mark.parametrize(
    ("name", "factor"),
    [("cd_lmip", 50.0), ("pointwise_lmip", 1e3), ("pointwise_lmip", 1e-3), ("xi_plus", 1e-3), ("ldp_on_support", 1e-3),
     ("ldp_epsilon", 0.5), ("maximal_leakage", 1e-3), ("maximal_leakage", 1e3), ("min_entropy_leakage", 50.0),
     ("bayes_vulnerability", 1e-3), ("prior_vulnerability", 1e3), ("xi_minus", 1e3)],
)
def test_a_false_quantity_contradicts_another(name, factor):
    prior, channel = random_channel(8, 9)
    model = channel_with_prior.channel_with_prior(prior, channel)
    found = stack_quantities.brackets(model, stack_quantities.UNITS)
    assert quantities.check_relations(found, model) == found
    false = found[name]._replace(value=found[name].value * factor, lower=found[name].lower * factor,
                                 upper=found[name].upper * factor)
    checked = quantities.check_relations({**found, name: false}, model)
    assert checked[name].kind == "heuristic"
    changed = [other for other in checked if checked[other].kind == "heuristic"]
    assert len(changed) >= 2
    for other in changed:
        assert checked[other].lower <= found[other].value <= checked[other].upper or other == name, other


@pytest.mark.parametrize("sides", [("exact", "heuristic"), ("heuristic", "exact")])
def test_the_larger_side_claims_no_more_than_either_side(sides):
    plus, minus = (Estimate(1.0, 1.0, 1.0, kind=kind, unit="nats", method="example") for kind in sides)
    assert larger_side(plus, minus).kind == "heuristic"


def test_bounds_that_are_nan_lose_their_claim():
    model = channel_with_prior.channel_with_prior(None, RandomizedResponse(3, 1.0))
    found = stack_quantities.brackets(model, ("xi_plus", "ldp_on_support"))
    false = {**found, "xi_plus": found["xi_plus"]._replace(lower=float("nan"))}
    assert quantities.check_relations(false, model)["xi_plus"].kind == "heuristic"


@pytest.mark.few(1)
@pytest.mark.parametrize(("n", "m"), [(64, 64), (2, 2100), (300, 20)])
def test_no_right_answer_is_contradicted(n, m):
    for matrix in (
        RNG.dirichlet(np.full(m, 0.3), n), RNG.dirichlet(np.full(m, 1e3), n), np.full((n, m), 1 / m),
        np.eye(m)[RNG.integers(0, m, n)],
    ):
        for prior in (RNG.dirichlet(np.ones(n)), np.full(n, 1 / n), np.eye(n)[0]):
            channel = Channel(matrix * (1 + 2e-10 * RNG.uniform(-1, 1, (n, 1))))
            information = notions.cd_lmip(prior, channel)
            assert information.kind == "certified"
            assert information.value <= scipy_entropy(prior) * (1 + 1e-8) + 1e-15
            kinds = {getattr(notions.summary(prior, channel), name).kind for name in stack_quantities.UNITS}
            assert kinds <= {"exact", "certified"}


def test_the_gap_of_a_product_prior_is_that_of_the_product():
    factors = Channel([[0.5, 0.5], [0.25, 0.75]]), RandomizedResponse(3, 1.0)
    prior = np.array([0.5, 0.5 + 2e-10]), np.array([0.25, 0.25, 0.5 + 1e-10])
    model = channel_with_prior.channel_with_prior(prior, ProductChannel(factors, powers=[2, 1]))
    assert model.gap == pytest.approx(abs((1 + 2e-10) ** 2 * (1 + 1e-10) - 1), rel=1e-6)
