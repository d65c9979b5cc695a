/* The log-likelihood ratio at a point, with proved errors; included once per instruction set (fp_hockey_stick.h). */
/* bounds: proved - errors of L, its slope and curvature, and of the bound of the remainder on a disc:
 * docs/proofs/monotone_pieces.md, theorems 3.8 to 3.11 */

/* `doubt` of theorem 3.8 beyond which the errors of L', L'' take the terms at the largest size that their errors allow. */
#define FP_DOUBTFUL 0x1p-10

/* The largest error of h_i - max h, but for 9 u of it, for a component of either side with the largest term `peak`. */
static inline double FP_NAME(fp_doubt)(double peak) { return FP_ROUND * (1200.0 + fabs(peak)); }

/* h_i - max h, e_i = e^{h_i - max h} and g_i; returns max h. */
static inline double FP_NAME(fp_component_terms)(const fp_mixture *side, double x, double *restrict h,
                                                 double *restrict e, double *restrict g)
{
    int padded = side->padded;
    const double *restrict mean = side->mean, *restrict inverse = side->inverse, *restrict lw = side->log_weight;
    for (int i = 0; i < padded; ++i) {
        double z = (x - mean[i]) * inverse[i];
        h[i] = lw[i] - 0.5 * z * z;
        g[i] = -z * inverse[i];
    }
    double peak = FP_NAME(fp_max_of)(h, padded);
    for (int i = 0; i < padded; ++i) {
        h[i] -= peak;
        e[i] = fp_exp(h[i]);
    }
    return peak;
}

typedef struct {
    double log, score, error;            /* log density (without sqrt(2 pi)), its derivative, its error */
    double score_error, rate, rate_error, spread, spread_error; /* b = E t, Var_r(g); the last for both of them */
    double peak, mass, doubt;             /* log of the largest term; sum of e; fp_doubt */
} FP_NAME(fp_moments);

/* Errors of the score, and of spread and rate, where the terms are known to factors alone: any responsibilities that
 * the doubt allows. `h` has h_i - max h at every `stride`-th double. */
static void FP_NAME(fp_doubtful_errors)(const fp_mixture *side, double x, const double *h, ptrdiff_t stride,
                                        double doubt, double score, double rate, double spread, double *score_error,
                                        double *rate_error, double *spread_error)
{
    double by_score = 0.0, by_rate = 0.0, by_square = 0.0;
    for (int i = 0; i < side->n; ++i) {
        double exponent = h[stride * i] * (1.0 - 2e-15) + 2.0 * doubt, share = exponent < 0.0 ? fp_exp(exponent) : 1.0;
        double g = -((x - side->mean[i]) * side->inverse[i]) * side->inverse[i], t = side->precision[i];
        double off = fabs(g - score) + FP_ROUND * (fabs(g) + fabs(score));
        by_score += share * off;
        by_square += share * off * off;
        by_rate += share * (fabs(t - rate) + FP_ROUND * (t + rate));
    }
    *score_error = by_score * (1.0 + 1e-6) + 1e-240 * side->steepest;
    *rate_error = by_rate * (1.0 + 1e-6) + 1e-300 * side->steepest * side->steepest;
    *spread_error = *rate_error + (by_square + spread) * (1.0 + 1e-6) + 1e-160 * side->steepest * side->steepest;
}

/* An exponent with what it may lack for its size. */
static inline double FP_NAME(fp_lifted)(double h) { return h * (h < 0.0 ? 1.0 - 3e-15 : 1.0 + 3e-15); }

/* What the k_i of a disc, with computed a and b, may lack. */
static inline double FP_NAME(fp_residue)(double score_error, double rate_error, double radius, double half)
{
    return (score_error * radius + rate_error * half) * (1.0 + 1e-9);
}

/* Log density and score. */
static inline void FP_NAME(fp_mixture_log_density)(const fp_mixture *side, double x, double *restrict h,
                                                   double *restrict e, double *restrict g, FP_NAME(fp_moments) * out)
{
    double peak = FP_NAME(fp_component_terms)(side, x, h, e, g);
    fp_v8 mass = {0}, score = {0}, load = {0};
    for (int i = 0; i < side->padded; i += FP_LANES) {
        fp_v8 ei = FP_AT(e, i), gi = FP_AT(g, i);
        mass += ei;
        score += ei * gi;
        load += ei * (gi * (FP_AT(side->mean, i) - x) + FP_AT(side->load, i));
    }
    out->mass = FP_NAME(fp_v8_sum)(mass);
    out->peak = peak;
    out->doubt = FP_NAME(fp_doubt)(peak);
    out->log = peak + fp_log(out->mass);
    out->score = FP_NAME(fp_v8_sum)(score) / out->mass;
    out->error = FP_ROUND * (4.0 + FP_NAME(fp_v8_sum)(load) / out->mass + fabs(peak)) + 2.3e-16 * side->padded;
}

