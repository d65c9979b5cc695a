"""Attacks against defences: each attack on releases of each defence, evaluated with intervals; a table and a page.

All defences are judged on releases of their own, drawn from the prior; attacks that train are trained for each defence,
on further releases of it. An attacker therefore knows the defence it faces.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.random import SeedSequence

from ...base import parallel, random_streams, validate
from ...base.errors import BackendMissingError, DomainError
from ...base.estimate import Estimate, Result
from ...base.files import writable_directory, write_picture, write_text
from ...base.numerics import BoolArray, FloatArray
from ...base.parallel import Progress
from ...base.random_streams import RNGLike
from ...base.table import CellType, Table, bounded_cells, bounded_names
from ...report import Details, Pictures, TextTable, page
from .attack_panels import attack_figure, roc_axes, roc_curves
from .attackers import AdaptiveThresholdLRT, DworkScore, FixedThresholdLRT
from .evaluation import AttackEvaluation, RocCurve, evaluate_attack, mean_over_simulations, roc_curve
from .member_posteriors import BayesAttacker
from .noises import Noise, NoNoise
from .panels import Panel
from .posterior_enumeration import MAX_PEOPLE
from .priors import MembershipPrior
from .releases import FrequencyRelease
from .trained_attackers import ClassifierAttacker

# What ``attacks`` may name, and what tables and legends call each.
_TITLES = {
    "bayes": "Bayes", "fixed": "fixed LRT", "adaptive": "adaptive LRT", "score": "score", "tree": "decision trees",
    "svm": "SVM", "logistic": "logistic regression", "network": "network",
}
# The random stream of each attack on a defence; 0 is that of the releases, 2 belonged to an attack of earlier versions.
_STREAMS = {"bayes": 1, "fixed": 3, "adaptive": 4, "score": 5, "tree": 6, "svm": 7, "logistic": 8, "network": 9}
DPI = 110  # dots per inch of written pictures: a figure is four panels wide
# What the columns of the table say.
_MEANINGS = {
    "AUC": "the probability that a member of one release scores higher than a non-member of another; 0.5 is chance",
    "TPR": "members who are found by the threshold that claims at most this fraction of the non-members",
    "advantage": "the largest true-positive minus false-positive rate of one threshold",
    "BWMA": "balanced gain of the claims about a release: a right one gains 1 - gamma, a false one costs gamma; above "
            "0 the attacker gains",
    "utility loss": "mean over attributes of E|released - frequency|",
}
# Caption of the pictures of a defence.
_CAPTION = (
    "True-positive against false-positive rate, pooled over releases; the band, of the strongest attack, holds at all "
    "thresholds together."
)
_SWEEPS = 1000  # of each chain where the posterior is sampled: a study needs an order of people, not digits

_Scores = tuple[FloatArray | None, str]  # scores of an attack, None where it does not apply, and a remark


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """What ``attack_study`` runs on each defence, and how it is evaluated.

    Parameters
    ----------
    attacks : sequence of str
        Of "bayes", "fixed", "adaptive", "score", "tree", "svm", "logistic" and "network".
    n_releases, n_training : int
        Releases that are attacked, at least 2, and releases on which "tree", "svm", "logistic" and "network" are
        trained, of each defence.
    clip : bool
        Whether releases are clipped to [0, 1].
    fpr, gamma, confidence : float
        As ``evaluate_attack``; one gamma.

    Raises
    ------
    DomainError
        For unknown attacks, none of them, and numbers outside their range.

    Examples
    --------
    >>> from fastpriv.membership import StudyOptions
    >>> StudyOptions(attacks=["bayes", "score"], n_releases=200).n_training
    1000
    """

    attacks: Sequence[str] = ("bayes", "fixed", "adaptive", "score")
    n_releases: int = 400
    n_training: int = 1000
    clip: bool = False
    fpr: float = 1e-3
    gamma: float = 0.5
    confidence: float = 0.95

    def __post_init__(self) -> None:
        names = validate.sequence("attacks", self.attacks, "names of attacks")
        for name in names:
            validate.choice("attacks", name, tuple(_TITLES))
        if not names:
            raise DomainError(f"attacks must name at least one attack; got none. Choose among {', '.join(_TITLES)}.")
        checked: dict[str, Any] = {"attacks": list(dict.fromkeys(names)), "clip": validate.flag("clip", self.clip)}
        for name in ("n_releases", "n_training"):
            checked[name] = validate.count(name, getattr(self, name), 2, validate.MOST_ENTRIES)
        for name in ("fpr", "gamma", "confidence"):
            checked[name] = validate.open_probability(name, getattr(self, name))
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackOutcome(Result):
    """What one attack attains against one defence.

    Parameters
    ----------
    defence, attack : str
        Their names.
    evaluation : AttackEvaluation or None
        AUC, TPR at a small FPR, advantage and BWMA with intervals; None where the attack does not apply.
    roc : RocCurve or None
        The ROC curve with its band.
    utility_loss : Estimate
        Mean over attributes of E|released - frequency|, of the defence.
    remark : str
        Why there is no evaluation, or what to know about it.

    Examples
    --------
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, StudyOptions, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, StudyOptions(attacks=["bayes"], n_releases=200), rng=1)
    >>> study["noise", "bayes"].attack
    'Bayes'
    """

    defence: str
    attack: str
    evaluation: AttackEvaluation | None
    roc: RocCurve | None
    utility_loss: Estimate
    remark: str = ""

    def numbers(self) -> tuple[Estimate | None, ...]:
        """AUC, TPR at the FPR, advantage, BWMA and utility loss; None where the attack does not apply."""
        e = self.evaluation
        result = (None,) * 4 if e is None else (e.auc, e.tpr_at_fpr, e.advantage, e.bwma)
        return (*result, self.utility_loss)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackStudy(Table, Result):
    """All attacks on all defences.

    Parameters
    ----------
    outcomes : tuple of AttackOutcome
        Defence by defence.
    constant_loss : Estimate
        Utility loss of the release of a constant, the frequencies of all people, which says nothing of who is in.
    settings : mapping
        What ran, in plain types.

    Notes
    -----
    **Accuracy** as ``evaluate_attack`` and ``membership_posterior``.

    Source: the head of fastpriv/studies/membership/studies.py.

    Examples
    --------
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, StudyOptions, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, StudyOptions(n_releases=200), rng=1)
    >>> study.columns()[:3], len(study.rows())
    (('defence', 'attack', 'auc'), 4)
    """

    outcomes: tuple[AttackOutcome, ...]
    constant_loss: Estimate
    settings: Mapping[str, Any]

    def __getitem__(self, names: tuple[str, str]) -> AttackOutcome:
        for outcome in self.outcomes:
            keys = [key for key, title in _TITLES.items() if title == outcome.attack]
            if names in [(outcome.defence, text) for text in (outcome.attack, *keys)]:
                return outcome
        raise DomainError(
            f"names must be a defence and an attack of the study; got {validate.shown(names)}. Defences: "
            f"{', '.join(self.defences())}; attacks: {', '.join(self.attacks())}."
        )

    def defences(self) -> tuple[str, ...]:
        """Names of the defences, in order."""
        return tuple(dict.fromkeys(outcome.defence for outcome in self.outcomes))

    def attacks(self) -> tuple[str, ...]:
        """Names of the attacks, in order."""
        return tuple(dict.fromkeys(outcome.attack for outcome in self.outcomes))

    def column_types(self) -> dict[str, CellType]:
        """The columns by name; numbers have columns ``_lower`` and ``_upper`` beside."""
        numbers = bounded_names(("auc", "tpr_at_fpr", "advantage", "bwma", "utility_loss"))
        return dict.fromkeys(("defence", "attack", *numbers, "remark"), "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row an attack on a defence; None where an attack does not apply."""
        return [(each.defence, each.attack, *bounded_cells(each.numbers()), each.remark) for each in self.outcomes]

    def remarks(self) -> dict[str, list[str]]:
        """The outcomes, as texts, of each remark."""
        return names_by_remark((f"{each.defence}, {each.attack}", each.remark) for each in self.outcomes)

    def metadata(self) -> dict[str, Any]:
        """Settings, and the utility loss of a constant."""
        return {"settings": dict(self.settings), "constant_loss": self.constant_loss.to_dict()}

    def __repr__(self) -> str:
        return f"<AttackStudy of {len(self.attacks())} attacks on {len(self.defences())} defences>"


