"""The evaluation of a defence: what attackers find who are trained after it is frozen, beside simple defences.

Notation: b who is a member, f their frequencies, r the release; U = mean_j kappa_j |r_j - f_j| its utility loss. The
constant release c_j = median of f_j loses U_const and tells nothing; Gaussian noise of the same utility loss as the
defence, after clipping, is the other one to compare with: with a = f_j and a = 1 - f_j, and Z standard normal,

    E|clip(f_j + sigma Z) - f_j| = sum over both a of E min(sigma Z^+, a)
                                 = sum of sigma (phi(0) - phi(a / sigma)) + a Phi(-a / sigma).
"""

# bounds: none - intervals are those of sampling.statistics and of evaluate_attack

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....base import parallel, random_streams, validate
from ....base.errors import DomainError
from ....base.estimate import Estimate, Result
from ....base.inverse import bisect
from ....base.numerics import FloatArray
from ....base.random_streams import RNGLike
from ....base.table import aligned
from ....sampling.statistics.confidence_sequences import BoundedMean
from ....sampling.statistics.intervals import replicate_interval
from ....special import log_ndtr
from ..attackers import AdaptiveThresholdLRT, DworkScore, FixedThresholdLRT
from ..evaluation import AttackEvaluation, evaluate_attack, open_probability
from ..member_posteriors import BayesAttacker
from ..noises import GaussianNoise, GeneratorNoise, NoNoise
from ..panels import Panel, member_frequencies
from ..posterior_enumeration import MAX_PEOPLE
from ..releases import FrequencyRelease
from ..trained_attackers import NetworkAttacker
from .equilibrium import MembershipEquilibrium, attribute_weights_over_count
from .finite_defence import FiniteDefence

__all__ = ["AttackResult", "DefenceEvaluation", "DefenceJudgement", "JudgedAttack", "evaluate_defence", "judge_defence"]

_REPLICATES = 32  # groups of releases, whose means have Student's interval where a loss has no bound
_CALIBRATION_DRAWS = 1000  # memberships whose frequencies calibrate the Gaussian noise
_HALVINGS = 60  # of the bisection for sigma


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttackResult(Result):
    """One row of a ``DefenceEvaluation``: an attacker of a defence.

    Parameters
    ----------
    defence : str
        "judged", "Gaussian noise" or "constant".
    attacker : str
        Name of the attacker.
    training : str
        "fresh": fitted to new releases of the frozen defence; "exact": the posterior; "prior": the best attacker of a
        constant.
    evaluation : AttackEvaluation
        AUC, TPR, advantage and gamma-BWMA with intervals, on releases that no training has seen.

    Examples
    --------
    >>> from fastpriv.membership import AdaptiveThresholdLRT, FixedSizeMembership, FrequencyRelease, Panel
    >>> from fastpriv.membership import evaluate_defence
    >>> attack = AdaptiveThresholdLRT(Panel([[1, 0], [1, 1], [0, 1]]), Panel([[0, 0], [1, 0], [0, 1]]))
    >>> release = FrequencyRelease(attack.panel, FixedSizeMembership(1))
    >>> found = evaluate_defence(release, attackers=[attack], releases=100, rng=1)
    >>> [(row.defence, row.attacker) for row in found.attacks]
    [('judged', 'adaptive-threshold LRT'), ('judged', 'Bayes'), ('constant', 'prior')]
    """

    defence: str
    attacker: str
    training: str
    evaluation: AttackEvaluation


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DefenceEvaluation(Result):
    """What ``evaluate_defence`` returns.

    Parameters
    ----------
    utility_loss : Estimate
        Mean over attributes of kappa_j E|r_j - f_j| of the defence.
    clipped_utility_loss : Estimate
        The same after clipping to [0, 1].
    constant_loss : Estimate
        Utility loss of the release of medians, which tells nothing.
    gaussian_loss : Estimate or None
        That of the Gaussian noise, after clipping: equal but for the accuracy of its calibration.
    gaussian_sigma : float or None
        Its standard deviation; None where the defence has no loss, or more than any Gaussian noise.
    attacks : tuple of AttackResult
        A row for each defence and attacker.
    remarks : tuple of str
        What was not attacked exactly, and why.

    Examples
    --------
    >>> from fastpriv.membership import AdaptiveThresholdLRT, FixedSizeMembership, FrequencyRelease, Panel
    >>> from fastpriv.membership import evaluate_defence
    >>> attack = AdaptiveThresholdLRT(Panel([[1, 0], [1, 1], [0, 1]]), Panel([[0, 0], [1, 0], [0, 1]]))
    >>> release = FrequencyRelease(attack.panel, FixedSizeMembership(1))
    >>> print(evaluate_defence(release, attackers=[attack], releases=200, rng=1).table())
    defence   utility loss  attacker                training      AUC                   ...
    """

    utility_loss: Estimate
    clipped_utility_loss: Estimate
    constant_loss: Estimate
    gaussian_loss: Estimate | None
    gaussian_sigma: float | None
    attacks: tuple[AttackResult, ...]
    remarks: tuple[str, ...] = ()

    def table(self) -> str:
        """A line for each attack: utility loss of the defence, AUC, TPR at the FPR, and advantage, with intervals."""
        fpr = self.attacks[0].evaluation.fpr if self.attacks else 0.0
        heads = ("defence", "utility loss", "attacker", "training", "AUC", f"TPR at FPR {fpr:g}", "advantage")
        losses = {
            "judged": self.clipped_utility_loss,
            "constant": self.constant_loss,
            "Gaussian noise": self.gaussian_loss,
        }
        rows: list[tuple[str, ...]] = [heads]
        for attack in self.attacks:
            result = attack.evaluation
            numbers = (f"{x:.3f}" for x in (result.auc, result.tpr_at_fpr, result.advantage))
            rows.append(
                (
                    attack.defence,
                    f"{losses[attack.defence]:.4f}".split(" ")[0],
                    attack.attacker,
                    attack.training,
                    *numbers,
                )
            )
        return "\n".join([*aligned(rows), *self.remarks])


