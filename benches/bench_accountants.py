"""The accountants' scoreboard: what installed packages answer about 30 compositions, against certified bounds.

Run: pytest benches/bench_accountants.py

Writes accountants.html, accountants.csv and accountants.md, and the same of other samples than Poisson ones as
schemes.html, .csv and .md, into the directory FASTPRIV_SCOREBOARD (default: .benchmarks/accountants).
Every accountant of ``accountants.py`` is asked for delta at an epsilon and for
epsilon at that delta, in processes of their own with limits of time and memory; one that is not installed is left out.
Every answer on the wrong side of the truth is printed as a program of five lines.
"""

import csv
import math
import os
import statistics
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import pytest
from comparison.accountants import ACCOUNTANTS, SCHEME_ACCOUNTANTS, CompositionQuestion, ProgramOutcome, answers
from mpmath import mp, mpf

from fastpriv import compose
from fastpriv.adapters.step_tables import make_step
from fastpriv.report import Details, TextTable, page

# An answer on the wrong side of the truth by no more than this, relative, is taken for rounding.
ROUNDING = 1e-9
# An answer on the right side, but off by this factor, and an epsilon by so many nats too, is counted apart.
FAR, FAR_NATS = 2.0, 0.02


def sampled(sigma, rate, count):
    return {"kind": "sampled_gaussian", "sigma": sigma, "rate": rate, "count": count}


def gaussian(sigma, count):
    return {"kind": "gaussian", "sigma": sigma, "count": count}


def laplace(scale, count):
    return {"kind": "laplace", "scale": scale, "count": count}


def response(epsilon, count):
    return {"kind": "randomized_response", "epsilon": epsilon, "count": count}


class Setting(NamedTuple):
    entries: tuple
    epsilon: float
    direction: str = "worst"

    @property
    def steps(self):
        return tuple(make_step(entry) for entry in self.entries)

    @property
    def name(self):
        words = {"sampled_gaussian": "sigma {sigma:g}, q {rate:g}", "gaussian": "Gaussian {sigma:g}",
                 "laplace": "Laplace {scale:g}", "randomized_response": "randomised response {epsilon:g}"}
        words |= SCHEME_WORDS
        parts = [f"{step.count:,} x {words[step.kind].format(**step.parameters)}" for step in self.steps]
        return " + ".join(parts) + {"worst": "", "forward": ", remove", "backward": ", add"}[self.direction]

    def question(self, target, delta):
        return CompositionQuestion(self.steps, target, self.epsilon, delta, self.direction)

    def compose(self):
        return compose([step.pair() for step in self.steps], [step.count for step in self.steps])


SETTINGS = (
    # DP-SGD as people run it
    Setting((sampled(1.0, 0.01, 1000),), 2.0),
    Setting((sampled(1.1, 256 / 60000, 14000),), 3.0),
    Setting((sampled(0.8, 0.01, 3000),), 8.0),
    Setting((sampled(2.0, 0.01, 3000),), 1.0),
    Setting((sampled(0.6, 0.001, 10000),), 3.0),
    Setting((sampled(1.0, 0.1, 100),), 10.0),
    Setting((sampled(4.0, 0.001, 1000000),), 1.0),
    # small deltas
    Setting((sampled(2.0, 0.01, 3000),), 2.0),
    Setting((sampled(2.0, 0.01, 3000),), 2.2),
    Setting((sampled(2.0, 0.01, 3000),), 4.0),
    Setting((sampled(1.0, 0.01, 1000),), 6.0),
    Setting((sampled(10.0, 0.1, 10000),), 8.0),
    # rare losses, noise that is weak, few steps, many steps
    Setting((sampled(0.5, 0.0001, 100000),), 2.0),
    Setting((sampled(0.5, 0.001, 100),), 5.0),
    Setting((sampled(1.0, 0.0001, 10000),), 0.0),
    Setting((sampled(2.0, 0.01, 10),), 0.5),
    Setting((sampled(1.0, 0.01, 1),), 0.5),
    Setting((sampled(0.7, 0.02, 10000),), 20.0),
    Setting((sampled(5.0, 0.0003, 1000000),), 0.05),
    # one direction
    Setting((sampled(1.0, 0.1, 100),), 4.0, "forward"),
    Setting((sampled(1.0, 0.1, 100),), 4.0, "backward"),
    # Gaussians
    Setting((gaussian(1.0, 1),), 1.0),
    Setting((gaussian(10.0, 100),), 13.0),
    Setting((gaussian(1000.0, 1000000),), 0.01),
    # other noise
    Setting((laplace(10.0, 100),), 2.0),
    Setting((laplace(1.0, 20),), 15.0),
    Setting((response(0.1, 100),), 2.0),
    Setting((response(1.0, 50),), 45.0),
    # several kinds of steps
    Setting((sampled(1.2, 0.01, 500), sampled(2.0, 0.05, 200), gaussian(20.0, 5)), 3.0),
    Setting((gaussian(30.0, 100), laplace(20.0, 50)), 4.0),
)


