/* Two mixtures at nodes on the line and on discs in the plane; no include guard, included once per instruction set.
 *
 * Notation of fp_contour_several_sigmas_solver.h and fp_log_ratio.h. Eight lanes hold nodes or discs, so that every
 * instruction set gives the same bits.
 */
/* bounds: proved - errors of logarithms at nodes, of Taylor coefficients on discs: theorem 2.20 of
 * docs/proofs/contour.md */

/* log of a density without sqrt(2 pi), the bound of its error, and the terms e^(h - peak) */
static inline void FP_NAME(fp_several_density)(const fp_mixture *side, const double *restrict x, double *restrict e,
                                               double *restrict log_sum, double *restrict error, double *restrict total)
{
    double peak[FP_LANES], sum[FP_LANES], load[FP_LANES];
    FP_LANE_LOOP(k) peak[k] = -INFINITY, sum[k] = load[k] = 0.0;
    for (ptrdiff_t i = 0; i < side->n; i++) {
        const double mean = side->mean[i], inverse = side->inverse[i], weight = side->log_weight[i];
        FP_LANE_LOOP(k) {
            const double z = (x[k] - mean) * inverse, h = weight - 0.5 * z * z;
            peak[k] = h > peak[k] ? h : peak[k];
        }
    }
    for (ptrdiff_t i = 0; i < side->n; i++) {
        const double mean = side->mean[i], inverse = side->inverse[i], weight = side->log_weight[i],
            own = side->load[i];
        double *restrict term = e + FP_LANES * i;
        FP_LANE_LOOP(k) {
            const double z = (x[k] - mean) * inverse, value = fp_exp((weight - 0.5 * z * z) - peak[k]);
            term[k] = value;
            sum[k] += value, load[k] += value * (5.0 * z * z + 6.0 * own);
        }
    }
    FP_LANE_LOOP(k) {
        log_sum[k] = peak[k] + fp_log(sum[k]);
        error[k] = FP_U * (6.0 + side->n + load[k] / sum[k] + 3.0 * fabs(peak[k]) + 3.0 * fabs(log_sum[k]));
        total[k] = sum[k];
    }
}

/* log p, log q (without sqrt(2 pi)) and l with bounds of their errors at n nodes, n a multiple of eight; where parts of
 * the mixtures are shared, l = log1p((p - q) / q), with p - q in the coupled form. */
static void FP_NAME(fp_several_nodes)(const fp_log_ratio *r, int n, const double *restrict x, double *restrict lp,
                                      double *restrict l, double *restrict dp, double *restrict dl)
{
    const fp_coupling *c = &r->pairs;
    const fp_mixture *lone = &c->unmatched;
    const double count = r->q.n + c->n + lone->n + 12.0;
    double e[FP_LANES * FP_SEVERAL_MOST], lq[FP_LANES], dq[FP_LANES], total[FP_LANES];
    for (ptrdiff_t b = 0; b < n; b += FP_LANES) {
        const double *at = x + b;
        FP_NAME(fp_several_density)(&r->p, at, e, lp + b, dp + b, total);
        FP_NAME(fp_several_density)(&r->q, at, e, lq, dq, total);
        FP_LANE_LOOP(k) l[b + k] = lp[b + k] - lq[k], dl[b + k] = dp[b + k] + dq[k] + FP_U * fabs(l[b + k]);
        if (!r->coupled)
            continue;
        double u[FP_LANES], size[FP_LANES], whole[FP_LANES];
        FP_LANE_LOOP(k) u[k] = size[k] = whole[k] = 0.0;
        for (ptrdiff_t j = 0; j < r->q.n; j++) {
            const double mean = r->q.mean[j], inverse = r->q.inverse[j], excess = c->excess[j], own = r->q.load[j];
            const double *restrict term = e + FP_LANES * j;
            FP_LANE_LOOP(k) {
                const double z = (at[k] - mean) * inverse, value = excess * (term[k] / total[k]);
                u[k] += value, whole[k] += fabs(value);
                size[k] += fabs(value) * (count + 2.0 * fabs(lq[k]) + 5.0 * z * z + 6.0 * own);
            }
        }
        for (ptrdiff_t i = 0; i < c->n; i++) {
            const double mean = c->mean[i], inverse = c->inverse[i], weight = c->log_weight[i], own = c->load[i];
            const double shift = c->shift[i], stretch = c->stretch[i], scale = c->log_scale[i];
            FP_LANE_LOOP(k) {
                const double away = at[k] - mean, z = away * inverse, dz = away * stretch + shift,
                    parts = fabs(away * stretch) + fabs(shift);
                const double d = scale + 0.5 * dz * (2.0 * z - dz), h = weight - 0.5 * z * z - lq[k], rho = fp_exp(h);
                const double value = d < 30.0 ? rho * fp_expm1(d < 30.0 ? d : 30.0) : fp_exp(h + d);
                const double both = rho + value > 0.0 ? rho + value : 0.0;
                u[k] += value, whole[k] += fabs(value);
                size[k] += fabs(value) * (count + 2.0 * fabs(lq[k]) + 5.0 * z * z + 6.0 * own)
                           + both * (10.0 * parts * (2.0 * fabs(z) + fabs(dz)) + 6.0 * fabs(scale));
            }
        }
        for (ptrdiff_t i = 0; i < lone->n; i++) {
            const double mean = lone->mean[i], inverse = lone->inverse[i], weight = lone->log_weight[i],
                own = lone->load[i];
            FP_LANE_LOOP(k) {
                const double z = (at[k] - mean) * inverse, value = fp_exp(weight - 0.5 * z * z - lq[k]);
                u[k] += value, whole[k] += value;
                size[k] += value * (count + 2.0 * fabs(lq[k]) + 5.0 * z * z + 6.0 * own);
            }
        }
        FP_LANE_LOOP(k) {
            const double wrong = 1.01 * (FP_U * size[k] + dq[k] * whole[k]) + (c->defect + 1e-300);
            const int near = fabs(u[k]) + wrong < 0.5;
            const double value = fp_log1p(near ? u[k] : 0.0);
            const double error = wrong / (1.0 + (near ? u[k] - wrong : 0.0)) + 6.0 * FP_U * fabs(value);
            const int better = near && error < dl[b + k];
            l[b + k] = better ? value : l[b + k], dl[b + k] = better ? error : dl[b + k];
        }
    }
}

