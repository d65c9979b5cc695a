"""Gibbs steps for who is in a pool; the mathematics is in csrc/membership/fp_membership_gibbs.h."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

include "common/fp_interrupt.pxi"

cdef extern from "common/fp_stop_token.h":
    ctypedef struct fp_stop_token:
        pass
    fp_stop_token fp_stop_token_make(int (*interrupted)() noexcept nogil, double deadline) noexcept nogil

cdef extern from "membership/fp_membership_gibbs.h":
    const int FP_GIBBS_TERMS
    ctypedef struct fp_gibbs_term:
        int kind
        ptrdiff_t m
        const uint8_t *people
        const double *released
        const double *factor
        const double *table
        const int32_t *shared
        const double *linear
    ctypedef struct fp_gibbs_model:
        ptrdiff_t people
        int fixed_size, terms, replicas
        const double *log_odds
        const double *prior
        const double *noise
        const double *temperature
        const fp_gibbs_term *term
    ctypedef struct fp_gibbs_replica:
        uint8_t *member
        int32_t *order
        int32_t *place
        int32_t **count
    ctypedef struct fp_gibbs_report:
        double *probability
        uint8_t *states
        double *log_density
    ctypedef int (*fp_gibbs_kernel)(const fp_gibbs_model *, fp_gibbs_replica *, const uint64_t *, ptrdiff_t, double *,
                                    fp_gibbs_report *, fp_stop_token *) noexcept nogil
    fp_gibbs_kernel fp_gibbs_select()

KINDS = {"quadratic": 0, "absolute": 1, "maximum": 2, "censored": 3}
cdef fp_gibbs_kernel kernel = fp_gibbs_select()


cdef class Model:
    """Prior, noise and terms of one release; ``terms`` are dictionaries with ``kind`` and arrays as in the header."""

    cdef fp_gibbs_model model
    cdef fp_gibbs_term terms[64]
    cdef list kept
    cdef ptrdiff_t counts

    def __init__(self, const double[::1] log_odds, const double[::1] prior, const double[::1] noise,
                 const double[::1] temperature, bint fixed_size, list terms):
        cdef ptrdiff_t people = log_odds.shape[0]
        cdef const double[::1] numbers
        cdef const double[:, ::1] table
        cdef const int32_t[:, ::1] shared
        cdef const uint8_t[:, ::1] rows
        cdef fp_gibbs_term *term
        if not (1 <= len(terms) <= FP_GIBBS_TERMS and prior.shape[0] == noise.shape[0] == people + 1
                and people >= 1 and temperature.shape[0] >= 1):
            raise ValueError("the arrays must fit the people, and the terms the kernel")
        self.kept = [log_odds, prior, noise, temperature]
        self.counts = 0
        for i, one in enumerate(terms):
            term = &self.terms[<ptrdiff_t> i]
            term.kind, term.m = KINDS[one["kind"]], people
            if one["kind"] == "quadratic":
                shared, numbers = one["shared"], one["linear"]
                if shared.shape[0] != people or shared.shape[1] != people or numbers.shape[0] != people:
                    raise ValueError("a quadratic term must have an entry for each pair")
                term.shared, term.linear = &shared[0, 0], &numbers[0]
                self.kept += [shared, numbers]
            else:
                rows = one["people"]
                term.m = rows.shape[1]
                if rows.shape[0] != people or term.m < 1:
                    raise ValueError("a term must have a row for each person")
                term.people = &rows[0, 0]
                self.kept.append(rows)
            if one["kind"] == "censored":
                table = one["table"]
                if table.shape[0] != people + 1 or table.shape[1] != people + 1:
                    raise ValueError("a table must have an entry for each size and count")
                term.table = &table[0, 0]
                self.kept.append(table)
            else:
                numbers = one["factor"]
                if numbers.shape[0] != people + 1:
                    raise ValueError("a term must have a factor for each size")
                term.factor = &numbers[0]
                self.kept.append(numbers)
            if one["kind"] in ("absolute", "maximum"):
                numbers = one["released"]
                if numbers.shape[0] != term.m:
                    raise ValueError("a release must have an entry for each attribute")
                term.released = &numbers[0]
                self.kept.append(numbers)
            self.counts += term.m
        self.model.people, self.model.fixed_size, self.model.terms = people, fixed_size, <int> len(terms)
        self.model.replicas, self.model.term = <int> temperature.shape[0], &self.terms[0]
        self.model.log_odds, self.model.prior, self.model.noise = &log_odds[0], &prior[0], &noise[0]
        self.model.temperature = &temperature[0]

    def run(self, uint8_t[:, ::1] members, const uint64_t[::1] words, ptrdiff_t sweeps):
        """Sweep from the states ``members`` (replicas, K), which receive the last ones.

        Returns the sums of probabilities and their complements (2, K), states (sweeps, K) and log densities (sweeps,) at temperature 1.
        """
        cdef ptrdiff_t people = self.model.people, replicas = self.model.replicas, r, t, k, at
        if members.shape[0] != replicas or members.shape[1] != people or words.shape[0] != 4 or sweeps < 1:
            raise ValueError("there must be a state for each temperature, four words and a sweep")
        probability, log_density = np.zeros((2, people)), np.empty(sweeps)
        states, last = np.empty((sweeps, people), dtype=np.uint8), np.empty((replicas, people), dtype=np.uint8)
        counts = np.empty(replicas * (self.counts + 2 * people), dtype=np.int32)
        cdef double[:, ::1] sums = probability
        cdef double[::1] densities = log_density, work = np.empty(8 * people + 2 * replicas + 64)
        cdef uint8_t[:, ::1] kept = states, copies = last
        cdef int32_t[::1] whole = counts
        cdef fp_gibbs_report report
        cdef fp_stop_token stop = fp_stop_token_make(interrupted, INFINITY)
        cdef int status
        cdef fp_gibbs_replica *replica = <fp_gibbs_replica *> calloc(replicas, sizeof(fp_gibbs_replica))
        if replica is NULL:
            raise MemoryError
        copies[...] = members
        report.probability, report.states, report.log_density = &sums[0, 0], &kept[0, 0], &densities[0]
        at = 0
        for r in range(replicas):
            replica[r].member = &copies[r, 0]
            replica[r].order = &whole[at]
            replica[r].place = &whole[at + people]
            at += 2 * people
            for t in range(self.model.terms):
                replica[r].count[t] = &whole[at]
                at += self.terms[t].m
        with nogil:
            status = kernel(&self.model, replica, &words[0], sweeps, &work[0], &report, &stop)
        if status == 0:
            for r in range(replicas):
                for k in range(people):
                    members[r, k] = replica[r].member[k]
        free(replica)
        if status:
            fp_pending_exception()
        return probability, states, log_density
