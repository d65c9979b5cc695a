/* Rows of random and of Sobol normals; part of fp_draw_loops.h.
 *
 * A row is filled eight at a time; what is left of the last eight is dropped.
 */
/* bounds: proved - an exact shift of uniforms to the middle of their interval */

static void FP_NAME(fp_tail_flush)(fp_tail_queue *tail)
{
    double z[FP_TAIL_QUEUE];
    const int n = tail->n;
    for (int i = 0; i < n; i++)
        z[i] = fp_normal_tail_quantile(tail->w[i]);
    for (int i = 0; i < n; i++)
        *tail->at[i] = copysign(z[i], *tail->at[i]);
    tail->n = 0;
}

/* Append the lanes whose w is small to the queue of the tail. */
static __attribute__((noinline)) void FP_NAME(fp_tail_enqueue)(fp_tail_queue *tail, FP_DOUBLES w, double *out)
{
    if (tail->n > FP_TAIL_QUEUE - FP_WIDTH)
        FP_NAME(fp_tail_flush)(tail);
    for (int l = 0; l < FP_WIDTH; l++)
        if (w[l] < FP_TAIL_START) {
            tail->w[tail->n] = w[l];
            tail->at[tail->n++] = out + l;
        }
}

/* The sums of the odd and of the even terms by Horner's rule in the square of x; a lane of numbers holds that of its
 * piece in the low four bits, and others above.
 *
 * A permutation of AVX-512 reads the coefficients of eight lanes.  AVX2 loads them from a row for each lane, where odd
 * and even ones are neighbours; both sums of a lane are worked in half of a vector, and part at the
 * end. */
FP_INLINE void FP_NAME(fp_odd_even_sums)(FP_WORDS numbers, FP_DOUBLES square, FP_DOUBLES *odd, FP_DOUBLES *even)
{
#if FP_WIDTH == 8
#define FP_ENTRY(i)                                                                                                   \
    ((FP_DOUBLES)_mm512_permutex2var_pd(_mm512_load_pd(fp_normal_pieces[i]), (__m512i)numbers,                        \
                                        _mm512_load_pd(fp_normal_pieces[i] + 8)))
    *even = FP_ENTRY(FP_NORMAL_TERMS - 1);
    *odd = FP_ENTRY(FP_NORMAL_TERMS - 2);
#pragma GCC unroll 16
    for (int i = FP_NORMAL_TERMS - 3; i > 0; i -= 2) {
        *even = FP_FMA(*even, square, FP_ENTRY(i));
        *odd = FP_FMA(*odd, square, FP_ENTRY(i - 1));
    }
    *even = FP_FMA(*even, square, FP_ENTRY(0));
#undef FP_ENTRY
#elif FP_WIDTH == 4
#define FP_LOWER(a, c) ((FP_DOUBLES)_mm256_insertf128_pd(a, _mm256_castpd256_pd128(c), 1))
#define FP_UPPER(a, c) ((FP_DOUBLES)_mm256_permute2f128_pd(a, c, 0x31))
    _Static_assert(FP_NORMAL_TERMS % 4 == 1, "the first two coefficients come alone, the others four by four");
    const FP_WORDS piece = numbers & 15;
    const double *row[4];
    __m256d c[4];
#pragma GCC unroll 4
    for (int l = 0; l < 4; l++) {
        row[l] = fp_normal_rows[piece[l]];
        c[l] = _mm256_broadcast_pd((const __m128d *)(row[l] + FP_NORMAL_TERMS - 1));
    }
    const FP_DOUBLES left = (FP_DOUBLES)_mm256_unpacklo_pd((__m256d)square, (__m256d)square); /* lanes 0 and 2, twice */
    const FP_DOUBLES right = (FP_DOUBLES)_mm256_unpackhi_pd((__m256d)square, (__m256d)square);
    FP_DOUBLES first = FP_LOWER(c[0], c[2]), second = FP_LOWER(c[1], c[3]), first_odd = first, second_odd = second;
#pragma GCC unroll 4
    for (int i = FP_NORMAL_TERMS - 5; i >= 0; i -= 4) {
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++)
            c[l] = _mm256_load_pd(row[l] + i);
        first_odd = FP_FMA(first, left, FP_UPPER(c[0], c[2]));
        second_odd = FP_FMA(second, right, FP_UPPER(c[1], c[3]));
        first = FP_FMA(first_odd, left, FP_LOWER(c[0], c[2]));
        second = FP_FMA(second_odd, right, FP_LOWER(c[1], c[3]));
    }
    *odd = (FP_DOUBLES)_mm256_unpacklo_pd((__m256d)first_odd, (__m256d)second_odd);
    *even = (FP_DOUBLES)_mm256_unpackhi_pd((__m256d)first, (__m256d)second);
