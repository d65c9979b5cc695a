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

static fp_quadrature_functions fp_quadrature_chosen;

static inline const fp_quadrature_functions *fp_quadrature_table(void) { return &fp_quadrature_chosen; }

/* Must be called once, before any integral. */
static inline void fp_quadrature_choose(void)
{
    fp_quadrature_chosen = (fp_quadrature_functions){
        FP_SELECT(fp_local_centre), FP_SELECT(fp_local_kappa), FP_SELECT(fp_local_nodes),
        FP_SELECT(fp_integrand_nodes), FP_SELECT(fp_information_nodes)};
}

#endif
