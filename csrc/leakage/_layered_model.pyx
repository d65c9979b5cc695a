"""Layers of a multilayer perceptron and their gradients; the mathematics is in csrc/leakage/fp_layered_model.h.

``widths`` is a tuple of the numbers of features, hidden units and classes, ``activation`` the number of one. Arrays are
contiguous. Shapes and labels are checked before a kernel runs, so that no kernel reads or writes beyond its arrays.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

cdef extern from "leakage/fp_layered_model.h":
    ctypedef struct fp_layered_model:
        int layers, activation
        ptrdiff_t block
        ptrdiff_t width[17]
    ctypedef struct fp_layered_kernels:
        void (*load)(const fp_layered_model *, const double *, int) noexcept nogil
        void (*logits)(const fp_layered_model *, ptrdiff_t, const double *, double *) noexcept nogil
        void (*losses)(ptrdiff_t, ptrdiff_t, const double *, const int64_t *, double *) noexcept nogil
        void (*add_gradients)(
            const fp_layered_model *, ptrdiff_t, const double *, const int64_t *, double) noexcept nogil
        void (*per_example)(
            const fp_layered_model *, ptrdiff_t, const double *, const int64_t *, double *) noexcept nogil
        void (*unload)(const fp_layered_model *, double, double *) noexcept nogil
        double (*matching)(
            const fp_layered_model *, const double *, const int64_t *, const double *, const double *, double *,
            double *) noexcept nogil
    ptrdiff_t fp_layered_workspace(fp_layered_model *, int, double *) noexcept nogil
    ptrdiff_t fp_layered_parameters(const fp_layered_model *) noexcept nogil
    fp_layered_kernels fp_layered_select()
    int FP_MOST_LAYERS

cdef fp_layered_kernels kernels = fp_layered_select()
cdef ptrdiff_t BLOCK = 32  # records at a time: their features and errors stay in the cache
cdef double PRODUCTS = 1e8  # between two checks for Ctrl-C: some hundredths of a second
MOST_LAYERS = FP_MOST_LAYERS


cdef prepared(fp_layered_model *model, widths, int activation, ptrdiff_t weights, ptrdiff_t block, int matching):
    """Set up the model for blocks of records; return the array of its workspace."""
    cdef ptrdiff_t i
    model.layers, model.activation, model.block = len(widths) - 1, activation, max(1, block)
    if not 1 <= model.layers <= FP_MOST_LAYERS:
        raise ValueError("there must be from 1 to 16 layers")
    for i in range(len(widths)):
        model.width[i] = widths[i]
        if model.width[i] < 1:
            raise ValueError("widths must be at least 1")
    if weights != fp_layered_parameters(model):
        raise ValueError("weights must be those of the layers")
    memory = np.empty(fp_layered_workspace(model, matching, NULL))
    cdef double[::1] doubles = memory
    fp_layered_workspace(model, matching, &doubles[0])
    return memory


cdef ptrdiff_t blocks_between_checks(ptrdiff_t parameters):
    return max(1, <ptrdiff_t> (PRODUCTS / (<double> parameters * BLOCK)))


def logits(widths, int activation, const double[::1] weights, const double[:, ::1] records):
    """Scores of the classes, shape (n, classes)."""
    cdef fp_layered_model model
    cdef ptrdiff_t n = records.shape[0], begin, step
    memory = prepared(&model, widths, activation, weights.shape[0], min(n, BLOCK), 0)
    if records.shape[1] != model.width[0]:
        raise ValueError("records must have the width of the first layer")
    found = np.empty((n, widths[len(widths) - 1]))
    cdef double[:, ::1] out = found
    step = blocks_between_checks(weights.shape[0])
    kernels.load(&model, &weights[0], 0)
    for begin in range(0, n, BLOCK):
        with nogil:
            kernels.logits(&model, min(BLOCK, n - begin), &records[begin, 0], &out[begin, 0])
        if begin // BLOCK % step == step - 1:
            PyErr_CheckSignals()
    return found


def losses(const double[:, ::1] scores, const int64_t[::1] labels):
    """Cross-entropy of each row of logits, shape (n,)."""
    found = np.empty(scores.shape[0])
    cdef double[::1] out = found
    check_labels(labels, scores.shape[0], scores.shape[1])
    if scores.shape[0]:
        with nogil:
            kernels.losses(scores.shape[0], scores.shape[1], &scores[0, 0], &labels[0], &out[0])
    return found


cdef check_batch(const fp_layered_model *model, const double[:, ::1] records, const int64_t[::1] labels):
    if records.shape[1] != model.width[0]:
        raise ValueError("records must have the width of the first layer")
    check_labels(labels, records.shape[0], model.width[model.layers])


cdef check_labels(const int64_t[::1] labels, ptrdiff_t records, ptrdiff_t classes):
    if labels.shape[0] != records or not are_classes(labels, classes):
        raise ValueError("labels must have a class of the model for each record")


cdef add_gradients(
    const fp_layered_model *model, const double[:, ::1] records, const int64_t[::1] labels, double clip,
    ptrdiff_t step):
    """Add all gradients of a batch, block by block."""
    cdef ptrdiff_t n = records.shape[0], begin
    for begin in range(0, n, BLOCK):
        with nogil:
            kernels.add_gradients(model, min(BLOCK, n - begin), &records[begin, 0], &labels[begin], clip)
        if begin // BLOCK % step == step - 1:
            PyErr_CheckSignals()


def summed_gradient(widths, int activation, const double[::1] weights, const double[:, ::1] records,
                    const int64_t[::1] labels, double clip, double size):
    """Sum of the records' gradients, each scaled down to length ``clip``, divided by ``size``; shape (parameters,)."""
    cdef fp_layered_model model
    memory = prepared(&model, widths, activation, weights.shape[0], min(records.shape[0], BLOCK), 0)
    check_batch(&model, records, labels)
    found = np.empty(weights.shape[0])
    cdef double[::1] out = found
    kernels.load(&model, &weights[0], 1)
    add_gradients(&model, records, labels, clip, blocks_between_checks(weights.shape[0]))
    kernels.unload(&model, 1.0 / size, &out[0])
    return found


