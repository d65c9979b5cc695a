/* Memory of the log-ratio of two mixtures and of the pieces of the line on which it is examined. */
#ifndef FP_LOG_RATIO_SOLVER_H
#define FP_LOG_RATIO_SOLVER_H

#include <stdlib.h>

#include "line/fp_log_ratio.h"

/* Returns 0, or -1 when memory is short. Weights are positive and r->stop is set; release with fp_log_ratio_free. */
static inline int fp_log_ratio_build(fp_log_ratio *r, int np, const double *w, const double *m, const double *s, int nq,
                               const double *v, const double *n, const double *t)
{
    int big = np > nq ? np : nq;
    size_t coupling = (size_t)fp_padded(np) + 2 * FP_LANES, padded = (size_t)fp_padded(np) + (size_t)fp_padded(nq);
    size_t doubles = 3 * (size_t)(np + nq) + 11 * padded + (size_t)fp_padded(nq) + 21 * coupling
                     + 3 * (size_t)fp_padded(big) + (2 * FP_LANES + 4) * (padded + coupling) + (size_t)fp_padded(nq) + 64;
    char *block = malloc(doubles * sizeof(double) + (size_t)big * sizeof(fp_component) + (size_t)nq * sizeof(fp_dd)
                         + (size_t)np * (sizeof(int) + 3 * sizeof(double)) + (size_t)nq * sizeof(int));
    if (!block)
        return -1;
    double *cursor = (double *)block;
    fp_component *work = (fp_component *)(block + doubles * sizeof(double));
    fp_dd *total = (fp_dd *)(work + big);
    double *unmatched = (double *)(total + nq);
    r->storage = block;
    r->np = np;
    r->nq = nq;
    fp_frame frame = fp_frame_of(np, m, s, nq, n, t);
    r->underflowed = fp_sorted(np, w, m, s, frame, work, &r->w, &r->m, &r->s, &cursor);
    r->underflowed = fp_sorted(nq, v, n, t, frame, work, &r->v, &r->n, &r->t, &cursor) || r->underflowed;
    r->unresolved = !fp_resolved(r);
    fp_mixture_fill(&r->p, np, r->w, r->m, r->s, &cursor);
    fp_mixture_fill(&r->q, nq, r->v, r->n, r->t, &cursor);
    int *partner = (int *)(unmatched + 3 * (size_t)np);
    fp_coupling_fill(r, partner, partner + np, unmatched, total, &cursor);
    fp_tilt_fill(r, &cursor);
    r->scratch = cursor;
    r->scratch_size = doubles - (size_t)(cursor - (double *)block);
    return 0;
}

static inline void fp_log_ratio_free(fp_log_ratio *r) { free(r->storage); }

static inline int fp_pieces_reserve(fp_pieces *out)
{
    if (out->count < out->capacity)
        return 0;
    int capacity = out->capacity ? 2 * out->capacity : 64;
    fp_piece *grown = realloc(out->piece, (size_t)capacity * sizeof *grown);
    if (!grown)
        return -1;
    out->piece = grown;
    out->capacity = capacity;
    return 0;
}

static inline void fp_pieces_free(fp_pieces *out)
{
    free(out->piece);
    free(out->knot);
}

#endif
