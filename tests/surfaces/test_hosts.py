"""Accountants of other packages with fastpriv inside, beside their own; a host that is not installed is skipped.

``tools/hosts`` runs this file where all hosts are.
"""

import importlib
import math
import pickle
import sys

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, GaussianMechanism, LaplaceMechanism, PoissonSampledGaussian, compose
from fastpriv.adapters import CertifiedAccountant, opendp_privacy_profile, riskcal_evaluator
from fastpriv.composition import least_sigma
from fastpriv.errors import BackendMissingError
from fastpriv.pairs import FixedSizeSampled

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting import dp_event, pld, rdp  # noqa: E402

Relation = dp_accounting.NeighboringRelation
STEP = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
EVENTS = {
    "gaussian": dp_event.GaussianDpEvent(3.0), "laplace": dp_event.LaplaceDpEvent(4.0),
    "sampled": dp_event.SelfComposedDpEvent(STEP, 200),
    "nested": dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(3.0), dp_event.SelfComposedDpEvent(STEP, 50)]),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("relation", [Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL])
@pytest.mark.parametrize("name", EVENTS)
def test_a_host_agrees_within_its_error(name, relation):
    ours, theirs = CertifiedAccountant(relation), pld.PLDAccountant(relation)
    ours.compose(EVENTS[name], 3)
    event = EVENTS[name]
    if (name, relation) == ("laplace", Relation.REPLACE_ONE):
        assert not theirs.supports(event)
        theirs, event = pld.PLDAccountant(), dp_event.LaplaceDpEvent(2.0)  # twice the distance
    theirs.compose(event, 3)
    for delta in (1e-3, 1e-6):
        bounds = ours.bounds(target_delta=delta)
        assert ours.get_epsilon(delta) == bounds.upper
        assert bounds.lower <= theirs.get_epsilon(delta) <= bounds.upper + 1e-3  # grids of 1e-4, rounded up
    assert ours.get_delta(0.5) <= theirs.get_delta(0.5) * (1 + 1e-9) + 1e-12


def test_equal_events_are_counted():
    loop, once = CertifiedAccountant(), CertifiedAccountant().compose(STEP, 300)
    for _ in range(300):
        loop.compose(STEP)
    assert loop.composition.count == 300
    assert loop.get_epsilon(1e-5) == once.get_epsilon(1e-5)
    assert loop.ledger == once.ledger


def test_events_with_lists_are_not_confused():
    first = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(2.0)])
    both = CertifiedAccountant().compose(first).compose(dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(5.0)]))
    wanted = fastpriv.compose([GaussianMechanism(2.0, 1.0), GaussianMechanism(5.0, 1.0)])
    assert both.get_delta(1.0) == pytest.approx(wanted.delta(1.0).value, rel=1e-9)


def test_checks_have_no_state():
    accountant = CertifiedAccountant()
    assert accountant.supports(STEP)
    assert not accountant.supports(dp_event.UnsupportedDpEvent())
    assert accountant.composition.count == 0
    assert accountant.get_epsilon(1e-5) == 0.0
    with pytest.raises(dp_accounting.UnsupportedEventError, match="event must be a NoOp"):
        accountant.compose(dp_event.UnsupportedDpEvent())


def test_arrays_and_both_bounds():
    accountant = CertifiedAccountant().compose(STEP, 1000)
    deltas = np.array([[1e-3, 1e-5], [1e-9, 1e-100]])
    epsilons = accountant.get_epsilon(deltas)
    assert epsilons.shape == (2, 2)
    assert isinstance(accountant.get_epsilon(1e-5), float)
    assert (accountant.get_delta(epsilons) <= deltas).all()
    assert (accountant.bounds(target_delta=deltas).lower < epsilons).all()
    assert 0.0 < accountant.get_delta(-1.0) < 1.0  # jax_privacy subtracts losses of samples from epsilon
    for wrong in ({}, {"target_delta": 1e-5, "target_epsilon": 1.0}):
        with pytest.raises(DomainError, match="target_delta or target_epsilon must be given"):
            accountant.bounds(**wrong)


def test_true_positive_rates_are_those_of_the_worse_direction():
    rates = CertifiedAccountant().compose(dp_event.GaussianDpEvent(1.0)).get_true_positive_rates([0.01, 0.5])
    wanted = 0.5 * math.erfc((2.3263478740408408 - 1.0) / math.sqrt(2.0))
    assert wanted <= rates[0] < wanted * (1 + 1e-9)
    assert 0.5 < rates[1] < 1.0


