"""Training by its definition, protections, and what happens when a round goes wrong."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from fastpriv import DomainError
from fastpriv.errors import NotConvergedError, ShapeError
from fastpriv.studies.leakage import Protection, SoftmaxRegression, Training

RNG = np.random.default_rng(3)
RECORDS, LABELS = RNG.random((30, 5)), RNG.integers(0, 3, 30)
MODEL = SoftmaxRegression(5, 3)


class Victim:
    """A model of a user: linear softmax regression, whose gradient may be wrong in many ways."""

    n_features, n_classes, n_parameters = 5, 3, 18

    def __init__(self, factor=1.0, fails_after=None):
        self.factor, self.fails_after, self.calls = factor, fails_after, 0

    def initial(self, rng=None):
        return np.random.default_rng(rng).normal(size=18)

    def logits(self, weights, records):
        return MODEL.logits(weights, records)

    def losses(self, weights, records, labels):
        return MODEL.losses(weights, records, labels)

    def gradient(self, weights, records, labels):
        self.calls += 1
        late = self.fails_after is not None and self.calls > self.fails_after
        found = MODEL.gradient(weights, records, labels) * self.factor
        return np.where(np.arange(18) == 4, np.nan, found) if late else found

    def per_example_gradients(self, weights, records, labels):
        return MODEL.per_example_gradients(weights, records, labels)


def training(model=MODEL, **words):
    return Training(model, **{"rounds": 6, "learning_rate": 0.5, "batch_size": 4} | words)


@pytest.mark.parametrize("share", ["gradient", "weights"])
@pytest.mark.parametrize(("batch", "words"), [("fixed", {"batch_size": 4}), ("full", {"batch_size": None}),
                                              ("poisson", {"batch_size": None, "rate": 0.1})])
def test_rounds_by_the_definition(batch, words, share):
    """Each round starts where the last one's share leads, and shares the mean of its steps' gradients."""
    run = training(batch=batch, share=share, local_steps=3, **words)
    found = run.run(RECORDS, LABELS, rng=1)
    size = {"fixed": 4, "full": 30, "poisson": 3.0}[batch]
    for index in range(6):
        w, members = found.before[index], found.batches[index]
        assert (np.diff(members) > 0).all()
        total = 0.0
        for _ in range(3):
            step = np.zeros(18)
            if len(members):
                step = MODEL.per_example_gradients(w, RECORDS[members], LABELS[members]).sum(axis=0) / size
            w, total = w - 0.5 * step, total + step
        shared = total / 3 if share == "gradient" else w
        np.testing.assert_allclose(found.shared[index], shared, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(found.gradient(index), total / 3, rtol=1e-9, atol=1e-13)
        following = found.before[index + 1] if index < 5 else found.weights
        np.testing.assert_allclose(following, w, rtol=1e-11, atol=1e-13)
    sizes = [len(members) for members in found.batches]
    assert len(found) == 6
    assert sizes == ([4] * 6 if batch == "fixed" else [30] * 6) or batch == "poisson"


def test_an_empty_poisson_batch_shares_a_gradient_of_zero():
    found = training(rounds=40, batch="poisson", batch_size=None, rate=0.01).run(RECORDS, LABELS, rng=2)
    empty = [index for index, members in enumerate(found.batches) if not len(members)]
    assert empty
    assert all(not found.shared[index].any() for index in empty)


@pytest.mark.slow
def test_batches_are_drawn_as_they_say():
    runs = training(rounds=4000).run(RECORDS, LABELS, rng=5)
    counts = np.bincount(np.concatenate(runs.batches), minlength=30)
    assert stats.chisquare(counts).pvalue > 1e-6  # of 16,000 draws without replacement: a little less spread
    runs = training(rounds=4000, batch="poisson", batch_size=None, rate=0.2).run(RECORDS, LABELS, rng=5)
    sizes = np.bincount([len(members) for members in runs.batches], minlength=31)[:31]
    expected = 4000 * stats.binom.pmf(np.arange(31), 30, 0.2)
    kept = expected > 5
    assert stats.chisquare(sizes[kept], expected[kept] * sizes[kept].sum() / expected[kept].sum()).pvalue > 1e-6


def test_seeds_streams_and_pickles():
    first, same = (training().run(RECORDS, LABELS, rng=1) for _ in range(2))
    longer, other = training(rounds=9).run(RECORDS, LABELS, rng=1), training().run(RECORDS, LABELS, rng=2)
    np.testing.assert_array_equal(first.shared, same.shared)
    np.testing.assert_array_equal(first.shared, longer.shared[:6])
    assert (first.shared != other.shared).any()
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.shared, first.shared)
    assert again.training == first.training
    assert not first.shared.flags.writeable
    guard = Protection(clip_example=0.5, noise="laplace", scale=0.1, levels=4, every_step=True)
    for one in (guard, training(protection=guard)):
        assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
        assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert eval(repr(guard)) == guard
    given = training().run(RECORDS, LABELS, rng=1, weights=np.ones(18))
    np.testing.assert_array_equal(given.before[0], np.ones(18))


def test_a_users_model_trains_like_ours():
    guard = Protection(clip_example=0.3, noise="gaussian", scale=0.1)
    for protection in (Protection(), guard):
        runs = (training(model, protection=protection, local_steps=2) for model in (Victim(), MODEL))
        mine, ours = (run.run(RECORDS, LABELS, rng=1, weights=np.ones(18)) for run in runs)
        np.testing.assert_allclose(mine.shared, ours.shared, rtol=1e-11, atol=1e-13)


def test_protections_in_their_order():
    g = np.array([3.0, 0.5, -4.0, 0.0, 1.0])
    np.testing.assert_allclose(Protection(clip_batch=2.0).apply(g), g * 2.0 / np.sqrt(26.25), rtol=1e-15)
    np.testing.assert_array_equal(Protection(clip_batch=6.0).apply(g), g)
    np.testing.assert_array_equal(Protection(keep_fraction=0.4).apply(g), [3.0, 0.0, -4.0, 0.0, 0.0])
    np.testing.assert_array_equal(Protection(keep_fraction=0.5).apply([1.0, -1.0, 1.0]), [1.0, -1.0, 0.0])
    rounded = Protection(levels=3).apply(g, rng=1)
    assert set(rounded) <= {-4.0, 0.0, 4.0}
    assert rounded[2] == -4.0
    everything = Protection(clip_batch=2.0, noise="gaussian", scale=0.1, keep_fraction=0.4, levels=5).apply(g, rng=1)
    assert (everything != 0).sum() <= 2
    assert Protection(clip_batch=1e200).apply([1e300, 1e300]).tolist() == pytest.approx([1e200 / math.sqrt(2)] * 2)


@pytest.mark.parametrize("levels", [2, 3, 16])
@pytest.mark.slow
def test_quantisation_is_right_in_the_mean(levels):
    g = np.array([1.0, 0.3, -0.77, 0.0, 1e-3])
    draws = np.array([Protection(levels=levels).apply(g, rng=seed) for seed in range(4000)])
    step = 2.0 / (levels - 1)
    assert (draws[:, 3] == 0.0).all()
    steps = np.delete(draws, 3, axis=1) / step + 0.5 * (levels - 1)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-12)
    assert np.max(np.abs(draws.mean(axis=0) - g)) < 5.5 * 0.5 * step / math.sqrt(4000)


@pytest.mark.parametrize(("noise", "law"), [("gaussian", stats.norm(0, 0.3)), ("laplace", stats.laplace(0, 0.3))])
def test_noise_is_what_it_says(noise, law):
    drawn = Protection(noise=noise, scale=0.3).apply(np.full(20_000, 2.0), rng=4) - 2.0
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6


def test_dp_sgd_protects_each_step():
    guard = Protection.dp_sgd(clip=0.2, noise_multiplier=1.5, batch_size=4)
    assert guard.scale == pytest.approx(1.5 * 0.2 / 4)
    found = training(protection=guard, local_steps=50, rounds=200, learning_rate=1e-6).run(RECORDS, LABELS, rng=1)
    clean = training(protection=Protection(clip_example=0.2), local_steps=50, rounds=200,
                     learning_rate=1e-6).run(RECORDS, LABELS, rng=1)
    noise = (found.shared - clean.shared).ravel() * math.sqrt(50) / guard.scale  # a mean of 50 independent noises
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert np.linalg.norm(clean.shared[0]) <= 0.2 + 1e-12


def test_labels_of_protections():
    assert [Protection().label, Protection(clip_example=1, clip_batch=2, noise="laplace", scale=0.5).label,
            Protection(keep_fraction=0.1, levels=8).label] == [
        "none", "clip 1, clip mean 2, laplace 0.5", "largest 10 %, 8 levels"]


def test_a_round_that_is_not_a_number_keeps_those_before():
    victim = Victim(fails_after=7)
    text = r"gradient must be finite; got nan at weight 4 in round 7 \(of 20, from 0"
    with pytest.raises(NotConvergedError, match=text) as error:
        training(victim, rounds=20).run(RECORDS, LABELS, rng=1)
    assert len(error.value.best) == 7
    whole = training(Victim(), rounds=20).run(RECORDS, LABELS, rng=1)
    np.testing.assert_array_equal(error.value.best.shared, whole.shared[:7])
    np.testing.assert_array_equal(error.value.best.weights, whole.before[7])
    mine = np.ones(18)
    with pytest.raises(NotConvergedError, match="in round 0") as error:
        training(Victim(fails_after=0)).run(RECORDS, LABELS, rng=1, weights=mine)
    assert len(error.value.best) == 0
    mine[0] = 2.0  # the caller's weights stay the caller's
    with pytest.raises(NotConvergedError, match="in round 1 .*take a smaller learning_rate") as error:
        training(rounds=9, learning_rate=1e290, share="weights").run(1e10 * RECORDS, LABELS, rng=1)
    assert len(error.value.best) == 1


def test_an_interrupted_training_keeps_its_rounds():
    def stop(number, total):
        if number == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="interrupted after 4 rounds") as error:
        training(rounds=9).run(RECORDS, LABELS, rng=1, progress=stop)
    whole = training(rounds=9).run(RECORDS, LABELS, rng=1)
    np.testing.assert_array_equal(error.value.best.shared, whole.shared[:4])


def test_what_a_users_model_returns_is_checked():
    text = "in round 0 .* compare its gradient with scipy.optimize.check_grad"
    with pytest.raises(NotConvergedError, match=text):
        training(Victim(np.nan)).run(RECORDS, LABELS, rng=1)
    with pytest.raises(ShapeError, match=r"model must return an array of shape \(18,\) from gradient\(\); got shape"):
        training(Victim(np.ones((2, 18)))).run(RECORDS, LABELS, rng=1)
    victim = Victim()
    victim.per_example_gradients = lambda *given: np.zeros(18)
    clipped = training(victim, protection=Protection(clip_example=1.0))
    with pytest.raises(ShapeError, match=r"model must return an array of shape \(4, 18\) from per_example_gradients"):
        clipped.run(RECORDS, LABELS, rng=1)


def test_errors():
    with pytest.raises(DomainError, match="batch_size must be at most the number of records, 30; got 31. Take a"):
        training(batch_size=31).run(RECORDS, LABELS, rng=1)
    with pytest.raises(DomainError, match="rate must be given where batch is 'poisson'; got None. Fixed"):
        training(batch="poisson", batch_size=None)
    with pytest.raises(DomainError, match="batch_size must be left out where batch is 'full'; got 4"):
        training(batch="full")
    with pytest.raises(DomainError, match="labels must be integers from 0 to 2; got 3 "):
        training().run(RECORDS, LABELS + 1, rng=1)
    with pytest.raises(DomainError, match="model must be a trainable model, with n_features.* which lacks n_features"):
        training("a model")
    with pytest.raises(DomainError, match="protection must be a Protection"):
        training(protection="none")
    with pytest.raises(DomainError, match="scale must be positive with noise, and 0 without; got 0.0 with noise"):
        Protection(noise="gaussian")
    with pytest.raises(DomainError, match="scale must be positive with noise, and 0 without; got 1.0 with"):
        Protection(scale=1.0)
    with pytest.raises(DomainError, match="round must be"):
        training().run(RECORDS, LABELS, rng=1).gradient(6)
