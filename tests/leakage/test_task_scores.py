"""Scores of attacks against exact optima: sums over all batches one by one, bands, score files, errors."""

import itertools
import math
import re

import numpy as np
import pytest

from fastpriv import DomainError, ShapeError
from fastpriv.studies.datasets import digits
from fastpriv.studies.leakage import (
    GradientMatching,
    GradientProductAttack,
    LeakageTask,
    PoolPursuit,
    leakage_scoreboard,
    leakage_tasks,
    read_task_scores,
    score_attack,
)
from fastpriv.studies.leakage.task_scores import _band, _unbounded_band

RNG = np.random.default_rng(5)
RECORDS, LABELS = RNG.normal(size=(7, 3)), RNG.integers(0, 2, 7)
WEIGHTS = RNG.normal(size=(2, 2, 4))


def small(trials=3, **mechanism):
    return LeakageTask("small", "a small one", RECORDS, LABELS, WEIGHTS, trials, **mechanism)


TASKS = [small(size=2, sigma=0.3), small(size=1, sigma=0.5), small(size=2.1, sigma=0.4, sampling_rate=0.3),
         small(size=3, sigma=0.01), small(size=2, sigma=30.0)]  # fmt: skip


def law_of(task, t):
    """Every batch with its posterior probability, from densities."""
    sizes = range(8) if task.members is None else [task.members]
    batches = [one for size in sizes for one in itertools.combinations(range(7), size)]
    rate = task.membership_rate
    logs = []
    for one in batches:
        log = len(one) * math.log(rate) + (7 - len(one)) * math.log1p(-rate) if task.members is None else 0.0
        for step, output in zip(task.steps, task.outputs[t], strict=True):
            log -= np.sum((output - step.gradient(list(one))) ** 2) / (2 * step.sigma**2)
        logs.append(log)
    law = np.exp(np.array(logs) - max(logs))
    return batches, law / law.sum()


def auc_of(batches, law, scores):
    """Expected pairs in order over expected pairs."""
    hits = pairs = 0.0
    for one, chance in zip(batches, law, strict=True):
        others = [k for k in range(7) if k not in one]
        for k, other in itertools.product(one, others):
            hits += chance * ((scores[k] > scores[other]) + 0.5 * (scores[k] == scores[other]))
            pairs += chance
    return hits / pairs


def inside(estimate, value, slack=1e-9):
    assert estimate.lower - slack * abs(value) <= value <= estimate.upper + slack * abs(value), (estimate, value)
    assert estimate.width <= 1e-6 * (1 + abs(value))


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_sums_over_all_batches(task):
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=(3, 7)).round(1)  # with ties
    scores[0, 0], scores[1, 1] = 0.05, 0.95
    scores = np.clip(scores, 0.05, 0.95)
    found = score_attack(task, scores, probabilities=True)
    assert found.trials == 3
    success, auc, information, best = [], [], [], []
    m, hits = task.membership_rate, 0
    for t in range(3):
        batches, law = law_of(task, t)
        guess = tuple(int(k) for k in task.guess(scores[t], True))
        success.append(law[batches.index(guess)])
        auc.append(auc_of(batches, law, scores[t]))
        p = np.array([sum(w for one, w in zip(batches, law, strict=True) if k in one) for k in range(7)])
        prior = -7 * (m * math.log(m) + (1 - m) * math.log1p(-m))
        information.append(prior + np.sum(p * np.log(scores[t]) + (1 - p) * np.log1p(-scores[t])))
        with np.errstate(divide="ignore", invalid="ignore"):
            coins = np.nan_to_num(p * np.log(p)) + np.nan_to_num((1 - p) * np.log1p(-np.minimum(p, 1)))
        best.append([law.max(), auc_of(batches, law, p), prior + np.sum(coins)])
        hits += guess == tuple(task.batches[t])
    assert found.found == hits
    optimum = np.mean(best, axis=0)
    inside(found.success, np.mean(success))
    inside(found.auc, np.mean(auc))
    inside(found.information, np.mean(information))
    inside(found.best_success, optimum[0])
    inside(found.best_auc, optimum[1])
    inside(found.best_information, optimum[2], slack=1e-9 * prior / optimum[2])
    inside(found.success_fraction, np.mean(success) / optimum[0])
    if optimum[1] > 0.51:
        inside(found.auc_fraction, (np.mean(auc) - 0.5) / (optimum[1] - 0.5))
        inside(found.information_fraction, np.mean(information) / optimum[2])
    assert 0.0 <= found.success_band.lower <= found.success_band.value <= found.success_band.upper <= 1.0
    assert found.auc_band.kind == "statistical"
    assert found.success_fraction.kind == "certified"
    assert found.information_band.kind == "heuristic"
    assert found.information_band.lower < found.information_fraction.value < found.information_band.upper


