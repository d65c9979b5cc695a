/* The log-likelihood ratio at a point, with proved errors; included once per instruction set (fp_hockey_stick.h). */

typedef long long FP_NAME(fp_lanes) __attribute__((vector_size(64)));

/* ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)) */
static inline double FP_NAME(fp_total)(fp_v8 a)
{
    fp_v8 half = a + __builtin_shuffle(a, (FP_NAME(fp_lanes)){4, 5, 6, 7, 0, 1, 2, 3});
    fp_v8 quarter = half + __builtin_shuffle(half, (FP_NAME(fp_lanes)){2, 3, 0, 1, 4, 5, 6, 7});
    return quarter[0] + quarter[1];
}

static inline fp_v8 FP_NAME(fp_larger)(fp_v8 a, fp_v8 b)
{
    fp_v8i more = b > a;
    return (fp_v8)((more & (fp_v8i)b) | (~more & (fp_v8i)a));
}

/* Largest entry of h[0 .. padded). */
static inline double FP_NAME(fp_peak)(const double *h, int padded)
{
    fp_v8 top = *(const fp_v8 *)h;
    for (int i = FP_LANES; i < padded; i += FP_LANES)
        top = FP_NAME(fp_larger)(top, *(const fp_v8 *)(h + i));
    top = FP_NAME(fp_larger)(top, __builtin_shuffle(top, (FP_NAME(fp_lanes)){4, 5, 6, 7, 0, 1, 2, 3}));
    top = FP_NAME(fp_larger)(top, __builtin_shuffle(top, (FP_NAME(fp_lanes)){2, 3, 0, 1, 4, 5, 6, 7}));
    return top[0] > top[1] ? top[0] : top[1];
}

static inline fp_v8 FP_NAME(fp_absolute)(fp_v8 a)
{
    return (fp_v8)((fp_v8i)a & 0x7fffffffffffffffLL);
}

#define FP_AT(array, i) (*(const fp_v8 *)((array) + (i)))

/* h_i - max h, e_i = e^{h_i - max h} and g_i; returns max h. */
static inline double FP_NAME(fp_terms)(const fp_side *side, double x, double *restrict h, double *restrict e,
                                       double *restrict g)
{
    int padded = side->padded;
    const double *restrict mean = side->mean, *restrict inverse = side->inverse, *restrict lw = side->log_weight;
    for (int i = 0; i < padded; ++i) {
        double z = (x - mean[i]) * inverse[i];
        h[i] = lw[i] - 0.5 * z * z;
        g[i] = -z * inverse[i];
    }
    double peak = FP_NAME(fp_peak)(h, padded);
    for (int i = 0; i < padded; ++i) {
        h[i] -= peak;
        e[i] = fp_exp(h[i]);
    }
    return peak;
}

typedef struct {
    double log, score, error;            /* log density (without sqrt(2 pi)), its derivative, its error */
    double score_error, rate, spread, spread_error; /* b = E t, Var_r(g) */
    double peak, mass;                    /* log of the largest term; sum of e */
} FP_NAME(fp_moments);

/* log density and score; every error below is first order in the roundings, which FP_ROUND overstates. */
static inline void FP_NAME(fp_side_log)(const fp_side *side, double x, double *restrict h, double *restrict e,
                                        double *restrict g, FP_NAME(fp_moments) *out)
{
    double peak = FP_NAME(fp_terms)(side, x, h, e, g);
    fp_v8 mass = {0}, score = {0}, load = {0};
    for (int i = 0; i < side->padded; i += FP_LANES) {
        fp_v8 ei = FP_AT(e, i), gi = FP_AT(g, i);
        mass += ei;
        score += ei * gi;
        load += ei * (gi * (FP_AT(side->mean, i) - x) + FP_AT(side->load, i));
    }
    out->mass = FP_NAME(fp_total)(mass);
    out->peak = peak;
    out->log = peak + fp_log(out->mass);
    out->score = FP_NAME(fp_total)(score) / out->mass;
    out->error = FP_ROUND * (4.0 + FP_NAME(fp_total)(load) / out->mass + fabs(peak)) + 2.3e-16 * side->padded;
}

