/* Tables of the functions in fp_vector_loops.h; the polynomials interpolate at Chebyshev points;
 * fp_exp2_polynomial is minimax. */
/* bounds: proved by proofs/tables - the polynomials with their rounded coefficients, and the tables of 2^(j/16) and of
 * -log c to 1.1e-16 of themselves; what the vector functions make of them is tested by kernels/test_density and
 * kernels/test_sample_terms */
#ifndef FP_VECTOR_TABLES_H
#define FP_VECTOR_TABLES_H

#include "special/fp_elementary.h"
#if FP_HAVE_VARIANTS
#include <immintrin.h>
#endif


/* 2^f, |f| <= 1/2, to 3.5e-17; 3.1e-18 before its coefficients are rounded */
static const double fp_exp2_polynomial[12] = {
    1.0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5adp-3, 0x1.c6b08d7049fd1p-5, 0x1.3b2ab6fb9f413p-7,
    0x1.5d87fe78cf260p-10, 0x1.43091310bf66dp-13, 0x1.ffcbfba7bc9a1p-17, 0x1.62bfc3c1d2153p-20,
    0x1.b5267882d5309p-24, 0x1.e620fb67ac6ddp-28, 0x1.e7aa1c12faa3cp-32,
};

#if FP_HAVE_VARIANTS
/* (2^f - 1) / f, |f| <= 1/32: 2^f to 1.5e-17 */
static const double fp_exp2_table_polynomial[6] = {
    0x1.62e42fefa39f3p-1, 0x1.ebfbdff82c590p-3, 0x1.c6b08d6f2a289p-5,
    0x1.3b2ab6fb41213p-7, 0x1.5d897e525c216p-10, 0x1.430a1d08ec681p-13,
};

/* 2^(j/16) */
static const double fp_exp2_table[16] = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0,
};

/* c: 1 / (1 + (j + 1/2)/16) to eight bits, 1 and 1/2 at the ends; and -log c */
static const double fp_log_reciprocals[16] = {
    1.0, 0.9140625, 0.86328125, 0.8203125, 0.78125, 0.74609375, 0.7109375, 0.6796875,
    0.65234375, 0.62890625, 0.60546875, 0.58203125, 0.5625, 0.54296875, 0.5234375, 0.5,
};
static const double fp_log_table[16] = {
    0x0.0p+0, 0x1.700d30aeac0e1p-4, 0x1.2d1610c86813ap-3, 0x1.95a5adcf7017fp-3,
    0x1.f991c6cb3b379p-3, 0x1.2bef07cdc9354p-2, 0x1.5d5bddf595f30p-2, 0x1.8b639a88b2df5p-2,
    0x1.b56fa04462909p-2, 0x1.dae75484c9616p-2, 0x1.00e5ae5b207abp-1, 0x1.151c3f6f29612p-1,
    0x1.269621134db92p-1, 0x1.38ae2171976e7p-1, 0x1.4b6fd6f970c1fp-1, 0x1.62e42fefa39efp-1,
};

/* (log(1 + r) - r) / r^2, -1/32 <= r <= 1/16: log(1 + r) to 6.1e-17 */
static const double fp_log_table_polynomial[8] = {
    -0x1.0000000000086p-1, 0x1.555555555aba2p-2, -0x1.fffffff7d2e56p-3, 0x1.999998706a488p-3,
    -0x1.55559b1aca906p-3, 0x1.249bdb6e53331p-3, -0x1.ff2be106050c7p-4, 0x1.9874e754240b9p-4,
};
#endif

/* (u e^u - e^u + 1) / u^2, |u| <= 1, to 4.8e-16 of itself */
static const double fp_information_series[14] = {
    0x1.0000000000001p-1, 0x1.5555555555555p-2, 0x1.ffffffffffd8ep-4, 0x1.11111111110c3p-5, 0x1.c71c71c743907p-8,
    0x1.381381381d4f2p-10, 0x1.6c16c14ec2a8cp-13, 0x1.71de3a46b8e06p-16, 0x1.4ce1afd5c6a86p-19,
    0x1.0cfec08e3afd1p-22, 0x1.8a774f49edf32p-26, 0x1.08d398db576a4p-29, 0x1.4d7aaa3c21963p-33,
    0x1.7e43673a76794p-37,
};

#endif
