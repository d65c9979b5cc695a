/* Rows of random and of Sobol normals; no include guard, included once per instruction set.
 *
 * A row is filled eight at a time; what is left of the last eight is dropped.
 */

static void FP_NAME(fp_far_flush)(fp_far *far)
{
    double z[FP_FAR_ROOM];
    const int n = far->n;
    for (int i = 0; i < n; i++)
        z[i] = fp_normal_far(far->w[i]);
    for (int i = 0; i < n; i++)
        *far->at[i] = copysign(z[i], *far->at[i]);
    far->n = 0;
}

/* a lane of eight whose w is small joins the queue */
static __attribute__((noinline)) void FP_NAME(fp_far_queue)(fp_far *far, const double *w, double *out)
{
    if (far->n > FP_FAR_ROOM - FP_LANES)
        FP_NAME(fp_far_flush)(far);
    for (int l = 0; l < FP_LANES; l++)
        if (w[l] < FP_TAIL_START) {
            far->w[far->n] = w[l];
            far->at[far->n++] = out + l;
        }
}

/* eight normals from eight words */
FP_INLINE void FP_NAME(fp_normal_lanes)(fp_u8 bits, double *out, fp_far *far)
{
#if defined(__AVX512F__)
    const fp_u8 folded = ((bits ^ -(bits >> 63)) >> 11) | FP_ONE_BITS;
    const fp_d8 w = (fp_d8)folded - (1.0 - 0x1p-53);
    const fp_u8 name = (fp_u8)w, piece = name >> 51;
    const fp_d8 x = (fp_d8)((name & FP_PIECE_BITS) | FP_ONE_BITS) - 1.25;
    fp_d8 value = FP_PIECE(FP_NORMAL_TERMS - 1, piece);
#pragma GCC unroll 16
    for (int i = FP_NORMAL_TERMS - 2; i >= 0; i--)
        value = value * x + FP_PIECE(i, piece);
    value = value * (1.0 - w);
    *(fp_u8_any *)out = ((fp_u8)value & ~FP_SIGN_BIT) | (~bits & FP_SIGN_BIT);
    if (__builtin_expect(_mm512_cmp_pd_mask((__m512d)w, _mm512_set1_pd(FP_TAIL_START), _CMP_LT_OQ) != 0, 0)) {
        double kept[FP_LANES];
        *(fp_d8_any *)kept = w;
        FP_NAME(fp_far_queue)(far, kept, out);
    }
#else
    double w[FP_LANES];
    int any = 0;
    for (int l = 0; l < FP_LANES; l++) {
        w[l] = fp_two_sided(bits[l]);
        any |= w[l] < FP_TAIL_START;
        out[l] = fp_signed(fp_normal_near(w[l]), bits[l]);
    }
    if (any)
        FP_NAME(fp_far_queue)(far, w, out);
#endif
}

FP_INLINE fp_u8 FP_NAME(fp_stream_next)(fp_stream *s)
{
    const fp_u8 output = s->a + s->b + s->counter;
    s->counter += 1;
    s->a = s->b ^ (s->b >> 11);
    s->b = s->c + (s->c << 3);
    s->c = ((s->c << 24) | (s->c >> 40)) + output;
    return output;
}

/* n < 8 words at the end of a row */
static void FP_NAME(fp_normal_rest)(fp_u8 bits, double *out, int skip, int n, fp_far *far)
{
    double z[FP_LANES];
    FP_NAME(fp_normal_lanes)(bits, z, far);
    FP_NAME(fp_far_flush)(far);
    memcpy(out, z + skip, sizeof(double) * (size_t)n);
}

static void FP_NAME(fp_stream_bits)(fp_stream *stream, long n, uint64_t *out)
{
    fp_stream s = *stream;
    long i = 0;
    for (; i + FP_LANES <= n; i += FP_LANES)
        *(fp_u8_any *)(out + i) = FP_NAME(fp_stream_next)(&s);
    if (i < n) {
        const fp_u8 last = FP_NAME(fp_stream_next)(&s);
        memcpy(out + i, &last, sizeof(uint64_t) * (size_t)(n - i));
    }
    *stream = s;
}

static void FP_NAME(fp_stream_uniforms)(fp_stream *stream, long n, double *out)
{
    FP_NAME(fp_stream_bits)(stream, n, (uint64_t *)out);
    for (long i = 0; i < n; i++)
        out[i] = fp_uniform(fp_bits(out[i]));
}

