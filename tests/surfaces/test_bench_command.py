"""``fastpriv bench``: its options, what it calls a wrong answer, and the ratios that fell; times are made up."""

import json
import math

import numpy as np
import pytest
from comparison import history, program
from comparison.tasks import Answer, Peer, Task, agrees, contains, read_answer, relative_difference

from fastpriv import DomainError, Estimate
from fastpriv.cli import main

BRACKET = Estimate(1.0, 0.9, 1.1, kind="certified", unit="1", method="example")


def absent():
    raise ImportError("No module named 'nothing'", name="nothing")


def broken():
    raise TypeError("its function has another name")


def example(name="an example", answer=1.0, peers=(), **words):
    others = {"agrees": Peer(lambda: lambda: answer, 1e-9), **dict(peers)}
    return Task(name, lambda: (lambda: BRACKET, others), **words)


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(program, "_SECONDS", {False: 1e-3, True: 1e-4})
    monkeypatch.setattr(program, "machine_limits", lambda budget: {"exp": 1e9, "bytes": 1e10, "flops": 1e11})


def result_of(seconds, **peers):
    best = min(peers, key=peers.get, default=None)
    return {
        "seconds": seconds, "memory": 10**6, "width": 1e-12, "limit": "exp", "share": 0.5, "wrong": [], "best": best,
        "ratio": peers[best] / seconds if peers else None,
        "peers": {name: {"seconds": time, "memory": None, "difference": 1e-3} for name, time in peers.items()},
    }


@pytest.fixture
def measurements(monkeypatch, fast):
    """Results that tasks of these names have, instead of measured ones."""
    results = {}
    monkeypatch.setattr(program, "measured", lambda task, quick, limits: results[task.name])
    return results