/* The second-order part of the local analysis, from h, e and g as fp_mixture_log_density left them. */
static inline void FP_NAME(fp_mixture_curvature)(const fp_mixture *side, double x, const double *restrict h,
                                                 const double *restrict e, const double *restrict g,
                                                 FP_NAME(fp_moments) *out)
{
    fp_v8 rate = {0}, spread = {0}, score_error = {0}, rate_error = {0}, spread_error = {0};
    double a = out->score, base = 4.0 + fabs(out->peak);
    for (int i = 0; i < side->padded; i += FP_LANES)
        rate += FP_AT(e, i) * FP_AT(side->precision, i);
    double b = FP_NAME(fp_v8_sum)(rate) / out->mass;
    for (int i = 0; i < side->padded; i += FP_LANES) {
        fp_v8 ei = FP_AT(e, i), gi = FP_AT(g, i), ti = FP_AT(side->precision, i), away = gi - a;
        fp_v8 off = FP_NAME(fp_v8_abs)(away), size = FP_NAME(fp_v8_abs)(gi);
        fp_v8 eta = base + gi * (FP_AT(side->mean, i) - x) + FP_AT(side->load, i);
        spread += ei * away * away;
        score_error += ei * (eta * off + size);
        rate_error += ei * (eta * FP_NAME(fp_v8_abs)(ti - b) + ti + b);
        spread_error += ei * (eta * (away * away + ti + b) + (size + fabs(a)) * off);
    }
    double scale = (2.0 * FP_ROUND + 2.3e-16 * side->padded) / out->mass;
    out->rate = b;
    out->rate_error = scale * FP_NAME(fp_v8_sum)(rate_error) + 1e-300 * side->steepest * side->steepest;
    out->spread = FP_NAME(fp_v8_sum)(spread) / out->mass;
    out->score_error = scale * FP_NAME(fp_v8_sum)(score_error) + FP_ROUND * fabs(a) + 1e-300 * side->steepest;
    out->spread_error = scale * FP_NAME(fp_v8_sum)(spread_error) + out->error * out->spread
                        + out->score_error * out->score_error + 1e-300 * side->steepest * side->steepest;
    if (out->doubt > FP_DOUBTFUL)
        FP_NAME(fp_doubtful_errors)(side, x, h, 1, out->doubt, a, b, out->spread, &out->score_error, &out->rate_error,
                                    &out->spread_error);
}

/* |log p(x + d) - (log p + a d - b d^2 / 2)| <= returned bound for complex |d| <= radius; infinity when p may vanish.
 * With u_i = (g_i - a) d - (t_i - b) d^2 / 2 one has sum r_i u_i = 0, hence
 * |sum r_i e^{u_i} - 1| <= sum r_i (e^k_i - 1 - k_i) <= sum r_i k_i^2 e^{k_i} / 2 with k_i = |g_i - a| R + |t_i - b|
 * R^2 / 2. The errors of a, b and of the terms are added to k_i and to the exponents (theorem 3.10); 1e-323 stands for
 * an exponential that underflows. */
static inline double FP_NAME(fp_mixture_remainder)(const fp_mixture *side, const double *restrict h,
                                                   const double *restrict g, const FP_NAME(fp_moments) * at,
                                                   double radius, double *restrict work)
{
    double a = at->score, b = at->rate, reach = radius * (1.0 + 1e-14), half = 0.5 * reach * reach;
    double residue = FP_NAME(fp_residue)(at->score_error, at->rate_error, reach, half), doubt = 2.0 * at->doubt;
    const double most = fp_log(at->mass) + 1e-12; /* no responsibility exceeds 1 */
    for (int i = 0; i < side->padded; ++i) {
        double k = fabs(g[i] - a) * reach + fabs(side->precision[i] - b) * half + residue;
        double share = h[i] * (1.0 - 2e-15) + doubt;
        work[i] = (0.5 * k * k) * (fp_exp((share < most ? share : most) + k) + 1e-323);
    }
    fp_v8 sum = {0};
    for (int i = 0; i < side->padded; i += FP_LANES)
        sum += FP_AT(work, i);
    return FP_NAME(fp_v8_sum)(sum) / at->mass * (1.0 + 1e-6);
}

