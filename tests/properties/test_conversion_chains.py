"""Chains of conversions: they hold, never promise more than a tight direct one, and use all they are given."""

import inspect
import itertools

import numpy as np
import pytest

from fastpriv import conversions as c
from fastpriv.conversions import registry
from oracles import channel_quantities as on

EXTRA = {"delta": 1e-6, "order": 3.0, "beta": 1e-3, "type_one": 0.2}
SOURCES = {"ldp": "epsilon", "lip": "epsilon", "mbp": "xi", "zcdp": "rho", "gdp": "separation", "kl": "kl",
           "total_variation": "total_variation", "maximal_leakage": "leakage", "pointwise_lmip": "mu"}


def found(target, source, **values):
    try:
        return c.convert(target, source, **values)
    except ValueError:
        return None


def test_direct_and_tight_before_anything_else():
    for row in c.CONVERSIONS:
        if row.form != "tight" or row.source not in SOURCES:
            continue
        one = c.convert(row.target, row.source, **needed(row))
        assert len(one.steps) == 1
        assert one.steps[0].conversion.form == "tight"
        assert one.holds


def needed(row):
    numbers = {"epsilon": 0.5, "target_epsilon": 0.1, "group": 2, "xi_plus": 0.1, "xi_minus": 0.2} | EXTRA
    return {name: numbers.get(name, 0.3) for name in row.required}


@pytest.mark.slow
def test_chains_hold_link_by_link():
    seen = set()
    for (source, name), target in itertools.product(SOURCES.items(), c.NOTIONS):
        for extra in ((), ("delta",), ("order",), ("beta",), ("type_one",)):
            chain = found(target, source, **{name: 0.3}, **{key: EXTRA[key] for key in extra})
            if chain is None or len(chain.steps) == 1:
                continue
            seen.add((source, target))
            assert chain.holds
            rows = [step.conversion for step in chain.steps]
            assert [row.source for row in rows] == [source, *(row.target for row in rows[:-1])]
            assert rows[-1].target == target
            assert not any(s.conversion.published for s in chain.steps)
            assert all(assumption.chained for s in chain.steps for assumption in s.conversion.assumptions)
            assert set(chain.assumptions) <= {a for s in chain.steps for a in s.conversion.assumptions}
            assert chain.form == "bound"
            for before, after in itertools.pairwise(chain.steps):
                assert after.arguments[before.conversion.result] is before.estimate
            assert chain.guarantee == chain.steps[-1].guarantee
    assert len(seen) > 30
    assert {("mbp", "dp"), ("zcdp", "membership_advantage"), ("lip", "abp"), ("gdp", "ci_lmip")} <= seen


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(40))
def test_chains_hold_on_channels(seed):
    rng = np.random.default_rng(seed)
    q, pi = on.random_channel(rng)
    least, xi, epsilon = float(pi.min()), on.mbp(q, pi)[0], on.ldp(q)
    law = rng.dirichlet(np.full(q.shape[1], 0.3))
    assert on.abp(q, pi, law) <= c.convert("abp", "lip", epsilon=xi, pi_min=least).guarantee + 1e-9
    best = on.capacity_below(q, 100)
    assert best <= c.convert("ci_lmip", "mbp", xi=xi, pi_min=least, unit="nats").guarantee + 1e-9
    variation = max(on.hockey_stick(*pair, 0.0) for pair in on.pairs(q))
    assert variation <= c.convert("membership_advantage", "mbp", xi=xi, pi_min=least).guarantee + 1e-9
    delta = 1e-3
    reached = c.convert("dp", "mbp", xi=xi, delta=delta).guarantee
    assert max(on.hockey_stick(*pair, reached) for pair in on.pairs(q)) <= delta + 1e-12
    sharp = c.convert("rdp", "lip", epsilon=xi, order=2.0).guarantee
    assert max(on.renyi(*pair, 2.0) for pair in on.pairs(q)) <= sharp + 1e-9
    assert c.convert("dp", "ldp", epsilon=epsilon, delta=delta).guarantee <= c.dp_epsilon_from_zcdp(
        c.zcdp_from_ldp(epsilon).upper, delta).upper


def test_the_way_around_is_never_better_than_the_tight_one():
    grid = np.array([1e-3, 0.1, 1.0, 5.0])
    around = c.abp_from_mbp(c.mbp_from_ldp(grid).upper).upper
    assert (c.convert("abp", "ldp", epsilon=grid).guarantee <= around).all()
    assert (c.ldp_from_mbp(c.mbp_from_ldp(grid).upper).upper >= grid).all()
    assert (c.zcdp_from_gdp(c.gdp_from_ldp(grid).upper).upper >= c.zcdp_from_ldp(grid).lower).all()
    assert (c.total_variation_from_kl(c.kl_from_ldp(grid).upper).upper >= c.total_variation_from_ldp(grid).lower).all()


def test_arrays_go_through_chains():
    chain = c.convert("abp", "lip", epsilon=np.array([[0.1], [1.0]]), pi_min=[0.0, 0.2, 0.5])
    assert chain.estimate.shape == (2, 3)
    assert chain.to_dict()["guarantee"][1][2] == chain.guarantee[1, 2]
    assert chain.steps[0].side == "upper"


