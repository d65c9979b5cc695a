"""Gradient matching for softmax regression, and least values in a box; the mathematics is in
csrc/leakage/fp_gradient_matching.h and csrc/leakage/fp_bounded_lbfgs.h."""

import numpy as np

from cpython.ref cimport PyObject
from libc.math cimport INFINITY

include "common/fp_interrupt.pxi"

cdef extern from "common/fp_stop_token.h":
    ctypedef struct fp_stop_token:
        pass
    fp_stop_token fp_stop_token_make(int (*interrupted)() noexcept nogil, double deadline) noexcept nogil

cdef extern from "leakage/fp_gradient_matching.h":
    ctypedef struct fp_matching:
        ptrdiff_t records, classes, features, width
        const double *weights
        const double *target
        const double *shares
    ctypedef struct fp_matching_descent:
        double ridge, tolerance
        const double *centre
        int most, steps
        double value
    ctypedef double fp_matching_value_kernel(
        const fp_matching *, const double *, const double *, double *, double *, double *) noexcept nogil
    ctypedef int fp_matching_descent_kernel(
        const fp_matching *, const double *, double *, double *, fp_matching_descent *, fp_stop_token *) noexcept nogil
    fp_matching_value_kernel *fp_matching_value_select()
    fp_matching_descent_kernel *fp_matching_descent_select()
    ptrdiff_t fp_matching_work(const fp_matching *)
    ptrdiff_t fp_matching_descent_work(const fp_matching *)
    int FP_LANES

cdef extern from "leakage/fp_bounded_lbfgs.h":
    ctypedef double fp_objective(void *, const double *, double *, int *) noexcept nogil
    ctypedef struct fp_bounded_lbfgs:
        ptrdiff_t n
        const double *lower
        const double *upper
        int memory, most
        double tolerance, solved, value
        int evaluations
    ctypedef int fp_bounded_lbfgs_kernel(
        fp_bounded_lbfgs *, fp_objective *, void *, double *, double *, fp_stop_token *) noexcept nogil
    fp_bounded_lbfgs_kernel *fp_bounded_lbfgs_select()
    ptrdiff_t fp_bounded_lbfgs_work(const fp_bounded_lbfgs *)

cdef fp_matching_value_kernel *value_kernel = fp_matching_value_select()
cdef fp_matching_descent_kernel *descent_kernel = fp_matching_descent_select()
cdef fp_bounded_lbfgs_kernel *lbfgs_kernel = fp_bounded_lbfgs_select()

cdef int MEMORY = 10  # pairs of limited-memory BFGS

cdef struct RidgedMatching:
    const fp_matching *problem
    const double *labels
    const double *centre
    double ridge
    double *work


cdef double ridged(void *context, const double *x, double *slope, int *status) noexcept nogil:
    """The objective of matching with its ridge."""
    cdef RidgedMatching *own = <RidgedMatching *> context
    cdef ptrdiff_t i, d, width = own.problem.width
    cdef double gap, value = value_kernel(own.problem, x, own.labels, own.work, slope, NULL)
    if own.ridge > 0:
        for i in range(own.problem.records):
            for d in range(own.problem.features):
                gap = x[i * width + d] - own.centre[d]
                value += own.ridge * gap * gap
                slope[i * width + d] += 2 * own.ridge * gap
    return value


