/* Weights and radii together, by Newton's method; included once per instruction set.
 *
 * In the variables p_j and m_j = p_j (move of r_j) the second derivatives of I are -G over the rows table_j and
 * first_j, plus i''(r_j) / p_j for m_j alone: negative definite as soon as every i''(r_j) < 0, so the step goes uphill.
 * Weights are held positive by duals z_j.
 */
/* bounds: none - the solver's regularisation */

typedef struct {
    int count;
    double radius[FP_AWGN_SPHERES], weight[FP_AWGN_SPHERES];
} FP_NAME(fp_awgn_input);

/* Sort the input, merge neighbours closer than `near`, and drop spheres of negligible weight. */
static void FP_NAME(fp_awgn_merge_spheres)(FP_NAME(fp_awgn_input) *in, double radius, double near)
{
    int count = 0;
    double total = 0.0;
    for (int j = 0; j < in->count; j++) { /* insertion sort */
        const double r = in->radius[j] < 1e-8 ? 0.0 : in->radius[j], p = in->weight[j];
        int k = j;
        for (; k > 0 && in->radius[k - 1] > r; k--) {
            in->radius[k] = in->radius[k - 1];
            in->weight[k] = in->weight[k - 1];
        }
        in->radius[k] = r;
        in->weight[k] = p;
    }
    for (int j = 0; j < in->count; j++) {
        const double r = in->radius[j], p = in->weight[j];
        if (!(p > FP_AWGN_NEGLIGIBLE_WEIGHT) && r < radius)
            continue;
        if (count && r - in->radius[count - 1] < near) {
            const double sum = p + in->weight[count - 1];
            in->radius[count - 1] = r == radius ? r : (p * r + in->weight[count - 1] * in->radius[count - 1]) / sum;
            in->weight[count - 1] = sum;
        } else {
            in->radius[count] = r;
            in->weight[count++] = p;
        }
    }
    for (int j = 0; j < count; j++)
        total += in->weight[j];
    for (int j = 0; j < count; j++)
        in->weight[j] /= total;
    in->count = count;
}

/* Newton steps until i is constant on the spheres to within `tolerance`; returns I. */
static double FP_NAME(fp_awgn_newton)(fp_awgn *a, FP_NAME(fp_awgn_input) *in, double tolerance, int most)
{
    enum { MOST = FP_AWGN_SPHERES };
    double gauss[MOST], value[MOST], slope[MOST], bend[MOST], z[MOST], dp[MOST], information = 0.0;
    double right[2 * MOST], one[2 * MOST], *rows[2 * MOST];
    int free_index[MOST], since = 0;
    double scan_bound = INFINITY;
    const int n = a->padded;
    for (int round = 0; round < most; round++) {
        FP_NAME(fp_awgn_merge_spheres)(in, a->radius, FP_AWGN_MERGE_DISTANCE);
        const int m = in->count;
        double *r = in->radius, *p = in->weight, best = -INFINITY, drift = 0.0;
        FP_NAME(fp_awgn_tabulate)(a, r, m, 1);
        FP_NAME(fp_awgn_mixture)(a, p, m);
        FP_NAME(fp_awgn_gaussian_terms)(a, r, m, gauss);
        FP_NAME(fp_awgn_values)(a, gauss, m, value);
        a->work += 2.0 * m * m * (n + m / 3.0) + 60.0 * m * n;
        double *restrict cl = a->line[4], *restrict scale = a->line[5];
        information = 0.0;
        int free_count = 0;
        for (int j = 0; j < m; j++) {
            slope[j] = r[j] * a->shrink - FP_NAME(fp_awgn_dot)(a->first + (size_t)j * n, cl, n);
            bend[j] = a->shrink - FP_NAME(fp_awgn_dot)(a->second + (size_t)j * n, cl, n);
            information += p[j] * value[j];
            best = value[j] > best ? value[j] : best;
            const int held =
                r[j] == 0.0 || (r[j] == a->radius && slope[j] >= 0.0) || (r[j] == a->least_radius && slope[j] <= 0.0);
            if (!held) {
                const double gain = 0.5 * slope[j] * slope[j] / (fabs(bend[j]) + 1e-12);
                drift = gain > drift ? gain : drift;
                free_index[free_count++] = j;
            }
        }
        for (int j = 0; j < m; j++) { /* the duals follow i where it is below its maximum */
            const double gap = information - value[j];
            z[j] = gap > 0.0 && p[j] < 1e-2 ? gap : 0.0;
            z[j] = z[j] > 0.1 * tolerance ? z[j] : 0.1 * tolerance;
        }
        const double miss = best - information > drift ? best - information : drift;
        if (miss < 0.5 * scan_bound) {
            scan_bound = miss;
            since = 0;
        } else {
            since++;
        }
        if (miss <= tolerance || round == most - 1 || since > 10)
            break; /* the table belongs to the current input */
        const int size = m + free_count;
        for (int k = 0; k < n; k++)
            scale[k] = a->c[k] / a->line[3][k];
        for (int j = 0; j < m; j++)
            rows[j] = a->table + (size_t)j * n;
        for (int f = 0; f < free_count; f++)
            rows[m + f] = a->first + (size_t)free_index[f] * n;
        double *gram = a->gram;
        FP_NAME(fp_awgn_gram)(rows, size, scale, n, cl, gram, size);
        gram[0] += a->deep / p[0];
        for (int j = 0; j < m; j++) {
            gram[(size_t)j * size + j] += z[j] / p[j];
            right[j] = value[j] - information;
            one[j] = 1.0;
        }
        for (int f = 0; f < free_count; f++) {
            const int j = free_index[f];
            gram[(size_t)(m + f) * size + m + f] += (fabs(bend[j]) + 1e-10) / p[j];
            right[m + f] = slope[j];
            one[m + f] = 0.0;
        }
        FP_NAME(fp_awgn_factor)(gram, size, size);
        FP_NAME(fp_awgn_backsolve)(gram, size, size, right);
        FP_NAME(fp_awgn_backsolve)(gram, size, size, one);
        double sum = 0.0, ones = 0.0, step = 1.0;
        for (int j = 0; j < m; j++) {
            sum += right[j];
            ones += one[j];
        }
        for (int j = 0; j < size; j++)
            right[j] -= sum / ones * one[j];
        for (int j = 0; j < m; j++) {
            dp[j] = right[j];
            if (dp[j] < 0.0 && -0.9 * p[j] / dp[j] < step)
                step = -0.9 * p[j] / dp[j];
        }
        for (int f = 0; f < free_count; f++) {
            const double move = fabs(right[m + f] / p[free_index[f]]);
            if (move * step > 0.4)
                step = 0.4 / move;
        }
        for (int f = 0; f < free_count; f++) {
            const int j = free_index[f];
            double to = r[j] + step * right[m + f] / p[j];
            to = to > a->radius ? a->radius : to < a->least_radius ? a->least_radius : to;
            r[j] = to;
        }
        for (int j = 0; j < m; j++)
            p[j] += step * dp[j];
    }
    return information;
}