def evaluate_defence(
    defence: FrequencyRelease | MembershipEquilibrium | FiniteDefence, *, references: Panel | None = None,
    attackers: Sequence[Any] | None = None, attribute_weights: ArrayLike | None = None, training: int = 4000,
    releases: int = 1000, fpr: float = 1e-2, gamma: float = 0.5, confidence: float = 0.95, rng: RNGLike = None,
    progress: parallel.Progress = None,
) -> DefenceEvaluation:  # fmt: skip
    """Attack a frozen defence by attackers that are trained anew, and by the exact posterior where it is known.

    Parameters
    ----------
    defence : FrequencyRelease, MembershipEquilibrium or FiniteDefence
        What is judged.
    references : Panel, optional
        People who are no members: adds both likelihood ratio tests and the score to the default attackers.
    attackers : sequence, optional
        Attackers, with ``name`` and ``scores``. Those that have ``fit`` are copied and fitted anew to releases of each
        defence; give them their own ``rng``. By default a ``NetworkAttacker``, which needs scikit-learn, and
        those of the references.
    attribute_weights : array_like, shape (m,), optional
        kappa_j of the utility loss; 1 for all by default.
    training : int, default 4000
        Releases that each attacker is fitted to.
    releases : int, default 1000
        Releases of the evaluation, drawn anew after all training.
    fpr, gamma, confidence : float
        As for ``evaluate_attack``; the level is that of each interval.
    rng : int, Generator or None
        Source of all releases.
    progress : bool or callable, optional
        Whether a bar counts the attacks, or a function of the number done and the total.

    Returns
    -------
    DefenceEvaluation

    Raises
    ------
    DomainError, ShapeError
        For a defence or attackers of other kinds, and numbers outside their range.
    BackendMissingError
        Without scikit-learn where the default attackers are asked for.

    Notes
    -----
    Attacks are compared on the same releases of one defence. Attackers that fail prove nothing: only the exact
    posterior bounds all attackers, and it is known to 24 people for noise with a likelihood, and for equilibria and
    finite defences. ``GeneratorNoise`` has no likelihood.

    **Accuracy** ``tests/membership/test_defence_evaluation.py`` compares the losses with closed forms, the constant
    with AUC 1/2 and the Bayes attacker with the others.

    Source: this package.

    Examples
    --------
    >>> from fastpriv.membership import AdaptiveThresholdLRT, FixedSizeMembership, FrequencyRelease, Panel
    >>> from fastpriv.membership import evaluate_defence
    >>> attack = AdaptiveThresholdLRT(Panel([[1, 0], [1, 1], [0, 1]]), Panel([[0, 0], [1, 0], [0, 1]]))
    >>> release = FrequencyRelease(attack.panel, FixedSizeMembership(1))
    >>> round(evaluate_defence(release, attackers=[attack], releases=100, rng=1).attacks[1].evaluation.auc.value, 3)
    1.0
    """
    if not isinstance(defence, (FiniteDefence, FrequencyRelease, MembershipEquilibrium)):
        raise DomainError(
            f"defence must be a FrequencyRelease, a MembershipEquilibrium or a FiniteDefence; got "
            f"{validate.shown(defence)}. Put a noise into a FrequencyRelease."
        )
    panel, prior = defence.panel, defence.prior
    weights = attribute_weights_over_count(attribute_weights, panel.n_attributes)
    number, most = (
        validate.count("training", training, 2, validate.MOST_ENTRIES),
        validate.count("releases", releases, _REPLICATES, validate.MOST_ENTRIES),
    )
    level = open_probability("confidence", confidence)
    root = random_streams.root(rng)
    chosen = _attackers(attackers, references, panel, root)
    judged = defence.simulate(most, rng=_stream(root, 0))
    frequencies = member_frequencies(panel, judged.membership)
    clipped = np.clip(judged.released, 0.0, 1.0)
    loss, clipped_loss = (_loss(r, frequencies, weights, level) for r in (judged.released, clipped))
    many = member_frequencies(panel, prior.draw(_CALIBRATION_DRAWS, panel.n_people, _stream(root, 1)))
    center = np.median(many, axis=0)
    constant_loss = _loss(np.broadcast_to(center, frequencies.shape), frequencies, weights, level)
    sigma = _equal_loss_sigma(float(clipped_loss.value), many, weights)
    remarks: list[str] = []
    defences: list[tuple[str, Any, Any]] = [("judged", defence, judged)]
    gaussian_loss = None
    if sigma is not None:
        gaussian = FrequencyRelease(panel, prior, GaussianNoise(sigma), clip=True)
        simulated = gaussian.simulate(most, rng=_stream(root, 2))
        gaussian_loss = _loss(simulated.released, member_frequencies(panel, simulated.membership), weights, level)
        defences.append(("Gaussian noise", gaussian, simulated))
    elif clipped_loss.value > 0:
        remarks.append("No Gaussian noise has as much utility loss after clipping.")
    report, close = parallel.progress_reporter(progress, len(defences) * (len(chosen) + 1) + 1)
    done = 0
    attacks: list[AttackResult] = []

    def add(name: str, attacker: str, kind: str, scores: FloatArray, membership: Any) -> None:
        nonlocal done
        evaluation = evaluate_attack(scores, membership, fpr=fpr, gamma=gamma, confidence=level)
        attacks.append(AttackResult(name, attacker, kind, evaluation))
        done += 1
        report(done)

    try:
        for index, (name, release, simulated) in enumerate(defences):
            seen = release.simulate(number, rng=_stream(root, 3 + index))
            for attacker in chosen:
                fresh = copy.deepcopy(attacker)
                if hasattr(fresh, "fit"):
                    fresh.fit(seen.released, seen.membership)
                add(name, fresh.name, "fresh", fresh.scores(simulated.released), simulated.membership)
            exact = _posterior_scores(release, simulated.released)
            if isinstance(exact, str):
                remarks.append(f"{name}: no exact posterior {exact}.")
            else:
                add(name, "Bayes", "exact", exact, simulated.membership)
        known = np.broadcast_to(prior.marginals(panel.n_people), judged.membership.shape)
        add("constant", "prior", "prior", known, judged.membership)
    finally:
        close()
    return DefenceEvaluation(loss, clipped_loss, constant_loss, gaussian_loss, sigma, tuple(attacks), tuple(remarks))