/* One side at the centres of eight discs: derivatives of log p, and responsibilities */
static inline void FP_NAME(fp_several_centre)(const fp_mixture *side, const double *restrict x,
                                              const double *restrict y,
                                              fp_disc_side *restrict out)
{
    double peak[FP_LANES], re[FP_LANES], im[FP_LANES], spread[FP_LANES], rates[FP_LANES], turned[FP_LANES];
    double a_re[FP_LANES], a_im[FP_LANES], b_re[FP_LANES], b_im[FP_LANES], c_re[FP_LANES], c_im[FP_LANES];
    double *restrict part_re = out->part_re, *restrict part_im = out->part_im, *restrict size = out->size;
    FP_LANE_LOOP(k) {
        peak[k] = -INFINITY;
        re[k] = im[k] = a_re[k] = a_im[k] = b_re[k] = b_im[k] = c_re[k] = c_im[k] = spread[k] = rates[k] = 0.0;
        turned[k] = 0.0;
    }
    for (ptrdiff_t i = 0; i < side->n; i++) {
        const double mean = side->mean[i], inverse = side->inverse[i], weight = side->log_weight[i];
        FP_LANE_LOOP(k) {
            const double z = (x[k] - mean) * inverse, v = y[k] * inverse, h = weight - 0.5 * (z - v) * (z + v);
            peak[k] = h > peak[k] ? h : peak[k];
        }
    }
    for (ptrdiff_t i = 0; i < side->n; i++) {
        const double mean = side->mean[i], inverse = side->inverse[i], weight = side->log_weight[i];
        double *restrict row_re = part_re + FP_LANES * i, *restrict row_im = part_im + FP_LANES * i;
        double *restrict row = size + FP_LANES * i, *restrict low = out->below + FP_LANES * i;
        FP_LANE_LOOP(k) {
            const double z = (x[k] - mean) * inverse, v = y[k] * inverse, h = weight - 0.5 * (z - v) * (z + v);
            const double value = fp_exp(h - peak[k]), turn = -z * v;
            const double angle = fabs(turn) < FP_LARGEST_ANGLE ? turn : 0.0;
            double s, c;
            fp_sin_cos_mod_pi(0.5 * angle, &s, &c);
            const double er = value * (1.0 - 2.0 * s * s), ei = value * (2.0 * s * c), t = inverse * inverse;
            const double g_re = -z * inverse, g_im = -v * inverse;
            turned[k] = angle != turn && value > 0.0 ? INFINITY : turned[k];
            row_re[k] = er, row_im[k] = ei, row[k] = value, low[k] = h - peak[k];
            re[k] += er, im[k] += ei;
            a_re[k] += er * g_re - ei * g_im, a_im[k] += er * g_im + ei * g_re;
            b_re[k] += er * t, b_im[k] += ei * t;
        }
    }
    FP_LANE_LOOP(k) {
        const double square = re[k] * re[k] + im[k] * im[k], scale = 1.0 / square;
        const double ar = (a_re[k] * re[k] + a_im[k] * im[k]) * scale, ai = (a_im[k] * re[k] - a_re[k] * im[k]) * scale;
        const double br = (b_re[k] * re[k] + b_im[k] * im[k]) * scale, bi = (b_im[k] * re[k] - b_re[k] * im[k]) * scale;
        a_re[k] = ar, a_im[k] = ai, b_re[k] = br, b_im[k] = bi;
        out->log[k] = peak[k] + 0.5 * fp_log(square), out->peak[k] = peak[k], out->inverse[k] = sqrt(scale);
    }
    for (ptrdiff_t i = 0; i < side->n; i++) {
        const double mean = side->mean[i], inverse = side->inverse[i];
        const double *restrict row_re = part_re + FP_LANES * i, *restrict row_im = part_im + FP_LANES * i;
        const double *restrict row = size + FP_LANES * i;
        FP_LANE_LOOP(k) {
            const double off_re = -(x[k] - mean) * inverse * inverse - a_re[k],
                off_im = -y[k] * inverse * inverse - a_im[k];
            const double sq_re = off_re * off_re - off_im * off_im, sq_im = 2.0 * off_re * off_im;
            const double er = row_re[k], ei = row_im[k];
            const double rate_re = inverse * inverse - b_re[k];
            c_re[k] += er * sq_re - ei * sq_im, c_im[k] += er * sq_im + ei * sq_re;
            spread[k] += row[k] * (off_re * off_re + off_im * off_im);
            rates[k] += row[k] * sqrt(rate_re * rate_re + b_im[k] * b_im[k]);
        }
    }
    FP_LANE_LOOP(k) {
        const double scale = out->inverse[k] * out->inverse[k];
        out->a_re[k] = a_re[k], out->a_im[k] = a_im[k], out->b_re[k] = b_re[k], out->b_im[k] = b_im[k];
        out->c_re[k] = (c_re[k] * re[k] + c_im[k] * im[k]) * scale - b_re[k];
        out->c_im[k] = (c_im[k] * re[k] - c_re[k] * im[k]) * scale - b_im[k];
        out->turned[k] = turned[k];
        out->spread[k] = spread[k] * out->inverse[k] + 0.5 * rates[k] * out->inverse[k];
    }
}

