"""The words of this room, each defined once: parameters, assumptions, papers and privacy notions.

The command line, the docstrings of the conversions, their table and the diagram are made of them. The module does not
import NumPy, so that ``fastpriv convert --help`` is quick.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

# Papers that several conversions cite
ZHANG_CHEN = "Zhang and Chen, Bridging privacy and robustness for trustworthy machine learning"
NGO = "Ngo, Oestman and Graell i Amat, On local mutual-information privacy (2024)"  # cited for LMIP, and LIP from it
# Cited for (epsilon, delta)-DP and what it bounds.
KAIROUZ = "Kairouz, Oh and Viswanath, The composition theorem for differential privacy (2017), the dominating mechanism"
BUN_STEINKE = "Bun and Steinke, Concentrated differential privacy (2016)"  # cited for zCDP
MIRONOV = "Mironov, Renyi differential privacy (2017)"  # cited for randomised response and Gaussian noise
STEINKE = "Steinke, Sharp RDP and zCDP from pure DP (2024)"  # cited for pure privacy as RDP and zCDP
CANONNE = "Canonne, Kamath and Steinke, The discrete Gaussian (2020), proposition 12"  # cited for RDP as DP
DONG_ROTH_SU = "Dong, Roth and Su, Gaussian differential privacy (2022)"  # cited for GDP and trade-off functions
BALLE_WANG = "Balle and Wang, Improving the Gaussian mechanism (2018), theorem 8"  # cited for Gaussian noise
# Cited for the membership advantage.
HUMPHRIES = "Humphries et al., Investigating membership inference attacks under data dependencies (2023)"
PROVED = "proved in the notes of the module"  # the declaration puts the path of the module in


@dataclass(frozen=True, slots=True)
class Parameter:
    """The range of a number, in words and as a check of an array, and what the number means."""

    constraint: str
    valid: Callable[[Any], Any]
    text: str


def _nonnegative(text: str) -> Parameter:
    return Parameter("at least 0", lambda x: x >= 0, text)


def _probability(text: str) -> Parameter:
    return Parameter("between 0 and 1", lambda x: (x >= 0) & (x <= 1), text)


def _count(text: str) -> Parameter:
    return Parameter("a whole number of at least 1", lambda x: (x >= 1) & (x == x.round()) & (x < math.inf), text)


# Every parameter of a conversion: its range, and what the documentation says of it.
PARAMETERS: dict[str, Parameter] = {
    "epsilon": _nonnegative("Epsilon in nats; inf where nothing is promised."),
    "target_epsilon": _nonnegative("Epsilon, in nats, at which delta is wanted."),
    "delta": _probability("Delta, a probability."),
    "xi": _nonnegative("Largest |ln(posterior / prior)| over secrets and releases, in nats."),
    "xi_plus": _nonnegative("Largest ln(posterior / prior), in nats."),
    "xi_minus": _nonnegative("Largest -ln(posterior / prior), in nats."),
    "pi_min": Parameter(
        "between 0 and 1/2", lambda x: (x >= 0) & (x <= 0.5),
        "Smallest positive prior probability of a secret, of two or more; 0 stands for every prior. Up to 1/3 a "
        "smaller number is safe too.",
    ),
    "prior_spread": _nonnegative("Largest |ln(pi(d) / pi(d'))| over pairs of secrets; 0 for a uniform prior."),
    "belief_gap": _nonnegative("Largest |ln(attacker's prior / true prior)| over secrets; 0 where they agree."),
    "inputs": Parameter(
        "a whole number of at least 2, or inf", lambda x: (x >= 2) & (x == x.round()),
        "Number of secrets; inf for any number.",
    ),
    "beta": _probability("Probability that the release misses its target by more than alpha for one secret."),
    "relative_error": _probability("Largest relative error of an estimated frequency."),
    "frequency": Parameter("above 0 and at most 1", lambda x: (x > 0) & (x <= 1), "The frequency that is estimated."),
    "trials": _count(
        "Number of models that were trained independently; or of attacks, for the frequency given one model."
    ),
    "c1": Parameter(
        "between 0 and sqrt(ln 2)", lambda x: (x >= 0) & (x <= math.sqrt(math.log(2.0)) + 2e-16),
        "C1, the root of the Jensen-Shannon divergence of belief without protection and prior.",
    ),
    "c2": _nonnegative("C2 = (e^(2 xi) - 1) / 2."),
    "total_variation": _probability("Total variation distance of the two distributions."),
    "kl": _nonnegative("Kullback-Leibler divergence in ``unit``."),
    "mu": _nonnegative("Mutual information in ``unit``."),
    "leakage": _nonnegative("Maximal leakage in ``unit``."),
    "renyi": _nonnegative("Renyi divergence at ``order``, in nats."),
    "order": Parameter("at least 1", lambda x: x >= 1, "Order of the Renyi divergence; 1 is Kullback-Leibler."),
    "orders": Parameter("at least 1", lambda x: x >= 1, "Orders, one-dimensional: the last axis of ``renyi``."),
    "rho": _nonnegative("rho of zero-concentrated privacy: Renyi divergence is at most rho times the order."),
    "separation": _nonnegative(
        "Distance of two unit normal distributions that are as hard to tell apart (the mu of mu-GDP)."
    ),
    "type_one": _probability("Probability of a false alarm."),
    "group": _count("Number of records that change at once."),
}


# options of conversions, most of them of whole curves: type and meaning
OPTIONS: dict[str, tuple[str, str]] = {
    "unit": ('{"nats", "bits"}', "Unit of every amount of information, in and out."),
    "decay": (
        "float or Estimate, optional",
        "A statement of the caller: delta(e) <= delta(E) exp(-decay (e - E)) for all e > E, where E is the last "
        "sample, or any epsilon for a function. Without it the tail of samples that do not reach 0 is unknown.",
    ),
    "rtol": ("float", "Relative width aimed at, for functions. The value is sharper: 1e-12 for smooth curves."),
    "max_evaluations": (
        "int, optional",
        "Most epsilons to ask a function for, 200,000 by default. Where they do not reach ``rtol`` the bracket is "
        "wider, and still a bracket.",
    ),
}


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a conversion needs beyond its source.

    Parameters
    ----------
    text : str
        A statement about channel, prior or mechanism; the conversion holds where it is true.
    chained : bool
        Whether a chain of conversions may rest on it. It then is an assumption of the whole chain. A conversion whose
        assumption is special to one family of mechanisms is used alone.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> [assumption.text for assumption in conversions.convert("ci_lmip", "dp", epsilon=1.0, delta=0.1).assumptions]
    ['the channel has two inputs']
    """

    text: str
    chained: bool = False


