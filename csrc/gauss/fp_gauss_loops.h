/* The loops of the Gaussian mechanism; no include guard: common/fp_variants.h includes this once per instruction set. */
FP_LOOP_2(gaussian_delta, fp_gaussian_delta)
FP_LOOP_2(gaussian_log_delta, fp_gaussian_log_delta)

/* The solver of fp_gauss_inverse.h on up to FP_GAUSS_LANES problems side by side.  A finished lane stands still, so its
 * result does not depend on its neighbours. */
FP_INLINE void FP_NAME(fp_gauss_solve)(
    const double *given, const double *target, double *out, ptrdiff_t n, const int unknown, const int logarithmic,
    const int below)
{
    double safe[FP_GAUSS_LANES], unsafe[FP_GAUSS_LANES], x[FP_GAUSS_LANES], close[FP_GAUSS_LANES];
    double level[FP_GAUSS_LANES], divisor[FP_GAUSS_LANES], bulk[FP_GAUSS_LANES];
    uint64_t open[FP_GAUSS_LANES];
    const int of_r = unknown == FP_GAUSS_OF_R;
    const double aim = below ? -1.0 : 1.0;
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const double t = target[i], one = logarithmic ? 0.0 : 1.0, none = logarithmic ? -HUGE_VAL : 0.0;
        const fp_gauss_target goal = fp_gauss_target_of(t, logarithmic);
        double margin, slope;
        level[i] = goal.level;
        divisor[i] = goal.divisor;
        bulk[i] = goal.bulk;
        const double at_zero = fp_gauss_residual(given[i], 0.0, goal, unknown, logarithmic, &margin, &slope);
        const int zero = (at_zero <= (0.5 - aim) * margin) & !of_r;
        safe[i] = of_r || zero ? 0.0 : HUGE_VAL;
        unsafe[i] = of_r ? HUGE_VAL : 0.0;
        x[i] = fp_gauss_guess(given[i], goal, unknown);
        close[i] = zero ? 1.0 : 0.0;
        const int posed = (t > none) & (t < one) & (given[i] < HUGE_VAL) & (of_r ? given[i] >= 0.0 : given[i] > 0.0);
        open[i] = posed & !zero ? 1 : 0;
    }
    for (int step = 0; step < FP_GAUSS_STEPS; step++) {
        uint64_t active = 0;
        const double newton = step < FP_GAUSS_NEWTON_STEPS ? 1.0 : 0.0;
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
        {
            const fp_gauss_target goal = {level[i], divisor[i], 0.0, bulk[i]};
            double margin, slope;
            const double h = fp_gauss_residual(
                of_r ? x[i] : given[i], of_r ? given[i] : x[i], goal, unknown, logarithmic, &margin, &slope);
            const int good = h <= (0.5 - aim) * margin, near = good & (h >= (-0.5 - aim) * margin);
            const double kept = good ? x[i] : safe[i], lost = good ? unsafe[i] : x[i];
            const double low = of_r ? kept : lost, high = of_r ? lost : kept;
            const double t = (h + aim * margin) / slope, bounded = t > 1.5 ? 1.5 : t < -1.5 ? -1.5 : t;
            const double full = of_r ? x[i] * ((2.0 - bounded) / (2.0 + bounded)) : x[i] + t;
            const double up = fp_double(fp_bits(x[i]) + 1), down = fp_double(fp_bits(x[i]) - 1);
            const double tried = full != x[i] ? full : good == of_r ? up : down; /* at least to the next double */
            const double middle = fp_double((fp_bits(low) + fp_bits(high)) >> 1);
            const double next = (tried > low) & (tried < high) & (newton > 0.0) ? tried : middle;
            const int last = near | (middle == low); /* low and high are neighbours */
            const int moving = open[i] != 0;
            safe[i] = moving ? kept : safe[i];
            unsafe[i] = moving ? lost : unsafe[i];
            close[i] = moving & near ? 1.0 : close[i];
            open[i] = moving & !last ? 1 : 0;
            x[i] = moving & !last ? next : x[i];
            active |= open[i];
        }
        if (!active)
            break;
    }
    _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++)
    {
        const double t = target[i], one = logarithmic ? 0.0 : 1.0, none = logarithmic ? -HUGE_VAL : 0.0;
        double value = below & (close[i] == 0.0) ? unsafe[i] : safe[i];
        if (of_r) {
            value = 0.5 / value;
            value = below ? fp_gauss_next_down(value) : fp_gauss_next_up(value);
            value = t == none ? HUGE_VAL : value;
            value = (t == one) | (given[i] == HUGE_VAL) ? 0.0 : value;
        } else {
            value = (t == none) | (given[i] == HUGE_VAL) ? HUGE_VAL : value;
            value = (t == one) | (given[i] == 0.0) ? 0.0 : value;
        }
        out[i] = (t >= none) & (t <= one) & (given[i] >= 0.0) ? value : NAN;
    }
}

