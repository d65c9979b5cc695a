"""What other packages answer about a composition, each asked as its documentation says.

An ``Accountant`` writes a short program of Python for a question; the program that runs is the one that is shown, so
that a reader can run it too. Programs run in processes of their own, with limits of time and memory
(``accountant_worker``): some of them do not end, or take all memory.

Sides are those that the packages state: dp_accounting calls its two estimates pessimistic and optimistic, PRV
accountants return a lower and an upper bound, Renyi accountants are upper bounds by their theorems, connect-the-dots
is an upper one; the Gaussian limit of Opacus and the Fourier accountant of autodp are estimates.

``SCHEME_ACCOUNTANTS`` are asked about other samples than Poisson ones. Two kinds of them are no claim of the packages:
"as Poisson" has the rate of a Poisson sample in place of the scheme, as loaders that shuffle are often accounted for,
and "over one contribution" has the noise multiplier of the clipping norm where the package means that of the distance.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from fastpriv.adapters.step_tables import ComposedStep

__all__ = [
    "ACCOUNTANTS", "SCHEME_ACCOUNTANTS", "Accountant", "CompositionQuestion", "ProgramOutcome", "answers"
]

Side = Literal["upper", "lower", "both", "estimate"]
_SECONDS, _MEMORY = 30.0, 8 * 10**9  # limits of one program: processor time, and bytes
# bound: none - error of epsilon that the PRV accountants are asked for; that of delta is a
# thousandth of delta, as they advise
_PRV_EPSILON_ERROR, _PRV_DELTA_ERROR = 0.01, 1e-3


class CompositionQuestion(NamedTuple):
    """delta(epsilon) or epsilon(delta) of a composition, in the direction "worst", "forward" or "backward".

    Both numbers are given, since some accountants need the size of what they shall find.
    """

    steps: tuple[ComposedStep, ...]
    target: Literal["delta", "epsilon"]
    epsilon: float
    delta: float
    direction: str = "worst"


class Accountant(NamedTuple):
    """Name, module, the side that it states, and the program for a question, None where it does not offer that."""

    name: str
    module: str
    side: Side
    program: Callable[[CompositionQuestion], list[str] | None]


class ProgramOutcome(NamedTuple):
    """What became of a program. ``answer`` has the lower and the upper bound where a program returns both.

    ``status`` is answered, raised, out of time, out of memory, died, not installed or not offered; ``seconds`` are of
    the processor, ``memory`` is in bytes.
    """

    status: str
    answer: tuple[float, ...] = ()
    error: str = ""
    seconds: float = 0.0
    memory: int = 0
    program: tuple[str, ...] = ()


def answers(
    accountant: Accountant, questions: Sequence[CompositionQuestion], *, seconds: float = _SECONDS,
    memory: int = _MEMORY,
) -> list[ProgramOutcome]:
    """Ask an accountant several questions, one after the other in one worker process."""
    programs = [accountant.program(question) for question in questions]
    offered = [tuple(lines) for lines in programs if lines is not None]
    task = {
        "imports": [accountant.module], "programs": ["\n".join(lines) for lines in offered], "seconds": seconds,
        "memory": memory,
    }
    worker = Path(__file__).with_name("accountant_worker.py")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, str(worker)], input=json.dumps(task), capture_output=True, text=True, env=environment,
        check=False,
    )
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    if lines and lines[0]["status"] == "not installed":
        return [ProgramOutcome("not installed", error=lines[0]["error"])] * len(questions)
    lines += [{"status": "died", "error": "the worker ended"}] * (len(offered) - len(lines))
    outcomes = iter(
        ProgramOutcome(**(line | {"answer": tuple(line.get("answer", ())), "program": program}))
        for line, program in zip(lines, offered, strict=True)
    )
    return [ProgramOutcome("not offered") if lines is None else next(outcomes) for lines in programs]


def _dp_accounting(pessimistic: bool) -> Callable[[CompositionQuestion], list[str] | None]:
    """Privacy loss distributions of dp_accounting, on its default grid."""
    option = "" if pessimistic else ", pessimistic_estimate=False"

    def one(step: ComposedStep) -> str | None:
        given = step.parameters
        if step.kind in ("gaussian", "sampled_gaussian") and given.get("group_size", 1) == 1:
            rate = f", sampling_prob={given['rate']!r}" if "rate" in given else ""
            return f"pld.from_gaussian_mechanism({_ratio(step)!r}{rate}{option})"
        if step.kind == "laplace":
            return f"pld.from_laplace_mechanism({_ratio(step)!r}{option})"
        if step.kind == "randomized_response":
            k = int(given["k"])
            noise = k / (math.exp(given["epsilon"]) + k - 1)
            return f"pld.from_randomized_response({noise!r}, {k}{option})"
        return None

    def program(question: CompositionQuestion) -> list[str] | None:
        made = _chained(question.steps, one)
        if made is None:
            return None
        total = {"worst": "total", "forward": "total._pmf_remove", "backward": "total._pmf_add"}[question.direction]
        return [
            "from dp_accounting.pld import privacy_loss_distribution as pld",
            f"total = {made}",
            f"answer = {total}.{_pld_answer(question)}",
        ]

    return program


def _renyi(question: CompositionQuestion) -> list[str] | None:
    """Renyi accountant of dp_accounting."""

    def event(step: ComposedStep) -> str | None:
        given = step.parameters
        if step.kind == "laplace":
            return f"dp.LaplaceDpEvent({_ratio(step)!r})"
        if step.kind == "gaussian":
            return f"dp.GaussianDpEvent({_ratio(step)!r})"
        if step.kind == "sampled_gaussian" and given["group_size"] == 1:
            return f"dp.PoissonSampledDpEvent({given['rate']!r}, dp.GaussianDpEvent({_ratio(step)!r}))"
        return None

    events = [event(step) for step in question.steps]
    if question.direction != "worst" or None in events:
        return None
    composed = "".join(f".compose({one}, {step.count})" for one, step in zip(events, question.steps, strict=True))
    asked = f"get_delta({question.epsilon!r})" if question.target == "delta" else f"get_epsilon({question.delta!r})"
    return [
        "import dp_accounting as dp",
        "from dp_accounting.rdp import RdpAccountant",
        f"answer = RdpAccountant(){composed}.{asked}",
    ]


def _prv(question: CompositionQuestion) -> list[str] | None:
    """PRV accountant; its pair of the sampled Gaussian is the mixture against the Gaussian."""

    def variable(step: ComposedStep) -> str | None:
        given = step.parameters
        if step.kind == "sampled_gaussian" and given["group_size"] == 1:
            return f"prv.PoissonSubsampledGaussianMechanism({given['rate']!r}, {_ratio(step)!r})"
        if step.kind == "randomized_response" and given["k"] == 2:
            return f"prv.PureDPMechanism({given['epsilon']!r})"
        if step.kind == "approximate_dp":
            return f"prv.ApproximateDPMechanism({given['epsilon']!r}, {given['delta']!r})"
        makers = {"gaussian": f"GaussianMechanism({_ratio(step)!r})",
                  "laplace": f"LaplaceMechanism({1 / _ratio(step)!r})"}
        return f"prv.{makers[step.kind]}" if step.kind in makers else None

    variables = [variable(step) for step in question.steps]
    if question.direction == "backward" or None in variables:
        return None
    counts = str([step.count for step in question.steps])
    asked = question.epsilon if question.target == "delta" else question.delta
    return [
        "import prv_accountant as prv",
        f"variables, counts = [{', '.join(map(str, variables))}], {counts}",
        f"accountant = prv.PRVAccountant(variables, {_PRV_EPSILON_ERROR!r}, {_PRV_DELTA_ERROR * question.delta!r}, "
        "counts)",
        f"answer = accountant.compute_{question.target}({asked!r}, counts)[::2]",
    ]


def _opacus(name: str) -> Callable[[CompositionQuestion], list[str] | None]:
    """One of the accountants of Opacus, which know epsilon(delta) alone."""

    def program(question: CompositionQuestion) -> list[str] | None:
        history = _history(question)
        if question.target == "delta" or history is None or (name == "GaussianAccountant" and len(question.steps) > 1):
            return None
        return [
            f"from opacus.accountants import {name}",
            f"accountant = {name}()",
            f"accountant.history = {history}",
            f"answer = accountant.get_epsilon({question.delta!r})",
        ]

    return program


def _riskcal(question: CompositionQuestion) -> list[str] | None:
    """Accountant of riskcal: epsilon(delta), and the advantage, which is delta(0)."""
    history = _history(question)
    if history is None or (question.target == "delta" and question.epsilon > 0.0):
        return None
    asked = "get_advantage()" if question.target == "delta" else f"get_epsilon(delta={question.delta!r})"
    return [
        "from riskcal.accountants import CTDAccountant",
        "accountant = CTDAccountant()",
        f"accountant.history = {history}",
        f"answer = accountant.{asked}",
    ]


def _autodp(fourier: bool) -> Callable[[CompositionQuestion], list[str] | None]:
    """Mechanisms of autodp, by Renyi divergences or by characteristic functions."""
    options = ", phi_off=False, RDP_off=True" if fourier else ""

    def mechanism(step: ComposedStep) -> str | None:
        given, made = step.parameters, None
        if step.kind == "gaussian":
            made = f"zoo.GaussianMechanism({_ratio(step)!r}{options})"
        elif step.kind == "laplace":
            made = f"zoo.LaplaceMechanism({_ratio(step)!r}{options})"
        elif step.kind == "randomized_response" and given["k"] == 2:
            made = f"zoo.RandresponseMechanism({1 / (1 + math.exp(-given['epsilon']))!r}{options})"
        elif step.kind == "sampled_gaussian" and given["group_size"] == 1:
            rate, noise = given["rate"], f"zoo.GaussianMechanism({_ratio(step)!r}{options})"
            made = (
                f"made_of.AmplificationBySampling_pld(neighboring='remove_only')({noise}, {rate!r})" if fourier
                else f"made_of.AmplificationBySampling()({noise}, {rate!r}, improved_bound_flag=True)"
            )
        return made

    def program(question: CompositionQuestion) -> list[str] | None:
        mechanisms = [mechanism(step) for step in question.steps]
        if None in mechanisms or question.direction == "backward" or (question.target == "delta" and not fourier):
            return None
        composer = "ComposeAFA" if fourier else "Composition"
        counts = [step.count for step in question.steps]
        asked = (
            f"get_approx_delta({question.epsilon!r})" if question.target == "delta"
            else f"get_approxDP({question.delta!r})"
        )
        return [
            "from autodp import mechanism_zoo as zoo, transformer_zoo as made_of",
            f"total = made_of.{composer}()([{', '.join(map(str, mechanisms))}], {counts})",
            f"answer = total.{asked}",
        ]

    return program


def _pld_accounting(question: CompositionQuestion) -> list[str] | None:
    """PLD_accounting: each direction subsampled by itself, with its own truncation and the grid of dp_accounting."""

    def one(step: ComposedStep) -> str | None:
        plain = step.kind == "sampled_gaussian" and step.parameters["group_size"] == 1
        return f"one({_ratio(step)!r}, {step.parameters['rate']!r})" if plain else None

    made = _chained(question.steps, one)
    if made is None or question.direction != "worst":
        return None
    return [
        "import PLD_accounting as pa",
        "side = lambda sigma, rate, way: pa.subsample_pld_realization(base_pld=pa.gaussian_distribution(scale=sigma, "
        "value_discretization=1e-4), sampling_prob=rate, direction=way)",
        "one = lambda sigma, rate: pa.compose_full_pld(remove_dist=side(sigma, rate, pa.Direction.REMOVE), "
        "add_dist=side(sigma, rate, pa.Direction.ADD), bound_type=pa.BoundType.DOMINATES)",
        f"answer = {made}.{_pld_answer(question)}",
    ]


# The accountants in the order in which they are shown.
ACCOUNTANTS: tuple[Accountant, ...] = (
    Accountant("dp_accounting PLD, pessimistic", "dp_accounting.pld.privacy_loss_distribution", "upper",
               _dp_accounting(True)),
    Accountant("dp_accounting PLD, optimistic", "dp_accounting.pld.privacy_loss_distribution", "lower",
               _dp_accounting(False)),
    Accountant("dp_accounting RDP", "dp_accounting.rdp", "upper", _renyi),
    Accountant("prv_accountant", "prv_accountant", "both", _prv),
    Accountant("PLD_accounting", "PLD_accounting", "upper", _pld_accounting),
    Accountant("riskcal CTD", "riskcal.accountants", "upper", _riskcal),
    Accountant("opacus PRV", "opacus.accountants", "upper", _opacus("PRVAccountant")),
    Accountant("opacus RDP", "opacus.accountants", "upper", _opacus("RDPAccountant")),
    Accountant("opacus GDP", "opacus.accountants", "estimate", _opacus("GaussianAccountant")),
    Accountant("autodp RDP", "autodp.mechanism_zoo", "upper", _autodp(False)),
    Accountant("autodp Fourier", "autodp.mechanism_zoo", "estimate", _autodp(True)),
)


def _poisson_of(step: ComposedStep) -> ComposedStep | None:
    """The steps of Poisson samples with as many records on average."""
    given = step.parameters
    if step.kind not in _POISSON_RATES or given.get("base", "gaussian") != "gaussian":
        return None
    rate, steps = _POISSON_RATES[step.kind](given)
    parameters = {"sigma": given["sigma"], "rate": rate, "sensitivity": given["sensitivity"], "group_size": 1}
    return ComposedStep("sampled_gaussian", parameters, step.count * steps)


# The rate of a scheme as Poisson samples, and the steps of one release of it.
_POISSON_RATES: Mapping[str, Callable[[Mapping[str, float]], tuple[float, int]]] = {
    "fixed_size": lambda given: (given["sample"] / given["size"], 1),
    "truncated_poisson": lambda given: (given["rate"], 1),
    "shuffled_batches": lambda given: (1.0 / given["batches"], int(given["batches"] * given["epochs"])),
}


def _as_poisson(
    program: Callable[[CompositionQuestion], list[str] | None],
) -> Callable[[CompositionQuestion], list[str] | None]:
    """The program of an accountant that knows Poisson samples alone."""

    def replaced(question: CompositionQuestion) -> list[str] | None:
        steps = [_poisson_of(step) for step in question.steps]
        return None if None in steps else program(question._replace(steps=tuple(steps)))  # type: ignore[arg-type]

    return replaced


def _events(name: str, contribution: bool = False) -> Callable[[CompositionQuestion], list[str] | None]:
    """An accountant of dp_accounting by its events, with the noise over one contribution, or over the distance."""

    def event(step: ComposedStep) -> str | None:
        given = step.parameters
        if step.kind == "bounded_range" and name == "rdp.RdpAccountant":
            return f"ExponentialMechanismDpEvent({given['epsilon']!r})"
        if step.kind == "truncated_poisson" and name == "pld.PLDAccountant":
            return (
                f"TruncatedSubsampledGaussianDpEvent({int(given['size'])}, {given['rate']!r}, "
                f"{int(given['cap'])}, {_ratio(step)!r})"
            )
        if (step.kind, given.get("relation"), name) == ("fixed_size", "replace_one", "rdp.RdpAccountant"):
            noise = _ratio(step) if contribution else 0.5 * _ratio(step)
            sizes = f"{int(given['size'])}, {int(given['sample'])}"
            return f"SampledWithoutReplacementDpEvent({sizes}, GaussianDpEvent({noise!r}))"
        return None

    def program(question: CompositionQuestion) -> list[str] | None:
        events = [event(step) for step in question.steps]
        relations = {step.parameters.get("relation", "add_or_remove") for step in question.steps}
        if None in events or len(relations) > 1 or question.direction != "worst":
            return None
        relation = _DP_RELATIONS[relations.pop()]
        composed = "".join(
            f".compose(SelfComposedDpEvent({one}, {step.count}))"
            for one, step in zip(events, question.steps, strict=True)
        )
        asked = f"get_delta({question.epsilon!r})" if question.target == "delta" else f"get_epsilon({question.delta!r})"
        return [
            "from dp_accounting import *; from dp_accounting.dp_event import *; from dp_accounting import pld, rdp",
            f"accountant = {name}(neighboring_relation=NeighboringRelation.{relation})",
            f"answer = accountant{composed}.{asked}",
        ]

    return program


_DP_RELATIONS = {
    "add_or_remove": "ADD_OR_REMOVE_ONE", "replace_one": "REPLACE_ONE", "zero_out": "REPLACE_SPECIAL"
}
# Those that are asked about other samples than Poisson ones, and about other events.
SCHEME_ACCOUNTANTS: tuple[Accountant, ...] = (
    Accountant("dp_accounting PLD", "dp_accounting.pld", "upper", _events("pld.PLDAccountant")),
    Accountant("dp_accounting RDP", "dp_accounting.rdp", "upper", _events("rdp.RdpAccountant")),
    Accountant("dp_accounting RDP, over one contribution", "dp_accounting.rdp", "upper",
               _events("rdp.RdpAccountant", contribution=True)),
    Accountant("dp_accounting PLD, as Poisson", "dp_accounting.pld.privacy_loss_distribution", "upper",
               _as_poisson(_dp_accounting(True))),
    Accountant("prv_accountant, as Poisson", "prv_accountant", "both", _as_poisson(_prv)),
    Accountant("riskcal CTD, as Poisson", "riskcal.accountants", "upper", _as_poisson(_riskcal)),
    Accountant("opacus RDP, as Poisson", "opacus.accountants", "upper", _as_poisson(_opacus("RDPAccountant"))),
)


def _ratio(step: ComposedStep) -> float:
    """Scale of the noise for a sensitivity of 1."""
    given: Mapping[str, float] = step.parameters
    return (given["scale"] if step.kind == "laplace" else given["sigma"]) / given["sensitivity"]


def _history(question: CompositionQuestion) -> str | None:
    """Steps as (noise multiplier, sampling rate, count), None where one of them is something else."""
    plain = all(
        step.kind in ("gaussian", "sampled_gaussian") and step.parameters.get("group_size", 1) == 1
        for step in question.steps
    )
    if not plain or question.direction == "backward":
        return None
    return str([(_ratio(step), step.parameters.get("rate", 1.0), step.count) for step in question.steps])


def _chained(steps: Sequence[ComposedStep], one: Callable[[ComposedStep], str | None]) -> str | None:
    """A composition of distributions, as one expression."""
    made = ""
    for step in steps:
        text = one(step)
        if text is None:
            return None
        text += f".self_compose({step.count})" if step.count != 1 else ""
        made = f"{made}.compose({text})" if made else text
    return made


def _pld_answer(question: CompositionQuestion) -> str:
    if question.target == "delta":
        return f"get_delta_for_epsilon({question.epsilon!r})"
    return f"get_epsilon_for_delta({question.delta!r})"
