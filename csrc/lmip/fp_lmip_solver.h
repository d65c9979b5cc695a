/* The conversions of mutual-information privacy. FP_LMIP_BLOCK problems are solved side by side; a finished one no
 * longer changes, so that its result does not depend on its neighbours. Every unknown keeps a bracket [low, high];
 * a step that leaves it is replaced by bisection. No include guard: common/fp_variants.h includes this once per
 * instruction set. */
/* bounds: tested by kernels/test_lmip_accuracy - when Newton's method has converged: 4e-15 of the answer */

#define FP_LMIP_EACH _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
#define FP_LMIP_ARRAY(name) double name[FP_LMIP_BLOCK] = {0.0}

/* x with d(q + x || q) = m, in place */
static void FP_NAME(fp_lmip_solve_above)(const double *m, const double *q, double *x, ptrdiff_t n, int steps)
{
    for (int step = 0; step < steps; step++)
        FP_LMIP_EACH x[i] = fp_lmip_above_step(m[i], q[i], x[i]);
}

/* q and x = p1 - q that belong to v */
static void FP_NAME(fp_lmip_pairs)(const double *m, const double *v, double *q, double *x, ptrdiff_t n, int steps)
{
    FP_LMIP_ARRAY(fall);
    FP_LMIP_ARRAY(psi);
    FP_LMIP_EACH
    {
        const fp_lmip_ray ray = fp_lmip_ray_of(fp_exp(-v[i]), -fp_expm1(-v[i]), 0.0, 1.0);
        fall[i] = ray.fall;
        psi[i] = ray.psi;
        q[i] = fp_lmip_ray_start(ray, m[i]);
    }
    for (int step = 0; step < steps; step++)
        FP_LMIP_EACH
        {
            const fp_lmip_ray ray = {fall[i], 0.0, 0.0, psi[i]};
            q[i] = fp_lmip_ray_step(ray, m[i], q[i]); /* still -log(1 - q) */
        }
    FP_LMIP_EACH
    {
        q[i] = -fp_expm1(-q[i]);
        x[i] = fp_lmip_above_start(q[i], fall[i]);
    }
    FP_NAME(fp_lmip_solve_above)(m, q, x, n, steps);
}

