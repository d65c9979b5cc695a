/* The inverse curves of the Gaussian mechanism by bracketed Newton steps; the mathematics is in fp_gauss_inverse.h.
 *
 * FP_GAUSS_BLOCK problems are solved side by side.  A problem that is finished no longer changes, so that its result
 * does not depend on its neighbours.  The residual, which costs most, is compiled once for plain and once for
 * logarithmic targets; which of the two arguments is unknown, and which side of the root is wanted, are known at run
 * time only. No include guard: common/fp_variants.h includes this once per instruction set. */

/* The state of a block of problems; flags are doubles where loops select by them, so that these vectorise. */
typedef struct {
    double level[FP_GAUSS_BLOCK], divisor[FP_GAUSS_BLOCK], bulk[FP_GAUSS_BLOCK]; /* fp_gauss_target */
    double x[FP_GAUSS_BLOCK], safe[FP_GAUSS_BLOCK], unsafe[FP_GAUSS_BLOCK];     /* iterate and bracket */
    double residual[FP_GAUSS_BLOCK], margin[FP_GAUSS_BLOCK], slope[FP_GAUSS_BLOCK];
    double converged[FP_GAUSS_BLOCK];
    uint64_t active[FP_GAUSS_BLOCK];
} FP_NAME(fp_gauss_block);

FP_INLINE void FP_NAME(fp_gauss_residuals)(const double *r, const double *epsilon, ptrdiff_t n, double unknown_is_r,
                                           const int logarithmic, FP_NAME(fp_gauss_block) *__restrict__ b)
{
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const fp_gauss_target target = {b->level[i], b->divisor[i], 0.0, b->bulk[i]};
        b->residual[i] =
            fp_gauss_residual(r[i], epsilon[i], target, unknown_is_r, logarithmic, &b->margin[i], &b->slope[i]);
    }
}

static void FP_NAME(fp_gauss_residuals_plain)(const double *r, const double *epsilon, ptrdiff_t n, double unknown_is_r,
                                              FP_NAME(fp_gauss_block) *b)
{
    FP_NAME(fp_gauss_residuals)(r, epsilon, n, unknown_is_r, 0, b);
}

static void FP_NAME(fp_gauss_residuals_log)(const double *r, const double *epsilon, ptrdiff_t n, double unknown_is_r,
                                            FP_NAME(fp_gauss_block) *b)
{
    FP_NAME(fp_gauss_residuals)(r, epsilon, n, unknown_is_r, 1, b);
}