/* The rest of the local analysis, from e and g left by fp_side_log. */
static inline void FP_NAME(fp_side_spread)(const fp_side *side, double x, const double *restrict e,
                                           const double *restrict g, FP_NAME(fp_moments) *out)
{
    fp_v8 rate = {0}, spread = {0}, score_error = {0}, spread_error = {0};
    double a = out->score, base = 4.0 + fabs(out->peak);
    for (int i = 0; i < side->padded; i += FP_LANES)
        rate += FP_AT(e, i) * FP_AT(side->precision, i);
    double b = FP_NAME(fp_total)(rate) / out->mass;
    for (int i = 0; i < side->padded; i += FP_LANES) {
        fp_v8 ei = FP_AT(e, i), gi = FP_AT(g, i), ti = FP_AT(side->precision, i), away = gi - a;
        fp_v8 off = FP_NAME(fp_absolute)(away), size = FP_NAME(fp_absolute)(gi);
        fp_v8 eta = base + gi * (FP_AT(side->mean, i) - x) + FP_AT(side->load, i);
        spread += ei * away * away;
        score_error += ei * (eta * off + size);
        spread_error += ei * (eta * (away * away + ti + b) + (size + fabs(a)) * off);
    }
    double scale = (2.0 * FP_ROUND + 2.3e-16 * side->padded) / out->mass;
    out->rate = b;
    out->spread = FP_NAME(fp_total)(spread) / out->mass;
    out->score_error = scale * FP_NAME(fp_total)(score_error) + FP_ROUND * fabs(a);
    out->spread_error = scale * FP_NAME(fp_total)(spread_error);
}

/* |log p(x + d) - (log p + a d - b d^2 / 2)| <= returned bound for complex |d| <= radius; infinity when p may vanish.
 * With u_i = (g_i - a) d - (t_i - b) d^2 / 2 one has sum r_i u_i = 0, hence
 * |sum r_i e^{u_i} - 1| <= sum r_i (e^k_i - 1 - k_i) <= sum r_i k_i^2 e^{k_i} / 2 with k_i = |g_i - a| R + |t_i - b| R^2 / 2.
 */
static inline double FP_NAME(fp_side_kappa)(const fp_side *side, const double *restrict h, const double *restrict g,
                                            const FP_NAME(fp_moments) *at, double radius, double *restrict work)
{
    double a = at->score, b = at->rate, half = 0.5 * radius * radius;
    for (int i = 0; i < side->padded; ++i) {
        double k = fabs(g[i] - a) * radius + fabs(side->precision[i] - b) * half;
        work[i] = (0.5 * k * k) * fp_exp(h[i] + k);
    }
    fp_v8 sum = {0};
    for (int i = 0; i < side->padded; i += FP_LANES)
        sum += FP_AT(work, i);
    double residue = at->score_error * radius + FP_ROUND * b * half * side->padded;
    return FP_NAME(fp_total)(sum) / at->mass * (1.0 + 1e-6) + residue * residue;
}

typedef struct {
    double value, error, slope, slope_error, curve, curve_error;
    int good;
} FP_NAME(fp_coupled);

