/* One vector of doubles, as wide as the instruction set: fp_v with FP_W lanes; no include guard, part of a room.
 *
 * Arithmetic is written with the operators of the vector extension; what they lack is here.  FP_FMA is one rounding
 * where the machine has it and two on the baseline: rooms built on it give the same bits for any cut and any number of
 * threads on one instruction set, and agree within their stated accuracy between instruction sets.
 *
 * FP_FMA(a, b, c)   a b + c
 * FP_MAX(a, b)      the larger; b where either is NaN
 * FP_MIN(a, b)      the smaller; b where either is NaN
 * FP_GE(a, b)     mask of a >= b, false where either is NaN; masks are joined by |
 * FP_ANY(m)        is any lane of a mask set?
 * FP_ALL(m)       are all of them?
 * FP_MASKED(m, a)     a where the mask is set, else 0
 * FP_WHERE(m, a, b) a where the mask is set, else b
 * fp_exp2           2^y for |y| <= 1000, 2 ulp; the value beyond is not meant to be used
 * fp_exp2_group      the same of up to four vectors
 * fp_log_group       log x for x > 0 of up to four vectors, to 2^-53 (1 + |log x|), no relative bound where |log x| < 1
 *
 * FP_GROUP vectors fit into the registers while one of these is worked.
 */
/* bounds: none - where an argument of the logarithm is subnormal */
#undef FP_W
#undef FP_REGISTER_ROWS
#undef FP_GROUP
#undef FP_FMA
#undef FP_MAX
#undef FP_MIN
#undef FP_GE
#undef FP_ANY
#undef FP_ALL
#undef FP_MASKED
#undef FP_WHERE
#undef fp_v
#undef fp_vi
#undef fp_vu
#undef fp_mask
#define FP_LEVEL_baseline 0
#define FP_LEVEL_avx2 1
#define FP_LEVEL_avx512 2
#define fp_v FP_NAME(fp_vector)
#define fp_vi FP_NAME(fp_vector_of_integers)
#define fp_vu FP_NAME(fp_vector_unaligned)

#if FP_CAT(FP_LEVEL, FP_ISA) == 2
#define FP_W 8
#define FP_REGISTER_ROWS 4 /* components or rows that fit into the registers together with FP_S vectors of samples */
#define FP_GROUP 2
#elif FP_CAT(FP_LEVEL, FP_ISA) == 1
#define FP_W 4
#define FP_REGISTER_ROWS 2
#define FP_GROUP 4
#else
#define FP_W 2
#define FP_REGISTER_ROWS 2
#define FP_GROUP 4
#endif

typedef double fp_v __attribute__((vector_size(8 * FP_W), may_alias));
typedef double fp_vu __attribute__((vector_size(8 * FP_W), may_alias, aligned(8)));
typedef uint64_t fp_vi __attribute__((vector_size(8 * FP_W), may_alias));

FP_INLINE fp_v FP_NAME(fp_broadcast)(double x)
{
    return x - (fp_v){0};
}

#if FP_CAT(FP_LEVEL, FP_ISA) == 2

#define fp_mask __mmask8
#define FP_FMA(a, b, c) ((fp_v)_mm512_fmadd_pd(a, b, c))
#define FP_MAX(a, b) ((fp_v)_mm512_max_pd(a, b))
#define FP_MIN(a, b) ((fp_v)_mm512_min_pd(a, b))
#define FP_GE(a, b) _mm512_cmp_pd_mask(a, b, _CMP_GE_OQ)
#define FP_ANY(m) ((m) != 0)
#define FP_ALL(m) ((m) == 0xff)
#define FP_MASKED(m, a) ((fp_v)_mm512_maskz_mov_pd(m, a))
#define FP_WHERE(m, a, b) ((fp_v)_mm512_mask_blend_pd(m, b, a))

