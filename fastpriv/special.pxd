# Functions of single numbers for Cython: ``from fastpriv.special cimport ndtr``. Bits and accuracy are those of the
# ufuncs, whose documentation says what the arguments are. Of a value with bounds they return the value, and those
# whose names end in _bounds write value, lower and upper bound to three doubles.
cdef double exp(double x) noexcept nogil
cdef double expm1(double x) noexcept nogil
cdef double log(double x) noexcept nogil
cdef double log1p(double x) noexcept nogil
cdef double erfc(double x) noexcept nogil
cdef double erfcx(double x) noexcept nogil
cdef double mills_ratio(double x) noexcept nogil
cdef double ndtr(double x) noexcept nogil
cdef double log_ndtr(double x) noexcept nogil
cdef double log1mexp(double x) noexcept nogil
cdef double logaddexp(double x, double y) noexcept nogil
cdef double ndtr_difference(double a, double b) noexcept nogil
cdef double log_ndtr_difference(double a, double b) noexcept nogil
cdef double gaussian_delta(double r, double epsilon) noexcept nogil
cdef double gaussian_log_delta(double r, double epsilon) noexcept nogil
cdef double gaussian_epsilon(double r, double delta) noexcept nogil
cdef double gaussian_epsilon_from_log_delta(double r, double log_delta) noexcept nogil
cdef double gaussian_epsilon_below(double r, double delta) noexcept nogil
cdef double gaussian_epsilon_below_from_log_delta(double r, double log_delta) noexcept nogil
cdef double gaussian_noise(double epsilon, double delta) noexcept nogil
cdef double gaussian_noise_from_log_delta(double epsilon, double log_delta) noexcept nogil
cdef double gaussian_noise_below(double epsilon, double delta) noexcept nogil
cdef double gaussian_noise_below_from_log_delta(double epsilon, double log_delta) noexcept nogil
cdef double sampled_gaussian_delta_remove(double sigma, double rate, double epsilon) noexcept nogil
cdef double sampled_gaussian_delta_add(double sigma, double rate, double epsilon) noexcept nogil
cdef double sampled_gaussian_log_delta_remove(double sigma, double rate, double epsilon) noexcept nogil
cdef double sampled_gaussian_log_delta_add(double sigma, double rate, double epsilon) noexcept nogil
cdef double sampled_gaussian_epsilon_remove(double sigma, double rate, double delta) noexcept nogil
cdef double sampled_gaussian_epsilon_add(double sigma, double rate, double delta) noexcept nogil
cdef double sampled_gaussian_noise_remove(double rate, double epsilon, double delta) noexcept nogil
cdef double sampled_gaussian_noise_add(double rate, double epsilon, double delta) noexcept nogil
cdef double awgn_capacity(double dimension, double radius, double rtol) noexcept nogil
cdef void sampled_gaussian_delta_remove_bounds(double sigma, double rate, double epsilon, double *found) noexcept nogil
cdef void sampled_gaussian_delta_add_bounds(double sigma, double rate, double epsilon, double *found) noexcept nogil
cdef void sampled_gaussian_log_delta_remove_bounds(double sigma, double rate, double epsilon, double *found) noexcept nogil
cdef void sampled_gaussian_log_delta_add_bounds(double sigma, double rate, double epsilon, double *found) noexcept nogil
cdef void sampled_gaussian_epsilon_remove_bounds(double sigma, double rate, double delta, double *found) noexcept nogil
cdef void sampled_gaussian_epsilon_add_bounds(double sigma, double rate, double delta, double *found) noexcept nogil
cdef void sampled_gaussian_noise_remove_bounds(double rate, double epsilon, double delta, double *found) noexcept nogil
cdef void sampled_gaussian_noise_add_bounds(double rate, double epsilon, double delta, double *found) noexcept nogil
cdef void awgn_capacity_bounds(double dimension, double radius, double rtol, double *found) noexcept nogil
cdef double binary_entropy(double p) noexcept nogil
cdef double binary_entropy_with_complement(double p, double complement) noexcept nogil
cdef double bac_capacity(double a, double b) noexcept nogil
cdef double bac_capacity_with_complements(double a, double complement_a, double b, double complement_b) noexcept nogil
cdef double sphere_log_mgf(double dimension, double x) noexcept nogil
cdef double sphere_log_mgf_scaled(double dimension, double x) noexcept nogil
cdef double sphere_mean(double dimension, double x) noexcept nogil
cdef double ci_lmip_ldp_delta(double mu, double epsilon) noexcept nogil
cdef double ci_lmip_ldp_high(double mu, double epsilon) noexcept nogil
cdef double ci_lmip_ldp_log_low(double mu, double epsilon) noexcept nogil
cdef double ci_lmip_ldp_saturation(double mu) noexcept nogil
cdef double pointwise_lip_delta(double mu, double epsilon) noexcept nogil
cdef double pointwise_lip_high(double mu, double epsilon) noexcept nogil
cdef double pointwise_lip_log_low(double mu, double epsilon) noexcept nogil
cdef double cd_lmip_lip_delta(double mu, double epsilon, double pi_min) noexcept nogil
cdef double cd_lmip_lip_high(double mu, double epsilon, double pi_min) noexcept nogil
cdef double cd_lmip_lip_log_low(double mu, double epsilon, double pi_min) noexcept nogil
cdef double cd_lmip_lip_saturation(double mu, double pi_min) noexcept nogil