static void FP_NAME(fp_lmip_ldp)(const double *mu, const double *epsilon, double *out, ptrdiff_t n, int output)
{
    FP_LMIP_ARRAY(m);
    FP_LMIP_ARRAY(excess);
    FP_LMIP_ARRAY(v);
    FP_LMIP_ARRAY(low);
    FP_LMIP_ARRAY(high);
    FP_LMIP_ARRAY(linear);
    FP_LMIP_ARRAY(bend);
    FP_LMIP_ARRAY(target);
    FP_LMIP_ARRAY(last);
    FP_LMIP_ARRAY(last_z);
    FP_LMIP_ARRAY(q);
    FP_LMIP_ARRAY(x);
    uint64_t active_problem[FP_LMIP_BLOCK];
    FP_LMIP_EACH
    {
        const int valid = (mu[i] > 0.0) & (mu[i] < FP_LN2) & (epsilon[i] >= 0.0);
        const double capped = epsilon[i] < FP_LMIP_EPSILON_CAP ? epsilon[i] : FP_LMIP_EPSILON_CAP;
        m[i] = fp_lmip_clamp(valid ? mu[i] : 0.5);
        excess[i] = fp_expm1(valid ? capped : 0.0);
        q[i] = 0.5;
        x[i] = fp_lmip_floor_start(m[i]);
        active_problem[i] = valid ? 1 : 0;
    }
    FP_NAME(fp_lmip_solve_above)(m, q, x, n, 5);
    FP_LMIP_EACH
    {
        const double floor = -fp_log1p(-2.0 * x[i]); /* v where T = 0 */
        const fp_lmip_parabola shape = fp_lmip_parabola_of(floor, excess[i]);
        linear[i] = shape.linear;
        bend[i] = shape.bend;
        target[i] = excess[i] * (shape.linear + shape.bend * excess[i]);
        last[i] = floor * floor;
        last_z[i] = 0.0;
        low[i] = 0.0;
        high[i] = HUGE_VAL;
        v[i] = __builtin_sqrt(last[i] + target[i]);
    }
    for (int step = 0; step < FP_LMIP_STEPS; step++) {
        uint64_t active = 0;
        FP_NAME(fp_lmip_pairs)(m, v, q, x, n, 4);
        FP_LMIP_EACH
        {
            const fp_lmip_pair pair = fp_lmip_pair_of(v[i], q[i], x[i]);
            const int active_now = active_problem[i] != 0, below = pair.rise < excess[i];
            const double bottom = below ? v[i] : low[i], top = below ? high[i] : v[i];
            const double z = pair.rise * (linear[i] + bend[i] * __builtin_fabs(pair.rise)), square = v[i] * v[i];
            const double rate = (square - last[i]) / (z - last_z[i]), secant = rate > 0.0 ? rate : 1.0;
            const double next = __builtin_sqrt(square + (target[i] - z) * secant);
            const int inside = (next > bottom) & (next < top);
            const double change = __builtin_fabs(next - v[i]);
            const int near = change <= 1e-7 * v[i];
            /* for mu close to 1, rounding keeps v from converging, but delta is not affected */
            const int converged = near | ((step >= 8) & (v[i] > 1.0) & (pair.weight * (change * change) <= 1e-18));
            const double chosen = near ? next : converged ? v[i] : inside ? next : fp_lmip_between(bottom, top, v[i]);
            low[i] = active_now ? bottom : low[i];
            high[i] = active_now ? top : high[i];
            last[i] = active_now ? square : last[i];
            last_z[i] = active_now ? z : last_z[i];
            v[i] = active_now ? chosen : v[i];
            active_problem[i] = active_now & !converged ? 1 : 0;
            active |= active_problem[i];
        }
        if (!active)
            break;
    }
    FP_NAME(fp_lmip_pairs)(m, v, q, x, n, 6);
    if (output == FP_LMIP_DELTA)
        FP_LMIP_EACH
        {
            const double eps = epsilon[i] < FP_LMIP_EPSILON_CAP ? epsilon[i] : FP_LMIP_EPSILON_CAP;
            x[i] = x[i] - q[i] * fp_expm1(eps - v[i]);
        }
    else if (output == FP_LMIP_HIGH)
        FP_LMIP_EACH x[i] = q[i] + x[i];
    else
        FP_LMIP_EACH
        {
            const double by = epsilon[i] - FP_LMIP_EPSILON_CAP, low_odds = q[i] * -fp_expm1(-v[i]) / (1.0 - q[i]);
            const double l = v[i] + fp_log1p(low_odds); /* logit q - logit p0; beyond the cap it grows as e^epsilon */
            x[i] = fp_log(q[i]) - (v[i] + (by > 0.0 ? l * fp_expm1(by) : 0.0));
        }
    const double none = output == FP_LMIP_LOG_LOW ? -HUGE_VAL : 0.0, all = output == FP_LMIP_LOG_LOW ? -HUGE_VAL : 1.0;
    FP_LMIP_EACH
    {
        const double value = mu[i] == 0.0 ? none : mu[i] >= FP_LN2 ? all : x[i];
        out[i] = (mu[i] >= 0.0) & (epsilon[i] >= 0.0) ? value : NAN;
    }
}