typedef struct {
    double value, error, slope, slope_error, curve, curve_error;
    double sum, sum_error; /* u */
    int good;
} FP_NAME(fp_coupled);

/* Work space of the coupled form: `rho`, `ratio` for the near components, `lone` for those alone, `above` for
 * Q's: |excess - u| over the sum of their terms. */
typedef struct {
    double *rho, *ratio, *unmatched_terms, *above;
} FP_NAME(fp_coupled_terms);

/* L, L', L'' in the coupled form; `h`, `e`, `g` and the moments of q at x given; good = 0 when |u| >= 1/2.
 *
 * With r_j the responsibilities of Q, f_i = N_i / q and sum_j r_j = 1, u' = sum_j r_j (excess_j - u) (g_j - a) + ...: u
 * is subtracted from the excesses since sum_j r_j (g_j - a) = 0.  Where one component dominates both factors of its
 * term are small, so that u' and u'' keep their relative accuracy in the tails too.  An error of a multiplies the sum
 * of all coefficients, which is 0 within the error of u. */
static inline void FP_NAME(fp_coupled_evaluate)(const fp_log_ratio *r, double x, const FP_NAME(fp_moments) *q,
                                         const double *restrict e, const double *restrict g,
                                         const FP_NAME(fp_coupled_terms) *terms, FP_NAME(fp_coupled) *out)
{
    const fp_coupling *c = &r->pairs;
    const fp_mixture *side = &r->q, *unmatched = &c->unmatched;
    double a = q->score, log_q = q->log, *restrict rho = terms->rho, *restrict ratio = terms->ratio;
    double *restrict unmatched_terms = terms->unmatched_terms, *restrict above = terms->above;
    const double *restrict mean = c->mean, *restrict inverse = c->inverse, *restrict lw = c->log_weight;
    const double *restrict shift = c->shift, *restrict stretch = c->stretch, *restrict scale = c->log_scale;
    for (int k = 0; k < c->padded; ++k) {
        double z = (x - mean[k]) * inverse[k], dz = (x - mean[k]) * stretch[k] + shift[k];
        double d = scale[k] + 0.5 * dz * (2.0 * z - dz);
        double h = lw[k] - 0.5 * z * z - log_q;
        rho[k] = fp_exp(h);
        /* where P's component dominates Q's, take e^{h + d} at once: it avoids 0 * infinity */
        ratio[k] = d < 30.0 ? rho[k] * fp_expm1(d) : fp_exp(h + d);
    }
    const double *restrict own_mean = unmatched->mean, *restrict own_inverse = unmatched->inverse;
    const double *restrict own_weight = unmatched->log_weight;
    for (int i = 0; i < unmatched->padded; ++i) {
        double z = (x - own_mean[i]) * own_inverse[i];
        unmatched_terms[i] = fp_exp(own_weight[i] - 0.5 * z * z - log_q);
    }
    /* h - log q: both errors add */
    double unit = 1.0 / q->mass, dq = q->rate - q->spread, base = 6.0 + fabs(log_q) + 0.5 * (q->error / FP_ROUND);
    fp_v8 u = {0}, ua = {0}, du = {0}, dua = {0}, ddu = {0}, ddua = {0};
    for (int j = 0; j < side->padded; j += FP_LANES) {
        fp_v8 rj = FP_AT(e, j) * unit, term = rj * FP_AT(c->excess, j);
        fp_v8 eta = base + FP_AT(g, j) * (FP_AT(side->mean, j) - x) + FP_AT(side->load, j);
        u += term;
        ua += eta * FP_NAME(fp_v8_abs)(term);
    }
    for (int k = 0; k < c->padded; k += FP_LANES) {
        fp_v8 rk = FP_AT(rho, k), ek = FP_AT(ratio, k), ck = FP_AT(c->mean, k), ik = FP_AT(c->inverse, k);
        fp_v8 z = (x - ck) * ik, st = FP_AT(c->stretch, k), dz = (x - ck) * st + FP_AT(c->shift, k);
        fp_v8 zs = FP_NAME(fp_v8_abs)(z), /* and the sizes of the two parts of dz, which may cancel */
              dzs = FP_NAME(fp_v8_abs)((x - ck) * st) + FP_NAME(fp_v8_abs)(FP_AT(c->shift, k));
        fp_v8 gk = -z * ik, away = gk - a, both = rk + ek;
        fp_v8 d1 = z * st + dz * FP_AT(c->inverse_p, k), d2 = FP_AT(c->curvature, k);
        fp_v8 first = away * ek + both * d1;
        fp_v8 second = (away * away - FP_AT(c->precision, k) + dq) * ek + both * (2.0 * away * d1 + d2 + d1 * d1);
        fp_v8 eta = base + z * z + dz * dz + FP_AT(c->load, k) + FP_NAME(fp_v8_abs)(z * dz);
        fp_v8 ea = FP_NAME(fp_v8_abs)(ek), d1a = FP_NAME(fp_v8_abs)(z * st) + dzs * FP_AT(c->inverse_p, k);
        fp_v8 wide = FP_NAME(fp_v8_abs)(gk) + fabs(a), square = wide * wide + FP_AT(c->precision, k) + fabs(dq);
        fp_v8 slip = both * (dzs * (2.0 * zs + dzs) + FP_NAME(fp_v8_abs)(FP_AT(c->log_scale, k)));
        u += ek;
        ua += eta * ea + slip;
        du += first;
        dua += eta * (ea * wide + both * d1a) + slip * wide;
        ddu += second;
        ddua += eta * (ea * square + both * (2.0 * wide * d1a + FP_NAME(fp_v8_abs)(d2) + d1a * d1a)) + slip * square;
    }
    for (int i = 0; i < unmatched->padded; i += FP_LANES) {
        fp_v8 ni = FP_AT(unmatched_terms, i), ii = FP_AT(unmatched->inverse, i),
              z = (x - FP_AT(unmatched->mean, i)) * ii;
        fp_v8 gi = -z * ii, away = gi - a, ti = FP_AT(unmatched->precision, i), off = FP_NAME(fp_v8_abs)(away);
        fp_v8 eta = base + z * z + FP_AT(unmatched->load, i), wide = FP_NAME(fp_v8_abs)(gi) + fabs(a);
        u += ni;
        ua += eta * ni;
        du += away * ni;
        dua += ni * (eta * off + wide);
        ddu += (away * away - ti + dq) * ni;
        ddua += ni * (eta * (away * away + ti + fabs(dq)) + wide * off);
    }
    double sum = FP_NAME(fp_v8_sum)(u), size = fabs(sum);
    double scale_error = 2.0 * FP_ROUND + 2.3e-16 * (side->padded + c->padded + unmatched->padded);
    double u_error = scale_error * FP_NAME(fp_v8_sum)(ua) + c->defect + 1e-300;
    out->good = size + u_error < 0.5 && q->doubt < FP_DOUBTFUL;
    if (!out->good)
        return;
    for (int j = 0; j < side->padded; j += FP_LANES) {
        fp_v8 rj = FP_AT(e, j) * unit, xs = FP_AT(c->excess, j), over = xs - sum, cj = rj * over, gj = FP_AT(g, j),
              tj = FP_AT(side->precision, j);
        fp_v8 eta = base + gj * (FP_AT(side->mean, j) - x) + FP_AT(side->load, j);
        fp_v8 away = gj - a, off = FP_NAME(fp_v8_abs)(away), wide = FP_NAME(fp_v8_abs)(gj) + fabs(a);
        fp_v8 curvature = away * away - tj + dq, ca = FP_NAME(fp_v8_abs)(cj),
              loose = rj * (FP_NAME(fp_v8_abs)(xs) + size + 0x1p50 * c->defect);
        *(fp_v8 *)(above + j) = (FP_NAME(fp_v8_abs)(over) + FP_ROUND * FP_NAME(fp_v8_abs)(xs) + 2.0 * u_error) * unit;
        du += cj * away;
        dua += ca * (eta * off + wide) + loose * off;
        ddu += cj * curvature;
        ddua += ca * (eta * FP_NAME(fp_v8_abs)(curvature) + wide * off + away * away + tj + fabs(dq))
                + loose * FP_NAME(fp_v8_abs)(curvature);
    }
    double below = 1.0 + sum - u_error, first = FP_NAME(fp_v8_sum)(du), second = FP_NAME(fp_v8_sum)(ddu);
    double first_error = scale_error * FP_NAME(fp_v8_sum)(dua), steepest = 1.0 + side->steepest + r->p.steepest;
    out->sum = sum;
    out->sum_error = u_error;
    out->value = fp_log1p(sum);
    out->error = u_error / below + FP_ROUND * fabs(out->value);
    out->slope = first / (1.0 + sum);
    out->slope_error = (first_error + (fabs(out->slope) + q->score_error) * u_error) / below
                       + FP_ROUND * fabs(out->slope) + 1e-300 * steepest;
    out->curve = second / (1.0 + sum) - out->slope * out->slope;
    out->curve_error = (scale_error * FP_NAME(fp_v8_sum)(ddua) + 2.0 * (fabs(first) + first_error) * q->score_error
                        + (fabs(second / (1.0 + sum)) + q->spread_error + q->score_error * q->score_error
                           + FP_ROUND * (q->rate + q->spread) * side->padded) * u_error)
                           / below
                       + (2.0 * fabs(out->slope) + out->slope_error) * out->slope_error
                       + 4.0 * FP_ROUND * (fabs(out->curve) + out->slope * out->slope) + 1e-300 * steepest * steepest;
}

