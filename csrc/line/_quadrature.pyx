"""Quantities of Gaussian mixtures in one dimension; the mathematics is in csrc/line/fp_mixture_integrals_solver.h."""

from libc.math cimport INFINITY
from libc.string cimport memset

include "common/fp_interrupt.pxi"
include "common/fp_ufunc.pxi"

cdef extern from "common/fp_stop_token.h" nogil:
    ctypedef struct fp_stop_token:
        int status
    fp_stop_token fp_stop_token_make(int (*)() noexcept nogil, double)
    int FP_INTERRUPTED

cdef extern from "line/fp_mixture_integrals_ufuncs.h" nogil:
    ctypedef struct fp_row:
        double value, lower, upper
        int status, method
        long panels, evaluations
    ctypedef struct fp_column:
        const char *data
        Py_ssize_t step
    ctypedef struct fp_row_workspace:
        int certified
        long max_panels, max_work
        fp_stop_token stop
        fp_row *rows
    void fp_mixture_integrals_select()
    int fp_mixture_row(fp_row_workspace *, int, int, fp_column, fp_column, fp_column, int, fp_column, fp_column,
                       fp_column, double, double, fp_row *)
    ctypedef struct fp_columns:
        const char *data
        Py_ssize_t row, step
    ctypedef struct fp_rows:
        int quantity, k, j
        fp_columns columns[6]
        fp_columns order
        Py_ssize_t orders
    int fp_mixture_rows(fp_row_workspace *, const fp_rows *, Py_ssize_t, int)
    const int FP_BINOMIALS
    int fp_mixture_row_close(fp_row_workspace *, int, int, fp_column, fp_column, fp_column, int, fp_column, fp_column,
                             fp_column, double, fp_row *)
    void fp_row_workspace_free(fp_row_workspace *)
    int FP_KL, FP_JS, FP_ENTROPY, FP_RENYI, FP_INFORMATION
    int FP_ROW_SETTLED, FP_ROW_WIDE, FP_ROW_UNDECIDED, FP_ROW_INVALID
    int FP_BY_PANELS, FP_BY_RATIO, FP_OUT_OF_BUDGET, FP_OUT_OF_TIME, FP_BY_CLOSED_FORM, FP_EQUAL_PAIR, FP_DIVERGES
    int FP_BY_PANEL_BOUNDS, FP_BY_TRAPEZOID, FP_BY_BINOMIAL_SUM, FP_BY_LOW_SIGNAL, FP_HEURISTIC, FP_ONE_INPUT
    int FP_BOUNDS_DISAGREE
    fp_ufunc fp_mixture_integrals_ufuncs[1]
    const int FP_MIXTURE_INTEGRALS_UFUNCS

fp_mixture_integrals_select()

#: Quantities of `row_integral` and `stack_integrals`.
KINDS = {"kl": FP_KL, "js": FP_JS, "entropy": FP_ENTROPY, "renyi": FP_RENYI, "information": FP_INFORMATION}
#: Status of a row: settled, a bracket that other means may narrow, undecided within [0, infinity], or invalid (NaN).
SETTLED, WIDE, UNDECIDED, INVALID = FP_ROW_SETTLED, FP_ROW_WIDE, FP_ROW_UNDECIDED, FP_ROW_INVALID
#: Bits that tell how a row was computed.
PANELS, RATIO, BUDGET_SPENT, TIME_SPENT = FP_BY_PANELS, FP_BY_RATIO, FP_OUT_OF_BUDGET, FP_OUT_OF_TIME
CLOSED_FORM, EQUAL, DIVERGES, PANEL_BOUNDS = FP_BY_CLOSED_FORM, FP_EQUAL_PAIR, FP_DIVERGES, FP_BY_PANEL_BOUNDS
TRAPEZOID, BINOMIAL_SUM, LOW_SIGNAL = FP_BY_TRAPEZOID, FP_BY_BINOMIAL_SUM, FP_BY_LOW_SIGNAL
BOUNDS_DISAGREE = FP_BOUNDS_DISAGREE
HEURISTIC, ONE_INPUT = FP_HEURISTIC, FP_ONE_INPUT


