/* The loops of the conversions of mutual-information privacy; no include guard: fp_variants.h includes this once per
 * instruction set.  Problems are solved side by side; a finished lane stands still, so its result does not depend on its
 * neighbours.  Every step keeps a bracket [low, high] of the unknown; one that leaves it halves it instead. */

#define FP_LMIP_EACH _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)

FP_INLINE void FP_NAME(fp_lmip_ldp)(const double *mu, const double *epsilon, double *out, ptrdiff_t n, const int wanted)
{
    double m[FP_LMIP_LANES], excess[FP_LMIP_LANES], v[FP_LMIP_LANES], low[FP_LMIP_LANES], high[FP_LMIP_LANES];
    double linear[FP_LMIP_LANES], bend[FP_LMIP_LANES], goal[FP_LMIP_LANES], last_z[FP_LMIP_LANES], last[FP_LMIP_LANES];
    uint64_t open[FP_LMIP_LANES];
    FP_LMIP_EACH
    {
        const double capped = epsilon[i] < FP_LMIP_EPSILON_CAP ? epsilon[i] : FP_LMIP_EPSILON_CAP;
        const int posed = (mu[i] > 0.0) & (mu[i] < 1.0) & (epsilon[i] >= 0.0);
        const double bits = posed ? mu[i] : 0.5;
        m[i] = bits * FP_LMIP_LN2;
        excess[i] = fp_expm1(posed ? capped : 0.0);
        const double floor = fp_lmip_pair_floor(bits, m[i], 5);
        const fp_lmip_parabola shape = fp_lmip_parabola_of(floor, excess[i]);
        linear[i] = shape.linear;
        bend[i] = shape.bend;
        goal[i] = excess[i] * (shape.linear + shape.bend * excess[i]);
        last[i] = floor * floor; /* T = 0 there */
        last_z[i] = 0.0;
        low[i] = 0.0;
        high[i] = HUGE_VAL;
        v[i] = __builtin_sqrt(last[i] + goal[i]);
        open[i] = posed ? 1 : 0;
    }
    for (int step = 0; step < FP_LMIP_STEPS; step++) {
        uint64_t active = 0;
        FP_LMIP_EACH
        {
            const fp_lmip_pair pair = fp_lmip_pair_of(m[i], v[i], 4);
            const int moving = open[i] != 0, below = pair.rise < excess[i];
            const double bottom = below ? v[i] : low[i], top = below ? high[i] : v[i];
            const double z = pair.rise * (linear[i] + bend[i] * __builtin_fabs(pair.rise)), square = v[i] * v[i];
            const double rate = (square - last[i]) / (z - last_z[i]), secant = rate > 0.0 ? rate : 1.0;
            const double next = __builtin_sqrt(square + (goal[i] - z) * secant);
            const int inside = (next > bottom) & (next < top);
            const double change = __builtin_fabs(next - v[i]);
            const int near = change <= 1e-7 * v[i];
            const int close = near | ((v[i] > 1.0) & (pair.weight * (change * change) <= 1e-18));
            const double chosen = inside | near ? next : close ? v[i] : fp_lmip_between(bottom, top, v[i]);
            low[i] = moving ? bottom : low[i];
            high[i] = moving ? top : high[i];
            last[i] = moving ? square : last[i];
            last_z[i] = moving ? z : last_z[i];
            v[i] = moving ? chosen : v[i];
            open[i] = moving & !close ? 1 : 0;
            active += open[i];
        }
        if (!active)
            break;
    }
    FP_LMIP_EACH
    {
        const double eps = epsilon[i], capped = eps < FP_LMIP_EPSILON_CAP ? eps : FP_LMIP_EPSILON_CAP;
        const fp_lmip_pair pair = fp_lmip_pair_of(m[i], v[i], 6);
        double value = pair.q + pair.x, none = 0.0, all = 1.0;
        if (wanted == FP_LMIP_DELTA)
            value = pair.x - pair.q * fp_expm1(capped - v[i]);
        if (wanted == FP_LMIP_LOG_LOW) {
            /* beyond the cap logit q - logit p0 grows as e^epsilon */
            const double l = v[i] + fp_log1p((value = pair.q * -fp_expm1(-v[i])) / (1.0 - pair.q));
            const double more = eps > capped ? l * fp_expm1(eps - capped) : 0.0;
            value = fp_log(pair.q) - (v[i] + more);
            none = all = -HUGE_VAL;
        }
        value = mu[i] == 0.0 ? none : value;
        value = mu[i] >= 1.0 ? all : value;
        out[i] = (mu[i] >= 0.0) & (eps >= 0.0) ? value : NAN;
    }
}