/* `side` is 1 for the safe side of the root, -1 for the other. */
FP_INLINE void FP_NAME(fp_gauss_solve_block)(const double *known, const double *target, double *out, ptrdiff_t n,
                                             double side, const int unknown, const int logarithmic)
{
    FP_NAME(fp_gauss_block) block, *b = &block;
    const int of_r = unknown == FP_GAUSS_OF_R;
    const double *r = of_r ? b->x : known, *epsilon = of_r ? known : b->x;
    const double all = logarithmic ? 0.0 : 1.0, none = logarithmic ? -HUGE_VAL : 0.0;
    double guess[FP_GAUSS_BLOCK];
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const fp_gauss_target t = fp_gauss_target_of(target[i], logarithmic);
        b->level[i] = t.level;
        b->divisor[i] = t.divisor;
        b->bulk[i] = t.bulk;
        guess[i] = fp_gauss_guess(known[i], t, unknown);
        b->x[i] = b->residual[i] = b->margin[i] = 0.0;
    }
    if (!of_r) /* epsilon = 0 may be the answer */
        (logarithmic ? FP_NAME(fp_gauss_residuals_log) : FP_NAME(fp_gauss_residuals_plain))(r, epsilon, n, 0.0, b);
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const double t = target[i];
        const int zero = (b->residual[i] <= (0.5 - side) * b->margin[i]) & !of_r;
        const int valid = (t > none) & (t < all) & (known[i] < HUGE_VAL) & (of_r ? known[i] >= 0.0 : known[i] > 0.0);
        b->safe[i] = of_r || zero ? 0.0 : HUGE_VAL;
        b->unsafe[i] = of_r ? HUGE_VAL : 0.0;
        b->x[i] = guess[i];
        b->converged[i] = zero ? 1.0 : 0.0;
        b->active[i] = valid & !zero ? 1 : 0;
    }
    for (int step = 0; step < FP_GAUSS_STEPS; step++) {
        uint64_t any_active = 0;
        const double newton = step < FP_GAUSS_NEWTON_STEPS ? 1.0 : 0.0;
        (logarithmic ? FP_NAME(fp_gauss_residuals_log) : FP_NAME(fp_gauss_residuals_plain))(r, epsilon, n, of_r, b);
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
        {
            const double x = b->x[i], h = b->residual[i], margin = b->margin[i];
            const int is_safe = h <= (0.5 - side) * margin, is_root = is_safe & (h >= (-0.5 - side) * margin);
            const double safe = is_safe ? x : b->safe[i], unsafe = is_safe ? b->unsafe[i] : x;
            const double low = of_r ? safe : unsafe, high = of_r ? unsafe : safe;
            const double t = (h + side * margin) / b->slope[i], bounded = t > 1.5 ? 1.5 : t < -1.5 ? -1.5 : t;
            const double full = of_r ? x * ((2.0 - bounded) / (2.0 + bounded)) : x + t;
            const double next_up = fp_double(fp_bits(x) + 1), next_down = fp_double(fp_bits(x) - 1);
            const double tried = full != x         ? full
                                 : is_safe == of_r ? next_up
                                                   : next_down; /* it moves by an ulp at least */
            const double middle = fp_double((fp_bits(low) + fp_bits(high)) >> 1);
            const double next = (tried > low) & (tried < high) & (newton > 0.0) ? tried : middle;
            const int is_last = is_root | (middle == low); /* low and high are neighbours */
            const int active = b->active[i] != 0;
            b->safe[i] = active ? safe : b->safe[i];
            b->unsafe[i] = active ? unsafe : b->unsafe[i];
            b->converged[i] = active & is_root ? 1.0 : b->converged[i];
            b->active[i] = active & !is_last ? 1 : 0;
            b->x[i] = active & !is_last ? next : x;
            any_active |= b->active[i];
        }
        if (!any_active)
            break;
    }
    const double below = side < 0.0 ? 1.0 : 0.0;
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const double t = target[i];
        double value = (below > 0.0) & (b->converged[i] == 0.0) ? b->unsafe[i] : b->safe[i];
        if (of_r) {
            const double sigma = 0.5 / value, down = fp_gauss_next_down(sigma), up = fp_gauss_next_up(sigma);
            value = below > 0.0 ? down : up;
            value = t == none ? HUGE_VAL : value;
            value = (t == all) | (known[i] == HUGE_VAL) ? 0.0 : value;
        } else {
            value = (t == none) | (known[i] == HUGE_VAL) ? HUGE_VAL : value;
            value = (t == all) | (known[i] == 0.0) ? 0.0 : value;
        }
        out[i] = (t >= none) & (t <= all) & (known[i] >= 0.0) ? value : NAN;
    }
}

#define FP_GAUSS_SOLVER(stem, unknown, logarithmic)                                                                    \
    static void FP_NAME(fp_gauss_##stem)(const double *const *in, double *out, ptrdiff_t n, double side)               \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < n; i += FP_GAUSS_BLOCK)                                                              \
            FP_NAME(fp_gauss_solve_block)(in[0] + i, in[1] + i, out + i,                                               \
                                          n - i < FP_GAUSS_BLOCK ? n - i : (ptrdiff_t)FP_GAUSS_BLOCK, side,            \
                                          unknown, logarithmic);                                                       \
    }

FP_GAUSS_SOLVER(epsilon, FP_GAUSS_OF_EPSILON, 0)
FP_GAUSS_SOLVER(epsilon_from_log_delta, FP_GAUSS_OF_EPSILON, 1)
FP_GAUSS_SOLVER(noise, FP_GAUSS_OF_R, 0)
FP_GAUSS_SOLVER(noise_from_log_delta, FP_GAUSS_OF_R, 1)

#define FP_GAUSS_INVERSE(stem, solver, side)                                                                           \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        FP_NAME(fp_gauss_##solver)(in, out, n, side);                                                                  \
    }

FP_GAUSS_INVERSE(gaussian_epsilon, epsilon, 1.0)
FP_GAUSS_INVERSE(gaussian_epsilon_from_log_delta, epsilon_from_log_delta, 1.0)
FP_GAUSS_INVERSE(gaussian_epsilon_below, epsilon, -1.0)
FP_GAUSS_INVERSE(gaussian_epsilon_below_from_log_delta, epsilon_from_log_delta, -1.0)
FP_GAUSS_INVERSE(gaussian_noise, noise, 1.0)
FP_GAUSS_INVERSE(gaussian_noise_from_log_delta, noise_from_log_delta, 1.0)
FP_GAUSS_INVERSE(gaussian_noise_below, noise, -1.0)
FP_GAUSS_INVERSE(gaussian_noise_below_from_log_delta, noise_from_log_delta, -1.0)