/* delta as epsilon grows: p1 with d(p1 || q) = m at q = 1 - e^-m, where p0 = 0 */
static void FP_NAME(fp_lmip_ldp_saturation)(const double *mu, double *out, ptrdiff_t n)
{
    FP_LMIP_ARRAY(m);
    FP_LMIP_ARRAY(q);
    FP_LMIP_ARRAY(x);
    FP_LMIP_EACH
    {
        m[i] = fp_lmip_clamp((mu[i] > 0.0) & (mu[i] < FP_LN2) ? mu[i] : 0.5);
        q[i] = -fp_expm1(-m[i]);
        x[i] = fp_lmip_above_start(q[i], 1.0);
    }
    FP_NAME(fp_lmip_solve_above)(m, q, x, n, 6);
    FP_LMIP_EACH
    {
        const double value = mu[i] == 0.0 ? 0.0 : mu[i] >= FP_LN2 ? 1.0 : q[i] + x[i];
        out[i] = mu[i] >= 0.0 ? value : NAN;
    }
}

/* q on the rays p = e^-v q */
static void FP_NAME(fp_lmip_rays)(
    const double *level, const double *v, const double *pi, double *q, ptrdiff_t n, int steps)
{
    FP_LMIP_ARRAY(fall);
    FP_LMIP_ARRAY(rise);
    FP_LMIP_ARRAY(odds);
    FP_LMIP_ARRAY(psi);
    FP_LMIP_EACH
    {
        const fp_lmip_ray ray = fp_lmip_ray_of(fp_exp(-v[i]), -fp_expm1(-v[i]), pi[i], 1.0 - pi[i]);
        fall[i] = ray.fall;
        rise[i] = ray.rise;
        odds[i] = ray.odds;
        psi[i] = ray.psi;
        q[i] = fp_lmip_ray_start(ray, level[i]);
    }
    for (int step = 0; step < steps; step++)
        FP_LMIP_EACH
        {
            const fp_lmip_ray ray = {fall[i], rise[i], odds[i], psi[i]};
            q[i] = fp_lmip_ray_step(ray, level[i], q[i]); /* still -log(1 - q) */
        }
    FP_LMIP_EACH q[i] = -fp_expm1(-q[i]);
}