def test_the_registry_is_one_table():
    assert len({(row.function, row.form) for row in c.CONVERSIONS}) == len(c.CONVERSIONS)
    for row in c.CONVERSIONS:
        assert row.source in c.NOTIONS
        assert row.target in c.NOTIONS
        assert row.reference
        function = getattr(c, row.function)
        assert row.default == (inspect.signature(function).parameters["form"].default == row.form
                               if sum(other.function == row.function for other in c.CONVERSIONS) > 1 else True)
        if not row.holds:
            assert row.note
            assert row.published
            assert "FALSE" in function.__doc__
    assert {row.function for row in c.CONVERSIONS if not row.holds} == {
        "robustness_from_mbp", "leakage_error_from_frequency_error", "abp_from_c1", "lip_delta_from_cd_lmip",
        "frequency_failure_from_trials",
    }
    assert {name for row in c.CONVERSIONS for name in (row.source, row.target)} == set(c.NOTIONS)
    with pytest.raises(AttributeError, match="module 'fastpriv.conversions' has no attribute 'no_such_conversion'"):
        c.no_such_conversion
    assert set(c.__all__) <= set(dir(c))


def test_the_table_is_there_with_pandas_and_without(monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = c.table()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(registry.rows()[0])
    assert len(frame) == len(c.CONVERSIONS)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    assert c.table() == registry.rows()


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"target": "ldp", "source": "nothing", "xi": 1.0}, "source must be one of"),
        ({"target": "nothing", "source": "ldp", "xi": 1.0}, "target must be one of"),
        ({"target": "mbp", "source": "ldp"}, r"values must be given by name; got none\. From ldp to mbp: mbp_from_ldp"),
        ({"target": "mbp", "source": "ldp", "rho": 1.0}, "must be what a conversion from ldp to mbp takes; got rho"),
        ({"target": "ldp", "source": "gdp", "separation": 1.0}, "gdp to ldp takes; got separation. It takes: no"),
        ({"target": "ldp", "source": "robustness", "xi": 1.0}, "nothing follows from robustness"),
        ({"target": "zcdp", "source": "mbp", "rho": 1.0}, "no direct conversion; chains from mbp start with"),
        ({"target": "mbp", "source": "ldp", "epsilon": -1.0}, "epsilon must be at least 0; got -1.0"),
        ({"target": "mbp", "source": "ldp", "epsilon": 1.0, "form": "x"}, "form must be one of tight, bound, as_publ"),
    ],
)
def test_what_cannot_be_converted_says_what_can(asked, text):
    with pytest.raises(ValueError, match=text):
        c.convert(**asked)


def test_a_function_is_named_by_its_target_and_source():
    quantities = {"dp": "dp", "group_dp": "group_dp", "approximate_lip": "lip"}
    for row in c.CONVERSIONS:
        target, _, source = row.function.partition("_from_")
        expected = quantities.get(row.target, row.target) + (f"_{row.result}" if row.target in quantities else "")
        assert target == expected, row
        assert source.startswith(row.source) or row.function == "cd_lmip_from_hockey_sticks", row


def test_a_form_takes_its_own_parameters_only():
    assert c.mbp_from_ldp(1.0, prior_spread=0.5, form="as_published").value == 1.5
    with pytest.raises(ValueError, match="pi_min must be left out where form is 'as_published'; got 0.1. Form 'tight'"):
        c.mbp_from_ldp(1.0, 0.1, form="as_published")
    with pytest.raises(ValueError, match="prior_spread must be left out where form is 'tight'; got 0.5. Form 'as_pub"):
        c.mbp_from_ldp(1.0, prior_spread=0.5)
    with pytest.raises(ValueError, match="pi_min must be given where form is 'tight'; got None. Smallest positive"):
        c.lip_delta_from_cd_lmip(0.1, 1.0)
    with pytest.raises(ValueError, match="form must be one of tight, as_published; got 'bound'"):
        c.mbp_from_ldp(1.0, form="bound")


def test_published_forms_come_only_when_asked():
    printed = c.convert("robustness", "mbp", xi=1.0, beta=0.001, form="as_published")
    assert not printed.holds
    assert "FALSE as published" in printed.summary()
    assert not printed.to_dict()["steps"][0]["holds"]
    assert c.convert("robustness", "mbp", xi=1.0, beta=0.001).guarantee > printed.guarantee
    assert "assumes: the channel has two inputs" in c.convert("ci_lmip", "dp", epsilon=1.0, delta=1e-5).summary()
    only = c.convert("ci_lmip", "dp_curve", curve=([0.0, 1.0], [0.1, 0.0]), unit="nats")  # printed, true, and alone
    assert only.holds
    assert only.guarantee <= 0.2
    with pytest.raises(ValueError, match=r"ci_lmip_from_dp_curve: curve \[decay"):
        c.convert("ci_lmip", "dp_curve", delta=0.5)
    assert ">= " in c.convert("tradeoff", "gdp", separation=1.0, type_one=0.1).summary()
