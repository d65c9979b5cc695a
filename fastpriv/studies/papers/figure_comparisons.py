"""The panels of figure 2 of the paper on Bayes-Nash generative privacy: defences, attacks, and what was claimed.

A panel is made of units, each the scores of some attacks on releases of one defence: a unit is what a store keeps. A
generator has a Gaussian dither here, so that its likelihood is an integral over seeds, and the AUC of the exact Bayes
attacker lies between those of an attacker who draws seeds and of one who is told them (``seed_mixtures``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...base import random_streams
from ...base.estimate import Estimate, Result, exact
from ...base.numerics import BoolArray, FloatArray
from ..membership.attackers import AdaptiveThresholdLRT, DworkScore, FixedThresholdLRT
from ..membership.defences.best_responses import best_response
from ..membership.defences.generators import train_generator
from ..membership.evaluation import RocCurve, evaluate_attack, roc_curve
from ..membership.networks import NetworkAttacker
from ..membership.noises import GaussianNoise, GeneratorNoise, LaplaceNoise, LInfinityNoise, Noise
from ..membership.panels import Panel
from ..membership.priors import FixedSizeMembership
from ..membership.releases import FrequencyRelease, SimulatedReleases
from ..membership.seed_mixtures import SeedMixtureAttacker, simulate_with_seeds
from ..membership.studies import attack_scores

__all__ = ["NETWORKS", "FigureSetup", "PaperComparison", "Unit", "comparison", "units_of"]

LOSS = 0.06  # mean absolute noise: less than a constant release loses
_WEIGHTED = 2  # attributes of comparison (f) whose utility counts: a quarter
_SEEDS, _DITHER = 4, 0.03  # of a generator: few seeds, and enough dither, for mixtures that are nearly exact
_MIXTURE = 256  # seeds of a mixture
_LEVEL = 0.95  # of each interval
# What tables call attacks: those beside the names of a study.
_BAYES, _MIXED, _TOLD = "Bayes", "Bayes, drawing seeds", "Bayes, told the seeds"
_FRESH, _TRAINED = "network, fresh", "network, trained with it"


class Networks(NamedTuple):
    """Sizes of networks, and how long they are trained."""

    generator: tuple[int, ...]
    attacker: tuple[int, ...]
    generator_of_weights: tuple[int, ...]  # those of comparison (f)
    attacker_of_weights: tuple[int, ...]
    steps: int
    trainings: int


# What ``networks`` names: small ones, and those of the paper's tables.
NETWORKS = {
    "small": Networks((128, 128), (128, 64), (128, 128), (128, 64), 2000, 3),
    "paper": Networks((1500, 1100, 500), (3400, 2000), (1000, 3000, 4600), (3000, 1000), 600, 1),
}


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
    >>> from fastpriv.membership import Panel, paper_comparisons
    >>> found = paper_comparisons(Panel(**datasets.genotypes()), panels="b", n_releases=200, rng=1)
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


class FigureSetup(NamedTuple):
    """What all panels share."""

    pool: Panel
    others: Panel
    few: Panel  # fewer people and attributes, for posteriors that are looked up or mixtures over seeds
    few_others: Panel
    adult: Panel | None
    adult_others: Panel | None
    networks: Networks
    torch: bool
    n_releases: int
    n_jobs: int | None


class Unit(NamedTuple):
    """Scores of attacks on the releases of one defence."""

    membership: BoolArray
    losses: FloatArray  # utility loss of each release
    scores: Mapping[str, FloatArray]

    @property
    def loss(self) -> float:
        """Mean utility loss."""
        return float(self.losses.mean())


_Found = Mapping[str, Unit]
_Maker = Callable[[Any, Mapping[str, Unit], str | None], Unit]  # of a seed, units before it and a checkpoint


def units_of(letter: str, setting: FigureSetup) -> dict[str, _Maker]:
    """Names of the units of a panel, and what makes each; none where the panel cannot be run."""
    s, letters = setting, {"a": "genotypes", "d": "genotypes", "e": "adult", "f": "weights"}
    if letter == "b":
        return {"L-infinity": lambda seed, found, file: _noise_unit(
            s, s.pool, s.others, LInfinityNoise(2 * LOSS / (s.pool.n_attributes + 1)), _FOUR, seed)}  # fmt: skip
    if letter == "c":
        return {"response to score": partial(_response_to, s, "score")}
    units: dict[str, _Maker] = {}
    if letter == "a":
        for name in ("fixed LRT", "adaptive LRT"):
            units[f"response to {name}"] = partial(_response_to, s, name)
    game = letters[letter]
    if s.torch and not (letter == "e" and s.adult is None):
        for i in range(s.networks.trainings):
            units[f"{game}, generator {i}"] = lambda seed, found, file: _generator_unit(s, game, seed, file)
    elif letter != "a":
        return {}
    if letter == "f":
        units["weights, Laplace"] = lambda seed, found, file: _noise_unit(
            s, s.few, s.few_others, LaplaceNoise(_loss_of(found, "weights")), ["bayes"], seed)  # fmt: skip
        counted = slice(_WEIGHTED)
        units["weights, Laplace on those that count"] = lambda seed, found, file: _noise_unit(
            s, s.few.select(attributes=np.arange(s.few.n_attributes)[counted]),
            s.few_others.select(attributes=np.arange(s.few.n_attributes)[counted]),
            LaplaceNoise(_loss_of(found, "weights")), ["bayes"], seed)  # fmt: skip
        return units
    pool, others, _ = _game(s, game)
    units[f"{game}, Gaussian"] = lambda seed, found, file: _noise_unit(
        s, pool, others, GaussianNoise(_loss_of(found, game) * math.sqrt(math.pi / 2)), ["bayes"], seed)  # fmt: skip
    return units


def comparison(letter: str, setting: FigureSetup, found: _Found) -> PaperComparison:
    """The panel of these units."""
    return _PANELS[letter](setting, found)


_FOUR = ("bayes", "adaptive", "fixed", "score")  # attacks of comparisons (b) and (e)
# Attacks on the generators of each game, beside Bayes and networks.
_OF_GENERATORS = {"genotypes": ("tree", "svm"), "adult": ("adaptive", "fixed", "score"), "weights": ()}


def _game(s: FigureSetup, game: str) -> tuple[Panel, Panel, FloatArray | None]:
    """People, references and weights of the utility of a generator's game."""
    if game == "adult":
        assert s.adult is not None
        assert s.adult_others is not None
        return s.adult, s.adult_others, None
    if game == "weights":
        m = s.few.n_attributes
        return s.few, s.few_others, np.where(np.arange(m) < _WEIGHTED, m / _WEIGHTED, 0.0)
    return s.few, s.few_others, None