/* Bounds on discs of the given radii: of |log p - (log p(z) + a d - b d^2 / 2)|, infinite where p may vanish, and of
 * the error of the computed expansion */
static inline void FP_NAME(fp_several_disc)(const fp_mixture *side, const double *restrict x, const double *restrict y,
                                            const double *restrict radius, fp_disc_side *restrict out)
{
    double kappa[FP_LANES], slack[FP_LANES];
    const double *restrict a_re = out->a_re, *restrict a_im = out->a_im, *restrict b_re = out->b_re,
        *restrict b_im = out->b_im;
    const double *restrict scale = out->inverse;
    double reach[FP_LANES]; /* of the linear and the quadratic term on the disc */
    FP_LANE_LOOP(k) {
        kappa[k] = 0.0, slack[k] = out->turned[k];
        const double a = fabs(a_re[k]) + fabs(a_im[k]), b = fabs(b_re[k]) + fabs(b_im[k]);
        reach[k] = a * radius[k] + b * radius[k] * radius[k];
    }
    for (ptrdiff_t i = 0; i < side->n; i++) {
        const double mean = side->mean[i], inverse = side->inverse[i], own = side->load[i], many = side->n;
        const double *restrict low = out->below + FP_LANES * i;
        FP_LANE_LOOP(k) {
            const double z = (x[k] - mean) * inverse, v = y[k] * inverse, t = inverse * inverse;
            const double off_re = -z * inverse - a_re[k], off_im = -v * inverse - a_im[k];
            const double rate_re = t - b_re[k], rate_im = b_im[k];
            const double grow = sqrt(off_re * off_re + off_im * off_im) * radius[k]
                                + sqrt(rate_re * rate_re + rate_im * rate_im) * (0.5 * radius[k] * radius[k]);
            /* exponents are added first: a component that underflows at the centre may count elsewhere on the disc */
            const double most = low[k] + grow, r = fp_exp(most < 700.0 ? most : 700.0) * scale[k];
            const double units = 12.0 + 4.0 * (z * z + v * v) + 4.0 * own + many + (many + 8.0) * reach[k];
            kappa[k] += r * (0.5 * grow * grow) * (1.0 + 32.0 * FP_U * units);
            slack[k] += 2.0 * r * units;
        }
    }
    FP_LANE_LOOP(k) {
        const double error = FP_U * (4.0 * slack[k] + 4.0 * fabs(out->peak[k]));
        const double least = kappa[k] * (1.0 + 2e-6) + 1e-300 + 1e6 * error * error;
        out->kappa[k] = least < 0.7 ? least : INFINITY;
        out->bound[k] = least < 0.7 ? -fp_log1p(-(least < 0.7 ? least : 0.0)) : INFINITY;
        out->slack[k] = error;
    }
}