#undef FP_UPPER
#undef FP_LOWER
#else
    for (int l = 0; l < 2; l++) {
        const double *row = fp_normal_rows[numbers[l] & 15];
        double low = row[FP_NORMAL_TERMS - 1], high = row[FP_NORMAL_TERMS];
        for (int i = FP_NORMAL_TERMS - 3; i > 0; i -= 2) {
            low = __builtin_fma(low, square[l], row[i]);
            high = __builtin_fma(high, square[l], row[i + 1]);
        }
        (*odd)[l] = low;
        (*even)[l] = __builtin_fma(high, square[l], row[1]);
    }
#endif
}

/* A vector of normals from one of words; where w is below FP_TAIL_START, a number with the right sign. */
FP_INLINE void FP_NAME(fp_normal_vector)(FP_WORDS bits, double *out, fp_tail_queue *tail)
{
    const FP_DOUBLES w = (FP_DOUBLES)((bits & FP_SIZE_BITS) | FP_ONE_BITS) - (1.0 - 0x1p-53);
    const FP_DOUBLES x = (FP_DOUBLES)(((FP_WORDS)w & FP_PIECE_BITS) | FP_ONE_BITS) - 1.25;
    FP_DOUBLES even, odd;
    FP_NAME(fp_odd_even_sums)((FP_WORDS)w >> 51, x * x, &odd, &even);
    const FP_DOUBLES size = FP_FMA(odd, x, even) * (1.0 - w); /* positive for all w in (0, 1) */
    const FP_WORDS z = (FP_WORDS)size | (bits & FP_SIGN_BIT);
    memcpy(out, &z, sizeof z);
    if (__builtin_expect(FP_ANY_BELOW(w, FP_TAIL_START), 0))
        FP_NAME(fp_tail_enqueue)(tail, w, out);
}

/* Eight normals from eight words. */
FP_INLINE void FP_NAME(fp_normal_eight)(const FP_WORDS *bits, double *out, fp_tail_queue *tail)
{
#pragma GCC unroll 4
    for (int k = 0; k < FP_VECTORS; k++)
        FP_NAME(fp_normal_vector)(bits[k], out + FP_WIDTH * k, tail);
}

/* The lanes of a stream, in vectors of the instruction set. */
typedef struct {
    FP_WORDS a[FP_VECTORS], b[FP_VECTORS], c[FP_VECTORS], counter[FP_VECTORS];
} FP_NAME(fp_stream_vectors);

FP_INLINE FP_NAME(fp_stream_vectors) FP_NAME(fp_stream_load)(const fp_stream *stream)
{
    FP_NAME(fp_stream_vectors) s;
    memcpy(&s, stream, sizeof s);
    return s;
}

FP_INLINE void FP_NAME(fp_stream_next)(FP_NAME(fp_stream_vectors) *s, FP_WORDS *bits)
{
#pragma GCC unroll 4
    for (int k = 0; k < FP_VECTORS; k++) {
        bits[k] = s->a[k] + s->b[k] + s->counter[k];
        s->counter[k] += 1;
        s->a[k] = s->b[k] ^ (s->b[k] >> 11);
        s->b[k] = s->c[k] + (s->c[k] << 3);
        s->c[k] = ((s->c[k] << 24) | (s->c[k] >> 40)) + bits[k];
    }
}

/* n < 8 normals, from lane skip on: an end of a row. */
static void FP_NAME(fp_normal_partial)(const FP_WORDS *bits, double *out, int skip, int n, fp_tail_queue *tail)
{
    double z[FP_LANES];
    FP_NAME(fp_normal_eight)(bits, z, tail);
    FP_NAME(fp_tail_flush)(tail);
    memcpy(out, z + skip, sizeof(double) * (size_t)n);
}