/* L, L', L'' in the coupled form; `eq`, `gq` work space, q's moments at x given. good = 0 when |u| >= 1/2. */
static inline void FP_NAME(fp_couple_at)(const fp_ratio *r, double x, const FP_NAME(fp_moments) *q, double *restrict rho,
                                         double *restrict ratio, FP_NAME(fp_coupled) *out)
{
    const fp_coupling *c = &r->pairs;
    double a = q->score, log_q = q->log;
    const double *restrict mean = c->mean, *restrict inverse = c->inverse, *restrict lw = c->log_weight;
    const double *restrict shift = c->shift, *restrict stretch = c->stretch, *restrict scale = c->log_scale;
    for (int k = 0; k < c->padded; ++k) {
        double z = (x - mean[k]) * inverse[k], dz = (x - mean[k]) * stretch[k] + shift[k];
        double d = scale[k] + 0.5 * dz * (2.0 * z - dz);
        double h = lw[k] - 0.5 * z * z - log_q;
        rho[k] = fp_exp(h);
        /* where P's component dominates Q's, e^{h + d} at once: 0 * infinity cannot be */
        ratio[k] = d < 30.0 ? rho[k] * fp_expm1(d) : fp_exp(h + d);
    }
    fp_v8 u = {0}, ua = {0}, du = {0}, dua = {0}, ddu = {0}, ddua = {0};
    double dq = q->rate - q->spread;
    for (int k = 0; k < c->padded; k += FP_LANES) {
        fp_v8 rk = FP_AT(rho, k), ek = FP_AT(ratio, k), ck = FP_AT(c->mean, k), ik = FP_AT(c->inverse, k);
        fp_v8 z = (x - ck) * ik, st = FP_AT(c->stretch, k), dz = (x - ck) * st + FP_AT(c->shift, k);
        fp_v8 g = -z * ik, away = g - a, both = rk + ek;
        fp_v8 d1 = z * st + dz * FP_AT(c->inverse_p, k), d2 = FP_AT(c->bend, k);
        fp_v8 first = away * ek + both * d1;
        fp_v8 second = (away * away - FP_AT(c->precision, k) + dq) * ek + both * (2.0 * away * d1 + d2 + d1 * d1);
        fp_v8 eta = 8.0 + z * z + dz * dz + FP_AT(c->load, k) + FP_NAME(fp_absolute)(z * dz);
        fp_v8 ea = FP_NAME(fp_absolute)(ek), d1a = FP_NAME(fp_absolute)(z * st) + FP_NAME(fp_absolute)(dz * FP_AT(c->inverse_p, k));
        fp_v8 wide = FP_NAME(fp_absolute)(g) + fabs(a);
        fp_v8 slip = both * (FP_NAME(fp_absolute)(dz) * (2.0 * FP_NAME(fp_absolute)(z) + FP_NAME(fp_absolute)(dz))
                             + FP_NAME(fp_absolute)(FP_AT(c->log_scale, k)));
        u += ek;
        ua += eta * ea + slip;
        du += first;
        dua += eta * (ea * wide + both * d1a) + slip * wide;
        ddu += second;
        ddua += eta * (ea * (wide * wide + FP_AT(c->precision, k) + fabs(dq)) + both * (2.0 * wide * d1a + FP_NAME(fp_absolute)(d2) + d1a * d1a))
                + slip * wide * wide;
    }
    double sum = FP_NAME(fp_total)(u), defect = r->coupling_defect;
    double scale_error = 2.0 * FP_ROUND * (1.0 + fabs(log_q)) + 2.3e-16 * c->padded;
    double u_error = scale_error * FP_NAME(fp_total)(ua) + defect;
    out->good = fabs(sum) + u_error < 0.5;
    double below = 1.0 + sum - u_error;
    out->value = fp_log1p(sum);
    out->error = out->good ? u_error / below + FP_ROUND * fabs(out->value) : INFINITY;
    out->slope = FP_NAME(fp_total)(du) / (1.0 + sum);
    out->slope_error = (scale_error * FP_NAME(fp_total)(dua) + (fabs(out->slope) + fabs(a)) * u_error) / below + FP_ROUND * fabs(out->slope);
    out->curve = FP_NAME(fp_total)(ddu) / (1.0 + sum) - out->slope * out->slope;
    out->curve_error = (scale_error * FP_NAME(fp_total)(ddua) + (fabs(out->curve) + a * a + fabs(dq)) * u_error) / below
                       + 2.0 * fabs(out->slope) * out->slope_error + 4.0 * FP_ROUND * (fabs(out->curve) + out->slope * out->slope);
}

