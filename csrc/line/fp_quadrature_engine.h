/* The loops of fp_quadrature_loops.h for the instruction set at hand. */
#ifndef FP_QUADRATURE_ENGINE_H
#define FP_QUADRATURE_ENGINE_H

#include "line/fp_panel.h"

#define FP_LOOPS "line/fp_quadrature_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*centre)(fp_local *);
    double (*kappa)(const fp_local *, double);
    void (*nodes)(const fp_local *, const double *, int, double *, double *);
    void (*integrand)(int, double, double, int, const double *, const double *, const double *, const double *,
                      const double *, const double *, double *, double *);
    void (*information)(const fp_local *, const double *, int, int, double, const double *, int, double *, double *);
} fp_quadrature_functions;

#define FP_QUADRATURE_FUNCTIONS(isa)                                                                                 \
    {fp_local_centre_##isa, fp_local_kappa_##isa, fp_local_nodes_##isa, fp_integrand_nodes_##isa,                    \
     fp_information_nodes_##isa}

static const fp_quadrature_functions *fp_quadrature_chosen;

static inline const fp_quadrature_functions *fp_quadrature_table(void) { return fp_quadrature_chosen; }

static inline void fp_quadrature_choose(void)
{
    static const fp_quadrature_functions tables[] = {
        FP_QUADRATURE_FUNCTIONS(baseline),
#if FP_HAVE_VARIANTS
        FP_QUADRATURE_FUNCTIONS(avx2),
        FP_QUADRATURE_FUNCTIONS(avx512),
#endif
    };
    fp_quadrature_chosen = &tables[fp_isa()];
}

#endif