/* y = k + f with 16 k an integer and |f| <= 1/32: 2^k comes from a table of sixteen and from the exponent */
FP_INLINE fp_v FP_NAME(fp_exp2)(fp_v y)
{
    const fp_v f = (fp_v)_mm512_reduce_pd(y, 0x40), k = y - f, shifted = k + 0x1.8p48;
    const fp_v power = (fp_v)_mm512_permutex2var_pd(_mm512_loadu_pd(fp_exp2_table), (__m512i)shifted,
                                                    _mm512_loadu_pd(fp_exp2_table + 8));
    fp_v p = FP_NAME(fp_broadcast)(fp_exp2_table_polynomial[5]);
#pragma GCC unroll 5
    for (int i = 4; i >= 0; i--)
        p = FP_FMA(p, f, FP_NAME(fp_broadcast)(fp_exp2_table_polynomial[i]));
    return (fp_v)_mm512_scalef_pd(FP_FMA(p * f, power, power), k);
}

/* x = 2^k m, 1 <= m < 2, r = m c - 1 exact to one rounding with c from a table of sixteen, -1/32 <= r <= 1/16 */
FP_INLINE fp_v FP_NAME(fp_log_by_table)(fp_v x)
{
    const fp_v m = (fp_v)_mm512_getmant_pd(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    const fp_v k = (fp_v)_mm512_getexp_pd(x);
    const __m512i part = _mm512_srli_epi64((__m512i)m, 48);
    const fp_v c = (fp_v)_mm512_permutex2var_pd(_mm512_loadu_pd(fp_log_reciprocals), part,
                                                _mm512_loadu_pd(fp_log_reciprocals + 8));
    const fp_v high = (fp_v)_mm512_permutex2var_pd(_mm512_loadu_pd(fp_log_table), part,
                                                   _mm512_loadu_pd(fp_log_table + 8));
    const fp_v r = FP_FMA(m, c, FP_NAME(fp_broadcast)(-1.0));
    fp_v p = FP_NAME(fp_broadcast)(fp_log_table_polynomial[7]);
#pragma GCC unroll 7
    for (int i = 6; i >= 0; i--)
        p = FP_FMA(p, r, FP_NAME(fp_broadcast)(fp_log_table_polynomial[i]));
    return FP_FMA(k, FP_NAME(fp_broadcast)(FP_LN2), high + FP_FMA(p, r * r, r));
}

#else

#define fp_mask fp_vi
#define FP_GE(a, b) ((fp_vi)((a) >= (b)))
#define FP_MASKED(m, a) ((fp_v)((fp_vi)(a) & (m)))
#if FP_CAT(FP_LEVEL, FP_ISA) == 1
#define FP_WHERE(m, a, b) ((fp_v)_mm256_blendv_pd(b, a, (__m256d)(m)))
#define FP_FMA(a, b, c) ((fp_v)_mm256_fmadd_pd(a, b, c))
#define FP_MAX(a, b) ((fp_v)_mm256_max_pd(a, b))
#define FP_MIN(a, b) ((fp_v)_mm256_min_pd(a, b))
#define FP_ANY(m) (_mm256_movemask_pd((__m256d)(m)) != 0)
#define FP_ALL(m) (_mm256_movemask_pd((__m256d)(m)) == 0xf)
#else
#define FP_WHERE(m, a, b) ((fp_v)(((fp_vi)(a) & (m)) | ((fp_vi)(b) & ~(m))))
#define FP_FMA(a, b, c) ((a) * (b) + (c))
#define FP_MAX(a, b) FP_NAME(fp_larger)(a, b)
#define FP_MIN(a, b) FP_WHERE((fp_vi)((a) < (b)), a, b)
#define FP_ANY(m) (((m)[0] | (m)[1]) != 0)
#define FP_ALL(m) (((m)[0] & (m)[1]) != 0)

FP_INLINE fp_v FP_NAME(fp_larger)(fp_v a, fp_v b)
{
    const fp_vi first = (fp_vi)(a > b);
    return (fp_v)(((fp_vi)a & first) | ((fp_vi)b & ~first));
}
#endif

FP_INLINE fp_v FP_NAME(fp_exp2)(fp_v y)
{
    const fp_v shifted = y + FP_SHIFT, f = y - (shifted - FP_SHIFT);
    fp_v p = FP_NAME(fp_broadcast)(fp_exp2_polynomial[11]);
#pragma GCC unroll 11
    for (int i = 10; i >= 0; i--)
        p = FP_FMA(p, f, FP_NAME(fp_broadcast)(fp_exp2_polynomial[i]));
    return (fp_v)((fp_vi)p + ((fp_vi)shifted << 52));
}

#endif

/* 2^y of several vectors.  Without a table they are worked side by side, one step of all after another: a chain of
 * eleven products alone waits for itself. */
FP_INLINE void FP_NAME(fp_exp2_group)(const int many, const fp_v *y, fp_v *power)
{
#if FP_CAT(FP_LEVEL, FP_ISA) == 2
    for (int s = 0; s < many; s++)
        power[s] = FP_NAME(fp_exp2)(y[s]);
#else
    fp_v shifted[4], f[4], p[4];
#pragma GCC unroll 4
    for (int s = 0; s < many; s++) {
        shifted[s] = y[s] + FP_SHIFT;
        f[s] = y[s] - (shifted[s] - FP_SHIFT);
        p[s] = FP_NAME(fp_broadcast)(fp_exp2_polynomial[11]);
    }
#pragma GCC unroll 11
    for (int i = 10; i >= 0; i--)
#pragma GCC unroll 4
        for (int s = 0; s < many; s++)
            p[s] = FP_FMA(p[s], f[s], FP_NAME(fp_broadcast)(fp_exp2_polynomial[i]));
#pragma GCC unroll 4
    for (int s = 0; s < many; s++)
        power[s] = (fp_v)((fp_vi)p[s] + ((fp_vi)shifted[s] << 52));
#endif
}

/* log x of several vectors.  Without a table x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f) and
 * log x = k log 2 + 2 s + s^3 T(s^2). */
FP_INLINE void FP_NAME(fp_log_group)(const int many, const fp_v *x, fp_v *log)
{
#if FP_CAT(FP_LEVEL, FP_ISA) == 2
    for (int s = 0; s < many; s++)
        log[s] = FP_NAME(fp_log_by_table)(x[s]);
#else
    fp_v k[4], part[4], z[4], t[4];
    fp_mask tiny = (fp_mask)(x[0] < 0x1p-1022);
    for (int s = 1; s < many; s++)
        tiny = tiny | (fp_mask)(x[s] < 0x1p-1022);
    const int lifted = FP_ANY(tiny);
#pragma GCC unroll 4
    for (int s = 0; s < many; s++) {
        fp_vi bits = (fp_vi)x[s];
        fp_v less = FP_NAME(fp_broadcast)(0x1p52 + 1024.0);
        if (__builtin_expect(lifted, 0)) {
            const fp_mask below = (fp_mask)(x[s] < 0x1p-1022);
            bits = (fp_vi)FP_WHERE(below, x[s] * 0x1p54, x[s]);
            less = less + FP_MASKED(below, FP_NAME(fp_broadcast)(54.0));
        }
        const fp_vi exponent = (bits + (0x4000000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
        const fp_v f = (fp_v)(bits - ((exponent - 1024) << 52)) - 1.0;
        k[s] = (fp_v)(exponent | 0x4330000000000000u) - less;
        part[s] = f / (2.0 + f);
    }
#pragma GCC unroll 4
    for (int s = 0; s < many; s++) {
        z[s] = part[s] * part[s];
        t[s] = FP_NAME(fp_broadcast)(fp_log_tail[6]);
    }
#pragma GCC unroll 6
    for (int i = 5; i >= 0; i--)
#pragma GCC unroll 4
        for (int s = 0; s < many; s++)
            t[s] = FP_FMA(t[s], z[s], FP_NAME(fp_broadcast)(fp_log_tail[i]));
#pragma GCC unroll 4
    for (int s = 0; s < many; s++)
        log[s] = FP_FMA(k[s], FP_NAME(fp_broadcast)(FP_LN2), FP_FMA(part[s] * z[s], t[s], part[s] + part[s]));
#endif
}
