/* Large balls, in every dimension; included once per instruction set.
 *
 * Deep in a large ball the best output density is flat, and so is that of a uniform input. In place of spheres further
 * in than some 20 standard deviations the input has, with weight alpha, the density
 *
 *     chi(||x||) / V,   chi(r) = Phi((R_1 - r) / FP_AWGN_RAMP),   V its integral: uniform but for a ramp at R_1.
 *
 * All other spheres lie in the ramp or beyond. The first sphere of an input stands for the ramped ball, by convention
 * at the least radius; nothing moves it. In units of its level in the middle the output density is f(y) = E chi(|y+Z|),
 * and that of the spheres besides, which is 1 further in, so that with l = log f
 *
 *     i(r) = log V - log alpha - (d/2) log(2 pi e) - E_r l,
 *
 * where all but one constant is decided near the edge, with as many nodes and spheres for every R.
 *
 *   Lower bound: I(P). The grid begins where 0 <= l < 1e-17, so that E l under the ball needs no other nodes.
 *   Upper bound: the maximum of i, sought from r_low on. Below, i exceeds the constant by less than 1e-16.
 *
 * E chi(|y + Z|) is the integral of chi(r) w(r | rho) over r, where w is the density of |y + Z|, by the trapezoidal
 * rule (theorem 6.5): so the ball is spheres like all others here, 100 to 200 of them in a single row of the table.
 */
/* bounds: proved - docs/proofs/awgn.md, theorem 6.10: where the grid and r_low lie, and which spheres are left out */

static double FP_NAME(fp_awgn_log_volume)(double d, double log_radius)
{
    return 0.5 * d * log(FP_PI) - lgamma(0.5 * d + 1.0) + d * log_radius;
}

/* From now on the first sphere of every input stands for the ball. */
static void FP_NAME(fp_awgn_use_ball)(fp_awgn *a, double layer)
{
    a->edge = a->radius - layer;
    a->window = fp_awgn_ball_window(a);
    a->scan_start = a->edge - 6.0 - 2.0 * a->window - a->d / a->edge;
    a->least_radius = a->scan_start - 1.0;
    a->cover = 0.0;
    a->shrink = 0.0;
}

/* The row of the ball, and its spheres with their weights; returns 0 if they are too many or too close to the centre.
 */
static int FP_NAME(fp_awgn_ball_row)(fp_awgn *a)
{
    const int n = a->padded;
    const double step = 0.5, bottom = a->rho[0] - a->window - a->d / a->edge;
    double *restrict row = a->line[1], *restrict ball = a->ball, mass = 0.0;
    for (double z = -12.0; z <= 12.0; z += 0.25) /* V / V_d(R_1), the mean of the volumes of balls */
        mass += 0.25 / sqrt(2.0 * FP_PI) * exp(a->d * fp_log1p(FP_AWGN_RAMP / a->edge * z) - 0.5 * z * z);
    a->constant = FP_NAME(fp_awgn_log_volume)(a->d, log(a->edge)) + log(mass) - 0.5 * a->d * log(2.0 * FP_PI);
    a->full = a->constant - 0.5 * a->d;
    a->panels = 0;
    for (int k = 0; k < n; k++)
        ball[k] = 0.0;
    for (double r = a->radius; r > bottom; r -= step) {
        const double weight = 0.5 * step * erfc((r - a->edge) / (FP_AWGN_RAMP * sqrt(2.0)));
        const double shift = log(weight) + (a->d - 1.0) * log(r) + a->log_norm;
        if (!(weight > 1e-40)) /* at the edge the spheres have densities above 1e-30 */
            continue;
        if (a->panels == FP_AWGN_PANELS || r * r < 10.0 * a->d)
            return 0;
        FP_NAME(fp_awgn_row)(a, r, a->rho, n, a->line[0], row, a->line[2], a->line[5]);
        for (int k = 0; k < n; k++)
            ball[k] += fp_exp(row[k] + shift);
        a->panel_radius[a->panels] = r;
        a->panel_weight[a->panels++] = weight * exp((a->d - 1.0) * log(r / a->edge)) * a->d / (a->edge * mass);
    }
    for (int k = 0; k < n; k++)
        ball[k] = (ball[k] > 0.0 ? log(ball[k]) : -1e300) - a->constant;
    return 1;
}

/* Append the m - 1 spheres of an input to those of the ball, with weights relative to that of the ball. */
static void FP_NAME(fp_awgn_ball_spheres)(fp_awgn *a, const double *r, const double *p, int m)
{
    for (int j = 1; j < m; j++) {
        a->panel_radius[a->panels + j - 1] = r[j];
        a->panel_weight[a->panels + j - 1] = p[j] / p[0];
    }
}
