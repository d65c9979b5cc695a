from typing import Any

import numpy as np

__pyx_capi__: dict[str, Any]

exp: np.ufunc
expm1: np.ufunc
log: np.ufunc
log1p: np.ufunc
erfc: np.ufunc
erfcx: np.ufunc
mills_ratio: np.ufunc
ndtr: np.ufunc
log_ndtr: np.ufunc
log1mexp: np.ufunc
logaddexp: np.ufunc
ndtr_difference: np.ufunc
log_ndtr_difference: np.ufunc
log_sum_exp: np.ufunc
gaussian_delta: np.ufunc
gaussian_log_delta: np.ufunc
gaussian_epsilon: np.ufunc
gaussian_epsilon_from_log_delta: np.ufunc
gaussian_epsilon_below: np.ufunc
gaussian_epsilon_below_from_log_delta: np.ufunc
gaussian_noise: np.ufunc
gaussian_noise_from_log_delta: np.ufunc
gaussian_noise_below: np.ufunc
gaussian_noise_below_from_log_delta: np.ufunc
subsampled_gaussian_delta_remove: np.ufunc
subsampled_gaussian_delta_add: np.ufunc
subsampled_gaussian_log_delta_remove: np.ufunc
subsampled_gaussian_log_delta_add: np.ufunc
binary_entropy: np.ufunc
binary_entropy_with_complement: np.ufunc
bac_capacity: np.ufunc
bac_capacity_with_complements: np.ufunc
channel_bayes_vulnerability: np.ufunc
channel_capacity: np.ufunc
channel_ldp_epsilon: np.ufunc
channel_maximal_leakage: np.ufunc
channel_mutual_information: np.ufunc
sphere_log_mgf: np.ufunc
sphere_log_mgf_scaled: np.ufunc
sphere_mean: np.ufunc
ci_lmip_ldp_delta: np.ufunc
ci_lmip_ldp_high: np.ufunc
ci_lmip_ldp_log_low: np.ufunc
ci_lmip_ldp_saturation: np.ufunc
pointwise_lip_delta: np.ufunc
pointwise_lip_high: np.ufunc
pointwise_lip_log_low: np.ufunc
cd_lmip_lip_delta: np.ufunc
cd_lmip_lip_high: np.ufunc
cd_lmip_lip_log_low: np.ufunc
cd_lmip_lip_saturation: np.ufunc
mixture_kl: np.ufunc
mixture_jensen_shannon: np.ufunc
mixture_renyi: np.ufunc
mixture_entropy: np.ufunc
mixture_mutual_information: np.ufunc
mixture_hockey_stick: np.ufunc
mixture_log_hockey_stick: np.ufunc
mixture_total_variation: np.ufunc
