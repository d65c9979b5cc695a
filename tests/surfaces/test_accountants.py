"""Programs of other accountants run within limits, the scoreboard judges their answers, and a picture shows them."""

import csv
import importlib.util
import math
from pathlib import Path

import comparison.accountants as accountants
import numpy as np
import pytest
from comparison.accountants import ACCOUNTANTS, SCHEME_ACCOUNTANTS, Accountant, CompositionQuestion, answers

from fastpriv import DomainError, GaussianMechanism, figures
from fastpriv.adapters.step_tables import make_step
from fastpriv.errors import ShapeError

BENCHES = Path(__file__).parents[2] / "benches"

GAUSSIAN = make_step({"kind": "gaussian", "sigma": 4.0, "sensitivity": 2.0, "count": 3})
SAMPLED = make_step({"kind": "sampled_gaussian", "sigma": 1.5, "rate": 0.25, "count": 10})
QUESTION = CompositionQuestion((GAUSSIAN,), "delta", 1.0, 1e-3)


def program_of(text, side="upper", name="example", module="math"):
    return Accountant(name, module, side, lambda question: text if text is None else text.split("\n"))


@pytest.mark.slow
def test_programs_run_within_limits():
    def outcome(text, **limits):
        return answers(program_of(text), [QUESTION], **limits)[0]

    found = outcome("import math\nanswer = math.sqrt(4), math.inf")
    assert (found.status, found.answer) == ("answered", (2.0, math.inf))
    assert found.program == ("import math", "answer = math.sqrt(4), math.inf")
    assert outcome(None).status == "not offered"
    assert outcome("answer = 1 / 0").error == "ZeroDivisionError: division by zero"
    assert outcome("print('noise')\nanswer = 3").answer == (3.0,)
    assert outcome("while True: pass", seconds=1).status == "out of time"
    assert outcome("answer = len(bytearray(10 ** 9))", memory=10**8).status == "out of memory"
    assert outcome("import os\nos.abort()").status == "died"
    large = outcome("x = bytearray(b'1' * 10 ** 8)\nanswer = 0")
    assert large.memory > 9e7
    absent = answers(program_of("answer = 1", module="no_such_module"), [QUESTION, QUESTION])
    assert [one.status for one in absent] == ["not installed"] * 2
    several = answers(program_of("answer = 1"), [QUESTION] * 3)
    assert [one.answer for one in several] == [(1.0,)] * 3


def test_every_program_is_python_and_sets_answer():
    laplace = make_step({"kind": "laplace", "scale": 2.0, "count": 5})
    response = make_step({"kind": "randomized_response", "epsilon": 1.0})
    offered = set()
    for accountant in ACCOUNTANTS:
        for steps in ((GAUSSIAN,), (SAMPLED,), (laplace,), (response,), (GAUSSIAN, SAMPLED)):
            for target in ("delta", "epsilon"):
                for direction in ("worst", "forward", "backward"):
                    lines = accountant.program(CompositionQuestion(steps, target, 0.0, 1e-6, direction))
                    if lines is None:
                        continue
                    offered.add(accountant.name)
                    compile("\n".join(lines), accountant.name, "exec")
                    assert lines[-1].startswith("answer = ")
                    assert len(lines) <= 4
    assert offered == {accountant.name for accountant in ACCOUNTANTS}
    opacus = next(accountant for accountant in ACCOUNTANTS if accountant.name == "opacus PRV")
    made = opacus.program(CompositionQuestion((GAUSSIAN,), "epsilon", 0.0, 1e-6))
    assert "accountant.history = [(2.0, 1.0, 3)]" in made  # noise 4 for a sensitivity of 2
    group = make_step({"kind": "sampled_gaussian", "sigma": 1.0, "rate": 0.1, "group_size": 2})
    assert not any(a.program(CompositionQuestion((group,), "epsilon", 0.0, 1e-6)) for a in ACCOUNTANTS)


def test_programs_of_other_samples(board):
    offered = {}
    for setting in board.SCHEMES:
        for accountant in SCHEME_ACCOUNTANTS:
            for target in ("delta", "epsilon"):
                lines = accountant.program(setting.question(target, 1e-6))
                if lines is not None:
                    compile("\n".join(lines), accountant.name, "exec")
                    offered.setdefault(accountant.name, []).append("\n".join(lines))
    assert set(offered) == {accountant.name for accountant in SCHEME_ACCOUNTANTS}
    over_distance = offered["dp_accounting RDP"][0]
    over_contribution = offered["dp_accounting RDP, over one contribution"][0]
    assert "SampledWithoutReplacementDpEvent(64, 8, GaussianDpEvent(1.0))" in over_distance
    assert "SampledWithoutReplacementDpEvent(64, 8, GaussianDpEvent(2.0))" in over_contribution
    assert "SelfComposedDpEvent(ExponentialMechanismDpEvent(1.0), 100)" in offered["dp_accounting RDP"][-1]
    poisson = offered["prv_accountant, as Poisson"]
    assert "PoissonSubsampledGaussianMechanism(0.125, 2.0)" in poisson[0]
    assert "[8]" in poisson[-1]  # an epoch of 8 shuffled batches