def test_calibration_by_the_host():
    def event(sigma):
        return dp_event.SelfComposedDpEvent(
            dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(sigma)), 1000
        )

    sigma = dp_accounting.calibrate_dp_mechanism(CertifiedAccountant, event, 1.0, 1e-5)
    ours = least_sigma(lambda s: PoissonSampledGaussian(s, 0.01), epsilon=1.0, delta=1e-5, count=1000)
    assert sigma == pytest.approx(ours.value, abs=1e-6)


def test_where_the_host_is_wrong_or_raises():
    tiny = dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(1e-3, dp_event.GaussianDpEvent(5.0)), 10)
    ours = CertifiedAccountant().compose(tiny)
    truth = ours.bounds(target_epsilon=0.05)
    assert pld.PLDAccountant().compose(tiny).get_delta(0.05) > 1e6 * truth.upper  # what is cut off is put at infinity
    fixed = dp_event.SampledWithoutReplacementDpEvent(100, 10, dp_event.GaussianDpEvent(2.0))
    assert not pld.PLDAccountant(Relation.REPLACE_ONE).supports(fixed)
    pair = FixedSizeSampled(GaussianMechanism(2.0, 1.0), 100, 10, relation="replace_one")
    delta = CertifiedAccountant(Relation.REPLACE_ONE).compose(fixed).get_delta(1.0)
    assert delta == pytest.approx(fastpriv.compose(pair).delta(1.0).upper)
    # The host's Renyi accountant takes the multiplier over the distance of the sums, which is twice one contribution.
    assert rdp.RdpAccountant(neighboring_relation=Relation.REPLACE_ONE).compose(fixed).get_epsilon(1e-6) < 0.75 * (
        CertifiedAccountant(Relation.REPLACE_ONE).compose(fixed).bounds(target_delta=1e-6).lower
    )


def test_a_host_that_is_not_installed(monkeypatch):
    words = {
        "opacus": ("opacus", "fastpriv.adapters.opacus needs Opacus"),
        "flower": ("flwr", "fastpriv.adapters.flower needs flwr 1.40 or later"),
        "pfl": ("pfl", "fastpriv.adapters.pfl needs pfl-research"),
        "torch": ("torch", "fastpriv.adapters.torch needs PyTorch"),
        "jax": ("jax", "fastpriv.adapters.jax needs JAX"),
        "accountants": ("dp_accounting", "CertifiedAccountant needs dp_accounting"),
    }
    for module, (name, text) in words.items():
        for loaded in {name, *(loaded for loaded in sys.modules if loaded.startswith(f"{name}."))}:
            monkeypatch.setitem(sys.modules, loaded, None)
        monkeypatch.delitem(sys.modules, f"fastpriv.adapters.{module}", raising=False)
        with pytest.raises(BackendMissingError, match=text) as caught:
            importlib.import_module(f"fastpriv.adapters.{module}")
        assert "pip install" in str(caught.value), module
    monkeypatch.setitem(sys.modules, "opendp.measures", None)
    with pytest.raises(BackendMissingError, match="opendp_privacy_profile needs OpenDP 0.12 or later"):
        opendp_privacy_profile(GaussianMechanism(1.0, 1.0))
    monkeypatch.setitem(sys.modules, "riskcal.calibration.core", None)
    with pytest.raises(BackendMissingError, match="riskcal_evaluator needs riskcal 1.5 or later"):
        riskcal_evaluator(lambda sigma: GaussianMechanism(sigma, 1.0))


def test_jax_privacy_accounts_and_calibrates():
    accounting = pytest.importorskip("jax_privacy.accounting")
    analysis = importlib.import_module("jax_privacy.accounting.analysis")
    calibrate = importlib.import_module("jax_privacy.accounting.calibrate")

    class Config(accounting.DpAccountantConfig):
        def create_accountant(self):
            return CertifiedAccountant()

    training = accounting.DpsgdTrainingAccountant(dp_accountant_config=Config())
    size = {"num_samples": 10_000, "batch_size": 100}
    parameters = analysis.DpParams(noise_multipliers=1.0, delta=1e-5, **size)
    epsilon = training.compute_epsilon(1000, parameters)
    assert epsilon == compose(PoissonSampledGaussian(1.0, 0.01), 1000).epsilon(1e-5, direction="worst").upper
    theirs = accounting.DpsgdTrainingAccountant(dp_accountant_config=accounting.PldAccountantConfig())
    assert epsilon <= theirs.compute_epsilon(1000, parameters) <= epsilon * (1 + 1e-5)
    sigma = calibrate.calibrate_noise_multiplier(
        target_epsilon=2.0, accountant=training, batch_sizes=100, num_updates=1000, num_samples=10_000,
        target_delta=1e-5, tol=1e-6)
    reached = training.compute_epsilon(1000, analysis.DpParams(noise_multipliers=sigma, delta=1e-5, **size))
    assert 2.0 - 1e-4 < reached <= 2.0


