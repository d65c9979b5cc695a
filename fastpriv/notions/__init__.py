"""Privacy notions of a secret behind a mechanism: LDP, LIP, LMIP, MBP, ABP, and leakage of guesses.

``local`` holds LDP and LIP, ``information`` the mutual-information notions, ``bayesian`` MBP and ABP, ``guessing`` what
a best guess gains, ``overview`` all of them from one walk through a channel: what people call. ``gaussian`` computes
them for a secret on the line behind Gaussian noise, ``discrete`` for a channel. ``pac`` says how accurate a release is,
``accuracy`` holds how, and claims of privacy and accuracy at once.
"""

from .accuracy.claims import Verdict, abp_claim, mbp_claim
from .bayesian import AverageBayesianPrivacy, MaximumBayesianPrivacy, abp, mbp, mbp_xi
from .guessing import bayes_vulnerability, map_estimates, maximal_leakage, min_entropy_leakage, renyi_leakage
from .information import cd_lmip, ci_lmip, pointwise_lmip
from .local import ldp_delta, ldp_epsilon, lip_curves, lip_delta, lip_epsilon, log_lip_delta
from .overview import ChannelSummary, summary
from .pac import RobustAccuracy, pac_accuracy, robust_accuracy

__all__ = [
    "AverageBayesianPrivacy", "ChannelSummary", "MaximumBayesianPrivacy", "RobustAccuracy", "Verdict", "abp",
    "abp_claim", "bayes_vulnerability", "cd_lmip", "ci_lmip", "ldp_delta", "ldp_epsilon", "lip_curves", "lip_delta",
    "lip_epsilon", "log_lip_delta", "map_estimates", "maximal_leakage", "mbp", "mbp_claim", "mbp_xi",
    "min_entropy_leakage", "pac_accuracy", "pointwise_lmip", "renyi_leakage", "robust_accuracy", "summary",
]  # fmt: skip
