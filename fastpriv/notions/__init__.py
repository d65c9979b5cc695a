"""Privacy notions of a discrete secret behind a mechanism: LDP, LIP, LMIP, MBP, ABP.

``local`` holds LDP and LIP, ``information`` the mutual-information notions, ``bayesian`` MBP and ABP: what people call.
``gaussian`` computes them for a secret on the line behind Gaussian noise.
"""

from .bayesian import AverageBayesianPrivacy, abp, mbp_xi
from .information import cd_lmip, pointwise_lmip
from .local import ldp_delta, lip_curves, lip_delta, log_lip_delta

__all__ = [
    "AverageBayesianPrivacy", "abp", "cd_lmip", "ldp_delta", "lip_curves", "lip_delta", "log_lip_delta", "mbp_xi",
    "pointwise_lmip",
]  # fmt: skip
