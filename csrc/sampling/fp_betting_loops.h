/* Loops of fp_betting.h; no include guard, included once per instruction set. */

static void FP_NAME(fp_log_wealth)(ptrdiff_t n, ptrdiff_t e, const double *x, int smaller, const double *bets,
                                   double *sums)
{
    for (ptrdiff_t q = 0; q < e; q++) {
        double product[FP_BETS];
        int64_t exponent[FP_BETS];
        for (int l = 0; l < FP_BETS; l++) {
            product[l] = 1.0;
            exponent[l] = 0;
        }
        for (ptrdiff_t first = 0; first < n; first += FP_FACTORS_BETWEEN_SCALINGS) {
            const ptrdiff_t end = n - first < FP_FACTORS_BETWEEN_SCALINGS ? n : first + FP_FACTORS_BETWEEN_SCALINGS;
            for (ptrdiff_t i = first; i < end; i++) {
                const double value = x[i * e + q], rest = smaller ? 1.0 - value : 1.0;
                for (int l = 0; l < FP_BETS; l++)
                    product[l] *= rest + value * bets[l];
            }
            for (int l = 0; l < FP_BETS; l++) {
                uint64_t bits;
                memcpy(&bits, &product[l], sizeof bits);
                exponent[l] += (int64_t)(bits >> 52) - 1023; /* positive: no sign bit */
                bits = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
                memcpy(&product[l], &bits, sizeof bits);
            }
        }
        for (int l = 0; l < FP_BETS; l++)
            sums[q * FP_BETS + l] += (double)exponent[l] * FP_LN2 + fp_log(product[l]);
    }
}