# Assumptions of several conversions. True: chains may use a conversion that assumes this.
FULL_SUPPORT = Assumption(
    "the prior gives every secret a positive probability; otherwise it holds among those secrets only", True
)
EVERY_PAIR = Assumption("the source holds for every two secrets, not for neighbours only", True)  # chains may assume it
TRUE_BELIEF = Assumption("the attacker's prior is the true one", True)  # chains may assume it


@dataclass(frozen=True, slots=True)
class Notion:
    """A privacy notion.

    Parameters
    ----------
    name : str
        As in the names of the conversions.
    title : str
        As in pictures and tables.
    parameter : str
        The parameter under which the next conversion of a chain takes it.
    definition : str
        Its definition, in short.
    secrets : {"every", "pairs", "support", "records"}
        The secrets that it is about. ``every``: all secrets, whatever the prior. ``pairs``: every two secrets, or every
        two neighbours. ``support``: the secrets to which one prior gives a positive probability. ``records``: one
        record, given the others.

    Examples
    --------
    >>> from fastpriv.conversions import NOTIONS
    >>> NOTIONS["zcdp"].title, NOTIONS["zcdp"].parameter
    ('zCDP', 'rho')
    """

    name: str
    title: str
    parameter: str
    definition: str
    secrets: Literal["every", "pairs", "support", "records"] = "every"


