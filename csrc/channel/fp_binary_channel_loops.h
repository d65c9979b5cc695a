/* The loops of the binary channel; no include guard: common/fp_variants.h includes this once per instruction set. */
FP_INLINE double FP_NAME(fp_binary_entropy_of)(double p) { return fp_binary_entropy(p, 1.0 - p); }
FP_INLINE double FP_NAME(fp_bac_capacity_of)(double a, double b) { return fp_bac_capacity(a, 1.0 - a, b, 1.0 - b); }

FP_BINARY_CHANNEL_FUNCTIONS(FP_LOOP)