SCHEME_WORDS = {
    "fixed_size": "{sample:g} of {size:g}, sigma {sigma:g}, {relation}",
    "truncated_poisson": "q {rate:g}, at most {cap:g} of {size:g}, sigma {sigma:g}, {relation}",
    "shuffled_batches": "{batches:g} shuffled batches, sigma {sigma:g}, {relation}",
    "bounded_range": "exponential mechanism {epsilon:g}",
}


def scheme(kind, count=1, **parameters):
    return {"kind": kind, "count": count} | parameters


FIXED = {"size": 64, "sample": 8, "sigma": 2.0}
CAPPED = {"size": 64, "rate": 0.125, "sigma": 2.0}
# Samples that are no Poisson samples, and exponential mechanisms.
SCHEMES = (
    Setting((scheme("fixed_size", relation="replace_one", **FIXED),), 1.0),
    Setting((scheme("fixed_size", relation="replace_one", size=60000, sample=600, sigma=1.0),), 1.0),
    Setting((scheme("fixed_size", 8, **FIXED),), 1.0),
    Setting((scheme("truncated_poisson", cap=10, **CAPPED),), 0.5),
    Setting((scheme("truncated_poisson", cap=10, **CAPPED),), 2.0),
    Setting((scheme("truncated_poisson", cap=10, relation="replace_one", **CAPPED),), 1.0),
    Setting((scheme("shuffled_batches", batches=8, sigma=2.0, relation="zero_out"),), 1.0),
    Setting((scheme("bounded_range", 100, epsilon=1.0),), 10.0),
)


class Truth(NamedTuple):
    """Certified bounds of the delta of a setting, and of epsilon at the middle of these bounds."""

    delta: tuple
    epsilon: tuple

    @classmethod
    def of(cls, setting):
        composition = setting.compose()
        delta = composition.delta(setting.epsilon, direction=setting.direction)
        epsilon = composition.epsilon(delta=float(delta.value), direction=setting.direction)
        return cls(*((float(e.lower), float(e.value), float(e.upper)) for e in (delta, epsilon)))


class Cell(NamedTuple):
    """An accountant's answer to one question, beside the truth."""

    accountant: str
    side: str
    setting: Setting
    question: CompositionQuestion
    truth: tuple
    outcome: ProgramOutcome
    verdict: str


def verdict(side, outcome, truth, target="delta"):
    """What an answer is worth: violation, no answer, far, holds; estimates are close or far."""
    if outcome.status in ("not offered", "not installed"):
        return outcome.status
    if outcome.status != "answered" or any(math.isnan(answer) for answer in outcome.answer):
        return "no answer"
    lower, value, upper = truth
    slack = ROUNDING * abs(value)
    distance = slack + (FAR_NATS if target == "epsilon" else 0.0)
    sides = {"both": ("lower", "upper")}.get(side, (side,))
    far = False
    for one, answer in zip(sides, outcome.answer, strict=True):
        if (one == "upper" and answer < lower - slack) or (one == "lower" and answer > upper + slack):
            return "violation"
        far |= one in ("upper", "estimate") and answer > FAR * upper + distance
        far |= one in ("lower", "estimate") and answer < lower / FAR - distance
    return "far" if far else "close" if side == "estimate" else "holds"


