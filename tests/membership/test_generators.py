"""Trained generators: never below the certificate of the exact equilibrium, the same bits again, what they refuse."""

import pickle
import sys

import numpy as np
import pytest

from fastpriv import BackendMissingError, DomainError, ShapeError
from fastpriv.studies.membership import (
    BernoulliMembership,
    FiniteDefence,
    FixedSizeMembership,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    Panel,
    membership_equilibrium,
    train_generator,
)

PANEL, PRIOR = Panel([[1], [1], [0]]), BernoulliMembership(0.5)


@pytest.fixture
def torch(request):
    return pytest.importorskip("torch")


def small(panel=PANEL, prior=PRIOR, **words):
    given = {"steps": 30, "hidden": (16, 16), "attacker_hidden": (16,), "batch_size": 32, "rng": 1}
    return train_generator(panel, prior, **({} if {"utility_budget", "privacy_budget"} & set(words) else {"slope": 2.0})
                           | given | words)  # fmt: skip


def information(release, releases, seeds, rng):
    """I(b; R) by simulation, and its standard error: the density of a release is a mean over seeds."""
    noise, people = release.noise, release.n_people
    every = (np.arange(1, 2**people)[:, None] >> np.arange(people)) & 1 == 1
    prior = np.exp(release.prior.log_probability(every))
    simulated = release.simulate(releases, rng=rng)
    nu = np.random.default_rng(rng + 1).random((seeds, noise.n_seeds))
    density = np.empty((releases, len(every)))
    for i, b in enumerate(every):
        means = release.frequencies(b) + noise.function(np.broadcast_to(b, (seeds, people)), nu)
        logs = noise.dither.log_likelihood(simulated.released[:, None, :], means, np.full(seeds, b.sum()), release.clip)
        density[:, i] = np.exp(logs).mean(axis=1)
    index = (simulated.membership @ (1 << np.arange(people))) - 1
    ratios = np.log(density[np.arange(releases), index] / (density @ prior))
    loss = np.abs(simulated.released - release.frequencies(simulated.membership)).mean(axis=1)
    return ratios, loss


@pytest.mark.parametrize("slope", [0.5, 3.0, 12.0])
def test_no_generator_beats_the_certificate(torch, slope):
    trained = small(slope=slope, steps=600, dither=GaussianNoise(0.03))
    ratios, loss = information(trained.release, 1500, 1000, 7)
    objective = ratios + slope * loss
    least = membership_equilibrium(PANEL, PRIOR, slope=slope).lagrangian.lower
    error = objective.std() / np.sqrt(objective.size)
    assert objective.mean() > least - 4 * error
    assert objective.mean() < PRIOR.entropy(3).value + slope  # and it says nothing absurd


def test_the_slope_moves_the_generator(torch):
    losses = [small(slope=s, steps=500).history[-50:, 0].mean() for s in (0.5, 40.0)]
    assert losses[1] < 0.3 * losses[0]


def test_budgets_are_aims(torch):
    panel = Panel([[1, 0], [0, 1], [1, 1], [0, 0]])
    constant = membership_equilibrium(panel, PRIOR, slope=0.0).constant_loss
    found = small(panel, utility_budget=0.5 * constant, steps=800)
    assert found.history[-200:, 0].mean() == pytest.approx(0.5 * constant, rel=0.1)
    private = small(panel, privacy_budget=0.3, steps=800)
    q = PRIOR.marginals(4)
    prior_entropy = -(q * np.log(q) + (1 - q) * np.log1p(-q)).sum()
    assert prior_entropy - private.history[-200:, 1].mean() == pytest.approx(0.3, abs=0.15)


