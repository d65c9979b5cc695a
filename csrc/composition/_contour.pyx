"""Certified compositions of privacy losses by sums along a contour; see csrc/composition/fp_contour_solver.h."""

# bounds: none - the default of what the sums leave out, which their bounds contain

import threading

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free

include "common/fp_interrupt.pxi"

cdef extern from "common/fp_stop_token.h":
    ctypedef int (*fp_interrupted)() noexcept nogil
    ctypedef struct fp_stop_token:
        pass
    fp_stop_token fp_stop_token_make(fp_interrupted, double) nogil

cdef extern from "composition/fp_contour_shell_tables_solver.h":
    ctypedef struct fp_contour_factor:
        double largest_t, kappa, kappa_error, mean
    ctypedef struct fp_composition:
        long nodes, terms, made
    ctypedef struct fp_contour_answer:
        double value, lower, upper
    ctypedef struct fp_contour_any:
        pass
    void fp_contour_windows_select() nogil
    int fp_composition_make(fp_composition *, int, fp_contour_factor *, int, double) nogil
    void fp_composition_close(fp_composition *) nogil
    int fp_composition_tilt(fp_composition *, double, double *) nogil
    int fp_composition_bounds(fp_composition *, int, ptrdiff_t, const double *, double, fp_contour_answer *,
                              fp_stop_token *, ptrdiff_t *) nogil
    int fp_contour_any_mixtures(fp_contour_factor *, fp_contour_any *, double, int, const double *, const double *,
                                const double *, int, const double *, const double *, const double *,
                                const double *) nogil
    int fp_contour_any_laplace(fp_contour_factor *, fp_contour_any *, double, double, double) nogil
    int fp_contour_any_atoms(fp_contour_factor *, fp_contour_any *, double, int, const double *, const double *,
                             double) nogil
    int fp_contour_moments_at(fp_contour_factor *, double, ptrdiff_t, const double *, double *) nogil
    void fp_contour_any_free(fp_contour_factor *, fp_contour_any *) nogil

fp_contour_windows_select()