/* A bound of |log(p/q)| on the discs from the coupled form of p - q */
static inline void FP_NAME(fp_several_near)(const fp_log_ratio *r, const double *restrict x, const double *restrict y,
                                            const double *restrict radius, const fp_disc_side *restrict q,
                                            double *restrict bound)
{
    const fp_coupling *c = &r->pairs;
    const fp_mixture *lone = &c->unmatched;
    double u[FP_LANES];
    FP_LANE_LOOP(k) u[k] = 0.0;
    for (ptrdiff_t group = 0; group < 3; group++) {
        const int n = group == 0 ? r->q.n : group == 1 ? c->n : lone->n;
        const double *means = group == 0 ? r->q.mean : group == 1 ? c->mean : lone->mean;
        const double *inverses = group == 0 ? r->q.inverse : group == 1 ? c->inverse : lone->inverse;
        const double *weights = group == 0 ? r->q.log_weight : group == 1 ? c->log_weight : lone->log_weight;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double mean = means[i], inverse = inverses[i], weight = weights[i];
            const double excess = group == 0 ? fabs(c->excess[i]) : 1.0,
                stretch = group == 1 ? fabs(c->stretch[i]) : 0.0;
            const double shift = group == 1 ? fabs(c->shift[i]) : 0.0, scale = group == 1 ? fabs(c->log_scale[i]) : 0.0;
            FP_LANE_LOOP(k) {
                const double z = (x[k] - mean) * inverse, v = y[k] * inverse, t = inverse * inverse;
                const double off_re = -z * inverse - q->a_re[k], off_im = -v * inverse - q->a_im[k];
                const double rate_re = t - q->b_re[k], rate_im = q->b_im[k];
                const double grow = sqrt(off_re * off_re + off_im * off_im) * radius[k]
                                    + sqrt(rate_re * rate_re + rate_im * rate_im) * (0.5 * radius[k] * radius[k]);
                const double far = fabs(x[k] - mean) + fabs(y[k]) + radius[k], wide = far * stretch + shift;
                const double d = scale + 0.5 * wide * (2.0 * far * inverse + wide);
                const double h = weight - 0.5 * (z - v) * (z + v) - q->log[k] + grow;
                const double factor = group == 1 ? fp_expm1(d < 700.0 ? d : 700.0) : excess;
                const double units = 12.0 + 4.0 * (z * z + v * v) + 6.0 * fabs(weight) + 2.0 * fabs(q->log[k]) + grow;
                u[k] += factor * fp_exp(h < 700.0 ? h : 700.0) * (1.0 + 32.0 * FP_U * units);
            }
        }
    }
    FP_LANE_LOOP(k) {
        const double most = (u[k] * (1.0 + 1e-6 + 2.0 * q->slack[k]) + c->defect + 1e-300) / (1.0 - q->kappa[k]);
        bound[k] = q->kappa[k] < 0.9 && most < 0.9 ? -fp_log1p(-(most < 0.9 ? most : 0.0)) : INFINITY;
    }
}

/* Both sides at eight centres; the radius of a disc is the given one, or, where `search` is set, the largest found
 * below it on which the bounds are small. `again`: the centres are those of the last call. */
static void FP_NAME(fp_several_discs)(const fp_log_ratio *r, const double *restrict x, const double *restrict y,
                                      int search,
                                      int again, double *restrict radius, fp_discs *restrict out)
{
    if (!again) {
        FP_NAME(fp_several_centre)(&r->p, x, y, &out->p);
        FP_NAME(fp_several_centre)(&r->q, x, y, &out->q);
    }
    if (search)
        FP_LANE_LOOP(k) {
            const double most = out->p.spread[k] > out->q.spread[k] ? out->p.spread[k] : out->q.spread[k];
            const double limit = 0.7 / sqrt(most + 1e-300);
            radius[k] = radius[k] < limit ? radius[k] : limit;
        }
    for (ptrdiff_t attempt = 0; attempt < 30; attempt++) {
        int open = 0;
        FP_NAME(fp_several_disc)(&r->p, x, y, radius, &out->p);
        FP_NAME(fp_several_disc)(&r->q, x, y, radius, &out->q);
        if (!search)
            break;
        for (ptrdiff_t k = 0; k < FP_LANES; k++)
            if (!(out->p.bound[k] < 0.45 && out->q.bound[k] < 0.45))
                radius[k] *= 0.7, open = 1;
        if (!open)
            break;
    }
    FP_LANE_LOOP(k) out->near[k] = INFINITY;
    if (r->coupled)
        FP_NAME(fp_several_near)(r, x, y, radius, &out->q, out->near);
}