# Names of earlier versions.
JudgedAttack, DefenceJudgement, judge_defence = AttackResult, DefenceEvaluation, evaluate_defence


def _attackers(attackers: Any, references: Panel | None, panel: Panel, root: Any) -> tuple[Any, ...]:
    if attackers is None:
        result: tuple[Any, ...] = (NetworkAttacker(rng=int(random_streams.stream_words(root, (6,), 1)[0])),)
        if references is not None:
            kinds = (FixedThresholdLRT, AdaptiveThresholdLRT, DworkScore)
            result += tuple(kind(panel, references) for kind in kinds)
        return result
    if references is not None:
        raise DomainError(
            "references must be left out where attackers are given; got both. Build the attackers of the references."
        )
    result = validate.sequence("attackers", attackers, "attackers, each with a name and scores")
    for i, item in enumerate(result):
        if isinstance(item, type) or not (hasattr(item, "scores") and hasattr(item, "name")):
            raise DomainError(
                f"attackers must have a name and scores; got {validate.shown(item)} at index {i}. Build one of "
                "fastpriv.membership."
            )
    return result


def _stream(root: Any, key: int) -> Any:
    return np.random.default_rng(random_streams.stream_words(root, (key,), 4))


def _loss(released: FloatArray, frequencies: FloatArray, weights: FloatArray, level: float) -> Estimate:
    """Mean utility loss of releases: bets where it is bounded, else Student's interval of groups of releases."""
    losses = np.abs(released - frequencies) @ weights
    if ((released >= 0.0) & (released <= 1.0)).all():
        mean = BoundedMean(high=float(weights.sum()))
        mean.update(losses)
        value, lower, upper = mean.interval(level)
        method = "mean over releases, bets"
    else:
        groups = losses[: losses.size // _REPLICATES * _REPLICATES].reshape(_REPLICATES, -1)
        value, lower, upper = replicate_interval(groups.mean(axis=1), level, low=0.0)
        method = f"mean over releases, Student's interval of {_REPLICATES} groups"
    value = float(losses.mean())
    return Estimate(
        value, min(float(lower), value), max(float(upper), value), kind="statistical", unit="1", method=method,
        confidence=level,
    )  # fmt: skip


def _gaussian_loss(sigma: float, frequencies: FloatArray, weights: FloatArray) -> float:
    """Mean loss of clipped Gaussian noise over the rows of frequencies."""
    total = np.zeros_like(frequencies)
    for a in (frequencies, 1.0 - frequencies):
        z = a / sigma
        total += sigma * (1.0 - np.exp(-0.5 * z * z)) / math.sqrt(2.0 * math.pi) + a * np.exp(log_ndtr(-z))
    return float((total @ weights).mean())


def _equal_loss_sigma(loss: float, frequencies: FloatArray, weights: FloatArray) -> float | None:
    """The standard deviation of the Gaussian noise with this loss; None where there is none."""
    if loss <= 0.0 or loss >= 0.5 * weights.sum():  # half of each frequency and half of the rest, at infinite sigma
        return None
    low, high = 1e-12, 1.0
    while _gaussian_loss(high, frequencies, weights) < loss:
        low, high = high, 4.0 * high
        if high > 2.0**60:
            return None
    _, high = bisect(
        lambda sigma: _gaussian_loss(sigma, frequencies, weights) >= loss, low, high, _HALVINGS,
        middle=lambda low, high: math.sqrt(low * high),
    )  # fmt: skip
    return high


def _posterior_scores(release: Any, released: FloatArray) -> FloatArray | str:
    """Scores of the exact posterior, or why they are not known."""
    if isinstance(release, (FiniteDefence, MembershipEquilibrium)):
        return release.scores(released)
    if isinstance(release.noise, GeneratorNoise):
        return "of noise without a likelihood"
    if release.n_people > MAX_PEOPLE:
        return f"of {release.n_people} people; at most {MAX_PEOPLE} can be enumerated"
    if isinstance(release.noise, NoNoise) and release.clip:
        release = FrequencyRelease(release.panel, release.prior, release.noise)  # nothing is clipped without noise
    return BayesAttacker(release).scores(released)
