/* Includes a room's loops once per instruction set; no include guard.  Usage:
 *
 *     #define FP_LOOPS "special/fp_special_loops.h"
 *     #include "common/fp_variants.h"
 *
 * FMA is switched on for the sake of __builtin_fma alone: contraction is off, so no variant differs in a
 * bit. */
#include "common/fp_dispatch.h"

#define FP_ISA baseline
#include FP_LOOPS
#undef FP_ISA
#if FP_HAVE_VARIANTS
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define FP_ISA avx2
#include FP_LOOPS
#undef FP_ISA
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#define FP_ISA avx512
#include FP_LOOPS
#undef FP_ISA
#pragma GCC pop_options
#endif
#undef FP_LOOPS