/* |L - L(x)| on the disc of that radius, infinity when it cannot be bounded; the disc bound of q is `kappa_q`.
 *
 * With k_i as in fp_mixture_remainder and coefficients c_i that sum to 0 within the error of u, (u(x + d) - u) (1 +
 * eps(d)) = sum_i c_i (e^{k_i(d)} - 1) over the components of Q, c_j = r_j (excess_j - u), and over those alone; and a
 * near component adds rho ((1 + E) (e^{D(x + d) - D(x)} - 1) e^k + E (e^k - 1)), E = expm1(D(x)).  e^k - 1 <= k e^k,
 * and exponents are added first: a component that underflows at x may count elsewhere on the disc. Errors as in
 * fp_mixture_remainder, those of D as `slip` in fp_coupled_evaluate. */
static inline double FP_NAME(fp_coupled_remainder)(const fp_log_ratio *r, double x, const FP_NAME(fp_moments) *q,
                                              const double *restrict hq, const double *restrict g,
                                              const FP_NAME(fp_coupled_terms) *terms, const FP_NAME(fp_coupled) *at,
                                              double kappa_q, double radius, double *restrict work)
{
    const fp_coupling *c = &r->pairs;
    const fp_mixture *side = &r->q, *unmatched = &c->unmatched;
    double a = q->score, b = q->rate, reach = radius * (1.0 + 1e-14), half = 0.5 * reach * reach;
    double residue = FP_NAME(fp_residue)(q->score_error, q->rate_error, reach, half), doubt = 3.0 * q->doubt;
    const double *restrict above = terms->above, *restrict precision = side->precision;
    fp_v8 sum = {0};
    for (int j = 0; j < side->padded; ++j) {
        double grow = fabs(g[j] - a) * reach + fabs(precision[j] - b) * half + residue;
        work[j] = above[j] * grow * (fp_exp(hq[j] * (1.0 - 2e-15) + grow + doubt) + 1e-323);
    }
    for (int j = 0; j < side->padded; j += FP_LANES)
        sum += FP_AT(work, j);
    for (int k = 0; k < c->padded; ++k) {
        double z = (x - c->mean[k]) * c->inverse[k], dz = (x - c->mean[k]) * c->stretch[k] + c->shift[k];
        double dzs = fabs((x - c->mean[k]) * c->stretch[k]) + fabs(c->shift[k]);
        double slip = FP_ROUND * (dzs * (2.0 * fabs(z) + dzs) + fabs(c->log_scale[k]));
        double d1 = fabs(z * c->stretch[k]) + dzs * c->inverse_p[k];
        double grow = fabs(-z * c->inverse[k] - a) * reach + fabs(c->precision[k] - b) * half + residue;
        double d0 = c->log_scale[k] + 0.5 * dz * (2.0 * z - dz), d = d1 * reach + fabs(c->curvature[k]) * half;
        double h = FP_NAME(fp_lifted)(c->log_weight[k] - 0.5 * z * z - q->log), more = grow + d + slip + doubt;
        double e = fabs(fp_expm1(d0 < 30.0 ? d0 : 30.0)), size = e + slip * (1.0 + e) * 1.01;
        work[k] = d0 < 30.0 ? ((1.0 + size) * d + size * grow) * (fp_exp(h + more) + 1e-323)
                            : (d + grow) * (fp_exp(h + d0 + more) + 1e-323);
    }
    for (int k = 0; k < c->padded; k += FP_LANES)
        sum += FP_AT(work, k);
    for (int i = 0; i < unmatched->padded; ++i) {
        double z = (x - unmatched->mean[i]) * unmatched->inverse[i];
        double grow = fabs(-z * unmatched->inverse[i] - a) * reach + fabs(unmatched->precision[i] - b) * half + residue;
        double h = unmatched->log_weight[i] - 0.5 * z * z - q->log;
        work[i] = grow * (fp_exp(FP_NAME(fp_lifted)(h) + grow + doubt) + 1e-323);
    }
    for (int i = 0; i < unmatched->padded; i += FP_LANES)
        sum += FP_AT(work, i);
    double u = FP_NAME(fp_v8_sum)(sum) * (1.0 + 1e-6) / (1.0 - kappa_q) / (1.0 + at->sum - at->sum_error);
    return u < 0.5 ? -log1p(-u) : INFINITY;
}