def snippet(cell):
    """A program of five lines that shows the answer and the certified bounds."""
    lines = list(cell.outcome.program)
    assert lines[-1].startswith("answer = ")
    steps = cell.question.steps
    made = [step.pair() for step in steps]
    pairs = ", ".join(map(_constructed, made))
    counts = [step.count for step in steps]
    asked = f"{cell.question.epsilon!r}" if cell.question.target == "delta" else f"delta={cell.question.delta!r}"
    side = {"both": "stated as lower and upper bound"}.get(cell.side, f"stated as {cell.side} bound")
    lines[-1] = f"print({lines[-1].removeprefix('answer = ')}, '{side}')"
    composed = f"fp.compose([{pairs}], {counts})"
    lines += [
        "import fastpriv as fp" + ("; from fastpriv import *; from fastpriv.pairs import *" if "=" in pairs else ""),
        f"print({composed}.{cell.question.target}({asked}, direction={cell.question.direction!r}))",
    ]
    if len(lines) > 5:
        lines[-2:] = ["; ".join(lines[-2:])]
    return "\n".join(lines)


def _constructed(one):
    """A pair as a call of its class."""
    if type(one).__module__.startswith("fastpriv.pairs"):
        return repr(one)
    return f"fp.{type(one).__name__}{tuple(getattr(one, name) for name in one._fields)}"


def all_cells(settings, truths, accountants=ACCOUNTANTS, **limits):
    """Ask every accountant everything."""
    cells = []
    for accountant in accountants:
        asked = [
            (setting, truth, setting.question(target, truth.delta[1]))
            for setting, truth in zip(settings, truths, strict=True)
            for target in ("delta", "epsilon")
        ]
        outcomes = answers(accountant, [question for _, _, question in asked], **limits)
        for (setting, truth, question), outcome in zip(asked, outcomes, strict=True):
            right = getattr(truth, question.target)
            found = verdict(accountant.side, outcome, right, question.target)
            cells.append(Cell(accountant.name, accountant.side, setting, question, right, outcome, found))
    return cells


SUMMARY = ("accountant", "states", "asked", "violations", "no answer", "off by 2 or more", "worst violation",
           "seconds, median", "seconds, most", "MB, most")


def summary(cells):
    """One row an accountant."""
    rows = []
    for name in dict.fromkeys(cell.accountant for cell in cells):
        own = [cell for cell in cells if cell.accountant == name and cell.verdict != "not offered"]
        if not own or own[0].verdict == "not installed":
            continue
        count = {word: sum(cell.verdict == word for cell in own) for word in ("violation", "no answer", "far")}
        seconds = [cell.outcome.seconds for cell in own]
        wrong = [(_distance(cell), cell) for cell in own if cell.verdict == "violation"]
        worst = max(wrong, key=lambda pair: pair[0][0], default=None)
        shown = f"{worst[1].question.target} {worst[0][1]:.3g} for {worst[1].truth[1]:.3g}" if worst else ""
        rows.append((
            name, own[0].side, len(own), count["violation"], count["no answer"], count["far"],
            shown, f"{statistics.median(seconds):.2f}",
            f"{max(seconds):.1f}", f"{max(cell.outcome.memory for cell in own) / 1e6:.0f}",
        ))
    return rows


def _distance(cell):
    """How far the answer on the wrong side is from the truth, as a logarithm, and the answer."""
    sides = {"both": ("lower", "upper")}.get(cell.side, (cell.side,))
    found = []
    for side, answer in zip(sides, cell.outcome.answer, strict=True):
        if answer < cell.truth[0] if side == "upper" else answer > cell.truth[2]:
            gap = math.inf if answer <= 0.0 or math.isinf(answer) else abs(math.log(answer / cell.truth[1]))
            found.append((gap, answer))
    return max(found)


def cell_text(cell):
    """What a cell of the large table shows."""
    if cell.verdict in ("not offered", "not installed"):
        return ""
    if cell.verdict == "no answer":
        return cell.outcome.status if cell.outcome.status != "answered" else "NaN"
    text = " .. ".join(f"{answer:.4g}" for answer in cell.outcome.answer)
    return {"violation": f"WRONG SIDE {text}", "far": f"far: {text}"}.get(cell.verdict, text)