cdef class ContourSums:
    """Pairs with counts and what was computed for them; ``bounds`` may be called from any thread. ``cut``: the relative
    size of what a sum leaves out, which its bounds contain.
    """

    cdef fp_composition[2] composition  # of the sum of losses, and of minus that
    cdef fp_contour_factor *factors
    cdef fp_contour_any *pairs
    cdef int count, capacity
    cdef double cut
    cdef bint[2] made
    cdef list held
    cdef object lock

    def __cinit__(self, int capacity, double cut=1e-14):
        self.factors = <fp_contour_factor *>calloc(max(capacity, 0) + 1, sizeof(fp_contour_factor))
        self.pairs = <fp_contour_any *>calloc(max(capacity, 0) + 1, sizeof(fp_contour_any))
        if self.factors == NULL or self.pairs == NULL:
            raise MemoryError
        self.capacity, self.cut, self.held, self.lock = max(capacity, 0), cut, [], threading.Lock()

    def __dealloc__(self):
        cdef int i
        for i in range(2):
            if self.made[i]:
                fp_composition_close(&self.composition[i])
        for i in range(self.count):
            fp_contour_any_free(&self.factors[i], &self.pairs[i])
        free(self.factors)
        free(self.pairs)

    cdef int check_pair(self, bint fits) except -1:
        if self.count == self.capacity or not fits:
            raise ValueError("a pair must have arrays of one length, not empty, and be one of the capacity")
        return 0

    cdef int added(self, int known) except -1:
        if known < 0:
            raise MemoryError("not enough memory for the pairs of a composition; use fewer components")
        self.count += known
        return known

    cdef make(self, int lower):
        if self.count == 0:
            raise ValueError("there must be a pair")
        if not self.made[lower]:
            finished(fp_composition_make(&self.composition[lower], self.count, self.factors, -1 if lower else 1,
                                         self.cut), "pairs")
            self.made[lower] = True

    def add_mixtures(self, double count, const double[::1] w, const double[::1] m, const double[::1] s,
                     const double[::1] v, const double[::1] n, const double[::1] t, double p_excess, double q_excess):
        """Add ``count`` pairs P = (w, m, s) and Q = (v, n, t), whose weights sum to 1 + ``excess``; whether they are
        known.
        """
        cdef double[2] excess
        self.check_pair(0 < w.shape[0] == m.shape[0] == s.shape[0] and 0 < v.shape[0] == n.shape[0] == t.shape[0])
        excess[0], excess[1] = p_excess, q_excess
        return bool(self.added(fp_contour_any_mixtures(
            &self.factors[self.count], &self.pairs[self.count], count, <int>w.shape[0], &w[0], &m[0], &s[0],
            <int>v.shape[0], &v[0], &n[0], &t[0], excess)))

    def add_laplace(self, double count, double scale, double shift):
        """Add ``count`` pairs Laplace(0, scale) and Laplace(shift, scale), shift > 0."""
        self.check_pair(True)
        return bool(self.added(fp_contour_any_laplace(&self.factors[self.count], &self.pairs[self.count], count, scale,
                                                      shift)))

    def add_atoms(self, double count, const double[::1] p, const double[::1] q, double excess):
        """Add ``count`` pairs of probabilities, all positive; those of P sum to 1 + ``excess``."""
        self.check_pair(0 < p.shape[0] == q.shape[0])
        self.held.append((p, q))
        return bool(self.added(fp_contour_any_atoms(&self.factors[self.count], &self.pairs[self.count], count,
                                                    <int>p.shape[0], &p[0], &q[0], excess)))

    def bounds(self, int quantity, const double[::1] epsilon, double slack=0.0):
        """Logarithms of delta (``quantity`` 0), of e^epsilon Q(S > epsilon) (1) or of P(S <= epsilon) (2): rows of value,
        lower, upper, shape (len(epsilon), 3); and the cost: nodes, terms and tables made by this call. ``epsilon >= 0``, or any for the last.
        The bounds hold for all epsilons within ``slack``.
        """
        result = np.zeros((epsilon.shape[0], 3))
        cdef double[:, ::1] out = result
        cdef fp_stop_token stop
        cdef int status = 0, lower = quantity == 2
        cdef ptrdiff_t done = 0
        cdef long nodes, terms, made
        cdef fp_composition *composition = &self.composition[lower]
        cdef const double[::1] levels = -np.asarray(epsilon) if lower else epsilon
        if epsilon.shape[0] == 0:
            return result, (0, 0, 0)
        with self.lock:
            self.make(lower)
            nodes, terms, made = composition.nodes, composition.terms, composition.made
            with nogil:
                stop = fp_stop_token_make(interrupted, INFINITY)
                status = fp_composition_bounds(composition, 0 if lower else quantity, levels.shape[0], &levels[0],
                                               slack, <fp_contour_answer *>&out[0, 0], &stop, &done)
            finished(status, "pairs")
            return result, (composition.nodes - nodes, composition.terms - terms, composition.made - made)

    def tilts(self, const double[::1] epsilon):
        """The t > 0 at which the terms of delta have their saddle point, to a hundredth of itself, of each epsilon."""
        result = np.zeros(epsilon.shape[0])
        cdef double[::1] out = result
        cdef ptrdiff_t i
        cdef int status = 0
        with self.lock:
            self.make(0)
            for i in range(epsilon.shape[0]):
                with nogil:
                    status = fp_composition_tilt(&self.composition[0], epsilon[i], &out[i])
                finished(status, "pairs")
        return result

    def moments(self, int pair, double t, const double[::1] frequencies):
        """Of one pair: log M(t), its error and the mean loss under the tilt t; and rows, shape (len(frequencies), 4),
        of log |m|, arg m, a bound of the error of m, and a bound of |m| at all larger frequencies, m = M(t + i w) /
        M(t) e^(-i w mean). None where M(t) is not computed.
        """
        rows = np.zeros((frequencies.shape[0], 4))
        cdef double[:, ::1] out = rows
        cdef int status
        if not 0 <= pair < self.count:
            raise ValueError("the pair must be one that was added")
        with self.lock:
            status = fp_contour_moments_at(&self.factors[pair], t, frequencies.shape[0], &frequencies[0], &out[0, 0])
            if status == -1:
                raise MemoryError("not enough memory for the moments of a pair; use fewer components")
            factor = self.factors[pair]
            return None if status else (factor.kappa, factor.kappa_error, factor.mean, rows)
