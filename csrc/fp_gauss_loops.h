/* The loops of the Gaussian mechanism; no include guard: fp_variants.h includes this once per instruction set. */
FP_LOOP_2(gaussian_delta, fp_gaussian_delta)
FP_LOOP_2(gaussian_log_delta, fp_gaussian_log_delta)
