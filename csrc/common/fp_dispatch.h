/* The choice of the instruction set at run time, and the rules of the headers in csrc.
 *
 * Files.  `fp_x.h` holds scalar functions and types, without allocation; its functions are always inlined and know no
 * instruction set.  `fp_x_loops.h` holds loops around them, and `fp_x_solver.h` algorithms that iterate until an
 * accuracy is met or that manage memory; tests/kernels/test_solvers.py compiles each solver without Python.  Loops and
 * most solvers have no include guard: fp_variants.h includes them once per instruction set, and every function in them
 * is named FP_NAME(stem).  FP_SELECT(stem) is the variant for the machine at hand.
 *
 * Results must not depend on the instruction set: contraction is off, and sums keep a fixed number of lanes.
 * FASTPRIV_ISA=baseline|avx2|avx512 in the environment forces a variant; a variant that the machine lacks is never used.
 */
#ifndef FP_DISPATCH_H
#define FP_DISPATCH_H

#ifdef __CUDACC_RTC__ /* NVRTC compiles for a GPU alone: it knows the mathematical functions, and no system header */
#define FP_HAVE_VARIANTS 0
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000)
#endif
#ifndef NAN
#define NAN __longlong_as_double(0x7ff8000000000000)
#endif
#ifndef HUGE_VAL
#define HUGE_VAL INFINITY
#endif
#define __builtin_fabs fabs
#define __builtin_fma fma
#define __builtin_sqrt sqrt
typedef unsigned long long uint64_t;
typedef long long int64_t;
#else
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#endif

#define FP_INLINE static inline __attribute__((always_inline))
#define FP_ONCE static __attribute__((noinline)) /* long and called from many places: compiled once per instruction set */
#define FP_CAT2(a, b) a##_##b
#define FP_CAT(a, b) FP_CAT2(a, b)
#define FP_NAME(stem) FP_CAT(stem, FP_ISA)

#ifndef FP_HAVE_VARIANTS /* a test may define it as 0 to compile the baseline alone */
#if defined(__x86_64__) && defined(__GNUC__)
#define FP_HAVE_VARIANTS 1
#else
#define FP_HAVE_VARIANTS 0
#endif
#endif

#ifndef __CUDACC_RTC__
enum { FP_ISA_BASELINE = 0, FP_ISA_AVX2 = 1, FP_ISA_AVX512 = 2 };

static inline int fp_isa_machine(void)
{
#if FP_HAVE_VARIANTS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("fma"))
        return FP_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return FP_ISA_AVX2;
#endif
    return FP_ISA_BASELINE;
}

static inline int fp_isa(void)
{
    int have = fp_isa_machine(), want = have;
    const char *forced = getenv("FASTPRIV_ISA");
    if (forced) {
        if (!strcmp(forced, "baseline"))
            want = FP_ISA_BASELINE;
        else if (!strcmp(forced, "avx2"))
            want = FP_ISA_AVX2;
        else if (!strcmp(forced, "avx512"))
            want = FP_ISA_AVX512;
    }
    return want < have ? want : have;
}

/* The variant of a function that a machine with this instruction set runs, and the one for the machine at hand. */
#if FP_HAVE_VARIANTS
#define FP_VARIANT(isa, stem) \
    ((isa) == FP_ISA_AVX512 ? stem##_avx512 : (isa) == FP_ISA_AVX2 ? stem##_avx2 : stem##_baseline)
#else
#define FP_VARIANT(isa, stem) ((void)(isa), stem##_baseline)
#endif
#define FP_SELECT(stem) FP_VARIANT(fp_isa(), stem)

static inline const char *fp_isa_name(void)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    return names[fp_isa()];
}

#endif
#endif