def test_the_command_lists_its_tasks(capsys):
    assert main(["bench", "--list", "--only", "HOCKEY", "--only", "shuffled"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "hockey-stick, 8 + 8 components, one epsilon", "hockey-stick, 8 + 8 components, 201 epsilons",
        "delta, 10,000 shuffled reports",
    ]
    names = [task.name for task in program.TASKS]
    assert len(set(names)) == len(names) >= 25
    assert all(task.limit in ("", "exp", "bytes", "flops") and (task.work > 0) == bool(task.limit)
               for task in program.TASKS)


def test_bad_input_is_one_sentence(tmp_path, capsys):
    assert main(["bench", "--only", "nothing"]) == 2
    said = capsys.readouterr().err
    assert "--only must be a part of the name of a task; got 'nothing'. fastpriv bench --list shows the names." in said
    bad = tmp_path / "history.jsonl"
    for line in ("not JSON", "3", "{}"):
        bad.write_text('{"machine": "m", "instruction set": "avx2", "tasks": {}}\n' + line + "\n")
        with pytest.raises(DomainError, match="history must have one run of fastpriv bench on each line, as JSON"):
            history.read_history(bad)
    assert main(["bench", "--history", str(bad)]) == 2
    assert "in line 2 of" in capsys.readouterr().err


def test_answers_are_compared():
    assert read_answer(BRACKET) == ([1.0], [0.9], [1.1])
    assert read_answer([BRACKET, BRACKET]).width == pytest.approx(0.2)
    assert read_answer((np.ones(2), np.zeros(2), 2 * np.ones(2))).width == 2.0
    assert read_answer([1.0, 2.0]).width is None
    answer = Answer(np.array([1.0, 1e-6, 1e-300]))
    assert agrees(answer, np.array([1.0, 2e-6, 0.0]), 1e-5)  # lost digits of a small value, which are shown:
    assert relative_difference(answer, np.array([1.0, 2e-6, 0.0])) == pytest.approx(1.0)
    assert not agrees(answer, np.array([1.0, 1e-3, 0.0]), 1e-5)
    assert not agrees(answer, np.array([math.nan, 1e-6, 0.0]), 1e-5)
    assert not agrees(answer, np.ones(2), 1.0)
    assert contains(read_answer(BRACKET), np.array([1.2]), 0.1)
    assert not contains(read_answer(BRACKET), np.array([1.2]), 1e-3)


@pytest.mark.slow
def test_wrong_answers_fail(fast):
    said = []

    def code(task, quick=False):
        said.clear()
        return program.run(quick=quick, tasks=[task], write=said.append)

    assert code(example(truth=(1.05, 1e-3), limit="exp", work=100.0)) == 0
    assert code(example(truth=(1.2, 1e-3))) == 1
    assert "WRONG: an example: the bracket does not contain the known value 1.2" in "".join(said)
    assert code(example(answer=1.01)) == 1
    assert "WRONG: an example: agrees differs by more than 1e-09 of the largest value" in "".join(said)
    exact = {"exact": Peer(lambda: lambda: 1.2, 0.5, error=1e-6, slow=True)}
    assert code(example(peers=exact)) == 1
    assert "WRONG: an example: the bracket does not contain the answer of exact" in "".join(said)
    assert code(example(peers=exact), quick=True) == 0  # without slow peers
    left_out = {"a": Peer(absent, 0.1), "b": Peer(broken, 0.1)}
    assert code(example(peers=left_out)) == 0
    text = "".join(said)
    assert "Left out: a (not installed: No module named 'nothing')" in text
    assert "Left out: b (TypeError: its function has another name)" in text
    assert code(Task("alone", lambda: (lambda: 1.0, {}))) == 0
    assert "none installed" in "".join(said)


def test_a_ratio_that_fell_by_a_fifth_fails(measurements, tmp_path):
    path, said, task = tmp_path / "history.jsonl", [], example("t")

    def code(result):
        measurements["t"] = result
        said.clear()
        return program.run(history=str(path), tasks=[task], write=said.append)

    assert code(result_of(1.0, line=10.0)) == 0
    assert code(result_of(1.0, line=8.1)) == 0
    assert code(result_of(1.0, line=6.4)) == 1
    assert "WRONG: t: the ratio to line fell from 8.1 to 6.4" in "".join(said)
    assert code(result_of(1.0, line=6.4)) == 0
    assert code(result_of(1.0, line=6.4, new=2.0)) == 0  # a new peer is no regression
    assert code(result_of(1.0, line=6.4)) == 0  # nor one that is gone
    runs = history.read_history(path)
    assert [run["tasks"]["t"]["ratio"] for run in runs] == [10.0, 8.1, 6.4, 6.4, 2.0, 6.4]
    assert history.last_results(runs, "another machine", runs[0]["instruction set"]) == {}
    assert history.last_results(runs, runs[0]["machine"], "none") == {}


def test_runs_of_some_tasks_are_compared_with_the_last_that_has_them():
    runs = [{"machine": "m", "instruction set": "avx2", "tasks": tasks} for tasks in (
        {"a": result_of(1.0, line=10.0), "b": result_of(1.0, line=3.0)}, {"b": result_of(1.0, line=4.0)})]
    before = history.last_results(runs, "m", "avx2")
    after = {"a": result_of(2.0, line=10.0), "b": result_of(1.0, line=4.0), "c": result_of(1.0)}
    assert history.regressions(before, after) == {"a": ("line", 10.0, 5.0)}


def test_a_ratio_that_recovers_is_measured_twice(monkeypatch, measurements, tmp_path):
    path = tmp_path / "history.jsonl"
    measurements["t"] = result_of(1.0, line=10.0)
    assert program.run(history=str(path), tasks=[example("t")], write=str) == 0
    turns = iter((result_of(2.0, line=10.0), result_of(1.0, line=10.0)))
    monkeypatch.setattr(program, "measured", lambda *_: next(turns))
    assert program.run(history=str(path), tasks=[example("t")], write=str) == 0


def test_what_is_printed(measurements, capsys):
    measurements["t"] = result_of(2.5e-5, line=0.1, other=2.0)

    def said(output):
        texts = []
        assert program.run(tasks=[example("t")], output=output, write=texts.append) == 0
        return "".join(texts)

    text = said("text")
    assert "1e+09 exponentials a second, 1e+10 bytes a second, 1e+11 operations a second." in text
    (line,) = [line for line in text.splitlines() if line.startswith("t ")]
    assert line.split() == ["t", "25", "us", "line", "100", "ms", "4,000", "50", "%", "exp", "1e-12", "1e-03", "1.0"]
    assert "1 tasks, fastpriv slower than a peer in 0." in text
    page = said("markdown")
    assert "| t | 25 us | line | 100 ms | 4,000 | 50 % exp | 1e-12 | 1e-03 | 1.0 |" in page
    assert "| t | other | 2 s | 80,000 | 1e-03 |  |" in page
    assert json.loads(said("json"))["tasks"]["t"] == measurements["t"]
    measurements["t"]["wrong"] = ["it is wrong"]
    assert program.run(tasks=[example("t")], output="json", write=str) == 1
    assert capsys.readouterr().err == "t: it is wrong\n"