/* The layout of the workspace: three arrays of P, three of Q, and the terms of the coupled form. */
typedef struct {
    double *hp, *ep, *gp, *hq, *eq, *gq, *work;
    FP_NAME(fp_coupled_terms) terms;
} FP_NAME(fp_scratch);

static inline FP_NAME(fp_scratch) FP_NAME(fp_scratch_of)(const fp_log_ratio *r)
{
    FP_NAME(fp_scratch) s;
    int p = r->p.padded, q = r->q.padded, near = r->pairs.padded;
    s.hp = r->scratch, s.ep = s.hp + p, s.gp = s.ep + p;
    s.hq = s.gp + p, s.eq = s.hq + q, s.gq = s.eq + q;
    s.terms.above = s.gq + q;
    s.terms.rho = s.terms.above + q, s.terms.ratio = s.terms.rho + near;
    s.terms.unmatched_terms = s.terms.ratio + near;
    s.work = s.terms.unmatched_terms + r->pairs.unmatched.padded;
    return s;
}

/* L and L' with their errors in the tilted form (fp_tilt). */
static void FP_NAME(fp_tilt_at)(const fp_log_ratio *r, double x, fp_taylor *out)
{
    const fp_tilt *tilt = &r->tilt;
    double *restrict h = r->scratch, *restrict e = h + tilt->padded, away = x - tilt->centre;
    const double *restrict gap = tilt->gap, *restrict rate = tilt->rate, *restrict lw = tilt->log_weight;
    for (int i = 0; i < tilt->padded; ++i)
        h[i] = lw[i] + rate[i] * (away - 0.5 * gap[i]);
    double peak = FP_NAME(fp_max_of)(h, tilt->padded);
    for (int i = 0; i < tilt->padded; ++i)
        e[i] = fp_exp(h[i] - peak);
    fp_v8 mass = {0}, slope = {0}, slip = {0}, size = {0}, spread = {0};
    for (int i = 0; i < tilt->padded; i += FP_LANES) {
        fp_v8 ei = FP_AT(e, i), bi = FP_AT(rate, i), wide = FP_NAME(fp_v8_abs)(bi);
        fp_v8 lift = (fp_v8)((fp_v8i)(ei > 0.0) & (fp_v8i)FP_NAME(fp_v8_abs)(FP_AT(lw, i)));
        fp_v8 eta = 4.0 + fabs(peak) + lift + wide * (fabs(away) + FP_NAME(fp_v8_abs)(FP_AT(gap, i)));
        mass += ei;
        slope += ei * bi;
        size += ei * wide;
        slip += ei * eta;
        spread += ei * eta * wide;
    }
    const double least = 1e-322 * (1.0 + fabs(away) + tilt->widest); /* where b_i is subnormal */
    if (tilt->n == 1) { /* linear */
        out->value = tilt->sign * h[0];
        out->slope = tilt->sign * rate[0];
        out->error = FP_ROUND * (fabs(lw[0]) + fabs(rate[0]) * (fabs(away) + fabs(gap[0]))) + least;
        out->slope_error = FP_ROUND * fabs(rate[0]) + 1e-322;
        return;
    }
    double total = FP_NAME(fp_v8_sum)(mass), add = 2.3e-16 * tilt->padded;
    out->value = tilt->sign * (peak + fp_log(total));
    out->slope = tilt->sign * (FP_NAME(fp_v8_sum)(slope) / total);
    out->error = FP_ROUND * (FP_NAME(fp_v8_sum)(slip) / total + fabs(out->value)) + add + least;
    out->slope_error = (2.0 * FP_ROUND + add) * (FP_NAME(fp_v8_sum)(spread) + FP_NAME(fp_v8_sum)(size)) / total
                       + (FP_ROUND * FP_NAME(fp_v8_sum)(slip) / total + add) * fabs(out->slope) + 1e-322
                       + 1e-300 * tilt->steepest;
    double all = FP_ROUND * (754.0 + fabs(peak) + tilt->steepest * (fabs(away) + tilt->widest)), off = 0.0;
    if (!(all > FP_DOUBTFUL))
        return;
    for (int i = 0; i < tilt->n; ++i) { /* as fp_doubtful_errors */
        double exponent = h[i] - peak + 2.0 * all, share = exponent < 0.0 ? fp_exp(exponent) : 1.0;
        double b = tilt->sign * rate[i];
        off += share * (fabs(b - out->slope) + FP_ROUND * (fabs(b) + fabs(out->slope)));
    }
    out->error += 2.0 * all;
    out->slope_error = off * (1.0 + 1e-6) + 1e-300 * tilt->steepest;
}

