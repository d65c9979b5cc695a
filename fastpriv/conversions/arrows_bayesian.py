"""The conversions of the Bayesian notions and of local mutual-information privacy: rows of ``registry.ARROWS``."""

from __future__ import annotations

from .arrow import Arrow

__all__ = ["BAYESIAN"]

_ZC = "Zhang and Chen, Bridging privacy and robustness for trustworthy machine learning"
_NOG = "Ngo, Oestman and Graell i Amat, On local mutual-information privacy"
_KOV = "Kairouz, Oh and Viswanath, The composition theorem for differential privacy (2017)"
_CY = "Cuff and Yu, Differential privacy as a mutual information constraint (2016), theorem 1"
_LIP = "Jiang, Seif, Tandon and Li, Context-aware local information privacy (2021)"
_HERE = "proved in the notes of the module"
_MBP, _ABP, _ROBUST = "bayesian.mbp", "bayesian.abp", "bayesian.robustness"
_ESTIMATOR, _GUESS, _MI = "bayesian.estimator", "bayesian.leakage", "bayesian.information"
_CI, _CD, _CURVES = "ci_lmip_and_ldp", "cd_lmip_and_lip", "information_from_curves"
_UNIFORM = "prior uniform, or within prior_spread of it"

BAYESIAN = (
    Arrow("ldp", "mbp", "mbp_from_ldp", "tight", _HERE, _MBP, valid="pi_min in [0, 1/2]",
          note="needs nothing of the prior; pi_min = 0 gives epsilon, for every prior"),
    Arrow("ldp", "mbp", "mbp_from_ldp_as_published", "published", f"{_ZC}, theorem IV.4, lemmas A.1, A.5", _MBP,
          assumption=_UNIFORM, note="true without the assumption and without prior_spread; loose"),
    Arrow("ldp", "mbp_plus", "mbp_plus_from_ldp", "tight", _HERE, _MBP, valid="pi_min in [0, 1/2]"),
    Arrow("mbp", "ldp", "ldp_from_mbp", "tight", _HERE, _MBP, valid="pi_min in [0, 1/2]"),
    Arrow("mbp", "ldp", "ldp_from_mbp_sides", "tight", _HERE, _MBP, valid="pi_min in [0, 1/2]",
          note="takes xi_plus and xi_minus apart"),
    Arrow("mbp", "ldp", "ldp_from_mbp_as_published", "published", f"{_ZC}, theorem IV.4, lemmas A.2, A.6", _MBP,
          assumption=_UNIFORM, note="true; prior_spread is unnecessary"),
    Arrow("ldp", "lip", "lip_from_ldp", "tight", _HERE, _MBP, valid="pi_min in [0, 1/2]"),
    Arrow("ldp", "lip", "lip_from_ldp_as_published", "published", _LIP, _MBP, note="the least for all priors together"),
    Arrow("lip", "ldp", "ldp_from_lip", "tight", _HERE, _MBP, valid="pi_min in [0, 1/2]"),
    Arrow("lip", "ldp", "ldp_from_lip_as_published", "published", _LIP, _MBP, note="the least for all priors together"),
    Arrow("mbp", "lip", "lip_from_mbp", "tight", "the definitions agree", _MBP),
    Arrow("lip", "mbp", "mbp_from_lip", "tight", "the definitions agree", _MBP),
    Arrow("mbp", "abp", "abp_from_mbp", "tight", _HERE, _ABP,
          note="whatever the law of the release; attained at belief_gap = 0"),
    Arrow("mbp", "abp", "abp_from_mbp_as_published", "published", f"{_ZC}, theorem IV.6, A.8", _ABP,
          valid="xi + belief_gap below 0.9194, beyond that vacuous", note="true; twice the least near 0"),
    Arrow("mbp", "abp_given_secret", "abp_given_secret_from_mbp", "bound", _HERE, _ABP,
          note="of order xi^2; the attacker's prior is the true one"),
    Arrow("ldp", "abp", "abp_from_ldp", "tight", _HERE, _ABP,
          note="half of what the way over MBP gives near 0; attained at belief_gap = 0"),
    Arrow("mbp", "robustness", "robustness_from_mbp", "tight", _HERE, _ROBUST, valid="pi_min in [0, 1/2]",
          note="for each other secret separately; alpha is the same; tight at pi_min = 0"),
    Arrow("mbp", "robustness", "robustness_from_mbp_as_published", "published", f"{_ZC}, theorem IV.7, A.9", _ROBUST,
          holds=False, valid="xi in [0, 1]", note="false for xi above 0.62822: 0.00739 against 0.005 at xi = 1"),
    Arrow("ldp", "robustness", "robustness_from_ldp", "tight", _HERE, _ROBUST),
    Arrow("count_error", "c1_error", "c1_error_from_count_error", "tight", _HERE, _ESTIMATOR,
          valid="relative_error in [0, 1]", note="also for estimates that do not sum to 1"),
    Arrow("count_error", "c1_error", "c1_error_from_count_error_as_published", "published",
          f"{_ZC}, theorem A.11, equation (34)", _ESTIMATOR, valid="relative_error below 0.287, beyond that vacuous",
          note="true; of the order of the root of relative_error"),
    Arrow("count_error", "leakage_error", "leakage_error_from_count_error", "bound", _HERE, _ESTIMATOR,
          assumption="C2 and TV known", valid="relative_error in [0, 1]",
          note="of the expression 2 C1 - C2 TV, which is not the leakage"),
    Arrow("count_error", "leakage_error", "leakage_error_from_count_error_as_published", "published",
          f"{_ZC}, theorem A.12, equation (35)", _ESTIMATOR, holds=False, assumption="C2 and TV known",
          valid="relative_error in [0, 1]", note="the factor should be 2; bounds the error of a bound, not of the leakage"),
    Arrow("mbp", "c2", "c2_from_mbp", "tight", f"{_ZC}, equation (33)", _ESTIMATOR, note="a definition"),
    Arrow("c1", "abp", "leakage_from_c1", "bound", _HERE, _ESTIMATOR, note="an interval, lower and upper"),
    Arrow("c1", "abp", "leakage_from_c1_as_published", "published", f"{_ZC}, section F of the appendix", _ESTIMATOR,
          holds=False, note="2 C1 - C2 TV is no upper bound: C1 = 0 makes it negative"),
    Arrow("ldp", "maximal_leakage", "maximal_leakage_from_ldp", "tight",
          "Alvim et al., Differential privacy: on the trade-off between utility and information leakage (2011); "
          + _HERE, _GUESS, valid="2 or more inputs"),
    Arrow("ldp", "min_entropy_leakage", "min_entropy_leakage_from_ldp", "bound", _HERE, _GUESS,
          valid="pi_max in (0, 1]", note="attained for uniform priors"),
    Arrow("ldp", "vulnerability", "vulnerability_from_ldp", "bound", _HERE, _GUESS, valid="pi_max in (0, 1]",
          note="attained for uniform priors"),
    Arrow("ldp", "ci_lmip", "ci_lmip_from_pure_ldp", "tight", _HERE, _MI,
          note="tight for 2 and for unlimited inputs, a bound between"),
    Arrow("ldp", "mi_dp", "mi_dp_from_ldp", "tight", _HERE, _MI),
    Arrow("ldp", "mi_dp", "mi_dp_from_ldp_as_published", "published", _CY, _MI, note="true; eight times the least near 0"),
    Arrow("mi_dp", "dp", "dp_delta_from_mi_dp", "tight", f"{_NOG}, theorem 1(a), equation (10), record by record", _MI,
          result="delta"),
    Arrow("mi_dp", "dp", "dp_delta_from_mi_dp_as_published", "published", f"{_CY}; Pinsker's inequality", _MI,
          valid="at epsilon = 0", result="delta"),
    Arrow("dp", "ci_lmip", "ci_lmip_from_dp", "tight", f"{_KOV}, theorem 3.3; {_HERE}", _MI,
          assumption="the channel has two inputs"),
    Arrow("kl", "ci_lmip", "ci_lmip_from_kl", "bound", "convexity of the divergence", _MI,
          note="kl between any two rows"),
    Arrow("maximal_leakage", "ci_lmip", "ci_lmip_from_maximal_leakage", "tight",
          "Issa, Wagner and Kamath, An operational approach to information leakage (2020)", _MI),
    Arrow("ci_lmip", "cd_lmip", "cd_lmip_from_ci_lmip", "tight", "the definitions", _MI),
    Arrow("pointwise_lmip", "cd_lmip", "cd_lmip_from_pointwise_lmip", "tight", "the definitions", _MI),
    Arrow("mbp", "cd_lmip", "cd_lmip_from_mbp", "tight", _HERE, _MI),
    Arrow("mbp", "pointwise_lmip", "pointwise_lmip_from_mbp", "tight", _HERE, _MI),
    Arrow("ldp", "pointwise_lmip", "pointwise_lmip_from_ldp", "tight", _HERE, _MI, note="approached by rare values"),
    Arrow("ci_lmip", "dp", "ldp_delta_from_ci_lmip", "tight", f"{_NOG}, theorem 1(a), equation (10)", _CI,
          result="delta"),
    Arrow("ci_lmip", "dp", "epsilon_from_ci_lmip", "tight", f"{_NOG}, theorem 1(a), equation (10), inverted", _CI,
          result="epsilon", note="inf below the saturation level of delta"),
    Arrow("dp_curve", "ci_lmip", "ci_lmip_from_ldp", "published", f"{_NOG}, theorem 1(b), equation (12)", _CURVES,
          note="true, infinite where delta does not vanish; form='two-input' is sharp for two inputs"),
    Arrow("dp_curve", "kl", "kl_from_hockey_stick", "tight", f"{_NOG}, lemma 1, equation (20)", _CURVES,
          note="for probability measures; both directions of the curve"),
    Arrow("cd_lmip", "approximate_lip", "lip_delta_from_cd_lmip", "tight",
          f"{_NOG}, theorem 2(a), corrected: {_HERE}", _CD, valid="atom in [0, 1]", result="delta",
          note="laws without atoms get no guarantee"),
    Arrow("cd_lmip", "approximate_lip", "lip_delta_for_prior", "tight", f"{_NOG}, theorem 2(a), corrected: {_HERE}", _CD,
          result="delta", note="from Python: takes the prior"),
    Arrow("cd_lmip", "approximate_lip", "lip_delta_from_cd_lmip_as_published", "published",
          f"{_NOG}, theorem 2(a), equation (13)", _CD, holds=False, result="delta",
          note="false: mutual information is a mean over x; 0.2918 against 0.1525 in figure 3"),
    Arrow("pointwise_lmip", "approximate_lip", "lip_delta_from_pointwise_lmip", "tight",
          f"{_NOG}, equation (13) under the condition that its proof needs", _CD, result="delta"),
    Arrow("lip_curve", "cd_lmip", "cd_lmip_from_lip", "published", f"{_NOG}, theorem 2(b), equation (14)", _CURVES,
          note="true, very loose"),
    Arrow("lip_curve", "cd_lmip", "cd_lmip_from_hockey_sticks", "bound",
          f"{_NOG}, theorem 2(b) with both curves kept apart", _CURVES, note="from Python: takes prior and mechanism"),
)  # fmt: skip
