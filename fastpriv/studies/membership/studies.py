"""Attacks against defences: each attack on releases of each defence, evaluated with intervals, in one table.

All defences are judged on releases of their own, drawn from the prior; attacks that train are trained for each defence,
on further releases of it. An attacker therefore knows the defence it faces.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike

from ... import __version__
from ...base import parallel, random_streams, validate
from ...base.errors import BackendMissingError, DomainError
from ...base.estimate import Estimate, Result
from ...base.numerics import BoolArray, FloatArray
from ...base.parallel import Progress
from ...base.random_streams import RNGLike
from ...base.store import ResultStore
from ...base.table import CellType, Table
from .attackers import AdaptiveThresholdLRT, DworkScore, FixedThresholdLRT
from .evaluation import AttackEvaluation, RocCurve, evaluate_attack, roc_curve
from .evaluation_by_release import mean_over_simulations
from .member_posteriors import BayesAttacker
from .noises import GeneratorNoise, Noise, NoNoise
from .panels import Panel
from .posterior_enumeration import MAX_PEOPLE
from .priors import MembershipPrior
from .releases import FrequencyRelease
from .trained_attackers import ClassifierAttacker, NetworkAttacker

__all__ = ["AttackOutcome", "AttackStudy", "PosteriorExample", "attack_scores", "attack_study"]

# What ``attacks`` may name, and what tables and legends call each.
_TITLES = {
    "bayes": "Bayes", "fixed": "fixed LRT", "adaptive": "adaptive LRT", "score": "score", "tree": "decision trees",
    "svm": "SVM", "logistic": "logistic regression", "network": "network",
}  # fmt: skip
# The random stream of each attack on a defence; 0 is that of the releases, 2 belonged to an attack of earlier versions.
_STREAMS = {"bayes": 1, "fixed": 3, "adaptive": 4, "score": 5, "tree": 6, "svm": 7, "logistic": 8, "network": 9}
_EXAMPLE_STREAM = 10  # the random stream of the posterior of the first release
_SWEEPS = 1000  # of each chain where the posterior is sampled: a study needs an order of people, not digits


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
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, attacks=["bayes"], n_releases=200, rng=1)
    >>> study["noise", "bayes"].attack
    'Bayes'
    """

    defence: str
    attack: str
    evaluation: AttackEvaluation | None
    roc: RocCurve | None
    utility_loss: Estimate
    remark: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PosteriorExample(Result):
    """Who is thought a member after one release of a defence.

    Parameters
    ----------
    defence : str
        Its name.
    membership : ndarray of bool, shape (K,)
        Who was in.
    probabilities : Estimate, shape (K,)
        Posterior probabilities of membership.
    people : tuple of str
        Names.
    prior : ndarray, shape (K,)
        Probabilities before the release.

    Examples
    --------
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, attacks=["bayes"], n_releases=200, rng=1)
    >>> study.examples[0].people
    ('0', '1')
    """

    defence: str
    membership: BoolArray
    probabilities: Estimate
    people: tuple[str, ...]
    prior: FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackStudy(Table, Result):
    """All attacks on all defences.

    Parameters
    ----------
    outcomes : tuple of AttackOutcome
        Defence by defence.
    examples : tuple of PosteriorExample
        One release of each defence whose posterior is known.
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
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, attacks=["bayes", "score"], n_releases=200, rng=1)
    >>> study.columns()[:3], len(study.rows())
    (('defence', 'attack', 'auc'), 2)
    """

    outcomes: tuple[AttackOutcome, ...]
    examples: tuple[PosteriorExample, ...]
    constant_loss: Estimate
    settings: Mapping[str, Any]

    def __getitem__(self, names: tuple[str, str]) -> AttackOutcome:
        for one in self.outcomes:
            if names in ((one.defence, one.attack), (one.defence, _key_of(one.attack))):
                return one
        raise DomainError(
            f"names must be a defence and an attack of the study; got {validate.shown(names)}. Defences: "
            f"{', '.join(self.defences())}; attacks: {', '.join(self.attacks())}."
        )

    def defences(self) -> tuple[str, ...]:
        """Names of the defences, in order."""
        return tuple(dict.fromkeys(one.defence for one in self.outcomes))

    def attacks(self) -> tuple[str, ...]:
        """Names of the attacks, in order."""
        return tuple(dict.fromkeys(one.attack for one in self.outcomes))

    def column_types(self) -> dict[str, CellType]:
        """The columns by name; numbers have columns ``_lower`` and ``_upper`` beside."""
        numbers = ("auc", "tpr_at_fpr", "advantage", "bwma", "utility_loss")
        names = ("defence", "attack", *(name + end for name in numbers for end in ("", "_lower", "_upper")), "remark")
        return dict.fromkeys(names, "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row an attack on a defence; None where an attack does not apply."""
        table = []
        for one in self.outcomes:
            e = one.evaluation
            numbers: tuple[Any, ...] = (None,) * 4 if e is None else (e.auc, e.tpr_at_fpr, e.advantage, e.bwma)
            cells = [cell for number in (*numbers, one.utility_loss)
                     for cell in ((None,) * 3 if number is None else number.floats())]  # fmt: skip
            table.append((one.defence, one.attack, *cells, one.remark))
        return table

    def metadata(self) -> dict[str, Any]:
        """Settings, and the utility loss of a constant."""
        return {"settings": dict(self.settings), "constant_loss": self.constant_loss.to_dict()}

    def __repr__(self) -> str:
        return f"<AttackStudy of {len(self.attacks())} attacks on {len(self.defences())} defences>"


def attack_study(
    panel: Panel, references: Panel, prior: MembershipPrior, defences: Mapping[str, Noise], *,
    attacks: Sequence[str] = ("bayes", "fixed", "adaptive", "score"), n_releases: int = 400, n_training: int = 1000,
    clip: bool = False, fpr: float = 1e-3, gamma: ArrayLike = 0.5, confidence: float = 0.95, rng: RNGLike = None,
    store: str | os.PathLike[str] | None = None, n_jobs: int | None = None, progress: Progress = None,
) -> AttackStudy:  # fmt: skip
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
    attacks : sequence of str
        Of "bayes", "fixed", "adaptive", "score", "tree", "svm", "logistic" and "network".
    n_releases, n_training : int
        Releases that are attacked, at least 2, and releases on which "tree", "svm", "logistic" and "network" are
        trained, of each defence.
    clip : bool
        Whether releases are clipped to [0, 1].
    fpr, gamma, confidence
        As ``evaluate_attack``; one gamma.
    rng : int, Generator or None
        Source of random numbers.
    store : path-like, optional
        A file that keeps the scores of each attack on each defence: the same call goes on where it was stopped. It
        needs an integer ``rng``.
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
        For unknown attacks, none of them or of the defences, a store without an integer seed, and what attackers and
        releases raise.

    Notes
    -----
    "bayes" enumerates for up to 24 people; beyond it samples, and a remark says where chains did not mix. It does not
    apply to noise without a likelihood, nor to more than 24 people without noise; attacks whose extra is not installed
    are left out. Such outcomes say why.

    **Accuracy** as ``evaluate_attack``; ``tests/membership/test_attack_study.py``.

    Source: the head of fastpriv/studies/membership/studies.py.

    Examples
    --------
    >>> from fastpriv.membership import GaussianNoise, FixedSizeMembership, Panel, attack_study
    >>> panel, others = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> prior, noise = FixedSizeMembership(1), {"noise": GaussianNoise(0.3)}
    >>> study = attack_study(panel, others, prior, noise, attacks=["bayes"], n_releases=400, rng=1)
    >>> print(f"{study['noise', 'bayes'].evaluation.auc.value:.1f}")
    1.0
    """
    names = _checked_names(attacks)
    validate.instance("references", references, Panel)
    if not isinstance(defences, Mapping) or not defences:
        raise DomainError(
            f"defences must be a mapping of at least one name to its noise; got {validate.shown(defences)}. Pass "
            '{"none": NoNoise()}.'
        )
    count = validate.count("n_releases", n_releases, 2, validate.MOST_ENTRIES)
    training = validate.count("n_training", n_training, 2, validate.MOST_ENTRIES)
    level = validate.scalar("confidence", confidence, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))
    weight = validate.scalar("gamma", gamma, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))
    rate = validate.scalar("fpr", fpr, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))
    parallel.checked(n_jobs, progress)
    if store is not None and not isinstance(rng, (int, np.integer)):
        raise DomainError(f"rng must be an integer with a store; got {validate.shown(rng)}. Pass rng=0, say.")
    root = random_streams.root(rng)
    models = {str(name): FrequencyRelease(panel, prior, noise, clip=clip) for name, noise in defences.items()}
    settings = {
        "people": panel.n_people, "attributes": panel.n_attributes, "references": references.n_people,
        "prior": repr(prior), "defences": {name: repr(model.noise) for name, model in models.items()},
        "attacks": list(names), "n_releases": count, "n_training": training, "clip": bool(clip), "fpr": rate,
        "gamma": weight, "confidence": level, "rng": int(rng) if isinstance(rng, (int, np.integer)) else None,
    }  # fmt: skip
    report, close = parallel.progress_reporter(progress, len(models) * len(names))
    outcomes, examples, done = [], [], 0
    try:
        with nullcontext() if store is None else _opened(store, settings, panel, references) as kept:
            for index, (defence, model) in enumerate(models.items()):
                found = model.simulate(count, rng=_stream(root, index, 0))
                loss = mean_over_simulations(
                    np.abs(found.released - model.frequencies(found.membership)).mean(axis=1), level, "1"
                )
                for name in names:
                    key = index * len(_TITLES) + list(_TITLES).index(name)
                    stream = _stream(root, index, _STREAMS[name])
                    scores, title, remark = _kept_scores(
                        kept, key, name, model, references, found.released, training, stream, n_jobs
                    )
                    outcomes.append(_outcome(
                        defence, title, scores, found.membership, loss, remark, rate, weight, level
                    ))  # fmt: skip
                    done += 1
                    report(done)
                example = _example(defence, model, found, _stream(root, index, _EXAMPLE_STREAM), n_jobs)
                if "bayes" in names and example is not None:
                    examples.append(example)
    finally:
        close()
    first = next(iter(models.values()))
    drawn = first.prior.draw(count, panel.n_people, random_streams.generator(_stream(root, len(models), 0)))
    constant = np.abs(first.frequencies(drawn) - panel.frequencies()).mean(axis=1)
    return AttackStudy(tuple(outcomes), tuple(examples), mean_over_simulations(constant, level, "1"), settings)


def _checked_names(attacks: Any) -> tuple[str, ...]:
    names = validate.sequence("attacks", attacks, "names of attacks")
    for name in names:
        if not isinstance(name, str) or name not in _TITLES:
            raise DomainError(
                f"attacks must be among {', '.join(_TITLES)}; got {validate.shown(name)}. Choose among these."
            )
    if not names:
        raise DomainError(f"attacks must name at least one attack; got none. Choose among {', '.join(_TITLES)}.")
    return tuple(dict.fromkeys(names))


def _stream(root: SeedSequence, *key: int) -> SeedSequence:
    return SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)


def _opened(store: Any, settings: Mapping[str, Any], panel: Panel, references: Panel) -> ResultStore:
    digest = hashlib.blake2b(digest_size=16)
    for one in (panel, references):
        digest.update(one.packed.tobytes())
    text = json.dumps({**settings, "data": digest.hexdigest()}, sort_keys=True)
    return ResultStore.open(store, identity={"version": __version__, "study": text})


def _kept_scores(
    kept: ResultStore | None, key: int, name: str, model: FrequencyRelease, references: Panel, released: FloatArray,
    training: int, stream: SeedSequence, n_jobs: int | None,
) -> tuple[FloatArray | None, str, str]:  # fmt: skip
    """Scores of an attack, from the store where it has them."""
    payload = None if kept is None else kept.get(key)
    if kept is not None and payload is not None:
        return kept.unpacked(payload, _unpacked_scores)
    scores, title, remark = attack_scores(name, model, references, released, training, stream, n_jobs)
    if kept is not None:
        line = json.dumps([title, remark, None if scores is None else scores.shape]).encode()
        kept.put_many([(key, line + b"\n" + (b"" if scores is None else np.ascontiguousarray(scores).tobytes()))])
    return scores, title, remark


def _unpacked_scores(payload: bytes) -> tuple[FloatArray | None, str, str]:
    line, _, data = payload.partition(b"\n")
    title, remark, shape = json.loads(line)
    scores = None if shape is None else np.frombuffer(data, dtype=np.float64).reshape(shape)
    return scores, title, remark


def attack_scores(
    name: str, model: FrequencyRelease, references: Panel, released: FloatArray, training: int, stream: SeedSequence,
    n_jobs: int | None,
) -> tuple[FloatArray | None, str, str]:  # fmt: skip
    """Scores of releases, the name of the attack, and a remark; no scores where it does not apply."""
    if name == "bayes":
        return _bayes_scores(model, released, stream, n_jobs)
    if name in ("fixed", "adaptive", "score"):
        kinds: dict[str, Any] = {"fixed": FixedThresholdLRT, "adaptive": AdaptiveThresholdLRT, "score": DworkScore}
        return kinds[name](model.panel, references).scores(released, n_jobs=n_jobs), _TITLES[name], ""
    further = model.simulate(training, rng=stream)
    try:
        if name == "network":
            trained: Any = NetworkAttacker(rng=stream).fit(further.released, further.membership)
        else:
            trained = ClassifierAttacker(name, rng=stream).fit(further.released, further.membership, n_jobs=n_jobs)
    except BackendMissingError as error:
        return None, _TITLES[name], f"not run: {error}"
    return trained.scores(released), _TITLES[name], f"trained on {training} releases"


def _bayes_scores(
    model: FrequencyRelease, released: FloatArray, stream: SeedSequence, n_jobs: int | None
) -> tuple[FloatArray | None, str, str]:  # fmt: skip
    if isinstance(model.noise, GeneratorNoise):
        return None, _TITLES["bayes"], "not run: the noise has no likelihood"
    if model.n_people <= MAX_PEOPLE:
        return BayesAttacker(model, n_jobs=n_jobs).predict_proba(released), _TITLES["bayes"], ""
    if isinstance(model.noise, NoNoise):
        return None, _TITLES["bayes"], f"more than {MAX_PEOPLE} people without noise are not sampled"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by the remark
        found = BayesAttacker(model, sweeps=_SWEEPS, chains=2, rng=stream, n_jobs=n_jobs).posterior(released)
    mixed = int(np.sum(found.mixed))
    remark = f"sampled; chains mixed for {mixed} of {len(released)} releases"
    if mixed < len(released):
        remark += ", so that this is a lower bound on what the exact attack attains"
    return np.asarray(found.probabilities.value), _TITLES["bayes"], remark


def _key_of(title: str) -> str:
    return next((key for key, name in _TITLES.items() if name == title), title)


def _outcome(
    defence: str, attack: str, scores: FloatArray | None, membership: BoolArray, loss: Estimate, remark: str,
    fpr: float, gamma: float, level: float,
) -> AttackOutcome:  # fmt: skip
    if scores is None:
        return AttackOutcome(defence, attack, None, None, loss, remark)
    posterior = attack == _TITLES["bayes"]
    found = evaluate_attack(
        scores, membership, fpr=fpr, gamma=gamma, confidence=level, posterior=posterior
    )  # fmt: skip
    remarks = "; ".join(text for text in (remark, *found.remarks) if text)
    return AttackOutcome(defence, attack, found, roc_curve(scores, membership, confidence=level), loss, remarks)


def _example(
    defence: str, model: FrequencyRelease, found: Any, stream: SeedSequence, n_jobs: int | None
) -> PosteriorExample | None:
    """The posterior of the first release, where it is known."""
    sampled = model.n_people > MAX_PEOPLE
    if isinstance(model.noise, GeneratorNoise) or (sampled and isinstance(model.noise, NoNoise)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by the remark of the attack
        posterior = BayesAttacker(model, sweeps=4 * _SWEEPS, rng=stream, n_jobs=n_jobs).posterior(found.released[0])
    people = tuple(model.panel.person(k) for k in range(model.n_people))
    chance = np.asarray(model.prior.marginals(model.n_people))
    return PosteriorExample(defence, found.membership[0], posterior.probabilities, people, chance)