/* The coupled form at x, with the moments of q; returns 0 where it is not valid. */
static int FP_NAME(fp_coupled_at)(const fp_log_ratio *r, double x, const FP_NAME(fp_scratch) *s, FP_NAME(fp_moments) *q,
                                  FP_NAME(fp_coupled) *c)
{
    FP_NAME(fp_mixture_log_density)(&r->q, x, s->hq, s->eq, s->gq, q);
    FP_NAME(fp_mixture_curvature)(&r->q, x, s->hq, s->eq, s->gq, q);
    FP_NAME(fp_coupled_evaluate)(r, x, q, s->eq, s->gq, &s->terms, c);
    return c->good;
}

/* L and L' with their errors. */
static void FP_NAME(fp_log_ratio_at)(const fp_log_ratio *r, double x, fp_taylor *out)
{
    FP_NAME(fp_scratch) s = FP_NAME(fp_scratch_of)(r);
    FP_NAME(fp_moments) p, q;
    FP_NAME(fp_coupled) c;
    fp_stop_requested(r->stop, r->np + r->nq);
    if (r->tilt.sign) { /* each derivative in the form that has the smaller error */
        FP_NAME(fp_tilt_at)(r, x, out);
        if (r->tilt.n > 1 && r->coupled == 2 && FP_NAME(fp_coupled_at)(r, x, &s, &q, &c)) {
            if (c.error < out->error)
                out->value = c.value, out->error = c.error;
            if (c.slope_error < out->slope_error)
                out->slope = c.slope, out->slope_error = c.slope_error;
        }
        return;
    }
    if (r->coupled && FP_NAME(fp_coupled_at)(r, x, &s, &q, &c)) {
        out->value = c.value, out->error = c.error;
        out->slope = c.slope, out->slope_error = c.slope_error;
        return;
    }
    FP_NAME(fp_mixture_log_density)(&r->p, x, s.hp, s.ep, s.gp, &p);
    FP_NAME(fp_mixture_curvature)(&r->p, x, s.hp, s.ep, s.gp, &p);
    FP_NAME(fp_mixture_log_density)(&r->q, x, s.hq, s.eq, s.gq, &q);
    FP_NAME(fp_mixture_curvature)(&r->q, x, s.hq, s.eq, s.gq, &q);
    out->value = p.log - q.log;
    out->error = p.error + q.error;
    out->slope = p.score - q.score;
    out->slope_error = p.score_error + q.score_error + FP_ROUND * fabs(out->slope);
}