@pytest.mark.few(2)
@pytest.mark.parametrize("task", TASKS)
def test_the_exact_posterior_attains_the_optimum(task):
    posteriors = [task.posterior(t) for t in range(3)]
    chances = np.clip([one.inclusion.value for one in posteriors], 1e-14, 1 - 1e-14)  # a wrong 1 costs infinitely much
    best = score_attack(task, chances, probabilities=True,
                        guesses=[one.map_index for one in posteriors])  # fmt: skip
    for name in ("success", "auc", "information"):
        fraction = getattr(best, f"{name}_fraction")
        assert fraction.lower - 1e-9 <= 1.0 <= fraction.upper + 1e-9
        assert fraction.width < 1e-6
        for row in np.random.default_rng(2).uniform(size=(5, 3, 7)):
            other = score_attack(task, row, probabilities=True)
            assert getattr(other, name).lower <= getattr(best, f"best_{name}").upper


def test_reconstructed_records_are_matched_to_different_ones():
    task = TASKS[0]
    near = [np.array([task.records[4] + 0.01, task.records[2] - 0.01])] * 3
    assert score_attack(task, records=near).success == score_attack(task, guesses=[[2, 4]] * 3).success
    twice = [np.stack([task.records[4], task.records[4]])] * 3  # the second one goes to another record
    assert score_attack(task, records=twice).success is not None
    assert score_attack(task, records=near).auc is None


def test_attacks_are_scored_as_they_are():
    product = GradientProductAttack()
    board = leakage_scoreboard(product, TASKS[:1])
    task = TASKS[0]
    scores = [product.scores(task.updates(t), task.records, task.labels) for t in range(3)]
    assert board.scores[0] == score_attack(task, scores)
    assert leakage_scoreboard(lambda task: product, TASKS[:1]).scores == board.scores
    updates = task.updates(1)
    np.testing.assert_array_equal(updates.gradient(1), task.outputs[1, 1].ravel())
    assert updates.training.protection.gaussian_sigma == 0.3
    poisson = TASKS[2].updates(0)
    assert poisson.training.expected_size(7) == pytest.approx(TASKS[2].steps[0].size)
    single = small(size=1, sigma=1e-4)
    pursued, = leakage_scoreboard(lambda task: PoolPursuit(task.records, task.labels), [single]).scores
    assert pursued.found == 3
    assert pursued.success_fraction.value == pytest.approx(1.0)
    inverted, = leakage_scoreboard(GradientMatching(bounds=(-4.0, 4.0)), [single], rng=1).scores
    assert inverted.found == 3
    assert inverted.auc is None


def test_scores_that_say_nothing_or_are_infinite():
    task = TASKS[0]
    flat = score_attack(task, np.zeros((3, 7)))
    assert flat.auc.lower <= 0.5 <= flat.auc.upper
    assert flat.auc_fraction.lower <= 0.0 <= flat.auc_fraction.upper
    sure = np.where(np.arange(7) < 2, math.inf, -math.inf) * np.ones((3, 1))
    inside(score_attack(task, sure).auc, np.mean([auc_of(*law_of(task, t), sure[t]) for t in range(3)]))
    wrong = score_attack(task, (sure > 0).astype(float), probabilities=True)
    assert wrong.information.value == -math.inf
    assert wrong.information_fraction.value == -math.inf
    assert wrong.information_band is None