def attack_study(
    panel: Panel, references: Panel, prior: MembershipPrior, defences: Mapping[str, Noise],
    options: StudyOptions | None = None, *, rng: RNGLike = None, n_jobs: int | None = None, progress: Progress = None,
) -> AttackStudy:
    """Run attacks on releases of each defence, and evaluate them.

    Parameters
    ----------
    panel : Panel
        The people who may be members.
    references : Panel
        People who are not, with the same attributes.
    prior : BernoulliMembership or FixedSizeMembership
        Who is a member.
    defences : mapping of str to noise
        Names and noises.
    options : StudyOptions, optional
        Which attacks, how many releases, and how they are evaluated.
    rng : int, Generator or None
        Source of random numbers.
    n_jobs : int, optional
        Number of threads.
    progress : bool or callable, optional
        Whether a bar counts attacks on defences, or a function of the number done and the total.

    Returns
    -------
    AttackStudy

    Raises
    ------
    DomainError, ShapeError
        For no defences, and what attackers and releases raise.

    Notes
    -----
    "bayes" enumerates for up to 24 people; beyond it samples, and a remark says where chains did not mix. It does not
    apply to noise without a likelihood, nor to more than 24 people without noise; attacks whose extra is not installed
    are left out. Such outcomes say why.

    **Accuracy** as ``evaluate_attack``; ``tests/membership/test_attack_study.py``.

    Source: the head of fastpriv/studies/membership/studies.py.

    Examples
    --------
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, StudyOptions, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, StudyOptions(attacks=["bayes"]), rng=1)
    >>> print(f"{study['noise', 'bayes'].evaluation.auc.value:.1f}")
    1.0
    """
    options = StudyOptions() if options is None else options
    validate.instance("options", options, StudyOptions)
    validate.instance("references", references, Panel)
    if not isinstance(defences, Mapping) or not defences:
        raise DomainError(
            f"defences must be a mapping of at least one name to its noise; got {validate.shown(defences)}. Pass "
            '{"none": NoNoise()}.'
        )
    parallel.checked(n_jobs, progress)
    root = random_streams.root(rng)
    models = {str(name): FrequencyRelease(panel, prior, noise, clip=options.clip) for name, noise in defences.items()}
    settings = {
        "people": panel.n_people, "attributes": panel.n_attributes, "references": references.n_people,
        "prior": repr(prior), "defences": {name: repr(model.noise) for name, model in models.items()},
        **asdict(options), "rng": int(rng) if isinstance(rng, (int, np.integer)) else None,
    }
    level = options.confidence
    report, close = parallel.progress_reporter(progress, len(models) * len(options.attacks))
    outcomes: list[AttackOutcome] = []
    try:
        for index, (defence, model) in enumerate(models.items()):
            result = model.simulate(options.n_releases, rng=random_streams.stream(root, index, 0))
            errors = np.abs(result.released - model.frequencies(result.membership))
            loss = mean_over_simulations(errors.mean(axis=1), level)
            for name in options.attacks:
                stream = random_streams.stream(root, index, _STREAMS[name])
                scores, remark = attack_scores(
                    name, model, references, result.released, options.n_training, stream, n_jobs
                )
                outcomes.append(_outcome(defence, name, scores, result.membership, loss, remark, options))
                report(len(outcomes))
    finally:
        close()
    first = next(iter(models.values()))
    stream = random_streams.stream(root, len(models), 0)
    drawn = first.prior.draw(options.n_releases, panel.n_people, random_streams.generator(stream))
    constant = np.abs(first.frequencies(drawn) - panel.frequencies()).mean(axis=1)
    return AttackStudy(tuple(outcomes), mean_over_simulations(constant, level), settings)


