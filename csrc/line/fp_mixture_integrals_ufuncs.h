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
    const int noise = quantity == FP_INFORMATION, fits = k > 0 && k < 1 << 28 && (!pair || (j > 0 && j < 1 << 28));
    fp_row_workspace ws = {.certified = 1, .max_work = FP_ROW_MAX_WORK, .stop = fp_stop_token_make(NULL, INFINITY)};
    fp_rows in = {.quantity = quantity, .k = (int)k, .j = (int)j, .orders = many};
    for (int side = 0; side < (pair ? 6 : 3); side++)
        in.columns[side] = (fp_columns){args[side], steps[side], noise && side == 2 ? 0 : core[side]};
    if (orders)
        in.order = (fp_columns){args[6], steps[6], core[6]};
    for (ptrdiff_t first = 0; first < dimensions[0] * many; first += FP_BINOMIALS) {
        const ptrdiff_t left = dimensions[0] * many - first;
        const int count = left < FP_BINOMIALS ? (int)left : FP_BINOMIALS;
        if (fits)
            fp_mixture_rows(&ws, &in, first, count);
        for (int at = 0; at < count; at++) {
            const ptrdiff_t i = (first + at) / many, e = (first + at) % many;
            const fp_row row = fits ? ws.rows[at] : (fp_row){.value = NAN, .lower = NAN, .upper = NAN};
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
