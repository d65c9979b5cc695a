/* Hockey-stick curves of arrays of mixtures as generalised ufuncs, (k),(k),(k),(j),(j),(j),(e)->(e),(e),(e). */
#ifndef FP_MIXTURE_UFUNCS_H
#define FP_MIXTURE_UFUNCS_H

#include "common/fp_ufunc.h"
#include "line/fp_mixture_curves_solver.h"

static void fp_mixture_hockey_stick_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel)
{
    const fp_flags held = fp_flags_save();
    fp_mixture_loop(args, dimensions, steps, (fp_hockey_stick_kernel)kernel, 0);
    fp_flags_restore(held);
}

static void fp_mixture_log_hockey_stick_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps,
                                             void *kernel)
{
    const fp_flags held = fp_flags_save();
    fp_mixture_loop(args, dimensions, steps, (fp_hockey_stick_kernel)kernel, 1);
    fp_flags_restore(held);
}

/* The hockey-stick divergence at epsilon 0, (k),(k),(k),(j),(j),(j)->(),(),(). */
static void fp_mixture_total_variation_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps,
                                            void *kernel)
{
    static double zero = 0.0;
    const ptrdiff_t whole[4] = {dimensions[0], dimensions[1], dimensions[2], 1};
    char *operands[10];
    ptrdiff_t strides[20] = {0}; /* of the operands, then of their core dimensions */
    for (int a = 0, from = 0; a < 10; a++) {
        operands[a] = a == 6 ? (char *)&zero : args[from];
        strides[a] = a == 6 ? 0 : steps[from++];
        strides[10 + a] = a < 6 ? steps[9 + a] : 0;
    }
    fp_mixture_hockey_stick_loop(operands, whole, strides, kernel);
}

#define FP_MIXTURE_UFUNC(stem)                                                                                         \
    {                                                                                                                  \
        .name = #stem, .inputs = 7, .outputs = 3, .signature = "(k),(k),(k),(j),(j),(j),(e)->(e),(e),(e)",             \
        .loop = fp_##stem##_loop, .variants = FP_VARIANTS(fp_hockey_stick_curve)                                       \
    }

static fp_ufunc fp_mixture_ufuncs[] = {FP_MIXTURE_UFUNC(mixture_hockey_stick),
                                       FP_MIXTURE_UFUNC(mixture_log_hockey_stick),
                                       {.name = "mixture_total_variation", .inputs = 6, .outputs = 3,
                                        .signature = "(k),(k),(k),(j),(j),(j)->(),(),()",
                                        .loop = fp_mixture_total_variation_loop,
                                        .variants = FP_VARIANTS(fp_hockey_stick_curve)}};

enum { FP_MIXTURE_UFUNCS = sizeof fp_mixture_ufuncs / sizeof fp_mixture_ufuncs[0] };

#endif
