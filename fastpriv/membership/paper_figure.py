"""The comparisons (a) to (f) of figure 2 of the paper on Bayes-Nash generative privacy, each with what it claims.

They run at a size where the Bayes attack is exact: noise with a likelihood is attacked by enumeration, a response that
is a function of the membership by looking its releases up. A trained generator, which needs PyTorch, is attacked by a
network that is trained anew.

Source: Zhang, Venkatesaramani, De, Malin and Vorobeychik 2024, Bayes-Nash generative privacy against membership
inference attacks, figure 2.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import _parallel, _random, _validate
from .._parallel import Progress
from .._random import RNGLike
from ..errors import DomainError
from ..estimate import Estimate, Result
from ..numerics import FloatArray
from .attackers import AdaptiveThresholdLRT, DworkScore, FixedThresholdLRT
from .defences.best_responses import best_response
from .defences.generators import train_generator
from .defences.judgement import judge_defence
from .evaluation import RocCurve, evaluate_attack, roc_curve
from .noises import GaussianNoise, GeneratorNoise, LaplaceNoise, LInfinityNoise, Noise
from .panels import Panel
from .priors import FixedSizeMembership
from .releases import FrequencyRelease
from .studies import AttackStudy, attack_study

__all__ = ["PaperComparison", "PaperComparisons", "paper_comparisons"]

_PEOPLE, _ATTRIBUTES, _FEW = 16, 24, 10  # people of enumerated posteriors, attributes, people of looked-up responses
_FEW_ATTRIBUTES = 8  # of the releases that are looked up: Gaussian noise does not tell everything then
_LOSS = 0.06  # mean absolute noise: less than a constant release loses
_WEIGHTED = 4  # attributes of comparison (f) whose utility counts: a sixth
_STEPS = 600  # of the generator's training


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PaperComparison(Result):
    """One panel of the figure.

    Parameters
    ----------
    panel : str
        Its letter.
    claim, setup : str
        What the paper compares, and how it is done here.
    aucs : tuple of (str, str, Estimate)
        Defence, attack, AUC with its interval.
    verdicts : tuple of (str, str)
        Claims of the paper, and what was found.
    curves : tuple of (str, RocCurve)
        Names and ROC curves.
    remark : str
        What was left out, and why.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> from fastpriv.membership import paper_comparisons
    >>> found = paper_comparisons(datasets.genotypes(), panels="b", n_releases=200, rng=1)
    >>> found.comparisons[0].panel, len(found.comparisons[0].aucs)
    ('b', 4)
    """

    panel: str
    claim: str
    setup: str
    aucs: tuple[tuple[str, str, Estimate], ...]
    verdicts: tuple[tuple[str, str], ...]
    curves: tuple[tuple[str, RocCurve], ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PaperComparisons(Result):
    """The panels that were computed.

    Parameters
    ----------
    comparisons : tuple of PaperComparison
        In order.
    description : str
        Sizes.
    seconds : float
        Time they took.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> from fastpriv.membership import paper_comparisons
    >>> paper_comparisons(datasets.genotypes(), panels="b", n_releases=200, rng=1).description
    '16 people, 8 of them members, 24 attributes, 200 releases each; ...'
    """

    comparisons: tuple[PaperComparison, ...]
    description: str
    seconds: float

    def __repr__(self) -> str:
        lines = [self.description]
        for one in self.comparisons:
            lines.append(f"\n({one.panel}) {one.claim}")
            lines += [f"    {defence}, {attack}: AUC {auc:.3f}" for defence, attack, auc in one.aucs]
            lines += [f"  * {claim}: {found}" for claim, found in one.verdicts]
            lines += [f"  {one.remark}"] if one.remark else []
        return "\n".join(lines)


def paper_comparisons(
    panel: Panel, adult: Panel | None = None, *, panels: str = "abcdef", n_releases: int = 1000, rng: RNGLike = None,
    n_jobs: int | None = None, progress: Progress = None,
) -> PaperComparisons:  # fmt: skip
    """Run the comparisons of figure 2 again, with intervals, and say of each claim whether it holds here.

    Parameters
    ----------
    panel : Panel
        Genotypes of at least 40 people with at least 24 attributes that vary; people and attributes are drawn from it.
    adult : Panel, optional
        Binary attributes of other people, for comparison (e), which is left out without it.
    panels : str, default "abcdef"
        Which comparisons.
    n_releases : int, default 1000
        Releases of each defence, at least 100.
    rng : int, Generator or None
        Source of random numbers.
    n_jobs : int, optional
        Number of threads.
    progress : bool or callable, optional
        Whether a bar counts comparisons, or a function of the number done and the total.

    Returns
    -------
    PaperComparisons

    Raises
    ------
    DomainError
        For unknown letters, and panels that are too small.

    Notes
    -----
    All defences of a comparison have the same utility loss. An order holds where its intervals, of level 0.95 each, do
    not overlap, and is not decided where they do. Without PyTorch the generator of (a) is left out, without
    scikit-learn the classifiers of (d); ``remark`` says so.

    **Accuracy** as ``evaluate_attack``; ``tests/membership/test_paper_comparisons.py``.

    Source: the head of fastpriv/membership/paper_figure.py.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> from fastpriv.membership import paper_comparisons
    >>> found = paper_comparisons(datasets.genotypes(), panels="b", n_releases=400, rng=1)
    >>> found.comparisons[0].verdicts[0]
    ('Bayes above adaptive LRT', 'holds: 0.99... > 0.8...')
    """
    _validate.instance("panel", panel, Panel)
    if adult is not None:
        _validate.instance("adult", adult, Panel)
    count = _validate.count("n_releases", n_releases, 100)
    if not isinstance(panels, str) or not panels or set(panels) - set("abcdef"):
        raise DomainError(f"panels must be letters from a to f; got {_validate.shown(panels)}. Write 'abcdef' for all.")
    _parallel.checked(n_jobs, progress)
    seeds = [np.random.SeedSequence(words.tolist()) for words in np.array(
        [_random.stream_words(root, (i,), 2) for root in [_random.root(rng)] for i in range(7)]
    )]  # fmt: skip
    start = time.perf_counter()
    pool, others = _drawn("panel", panel, seeds[6])
    makers = {
        "a": lambda s: _panel_a(pool, others, count, s), "b": lambda s: _panel_b(pool, others, count, s, n_jobs),
        "c": lambda s: _panel_c(pool, others, count, s), "d": lambda s: _panel_d(pool, others, count, s, n_jobs),
        "e": lambda s: _panel_e(adult, count, s, n_jobs), "f": lambda s: _panel_f(pool, others, count, s, n_jobs),
    }  # fmt: skip
    chosen = sorted(set(panels))
    report, close = _parallel.progress_reporter(progress, len(chosen))
    found = []
    try:
        for done, letter in enumerate(chosen, start=1):
            found.append(makers[letter](seeds["abcdef".index(letter)]))
            report(done)
    finally:
        close()
    description = (
        f"{_PEOPLE} people, {_PEOPLE // 2} of them members, {_ATTRIBUTES} attributes, {count:,} releases each; (a) and "
        f"(c): {_FEW} people, {_FEW // 2} of them members, {_FEW_ATTRIBUTES} attributes."
    )
    return PaperComparisons(tuple(found), description, time.perf_counter() - start)


def _drawn(name: str, panel: Panel, seed: Any) -> tuple[Panel, Panel]:
    """People and references of attributes that vary, but not rarely."""
    random = np.random.default_rng(seed)
    p = panel.frequencies()
    common = np.flatnonzero((p >= 0.05) & (p <= 0.95))
    if panel.n_people < 40 or common.size < 2:
        raise DomainError(
            f"{name} must have at least 40 people and 2 attributes of frequency 0.05 to 0.95; got {panel.n_people} and "
            f"{common.size}. Give a larger one."
        )
    columns = np.sort(random.choice(common, min(_ATTRIBUTES, common.size), replace=False))
    order = random.permutation(panel.n_people)[:1000]
    pool = panel.select(people=np.sort(order[:_PEOPLE]), attributes=columns)
    return pool, panel.select(people=np.sort(order[_PEOPLE:]), attributes=columns)


def _smaller(pool: Panel, others: Panel) -> tuple[Panel, Panel]:
    """Fewer people and attributes, for responses that are looked up."""
    columns = np.arange(min(_FEW_ATTRIBUTES, pool.n_attributes))
    return pool.select(people=np.arange(_FEW), attributes=columns), others.select(attributes=columns)


def _order(high: tuple[str, Estimate], low: tuple[str, Estimate], text: str | None = None) -> tuple[str, str]:
    """Whether the first AUC is above the second."""
    (first, one), (second, other) = high, low
    claim = text or f"{first} above {second}"
    numbers = f"{one.value:.3f} {{}} {other.value:.3f}"
    if one.lower > other.upper:
        return claim, "holds: " + numbers.format(">")
    if one.upper < other.lower:
        return claim, "does not hold: " + numbers.format("<")
    return claim, "not decided at this size: " + numbers.format("and")


def _aucs(study: AttackStudy) -> tuple[tuple[str, str, Estimate], ...]:
    return tuple((one.defence, one.attack, one.evaluation.auc) for one in study.outcomes if one.evaluation is not None)


def _curves(study: AttackStudy) -> tuple[tuple[str, RocCurve], ...]:
    return tuple((one.attack, one.roc) for one in study.outcomes if one.roc is not None)


def _four_attacks(study: AttackStudy) -> tuple[tuple[str, str], ...]:
    """The claims of (b) and (e): Bayes above adaptive, adaptive above fixed LRT, the score below all."""
    found = {attack: auc for _, attack, auc in _aucs(study)}
    names = ("Bayes", "adaptive LRT", "fixed LRT", "score")
    return tuple(_order((one, found[one]), (other, found[other])) for one, other in itertools.pairwise(names))


def _of_function(pool: Panel, others: Panel, noise: GeneratorNoise, count: int, seed: Any) -> Any:
    """Releases of a response that is a function of the membership, and the exact posterior of each by looking it up."""
    prior = FixedSizeMembership(pool.n_people // 2)
    model = FrequencyRelease(pool, prior, noise)
    simulated = model.simulate(count, rng=seed)
    chosen = [list(one) for one in itertools.combinations(range(pool.n_people), prior.n0)]
    every = np.zeros((len(chosen), pool.n_people), dtype=bool)
    for row, members in zip(every, chosen, strict=True):
        row[members] = True
    released = model.release(every, rng=0)
    known: dict[bytes, list[int]] = {}
    for i, row in enumerate(released):
        known.setdefault(row.tobytes(), []).append(i)
    posterior = np.array([every[known[row.tobytes()]].mean(axis=0) for row in simulated.released])
    loss = float(np.abs(simulated.released - model.frequencies(simulated.membership)).mean())
    return simulated, posterior, loss


def _scored(scores: FloatArray, membership: Any) -> tuple[Estimate, RocCurve]:
    return evaluate_attack(scores, membership).auc, roc_curve(scores, membership)


def _panel_a(pool: Panel, others: Panel, count: int, seed: Any) -> PaperComparison:
    seeds = seed.spawn(5)
    few, others = _smaller(pool, others)
    prior = FixedSizeMembership(_FEW // 2)
    plain = FrequencyRelease(few, prior).simulate(count, rng=seeds[0])
    fixed = FixedThresholdLRT(few, others).fit(plain.released, plain.membership)
    aucs, curves, loss = [], [], _LOSS
    for name, attack in (("fixed LRT", fixed), ("adaptive LRT", AdaptiveThresholdLRT(few, others))):
        simulated, posterior, loss = _of_function(
            few, others, best_response(attack, utility_budget=_LOSS), count, seeds[1]
        )  # fmt: skip
        found, curve = _scored(posterior, simulated.membership)
        aucs.append((f"best response to {name} (loss {loss:.3f})", "Bayes", found))
        curves.append((f"response to {name}", curve))
    study = attack_study(
        few, others, prior, {"Gaussian": _gaussian()}, attacks=["bayes"], n_releases=count, rng=seeds[2]
    )  # fmt: skip
    aucs.append((f"Gaussian noise (loss {_LOSS})", "Bayes", _aucs(study)[0][2]))
    curves.append(("Gaussian noise", _curves(study)[0][1]))
    claims = [_order(("Gaussian noise", aucs[0][2]), ("", aucs[2][2]), f"Gaussian noise of loss {_LOSS} is the better "
        f"defence")]
    remark = "PyTorch is not installed: no generator was trained."
    if find_spec("torch") is not None:
        remark = ""
        trained = train_generator(few, prior, utility_budget=_LOSS, steps=_STEPS, rng=1)
        judged = judge_defence(trained, releases=count, training=4 * count, rng=2)
        of_generator = [one for one in judged.attacks if one.defence == "judged"]
        aucs += [
            (f"generator (loss {judged.clipped_utility_loss.value:.3f})", f"{one.attacker}, {one.training}",
             one.evaluation.auc) for one in of_generator
        ]  # fmt: skip
        strongest = max((one.evaluation.auc for one in of_generator), key=lambda auc: float(auc.value))
        claims.insert(0, _order(
            ("", min((aucs[0][2], aucs[1][2]), key=lambda auc: float(auc.value))), ("", strongest),
            "the generator is the most robust of the three (a fresh network is a lower bound on Bayes)",
        ))  # fmt: skip
        claims.append(_order(
            ("", aucs[2][2]), ("", strongest), "the generator is better than Gaussian noise of its budget, as far as "
                "the network sees"
        ))  # fmt: skip
    return PaperComparison(
        "a", "The Bayes attacker against generator, fixed-LRT and adaptive-LRT defenders",
        "The best responses are functions of the membership, so that "
        "different releases tell all to who knows them; "
        "the Bayes attack looks the release up. The generator is attacked by a network that is trained anew, a lower "
        "bound on the Bayes attack.",
        tuple(aucs), tuple(claims), tuple(curves), remark,
    )  # fmt: skip


def _gaussian() -> Noise:
    return GaussianNoise(_LOSS * math.sqrt(math.pi / 2))


def _panel_b(pool: Panel, others: Panel, count: int, seed: Any, n_jobs: int | None) -> PaperComparison:
    noise = LInfinityNoise(2 * _LOSS / (pool.n_attributes + 1))
    study = _study(pool, others, {"L-infinity": noise}, count, seed, n_jobs)
    return PaperComparison(
        "b", "Four attackers against the new pure DP defence",
        f"Noise of density exp(-max |y| / c) with mean absolute value {_LOSS}.", _aucs(study), _four_attacks(study),
        _curves(study),
    )  # fmt: skip


def _panel_c(pool: Panel, others: Panel, count: int, seed: Any) -> PaperComparison:
    few, others = _smaller(pool, others)
    score = DworkScore(few, others)
    plain = FrequencyRelease(few, FixedSizeMembership(_FEW // 2)).simulate(count, rng=seed)
    level = float(np.quantile(score.scores(plain.released)[~plain.membership], 0.95))
    noise = best_response(score, utility_budget=_LOSS, threshold=level)
    simulated, posterior, loss = _of_function(few, others, noise, count, seed)
    scores = {
        "Bayes": posterior, "fixed LRT": FixedThresholdLRT(few, others).scores(simulated.released),
        "adaptive LRT": AdaptiveThresholdLRT(few, others).scores(simulated.released),
        "score": score.scores(simulated.released),
    }  # fmt: skip
    found = {name: _scored(one, simulated.membership) for name, one in scores.items()}
    defence = f"best response to the score (loss {loss:.3f})"
    auc = {name: one[0] for name, one in found.items()}
    return PaperComparison(
        "c", "Four attackers against the defender who answers the score", "The response is a function of the "
        "membership; "
        "the Bayes attack looks the release up.", tuple((defence, name, one) for name, one in auc.items()),
        tuple(_order((one, auc[one]), (other, auc[other])) for one, other in (
            ("Bayes", "fixed LRT"), ("Bayes", "adaptive LRT"), ("fixed LRT", "score"), ("adaptive LRT", "score"))),
        tuple((name, one[1]) for name, one in found.items()),
    )  # fmt: skip


def _panel_d(pool: Panel, others: Panel, count: int, seed: Any, n_jobs: int | None) -> PaperComparison:
    study = _study(pool, others, {"Gaussian": _gaussian()}, count, seed, n_jobs, ("bayes", "tree", "svm"))
    found = {attack: auc for _, attack, auc in _aucs(study)}
    pairs = [pair for pair in itertools.pairwise(("Bayes", "decision trees", "SVM")) if set(pair) <= set(found)]
    if {"Bayes", "SVM"} <= set(found):
        pairs.append(("Bayes", "SVM"))
    remark = "The paper attacks the outputs of a classifier of digits; here frequencies with noise are attacked."
    if len(found) < 3:
        remark += " scikit-learn is not installed: no trees and no SVM."
    return PaperComparison(
        "d", "The Bayes attacker against decision trees and SVM", f"Gaussian noise of mean absolute value {_LOSS}; one "
        f"classifier a person, trained on {count:,} releases.", _aucs(study),
        tuple(_order((one, found[one]), (other, found[other])) for one, other in pairs), _curves(study), remark,
    )  # fmt: skip


def _panel_e(adult: Panel | None, count: int, seed: Any, n_jobs: int | None) -> PaperComparison:
    claim, setup = "Four attackers on the Adult data", f"Gaussian noise of mean absolute value {_LOSS}."
    if adult is None:
        return PaperComparison("e", claim, setup, (), (), (), "Left out: no data were given.")
    pool, others = _drawn("adult", adult, seed)
    study = _study(pool, others, {"Gaussian": _gaussian()}, count, seed, n_jobs)
    return PaperComparison("e", claim, setup, _aucs(study), _four_attacks(study), _curves(study))


def _panel_f(pool: Panel, others: Panel, count: int, seed: Any, n_jobs: int | None) -> PaperComparison:
    noise: dict[str, Noise] = {"Laplace": LaplaceNoise(_LOSS)}
    counted = np.arange(_WEIGHTED)
    whole = _study(pool, others, noise, count, seed, n_jobs, ("bayes",))
    some = _study(
        pool.select(attributes=counted), others.select(attributes=counted), noise, count, seed, n_jobs, ("bayes",)
    )  # fmt: skip
    aucs = [("Laplace on all attributes", "Bayes", _aucs(whole)[0][2]),
            ("Laplace on those that count, constants elsewhere", "Bayes", _aucs(some)[0][2])]  # fmt: skip
    return PaperComparison(
        "f", "Equal weighted utility loss: a defence that knows the weights against epsilon-DP",
        f"Utility counts for {_WEIGHTED} of {pool.n_attributes} attributes. Both defences have the same loss there. "
        f"The "
        "second one releases constants elsewhere, which costs nothing, and is epsilon-DP too.",
        tuple(aucs),
        (_order(("", aucs[0][2]), ("", aucs[1][2]), "knowing the weights leaks less at equal weighted loss"),
         _order(("", aucs[0][2]), ("", aucs[1][2]), "Laplace noise that knows them does it too, and no generator is "
             "needed")),
        (("all attributes", _curves(whole)[0][1]), ("those that count", _curves(some)[0][1])),
    )  # fmt: skip


def _study(
    pool: Panel, others: Panel, defences: dict[str, Noise], count: int, seed: Any, n_jobs: int | None,
    attacks: Sequence[str] = ("bayes", "adaptive", "fixed", "score"),
) -> AttackStudy:  # fmt: skip
    return attack_study(
        pool, others, FixedSizeMembership(pool.n_people // 2), defences, attacks=attacks, n_releases=count,
        n_training=count, rng=seed, n_jobs=n_jobs,
    )  # fmt: skip
