/* The best weights on given radii: a concave problem, by a primal-dual interior-point method; included once per
 * instruction set.
 *
 * maximise I(p) subject to sum p = 1, p >= 0:  i_j + z_j = C, p_j z_j = 0.  The Hessian of I is -G, G_jk = sum over
 * nodes of c table_j table_k / S.
 */
/* bounds: none - the solver's least pivot */

/* the lower triangle of G for m rows, into `gram` with stride `width` */
static void FP_NAME(fp_awgn_gram)(double *const *rows, int m, const double *restrict scale, int n,
                                  double *restrict work, double *restrict gram, int width)
{
    for (int i = 0; i < m; i++) {
        const double *restrict left = rows[i];
        int least_radius = 0, high = n; /* outside this range the row is negligible */
        while (least_radius < high && fabs(left[least_radius]) < FP_AWGN_NEGLIGIBLE_ENTRY)
            least_radius++;
        while (least_radius < high && fabs(left[high - 1]) < FP_AWGN_NEGLIGIBLE_ENTRY)
            high--;
        least_radius -= least_radius % FP_LANES;
        high += (FP_LANES - high % FP_LANES) % FP_LANES;
        for (int k = least_radius; k < high; k++)
            work[k] = left[k] * scale[k];
        int j = 0;
        for (; j + 4 <= i + 1; j += 4) {
            fp_v8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
            const double *restrict r0 = rows[j], *restrict r1 = rows[j + 1];
            const double *restrict r2 = rows[j + 2], *restrict r3 = rows[j + 3];
            for (int k = least_radius; k < high; k += FP_LANES) {
                const fp_v8 w = FP_AT(work, k);
                s0 += w * FP_AT(r0, k);
                s1 += w * FP_AT(r1, k);
                s2 += w * FP_AT(r2, k);
                s3 += w * FP_AT(r3, k);
            }
            const fp_v8 all[4] = {s0, s1, s2, s3};
            for (int q = 0; q < 4; q++)
                gram[(size_t)i * width + j + q] = FP_NAME(fp_v8_sum)(all[q]);
        }
        for (; j <= i; j++)
            gram[(size_t)i * width + j] =
                FP_NAME(fp_awgn_dot)(work + least_radius, rows[j] + least_radius, high - least_radius);
    }
}

/* The first n products of two rows, in eight lanes and a remainder. */
FP_INLINE double FP_NAME(fp_awgn_dot_partial)(const double *restrict a, const double *restrict b, int n)
{
    fp_v8 sum = {0};
    double rest = 0.0;
    int k = 0;
    for (; k + FP_LANES <= n; k += FP_LANES)
        sum += FP_AT(a, k) * FP_AT(b, k);
    for (; k < n; k++)
        rest += a[k] * b[k];
    return FP_NAME(fp_v8_sum)(sum) + rest;
}

/* Cholesky factor of the lower triangle, in place; a pivot lost to rounding is made large, which freezes its
 * variable. Four rows at a time are reduced by each row above, then by each other. */
static void FP_NAME(fp_awgn_factor)(double *restrict h, int m, int width)
{
    for (int block = 0; block < m; block += 4) {
        const int count = m - block < 4 ? m - block : 4;
        double *rows[4], whole[4];
        for (int q = 0; q < 4; q++) {
            rows[q] = h + (size_t)(block + (q < count ? q : 0)) * width;
            whole[q] = rows[q][block + (q < count ? q : 0)];
        }
        for (int j = 0; j < block; j++) {
            const double *other = h + (size_t)j * width;
            fp_v8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
            double rest[4] = {0};
            int k = 0;
            for (; k + FP_LANES <= j; k += FP_LANES) {
                const fp_v8 o = FP_AT(other, k);
                s0 += FP_AT(rows[0], k) * o;
                s1 += FP_AT(rows[1], k) * o;
                s2 += FP_AT(rows[2], k) * o;
                s3 += FP_AT(rows[3], k) * o;
            }
            for (; k < j; k++)
                for (int q = 0; q < 4; q++)
                    rest[q] += rows[q][k] * other[k];
            const double dot[4] = {FP_NAME(fp_v8_sum)(s0) + rest[0], FP_NAME(fp_v8_sum)(s1) + rest[1],
                                   FP_NAME(fp_v8_sum)(s2) + rest[2], FP_NAME(fp_v8_sum)(s3) + rest[3]};
            for (int q = 0; q < count; q++)
                rows[q][j] = (rows[q][j] - dot[q]) / other[j];
        }
        for (int q = 0; q < count; q++) {
            const int i = block + q;
            for (int j = block; j < i; j++) {
                const double *other = h + (size_t)j * width;
                rows[q][j] = (rows[q][j] - FP_NAME(fp_awgn_dot_partial)(rows[q], other, j)) / other[j];
            }
            const double pivot = rows[q][i] - FP_NAME(fp_awgn_dot_partial)(rows[q], rows[q], i);
            rows[q][i] = pivot > 1e-15 * whole[q] ? sqrt(pivot) : 1e64;
        }
    }
}

static void FP_NAME(fp_awgn_backsolve)(const double *restrict h, int m, int width, double *restrict b)
{
    for (int i = 0; i < m; i++) {
        double sum = b[i];
        for (int k = 0; k < i; k++)
            sum -= h[(size_t)i * width + k] * b[k];
        b[i] = sum / h[(size_t)i * width + i];
    }
    for (int i = m - 1; i >= 0; i--) {
        b[i] /= h[(size_t)i * width + i];
        for (int k = 0; k < i; k++)
            b[k] -= h[(size_t)i * width + k] * b[i];
    }
}

