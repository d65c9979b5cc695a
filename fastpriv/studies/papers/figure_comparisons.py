"""The panels of figure 2 of the paper on Bayes-Nash generative privacy: defences, attacks, and what was claimed.

A panel is made of units, each the scores of some attacks on releases of one defence: a unit is what a store keeps. A
generator has a Gaussian dither here, so that its likelihood is an integral over seeds, and the AUC of the exact Bayes
attacker lies between those of an attacker who draws seeds and of one who is told them (``seed_mixtures``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from .texts import texts_of

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


_Units = Mapping[str, Unit]
_Maker = Callable[[Any, _Units, str | None], Unit]  # of a seed, units before it and a checkpoint

_FOUR = ("bayes", "adaptive", "fixed", "score")  # attacks of comparison (b)
# Attacks that the best responses of a panel answer.
_RESPONSES = {"a": ("fixed LRT", "adaptive LRT"), "c": ("score",)}
# The game of the generators of a panel.
_GAMES = {"a": "genotypes", "d": "genotypes", "e": "adult", "f": "weights"}
# Attacks on the generators of each game, beside Bayes and networks.
_OF_GENERATORS = {"genotypes": ("tree", "svm"), "adult": ("adaptive", "fixed", "score"), "weights": ()}


def units_of(letter: str, setting: FigureSetup) -> dict[str, _Maker]:
    """Names of the units of a panel, and what makes each; none where the panel cannot be run."""
    s, game = setting, _GAMES.get(letter)
    if letter == "b":
        noise = LInfinityNoise(2 * LOSS / (s.pool.n_attributes + 1))
        return {"L-infinity": lambda seed, done, file: _noise_unit(s, s.pool, s.others, noise, _FOUR, seed)}
    units: dict[str, _Maker] = {
        f"response to {name}": partial(_response_to, s, name) for name in _RESPONSES.get(letter, ())
    }
    if game is None:
        return units
    if s.torch and not (game == "adult" and s.adult is None):
        for i in range(s.networks.trainings):
            units[f"{game}, generator {i}"] = partial(_generator_unit, s, game)
    elif letter != "a":
        return {}
    pool, others, _ = _game(s, game)

    def noisy(make: Callable[[float], Noise], counted: slice) -> _Maker:
        """Noise of the loss of the generators, on these attributes."""
        columns = np.arange(pool.n_attributes)[counted]
        people, references = pool.select(attributes=columns), others.select(attributes=columns)
        return lambda seed, done, file: _noise_unit(
            s, people, references, make(_loss_of(done, game)), ["bayes"], seed
        )  # fmt: skip

    if game == "weights":
        units["weights, Laplace"] = noisy(LaplaceNoise, slice(None))
        units["weights, Laplace on those that count"] = noisy(LaplaceNoise, slice(_WEIGHTED))
    else:
        units[f"{game}, Gaussian"] = noisy(lambda loss: GaussianNoise(loss * math.sqrt(math.pi / 2)), slice(None))
    return units


def comparison(letter: str, setting: FigureSetup, units: _Units) -> PaperComparison:
    """The panel of these units."""
    texts = texts_of("comparisons")
    numbers = {
        "loss": LOSS, "seeds": _SEEDS, "dither": _DITHER, "releases": f"{setting.n_releases:,}",
        "counted": _WEIGHTED, "attributes": setting.few.n_attributes,
    }  # fmt: skip
    numbers["trained"] = texts["trained"].format_map(numbers)
    claim, setup = texts[letter]["claim"], texts[letter]["setup"].format_map(numbers)
    if letter == "e" and setting.adult is None:
        return PaperComparison("e", claim, "", (), (), (), "Not run: no data were given.")
    if letter in "def" and not _runs(units, _GAMES[letter]):
        return PaperComparison(letter, claim, "", (), (), (), _NOT_TRAINED)
    aucs, verdicts, curves, remark = _PANELS[letter](setting, units)
    return PaperComparison(letter, claim, setup, tuple(aucs), tuple(verdicts), tuple(curves), remark)


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


def _runs(units: _Units, game: str) -> list[Unit]:
    return [unit for name, unit in units.items() if name.startswith(f"{game}, generator ")]


def _loss_of(units: _Units, game: str) -> float:
    """Mean loss of the generators of a game; what they aim at where none was trained."""
    runs = _runs(units, game)
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


def _response_to(s: FigureSetup, name: str, seed: Any, units: _Units, checkpoint: str | None) -> Unit:
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


def _generator_unit(s: FigureSetup, game: str, seed: Any, units: _Units, checkpoint: str | None) -> Unit:
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


class _Defence(NamedTuple):
    """What is attacked: its name in tables, and the units whose mean AUCs stand for it."""

    title: str
    units: Sequence[Unit]

    def auc(self, attack: str = _BAYES) -> Estimate:
        return _mean_auc(self.units, attack)

    def known(self, attacks: Sequence[str]) -> list[str]:
        """Those of the attacks that ran."""
        return [attack for attack in attacks if attack == _BAYES or attack in self.units[0].scores]

    def rows(self, attacks: Sequence[str] = (_BAYES,)) -> list[_Row]:
        return [(self.title, attack, self.auc(attack)) for attack in self.known(attacks)]

    def compare_attacks(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Whether the first attack of each pair is above the second."""
        return [_order((high, self.auc(high)), (low, self.auc(low))) for high, low in pairs]

    def curve(self, attack: str = _BAYES) -> RocCurve:
        unit = self.units[0]
        return roc_curve(unit.scores[_MIXED if attack == _BAYES and _MIXED in unit.scores else attack], unit.membership)

    def curves(self, attacks: Sequence[str]) -> list[tuple[str, RocCurve]]:
        return [(attack, self.curve(attack)) for attack in self.known(attacks)]