@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL"])
def test_jax_privacy_plans(relation):
    """A plan calibrates banded noise by an accountant of its caller, which it copies."""
    plans = pytest.importorskip("jax_privacy.experimental.execution_plan")
    batches = importlib.import_module("jax_privacy.batch_selection")
    partition = batches.PartitionType["INDEPENDENT" if relation == "ADD_OR_REMOVE_ONE" else "EQUAL_SPLIT"]
    accountant = CertifiedAccountant(dp_accounting.NeighboringRelation[relation])
    config = plans.BandMFExecutionPlanConfig.default(
        num_bands=4, iterations=40, epsilon=1.0, delta=1e-5, sampling_prob=0.4, partition_type=partition,
        accountant=accountant)
    event = config.plan().dp_event if callable(config.plan) else config.plan.dp_event
    assert 1.0 - 1e-3 < accountant.compose(event).get_epsilon(1e-5) <= 1.0


def test_jax_privacy_samples_agree():
    """Deltas from samples of losses are means of what the certified delta is the expectation of."""
    samples = pytest.importorskip("jax_privacy.experimental.monte_carlo.delta_calculation")
    losses = np.random.default_rng(0).normal(0.5, 1.0, 200_000)
    bounds = CertifiedAccountant().compose(dp_event.GaussianDpEvent(1.0)).bounds(target_epsilon=1.0)
    assert abs(samples.delta_from_epsilon_and_samples(1.0, losses) - bounds.value) < 5 * 0.3 / math.sqrt(200_000)


def test_opendp():
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    profile = opendp_privacy_profile(GaussianMechanism(1.0, 1.0))
    truth = fastpriv.compose(GaussianMechanism(1.0, 1.0))
    assert profile.delta(epsilon=1.0) == truth.delta(1.0).upper
    assert truth.epsilon(1e-6).lower <= profile.epsilon(delta=1e-6) <= truth.epsilon(1e-6).upper * (1 + 1e-9)


def test_riskcal():
    core = pytest.importorskip("riskcal.calibration.core")
    evaluator = riskcal_evaluator(lambda s: PoissonSampledGaussian(s, 0.01), count=100, alpha=0.05, delta=1e-5)
    metrics = evaluator(1.0)
    assert metrics.advantage == pytest.approx(0.05067, abs=1e-5)
    assert metrics.beta == pytest.approx(0.93300, abs=1e-5)
    assert riskcal_evaluator(lambda s: PoissonSampledGaussian(s, 0.01), count=100, epsilon=1.0)(1.0).delta < 1e-5
    found = core.calibrate_parameter(
        riskcal_evaluator(lambda s: GaussianMechanism(s, 1.0)), core.CalibrationTarget("advantage", advantage=0.1),
        core.CalibrationConfig(param_min=1.0, param_max=10.0, increasing=False),
    )
    assert found.parameter_value == pytest.approx(3.979, rel=0.02)  # Phi(1/(2 sigma)) - Phi(-1/(2 sigma)) = 0.1


@pytest.mark.filterwarnings("ignore:Optimal order is")
def test_opacus_calibrates_by_name():
    pytest.importorskip("opacus")
    from opacus.accountants import create_accountant
    from opacus.accountants.utils import get_noise_multiplier

    import fastpriv.adapters.opacus

    accountant = create_accountant("fastpriv")
    for noise in (1.0, 1.0, 2.0):
        accountant.step(noise_multiplier=noise, sample_rate=0.01)
    assert accountant.history == [(1.0, 0.01, 2), (2.0, 0.01, 1)]
    assert len(accountant) == 3
    again = fastpriv.adapters.opacus.OpacusAccountant()
    again.load_state_dict(pickle.loads(pickle.dumps(accountant.state_dict())))
    assert again.get_epsilon(1e-5) == accountant.get_epsilon(1e-5) > 0.0
    settings = {"target_epsilon": 2.0, "target_delta": 1e-5, "sample_rate": 0.01, "steps": 1000}
    sigma = get_noise_multiplier(accountant="fastpriv", **settings)
    ours = least_sigma(lambda s: PoissonSampledGaussian(s, 0.01), epsilon=2.0, delta=1e-5, count=1000)
    assert ours.upper <= sigma <= ours.upper * 1.005
    assert sigma <= get_noise_multiplier(accountant="prv", **settings)
    # opacus#844: its Renyi accountant has no lower bound of 0
    weak = create_accountant("fastpriv")
    weak.history = [(1000.0, 1e-4, 1)]
    assert weak.get_epsilon(0.1) == 0.0


