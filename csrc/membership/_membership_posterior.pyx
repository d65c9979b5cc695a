"""The exact posterior over subsets of people; the mathematics is in csrc/membership/fp_membership_posterior.h."""

import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

cdef extern from "membership/fp_membership_posterior.h":
    const int FP_MEMBERSHIP_LOW, FP_MEMBERSHIP_HIGH, FP_MEMBERSHIP_ROWS
    const double FP_MEMBERSHIP_NEVER
    ctypedef struct fp_membership_term:
        int kind
        ptrdiff_t length
        const double *vectors
        const double *rest
        const double *low
        const double *factor
        const double *table
        const int32_t *index
        ptrdiff_t people
    ctypedef struct fp_membership_model:
        int low, high
        double reference
        const double *prior
        const double *log_odds
        const double *sizes
        int terms
        const fp_membership_term *term
    ctypedef struct fp_membership_sums:
        double *top
        double *mass
        double *moment
        double *column
        double *column_rest
        double column_top, best
        ptrdiff_t mode
    ctypedef struct fp_membership_kernels:
        void (*rows)(const fp_membership_model *, ptrdiff_t, ptrdiff_t, double *, fp_membership_sums *) noexcept nogil
        void (*sides)(int, const double *, const double *, double *) noexcept nogil
        void (*total)(ptrdiff_t, const double *, const double *, const double *, double *) noexcept nogil
    ptrdiff_t fp_membership_workspace(const fp_membership_model *) noexcept nogil
    fp_membership_kernels fp_membership_select()

LOW, HIGH, ROWS, NEVER = FP_MEMBERSHIP_LOW, FP_MEMBERSHIP_HIGH, FP_MEMBERSHIP_ROWS, FP_MEMBERSHIP_NEVER
MAX_TERMS = 64
KINDS = {"quadratic": 0, "absolute": 1, "maximum": 2, "consistent": 3, "censored": 4}
cdef fp_membership_kernels kernels = fp_membership_select()


cdef const double *doubles(array, list kept) except? NULL:
    """The first entry of a contiguous array, which is kept alive."""
    if array is None or array.size == 0:
        return NULL
    cdef const double[::1] flat = array.reshape(-1)
    kept.append(flat)
    return &flat[0]


cdef const int32_t *integers(array, list kept) except? NULL:
    if array is None or array.size == 0:
        return NULL
    cdef const int32_t[::1] flat = array.reshape(-1)
    kept.append(flat)
    return &flat[0]


cdef class Model:
    """Prior, log odds and terms of one release, as the header has them, in arrays that are not changed.

    ``terms`` are dictionaries with the key ``kind`` and the arrays of ``fp_membership_term``.
    """

    cdef fp_membership_model model
    cdef fp_membership_term *terms
    cdef list kept

    def __cinit__(self):
        self.terms = NULL

    def __init__(self, int low, int high, prior, log_odds, sizes, double reference, list terms):
        subsets = 1 << low
        if not (3 <= low <= FP_MEMBERSHIP_LOW and 2 <= high <= FP_MEMBERSHIP_HIGH and 1 <= len(terms) <= MAX_TERMS):
            raise ValueError("the halves and the number of terms must be ones that the kernel has room for")
        if prior.shape != (2, high + 1, subsets) or log_odds.shape != (2, high) or sizes.shape != (subsets,):
            raise ValueError("the prior, the log odds and the sizes must fit the halves")
        self.kept = []
        self.terms = <fp_membership_term *> malloc(len(terms) * sizeof(fp_membership_term))
        if self.terms is NULL:
            raise MemoryError
        cdef fp_membership_term *term
        people = low + high
        for i, one in enumerate(terms):
            length = one["vectors"].shape[1]
            shapes = {
                "quadratic": {"low": (2, subsets)},
                "censored": {"table": (people + 1, people + 1), "index": (length, subsets)},
            }.get(one["kind"], {"low": (subsets // 8, length, 8), "rest": (length,)})
            if one["kind"] != "censored":
                shapes["factor"] = (2, high + 1, subsets)
            if one["kind"] == "quadratic" and length != 2 * (people + 1):
                raise ValueError("a vector of a quadratic term must have two entries more than there are people, twice")
            if one["vectors"].shape[0] != high or any(one[name].shape != shape for name, shape in shapes.items()):
                raise ValueError("the arrays of a term must fit the halves")
            term = self.terms + <ptrdiff_t> i
            term.kind, term.length, term.people = KINDS[one["kind"]], length, people
            term.vectors = doubles(one["vectors"], self.kept)
            term.rest = doubles(one.get("rest"), self.kept)
            term.low = doubles(one.get("low"), self.kept)
            term.factor = doubles(one.get("factor"), self.kept)
            term.table = doubles(one.get("table"), self.kept)
            term.index = integers(one.get("index"), self.kept)
        self.model.low, self.model.high, self.model.reference = low, high, reference
        self.model.prior, self.model.log_odds = doubles(prior, self.kept), doubles(log_odds, self.kept)
        self.model.sizes = doubles(sizes, self.kept)
        self.model.terms, self.model.term = <int> len(terms), self.terms

    def __dealloc__(self):
        free(self.terms)

    def rows(self, ptrdiff_t start, ptrdiff_t stop, double[:, ::1] out):
        """Write top, mass and moment of the rows into ``out`` (3, stop - start).

        Returns the columns (2^low,), what they are relative to, and the largest exponent with the index of its subset,
        the first one of equal ones.
        """
        if start % FP_MEMBERSHIP_ROWS or stop % FP_MEMBERSHIP_ROWS or not 0 <= start < stop <= 1 << self.model.high:
            raise ValueError("the rows must be whole groups of four")
        if out.shape[0] != 3 or out.shape[1] != stop - start:
            raise ValueError("out must have three entries for each row")
        cdef double[:, ::1] columns = np.zeros((2, 1 << self.model.low))
        cdef fp_membership_sums sums
        sums.top, sums.mass, sums.moment = &out[0, 0], &out[1, 0], &out[2, 0]
        sums.column, sums.column_rest = &columns[0, 0], &columns[1, 0]
        cdef double *work = <double *> malloc((fp_membership_workspace(&self.model) + 1) * sizeof(double))
        if work is NULL:
            raise MemoryError
        with nogil:
            kernels.rows(&self.model, start, stop, work, &sums)
            free(work)
        return np.sum(columns, axis=0), sums.column_top, sums.best, sums.mode


def sides(const double[::1] top, const double[::1] mass, int high):
    """For each bit of the rows, without and with it: the largest exponent, and the mass relative to it."""
    if not top.shape[0] == mass.shape[0] == 1 << high:
        raise ValueError("there must be a row for each subset of the high half")
    found = np.empty((high, 2, 2))
    cdef double[:, :, ::1] out = found
    with nogil:
        kernels.sides(high, &top[0], &mass[0], &out[0, 0, 0])
    return found


def total(const double[::1] top, const double[::1] mass, const double[::1] moment):
    """The largest exponent, and mass and moment relative to it."""
    cdef double out[3]
    if not 1 <= top.shape[0] == mass.shape[0] == moment.shape[0]:
        raise ValueError("there must be one top, mass and moment for each row")
    with nogil:
        kernels.total(top.shape[0], &top[0], &mass[0], &moment[0], out)
    return out[0], out[1], out[2]