def descent(widths, int activation, double[::1] weights, const double[:, ::1] records, const int64_t[::1] labels,
            double clip, double size, ptrdiff_t steps, double rate):
    """Move ``weights`` by steps of gradient descent on one batch; return the sum of the steps' gradients."""
    cdef fp_layered_model model
    cdef ptrdiff_t count = weights.shape[0], number, i, step = blocks_between_checks(count)
    memory = prepared(&model, widths, activation, count, min(records.shape[0], BLOCK), 0)
    check_batch(&model, records, labels)
    sums, single = np.zeros(count), np.empty(count)
    cdef double[::1] total = sums, one = single
    for number in range(steps):
        kernels.load(&model, &weights[0], 1)
        add_gradients(&model, records, labels, clip, step)
        with nogil:
            kernels.unload(&model, 1.0 / size, &one[0])
            for i in range(count):
                total[i] += one[i]
                weights[i] -= rate * one[i]
        if number % 16 == 15:
            PyErr_CheckSignals()
    return sums


def per_example_gradients(widths, int activation, const double[::1] weights, const double[:, ::1] records,
                          const int64_t[::1] labels):
    """Gradient of each record, shape (n, parameters)."""
    cdef fp_layered_model model
    cdef ptrdiff_t n = records.shape[0], begin, step
    memory = prepared(&model, widths, activation, weights.shape[0], min(n, BLOCK), 0)
    check_batch(&model, records, labels)
    found = np.empty((n, weights.shape[0]))
    cdef double[:, ::1] out = found
    step = blocks_between_checks(weights.shape[0])
    kernels.load(&model, &weights[0], 1)
    for begin in range(0, n, BLOCK):
        with nogil:
            kernels.per_example(&model, min(BLOCK, n - begin), &records[begin, 0], &labels[begin], &out[begin, 0])
        if begin // BLOCK % step == step - 1:
            PyErr_CheckSignals()
    return found


cpdef bint are_classes(const int64_t[::1] labels, int64_t classes):
    """Whether all labels are from 0 to ``classes`` - 1."""
    cdef ptrdiff_t i
    for i in range(labels.shape[0]):
        if not 0 <= labels[i] < classes:
            return False
    return True


def matching(widths, int activation, const double[::1] weights, const double[:, ::1] records, labels, logits,
             const double[::1] target):
    """Squared distance of the mean gradient from ``target``, its derivative by records and by label logits.

    ``labels`` are classes where ``logits``, shape (n, classes), is None, and else not used.
    """
    cdef fp_layered_model model
    cdef ptrdiff_t n = records.shape[0]
    cdef const int64_t[::1] hard
    cdef const double[:, ::1] given
    cdef double[:, ::1] by_logit
    cdef const int64_t *hard_start = NULL
    cdef const double *given_start = NULL
    cdef double *logit_start = NULL
    cdef double value
    memory = prepared(&model, widths, activation, weights.shape[0], n, 1)
    if n == 0 or records.shape[1] != model.width[0] or target.shape[0] != weights.shape[0]:
        raise ValueError("records and target must fit the layers")
    by_records, by_logits = np.empty((n, records.shape[1])), None
    cdef double[:, ::1] by_record = by_records
    if logits is None:
        hard = labels
        check_labels(hard, n, model.width[model.layers])
        hard_start = &hard[0]
    else:
        given = logits
        by_logits = np.empty((n, model.width[model.layers]))
        by_logit = by_logits
        if given.shape[0] != n or given.shape[1] != by_logit.shape[1]:
            raise ValueError("logits must have a row for each record")
        given_start, logit_start = &given[0, 0], &by_logit[0, 0]
    with nogil:
        kernels.load(&model, &weights[0], 1)
        value = kernels.matching(
            &model, &records[0, 0], hard_start, given_start, &target[0], &by_record[0, 0], logit_start)
    return value, by_records, by_logits