def attack_scores(
    name: str, model: FrequencyRelease, references: Panel, released: FloatArray, training: int, stream: SeedSequence,
    n_jobs: int | None,
) -> _Scores:
    """Scores of releases and a remark; no scores where the attack does not apply."""
    if name == "bayes":
        return _bayes_scores(model, released, stream, n_jobs)
    if name in ("fixed", "adaptive", "score"):
        kinds: dict[str, Any] = {"fixed": FixedThresholdLRT, "adaptive": AdaptiveThresholdLRT, "score": DworkScore}
        return kinds[name](model.panel, references).scores(released, n_jobs=n_jobs), ""
    further = model.simulate(training, rng=stream)
    try:
        trained = ClassifierAttacker(name, rng=stream).fit(further.released, further.membership, n_jobs=n_jobs)
    except BackendMissingError as error:
        return None, f"not run: {error}"
    return trained.scores(released), f"trained on {training} releases"


def _bayes_scores(model: FrequencyRelease, released: FloatArray, stream: SeedSequence, n_jobs: int | None) -> _Scores:
    if not model.noise.has_likelihood(model.clip):
        return None, "not run: the noise has no likelihood"
    if model.n_people <= MAX_PEOPLE:
        return BayesAttacker(model, n_jobs=n_jobs).predict_proba(released), ""
    if isinstance(model.noise, NoNoise):
        return None, f"more than {MAX_PEOPLE} people without noise are not sampled"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by the remark
        result = BayesAttacker(model, sweeps=_SWEEPS, chains=2, rng=stream, n_jobs=n_jobs).posterior(released)
    mixed = int(np.sum(result.mixed))
    remark = f"sampled; chains mixed for {mixed} of {len(released)} releases"
    if mixed < len(released):
        remark += ", so that this is a lower bound on what the exact attack attains"
    return np.asarray(result.probabilities.value), remark