/* L with its error, and L' without: all that finding a crossing needs. */
static void FP_NAME(fp_log_ratio_value)(const fp_log_ratio *r, double x, fp_taylor *out)
{
    if (r->coupled || r->tilt.sign) {
        FP_NAME(fp_log_ratio_at)(r, x, out);
        return;
    }
    FP_NAME(fp_scratch) s = FP_NAME(fp_scratch_of)(r);
    FP_NAME(fp_moments) p, q;
    fp_stop_requested(r->stop, r->np + r->nq);
    FP_NAME(fp_mixture_log_density)(&r->p, x, s.hp, s.ep, s.gp, &p);
    FP_NAME(fp_mixture_log_density)(&r->q, x, s.hq, s.eq, s.gq, &q);
    out->value = p.log - q.log;
    out->error = p.error + q.error;
    out->slope = p.score - q.score;
}

/* Largest half-widths on which the slope (a) and the curvature (b) are proved to keep their signs. A quotient that is
 * NaN, because squares overflowed, proves nothing: every comparison is written so that NaN gives 0. */
static inline void FP_NAME(fp_sign_radii)(const fp_taylor *at, double *a, double *b)
{
    double radius = at->radius, bound = at->bound;
    double slope = fabs(at->slope) - at->slope_error, curve = fabs(at->curve) - at->curve_error;
    *a = *b = 0.0;
    if (!(radius > 0.0) || !(bound < INFINITY))
        return;
    if (slope > 0.0) { /* margins: docs/proofs/monotone_pieces.md, theorem 3.12 */
        double linear = (fabs(at->curve) + at->curve_error) * radius, square = 8.0 * bound / radius;
        double t = 2.0 * slope / (linear + sqrt(linear * linear + 4.0 * square * slope)) * (1.0 - 1e-9);
        *a = radius * (t < 0.5 ? t : t >= 0.5 ? 0.5 : 0.0);
    }
    if (curve > 0.0) {
        double t = (1.0 - 1.0 / cbrt(1.0 + curve * radius * radius / (2.0 * bound))) * (1.0 - 1e-9) - 2e-15;
        *b = radius * (t < 0.95 ? t : t >= 0.95 ? 0.95 : 0.0);
    }
}