static void FP_NAME(fp_stream_bits)(fp_stream *stream, long n, uint64_t *out)
{
    FP_NAME(fp_stream_vectors) s = FP_NAME(fp_stream_load)(stream);
    FP_WORDS bits[FP_VECTORS];
    long i = 0;
    for (; i + FP_LANES <= n; i += FP_LANES) {
        FP_NAME(fp_stream_next)(&s, bits);
        memcpy(out + i, bits, sizeof bits);
    }
    if (i < n) {
        FP_NAME(fp_stream_next)(&s, bits);
        memcpy(out + i, bits, sizeof(uint64_t) * (size_t)(n - i));
    }
    memcpy(stream, &s, sizeof s);
}

static void FP_NAME(fp_stream_uniforms)(fp_stream *stream, long n, double *out)
{
    FP_NAME(fp_stream_bits)(stream, n, (uint64_t *)out);
    for (long i = 0; i < n; i++)
        out[i] = fp_uniform(fp_bits(out[i]));
}

static void FP_NAME(fp_stream_row)(FP_NAME(fp_stream_vectors) *stream, long n, double *out, fp_tail_queue *tail)
{
    FP_NAME(fp_stream_vectors) s = *stream;
    FP_WORDS bits[FP_VECTORS];
    long i = 0;
    for (; i + FP_LANES <= n; i += FP_LANES) {
        FP_NAME(fp_stream_next)(&s, bits);
        FP_NAME(fp_normal_eight)(bits, out + i, tail);
    }
    if (i < n) {
        FP_NAME(fp_stream_next)(&s, bits);
        FP_NAME(fp_normal_partial)(bits, out + i, 0, (int)(n - i), tail);
    }
    *stream = s;
}

static void FP_NAME(fp_stream_normals)(fp_stream *stream, long d, long n, double *out)
{
    FP_NAME(fp_stream_vectors) s = FP_NAME(fp_stream_load)(stream);
    fp_tail_queue tail;
    tail.n = 0;
    for (long i = 0; i < d; i++)
        FP_NAME(fp_stream_row)(&s, n, out + i * n, &tail);
    FP_NAME(fp_tail_flush)(&tail);
}

/* z_0, -z_0, z_1, -z_1, ...; n even */
static void FP_NAME(fp_stream_pairs)(fp_stream *stream, long d, long n, double *out)
{
    FP_NAME(fp_stream_vectors) s = FP_NAME(fp_stream_load)(stream);
    fp_tail_queue tail;
    tail.n = 0;
    const long half = n / 2;
    for (long k = 0; k < d; k++, out += n)
        FP_NAME(fp_stream_row)(&s, half, out + half, &tail);
    FP_NAME(fp_tail_flush)(&tail);
    for (long k = 0; k < d; k++) {
        out -= n;
        const double *z = out + half; /* writing never overtakes reading */
        long i = 0;
        for (; i + FP_LANES <= half; i += FP_LANES) {
#pragma GCC unroll 4
            for (int k = 0; k < FP_VECTORS; k++) {
                FP_DOUBLES part, both;
                memcpy(&part, z + i + FP_WIDTH * k, sizeof part);
                both = FP_FIRST_HALVES(part, -part);
                memcpy(out + 2 * (i + FP_WIDTH * k), &both, sizeof both);
                both = FP_SECOND_HALVES(part, -part);
                memcpy(out + 2 * (i + FP_WIDTH * k) + FP_WIDTH, &both, sizeof both);
            }
        }
        for (; i < half; i++) {
            const double one = z[i];
            out[2 * i] = one;
            out[2 * i + 1] = -one;
        }
    }
}

/* Eight Sobol points in natural order, with indices 8 block to 8 block + 7; columns[b] belongs to bit b of the
 * index. */
typedef struct {
    FP_WORDS value[FP_VECTORS];
    uint64_t block, steps[64]; /* steps[t] = columns[3] ^ ... ^ columns[3 + t] */
    const uint64_t *columns;
    int bits, known, fold;
} FP_NAME(fp_sobol_points);