def ufuncs(dict documentation):
    """The ufuncs by name, each with its docstring from ``documentation``."""
    return registered(fp_mixture_integrals_ufuncs, FP_MIXTURE_INTEGRALS_UFUNCS, documentation)


cdef inline int check_columns(ptrdiff_t components, ptrdiff_t means, ptrdiff_t sigmas) except -1:
    if components < 1 or (means != components and means != 1) or (sigmas != components and sigmas != 1):
        raise ValueError("means and standard deviations must have an entry for each component, or one for all")
    return 0


cdef inline int check_quantity(int kind, bint one) except -1:
    if one != (kind == FP_ENTROPY or kind == FP_INFORMATION):
        raise ValueError("a divergence must have two mixtures, and an entropy or information one")
    return 0


cdef inline fp_column _column(const double[:] column) except *:
    cdef fp_column out
    out.data = <const char *>&column[0]
    out.step = column.strides[0] if column.shape[0] > 1 else 0
    return out


def row_integral(int kind, const double[:] w, const double[:] m, const double[:] s, const double[:] v=None,
                 const double[:] n=None, const double[:] t=None, double order=0.0, double half_width=-1.0,
                 bint certified=False, double deadline=INFINITY, long max_work=1_000_000_000, long max_panels=0):
    """(value, lower, upper, status, method, panels, evaluations) of one pair, or of one mixture.

    Columns are weights, means and standard deviations, of which one may stand for all; for ``information`` the prior,
    the points and the standard deviation of the noise.

    ``half_width`` is that of an interval that holds the Renyi integral of an order above 1, where it was computed
    exactly; else it is negative. ``certified`` asks for proved bounds alone. After the ``deadline`` (a time of
    ``time.monotonic``), ``max_work`` exponentials or ``max_panels`` panels (0: by the number of components) the bounds
    are those that were proved by then.
    """
    cdef fp_row_workspace work
    cdef fp_row row
    cdef fp_column p[3]
    cdef fp_column q[3]
    cdef int status, j = 0, k = <int>w.shape[0]
    check_quantity(kind, v is None)
    check_columns(k, m.shape[0], s.shape[0])
    memset(&work, 0, sizeof(work))
    memset(q, 0, sizeof(q))
    work.certified, work.max_work, work.max_panels = certified, max_work, max_panels
    work.stop = fp_stop_token_make(interrupted, deadline)
    p[0], p[1], p[2] = _column(w), _column(m), _column(s)
    if v is not None:
        j = <int>v.shape[0]
        check_columns(j, n.shape[0], t.shape[0])
        q[0], q[1], q[2] = _column(v), _column(n), _column(t)
    with nogil:
        status = fp_mixture_row(&work, kind, k, p[0], p[1], p[2], j, q[0], q[1], q[2], order, half_width, &row)
        fp_row_workspace_free(&work)
    if status:
        finished(status, "components")
    return row.value, row.lower, row.upper, row.status, row.method, row.panels, row.evaluations


def closed_bracket(int kind, double value, double lower, double upper, const double[:] w, const double[:] m,
                   const double[:] s, const double[:] v=None, const double[:] n=None, const double[:] t=None,
                   double order=0.0):
    """(value, lower, upper, method) of a bracket as ``row_integral`` closes it by bounds that need no integral.

    The bracket [0, infinity] (of an entropy [-infinity, infinity]) gives these bounds themselves.
    """
    cdef fp_row_workspace work
    cdef fp_row row
    cdef fp_column p[3]
    cdef fp_column q[3]
    cdef int status, j = 0, k = <int>w.shape[0]
    check_quantity(kind, v is None)
    check_columns(k, m.shape[0], s.shape[0])
    memset(&work, 0, sizeof(work))
    memset(&row, 0, sizeof(row))
    memset(q, 0, sizeof(q))
    row.value, row.lower, row.upper = value, lower, upper
    p[0], p[1], p[2] = _column(w), _column(m), _column(s)
    if v is not None:
        j = <int>v.shape[0]
        check_columns(j, n.shape[0], t.shape[0])
        q[0], q[1], q[2] = _column(v), _column(n), _column(t)
    status = fp_mixture_row_close(&work, kind, k, p[0], p[1], p[2], j, q[0], q[1], q[2], order, &row)
    fp_row_workspace_free(&work)
    if status:
        raise ValueError("weights must sum to 1, and lengths must lie in the range of row_integral")
    return row.value, row.lower, row.upper, row.method