_PAIR = "every two rows of the channel, or every two neighbours: "  # begins the definition of a notion of pairs

# Every notion that is converted, by its short name.
NOTIONS: dict[str, Notion] = {
    notion.name: notion
    for notion in (
        Notion("ldp", "LDP", "epsilon", _PAIR + "log ratio of the distributions at most epsilon (pure privacy)",
               "pairs"),
        Notion("dp", "(ε, δ)-DP", "delta", _PAIR + "hockey-stick divergence at e^epsilon at most delta", "pairs"),
        Notion("dp_curve", "δ(ε) curve", "curve", "delta for every epsilon, or for many", "pairs"),
        Notion("tradeoff", "f-DP", "type_two", _PAIR + "least probability of a miss for one of a false alarm", "pairs"),
        Notion("rdp", "Rényi DP", "renyi", _PAIR + "Renyi divergence of an order at most renyi", "pairs"),
        Notion("zcdp", "zCDP", "rho", _PAIR + "Renyi divergence of each order a above 1 at most rho a", "pairs"),
        Notion("gdp", "Gaussian DP", "separation", _PAIR + "no easier to tell apart than N(0, 1), N(separation, 1)",
               "pairs"),
        Notion("kl", "KL", "kl", _PAIR + "Kullback-Leibler divergence at most kl", "pairs"),
        Notion("total_variation", "total variation", "total_variation", _PAIR + "total variation at most this",
               "pairs"),
        Notion("membership_advantage", "membership advantage", "advantage",
               "true minus false positive rate of any test for one record that is independent of the others",
               "records"),
        Notion("group_dp", "(ε, δ)-DP of groups", "delta", "(group epsilon, delta) when group records change",
               "records"),
        Notion("mbp", "MBP", "xi", "|ln(posterior / prior)| at most xi for every release and every secret that the "
               "prior allows; a smaller xi is more private", "support"),
        Notion("abp", "ABP", "abp", "root of the Jensen-Shannon divergence of beliefs after and before, any "
               "distribution of the release", "support"),
        Notion("abp_given_secret", "ABP, given secret", "abp", "ABP for a release drawn from the row of one secret",
               "support"),
        Notion("lip", "LIP", "epsilon", "log ratio of each row to the distribution of the release at most epsilon",
               "support"),
        Notion("approximate_lip", "(ε, δ)-LIP", "delta", "the same up to delta", "support"),
        Notion("lip_curve", "LIP curve", "curve", "delta of LIP for every epsilon, or for many", "support"),
        Notion("ci_lmip", "CI-LMIP", "mu", "mutual information at most mu under every prior: the capacity"),
        Notion("cd_lmip", "CD-LMIP", "mu", "mutual information at most mu under one prior", "support"),
        Notion("pointwise_lmip", "pointwise LMIP", "mu", "D(row || distribution of the release) at most mu at every "
               "secret", "support"),
        Notion("maximal_leakage", "maximal leakage", "leakage", "ln of the sum over releases of the largest cell"),
        Notion("robustness", "robust accuracy", "gamma", "chance to miss by more than alpha for each other secret"),
        Notion("trials", "independent trials", "trials", "number of models, or of attacks on one, that a frequency is "
               "estimated from"),
        Notion("frequency_failure", "frequency out of range", "failure",
               "chance that an estimated frequency errs by more than relative_error of it"),
        Notion("frequency_error", "frequency error", "relative_error", "relative error of estimated frequencies"),
        Notion("c1_error", "error of C1", "c1_error", "largest |estimate - C1|"),
        Notion("leakage_error", "error of 2 C1 − C2 TV", "leakage_error", "largest error of that expression"),
        Notion("c1", "C1, C2, TV", "c1", "belief without protection, MBP and total variation of the protection"),
        Notion("c2", "C2", "c2", "(e^(2 xi) - 1) / 2"),
    )
}
