/* The loops of fp_quadrature_loops.h for the instruction set at hand. */
#ifndef FP_QUADRATURE_ENGINE_H
#define FP_QUADRATURE_ENGINE_H

#include "line/fp_panel.h"

#define FP_LOOPS "line/fp_quadrature_loops.h"
#include "common/fp_variants.h"

typedef struct {
    void (*centre)(fp_local_mixture *);
    double (*kappa)(const fp_local_mixture *, double);
    void (*nodes)(const fp_local_mixture *, const double *, int, double *, double *);
    void (*integrand)(int, double, double, int, const double *, const double *, const double *, const double *,
                      const double *, const double *, double *, double *);
    void (*information)(const fp_local_mixture *, const double *, int, int, double, double, const double *, int,
                        double *, double *);
} fp_quadrature_kernels;

static fp_quadrature_kernels fp_quadrature_selected;

static inline const fp_quadrature_kernels *fp_quadrature_kernels_in_use(void) { return &fp_quadrature_selected; }

/* Must be called once, before any integral. */
static inline void fp_quadrature_select(void)
{
    fp_quadrature_selected = (fp_quadrature_kernels){
        FP_SELECT(fp_local_centre), FP_SELECT(fp_local_kappa), FP_SELECT(fp_local_nodes),
        FP_SELECT(fp_integrand_nodes), FP_SELECT(fp_information_nodes)};
}

#endif