cdef inline fp_columns _rows(const double[:, :] columns) except *:
    cdef fp_columns out
    out.data = <const char *>&columns[0, 0]
    out.row, out.step = columns.strides[0], columns.strides[1] if columns.shape[1] > 1 else 0
    return out


def stack_integrals(int kind, const double[:, :] w, const double[:, :] m, const double[:, :] s, const double[:, :] v,
                    const double[:, :] n, const double[:, :] t, const double[:] order, double[:] value,
                    double[:] lower, double[:] upper, int[:] status, int[:] method, bint certified=False,
                    double deadline=INFINITY, long max_work=1_000_000_000, long[:, :] cost=None):
    """Fill ``value``, ``lower``, ``upper``, ``status`` and ``method`` row by row; arrays may have strides of 0.

    ``cost`` of shape (rows, 2) is filled with the panels and the evaluations of each row.

    The columns are (rows, components), standard deviations also (rows, 1): of P, and of Q but for one mixture alone
    the prior, the points and the standard deviation of the noise), where ``v``, ``n`` and ``t`` are None. ``order`` is
    None but for ``renyi``. Rows with weights of zero are padded; an invalid row is NaN. The GIL is released.
    """
    cdef fp_row_workspace work
    cdef const fp_row *row
    cdef fp_rows block
    cdef int done = 0, count, at
    cdef Py_ssize_t i, first = 0, rows = w.shape[0]
    cdef bint ordered = order is not None, pair = v is not None, counted = cost is not None
    check_quantity(kind, not pair)
    check_columns(<int>w.shape[1], m.shape[1], s.shape[1])
    if not (m.shape[0] == s.shape[0] == rows and value.shape[0] == lower.shape[0] == upper.shape[0] == rows
            and status.shape[0] == method.shape[0] == rows and (not ordered or order.shape[0] == rows)
            and (not counted or (cost.shape[0] == rows and cost.shape[1] == 2))):
        raise ValueError("columns, orders and results must have an entry for each row, and the cost two")
    if not rows:
        return
    memset(&block, 0, sizeof(block))
    memset(&work, 0, sizeof(work))
    work.certified, work.max_work = certified, max_work
    work.stop = fp_stop_token_make(interrupted, deadline)
    block.quantity, block.k, block.orders = kind, <int>w.shape[1], 1
    block.columns[0], block.columns[1], block.columns[2] = _rows(w), _rows(m), _rows(s)
    if ordered:
        block.order.data, block.order.row = <const char *>&order[0], order.strides[0]
    if pair:
        block.j = <int>v.shape[1]
        check_columns(block.j, n.shape[1], t.shape[1])
        if not v.shape[0] == n.shape[0] == t.shape[0] == rows:
            raise ValueError("both mixtures must have as many rows")
        block.columns[3], block.columns[4], block.columns[5] = _rows(v), _rows(n), _rows(t)
    with nogil:
        while first < rows and not done:
            count = <int>min(<Py_ssize_t>FP_BINOMIALS, rows - first)
            done = fp_mixture_rows(&work, &block, first, count)
            for at in range(count):
                i, row = first + at, &work.rows[at]
                value[i], lower[i], upper[i] = row.value, row.lower, row.upper
                status[i], method[i] = row.status, row.method
                if counted:
                    cost[i, 0], cost[i, 1] = row.panels, row.evaluations
            first += count
        fp_row_workspace_free(&work)
    if done:
        finished(done, "components")