def _runs(found: _Found, game: str) -> list[Unit]:
    return [unit for name, unit in found.items() if name.startswith(f"{game}, generator ")]


def _loss_of(found: _Found, game: str) -> float:
    """Mean loss of the generators of a game; what they aim at where none was trained."""
    runs = _runs(found, game)
    return float(np.mean([unit.loss for unit in runs])) if runs else LOSS


def _noise_unit(
    s: FigureSetup, pool: Panel, others: Panel, noise: Noise, attacks: Sequence[str], seed: Any
) -> Unit:  # fmt: skip
    model = FrequencyRelease(pool, FixedSizeMembership(pool.n_people // 2), noise)
    seeds = seed.spawn(1 + len(attacks))
    drawn = model.simulate(s.n_releases, rng=seeds[0])
    losses = np.abs(drawn.released - model.frequencies(drawn.membership)).mean(axis=1)
    return Unit(drawn.membership, losses, _scores(s, model, others, drawn.released, attacks, seeds[1:]))


def _scores(
    s: FigureSetup, model: FrequencyRelease, others: Panel, released: FloatArray, attacks: Sequence[str], seeds: Any
) -> dict[str, FloatArray]:
    found = {}
    for name, seed in zip(attacks, seeds, strict=True):
        scores, title, _ = attack_scores(name, model, others, released, s.n_releases, seed, s.n_jobs)
        if scores is not None:
            found[title] = scores
    return found


def _response_to(s: FigureSetup, name: str, seed: Any, found: _Found, checkpoint: str | None) -> Unit:
    """A best response, which is a function of the membership: its releases are looked up."""
    seeds = seed.spawn(2)
    prior = FixedSizeMembership(s.few.n_people // 2)
    plain = FrequencyRelease(s.few, prior).simulate(s.n_releases, rng=seeds[0])
    fixed, adaptive = FixedThresholdLRT(s.few, s.few_others), AdaptiveThresholdLRT(s.few, s.few_others)
    score = DworkScore(s.few, s.few_others)
    words: dict[str, Any] = {}
    answered: Any = adaptive
    if name == "fixed LRT":
        answered = fixed.fit(plain.released, plain.membership)
    if name == "score":
        answered = score
        words["threshold"] = float(np.quantile(score.scores(plain.released)[~plain.membership], 0.95))
    noise = best_response(answered, utility_budget=LOSS, **words)
    simulated, posterior, losses = looked_up(s.few, noise, s.n_releases, seeds[1])
    r = simulated.released
    scores = {_BAYES: posterior, "fixed LRT": fixed.scores(r), "adaptive LRT": adaptive.scores(r),
              "score": score.scores(r)}  # fmt: skip
    return Unit(simulated.membership, losses, scores)


def looked_up(pool: Panel, noise: GeneratorNoise, count: int, seed: Any) -> tuple[Any, FloatArray, FloatArray]:
    """Releases of a response that is a function of the membership, the exact posterior of each, and utility losses."""
    prior = FixedSizeMembership(pool.n_people // 2)
    model = FrequencyRelease(pool, prior, noise)
    chosen = [list(one) for one in itertools.combinations(range(pool.n_people), prior.n0)]
    every = np.zeros((len(chosen), pool.n_people), dtype=bool)
    for row, members in zip(every, chosen, strict=True):
        row[members] = True
    released = model.release(every, rng=0)
    known: dict[bytes, list[int]] = {}
    for i, row in enumerate(released):
        known.setdefault(row.tobytes(), []).append(i)
    membership = prior.draw(count, pool.n_people, random_streams.generator(seed))
    index = {row.tobytes(): i for i, row in enumerate(every)}
    simulated = SimulatedReleases(membership, released[[index[row.tobytes()] for row in membership]])
    posterior = np.array([every[known[row.tobytes()]].mean(axis=0) for row in simulated.released])
    losses = np.abs(simulated.released - model.frequencies(membership)).mean(axis=1)
    return simulated, posterior, losses


def _generator_unit(s: FigureSetup, game: str, seed: Any, checkpoint: str | None) -> Unit:
    """Train a generator, freeze it, and attack it anew."""
    pool, others, kappa = _game(s, game)
    prior = FixedSizeMembership(pool.n_people // 2)
    weights = game == "weights"
    generator, attacker = (s.networks.generator_of_weights, s.networks.attacker_of_weights) if weights else (
        s.networks.generator, s.networks.attacker)  # fmt: skip
    words = [int(x) for x in seed.generate_state(2, np.uint32)]
    trained = train_generator(
        pool, prior, utility_budget=LOSS, attribute_weights=kappa, dither=GaussianNoise(_DITHER), clip=False,
        n_seeds=_SEEDS, hidden=generator, attacker_hidden=attacker, steps=s.networks.steps, rng=words[0],
        checkpoint=checkpoint,
    )  # fmt: skip
    attacks = _OF_GENERATORS[game]
    seeds = seed.spawn(3 + len(attacks))
    model = trained.release
    drawn, used = simulate_with_seeds(model, s.n_releases, np.random.default_rng(seeds[0]))
    further = model.simulate(4 * s.n_releases, rng=seeds[1])
    fresh = NetworkAttacker(attacker, rng=words[1]).fit(further.released, further.membership)
    mixture = SeedMixtureAttacker(model, seeds=_MIXTURE, rng=seeds[2])
    r = drawn.released
    scores = {
        _MIXED: mixture.scores(r), _TOLD: mixture.scores_of_known_seeds(r, used), _FRESH: fresh.scores(r),
        _TRAINED: trained.attacker.scores(r),
    } | _scores(s, model, others, r, attacks, seeds[3:])  # fmt: skip
    share = np.full(pool.n_attributes, 1.0) if kappa is None else kappa
    return Unit(drawn.membership, np.abs(r - model.frequencies(drawn.membership)) @ share / share.size, scores)


def _mean_auc(runs: Sequence[Unit], title: str) -> Estimate:
    """Mean AUC of an attack over trained generators; for Bayes an interval around both mixtures over seeds."""
    titles = (_MIXED, _TOLD) if title == _BAYES and _MIXED in runs[0].scores else (title, title)
    level = 1.0 - (1.0 - _LEVEL) / (len(runs) * len(set(titles)))  # a bound on the chance that any of them fails
    low, high = ([evaluate_attack(run.scores[one], run.membership, confidence=level).auc for run in runs]
                 for one in titles)  # fmt: skip
    value = float(np.mean([0.5 * (one.value + other.value) for one, other in zip(low, high, strict=True)]))
    method = low[0].method if titles[0] == titles[1] else "between the attackers of two mixtures over seeds"
    return Estimate(
        value, float(np.mean([one.lower for one in low])), float(np.mean([one.upper for one in high])),
        kind="statistical", unit="probability", method=method, confidence=_LEVEL,
    )  # fmt: skip


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


def _verdicts(aucs: Mapping[str, Estimate], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Whether each attack is above the next one."""
    pairs = itertools.pairwise([name for name in names if name in aucs])
    return tuple(_order((one, aucs[one]), (other, aucs[other])) for one, other in pairs)


def _curve(unit: Unit, title: str) -> RocCurve:
    return roc_curve(unit.scores[title], unit.membership)


def _curves(unit: Unit, titles: Sequence[str]) -> tuple[tuple[str, RocCurve], ...]:
    return tuple(
        (_BAYES if title == _MIXED else title, _curve(unit, title)) for title in titles if title in unit.scores
    )


def _constant(s: FigureSetup, game: str) -> tuple[str, str, Estimate]:
    """The release of the medians, which says nothing."""
    pool, _, kappa = _game(s, game)
    members = [list(one) for one in itertools.combinations(range(pool.n_people), pool.n_people // 2)]
    bits = pool.to_array()
    share = np.full(pool.n_attributes, 1.0) if kappa is None else kappa
    f = np.array([bits[one].mean(axis=0) for one in members])
    loss = float((np.abs(f - np.median(f, axis=0)) @ share).mean() / share.size)
    return f"constant (loss {loss:.3f})", "any", exact(0.5, 0.0, unit="probability", method="no information")


# The remark of a panel that needs a generator where none can be trained.
_NOT_TRAINED = "Not run: a trained generator needs PyTorch, which is not installed (pip install 'fastpriv[networks]')."


def _generator_rows(runs: Sequence[Unit], game: str, titles: Sequence[str]) -> list[tuple[str, str, Estimate]]:
    loss = np.mean([run.loss for run in runs])
    name = f"generator (loss {loss:.3f})"
    return [(name, title, _mean_auc(runs, title)) for title in titles if title == _BAYES or title in runs[0].scores]


def _of_each(runs: Sequence[Unit]) -> str:
    """The spread over trainings."""
    if len(runs) == 1:
        return "One generator was trained."
    each = ", ".join(f"{_mean_auc([run], _BAYES).value:.3f}" for run in runs)
    return f"Means over {len(runs)} generators of different seeds; of each the AUC of Bayes: {each}."


def _against_gaussian(s: FigureSetup, game: str, found: _Found) -> tuple[list[tuple[str, str, Estimate]], Any]:
    """The rows of Gaussian noise of equal loss and of a constant, and the claim about them."""
    runs, noise = _runs(found, game), found[f"{game}, Gaussian"]
    gaussian = _mean_auc([noise], _BAYES)
    rows = [(f"Gaussian noise (loss {_loss_of(found, game):.3f})", _BAYES, gaussian), _constant(s, game)]
    bayes = _mean_auc(runs, _BAYES)
    return rows, _order(("", gaussian), ("", bayes), "the generator leaks less than Gaussian noise of its loss")


def _panel_a(s: FigureSetup, found: _Found) -> PaperComparison:
    names = ("fixed LRT", "adaptive LRT")
    responses = [found[f"response to {name}"] for name in names]
    aucs = [
        (f"best response to {name} (loss {unit.loss:.3f})", _BAYES, _mean_auc([unit], _BAYES))
        for name, unit in zip(names, responses, strict=True)
    ]
    curves = [(f"response to {name}", _curve(unit, _BAYES)) for name, unit in zip(names, responses, strict=True)]
    noise, runs = found["genotypes, Gaussian"], _runs(found, "genotypes")
    gaussian = _mean_auc([noise], _BAYES)
    least = min((aucs[0][2], aucs[1][2]), key=lambda auc: float(auc.value))
    claims, remark = [], "No generator: it needs PyTorch, which is not installed (pip install 'fastpriv[networks]')."
    if runs:
        aucs += _generator_rows(runs, "genotypes", (_BAYES, _FRESH, _TRAINED))
        rows, claim = _against_gaussian(s, "genotypes", found)
        aucs += rows
        bayes, fresh = _mean_auc(runs, _BAYES), _mean_auc(runs, _FRESH)
        claims = [_order(("", least), ("", bayes), "the generator is the most robust of the three"), claim, _order(
            ("", bayes), ("", fresh), "a network that is trained anew finds less than the posterior")]  # fmt: skip
        curves.append(("generator", _curve(runs[0], _MIXED)))
        remark = _of_each(runs)
    else:
        aucs += [(f"Gaussian noise (loss {LOSS})", _BAYES, gaussian), _constant(s, "genotypes")]
    claims.append(_order(("", least), ("", gaussian), "Gaussian noise is better than the best responses"))
    curves.append(("Gaussian noise", _curve(noise, _BAYES)))
    return PaperComparison(
        "a", "The Bayes attacker against generator, fixed-LRT and adaptive-LRT defenders",
        "The best responses are functions of the membership, so that different releases tell all to who knows them: "
        "the Bayes attack looks the release up. " + _HOW_TRAINED, tuple(aucs), tuple(claims), tuple(curves), remark,
    )  # fmt: skip


# How generators are trained and attacked, in the text of each panel that has one.
_HOW_TRAINED = (
    f"The generator is trained for a utility loss of {LOSS} with {_SEEDS} seeds and a Gaussian dither of {_DITHER}. "
    "Bayes: the interval holds the AUC of the exact posterior, between an attacker who draws seeds and one who is told "
    "them; the fresh network was trained after the generator was frozen."
)  # fmt: skip


def _panel_b(s: FigureSetup, found: _Found) -> PaperComparison:
    unit = found["L-infinity"]
    aucs = {title: _mean_auc([unit], title) for title in unit.scores}
    return PaperComparison(
        "b", "Four attackers against the new pure DP defence",
        f"Noise of density exp(-max |y| / c) with mean absolute value {LOSS}.",
        tuple(("L-infinity", title, auc) for title, auc in aucs.items()), _verdicts(aucs, tuple(aucs)),
        _curves(unit, tuple(unit.scores)),
    )  # fmt: skip


def _panel_c(s: FigureSetup, found: _Found) -> PaperComparison:
    unit = found["response to score"]
    aucs = {title: _mean_auc([unit], title) for title in unit.scores}
    pairs = ((_BAYES, "fixed LRT"), (_BAYES, "adaptive LRT"), ("fixed LRT", "score"), ("adaptive LRT", "score"))
    return PaperComparison(
        "c", "Four attackers against the defender who answers the score",
        "The response is a function of the membership; the Bayes attack looks the release up.",
        tuple((f"best response to the score (loss {unit.loss:.3f})", title, auc) for title, auc in aucs.items()),
        tuple(_order((one, aucs[one]), (other, aucs[other])) for one, other in pairs),
        _curves(unit, tuple(unit.scores)),
    )  # fmt: skip


def _panel_d(s: FigureSetup, found: _Found) -> PaperComparison:
    claim = "The Bayes attacker against decision trees and SVM, of a generator"
    runs = _runs(found, "genotypes")
    if not runs:
        return PaperComparison("d", claim, "", (), (), (), _NOT_TRAINED)
    titles = (_BAYES, "decision trees", "SVM")
    aucs = _generator_rows(runs, "genotypes", (*titles, _FRESH, _TRAINED))
    by_title = {title: auc for _, title, auc in aucs}
    rows, noise = _against_gaussian(s, "genotypes", found)
    claims = _verdicts(by_title, titles)
    remark = "The paper attacks the outputs of a classifier of digits; here frequencies are attacked. "
    if "SVM" in by_title:
        claims += (_order((_BAYES, by_title[_BAYES]), ("SVM", by_title["SVM"])),)
    else:
        remark += "No trees and no SVM: scikit-learn is not installed. "
    return PaperComparison(
        "d", claim, _HOW_TRAINED + f" One classifier a person, trained on {s.n_releases:,} releases.", (*aucs, *rows),
        (*claims, noise), _curves(runs[0], (_MIXED, "decision trees", "SVM", _FRESH)), remark + _of_each(runs),
    )  # fmt: skip


def _panel_e(s: FigureSetup, found: _Found) -> PaperComparison:
    claim = "Four attackers on the Adult data, of a generator"
    if s.adult is None:
        return PaperComparison("e", claim, "", (), (), (), "Not run: no data were given.")
    runs = _runs(found, "adult")
    if not runs:
        return PaperComparison("e", claim, "", (), (), (), _NOT_TRAINED)
    titles = (_BAYES, "adaptive LRT", "fixed LRT", "score")
    aucs = _generator_rows(runs, "adult", (*titles, _FRESH, _TRAINED))
    rows, noise = _against_gaussian(s, "adult", found)
    claims = _verdicts({title: auc for _, title, auc in aucs}, titles)
    return PaperComparison(
        "e", claim, _HOW_TRAINED, (*aucs, *rows), (*claims, noise), _curves(runs[0], (_MIXED, *titles[1:], _FRESH)),
        _of_each(runs),
    )  # fmt: skip


def _panel_f(s: FigureSetup, found: _Found) -> PaperComparison:
    claim = "Equal weighted utility loss: a generator that knows the weights against epsilon-DP"
    runs = _runs(found, "weights")
    if not runs:
        return PaperComparison("f", claim, "", (), (), (), _NOT_TRAINED)
    aucs = _generator_rows(runs, "weights", (_BAYES, _FRESH, _TRAINED))
    scale = _loss_of(found, "weights")
    whole, some = found["weights, Laplace"], found["weights, Laplace on those that count"]
    epsilon = s.few.n_attributes / (s.few.n_people // 2 * scale)
    aucs += [(f"Laplace on all attributes (epsilon {epsilon:.0f})", _BAYES, _mean_auc([whole], _BAYES)),
             (f"Laplace on those that count (epsilon {epsilon * _WEIGHTED / s.few.n_attributes:.0f}), constants "
              "elsewhere", _BAYES, _mean_auc([some], _BAYES)), _constant(s, "weights")]  # fmt: skip
    everywhere, counted = aucs[-3][2], aucs[-2][2]
    return PaperComparison(
        "f", claim, f"Utility counts for {_WEIGHTED} of {s.few.n_attributes} attributes, and all defences have the "
        "same loss there; releasing constants elsewhere costs nothing. " + _HOW_TRAINED, tuple(aucs),
        (_order(("", everywhere), ("", aucs[0][2]), "the generator leaks less than epsilon-DP noise of its weighted "
                "loss"),
         _order(("", everywhere), ("", counted), "epsilon-DP noise that knows the weights leaks less, too"),
         _order(("", counted), ("", aucs[0][2]), "the generator leaks less than epsilon-DP noise that knows the "
                "weights")),
        (("generator", _curve(runs[0], _MIXED)), ("Laplace everywhere", _curve(whole, _BAYES)),
         ("Laplace where it counts", _curve(some, _BAYES))), _of_each(runs),
    )  # fmt: skip


# What makes the panel of each letter.
_PANELS = {"a": _panel_a, "b": _panel_b, "c": _panel_c, "d": _panel_d, "e": _panel_e, "f": _panel_f}
