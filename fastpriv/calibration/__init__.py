"""The noise that meets a privacy target: sigma from LDP, LIP and LMIP levels.

All answers are an ``Estimate`` of sigma, unit 1, whose ``upper`` is the safe sigma: the level there, with its own upper
bound, is at most the target.
"""

from __future__ import annotations

from .ldp import sigma_from_ldp, sigma_from_ldp_log_delta
from .lip import sigma_from_lip, sigma_from_lip_log_delta
from .lmip import sigma_from_cd_lmip, sigma_from_ci_lmip, sigma_from_pointwise_lmip

__all__ = [
    "sigma_from_cd_lmip", "sigma_from_ci_lmip", "sigma_from_ldp", "sigma_from_ldp_log_delta", "sigma_from_lip",
    "sigma_from_lip_log_delta", "sigma_from_pointwise_lmip",
]  # fmt: skip