FP_INLINE void FP_NAME(fp_lmip_lip)(
    const double *mu, const double *epsilon, const double *atom, double *out, ptrdiff_t n, const int pointwise,
    const int wanted)
{
    double c[FP_LMIP_LANES], low[FP_LMIP_LANES], high[FP_LMIP_LANES];
    uint64_t open[FP_LMIP_LANES];
    FP_LMIP_EACH
    {
        const double pi = pointwise ? 0.0 : atom[i];
        const fp_lmip_atom law = fp_lmip_atom_of(mu[i] * FP_LMIP_LN2, epsilon[i], pi);
        low[i] = 0.0;
        high[i] = HUGE_VAL;
        const int posed = fp_lmip_atom_binds(law) & (epsilon[i] >= 0.0) & (pointwise ? 1 : (pi > 0.0) & (pi < 1.0));
        c[i] = fp_lmip_atom_guess(law);
        open[i] = posed ? 1 : 0;
    }
    for (int step = 0; step < FP_LMIP_STEPS; step++) {
        uint64_t active = 0;
        FP_LMIP_EACH
        {
            const fp_lmip_atom law = fp_lmip_atom_of(mu[i] * FP_LMIP_LN2, epsilon[i], pointwise ? 0.0 : atom[i]);
            const fp_lmip_at at = fp_lmip_atom_at(law, c[i]);
            const int moving = open[i] != 0, below = at.excess < 0.0;
            const double bottom = below ? c[i] : low[i], top = below ? high[i] : c[i];
            const double t = at.step, bounded = t > 1.5 ? 1.5 : t < -1.5 ? -1.5 : t;
            const double next = c[i] * ((2.0 + bounded) / (2.0 - bounded));
            const int inside = (next > bottom) & (next < top);
            const int near = __builtin_fabs(t) <= 1e-6, close = near | (__builtin_fabs(at.excess) <= 4e-15 * law.level);
            const double chosen = inside | near ? next : close ? c[i] : fp_lmip_between(bottom, top, c[i]);
            low[i] = moving ? bottom : low[i];
            high[i] = moving ? top : high[i];
            c[i] = moving ? chosen : c[i];
            open[i] = moving & !close ? 1 : 0;
            active += open[i];
        }
        if (!active)
            break;
    }
    FP_LMIP_EACH
    {
        const double eps = epsilon[i], pi = pointwise ? 0.0 : atom[i];
        const fp_lmip_atom law = fp_lmip_atom_of(mu[i] * FP_LMIP_LN2, eps, pi);
        const double v = fp_lmip_atom_at(law, c[i]).v;
        const fp_lmip_ray ray = fp_lmip_ray_of(fp_exp(-v), -fp_expm1(-v), pi, law.rest);
        const double q = fp_lmip_on_ray(ray, law.level, 6);
        double value = q, none = 0.0, all = law.rest;
        if (wanted == FP_LMIP_DELTA)
            value = -q * fp_expm1(law.epsilon - v);
        if (wanted == FP_LMIP_LOG_LOW) {
            /* beyond the cap a stays and b grows as e^epsilon - pi */
            const double a = law.tau * c[i], b = law.gap * c[i], by = eps - law.epsilon;
            const double further = by > 0.0 ? b * (fp_expm1(by) / law.gap) : 0.0;
            const double log_more = by > 0.0 ? fp_log((a + b + further) / c[i]) : 0.0;
            const double more = further < HUGE_VAL ? by + further - log_more : HUGE_VAL;
            value = fp_log(q) - (v + more);
            none = all = -HUGE_VAL;
        }
        value = (law.level >= law.cap) | (pointwise & (law.level >= 745.0)) ? all : value;
        value = mu[i] == 0.0 ? none : value;
        value = !pointwise & (pi == 1.0) ? none : value;
        value = !pointwise & (pi == 0.0) & (mu[i] > 0.0) ? all : value;
        out[i] = (mu[i] >= 0.0) & (eps >= 0.0) & (pi >= 0.0) & (pi <= 1.0) ? value : NAN;
    }
}

#define FP_LMIP_BLOCKS(call)                                                                                           \
    for (ptrdiff_t start = 0; start < n; start += FP_LMIP_LANES) {                                                     \
        const ptrdiff_t some = n - start < FP_LMIP_LANES ? n - start : FP_LMIP_LANES;                                  \
        call;                                                                                                          \
    }

#define FP_LMIP_LDP(stem, wanted)                                                                                      \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        FP_LMIP_BLOCKS(FP_NAME(fp_lmip_ldp)(in[0] + start, in[1] + start, out + start, some, wanted))                  \
    }

#define FP_LMIP_POINTWISE(stem, wanted)                                                                                \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        FP_LMIP_BLOCKS(FP_NAME(fp_lmip_lip)(in[0] + start, in[1] + start, NULL, out + start, some, 1, wanted))         \
    }

#define FP_LMIP_ATOM(stem, wanted)                                                                                     \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        FP_LMIP_BLOCKS(                                                                                                \
            FP_NAME(fp_lmip_lip)(in[0] + start, in[1] + start, in[2] + start, out + start, some, 0, wanted))           \
    }

FP_LMIP_LDP(ci_lmip_ldp_delta, FP_LMIP_DELTA)
FP_LMIP_LDP(ci_lmip_ldp_high, FP_LMIP_HIGH)
FP_LMIP_LDP(ci_lmip_ldp_log_low, FP_LMIP_LOG_LOW)
FP_LMIP_POINTWISE(pointwise_lip_delta, FP_LMIP_DELTA)
FP_LMIP_POINTWISE(pointwise_lip_high, FP_LMIP_HIGH)
FP_LMIP_POINTWISE(pointwise_lip_log_low, FP_LMIP_LOG_LOW)
FP_LMIP_ATOM(cd_lmip_lip_delta, FP_LMIP_DELTA)
FP_LMIP_ATOM(cd_lmip_lip_high, FP_LMIP_HIGH)
FP_LMIP_ATOM(cd_lmip_lip_log_low, FP_LMIP_LOG_LOW)

FP_LOOP_1(ci_lmip_ldp_saturation, fp_lmip_ldp_saturation)
FP_LOOP_2(cd_lmip_lip_saturation, fp_lmip_lip_saturation)

#undef FP_LMIP_EACH
#undef FP_LMIP_BLOCKS
#undef FP_LMIP_LDP
#undef FP_LMIP_POINTWISE
#undef FP_LMIP_ATOM