static void FP_NAME(fp_lmip_lip)(
    const double *mu, const double *epsilon, const double *atom, double *out, ptrdiff_t n, int output)
{
    FP_LMIP_ARRAY(pi);
    FP_LMIP_ARRAY(level);
    FP_LMIP_ARRAY(cap);
    FP_LMIP_ARRAY(excess);
    FP_LMIP_ARRAY(tau);
    FP_LMIP_ARRAY(gap);
    FP_LMIP_ARRAY(c);
    FP_LMIP_ARRAY(low);
    FP_LMIP_ARRAY(high);
    FP_LMIP_ARRAY(v);
    FP_LMIP_ARRAY(q);
    FP_LMIP_ARRAY(p);
    FP_LMIP_ARRAY(missing);
    FP_LMIP_ARRAY(fixed);
    uint64_t active_problem[FP_LMIP_BLOCK];
    const double pointwise = atom == NULL ? 1.0 : 0.0;
    FP_LMIP_EACH pi[i] = 0.0;
    if (atom != NULL)
        FP_LMIP_EACH pi[i] = atom[i];
    FP_LMIP_EACH
    {
        const fp_lmip_atom law = fp_lmip_atom_of(fp_lmip_clamp(mu[i]), epsilon[i], pi[i]);
        level[i] = law.level;
        cap[i] = law.cap;
        excess[i] = law.excess;
        tau[i] = law.tau;
        gap[i] = law.gap;
        low[i] = 0.0;
        high[i] = HUGE_VAL;
        c[i] = fp_lmip_atom_guess(law);
        active_problem[i] =
            fp_lmip_atom_binds(law) & (epsilon[i] >= 0.0) & (pi[i] + pointwise > 0.0) & (pi[i] < 1.0) ? 1 : 0;
    }
    for (int step = 0; step < FP_LMIP_STEPS; step++) {
        uint64_t active = 0;
        FP_LMIP_EACH
        {
            const double eps = epsilon[i] < FP_LMIP_EPSILON_CAP ? epsilon[i] : FP_LMIP_EPSILON_CAP;
            const fp_lmip_atom law = {level[i], pi[i], 1.0 - pi[i], cap[i], eps, excess[i], tau[i], gap[i]};
            const fp_lmip_at at = fp_lmip_atom_at(law, c[i]);
            const int active_now = active_problem[i] != 0, below = at.excess < 0.0;
            const double bottom = below ? c[i] : low[i], top = below ? high[i] : c[i];
            const double t = at.step, bounded = t > 1.5 ? 1.5 : t < -1.5 ? -1.5 : t;
            const double next = c[i] * ((2.0 + bounded) / (2.0 - bounded));
            const int inside = (next > bottom) & (next < top), near = __builtin_fabs(t) <= 1e-6;
            const int converged = near | (__builtin_fabs(at.excess) <= 4e-15 * level[i]);
            const double chosen = near ? next : converged ? c[i] : inside ? next : fp_lmip_between(bottom, top, c[i]);
            low[i] = active_now ? bottom : low[i];
            high[i] = active_now ? top : high[i];
            c[i] = active_now ? chosen : c[i];
            active_problem[i] = active_now & !converged ? 1 : 0;
            active |= active_problem[i];
        }
        if (!active)
            break;
    }
    FP_LMIP_EACH
    {
        const double eps = epsilon[i] < FP_LMIP_EPSILON_CAP ? epsilon[i] : FP_LMIP_EPSILON_CAP;
        const fp_lmip_atom law = {level[i], pi[i], 1.0 - pi[i], cap[i], eps, excess[i], tau[i], gap[i]};
        const fp_lmip_at at = fp_lmip_atom_at(law, c[i]);
        v[i] = at.v;
        p[i] = at.p;
        missing[i] = at.missing;
        fixed[i] = at.fixed;
    }
    FP_NAME(fp_lmip_rays)(level, v, pi, q, n, 6);
    for (int step = 0; step < 3; step++)
        FP_LMIP_EACH
        {
            const fp_lmip_atom law = {level[i], pi[i], 1.0 - pi[i], cap[i], 0.0, excess[i], tau[i], gap[i]};
            p[i] = fp_lmip_fixed_step(law, missing[i], gap[i] * c[i], p[i]);
        }
    FP_LMIP_EACH
    {
        const double eps = epsilon[i] < FP_LMIP_EPSILON_CAP ? epsilon[i] : FP_LMIP_EPSILON_CAP;
        const double by = epsilon[i] - FP_LMIP_EPSILON_CAP, rest = 1.0 - pi[i], span = (1.0 - missing[i]) - p[i];
        const int is_fixed = fixed[i] > 0.0;
        const double delta = is_fixed ? rest * span - excess[i] * p[i] : -q[i] * fp_expm1(eps - v[i]);
        const double mean = is_fixed ? p[i] + rest * span : q[i], ratio = is_fixed ? fp_log(mean / p[i]) : v[i];
        /* beyond the cap a stays and b = c (1 - tau) grows as e^epsilon - pi */
        const double low_log = fp_log(mean) - (ratio + (by > 0.0 ? c[i] * fp_expm1(by) : 0.0));
        q[i] = output == FP_LMIP_DELTA ? delta : output == FP_LMIP_HIGH ? mean : low_log;
    }
    const int logarithmic = output == FP_LMIP_LOG_LOW;
    FP_LMIP_EACH
    {
        const double none = logarithmic ? -HUGE_VAL : 0.0, all = logarithmic ? -HUGE_VAL : 1.0 - pi[i];
        const int free = (level[i] >= cap[i]) | (level[i] >= 745.0) | ((pi[i] + pointwise == 0.0) & (mu[i] > 0.0));
        const double value = (mu[i] == 0.0) | (pi[i] == 1.0) ? none : free ? all : q[i];
        out[i] = (mu[i] >= 0.0) & (epsilon[i] >= 0.0) & (pi[i] >= 0.0) & (pi[i] <= 1.0) ? value : NAN;
    }
}

