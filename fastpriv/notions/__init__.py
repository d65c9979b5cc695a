"""Privacy notions of a discrete secret behind a mechanism: LDP, LIP, LMIP, MBP, ABP.

``local`` holds LDP and LIP, ``information`` the mutual-information notions, ``bayesian`` MBP and ABP: what people call.
``gaussian`` computes them for a secret on the line behind Gaussian noise. ``pac`` says how accurate a release is,
``accuracy`` holds how, and claims of privacy and accuracy at once.
"""

from .accuracy.claims import Verdict, abp_claim, mbp_claim
from .bayesian import AverageBayesianPrivacy, abp, mbp_xi
from .information import cd_lmip, pointwise_lmip
from .local import ldp_delta, lip_curves, lip_delta, log_lip_delta
from .pac import RobustAccuracy, pac_accuracy, robust_accuracy

__all__ = [
    "AverageBayesianPrivacy", "RobustAccuracy", "Verdict", "abp", "abp_claim", "cd_lmip", "ldp_delta", "lip_curves",
    "lip_delta", "log_lip_delta", "mbp_claim", "mbp_xi", "pac_accuracy", "pointwise_lmip", "robust_accuracy",
]  # fmt: skip
