/* The loops of fp_bit_matrix.h for one instruction set; no include guard. */

/* the sums of all subsets of eight rows of x, in FP_BIT_LANES columns; 0 beyond `rows` rows and `columns` columns */
static void FP_NAME(fp_bit_table)(ptrdiff_t rows, ptrdiff_t columns, const double *restrict x, ptrdiff_t x_row,
                                  ptrdiff_t x_column, double *restrict table)
{
    fp_bit_sums *t = (fp_bit_sums *)table;
    t[0] = (fp_bit_sums){0};
    for (int h = 0; h < 8; h++) {
        double row[FP_BIT_LANES] = {0};
        if (h < rows)
            for (ptrdiff_t r = 0; r < columns; r++)
                row[r] = x[h * x_row + r * x_column];
        const fp_bit_sums v = *(const fp_bit_sums *)row;
        for (int i = 0; i < 1 << h; i++)
            t[(1 << h) + i] = t[i] + v;
    }
}

static void FP_NAME(fp_bit_products)(ptrdiff_t rows, ptrdiff_t bytes, ptrdiff_t attributes, ptrdiff_t columns,
                                     const uint8_t *restrict d, ptrdiff_t stride, const double *restrict x,
                                     ptrdiff_t x_row, ptrdiff_t x_column, double *restrict out, ptrdiff_t out_stride,
                                     fp_bit_products_memory *restrict memory)
{
    fp_bit_sums *sums = (fp_bit_sums *)memory->sums;
    const fp_bit_sums *t = (const fp_bit_sums *)memory->table;
    for (ptrdiff_t at = 0; at < bytes; at += FP_BIT_BYTES) {
        const ptrdiff_t width = bytes - at < FP_BIT_BYTES ? bytes - at : FP_BIT_BYTES;
        for (ptrdiff_t k = 0; k < rows; k++)
            for (ptrdiff_t g = 0; g < width; g++)
                memory->bytes[g * FP_BIT_ROWS + k] = d[k * stride + at + g];
        for (ptrdiff_t r = 0; r < columns; r += FP_BIT_LANES) {
            const ptrdiff_t lanes = columns - r < FP_BIT_LANES ? columns - r : FP_BIT_LANES;
            for (ptrdiff_t k = 0; k < rows; k++) {
                double row[FP_BIT_LANES] = {0};
                memcpy(row, out + k * out_stride + r, lanes * sizeof(double));
                sums[k] = *(const fp_bit_sums *)row;
            }
            for (ptrdiff_t g = 0; g < width; g += FP_BIT_TABLES) {
                const uint8_t *c[FP_BIT_TABLES];
                for (ptrdiff_t h = 0; h < FP_BIT_TABLES; h++) {
                    const ptrdiff_t j = 8 * (at + g + h);
                    c[h] = memory->bytes + (g + h) * FP_BIT_ROWS;
                    FP_NAME(fp_bit_table)(g + h < width ? attributes - j : 0, lanes, x + j * x_row + r * x_column,
                                          x_row, x_column, memory->table[h]);
                }
                const uint8_t *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3];
                for (ptrdiff_t k = 0; k < rows; k++)
                    sums[k] += (t[c0[k]] + t[256 + c1[k]]) + (t[512 + c2[k]] + t[768 + c3[k]]);
            }
            for (ptrdiff_t k = 0; k < rows; k++) {
                double row[FP_BIT_LANES];
                *(fp_bit_sums *)row = sums[k];
                memcpy(out + k * out_stride + r, row, lanes * sizeof(double));
            }
        }
    }
}

static void FP_NAME(fp_bit_counts)(ptrdiff_t releases, ptrdiff_t groups, ptrdiff_t rows, ptrdiff_t columns,
                                   const uint8_t *restrict b, const uint8_t *restrict d, ptrdiff_t stride,
                                   int64_t *restrict out, ptrdiff_t out_stride, fp_bit_counts_memory *restrict memory)
{
    fp_bit_bytes *t = (fp_bit_bytes *)memory->table, *small = (fp_bit_bytes *)memory->small;
    memset(memory->counts, 0, releases * FP_BIT_COLUMNS * sizeof(int32_t));
    for (ptrdiff_t first = 0; first < groups; first += FP_BIT_GROUPS) {
        const ptrdiff_t last = groups - first < FP_BIT_GROUPS ? groups : first + FP_BIT_GROUPS;
        memset(small, 0, releases * FP_BIT_COLUMNS);
        for (ptrdiff_t g = first; g < last; g++) {
            t[0] = (fp_bit_bytes){0};
            for (int h = 0; h < 8; h++) {
                uint8_t row[FP_BIT_COLUMNS] = {0};
                if (8 * g + h < rows)
                    for (ptrdiff_t c = 0; c < columns; c++)
                        row[c] = d[(8 * g + h) * stride + c / 8] >> (c % 8) & 1;
                const fp_bit_bytes v = *(const fp_bit_bytes *)row;
                for (int i = 0; i < 1 << h; i++)
                    t[(1 << h) + i] = t[i] + v;
            }
            for (ptrdiff_t r = 0; r < releases; r++)
                small[r] += t[b[r * groups + g]];
        }
        for (ptrdiff_t i = 0; i < releases * FP_BIT_COLUMNS; i++)
            memory->counts[i] += memory->small[i];
    }
    for (ptrdiff_t r = 0; r < releases; r++)
        for (ptrdiff_t c = 0; c < columns; c++)
            out[r * out_stride + c] = memory->counts[r * FP_BIT_COLUMNS + c];
}

/* bits that two rows of `bytes` bytes share */
static int64_t FP_NAME(fp_bit_shared)(ptrdiff_t bytes, const uint8_t *restrict a, const uint8_t *restrict b)
{
    int64_t total = 0;
    uint64_t x, y;
    ptrdiff_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        total += __builtin_popcountll(x & y);
    }
    x = y = 0;
    memcpy(&x, a + i, bytes - i);
    memcpy(&y, b + i, bytes - i);
    return total + __builtin_popcountll(x & y);
}

static void FP_NAME(fp_bit_gram)(ptrdiff_t first, ptrdiff_t last, ptrdiff_t n, ptrdiff_t stride,
                                 const uint8_t *restrict d, int64_t *restrict out)
{
    const ptrdiff_t width = 8 * FP_BIT_WORDS;
    for (ptrdiff_t at = 0; at < stride; at += width) {
        const ptrdiff_t bytes = stride - at < width ? stride - at : width;
        for (ptrdiff_t tile = 0; tile < last; tile += FP_BIT_TILE)
            for (ptrdiff_t i = first; i < last; i++)
                for (ptrdiff_t j = tile; j < tile + FP_BIT_TILE && j <= i; j++)
                    out[i * n + j] += FP_NAME(fp_bit_shared)(bytes, d + i * stride + at, d + j * stride + at);
    }
}
