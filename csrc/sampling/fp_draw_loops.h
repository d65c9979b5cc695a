/* Random and Sobol normals and placed samples; no include guard, included once per instruction set.
 *
 * Eight lanes are FP_VECTORS vectors of FP_WIDTH, whatever the instruction set, so that no sum depends on
 * it. */
#if defined(__AVX512F__)
#define FP_WIDTH 8
#elif defined(__AVX2__) && defined(__FMA__)
#define FP_WIDTH 4
#else
#define FP_WIDTH 2
#endif
#define FP_VECTORS (FP_LANES / FP_WIDTH)
#define FP_TILE_PARTS (FP_WIDTH == 8 ? 3 : FP_VECTORS)
#define FP_WORDS FP_NAME(fp_words)
#define FP_DOUBLES FP_NAME(fp_doubles)
typedef uint64_t FP_WORDS __attribute__((vector_size(8 * FP_WIDTH), may_alias));
typedef double FP_DOUBLES __attribute__((vector_size(8 * FP_WIDTH), may_alias));

/* a b + c; is any lane below the limit; the first halves and the second halves of two vectors, lane by lane */
#if FP_WIDTH == 8
#define FP_FMA(a, b, c) ((FP_DOUBLES)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define FP_ANY_BELOW(x, limit) _mm512_cmp_pd_mask((__m512d)(x), _mm512_set1_pd(limit), _CMP_LT_OQ)
#define FP_FIRST_HALVES(a, b) __builtin_shuffle(a, b, (FP_WORDS){0, 8, 1, 9, 2, 10, 3, 11})
#define FP_SECOND_HALVES(a, b) __builtin_shuffle(a, b, (FP_WORDS){4, 12, 5, 13, 6, 14, 7, 15})
#elif FP_WIDTH == 4
#define FP_FMA(a, b, c) ((FP_DOUBLES)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define FP_ANY_BELOW(x, limit) _mm256_movemask_pd(_mm256_cmp_pd((__m256d)(x), _mm256_set1_pd(limit), _CMP_LT_OQ))
#define FP_FIRST_HALVES(a, b) __builtin_shuffle(a, b, (FP_WORDS){0, 4, 1, 5})
#define FP_SECOND_HALVES(a, b) __builtin_shuffle(a, b, (FP_WORDS){2, 6, 3, 7})
#else
#define FP_FMA(a, b, c)                                                                                               \
    ((FP_DOUBLES){__builtin_fma((a)[0], (b)[0], (c)[0]), __builtin_fma((a)[1], (b)[1], (c)[1])})
#define FP_ANY_BELOW(x, limit) ((x)[0] < (limit) || (x)[1] < (limit))
#define FP_FIRST_HALVES(a, b) ((FP_DOUBLES){(a)[0], (b)[0]})
#define FP_SECOND_HALVES(a, b) ((FP_DOUBLES){(a)[1], (b)[1]})
#endif

#include "sampling/fp_normal_loops.h"
#include "sampling/fp_affine_map_loops.h"

#undef FP_SECOND_HALVES
#undef FP_FIRST_HALVES
#undef FP_ANY_BELOW
#undef FP_FMA
#undef FP_DOUBLES
#undef FP_WORDS
#undef FP_TILE_PARTS
#undef FP_VECTORS
#undef FP_WIDTH