#define FP_GAUSS_SOLVER(stem, unknown, logarithmic, below)                                                             \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        for (ptrdiff_t start = 0; start < n; start += FP_GAUSS_LANES)                                                  \
            FP_NAME(fp_gauss_solve)(                                                                                   \
                in[0] + start, in[1] + start, out + start, n - start < FP_GAUSS_LANES ? n - start : FP_GAUSS_LANES,    \
                unknown, logarithmic, below);                                                                          \
    }

FP_GAUSS_SOLVER(gaussian_epsilon, FP_GAUSS_OF_EPSILON, 0, 0)
FP_GAUSS_SOLVER(gaussian_epsilon_from_log_delta, FP_GAUSS_OF_EPSILON, 1, 0)
FP_GAUSS_SOLVER(gaussian_epsilon_below, FP_GAUSS_OF_EPSILON, 0, 1)
FP_GAUSS_SOLVER(gaussian_epsilon_below_from_log_delta, FP_GAUSS_OF_EPSILON, 1, 1)
FP_GAUSS_SOLVER(gaussian_noise, FP_GAUSS_OF_R, 0, 0)
FP_GAUSS_SOLVER(gaussian_noise_from_log_delta, FP_GAUSS_OF_R, 1, 0)
FP_GAUSS_SOLVER(gaussian_noise_below, FP_GAUSS_OF_R, 0, 1)
FP_GAUSS_SOLVER(gaussian_noise_below_from_log_delta, FP_GAUSS_OF_R, 1, 1)

/* The curves with bounds for n settings: epsilon, sigma and span, each an array or one number for all.  Returns how many
 * settings are not plain. */
#define FP_GAUSS_BOUNDS(stem, scalar)                                                                                  \
    static ptrdiff_t FP_NAME(stem)(const double *const *given, const int *fixed, double *const *out, ptrdiff_t n)      \
    {                                                                                                                  \
        double staged[3][FP_BLOCK];                                                                                    \
        const double *in[3];                                                                                           \
        uint64_t others = 0;                                                                                           \
        for (int k = 0; k < 3; k++)                                                                                    \
            for (ptrdiff_t i = 0; i < FP_BLOCK && fixed[k]; i++)                                                       \
                staged[k][i] = *given[k];                                                                              \
        for (ptrdiff_t start = 0; start < n; start += FP_BLOCK) {                                                      \
            const ptrdiff_t m = n - start < FP_BLOCK ? n - start : FP_BLOCK;                                           \
            for (int k = 0; k < 3; k++)                                                                                \
                in[k] = fixed[k] ? staged[k] : given[k] + start;                                                       \
            const double *epsilon = in[0], *sigma = in[1], *span = in[2];                                              \
            double *value = out[0] + start, *lower = out[1] + start, *upper = out[2] + start;                          \
            _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < m; i++)                                                     \
            {                                                                                                          \
                const fp_gauss_bounded found = scalar(0.5 * (span[i] / sigma[i]), epsilon[i]);                         \
                value[i] = found.value;                                                                                \
                lower[i] = found.lower;                                                                                \
                upper[i] = found.upper;                                                                                \
                others += found.lower != found.lower ? 1 : 0;                                                          \
            }                                                                                                          \
        }                                                                                                              \
        return (ptrdiff_t)others;                                                                                      \
    }

FP_GAUSS_BOUNDS(gaussian_delta_bounds, fp_gaussian_delta_bounded)
FP_GAUSS_BOUNDS(gaussian_log_delta_bounds, fp_gaussian_log_delta_bounded)
