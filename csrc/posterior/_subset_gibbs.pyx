"""Gibbs steps over the subsets of a pool; the mathematics is in csrc/posterior/fp_subset_gibbs.h."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free

include "common/fp_interrupt.pxi"

cdef extern from "common/fp_stop_token.h":
    ctypedef struct fp_stop_token:
        pass
    fp_stop_token fp_stop_token_make(int (*interrupted)() noexcept nogil, double deadline) noexcept nogil

cdef extern from "posterior/fp_subset_gibbs.h":
    const int FP_SUBSET_GIBBS_BLOCK
    ctypedef struct fp_subset_gibbs_model:
        ptrdiff_t pool
        ptrdiff_t size
        ptrdiff_t replicas
        const double *linear
        const double *pairs
        const double *temperature
    ctypedef struct fp_subset_gibbs_replica:
        int32_t *members
        double *sum
    ctypedef struct fp_subset_gibbs_report:
        double *probability
        double *visits
        double *l
        double *exchanged
        int32_t *best
        double best_l
    ctypedef int (*fp_subset_gibbs_kernel)(
        const fp_subset_gibbs_model *, fp_subset_gibbs_replica *, const uint64_t *, ptrdiff_t, double *,
        fp_subset_gibbs_report *, fp_stop_token *) noexcept nogil
    fp_subset_gibbs_kernel fp_subset_gibbs_select()

cdef fp_subset_gibbs_kernel kernel = fp_subset_gibbs_select()


def run(const double[::1] linear, const double[:, ::1] pairs, const double[::1] temperature, int32_t[:, ::1] members,
        const uint64_t[::1] words, ptrdiff_t sweeps):
    """Sweep from the subsets ``members`` (replicas, size), which receive the last ones.

    Returns sums over steps of the probabilities of the first replica (N,), its visits (N,), l (sweeps, replicas), how
    often neighbours exchanged (replicas,), and the best subset with its l. ``pairs`` is symmetric with a diagonal of 0.
    """
    cdef ptrdiff_t pool = linear.shape[0], replicas = members.shape[0], size = members.shape[1], r, i
    if not (pairs.shape[0] == pairs.shape[1] == pool and temperature.shape[0] == replicas and 1 <= size <= pool
            and words.shape[0] == 4 and sweeps >= 1 and replicas >= 1):
        raise ValueError("the arrays must fit together, with four words and a sweep")
    if np.min(members) < 0 or np.max(members) >= pool:
        raise ValueError("members must be records of the pool")
    probability, visits, log_likelihood = np.zeros(pool), np.zeros(pool), np.empty((sweeps, replicas))
    exchanged, best, last = np.zeros(replicas), np.array(members[0]), np.array(members)
    cdef double[::1] probabilities = probability, visited = visits, exchanges = exchanged
    cdef double[::1] work = np.empty(pool + pool // FP_SUBSET_GIBBS_BLOCK + 32)
    cdef double[:, ::1] values = log_likelihood, sums = np.empty((replicas, pool))
    cdef int32_t[:, ::1] copies = last
    cdef int32_t[::1] largest = best
    cdef fp_subset_gibbs_model model
    cdef fp_subset_gibbs_report report
    cdef fp_stop_token stop = fp_stop_token_make(interrupted, INFINITY)
    cdef int status
    cdef fp_subset_gibbs_replica *replica = <fp_subset_gibbs_replica *> calloc(replicas, sizeof(fp_subset_gibbs_replica))
    if replica is NULL:
        raise MemoryError
    model.pool, model.size, model.replicas = pool, size, replicas
    model.linear, model.pairs, model.temperature = &linear[0], &pairs[0, 0], &temperature[0]
    report.probability, report.visits, report.l = &probabilities[0], &visited[0], &values[0, 0]
    report.exchanged, report.best, report.best_l = &exchanges[0], &largest[0], -INFINITY
    for r in range(replicas):
        replica[r].members, replica[r].sum = &copies[r, 0], &sums[r, 0]
    with nogil:
        status = kernel(&model, replica, &words[0], sweeps, &work[0], &report, &stop)
    if status == 0:
        for r in range(replicas):
            for i in range(size):
                members[r, i] = replica[r].members[i]
    free(replica)
    if status:
        fp_pending_exception()
    return probability, visits, log_likelihood, exchanged, best, report.best_l
