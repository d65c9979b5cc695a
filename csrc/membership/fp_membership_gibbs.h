/* Gibbs steps for the posterior of who is in a pool of any size, and exchanges between temperatures.
 *
 * Notation: b in {0, 1}^K, n = |b|;  log density of a replica at inverse temperature t
 *     prior[n] + sum of log odds of members + t (noise[n] + sum over terms of F(n) q(b)).
 * Terms as in fp_membership_posterior.h, with all state in whole numbers:
 *     quadratic    q = sum over members of G_kl = c_k + c_l + g_kl, g the attributes that k and l share, c real;
 *                  with t_k = sum over members l of g_kl and C = sum of c over members,
 *                  (G b)_k = n c_k + C + t_k,  q = 2 n C + sum over members of t_k
 *     absolute     q = sum over attributes of |n r_j - count_j|
 *     maximum      q = max |n r_j - count_j|
 *     censored     q = sum over attributes of table[n][count_j], F = 1
 * A sweep offers a flip to each person in turn: b_k = 1 where its log odds given all others exceed a logistic variate,
 * so that this is a Gibbs step; then it offers K / 8 + 1 exchanges of a random member for a random one that is none,
 * accepted as by Metropolis.  Where the number of members is fixed it offers K exchanges alone.  After a sweep neighbouring temperatures offer to exchange their
 * states.  A quadratic value is computed anew at the start of a run, so that roundings do not gather.
 *
 * Sums over attributes have eight lanes, exponentials and logarithms no FMA: the same bits on every instruction set.
 */
#ifndef FP_MEMBERSHIP_GIBBS_H
#define FP_MEMBERSHIP_GIBBS_H

#include <stddef.h>
#include <stdint.h>

#include "common/fp_lanes.h"
#include "common/fp_stop_token.h"
#include "sampling/fp_random_stream.h"
#include "special/fp_elementary.h"

enum { FP_GIBBS_QUADRATIC, FP_GIBBS_ABSOLUTE, FP_GIBBS_MAXIMUM, FP_GIBBS_CENSORED };
enum { FP_GIBBS_TERMS = 64, FP_GIBBS_EXCHANGES = 8 };

typedef struct {
    int kind;
    ptrdiff_t m;             /* attributes; of a quadratic term K */
    const uint8_t *people;   /* (K, m) */
    const double *released;  /* (m,) */
    const double *factor;    /* F: (K + 1,) */
    const double *table;     /* censored: (K + 1, K + 1) */
    const int32_t *shared;   /* quadratic: g, (K, K) */
    const double *linear;    /* quadratic: c, (K,) */
} fp_gibbs_term;

typedef struct {
    ptrdiff_t people;
    int fixed_size, terms, replicas;
    const double *log_odds, *prior, *noise; /* (K,), (K + 1,), (K + 1,) */
    const double *temperature;              /* (replicas,): inverse, the first one 1 */
    const fp_gibbs_term *term;
} fp_gibbs_model;

/* A replica: who is a member, in flags and as a list whose first n entries are the members, and sums of its terms. */
typedef struct {
    uint8_t *member;
    int32_t *order, *place;
    ptrdiff_t n;
    int32_t *count[FP_GIBBS_TERMS]; /* quadratic: t; else counts of carriers */
    double linear[FP_GIBBS_TERMS];  /* C */
    double q[FP_GIBBS_TERMS];
} fp_gibbs_replica;

/* What a run reports of the replica at temperature 1. */
typedef struct {
    double *probability; /* (2, K): sums over sweeps of P(b_k = 1 | the others) and its complement; of exchanges of b_k */
    uint8_t *states;     /* (sweeps, K) */
    double *log_density; /* (sweeps,) */
} fp_gibbs_report;

/* log density of the likelihood of a size, from the values of the terms */
FP_INLINE double fp_gibbs_likelihood(const fp_gibbs_model *model, ptrdiff_t n, const double *q)
{
    double sum = model->noise[n];
    for (int t = 0; t < model->terms; t++)
        sum += model->term[t].kind == FP_GIBBS_CENSORED ? q[t] : q[t] * model->term[t].factor[n];
    return sum;
}

/* An index below n from 64 random bits. */
FP_INLINE ptrdiff_t fp_gibbs_index(uint64_t bits, ptrdiff_t n)
{
    return (ptrdiff_t)(((bits >> 32) * (uint64_t)n) >> 32);
}

#define FP_LOOPS "membership/fp_membership_gibbs_loops.h"
#include "common/fp_variants.h"

/* Returns 0 or what the stop token says; after the latter the replicas are of no use. */
typedef int (*fp_gibbs_kernel)(const fp_gibbs_model *, fp_gibbs_replica *, const uint64_t *words, ptrdiff_t sweeps,
                               double *work, fp_gibbs_report *, fp_stop_token *);

static inline fp_gibbs_kernel fp_gibbs_select(void) { return FP_SELECT(fp_gibbs_run); }

#endif