/* i for the rows of the table, for the current l; gauss holds g of each row. */
static void FP_NAME(fp_awgn_values)(fp_awgn *a, const double *gauss, int m, double *value)
{
    double *restrict cl = a->line[4];
    for (int k = 0; k < a->padded; k++)
        cl[k] = a->c[k] * a->l[k];
    for (int j = 0; j < m; j++)
        value[j] = gauss[j] + a->level - FP_NAME(fp_awgn_dot)(a->table + (size_t)j * a->padded, cl, a->padded);
}

/* g of m radii */
static void FP_NAME(fp_awgn_gaussian_terms)(const fp_awgn *a, const double *r, int m, double *gauss)
{
    for (int j = 0; j < m; j++)
        gauss[j] = fp_awgn_gaussian_term(a, r[j]);
}

/* The longest step in [0, 1] that keeps v + step dv positive, with a margin. */
FP_INLINE double FP_NAME(fp_awgn_longest_step)(const double *v, const double *dv, int m)
{
    double step = 1.0;
    for (int j = 0; j < m; j++)
        if (dv[j] < 0.0 && -0.995 * v[j] / dv[j] < step)
            step = -0.995 * v[j] / dv[j];
    return step;
}

/* Weights p on the m rows of the table to a duality gap of `tolerance`; returns the last I.  g of the rows is in
 * gauss. */
static double FP_NAME(fp_awgn_weights)(fp_awgn *a, const double *gauss, int m, double *p, double tolerance)
{
    const int n = a->padded, width = m;
    double *gram = a->gram, *value = gram + (size_t)m * m, *z = value + m, *one = z + m, *b = one + m;
    double *dp = b + m, *dz = dp + m, lambda = 0.0, information = 0.0;
    double **rows = malloc(m * sizeof *rows), *restrict scale = a->line[5];
    if (!rows)
        return NAN;
    for (int j = 0; j < m; j++) {
        rows[j] = a->table + (size_t)j * n;
        p[j] = 1.0 / m;
    }
    for (int round = 0; round < 60; round++) {
        a->work += 0.5 * m * m * (n + m / 3.0) + 3.0 * m * n;
        double total = 0.0, best = -INFINITY, complement = 0.0;
        FP_NAME(fp_awgn_mixture)(a, p, m);
        FP_NAME(fp_awgn_values)(a, gauss, m, value);
        information = 0.0;
        for (int j = 0; j < m; j++) {
            information += p[j] * value[j];
            total += p[j];
            best = value[j] > best ? value[j] : best;
        }
        information /= total;
        if (round == 0) {
            lambda = best + 0.1;
            for (int j = 0; j < m; j++)
                z[j] = lambda - value[j] > 1e-2 ? lambda - value[j] : 1e-2;
        }
        for (int j = 0; j < m; j++)
            complement += p[j] * z[j];
        if ((best - information <= tolerance && complement <= tolerance) || complement <= 1e-4 * tolerance)
            break;
        for (int k = 0; k < n; k++)
            scale[k] = a->c[k] / a->line[3][k];
        FP_NAME(fp_awgn_gram)(rows, m, scale, n, a->line[4], gram, width);
        gram[0] += a->deep / p[0];
        for (int j = 0; j < m; j++) {
            gram[(size_t)j * width + j] += z[j] / p[j];
            one[j] = 1.0;
        }
        FP_NAME(fp_awgn_factor)(gram, m, width);
        FP_NAME(fp_awgn_backsolve)(gram, m, width, one);
        double ones = 0.0, mean = complement / m, target = 0.0, dlambda = 0.0;
        for (int j = 0; j < m; j++)
            ones += one[j];
        for (int corrector = 0; corrector < 2; corrector++) {
            double sum = 0.0;
            for (int j = 0; j < m; j++) {
                const double cross = corrector ? dp[j] * dz[j] : 0.0;
                dz[j] = (target - cross) / p[j] - z[j]; /* the residual of complementarity divided by p */
                b[j] = value[j] + z[j] - lambda + dz[j];
            }
            FP_NAME(fp_awgn_backsolve)(gram, m, width, b);
            for (int j = 0; j < m; j++)
                sum += b[j];
            dlambda = (sum - (1.0 - total)) / ones;
            for (int j = 0; j < m; j++) {
                dp[j] = b[j] - dlambda * one[j];
                dz[j] -= z[j] / p[j] * dp[j];
            }
            if (!corrector) {
                const double pa = FP_NAME(fp_awgn_longest_step)(p, dp, m), za = FP_NAME(fp_awgn_longest_step)(z, dz, m);
                double after = 0.0;
                for (int j = 0; j < m; j++)
                    after += (p[j] + pa * dp[j]) * (z[j] + za * dz[j]);
                const double ratio = after / complement;
                target = mean * ratio * ratio * ratio;
            }
        }
        const double pa = FP_NAME(fp_awgn_longest_step)(p, dp, m), za = FP_NAME(fp_awgn_longest_step)(z, dz, m);
        const double step = pa < za ? pa : za;
        for (int j = 0; j < m; j++) {
            p[j] += step * dp[j];
            z[j] += step * dz[j];
        }
        lambda += step * dlambda;
    }
    free(rows);
    return information;
}