@pytest.fixture(scope="module")
def board():
    path = BENCHES / "bench_accountants.py"
    spec = importlib.util.spec_from_file_location("bench_accountants", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("side", "answer", "expected"),
    [
        ("upper", (1.0,), "holds"), ("upper", (0.99,), "violation"), ("upper", (1 - 1e-12,), "holds"),
        ("upper", (3.0,), "far"), ("upper", (math.inf,), "far"), ("upper", (math.nan,), "no answer"),
        ("lower", (1.0,), "holds"), ("lower", (1.01,), "violation"), ("lower", (-5.0,), "far"),
        ("both", (0.9, 1.1), "holds"), ("both", (0.9, 0.99), "violation"), ("both", (1.01, 1.02), "violation"),
        ("both", (-1.0, 1.1), "far"), ("estimate", (1.5,), "close"), ("estimate", (0.1,), "far"),
        ("estimate", (9.0,), "far"),
    ],
)
def test_verdicts(board, side, answer, expected):
    outcome = accountants.ProgramOutcome("answered", answer)
    assert board.verdict(side, outcome, (1 - 1e-10, 1.0, 1 + 1e-10)) == expected
    assert board.verdict(side, accountants.ProgramOutcome("raised"), (1.0, 1.0, 1.0)) == "no answer"
    assert board.verdict(side, accountants.ProgramOutcome("not offered"), (1.0, 1.0, 1.0)) == "not offered"


def test_a_small_scoreboard(board, tmp_path):
    setting = board.Setting((board.gaussian(10.0, 100),), 1.0)
    truth = board.Truth.of(setting)
    assert truth.delta[0] <= 0.12693673750664394 <= truth.delta[2]
    assert truth.epsilon[0] <= 1.0 + 1e-13
    low = "import math\nanswer = math.exp(-9)"
    made = [program_of(low, name="too low"), program_of("answer = 1 / 0", name="broken"),
            program_of("answer = 0.0, 9.0", "both", "wide"),
            program_of("answer = 1", module="no_such_module", name="gone")]
    cells = board.all_cells([setting], [truth], made)
    found = [cell.verdict for cell in cells]
    assert found == ["violation"] * 2 + ["no answer"] * 2 + ["far"] * 2 + ["not installed"] * 2
    text = board.snippet(cells[0])
    assert text.splitlines()[0] == "import math"
    assert "[100]).delta(1.0, direction='worst')" in text
    assert len(text.splitlines()) <= 5
    printed = []
    exec(text, {"print": lambda *words: printed.append(words)})
    assert printed[0] == (math.exp(-9), "stated as upper bound")
    assert printed[1][0].lower > printed[0][0]
    rows = board.summary(cells)
    assert [(row[0], *row[3:6]) for row in rows] == [("too low", 2, 0, 0), ("broken", 0, 2, 0), ("wide", 0, 0, 2)]
    paths = board.write_board(cells, tmp_path)
    page, table, markdown = (path.read_text() for path in paths)
    assert "too low: delta of 100 x Gaussian 10" in page
    assert "ZeroDivisionError" in page
    assert "WRONG SIDE" in page
    assert "Not installed, left out: gone" in markdown
    assert len(list(csv.DictReader(table.splitlines()))) >= 8


@pytest.mark.slow
def test_the_picture():
    epsilon = np.linspace(0.0, 30.0, 31)
    curve = GaussianMechanism(1.0, 1.0).log_delta(epsilon)
    deltas = np.exp(curve.value)
    asked = [("floor", "upper", np.full(31, 1e-15)), ("below", "upper", 0.5 * deltas), ("above", "lower", 2 * deltas),
             ("rough", "estimate", np.where(epsilon < 9, deltas, np.nan)), ("none", "upper", -deltas)]
    ax = figures.composed_profile(curve, epsilon, accountants=asked, title="$ \u5317")
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[0].startswith("certified, bounds at most ")
    assert texts[1] == "floor (upper), wrong side at 9"
    assert texts[2] == "below (upper), wrong side at 31"
    assert texts[3].startswith("above (lower), wrong side at 31")
    assert texts[4] == "rough (estimate)"
    assert texts[5] == "none (upper), wrong side at 31"
    assert ax.get_ylim()[0] < curve.value[-1] / math.log(10.0)
    assert ax.get_yticklabels()[0].get_text() == "1"
    with pytest.raises(DomainError, match="log_delta must be an Estimate of logarithms of delta"):
        figures.composed_profile(curve.to("probability"), epsilon)
    with pytest.raises(ShapeError, match="epsilon must be at least two numbers, one for each log delta"):
        figures.composed_profile(curve, epsilon[:-1])
    with pytest.raises(ShapeError, match="accountants must have one delta for each epsilon"):
        figures.composed_profile(curve, epsilon, accountants=[("a", "upper", [1.0])])
    with pytest.raises(DomainError, match="side must be"):
        figures.composed_profile(curve, epsilon, accountants=[("a", "both", deltas)])
