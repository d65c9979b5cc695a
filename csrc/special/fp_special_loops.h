/* The loops of fastpriv.special; no include guard: common/fp_variants.h includes this once per instruction set. */
FP_SPECIAL_FUNCTIONS(FP_LOOP)

/* log sum exp(x_i) = m + log1p(copies of m beyond the first + sum over x_i < m of exp(x_i - m)), m the maximum.  Sums
 * run in FP_LANES lanes, lane i % FP_LANES taking term i, folded pairwise: the same order on every instruction set. */
static double FP_NAME(log_sum_exp)(const char *x, ptrdiff_t n, ptrdiff_t stride)
{
    double block[FP_BLOCK], most[FP_LANES], rest[FP_LANES], copies[FP_LANES];
    int ordered = 1;
    for (int j = 0; j < FP_LANES; j++) {
        most[j] = -INFINITY;
        rest[j] = copies[j] = 0.0;
    }
    for (ptrdiff_t start = 0; start < n; start += FP_BLOCK) {
        fp_load_padded(block, x + start * stride, n - start, stride);
        for (int i = 0; i < FP_BLOCK; i++)
            ordered &= block[i] == block[i];
        for (int i = 0; i < FP_BLOCK; i += FP_LANES)
            for (int j = 0; j < FP_LANES; j++)
                most[j] = block[i + j] > most[j] ? block[i + j] : most[j];
    }
    for (int half = FP_LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            most[j] = most[j + half] > most[j] ? most[j + half] : most[j];
    const double top = most[0];
    if (!ordered || top - top != 0.0) /* NaN, or all is decided by an infinity */
        return ordered ? top : NAN;
    for (ptrdiff_t start = 0; start < n; start += FP_BLOCK) {
        double power[FP_BLOCK];
        fp_load_padded(block, x + start * stride, n - start, stride);
        for (int i = 0; i < FP_BLOCK; i++)
            power[i] = fp_exp(block[i] - top);
        for (int i = 0; i < FP_BLOCK; i += FP_LANES)
            for (int j = 0; j < FP_LANES; j++) {
                copies[j] += block[i + j] == top ? 1.0 : 0.0;
                rest[j] += block[i + j] == top ? 0.0 : power[i + j];
            }
    }
    for (int half = FP_LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) {
            copies[j] += copies[j + half];
            rest[j] += rest[j + half];
        }
    return top + fp_log1p((copies[0] - 1.0) + rest[0]);
}