def test_the_same_seed_gives_the_same_bits(torch):
    one, other, another = small(), small(), small(rng=2)
    b = PRIOR.draw(5, 3, 1)
    draws = [x.release.release(b, rng=3) for x in (one, other, another)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert np.array_equal(one.history, other.history)
    assert np.array_equal(one.attacker.scores(draws[0]), other.attacker.scores(draws[0]))


def test_the_frozen_generator_is_that_of_pytorch(torch, monkeypatch):
    from fastpriv.studies.membership.defences import generators

    kept = []
    training = generators._GeneratorTraining
    freeze = training.frozen_generator
    monkeypatch.setattr(training, "frozen_generator", lambda self: kept.append(self) or freeze(self))
    trained = small(hidden=(16, 12, 8))
    b, nu = PRIOR.draw(2000, 3, 1), np.random.default_rng(1).random((2000, 30))
    inputs = torch.from_numpy(np.hstack([b, nu]).astype(np.float32))
    with torch.no_grad():
        want = torch.sigmoid(kept[0].generator.eval()(inputs)).numpy() - 0.5
    found = trained.release.noise.function(b, nu)
    assert found == pytest.approx(want, abs=1e-5)
    assert np.ptp(want) > 0.01
    again = pickle.loads(pickle.dumps(trained.release.noise))
    assert np.array_equal(again.function(b, nu), found)


def test_a_stopped_training_goes_on(torch, tmp_path):
    whole = small(steps=250, dither=LaplaceNoise(0.1))
    file = tmp_path / "training.pt"

    def stop(done, total):
        if done == 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(steps=250, dither=LaplaceNoise(0.1), checkpoint=file, progress=stop)
    resumed = small(steps=250, dither=LaplaceNoise(0.1), checkpoint=file)
    seen = []
    again = small(steps=250, dither=LaplaceNoise(0.1), checkpoint=file, progress=lambda done, total: seen.append(done))
    assert not seen  # nothing is left to do
    b = PRIOR.draw(5, 3, 1)
    for one in (resumed, again):
        assert np.array_equal(one.history, whole.history)
        assert np.array_equal(one.release.release(b, rng=3), whole.release.release(b, rng=3))
        assert np.array_equal(one.attacker.scores([[0.3]]), whole.attacker.scores([[0.3]]))
    for change in ({"rng": 2}, {"slope": 3.0}, {"panel": Panel([[1], [0], [0]])}, {"dither": LaplaceNoise(0.2)},
                   {"dither": None}, {"prior": FixedSizeMembership(2)}, {"clip": False}, {"hidden": (8,)}):  # fmt: skip
        with pytest.raises(DomainError, match="checkpoint must be a file of this training"):
            small(**{"steps": 250, "dither": LaplaceNoise(0.1), "checkpoint": file} | change)
    with pytest.raises(DomainError, match="steps must be at least those of the checkpoint, 250"):
        small(steps=10, dither=LaplaceNoise(0.1), checkpoint=file)
    file.write_bytes(b"something else")
    with pytest.raises(DomainError, match="checkpoint must be a file of this training"):
        small(checkpoint=file)


def test_privacy_is_that_of_the_dither(torch):
    bare = small().release
    assert isinstance(bare.noise, GeneratorNoise)
    with pytest.raises(DomainError, match="epsilon is infinite"):
        bare.epsilon()
    assert small(dither=LaplaceNoise(0.5)).release.epsilon().upper < np.inf


@pytest.mark.parametrize("dither", [LaplaceNoise(0.2), GaussianNoise(0.2)])
def test_the_joint_posterior_is_kept_near_the_prior(torch, dither):
    """The table that rounds the trained generator has the epsilon proved; with the penalty it is far smaller."""
    prior, found = FixedSizeMembership(1), []
    for words in ({}, {"joint_epsilon": 1.0}):
        trained = small(prior=prior, dither=dither, slope=5.0, steps=400, **words)
        found.append(FiniteDefence.of_release(trained.release, 5, seeds=64, rng=1))
    free, bound = (one.joint_posterior_epsilon() for one in found)
    assert bound.upper < 0.5 * free.lower
    assert found[1].with_epsilon(1.0).epsilon().upper <= 1.0


def test_weights_and_what_is_shown(torch):
    trained = small(Panel([[1, 0], [0, 1]]), attribute_weights=[3.0, 0.0], clip=False)
    assert trained.attribute_weights.tolist() == [3.0, 0.0]
    assert not trained.release.clip
    assert repr(trained).startswith("<TrainedGenerator after 30 steps: utility loss ")
    assert trained.history.shape == (30, 2)


def test_a_pickled_generator_of_earlier_versions():
    """Its state holds matrices (outputs, inputs), shifts and the slopes of the rectifiers below 0."""
    from fastpriv.studies.membership.defences.generators import _FrozenGenerator

    rng = np.random.default_rng(1)
    maps = tuple((rng.normal(size=shape), rng.normal(size=shape[0])) for shape in ((8, 5), (6, 8), (2, 6)))
    frozen = object.__new__(_FrozenGenerator)
    frozen.__setstate__({"maps": maps, "slopes": (0.0, 0.01)})
    b, nu = PRIOR.draw(50, 3, 1), rng.random((50, 2))
    x = np.hstack([b, nu])
    for (matrix, shift), slope in zip(maps, (0.0, 0.01), strict=False):
        x = x @ matrix.T + shift
        x = np.where(x > 0, x, slope * x)
    assert frozen(b, nu) == pytest.approx(0.5 * np.tanh(0.5 * (x @ maps[2][0].T + maps[2][1])), rel=1e-12)
    again = pickle.loads(pickle.dumps(frozen))
    assert np.array_equal(again(b, nu), frozen(b, nu))


def test_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendMissingError, match=r"train_generator needs PyTorch. Install it with: pip install 'fast"):
        small()


MISTAKES = [
    (lambda: train_generator(PANEL, PRIOR), DomainError, "slope must be given, or utility_budget, or privacy_budget"),
    (lambda: small(slope=1.0, utility_budget=0.1), DomainError, "got slope and utility_budget"),
    (lambda: small(slope=-1.0), DomainError, "slope must be at least 0"),
    (lambda: small(utility_budget=0.0), DomainError, "utility_budget must be positive"),
    (lambda: small(privacy_budget=np.inf), DomainError, "privacy_budget must be positive"),
    (lambda: small(panel=[[1]]), DomainError, "panel must be a Panel"),
    (lambda: small(prior=0.5), DomainError, "prior must be a prior of membership"),
    (lambda: small(attribute_weights=[1.0, 1.0]), ShapeError, "attribute_weights must have 1"),
    (lambda: small(joint_epsilon=1.0), DomainError, "dither must be given with joint_epsilon; got None"),
    (lambda: small(joint_epsilon=0.0), DomainError, "joint_epsilon must be positive and finite; got 0.0"),
    (lambda: small(dither=0.5), DomainError, "dither must be"),
    (lambda: small(dither=GaussianNoise([0.1, 0.2])), ShapeError, "sigma must be one number"),
    (lambda: small(batch_size=1), DomainError, "batch_size must be"),
    (lambda: small(hidden=(0,)), DomainError, "hidden must be"),
    (lambda: small(attacker_hidden=(1.5,)), DomainError, "attacker_hidden must be"),
    (lambda: small(learning_rate=0.0), DomainError, "learning_rate must be"),
    (lambda: small(decay=1.5), DomainError, "decay must be"),
    (lambda: small(steps=0), DomainError, "steps must be"),
    (lambda: small(threads=0), DomainError, "threads must be"),
    (lambda: small(n_seeds=0), DomainError, "n_seeds must be"),
    (lambda: small(rng=-1), DomainError, "rng must be"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), MISTAKES, ids=[text for *_, text in MISTAKES])
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
