/* All pairs of rows of two groups; the mathematics is in fp_channel_pairs.h. No include guard. */

typedef struct {
    float *up, *down;  /* cells in singles, rounded up and down: (group, column, lane) */
    float *top, *low;  /* envelopes of each group of 16 rows: (group, column) */
} FP_NAME(fp_pair_side);

FP_INLINE float FP_NAME(fp_larger_single)(float a, float b)
{
    return a > b ? a : b;
}

FP_INLINE float FP_NAME(fp_smaller_single)(float a, float b)
{
    return a < b ? a : b;
}

/* Rows in groups of 16 lanes. Lanes without a row never exceed a screen. */
static void FP_NAME(fp_pair_pack)(ptrdiff_t n, ptrdiff_t m, const double *rows, FP_NAME(fp_pair_side) *side)
{
    for (ptrdiff_t d = 0; d < n; d += FP_PAIR_LANES) {
        const ptrdiff_t group = d / FP_PAIR_LANES, have = n - d < FP_PAIR_LANES ? n - d : FP_PAIR_LANES;
        for (ptrdiff_t w = 0; w < m; w++) {
            float *up = side->up + (group * m + w) * FP_PAIR_LANES, *down = side->down + (group * m + w) * FP_PAIR_LANES;
            float top = 0.0f, low = FLT_MAX;
            for (ptrdiff_t l = 0; l < FP_PAIR_LANES; l++) {
                up[l] = l < have ? fp_single_above(rows[(d + l) * m + w]) : 0.0f;
                down[l] = l < have ? fp_single_below(rows[(d + l) * m + w]) : FLT_MAX;
                top = FP_NAME(fp_larger_single)(up[l], top);
                low = FP_NAME(fp_smaller_single)(down[l], low);
            }
            side->top[group * m + w] = top;
            side->low[group * m + w] = low;
        }
    }
}

/* Sum of (top - c' low)^+ over the columns, in 16 lanes. */
static float FP_NAME(fp_pair_envelope)(ptrdiff_t m, const float *top, const float *low, float factor)
{
    float lane[FP_PAIR_LANES] = {0}, sum = 0.0f;
    ptrdiff_t w = 0;
    for (; w + FP_PAIR_LANES <= m; w += FP_PAIR_LANES)
        for (int l = 0; l < FP_PAIR_LANES; l++) {
            const float t = top[w + l] - factor * low[w + l];
            lane[l] += t > 0.0f ? t : 0.0f;
        }
    for (; w < m; w++) {
        const float t = top[w] - factor * low[w];
        sum += t > 0.0f ? t : 0.0f;
    }
    for (int l = 0; l < FP_PAIR_LANES; l++)
        sum += lane[l];
    return sum;
}

/* As many lanes at a time as one register has. */
#if defined(__AVX512F__)
#define FP_PAIR_WIDTH 16
#elif defined(__AVX2__)
#define FP_PAIR_WIDTH 8
#else
#define FP_PAIR_WIDTH 4
#endif
typedef float FP_NAME(fp_singles) __attribute__((vector_size(4 * FP_PAIR_WIDTH), may_alias));
typedef int FP_NAME(fp_single_masks) __attribute__((vector_size(4 * FP_PAIR_WIDTH), may_alias));

FP_INLINE FP_NAME(fp_singles) FP_NAME(fp_positive_part)(FP_NAME(fp_singles) t)
{
    const FP_NAME(fp_single_masks) positive = t > (FP_NAME(fp_singles)){0};
    return (FP_NAME(fp_singles))((FP_NAME(fp_single_masks))t & positive);
}

/* Screens of 16 rows and one other row at four levels: sums over the columns, the larger of both directions. */
FP_INLINE void FP_NAME(fp_pair_screen)(ptrdiff_t m, const float *up, const float *down, const float *other_up,
                                       const float *other_down, const float *factor, float screen[][FP_PAIR_LANES])
{
    const float c0 = factor[0], c1 = factor[1], c2 = factor[2], c3 = factor[3];
    for (int l = 0; l < FP_PAIR_LANES; l += FP_PAIR_WIDTH) {
        FP_NAME(fp_singles) over[FP_PAIR_LEVELS], under[FP_PAIR_LEVELS];
        FP_NAME(fp_singles) o0 = {0}, o1 = {0}, o2 = {0}, o3 = {0}, u0 = {0}, u1 = {0}, u2 = {0}, u3 = {0};
        for (ptrdiff_t w = 0; w < m; w++) {
            const FP_NAME(fp_singles) p = *(const FP_NAME(fp_singles) *)(up + w * FP_PAIR_LANES + l);
            const FP_NAME(fp_singles) r = *(const FP_NAME(fp_singles) *)(down + w * FP_PAIR_LANES + l);
            const float q = other_up[w * FP_PAIR_LANES], s = other_down[w * FP_PAIR_LANES];
            o0 += FP_NAME(fp_positive_part)(p - c0 * s);
            u0 += FP_NAME(fp_positive_part)(q - c0 * r);
            o1 += FP_NAME(fp_positive_part)(p - c1 * s);
            u1 += FP_NAME(fp_positive_part)(q - c1 * r);
            o2 += FP_NAME(fp_positive_part)(p - c2 * s);
            u2 += FP_NAME(fp_positive_part)(q - c2 * r);
            o3 += FP_NAME(fp_positive_part)(p - c3 * s);
            u3 += FP_NAME(fp_positive_part)(q - c3 * r);
        }
        over[0] = o0, over[1] = o1, over[2] = o2, over[3] = o3;
        under[0] = u0, under[1] = u1, under[2] = u2, under[3] = u3;
        for (int k = 0; k < FP_PAIR_LEVELS; k++)
            for (int x = 0; x < FP_PAIR_WIDTH; x++)
                screen[k][l + x] = FP_NAME(fp_larger_single)(over[k][x], under[k][x]);
    }
}