/* |log(1 + u)| on the disc of that radius, infinity when |u| may reach 1/2; the disc bound of q is `kappa_q`. */
static inline double FP_NAME(fp_couple_bound)(const fp_ratio *r, double x, const FP_NAME(fp_moments) *q,
                                              double kappa_q, double radius,
                                              double *restrict work)
{
    const fp_coupling *c = &r->pairs;
    double a = q->score, b = q->rate, half = 0.5 * radius * radius;
    for (int k = 0; k < c->padded; ++k) {
        double z = (x - c->mean[k]) * c->inverse[k], dz = (x - c->mean[k]) * c->stretch[k] + c->shift[k];
        double d0 = fabs(c->log_scale[k]) + 0.5 * fabs(dz) * (2.0 * fabs(z) + fabs(dz));
        double d1 = fabs(z * c->stretch[k]) + fabs(dz * c->inverse_p[k]);
        double grow = fabs(-z * c->inverse[k] - a) * radius + fabs(c->precision[k] - b) * half;
        double d = d0 + d1 * radius + fabs(c->bend[k]) * half;
        double h = c->log_weight[k] - 0.5 * z * z - q->log + grow;
        work[k] = d < 30.0 ? fp_exp(h) * fp_expm1(d) : fp_exp(h + d);
    }
    fp_v8 sum = {0};
    for (int k = 0; k < c->padded; k += FP_LANES)
        sum += FP_AT(work, k);
    double u = FP_NAME(fp_total)(sum) / (1.0 - kappa_q) * (1.0 + 1e-6) + r->coupling_defect;
    return u < 0.5 ? -log1p(-u) : INFINITY;
}

/* Of the two forms the one with the smaller error, for each derivative by itself. */
static inline void FP_NAME(fp_better)(const FP_NAME(fp_moments) *p, const FP_NAME(fp_moments) *q,
                                      const FP_NAME(fp_coupled) *c, fp_taylor *out)
{
    out->value = p->log - q->log;
    out->error = p->error + q->error;
    out->slope = p->score - q->score;
    out->slope_error = p->score_error + q->score_error + FP_ROUND * fabs(out->slope);
    if (c->good && c->error < out->error)
        out->value = c->value, out->error = c->error;
    if (c->good && c->slope_error < out->slope_error)
        out->slope = c->slope, out->slope_error = c->slope_error;
}

/* L and L' with their errors in the tilted form (fp_tilt). */
static void FP_NAME(fp_tilt_at)(const fp_ratio *r, double x, fp_taylor *out)
{
    const fp_tilt *tilt = &r->tilt;
    double *restrict h = r->scratch, *restrict e = h + tilt->padded, away = x - tilt->centre;
    const double *restrict gap = tilt->gap, *restrict rate = tilt->rate, *restrict lw = tilt->log_weight;
    for (int i = 0; i < tilt->padded; ++i)
        h[i] = lw[i] + rate[i] * (away - 0.5 * gap[i]);
    double peak = FP_NAME(fp_peak)(h, tilt->padded);
    for (int i = 0; i < tilt->padded; ++i)
        e[i] = fp_exp(h[i] - peak);
    fp_v8 mass = {0}, slope = {0}, slip = {0}, size = {0}, spread = {0};
    for (int i = 0; i < tilt->padded; i += FP_LANES) {
        fp_v8 ei = FP_AT(e, i), bi = FP_AT(rate, i), wide = FP_NAME(fp_absolute)(bi);
        fp_v8 lift = (fp_v8)((fp_v8i)(ei > 0.0) & (fp_v8i)FP_NAME(fp_absolute)(FP_AT(lw, i)));
        fp_v8 eta = 4.0 + fabs(peak) + lift + wide * (fabs(away) + FP_NAME(fp_absolute)(FP_AT(gap, i)));
        mass += ei;
        slope += ei * bi;
        size += ei * wide;
        slip += ei * eta;
        spread += ei * eta * wide;
    }
    double total = FP_NAME(fp_total)(mass), add = 2.3e-16 * tilt->padded;
    out->value = tilt->sign * (peak + fp_log(total));
    out->slope = tilt->sign * (FP_NAME(fp_total)(slope) / total);
    out->error = FP_ROUND * (FP_NAME(fp_total)(slip) / total + fabs(out->value)) + add;
    out->slope_error = (2.0 * FP_ROUND + add) * (FP_NAME(fp_total)(spread) + FP_NAME(fp_total)(size)) / total
                       + (FP_ROUND * FP_NAME(fp_total)(slip) / total + add) * fabs(out->slope);
}

