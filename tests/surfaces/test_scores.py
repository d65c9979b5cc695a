"""Scores of estimators and accountants: errors, verdicts, failures, files."""

import csv
import json
import math
import subprocess
import sys

import pytest

from fastpriv import Estimate, datasets
from fastpriv.datasets import CompositionTask, ReleaseStep

INFORMATION = datasets.mixture_tasks("mutual_information")
ENTROPIES = datasets.mixture_tasks("entropy")


def lines(scores):
    return {line["task"]: line for line in scores.named_rows()}


def test_the_bias_of_an_estimator_is_its_error():
    (task,) = [task for task in INFORMATION if task.name == "gaussian-weak-1-1"]
    answers = iter([task.truth.value + 0.25, task.truth.value + 0.75])
    scores = datasets.score_estimator(lambda x, y: next(answers), [task], samples=3, repeats=2, rng=1)
    (line,) = scores.named_rows()
    assert (line["task"], line["quantity"], line["dimension"]) == (task.name, "mutual_information", 2)
    assert (line["truth"], line["lower"], line["upper"]) == (task.truth.value, task.truth.lower, task.truth.upper)
    assert line["error"] == pytest.approx(0.5, rel=1e-12)
    assert line["standard_error"] == pytest.approx(0.25, rel=1e-12)
    assert line["estimate"] == pytest.approx(task.truth.value + 0.5, rel=1e-12)
    assert line["failure"] is None
    assert line["seconds"] >= 0.0


def test_one_answer_has_no_standard_error():
    (line,) = datasets.score_estimator(lambda x: 1.0, ENTROPIES[:1], samples=3, repeats=1, rng=1).named_rows()
    assert line["standard_error"] is None


def test_samples_depend_on_the_seed_and_on_the_name_of_the_task_alone():
    first = lines(datasets.score_estimator(lambda x: x.mean(), ENTROPIES, samples=5, repeats=2, rng=7))
    alone = lines(datasets.score_estimator(lambda x: x.mean(), ENTROPIES[3:4], samples=5, repeats=2, rng=7))
    other = lines(datasets.score_estimator(lambda x: x.mean(), ENTROPIES[3:4], samples=5, repeats=2, rng=8))
    name = ENTROPIES[3].name
    assert first[name]["estimate"] == alone[name]["estimate"] != other[name]["estimate"]
    assert first[name]["standard_error"] > 0.0  # the repeats have samples of their own


def test_what_fails_is_recorded_and_nothing_else_is_lost():
    def fragile(x):
        if x.shape[1] == 1:
            raise RuntimeError("no neighbours")
        return math.nan if x.shape[1] == 50 else Estimate(
            1.0, 0.0, 2.0, kind="heuristic", unit="nats", method="test")

    scores = datasets.score_estimator(fragile, ENTROPIES, samples=4, repeats=2, rng=1)
    table = lines(scores)
    assert len(table) == 8
    assert table["entropy-one-1"]["failure"] == "RuntimeError: no neighbours"
    assert table["entropy-one-1"]["estimate"] is table["entropy-one-1"]["error"] is None
    assert table["entropy-normal-50"]["failure"] == "the answer is nan"
    assert (table["entropy-circle-2"]["estimate"], table["entropy-circle-2"]["failure"]) == (1.0, None)
    assert repr(scores) == "<ScoreTable of 8 tasks, 3 with failures>"
    assert "RuntimeError: no neighbours" in str(scores)


def test_the_mean_is_that_of_the_answers_that_did_not_fail():
    answers = iter([1.0, "three", 2.0])
    (line,) = datasets.score_estimator(lambda x: next(answers), ENTROPIES[:1], samples=2, repeats=3, rng=1).named_rows()
    assert line["estimate"] == 1.5
    assert line["failure"].startswith("ValueError: could not convert string to float")


def test_the_default_tasks_and_their_progress():
    calls = []
    scores = datasets.score_estimator(lambda x, y: 0.0, samples=2, repeats=1, rng=1,
                                      progress=lambda *numbers: calls.append(numbers))
    assert list(lines(scores)) == [task.name for task in INFORMATION]
    assert calls[-1] == (len(INFORMATION), len(INFORMATION))


def composed(lower, value, upper, log_value):
    truth = Estimate(value, lower, upper, kind="certified", unit="probability", method="test")
    log_truth = Estimate(log_value, log_value, log_value, kind="certified", unit="log probability", method="test")
    return CompositionTask(name="gaussian-test", steps=(ReleaseStep("gaussian", 1.0, 1.0, 1),), epsilon=1.0,
                           direction="worst", truth=truth, log_truth=log_truth)