/* The complete local analysis: Taylor coefficients, and a disc with a bound of the remainder; `radius` is the first
 * guess. */
static void FP_NAME(fp_log_ratio_on_disc)(const fp_log_ratio *r, double x, double radius, fp_taylor *out)
{
    FP_NAME(fp_scratch) s = FP_NAME(fp_scratch_of)(r);
    FP_NAME(fp_moments) p = {0}, q;
    FP_NAME(fp_coupled) c;
    fp_stop_requested(r->stop, 3 * (r->np + r->nq));
    int coupled = r->coupled && FP_NAME(fp_coupled_at)(r, x, &s, &q, &c);
    double spread = 0.0;
    if (!r->coupled) {
        FP_NAME(fp_mixture_log_density)(&r->q, x, s.hq, s.eq, s.gq, &q);
        FP_NAME(fp_mixture_curvature)(&r->q, x, s.hq, s.eq, s.gq, &q);
    }
    if (coupled) {
        out->value = c.value, out->error = c.error;
        out->slope = c.slope, out->slope_error = c.slope_error;
        out->curve = c.curve, out->curve_error = c.curve_error;
    } else {
        FP_NAME(fp_mixture_log_density)(&r->p, x, s.hp, s.ep, s.gp, &p);
        FP_NAME(fp_mixture_curvature)(&r->p, x, s.hp, s.ep, s.gp, &p);
        out->value = p.log - q.log;
        out->error = p.error + q.error;
        out->slope = p.score - q.score;
        out->slope_error = p.score_error + q.score_error + FP_ROUND * fabs(out->slope);
        out->curve = (p.spread - p.rate) - (q.spread - q.rate);
        out->curve_error = p.spread_error + q.spread_error + FP_ROUND * (p.rate + q.rate) * (r->p.padded + r->q.padded);
        spread = p.spread;
    }
    spread = spread > q.spread ? spread : q.spread;
    if (radius * radius * spread > 0.36) /* kappa is about spread R^2 / 2 */
        radius = 0.6 / sqrt(spread);
    for (int attempt = 0; attempt < 60; ++attempt, radius *= attempt < 4 ? 0.6 : 0.3) {
        double kq = FP_NAME(fp_mixture_remainder)(&r->q, s.hq, s.gq, &q, radius, s.work), bound;
        if (!(kq < 0.45))
            continue;
        if (coupled) {
            bound = FP_NAME(fp_coupled_remainder)(r, x, &q, s.hq, s.gq, &s.terms, &c, kq, radius, s.work);
        } else {
            double kp = FP_NAME(fp_mixture_remainder)(&r->p, s.hp, s.gp, &p, radius, s.work);
            bound = kp < 0.45 ? -log1p(-kp) - log1p(-kq) : INFINITY;
        }
        if (!(bound < INFINITY))
            continue;
        out->radius = radius;
        out->bound = bound * (1.0 + 1e-9) + 1e-300;
        if (!coupled)
            return;
        /* a term that grows fast towards the rim may dominate on a large disc: halve the disc while that decides
         * more */
        fp_taylor small = *out;
        double a, b, most;
        FP_NAME(fp_sign_radii)(out, &a, &b);
        most = a > b ? a : b;
        for (int halving = 0; halving < 10; ++halving) {
            double known = fabs(out->slope) * small.radius + fabs(out->curve) * small.radius * small.radius;
            if (small.bound < 32.0 * known)
                return;
            small.radius *= 0.5;
            kq = FP_NAME(fp_mixture_remainder)(&r->q, s.hq, s.gq, &q, small.radius, s.work);
            bound = FP_NAME(fp_coupled_remainder)(r, x, &q, s.hq, s.gq, &s.terms, &c, kq, small.radius, s.work);
            small.bound = bound * (1.0 + 1e-9) + 1e-300;
            FP_NAME(fp_sign_radii)(&small, &a, &b);
            a = a > b ? a : b;
            if (!(a > most))
                return;
            most = a;
            *out = small;
        }
        return;
    }
    out->radius = 0.0;
    out->bound = INFINITY;
}