/* L and L' with their errors. */
static void FP_NAME(fp_ratio_at)(const fp_ratio *r, double x, fp_taylor *out)
{
    double *hp = r->scratch, *ep = hp + r->p.padded, *gp = ep + r->p.padded;
    double *hq = gp + r->p.padded, *eq = hq + r->q.padded, *gq = eq + r->q.padded;
    double *rho = gq + r->q.padded, *ek = rho + r->pairs.padded;
    FP_NAME(fp_moments) p, q;
    if (r->tilt.sign) {
        FP_NAME(fp_tilt_at)(r, x, out);
        return;
    }
    FP_NAME(fp_side_log)(&r->q, x, hq, eq, gq, &q);
    FP_NAME(fp_coupled) c;
    c.good = 0;
    FP_NAME(fp_side_log)(&r->p, x, hp, ep, gp, &p);
    FP_NAME(fp_side_spread)(&r->p, x, ep, gp, &p);
    FP_NAME(fp_side_spread)(&r->q, x, eq, gq, &q);
    if (r->coupled)
        FP_NAME(fp_couple_at)(r, x, &q, rho, ek, &c);
    FP_NAME(fp_better)(&p, &q, &c, out);
}

/* L with its error, and L' without: what finding a crossing needs. */
static void FP_NAME(fp_ratio_value)(const fp_ratio *r, double x, fp_taylor *out)
{
    double *hp = r->scratch, *ep = hp + r->p.padded, *gp = ep + r->p.padded;
    double *hq = gp + r->p.padded, *eq = hq + r->q.padded, *gq = eq + r->q.padded;
    FP_NAME(fp_moments) p, q;
    if (r->coupled || r->tilt.sign) {
        FP_NAME(fp_ratio_at)(r, x, out);
        return;
    }
    FP_NAME(fp_side_log)(&r->p, x, hp, ep, gp, &p);
    FP_NAME(fp_side_log)(&r->q, x, hq, eq, gq, &q);
    out->value = p.log - q.log;
    out->error = p.error + q.error;
    out->slope = p.score - q.score;
}

/* The whole local analysis: Taylor data, and a disc with the bound of the remainder; `radius` is the first guess. */
static void FP_NAME(fp_ratio_disc)(const fp_ratio *r, double x, double radius, fp_taylor *out)
{
    double *hp = r->scratch, *ep = hp + r->p.padded, *gp = ep + r->p.padded;
    double *hq = gp + r->p.padded, *eq = hq + r->q.padded, *gq = eq + r->q.padded;
    double *rho = gq + r->q.padded, *ek = rho + r->pairs.padded, *work = ek + r->pairs.padded;
    FP_NAME(fp_moments) p, q;
    FP_NAME(fp_coupled) c;
    c.good = 0;
    FP_NAME(fp_side_log)(&r->p, x, hp, ep, gp, &p);
    FP_NAME(fp_side_log)(&r->q, x, hq, eq, gq, &q);
    FP_NAME(fp_side_spread)(&r->p, x, ep, gp, &p);
    FP_NAME(fp_side_spread)(&r->q, x, eq, gq, &q);
    if (r->coupled)
        FP_NAME(fp_couple_at)(r, x, &q, rho, ek, &c);
    FP_NAME(fp_better)(&p, &q, &c, out);
    out->curve = (p.spread - p.rate) - (q.spread - q.rate);
    out->curve_error = p.spread_error + q.spread_error + FP_ROUND * (p.rate + q.rate) * (r->p.padded + r->q.padded);
    if (c.good && c.curve_error < out->curve_error)
        out->curve = c.curve, out->curve_error = c.curve_error;
    double spread = p.spread > q.spread ? p.spread : q.spread;
    if (radius * radius * spread > 0.36) /* kappa is about spread R^2 / 2 */
        radius = 0.6 / sqrt(spread);
    for (int attempt = 0; attempt < 60; ++attempt, radius *= attempt < 4 ? 0.6 : 0.3) {
        double kq = FP_NAME(fp_side_kappa)(&r->q, hq, gq, &q, radius, work);
        if (!(kq < 0.45))
            continue;
        double bound = INFINITY;
        if (c.good)
            bound = FP_NAME(fp_couple_bound)(r, x, &q, kq, radius, work);
        if (bound == INFINITY) {
            double kp = FP_NAME(fp_side_kappa)(&r->p, hp, gp, &p, radius, work);
            if (!(kp < 0.45))
                continue;
            bound = -log1p(-kp) - log1p(-kq);
        }
        out->radius = radius;
        out->bound = bound * (1.0 + 1e-9) + 1e-300;
        return;
    }
    out->radius = 0.0;
    out->bound = INFINITY;
}