@pytest.mark.parametrize(("delta", "verdict", "ratio"), [
    (0.125, "within", -math.log(2)), (math.nextafter(0.125, 0.0), "unsafe", -math.log(2)), (0.0, "unsafe", -math.inf),
    (0.5, "within", math.log(2)), (math.nextafter(0.5, 1.0), "above", math.log(2)), (1, "above", math.log(4)),
])
def test_a_delta_below_the_lower_bound_is_unsafe(delta, verdict, ratio):
    task = composed(0.125, 0.25, 0.5, math.log(0.25))
    (line,) = datasets.score_accountant(lambda task: delta, [task]).named_rows()
    assert (line["verdict"], line["delta"], line["failure"]) == (verdict, delta, None)
    assert line["log_ratio"] == pytest.approx(ratio, rel=1e-12)
    assert (line["epsilon"], line["direction"], line["truth"]) == (1.0, "worst", 0.25)


def test_an_accountant_that_fails_loses_nothing_else():
    def fragile(task):
        if task.steps[0].mechanism == "laplace":
            raise NotImplementedError("Laplace noise")
        return math.inf if task.name == "gaussian-001" else 1.0

    table = lines(datasets.score_accountant(fragile))
    assert len(table) == 300
    assert table["laplace-001"]["failure"] == "NotImplementedError: Laplace noise"
    assert table["laplace-001"]["verdict"] is table["laplace-001"]["delta"] is table["laplace-001"]["log_ratio"] is None
    assert table["gaussian-001"]["failure"] == "the answer is inf"
    assert {line["verdict"] for line in table.values()} == {None, "above"}


def test_the_table_is_written_with_all_digits(tmp_path):
    scores = datasets.score_estimator(lambda x: 1 / 3, ENTROPIES[:2], samples=2, repeats=2, rng=1)
    scores.to_csv(tmp_path / "scores.csv")
    scores.to_json(tmp_path / "scores.json")
    with (tmp_path / "scores.csv").open() as stream:
        (first, _) = csv.DictReader(stream)
    assert float(first["estimate"]) == 1 / 3
    assert first["failure"] == ""
    document = json.loads((tmp_path / "scores.json").read_text())
    assert document["table"][0]["error"] == 1 / 3 - ENTROPIES[0].truth.value
    assert scores.columns()[:2] == ("task", "quantity")
    assert len(scores.columns()) == len(scores.rows()[0]) == 11


def test_wrong_arguments_of_the_scorers():
    with pytest.raises(ValueError, match=r"estimator must be callable; got 0\.5\. Pass the function, without"):
        datasets.score_estimator(0.5)
    with pytest.raises(ValueError, match=r"accountant must be callable; got .*\. Pass the function, without"):
        datasets.score_accountant("rdp")
    with pytest.raises(ValueError, match=r"tasks\[0\] must be a CompositionTask"):
        datasets.score_accountant(lambda task: 1.0, ENTROPIES)
    with pytest.raises(ValueError, match=r"tasks must be a sequence of MixtureTask"):
        datasets.score_estimator(lambda x: 1.0, 5)
    with pytest.raises(ValueError, match=r"repeats must be an integer of at least 1 and at most 10000; got 0"):
        datasets.score_estimator(lambda x: 1.0, ENTROPIES, repeats=0)


@pytest.mark.slow
def test_the_truths_are_read_on_first_use():
    code = ("import sys; from fastpriv import datasets; datasets.adult; "
            "assert 'fastpriv.studies.datasets.known_truths' not in sys.modules; datasets.mixture_tasks; "
            "from fastpriv.studies.datasets import known_truths; print(known_truths._tasks_of_file.cache_info())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "misses=0" in done.stdout


@pytest.mark.slow
def test_the_accountant_of_dp_accounting_is_scored_by_its_events():
    """By the events that docs/truths.md names; it rounds losses up, and is a little above the truth."""
    dp = pytest.importorskip("dp_accounting")
    accounting = pytest.importorskip("dp_accounting.pld")

    def event_of(task):
        noises = {"gaussian": dp.GaussianDpEvent, "laplace": dp.LaplaceDpEvent}
        return dp.ComposedDpEvent([
            dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(step.rate, noises[step.mechanism](step.scale)), step.count)
            for step in task.steps
        ])

    names = ("sampled-gaussian-046", "gaussian-018", "laplace-013", "sampled-laplace-006", "mixed-037")
    tasks = [task for task in datasets.composition_tasks() if task.name in names]
    scores = datasets.score_accountant(
        lambda task: accounting.PLDAccountant().compose(event_of(task)).get_delta(task.epsilon), tasks)
    table = lines(scores)
    assert len(table) == len(names)
    for line in table.values():
        assert line["failure"] is None
        assert line["verdict"] == "above", line
        assert 0.0 <= line["log_ratio"] < 0.02, line