def _outcome(
    defence: str, name: str, scores: FloatArray | None, membership: BoolArray, loss: Estimate, remark: str,
    options: StudyOptions,
) -> AttackOutcome:
    if scores is None:
        return AttackOutcome(defence, _TITLES[name], None, None, loss, remark)
    result = evaluate_attack(
        scores, membership, fpr=options.fpr, gamma=options.gamma, confidence=options.confidence,
        posterior=name == "bayes",
    )
    remarks = "; ".join(text for text in (remark, *result.remarks) if text)
    curve = roc_curve(scores, membership, confidence=options.confidence)
    return AttackOutcome(defence, _TITLES[name], result, curve, loss, remarks)


def study_page(study: AttackStudy, files: Sequence[str] = (), *, drawn: bool = True) -> str:
    """The page as HTML text; ``files`` are names beside it that it links to."""
    settings = study.settings
    about = (
        f"{settings['people']} people may be members ({settings['prior']}); the frequencies of "
        f"{settings['attributes']} attributes of the members are released. {settings['references']} others are the "
        f"attackers' references. Each attack sees {settings['n_releases']:,} releases of each defence. Intervals hold "
        f"at level {settings['confidence']:g} each; releases are the independent units."
    )
    numbers = ("AUC", f"TPR at FPR {settings['fpr']:g}", "advantage", f"BWMA, gamma = {settings['gamma']:g}",
               "utility loss")
    headings: list[Any] = ["defence", "attack", *((name, "interval") for name in numbers)]
    rows = [(outcome.defence, outcome.attack, *map(shown, outcome.numbers())) for outcome in study.outcomes]
    table = TextTable(headings, rows, "Every attack on every defence", numeric=range(2, 7))
    sections: dict[str, list[Any]] = {
        "": [about, settings.get("data")], "Table": [table, _MEANINGS, remarks_panel("outcomes", study.remarks())],
    }
    sections |= {f"Defence: {defence}": _defence(study, defence, drawn) for defence in study.defences()}
    sections["Beside them: a constant"] = [
        f"Releasing the frequencies of all {settings['people']} people, whoever is in, has a utility loss of "
        f"{shown(study.constant_loss)} and says nothing: AUC 0.5 for every attack. A defence of more loss than that is "
        "worth nothing."
    ]
    names = ("n_releases", "n_training", "clip", "fpr", "gamma", "confidence", "rng")
    ran = {"command": "fastpriv membership", "settings": ", ".join(f"{name} = {settings[name]}" for name in names)}
    return page("Who is in? Attacks on released frequencies", sections, ran=ran, files=files)


def save_study(
    study: AttackStudy, directory: str | os.PathLike[str], *, figure: Literal["png", "svg", "pdf"] | None = "png"
) -> list[Path]:
    """Write ``membership.csv``, ``.json``, ``.parquet`` (with pyarrow), a picture and ``membership.html``.

    Each file appears whole or not at all; the paths are returned, the page last.
    """
    folder = writable_directory(validate.path("directory", directory))
    paths = study.write_files(folder, "membership")
    if figure is not None:
        paths.append(write_picture(folder / f"membership.{figure}", attack_figure(study), DPI))
    text = study_page(study, [path.name for path in paths], drawn=figure is not None)
    return [*paths, write_text(folder / "membership.html", text)]


def remarks_panel(heading: str, remarks: Mapping[str, list[str]]) -> Details | None:
    """The remarks of a page, with the names of what they are about under this heading; None without any."""
    pairs = [("; ".join(names), text) for text, names in remarks.items()]
    return Details("Remarks", [TextTable((heading, "remark"), pairs, "Remarks")]) if pairs else None


def _defence(study: AttackStudy, defence: str, drawn: bool) -> list[Any]:
    curves = roc_curves(study, defence)
    images = [(partial(roc_axes, curves, defence), f"ROC curves, {defence}")] if curves and drawn else []
    return [f"Noise: {study.settings['defences'][defence]}.", Pictures(images, _CAPTION) if images else None]


def names_by_remark(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The names, each paired with its remark, of each remark that is not empty."""
    result: dict[str, list[str]] = {}
    for name, remark in pairs:
        if remark:
            result.setdefault(remark, []).append(name)
    return result


def shown(estimate: Estimate | None) -> str:
    """A number with its interval, which is left out where it is narrower than the digits."""
    if estimate is None:
        return "-"
    if estimate.width < 5e-7:
        return f"{estimate.value:.4g}"
    return f"{estimate:.3f}"