/* delta as epsilon grows: p = 0 */
static void FP_NAME(fp_lmip_lip_saturation)(const double *mu, const double *pi, double *out, ptrdiff_t n)
{
    FP_LMIP_ARRAY(level);
    FP_LMIP_ARRAY(cap);
    FP_LMIP_ARRAY(v);
    FP_LMIP_ARRAY(q);
    FP_LMIP_EACH
    {
        const fp_lmip_atom law = fp_lmip_atom_of(fp_lmip_clamp(mu[i]), 0.0, pi[i]);
        level[i] = law.level;
        cap[i] = law.cap;
        v[i] = HUGE_VAL;
    }
    FP_NAME(fp_lmip_rays)(level, v, pi, q, n, 8);
    FP_LMIP_EACH
    {
        const int free = (level[i] >= cap[i]) | (level[i] >= 745.0) | ((pi[i] == 0.0) & (mu[i] > 0.0));
        const double value = (mu[i] == 0.0) | (pi[i] == 1.0) ? 0.0 : free ? 1.0 - pi[i] : q[i];
        out[i] = (mu[i] >= 0.0) & (pi[i] >= 0.0) & (pi[i] <= 1.0) ? value : NAN;
    }
}

#define FP_LMIP_LOOP(stem, part, ...)                                                                                  \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        for (ptrdiff_t at = 0; at < n; at += FP_LMIP_BLOCK) {                                                          \
            const ptrdiff_t count = n - at < FP_LMIP_BLOCK ? n - at : FP_LMIP_BLOCK;                                   \
            FP_NAME(part)(__VA_ARGS__);                                                                                \
        }                                                                                                              \
    }

#define FP_LMIP_LDP(stem, output) FP_LMIP_LOOP(stem, fp_lmip_ldp, in[0] + at, in[1] + at, out + at, count, output)
#define FP_LMIP_POINTWISE(stem, output)                                                                                \
    FP_LMIP_LOOP(stem, fp_lmip_lip, in[0] + at, in[1] + at, NULL, out + at, count, output)
#define FP_LMIP_ATOM(stem, output)                                                                                     \
    FP_LMIP_LOOP(stem, fp_lmip_lip, in[0] + at, in[1] + at, in[2] + at, out + at, count, output)

FP_LMIP_LDP(ci_lmip_ldp_delta, FP_LMIP_DELTA)
FP_LMIP_LDP(ci_lmip_ldp_high, FP_LMIP_HIGH)
FP_LMIP_LDP(ci_lmip_ldp_log_low, FP_LMIP_LOG_LOW)
FP_LMIP_LOOP(ci_lmip_ldp_saturation, fp_lmip_ldp_saturation, in[0] + at, out + at, count)
FP_LMIP_POINTWISE(pointwise_lip_delta, FP_LMIP_DELTA)
FP_LMIP_POINTWISE(pointwise_lip_high, FP_LMIP_HIGH)
FP_LMIP_POINTWISE(pointwise_lip_log_low, FP_LMIP_LOG_LOW)
FP_LMIP_ATOM(cd_lmip_lip_delta, FP_LMIP_DELTA)
FP_LMIP_ATOM(cd_lmip_lip_high, FP_LMIP_HIGH)
FP_LMIP_ATOM(cd_lmip_lip_log_low, FP_LMIP_LOG_LOW)
FP_LMIP_LOOP(cd_lmip_lip_saturation, fp_lmip_lip_saturation, in[0] + at, in[1] + at, out + at, count)

#undef FP_LMIP_EACH
#undef FP_LMIP_ARRAY
#undef FP_LMIP_LOOP
#undef FP_LMIP_LDP
#undef FP_LMIP_POINTWISE
#undef FP_LMIP_ATOM