@pytest.mark.parametrize(("floor", "top"), [(0.0, 1.0), (1.0, 0.5)])
def test_bands_hold_the_fraction_of_the_population(floor, top):
    rng, misses = np.random.default_rng(7), 0
    for _ in range(60):
        most = top * rng.beta(2, 2, 40)
        gain = most * (rng.beta(3, 2, 40) if floor == 0 else 1 - 1.5 * rng.uniform(size=40))
        truth = 0.6 if floor == 0 else 0.25
        band = _band(gain, most, float(gain.mean() / most.mean()), 0.8, floor, top)
        misses += not band.lower <= truth <= band.upper
        assert -floor <= band.lower <= band.upper <= 1.0
    assert misses <= 20  # 60 x 0.2, and 2.6 standard deviations
    assert _band(np.full(400, 0.3), np.full(400, 0.5), 0.6, 0.95, 0.0, 1.0).width < 0.2


def test_heuristic_bands_are_about_right():
    rng, misses = np.random.default_rng(8), 0
    for _ in range(300):
        most = rng.gamma(3.0, 1.0, 30)
        gain = most * (0.4 + 0.3 * rng.normal(size=30))
        band = _unbounded_band(gain, most, float(gain.mean() / most.mean()), 0.8)
        misses += not band.lower <= 0.4 <= band.upper
    assert 30 <= misses <= 100  # 60 expected, and what the quotient adds
    assert _unbounded_band(gain[:1], most[:1], 0.4, 0.8) is None


def test_the_twenty_tasks():
    names = [
        "digits-single", "digits-single-low", "digits-single-clipped", "digits-single-trained", "digits-pairs",
        "digits-pairs-all", "digits-pairs-clipped", "digits-pairs-trained", "digits-pairs-two-rounds",
        "digits-triples", "digits-triples-high", "digits-triples-trained", "digits-triples-three-rounds",
        "digits-triples-all", "digits-quadruples", "poisson-rare", "poisson-even", "poisson-clipped",
        "gaussian-triples", "gaussian-million",
    ]  # fmt: skip
    tasks = leakage_tasks("digits-single-clipped", "digits-triples-three-rounds", "poisson-rare", "gaussian-triples")
    for task in tasks:
        best = float(task.posterior(0).vulnerability)
        assert 1.0 / task.likelihood(0).size < best <= 1.0
        assert task.steps[0].sigma > 0
        assert task.description in repr(task)
        with pytest.raises(ValueError, match="read-only"):
            task.outputs[0] = 0
    with pytest.raises(DomainError, match=re.escape(f"names must be among {', '.join(names)}; got 'digit'")):
        leakage_tasks("digit")
    again, = leakage_tasks("gaussian-triples")
    np.testing.assert_array_equal(again.outputs, tasks[3].outputs)
    np.testing.assert_allclose(again.outputs[0, 0, 0, :2], [-0.7307592179887965, -0.5401987038673379], rtol=1e-12)


def test_digits_are_those_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    pixels, labels = datasets.load_digits(return_X_y=True)
    np.testing.assert_array_equal(digits()[0], pixels)
    np.testing.assert_array_equal(digits()[1], labels)


def test_what_the_attacker_knows_goes_into_a_file(tmp_path):
    TASKS[2].to_npz(tmp_path / "task.npz")
    with np.load(tmp_path / "task.npz") as archive:
        assert "batches" not in archive
        np.testing.assert_array_equal(archive["outputs"], TASKS[2].outputs)
        assert (float(archive["sampling_rate"]), float(archive["clip"]), float(archive["size"])) == (0.3, math.inf, 2.1)


def written(path, task, scores, header="task,release,record,score", skip=(), extra=()):
    lines = [f"{task.name},{t},{k},{scores[t, k]!r}" for t, k in np.ndindex(*scores.shape) if (t, k) not in skip]
    path.write_text("\n".join([header, *lines, *extra]) + "\n")
    return path