static void FP_NAME(fp_stream_normals)(fp_stream *stream, long n, double *out)
{
    fp_far far;
    far.n = 0;
    fp_stream s = *stream;
    long i = 0;
    for (; i + FP_LANES <= n; i += FP_LANES)
        FP_NAME(fp_normal_lanes)(FP_NAME(fp_stream_next)(&s), out + i, &far);
    if (i < n)
        FP_NAME(fp_normal_rest)(FP_NAME(fp_stream_next)(&s), out + i, 0, (int)(n - i), &far);
    FP_NAME(fp_far_flush)(&far);
    *stream = s;
}

/* z_0, -z_0, z_1, -z_1, ...; n even */
static void FP_NAME(fp_stream_pairs)(fp_stream *stream, long n, double *out)
{
    const long half = n / 2;
    FP_NAME(fp_stream_normals)(stream, half, out + half);
    for (long i = 0; i < half; i += FP_LANES) { /* never overtakes what it reads */
        const long m = half - i < FP_LANES ? half - i : FP_LANES;
        double z[FP_LANES];
        memcpy(z, out + half + i, sizeof(double) * (size_t)m);
        for (long l = 0; l < m; l++) {
            out[2 * (i + l)] = z[l];
            out[2 * (i + l) + 1] = -z[l];
        }
    }
}

/* eight points j in natural order, those of index 8 block to 8 block + 7; columns[b] belongs to bit b of the index */
typedef struct {
    fp_u8 value;
    uint64_t block, steps[64]; /* steps[t] = columns[3] ^ ... ^ columns[3 + t] */
    const uint64_t *columns;
    int bits, known;
} FP_NAME(fp_points);

static void FP_NAME(fp_points_start)(FP_NAME(fp_points) *p, const uint64_t *columns, int bits, uint64_t shift,
                                     uint64_t first)
{
    const uint64_t none = 0, *c[3];
    for (int b = 0; b < 3; b++)
        c[b] = b < bits ? columns + b : &none;
    for (int b = 3; b < bits; b++)
        shift ^= columns[b] & -(first >> b & 1);
    for (int l = 0; l < FP_LANES; l++)
        p->value[l] = shift ^ (*c[0] & -(uint64_t)(l & 1)) ^ (*c[1] & -(uint64_t)(l >> 1 & 1))
                      ^ (*c[2] & -(uint64_t)(l >> 2));
    p->block = first >> 3;
    p->columns = columns;
    p->bits = bits;
    p->known = 0;
}

FP_INLINE void FP_NAME(fp_points_advance)(FP_NAME(fp_points) *p)
{
    const int t = __builtin_ctzll(++p->block | 1ull << 60);
    for (; __builtin_expect(p->known <= t, 0); p->known++)
        p->steps[p->known] = (p->known ? p->steps[p->known - 1] : 0)
                             ^ (3 + p->known < p->bits ? p->columns[3 + p->known] : 0);
    p->value ^= p->steps[t];
}

static void FP_NAME(fp_sobol_bits)(const uint64_t *columns, int bits, uint64_t shift, uint64_t first, long n,
                                   uint64_t *out)
{
    FP_NAME(fp_points) p;
    FP_NAME(fp_points_start)(&p, columns, bits, shift, first);
    int skip = (int)(first & 7);
    for (long i = 0; i < n; skip = 0) {
        const long m = n - i < FP_LANES - skip ? n - i : FP_LANES - skip;
        const fp_u8 value = p.value;
        memcpy(out + i, (const uint64_t *)&value + skip, sizeof(uint64_t) * (size_t)m);
        FP_NAME(fp_points_advance)(&p);
        i += m;
    }
}

static void FP_NAME(fp_sobol_normals)(const uint64_t *columns, int bits, uint64_t shift, uint64_t first, long n,
                                      double *out)
{
    FP_NAME(fp_points) p;
    fp_far far;
    far.n = 0;
    FP_NAME(fp_points_start)(&p, columns, bits, shift, first);
    long i = 0;
    const int skip = (int)(first & 7);
    if (skip && n > 0) {
        i = n < FP_LANES - skip ? n : FP_LANES - skip;
        FP_NAME(fp_normal_rest)(p.value, out, skip, (int)i, &far);
        FP_NAME(fp_points_advance)(&p);
    }
    for (; i + FP_LANES <= n; i += FP_LANES) {
        FP_NAME(fp_normal_lanes)(p.value, out + i, &far);
        FP_NAME(fp_points_advance)(&p);
    }
    if (i < n)
        FP_NAME(fp_normal_rest)(p.value, out + i, 0, (int)(n - i), &far);
    FP_NAME(fp_far_flush)(&far);
}
