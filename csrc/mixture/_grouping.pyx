"""Grouping of the atoms of a discrete distribution; the mathematics is in csrc/mixture/fp_grouping_solver.h."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "mixture/fp_grouping_solver.h":
    ctypedef struct fp_grouping:
        ptrdiff_t n
        const double *x
        const double *w
        double width
        int k
        const double *cost
        double tolerance
        double *node
        double *weight
        ptrdiff_t *first_atom
        ptrdiff_t *first_node
        ptrdiff_t cells, nodes
        double worst
        ptrdiff_t start, stop, done
    int fp_grouping_run(fp_grouping *, ptrdiff_t) noexcept nogil
    int FP_NODES

MAX_NODES = FP_NODES
cdef ptrdiff_t BUDGET = 100_000  # atoms between two checks for Ctrl-C: some hundredths of a second


def group_atoms(const double[::1] x, const double[::1] w, double width, int k, const double[::1] cost, double allowed):
    """(nodes, weights, first atoms, first nodes, largest difference) of the cells of a sorted distribution."""
    cdef fp_grouping work
    cdef ptrdiff_t n = x.shape[0]
    cdef int more = 1
    if n == 0 or w.shape[0] != n or k < 1 or k > FP_NODES or cost.shape[0] != 2 * k:
        raise ValueError("a law has atoms, a weight each; a rule of k nodes has the costs of 2 k moments")
    cdef double[::1] node = np.empty(n), weight = np.empty(n)
    cdef ptrdiff_t[::1] atoms = np.empty(n + 1, dtype=np.intp), nodes = np.empty(n + 1, dtype=np.intp)
    work.n, work.x, work.w, work.width, work.k, work.cost = n, &x[0], &w[0], width, k, &cost[0]
    work.tolerance, work.node, work.weight, work.first_atom, work.first_node = (
        allowed, &node[0], &weight[0], &atoms[0], &nodes[0]
    )
    work.cells = work.nodes = work.start = work.stop = work.done = 0
    work.worst = 0.0
    while more:
        with nogil:
            more = fp_grouping_run(&work, BUDGET)
        PyErr_CheckSignals()
    return (
        np.asarray(node)[:work.nodes].copy(), np.asarray(weight)[:work.nodes].copy(),
        np.asarray(atoms)[:work.cells + 1].copy(), np.asarray(nodes)[:work.cells + 1].copy(), work.worst,
    )
