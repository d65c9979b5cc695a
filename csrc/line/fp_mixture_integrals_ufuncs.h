/* Generalised ufuncs of the quantities of fp_mixture_integrals_solver.h: (value, lower, upper) of each row of mixtures.
 *
 * Bounds are proved, and rows that are invalid are NaN. A loop holds one workspace; it does not ask whether to stop
 * (fp_ufunc.h). */
#ifndef FP_MIXTURE_INTEGRALS_UFUNCS_H
#define FP_MIXTURE_INTEGRALS_UFUNCS_H

#include "common/fp_ufunc.h"
#include "line/fp_mixture_integrals_solver.h"

#define FP_ROW_MAX_WORK 1000000000L /* exponentials, some seconds */

/* Must be called once, before any row. */
static inline void fp_mixture_integrals_select(void)
{
    fp_quadrature_select();
    fp_one_sigma_select();
}

/* `columns` inputs with the components on their last axis, k of the first side and j of the second; then sigma of the
 * noise for the information, or the orders, `orders` of them. */
static inline void fp_row_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, int quantity, int pair,
                               int orders)
{
    const fp_flags held = fp_flags_save();
    const int inputs = (pair ? 6 : 3) + (orders ? 1 : 0);
    const ptrdiff_t k = dimensions[1], j = pair ? dimensions[2] : 0, many = orders ? dimensions[3] : 1;
    const ptrdiff_t *core = steps + inputs + 3; /* strides of the axes of components and of orders */
    const int noise = quantity == FP_INFORMATION;
    fp_row_workspace ws = {.certified = 1, .max_work = FP_ROW_MAX_WORK, .stop = fp_stop_token_make(NULL, INFINITY)};
    for (ptrdiff_t i = 0; i < dimensions[0]; i++) {
        fp_column c[6] = {{0}};
        for (int side = 0; side < (pair ? 6 : 3); side++)
            c[side] = (fp_column){args[side] + i * steps[side], noise && side == 2 ? 0 : core[side]};
        for (ptrdiff_t e = 0; e < many; e++) {
            const double order = orders ? *(const double *)(args[6] + i * steps[6] + e * core[6]) : 0.0;
            fp_row row = {.value = NAN, .lower = NAN, .upper = NAN};
            if (k > 0 && k < 1 << 28 && (!pair || (j > 0 && j < 1 << 28))
                && fp_mixture_row(&ws, quantity, (int)k, c[0], c[1], c[2], (int)j, c[3], c[4], c[5], order, -1.0, &row))
                row = (fp_row){.value = NAN, .lower = NAN, .upper = NAN};
            const double answer[3] = {row.value, row.lower, row.upper};
            for (int out = 0; out < 3; out++)
                *(double *)(args[inputs + out] + i * steps[inputs + out] + (orders ? e * core[7 + out] : 0)) = answer[out];
        }
    }
    fp_row_workspace_free(&ws);
    fp_flags_restore(held);
}

#define FP_ROW_UFUNC(stem, quantity, pair, orders)                                                                     \
    static void stem##_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data)              \
    {                                                                                                                  \
        (void)data;                                                                                                    \
        fp_row_loop(args, dimensions, steps, quantity, pair, orders);                                                  \
    }

FP_ROW_UFUNC(mixture_kl, FP_KL, 1, 0)
FP_ROW_UFUNC(mixture_jensen_shannon, FP_JS, 1, 0)
FP_ROW_UFUNC(mixture_renyi, FP_RENYI, 1, 1)
FP_ROW_UFUNC(mixture_entropy, FP_ENTROPY, 0, 0)
FP_ROW_UFUNC(mixture_mutual_information, FP_INFORMATION, 0, 0)

#define FP_ROW_ENTRY(stem, nin, core)                                                                                  \
    {.name = #stem, .inputs = nin, .outputs = 3, .signature = core, .loop = stem##_loop}

static fp_ufunc fp_mixture_integrals_ufuncs[] = {
    FP_ROW_ENTRY(mixture_kl, 6, "(k),(k),(k),(j),(j),(j)->(),(),()"),
    FP_ROW_ENTRY(mixture_jensen_shannon, 6, "(k),(k),(k),(j),(j),(j)->(),(),()"),
    FP_ROW_ENTRY(mixture_renyi, 7, "(k),(k),(k),(j),(j),(j),(e?)->(e?),(e?),(e?)"),
    FP_ROW_ENTRY(mixture_entropy, 3, "(k),(k),(k)->(),(),()"),
    FP_ROW_ENTRY(mixture_mutual_information, 3, "(k),(k),()->(),(),()"),
};
enum { FP_MIXTURE_INTEGRALS_UFUNCS = sizeof fp_mixture_integrals_ufuncs / sizeof *fp_mixture_integrals_ufuncs };

#endif