def table_of(cells, target):
    """The large table of one question: headings, and a row a setting."""
    names = [row[0] for row in summary(cells)]
    rows = []
    asked = [cell for cell in cells if cell.question.target == target]
    for some in {(cell.setting.name, cell.setting.epsilon): cell for cell in asked}.values():
        setting = some.setting
        own = {cell.accountant: cell for cell in asked if cell.setting == setting}
        at = f"{setting.epsilon:g}" if target == "delta" else f"{some.question.delta:.4g}"
        rows.append((setting.name, at, f"{some.truth[1]:.12g}", *(cell_text(own[name]) for name in names)))
    return ("setting", "epsilon" if target == "delta" else "delta", f"certified {target}", *names), rows


def installed(cells):
    """Versions of the packages that were asked, and names of the accountants that are not installed."""
    versions = []
    for name in ("dp-accounting", "prv-accountant", "pld-accounting", "riskcal", "opacus", "autodp"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    absent = dict.fromkeys(cell.accountant for cell in cells if cell.verdict == "not installed")
    return ", ".join(versions), ", ".join(absent)


INTRODUCTION = (
    "Each accountant was asked for delta at an epsilon, and for epsilon at that delta. Certified values come with "
    "proved bounds on both sides; some are compared with high-precision arithmetic before the accountants are asked. A "
    "violation is an answer on the wrong side of the certified bounds, for the side that the package states, by more "
    "than rounding (1e-9 relative). Far means on the right side but off by a factor of 2 or more. Times are of the "
    "processor, memory is the peak beyond that of the imported package."
)


def write_board(cells, folder, stem="accountants"):
    """Write the page, the table and the text; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    versions, absent = installed(cells)
    rows = [tuple(map(str, row)) for row in summary(cells)]
    wrong = [cell for cell in cells if cell.verdict == "violation"]
    about = f"Asked: {versions}." + (f" Not installed, left out: {absent}." if absent else "")
    sections = {
        "": [INTRODUCTION, about],
        "Summary": [TextTable(SUMMARY, rows, "One row an accountant", numeric=range(2, 10))],
    }
    for target in ("delta", "epsilon"):
        sections[target.capitalize()] = [TextTable(*table_of(cells, target), "One row a setting")]
    shown = [Details(f"{c.accountant}: {c.question.target} of {c.setting.name}", [snippet(c)]) for c in wrong]
    sections["Violations, as programs"] = shown or ["None."]
    reasons = [(c.accountant, c.setting.name, c.question.target, c.outcome.error or "NaN") for c in cells
               if c.verdict == "no answer"]
    headings = ("accountant", "setting", "question", "reason")
    sections["No answer"] = [TextTable(headings, reasons, "What was raised or exceeded")]
    (folder / f"{stem}.html").write_text(page("The accountants' scoreboard", sections), encoding="utf-8")

    def markdown(headings, body):
        lines = ["| " + " | ".join(map(str, row)) + " |" for row in (headings, *body)]
        return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])

    text = ["# The accountants' scoreboard", INTRODUCTION, about, markdown(SUMMARY, rows), "## Violations"]
    text += [f"{c.accountant}, {c.question.target} of {c.setting.name}:\n\n```python\n{snippet(c)}\n```" for c in wrong]
    (folder / f"{stem}.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    with open(folder / f"{stem}.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("accountant", "states", "setting", "direction", "question", "epsilon", "delta", "lower",
                         "value", "upper", "answer", "verdict", "status", "error", "seconds", "bytes",
                         "program"))
        for c in cells:
            writer.writerow((
                c.accountant, c.side, c.setting.name, c.question.direction, c.question.target, c.question.epsilon,
                c.question.delta, *c.truth, " ".join(map(repr, c.outcome.answer)), c.verdict, c.outcome.status,
                c.outcome.error, round(c.outcome.seconds, 3), c.outcome.memory, "\n".join(c.outcome.program),
            ))
    return [folder / f"{stem}.{ending}" for ending in ("html", "csv", "md")]


def delta_of_gaussians(setting):
    """Delta of Gaussian steps alone: one Gaussian of the summed squares (Balle and Wang 2018, theorem 8)."""
    mu = mp.sqrt(sum(step.count / mpf(step.parameters["sigma"]) ** 2 for step in setting.steps))
    epsilon = mpf(setting.epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def delta_of_responses(setting):
    """Delta of k randomised responses: a sum over the number j of true answers (Kairouz et al. 2015, theorem 3)."""
    (step,) = setting.steps
    parameters, k = step.parameters, step.count
    e, epsilon = mpf(parameters["epsilon"]), mpf(setting.epsilon)
    odds = [mp.binomial(k, j) * (mp.exp(e * j) - mp.exp(epsilon + e * (k - j))) for j in range(k + 1)]
    return sum(one for one in odds if one > 0) / (1 + mp.exp(e)) ** k


def delta_of_samples(setting):
    """Delta of k sampled Gaussians: the contour integral, with both integrals by the trapezoidal rule in mpmath."""
    (step,) = setting.steps
    parameters, k = step.parameters, step.count
    sigma, rate, epsilon = mpf(parameters["sigma"]), mpf(parameters["rate"]), mpf(setting.epsilon)
    spacing = sigma / 8
    nodes = []
    for j in range(-120, 260):
        x = spacing * j
        ratio = 1 - rate + rate * mp.exp((2 * x - 1) / (2 * sigma**2))
        nodes.append((spacing * mp.npdf(x, 0, sigma) * ratio, mp.log(ratio)))

    def log_term(z):
        moment = mp.fsum(weight * mp.exp(z * loss) for weight, loss in nodes)
        return k * mp.log(moment) - epsilon * z - mp.log(z) - mp.log(z + 1)

    tilt = min((mpf(2) ** (mpf(j) / 2) for j in range(-6, 16)), key=log_term)
    spread = 1 / mp.sqrt(mp.diff(log_term, tilt, 2))
    width = spread / 5
    total, n, term = mpf(0), 0, mpf(1)
    while n < 20 or abs(term) > 1e-25 * total:
        term = mp.exp(log_term(mp.mpc(tilt, n * width))) / (2 if n == 0 else 1)
        total, n = total + mp.re(term), n + 1
    return total * width / mp.pi


# Settings of sampled Gaussians that are compared with mpmath: ordinary ones and small deltas.
MIXTURES_CHECKED = [SETTINGS[k] for k in (0, 3, 7, 9, 10)]


def test_truths_against_high_precision():
    checked = 0
    with mp.workdps(40):
        for setting in SETTINGS:
            kinds = {step.kind for step in setting.steps}
            truth = Truth.of(setting).delta
            if kinds == {"gaussian"}:
                value = delta_of_gaussians(setting)
            elif kinds == {"randomized_response"}:
                value = delta_of_responses(setting)
            elif setting in MIXTURES_CHECKED:
                value = delta_of_samples(setting)
            else:
                continue
            assert truth[0] <= value * (1 + mpf(10) ** -14), setting.name
            assert truth[2] >= value * (1 - mpf(10) ** -14), setting.name
            assert truth[2] - truth[0] <= 1e-8 * truth[1], setting.name
            checked += 1
    assert checked == 10


@pytest.mark.benchmark(group="delta of the 30 compositions of the scoreboard")
def test_certified_values(benchmark):
    found = benchmark.pedantic(lambda: [setting.compose().delta(setting.epsilon) for setting in SETTINGS], rounds=3)
    assert all(float(one.lower) <= float(one.upper) for one in found)


def test_scoreboard(request, tmp_path):
    assert len(SETTINGS) == 30
    trial = request.config.getoption("benchmark_disable")  # two settings, which show that the board is written
    show_board(SETTINGS[:2] if trial else SETTINGS, ACCOUNTANTS, "accountants", tmp_path if trial else None)


def test_scoreboard_of_schemes(request, tmp_path):
    trial = request.config.getoption("benchmark_disable")
    show_board(SCHEMES[:1] if trial else SCHEMES, SCHEME_ACCOUNTANTS, "schemes", tmp_path if trial else None)


def show_board(settings, accountants, stem, folder):
    cells = all_cells(settings, [Truth.of(setting) for setting in settings], accountants)
    folder = folder or Path(os.environ.get("FASTPRIV_SCOREBOARD", ".benchmarks/accountants"))
    paths = write_board(cells, folder, stem)
    print()
    for cell in cells:
        if cell.verdict == "violation":
            print(f"# {cell.accountant}: {cell.question.target} of {cell.setting.name}\n{snippet(cell)}\n")
    for row in (SUMMARY, *summary(cells)):
        print(" | ".join(map(str, row)))
    print("Left out, not installed:", installed(cells)[1] or "none")
    print("Written:", *paths)