def test_files_of_scores(tmp_path):
    task = TASKS[0]
    scores = np.random.default_rng(3).normal(size=(3, 7))
    listed = [float(x) for x in scores.ravel()]
    scores[0, 0] = -math.inf
    listed[0] = -math.inf
    text = "\n".join(f"{listed[i]!r},{i % 7},small,{i // 7}" for i in range(21))
    (tmp_path / "scores.csv").write_text("score,record,task,release\n" + text + "\n\n")
    np.savez(tmp_path / "scores.npz", small=scores)
    for name in ("scores.csv", "scores.npz"):
        np.testing.assert_array_equal(read_task_scores(tmp_path / name, [task])["small"], scores)
    board = leakage_scoreboard(tmp_path / "scores.csv", [task, small(trials=1, size=1, sigma=1.0)][:1])
    assert board.scores[0] == score_attack(task, scores)
    assert board.rows()[0]["task"] == "small"
    assert "small" in str(board)
    board.to_csv(tmp_path / "board.csv")
    assert (tmp_path / "board.csv").read_text().startswith("task,trials,found,success,")
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"task": ["small"] * 21, "release": [i // 7 for i in range(21)], "record": [i % 7 for i in range(21)],
               "score": listed}  # fmt: skip
    parquet.write_table(arrow.table(columns), tmp_path / "scores.parquet")
    np.testing.assert_array_equal(read_task_scores(tmp_path / "scores.parquet", [task])["small"], scores)
    one = small(trials=1, size=1, sigma=1.0)
    (tmp_path / "one.csv").write_text("task,record,score\n" + "".join(f"small,{k},{k}\n" for k in range(7)))
    np.testing.assert_array_equal(read_task_scores(tmp_path / "one.csv", [one])["small"], [np.arange(7.0)])