@pytest.mark.filterwarnings("ignore:Secure RNG|Full backward hook:UserWarning")
def test_opacus_trains_saves_and_loads(tmp_path):
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("opacus")
    from opacus import PrivacyEngine

    import fastpriv.adapters.opacus

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))

    def training():
        model = torch.nn.Linear(3, 2)
        engine = PrivacyEngine(accountant="fastpriv")
        parts = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), noise_multiplier=1.0, max_grad_norm=1.0,
            data_loader=torch.utils.data.DataLoader(data, batch_size=8),
        )
        return engine, *parts

    engine, model, optimizer, loader = training()
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    spent = engine.get_epsilon(1e-5)
    steps = len(engine.accountant)
    wanted = fastpriv.compose(PoissonSampledGaussian(1.0, 1 / len(loader)), steps).epsilon(1e-5)
    assert steps > 4
    assert spent == wanted.upper
    engine.save_checkpoint(path=tmp_path / "step.pt", module=model)
    other, fresh, *_ = training()
    other.load_checkpoint(path=tmp_path / "step.pt", module=fresh)
    assert other.get_epsilon(1e-5) == spent


def test_flower():
    accounting = pytest.importorskip("flwr.supercore.privacy_accounting")
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

    from fastpriv.adapters.flower import FlowerAccountant

    config = accounting.PrivacyConfig(1e-5, 1000, accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
                                      accounting.SamplingMethod.POISSON, 10.0)
    event = accounting.GaussianPrivacyEvent(2.0, 50, 1000)
    ours, theirs = FlowerAccountant(config), RdpAccountant(config)
    ours.compose(event, 100), theirs.compose(event, 100)
    spent, theirs_spent = ours.get_privacy_spent(), theirs.get_privacy_spent()
    truth = fastpriv.compose(PoissonSampledGaussian(2.0, 0.05), 100).epsilon(1e-5)
    assert spent.epsilon == truth.upper < theirs_spent.epsilon
    assert (spent.num_releases, spent.accounting_method) == (100, "fastpriv")
    assert not ours.would_exceed(event)
    other = RdpAccountant(config)
    other.load_state_dict(ours.state_dict())
    assert other.get_epsilon(1e-5) == theirs_spent.epsilon


def test_pfl_research():
    host = pytest.importorskip("pfl.privacy.privacy_accountant")
    from fastpriv.adapters.pfl import PflAccountant

    ours = PflAccountant(1000, 0.01, "gaussian", epsilon=2.0, delta=1e-6)
    theirs = host.PLDPrivacyAccountant(1000, 0.01, "gaussian", epsilon=2.0, delta=1e-6)
    assert ours.noise_parameter == pytest.approx(theirs.noise_parameter, rel=1e-4)
    settings = {"noise_parameter": ours.noise_parameter}
    assert PflAccountant(1000, 0.01, "Gaussian", epsilon=2.0, **settings).delta <= 1e-6
    assert PflAccountant(1000, 0.01, "gaussian", delta=1e-6, **settings).epsilon == pytest.approx(2.0, rel=1e-8)
    assert PflAccountant(1000, 0.01, "gaussian", epsilon=2.0, delta=1e-6, **settings).delta == 1e-6
    laplace = fastpriv.compose(LaplaceMechanism(3.0, 1.0), 2).epsilon(1e-3)
    assert PflAccountant(2, 1.0, "laplace", delta=1e-3, noise_parameter=3.0).epsilon == pytest.approx(laplace.upper)
    with pytest.raises(DomainError, match="delta must be at least"):
        PflAccountant(1000, 0.01, "gaussian", epsilon=2.0, delta=1e-7, **settings)
    with pytest.raises(DomainError, match="mechanism must be 'gaussian' or 'laplace'"):
        PflAccountant(1000, 0.01, "cauchy", epsilon=2.0, delta=1e-7)