cdef class Matching:
    """Weights and target of a problem, (C, D + 1) each with the intercepts last, and shares of its S records."""

    cdef fp_matching problem
    cdef double[:, ::1] weights, target, padded, slope
    cdef double[::1] work, shares

    def __init__(self, shares, weights, target):
        cdef ptrdiff_t records = len(shares), classes = weights.shape[0], features = weights.shape[1] - 1
        cdef ptrdiff_t width = (features + FP_LANES) // FP_LANES * FP_LANES
        if weights.shape != target.shape or records < 1 or classes < 1 or features < 0:
            raise ValueError("weights and target must have one shape, and there must be a record")
        self.weights, self.target = np.zeros((classes, width)), np.zeros((classes, width))
        self.padded, self.slope = np.zeros((records, width)), np.zeros((records, width))
        np.asarray(self.weights)[:, :features + 1] = weights
        np.asarray(self.target)[:, :features + 1] = target
        self.problem.records, self.problem.classes = records, classes
        self.problem.features, self.problem.width = features, width
        self.problem.weights, self.problem.target = &self.weights[0, 0], &self.target[0, 0]
        self.shares = np.array(shares, dtype=np.float64)
        self.problem.shares = &self.shares[0]
        self.work = np.empty(fp_matching_work(&self.problem))

    cdef load(self, records, const double[:, ::1] labels):
        """Write the records into rows with a 1 for the intercept."""
        features = self.problem.features
        if np.shape(records) != (self.problem.records, features):
            raise ValueError("records must have a row each, and a column for each feature")
        if labels.shape[0] != self.problem.records or labels.shape[1] != self.problem.classes:
            raise ValueError("labels must have a row for each record, and a column for each class")
        rows = np.asarray(self.padded)
        rows[:, :features] = records
        rows[:, features] = 1.0

    def value(self, records, const double[:, ::1] labels):
        """The objective at ``records`` (S, D) with label weights (S, C), and its derivatives by both."""
        cdef double answer
        self.load(records, labels)
        by_labels = np.empty((self.problem.records, self.problem.classes))
        cdef double[:, ::1] last = by_labels
        with nogil:
            answer = value_kernel(&self.problem, &self.padded[0, 0], &labels[0, 0], &self.work[0], &self.slope[0, 0],
                                  &last[0, 0])
        return answer, np.array(np.asarray(self.slope)[:, :self.problem.features]), by_labels

    def descend(self, records, const double[:, ::1] labels, const double[::1] centre, double ridge, double solved,
                int most):
        """Levenberg-Marquardt from ``records``: the best ones, the objective and the number of steps."""
        cdef int status
        cdef fp_matching_descent descent
        cdef fp_stop_token stop = fp_stop_token_make(interrupted, INFINITY)
        self.load(records, labels)
        if centre.shape[0] != self.problem.features:
            raise ValueError("the centre must have an entry for each feature")
        cdef double[::1] work = np.empty(fp_matching_descent_work(&self.problem))
        descent.ridge, descent.tolerance, descent.most = ridge, solved, most
        descent.centre = &centre[0] if centre.shape[0] else NULL
        with nogil:
            status = descent_kernel(&self.problem, &labels[0, 0], &self.padded[0, 0], &work[0], &descent, &stop)
        if status:
            fp_pending_exception()
        return np.array(np.asarray(self.padded)[:, :self.problem.features]), descent.value, descent.steps

    def search(self, records, const double[:, ::1] labels, const double[::1] centre, double ridge, double lower,
               double upper, double tolerance, double solved, int most):
        """Limited-memory BFGS in a box from ``records``: the best ones, the objective and the number of evaluations."""
        cdef int status
        cdef RidgedMatching context
        cdef fp_bounded_lbfgs lbfgs
        cdef fp_stop_token stop = fp_stop_token_make(interrupted, INFINITY)
        cdef ptrdiff_t features = self.problem.features
        self.load(records, labels)
        if centre.shape[0] != features:
            raise ValueError("the centre must have an entry for each feature")
        low, high = np.array(self.padded), np.array(self.padded)  # the padding and the intercept's 1 do not move
        low[:, :features], high[:, :features] = lower, upper
        cdef double[:, ::1] lowest = low, highest = high
        context.problem, context.labels, context.work = &self.problem, &labels[0, 0], &self.work[0]
        context.centre, context.ridge = &centre[0] if features else NULL, ridge
        lbfgs.n, lbfgs.lower, lbfgs.upper = self.problem.records * self.problem.width, &lowest[0, 0], &highest[0, 0]
        lbfgs.memory, lbfgs.most, lbfgs.tolerance, lbfgs.solved = MEMORY, most, tolerance, solved
        cdef double[::1] work = np.empty(fp_bounded_lbfgs_work(&lbfgs))
        with nogil:
            status = lbfgs_kernel(&lbfgs, ridged, &context, &self.padded[0, 0], &work[0], &stop)
        if status:
            fp_pending_exception()
        return np.array(np.asarray(self.padded)[:, :features]), lbfgs.value, lbfgs.evaluations


cdef double called(void *context, const double *x, double *slope, int *status) noexcept with gil:
    """A Python function of x that returns a value and its derivatives."""
    cdef list own = <list> <PyObject *> context
    cdef double[::1] point = own[1]
    cdef const double[::1] out
    cdef ptrdiff_t k, n = point.shape[0]
    try:
        for k in range(n):
            point[k] = x[k]
        value, gradient = own[0](np.array(own[1]))
        out = np.ascontiguousarray(gradient, dtype=np.float64).reshape(n)
        for k in range(n):
            slope[k] = out[k]
        return value
    except BaseException as error:
        own[2] = error
        status[0] = -2
        return INFINITY


def bounded_minimum(function, start, lower, upper, double tolerance, double solved, int most):
    """The point in the box, the least value and the number of evaluations of ``function(x) -> (value, derivatives)``."""
    cdef fp_bounded_lbfgs lbfgs
    cdef int status
    cdef ptrdiff_t n = len(start)
    cdef fp_stop_token stop = fp_stop_token_make(interrupted, INFINITY)
    if n < 1:
        raise ValueError("there must be a coordinate")
    lbfgs.n = (n + FP_LANES - 1) // FP_LANES * FP_LANES
    rows = np.zeros((3, lbfgs.n))
    rows[:, :n] = start, np.broadcast_to(lower, n), np.broadcast_to(upper, n)
    cdef double[:, ::1] numbers = rows
    lbfgs.lower, lbfgs.upper = &numbers[1, 0], &numbers[2, 0]
    lbfgs.memory, lbfgs.most, lbfgs.tolerance, lbfgs.solved = MEMORY, most, tolerance, solved
    cdef double[::1] work = np.zeros(fp_bounded_lbfgs_work(&lbfgs))
    context = [function, np.empty(n), None]
    with nogil:
        status = lbfgs_kernel(&lbfgs, called, <void *> <PyObject *> context, &numbers[0, 0], &work[0], &stop)
    if context[2] is not None:
        raise context[2]
    if status:
        fp_pending_exception()
    return rows[0, :n].copy(), lbfgs.value, lbfgs.evaluations