@pytest.mark.parametrize(("text", "error"), [
    ("task,record\nsmall,0\n", "path must have columns task, record, score; got .* without score"),
    ("", "file must have at least one record; got the empty file"),
    ("task,record,score\nsmal,0,1\n", r"path must name tasks, such as small; got 'smal' in line 2 \(1 of 1\)"),
    ("task,record,score\nsmall,7,1\n", "records from 0 to 6 and scores that are numbers; got .* in line 2, of small"),
    ("task,record,score\nsmall,0,nan\n", "and scores that are numbers; got .* in line 2"),
    ("task,record,score\nsmall,0,high\n", "and scores that are numbers; got .* in line 2"),
    ("task,record,score,release\nsmall,0,1,3\n", "releases from 0 to 2, records from 0 to 6"),
    ("task,record,score\nsmall,0,1\nsmall,0,1\n", "got another of record 0, release 0 of small in line 3"),
    ("task,record,score\nsmall,0,1\n", r"got none of record 1, release 0 \(20 of 21 are missing\)"),
    ("task,record,score\nsmall,0\n", "line 2 must be of 3 cells like the first line; got 2"),
    ("task,record,score\nsmall,0,\xff\n", "file must be text in UTF-8; got byte 0xff"),
])  # fmt: skip
def test_files_that_are_wrong(tmp_path, text, error):
    (tmp_path / "scores.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DomainError, match=error):
        read_task_scores(tmp_path / "scores.csv", TASKS[:1])


def test_what_is_told_when_something_is_wrong(tmp_path):
    task, scores = TASKS[0], np.zeros((3, 7))
    np.savez(tmp_path / "other.npz", other=scores)
    np.savez(tmp_path / "shape.npz", small=scores[:2])
    (tmp_path / "bad.parquet").write_text("no")
    domain, shape = DomainError, ShapeError
    for call, error, text in [
        (lambda: score_attack(task), domain, "scores must be given, or guesses or records; got none of them"),
        (lambda: score_attack(task, guesses=[[0, 1]] * 3, records=[]), domain, "must not both be given"),
        (lambda: score_attack(task, scores[:2]), shape, r"scores must have a row a trial .* \(3, 7\) of small; got"),
        (lambda: score_attack(task, scores + math.nan), domain, "scores must be numbers, not NaN; got"),
        (lambda: score_attack(task, scores - 1, probabilities=True), domain, "scores must be probabilities, from 0"),
        (lambda: score_attack(task, guesses=[[0, 1]]), shape, "guesses must have one entry a trial, 3; got 1"),
        (lambda: score_attack(task, guesses=[[0]] * 3), shape, r"guesses must be batches of 2 records; got shape"),
        (lambda: score_attack(TASKS[2], guesses=[[[0, 1]]] * 3), shape, "batches of any number of records; got"),
        (lambda: score_attack(task, guesses=[[0, 7]] * 3), domain, "guesses must be different records from 0 to"),
        (lambda: score_attack(task, records=[np.zeros((2, 4))] * 3), shape, r"records must be of shape \(..., S, 3"),
        (lambda: score_attack(task, records=[np.full((2, 3), math.nan)] * 3), domain,
         "records must be finite; got one that is not at trial 0"),
        (lambda: score_attack(task, scores, confidence=1.0), domain, "confidence must be strictly between 0"),
        (lambda: score_attack(1, scores), domain, "task must be"),
        (lambda: LeakageTask("a", "b", RECORDS, LABELS, WEIGHTS[0], 1, size=1, sigma=1.0), shape,
         r"weights must be a stack of matrices, one a release; got shape \(2, 4\)"),
        (lambda: task.posterior(3), domain, "trial must be"),
        (lambda: leakage_scoreboard({"smal": scores}, [task]), domain, "scores must name tasks, such as small"),
        (lambda: leakage_scoreboard(3, [task]), domain, "scores must be the name of a file or a directory; got 3"),
        (lambda: leakage_scoreboard({}, 3), domain, "tasks must be a sequence of LeakageTask objects; got 3"),
        (lambda: leakage_scoreboard({}, [task]), domain, "scores must be those of at least one task; got none"),
        (lambda: read_task_scores(tmp_path / "no.csv", [task]), FileNotFoundError, "path must be an existing file"),
        (lambda: read_task_scores("scores.txt", [task]), domain, "path must end in .csv, .npz or .parquet; got"),
        (lambda: read_task_scores(tmp_path / "other.npz", [task]), domain, "path must name tasks, such as small; got"),
        (lambda: read_task_scores(tmp_path / "shape.npz", [task]), shape, "scores must have a row a trial"),
        (lambda: read_task_scores(tmp_path / "bad.parquet", [task]), domain, "file must be a whole Parquet file; got"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "scores.parquet").write_text("PAR1")
    with pytest.raises(ImportError, match="pyarrow must be installed to read Parquet; got none"):
        read_task_scores(tmp_path / "scores.parquet", TASKS[:1])


@pytest.mark.parametrize("name", ["gaussian-triples", "digits-triples-trained"])
def test_the_best_attack_has_no_fraction_above_one(name):
    """1.0000000000000107 was shown, and a probability of 1 that is rounded had the lower bound -inf."""
    (task,) = leakage_tasks(name)
    best = score_attack(task, [task.posterior(t).inclusion.value for t in range(task.trials)], probabilities=True)
    for kind in ("success", "auc", "information"):
        fraction = getattr(best, f"{kind}_fraction")
        assert fraction.value <= fraction.upper <= 1.0
        assert np.isfinite(fraction.lower)
        band = getattr(best, f"{kind}_band")
        assert band is None or np.isfinite(band.lower)
    for kind in ("success", "auc"):
        assert getattr(best, kind).upper <= 1.0
    assert best.information_fraction.lower > 1.0 - 1e-6
    wrong = score_attack(task, [1.0 - np.round(task.posterior(t).inclusion.value) for t in range(task.trials)],
                         probabilities=True)  # fmt: skip
    assert wrong.information.value == -np.inf  # certain, and false