_Row = tuple[str, str, Estimate]  # defence, attack, AUC
# Rows, verdicts, curves and remark of a panel.
_Content = tuple[list[_Row], list[tuple[str, str]], list[tuple[str, RocCurve]], str]

# The end of each remark on generators that were not trained.
_NOT_INSTALLED = "needs PyTorch, which is not installed (pip install 'fastpriv[networks]')."
# The remark of a panel that needs a generator where none can be trained.
_NOT_TRAINED = f"Not run: a trained generator {_NOT_INSTALLED}"


def _generator(units: _Units, game: str) -> _Defence:
    runs = _runs(units, game)
    return _Defence(f"generator (loss {np.mean([run.loss for run in runs]):.3f})", runs)


def _gaussian(units: _Units, game: str) -> _Defence:
    """Gaussian noise of the loss of the generators."""
    return _Defence(f"Gaussian noise (loss {_loss_of(units, game):.3f})", [units[f"{game}, Gaussian"]])


def _constant(s: FigureSetup, game: str) -> _Row:
    """The release of the medians, which says nothing."""
    pool, _, kappa = _game(s, game)
    members = [list(one) for one in itertools.combinations(range(pool.n_people), pool.n_people // 2)]
    bits = pool.to_array()
    share = np.full(pool.n_attributes, 1.0) if kappa is None else kappa
    f = np.array([bits[one].mean(axis=0) for one in members])
    loss = float((np.abs(f - np.median(f, axis=0)) @ share).mean() / share.size)
    return f"constant (loss {loss:.3f})", "any", exact(0.5, 0.0, unit="probability", method="no information")


def _trainings(generator: _Defence) -> str:
    """The spread over trainings."""
    runs = generator.units
    if len(runs) == 1:
        return "One generator was trained."
    each = ", ".join(f"{_mean_auc([run], _BAYES).value:.3f}" for run in runs)
    return f"Means over {len(runs)} generators of different seeds; of each the AUC of Bayes: {each}."


def _less_than_gaussian(generator: _Defence, gaussian: _Defence) -> tuple[str, str]:
    text = "the generator leaks less than Gaussian noise of its loss"
    return _order(("", gaussian.auc()), ("", generator.auc()), text)


def _panel_a(s: FigureSetup, units: _Units) -> _Content:
    responses = {
        name: _Defence(f"best response to {name} (loss {units[f'response to {name}'].loss:.3f})",
                       [units[f"response to {name}"]])
        for name in _RESPONSES["a"]
    }  # fmt: skip
    gaussian = _gaussian(units, "genotypes")
    rows = [row for defence in responses.values() for row in defence.rows()]
    curves = [(f"response to {name}", defence.curve()) for name, defence in responses.items()]
    least = min((defence.auc() for defence in responses.values()), key=lambda auc: float(auc.value))
    verdicts, remark = [], f"No generator: it {_NOT_INSTALLED}"
    if _runs(units, "genotypes"):
        generator = _generator(units, "genotypes")
        rows += generator.rows((_BAYES, _FRESH, _TRAINED))
        bayes, fresh = generator.auc(), generator.auc(_FRESH)
        verdicts = [
            _order(("", least), ("", bayes), "the generator is the most robust of the three"),
            _less_than_gaussian(generator, gaussian),
            _order(("", bayes), ("", fresh), "a network that is trained anew finds less than the posterior"),
        ]
        curves.append(("generator", generator.curve()))
        remark = _trainings(generator)
    verdicts.append(_order(("", least), ("", gaussian.auc()), "Gaussian noise is better than the best responses"))
    curves.append(("Gaussian noise", gaussian.curve()))
    return [*rows, *gaussian.rows(), _constant(s, "genotypes")], verdicts, curves, remark


def _panel_b(s: FigureSetup, units: _Units) -> _Content:
    defence = _Defence("L-infinity", [units["L-infinity"]])
    attacks = list(defence.units[0].scores)
    return defence.rows(attacks), defence.compare_attacks(itertools.pairwise(attacks)), defence.curves(attacks), ""


def _panel_c(s: FigureSetup, units: _Units) -> _Content:
    unit = units["response to score"]
    defence = _Defence(f"best response to the score (loss {unit.loss:.3f})", [unit])
    pairs = ((_BAYES, "fixed LRT"), (_BAYES, "adaptive LRT"), ("fixed LRT", "score"), ("adaptive LRT", "score"))
    return defence.rows(list(unit.scores)), defence.compare_attacks(pairs), defence.curves(list(unit.scores)), ""


def _panel_d(s: FigureSetup, units: _Units) -> _Content:
    svm = "SVM" in _runs(units, "genotypes")[0].scores
    rows, verdicts, curves, remark = _attacks_on_generator(
        s, units, "genotypes", (_BAYES, "decision trees", "SVM"), [(_BAYES, "SVM")] if svm else []
    )
    missing = "" if svm else "No trees and no SVM: scikit-learn is not installed. "
    text = "The paper attacks the outputs of a classifier of digits; here frequencies are attacked. "
    return rows, verdicts, curves, text + missing + remark


def _panel_e(s: FigureSetup, units: _Units) -> _Content:
    return _attacks_on_generator(s, units, "adult", (_BAYES, "adaptive LRT", "fixed LRT", "score"), [])


def _attacks_on_generator(
    s: FigureSetup, units: _Units, game: str, attacks: Sequence[str], further: Sequence[tuple[str, str]]
) -> _Content:
    """Attacks on the generators of a game, each above the next one, beside Gaussian noise and a constant."""
    generator, gaussian = _generator(units, game), _gaussian(units, game)
    rows = [*generator.rows((*attacks, _FRESH, _TRAINED)), *gaussian.rows(), _constant(s, game)]
    verdicts = generator.compare_attacks([*itertools.pairwise(generator.known(attacks)), *further])
    verdicts.append(_less_than_gaussian(generator, gaussian))
    return rows, verdicts, generator.curves((*attacks, _FRESH)), _trainings(generator)


def _panel_f(s: FigureSetup, units: _Units) -> _Content:
    generator, m = _generator(units, "weights"), s.few.n_attributes
    epsilon = m / (s.few.n_people // 2 * _loss_of(units, "weights"))
    everywhere = _Defence(f"Laplace on all attributes (epsilon {epsilon:.0f})", [units["weights, Laplace"]])
    counted = _Defence(
        f"Laplace on those that count (epsilon {epsilon * _WEIGHTED / m:.0f}), constants elsewhere",
        [units["weights, Laplace on those that count"]],
    )
    rows = [*generator.rows((_BAYES, _FRESH, _TRAINED)), *everywhere.rows(), *counted.rows(), _constant(s, "weights")]
    verdicts = [
        _order(("", high.auc()), ("", low.auc()), text)
        for high, low, text in (
            (everywhere, generator, "the generator leaks less than epsilon-DP noise of its weighted loss"),
            (everywhere, counted, "epsilon-DP noise that knows the weights leaks less, too"),
            (counted, generator, "the generator leaks less than epsilon-DP noise that knows the weights"),
        )
    ]
    curves = [("generator", generator.curve()), ("Laplace everywhere", everywhere.curve()),
              ("Laplace where it counts", counted.curve())]  # fmt: skip
    return rows, verdicts, curves, _trainings(generator)


# What fills the panel of each letter.
_PANELS = {"a": _panel_a, "b": _panel_b, "c": _panel_c, "d": _panel_d, "e": _panel_e, "f": _panel_f}