/* Column b, as binary digits or folded. */
FP_INLINE uint64_t FP_NAME(fp_sobol_column)(const FP_NAME(fp_sobol_points) *p, int b)
{
    const uint64_t column = b < p->bits ? p->columns[b] : 0;
    return p->fold ? fp_folded(column) : column;
}

FP_INLINE void FP_NAME(fp_sobol_start)(FP_NAME(fp_sobol_points) *p, const uint64_t *columns, int bits, uint64_t shift,
                                        uint64_t first, const int fold)
{
    for (uint64_t rest = first & ~7ull; rest; rest &= rest - 1) {
        const int b = __builtin_ctzll(rest);
        shift ^= b < bits ? columns[b] : 0;
    }
    p->block = first >> 3;
    p->columns = columns;
    p->bits = bits;
    p->known = 0;
    p->fold = fold;
    const uint64_t start = fold ? fp_folded(shift) ^ FP_SIGN_BIT : shift;
    uint64_t lanes[FP_LANES];
    for (int l = 0; l < FP_LANES; l++)
        lanes[l] = start ^ (FP_NAME(fp_sobol_column)(p, 0) & -(uint64_t)(l & 1))
                   ^ (FP_NAME(fp_sobol_column)(p, 1) & -(uint64_t)(l >> 1 & 1))
                   ^ (FP_NAME(fp_sobol_column)(p, 2) & -(uint64_t)(l >> 2));
    memcpy(p->value, lanes, sizeof lanes);
}

FP_INLINE void FP_NAME(fp_sobol_advance)(FP_NAME(fp_sobol_points) *p)
{
    const int t = __builtin_ctzll(++p->block | 1ull << 60);
    for (; __builtin_expect(p->known <= t, 0); p->known++)
        p->steps[p->known] = (p->known ? p->steps[p->known - 1] : 0) ^ FP_NAME(fp_sobol_column)(p, 3 + p->known);
#pragma GCC unroll 4
    for (int k = 0; k < FP_VECTORS; k++)
        p->value[k] ^= p->steps[t];
}

static void FP_NAME(fp_sobol_bits)(const uint64_t *columns, int bits, uint64_t shift, uint64_t first, long n,
                                   uint64_t *out)
{
    FP_NAME(fp_sobol_points) p;
    FP_NAME(fp_sobol_start)(&p, columns, bits, shift, first, 0);
    int skip = (int)(first & 7);
    for (long i = 0; i < n; skip = 0) {
        const long m = n - i < FP_LANES - skip ? n - i : FP_LANES - skip;
        memcpy(out + i, (const uint64_t *)p.value + skip, sizeof(uint64_t) * (size_t)m);
        FP_NAME(fp_sobol_advance)(&p);
        i += m;
    }
}

static void FP_NAME(fp_sobol_row)(const uint64_t *columns, int bits, uint64_t shift, uint64_t first, long n,
                                  double *out, fp_tail_queue *tail)
{
    FP_NAME(fp_sobol_points) p;
    FP_NAME(fp_sobol_start)(&p, columns, bits, shift, first, 1);
    long i = 0;
    const int skip = (int)(first & 7);
    if (skip && n > 0) {
        i = n < FP_LANES - skip ? n : FP_LANES - skip;
        FP_NAME(fp_normal_partial)(p.value, out, skip, (int)i, tail);
        FP_NAME(fp_sobol_advance)(&p);
    }
    for (; i + FP_LANES <= n; i += FP_LANES) {
        FP_NAME(fp_normal_eight)(p.value, out + i, tail);
        FP_NAME(fp_sobol_advance)(&p);
    }
    if (i < n)
        FP_NAME(fp_normal_partial)(p.value, out + i, 0, (int)(n - i), tail);
}

static void FP_NAME(fp_sobol_normals)(const uint64_t *columns, int bits, const uint64_t *shifts, uint64_t first,
                                      long d, long n, double *out)
{
    fp_tail_queue tail;
    tail.n = 0;
    for (long i = 0; i < d; i++)
        FP_NAME(fp_sobol_row)(columns + i * bits, bits, shifts[i], first, n, out + i * n, &tail);
    FP_NAME(fp_tail_flush)(&tail);
}