/* Evaluate a pair in doubles at the levels of a group, and raise the largest values. */
static void FP_NAME(fp_pair_evaluate)(ptrdiff_t m, const double *row, const double *other, const fp_pair_levels *levels,
                                      ptrdiff_t group, double *largest)
{
    const ptrdiff_t first = levels->first[group], count = levels->first[group + 1] - first;
    for (ptrdiff_t at = 0; at < count; at += FP_CHANNEL_LEVELS) {
        const ptrdiff_t many = count - at < FP_CHANNEL_LEVELS ? count - at : FP_CHANNEL_LEVELS;
        double forward[FP_CHANNEL_LEVELS] = {0}, backward[FP_CHANNEL_LEVELS] = {0};
        FP_NAME(fp_channel_hockey_sticks)(1, m, row, other, NULL, NULL, many, levels->excess + first + at, forward,
                                          backward);
        for (ptrdiff_t e = 0; e < many; e++) {
            double *to = largest + first + at + e;
            *to = FP_NAME(fp_larger)(FP_NAME(fp_larger)(forward[e], backward[e]), *to);
        }
    }
}

static ptrdiff_t FP_NAME(fp_channel_screened_pairs)(ptrdiff_t n, ptrdiff_t others, ptrdiff_t m, const double *one,
                                                    const double *other, int same, const fp_pair_levels *levels,
                                                    float *workspace, double *largest)
{
    const ptrdiff_t groups = (n + FP_PAIR_LANES - 1) / FP_PAIR_LANES, more = (others + FP_PAIR_LANES - 1) / FP_PAIR_LANES;
    const ptrdiff_t cells = groups * m * FP_PAIR_LANES, other_cells = more * m * FP_PAIR_LANES;
    const float scale = 1.0f + (float)(m + 8) * 0x1p-23f, slack = (float)m * 0x1p-148f;
    float *start = (float *)(((size_t)workspace + 63) / 64 * 64);
    FP_NAME(fp_pair_side) a = {start, start + cells, start + 2 * cells, start + 2 * cells + groups * m}, b = a;
    float *rest = a.low + groups * m;
    rest = (float *)(((size_t)rest + 63) / 64 * 64);
    FP_NAME(fp_pair_pack)(n, m, one, &a);
    if (!same) {
        b = (FP_NAME(fp_pair_side)){rest, rest + other_cells, rest + 2 * other_cells, rest + 2 * other_cells + more * m};
        FP_NAME(fp_pair_pack)(others, m, other, &b);
    }
    ptrdiff_t evaluated = 0;
    for (ptrdiff_t i = 0; i < groups; i++)
        for (ptrdiff_t j = same ? i : 0; j < more; j++) {
            const float *up = a.up + i * m * FP_PAIR_LANES, *down = a.down + i * m * FP_PAIR_LANES;
            for (ptrdiff_t g = 0; g < levels->groups;) {
                ptrdiff_t chosen[FP_PAIR_LEVELS];
                float factor[FP_PAIR_LEVELS];
                int count = 0;
                for (; g < levels->groups && count < FP_PAIR_LEVELS; g++) { /* levels at which the groups may count */
                    const double least = largest[levels->first[g + 1] - 1];
                    const float over = FP_NAME(fp_pair_envelope)(m, a.top + i * m, b.low + j * m, levels->factor[g]);
                    const float under = FP_NAME(fp_pair_envelope)(m, b.top + j * m, a.low + i * m, levels->factor[g]);
                    const float most = FP_NAME(fp_larger_single)(over, under) * scale + slack;
                    if ((double)most > least) {
                        factor[count] = levels->factor[g];
                        chosen[count++] = g;
                    }
                }
                if (count == 0)
                    break;
                for (int k = count; k < FP_PAIR_LEVELS; k++)
                    factor[k] = factor[0];
                for (ptrdiff_t l = 0; l < FP_PAIR_LANES && j * FP_PAIR_LANES + l < others; l++) {
                    float screens[FP_PAIR_LEVELS][FP_PAIR_LANES];
                    const ptrdiff_t at = j * m * FP_PAIR_LANES + l;
                    FP_NAME(fp_pair_screen)(m, up, down, b.up + at, b.down + at, factor, screens);
                    for (int k = 0; k < count; k++) {
                        const ptrdiff_t group = chosen[k];
                        float *screen = screens[k], most = 0.0f;
                        for (int x = 0; x < FP_PAIR_LANES; x++) {
                            screen[x] = screen[x] * scale + slack;
                            most = FP_NAME(fp_larger_single)(screen[x], most);
                        }
                        if (!((double)most > largest[levels->first[group + 1] - 1]))
                            continue;
                        for (ptrdiff_t x = 0; x < FP_PAIR_LANES && i * FP_PAIR_LANES + x < n; x++)
                            if ((double)screen[x] > largest[levels->first[group + 1] - 1]) {
                                FP_NAME(fp_pair_evaluate)(m, one + (i * FP_PAIR_LANES + x) * m,
                                                          other + (j * FP_PAIR_LANES + l) * m, levels, group, largest);
                                evaluated++;
                            }
                    }
                }
            }
        }
    return evaluated;
}

#undef FP_PAIR_WIDTH
