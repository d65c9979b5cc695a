"""Sums over the types of discrete pairs; the mathematics is in csrc/composition/fp_type_sums.h."""

import numpy as np

cdef extern from "composition/fp_type_sums.h":
    ctypedef struct fp_dd:
        double hi, lo
    ctypedef struct fp_type_total:
        fp_dd d, d_error, r, r_error
    ctypedef struct fp_type_side:
        int atoms
        fp_dd losses[2]
        double first[2]
        ptrdiff_t size[2]
        const double *weights[2]
    fp_dd fp_loss_of_atom(double, double) noexcept nogil
    fp_dd fp_log_factorial(double) noexcept nogil
    fp_dd fp_dd_log_scaled(fp_dd, long) noexcept nogil
    double fp_type_weight(double, fp_dd, fp_dd) noexcept nogil
    void fp_type_pairs(ptrdiff_t, const double *, const double *, const double *, ptrdiff_t, const double *,
                       const double *, const double *, double, fp_dd, double, fp_type_total *) noexcept nogil
    void fp_type_splits(const fp_type_side *, const fp_type_side *, double, double, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                        double *, fp_dd, double, fp_type_total *) noexcept nogil


def losses(const double[::1] p, const double[::1] q):
    """The logarithms of the ratios p / q of positive numbers, leading and trailing parts."""
    cdef ptrdiff_t i, n = p.shape[0]
    cdef fp_dd one
    if q.shape[0] != n:
        raise ValueError("the arguments must be of one length")
    hi, lo = np.empty(n), np.empty(n)
    cdef double[::1] u = hi, v = lo
    with nogil:
        for i in range(n):
            one = fp_loss_of_atom(p[i], q[i])
            u[i], v[i] = one.hi, one.lo
    return hi, lo


def logarithm(double hi, double lo, int shift):
    """The logarithm of (hi + lo) 2^shift, hi from 1/2 to 1."""
    cdef fp_dd x = fp_dd(hi, lo)
    x = fp_dd_log_scaled(x, shift)
    return x.hi, x.lo


def log_factorial(double n):
    """log n!, leading and trailing part."""
    cdef fp_dd x = fp_log_factorial(n)
    return x.hi, x.lo


def weights(double first, ptrdiff_t size, (double, double) slope, (double, double) offset):
    """e^(n slope + offset) / n! for n = first, first + 1, .."""
    cdef ptrdiff_t i
    cdef fp_dd a = fp_dd(slope[0], slope[1]), b = fp_dd(offset[0], offset[1])
    result = np.empty(size)
    cdef double[::1] out = result
    with nogil:
        for i in range(size):
            out[i] = fp_type_weight(first + <double>i, a, b)
    return result


cdef result(fp_type_total *total):
    return total.d.hi, total.d_error.hi, total.r.hi, total.r_error.hi


def pairs(const double[::1] a_hi, const double[::1] a_lo, const double[::1] a_weight, const double[::1] b_hi,
          const double[::1] b_lo, const double[::1] b_weight, (double, double) epsilon, double theta):
    """Delta and the tail under Q of the sums of two independent losses, which rise, each with its error."""
    cdef fp_type_total total = fp_type_total(fp_dd(0, 0), fp_dd(0, 0), fp_dd(0, 0), fp_dd(0, 0))
    cdef ptrdiff_t n = a_hi.shape[0], m = b_hi.shape[0]
    cdef fp_dd level = fp_dd(epsilon[0], epsilon[1])
    if a_lo.shape[0] != n or a_weight.shape[0] != n or b_lo.shape[0] != m or b_weight.shape[0] != m:
        raise ValueError("the arguments must be of one length for each sum")
    if n and m:
        with nogil:
            fp_type_pairs(n, &a_hi[0], &a_lo[0], &a_weight[0], m, &b_hi[0], &b_lo[0], &b_weight[0], 0.0, level, theta,
                          &total)
    return result(&total)


def splits(list a, list b, double k, double first, ptrdiff_t size, (double, double) epsilon, double theta):
    """The same for k draws from the atoms of two sides, of which first .. first + size - 1 fall into side ``a``.

    A side is a list of at most two atoms (loss, first count, weights of the counts), the larger loss first.
    """
    cdef fp_type_side sides[2]
    cdef ptrdiff_t room[2]
    cdef fp_type_total total = fp_type_total(fp_dd(0, 0), fp_dd(0, 0), fp_dd(0, 0), fp_dd(0, 0))
    cdef fp_dd level = fp_dd(epsilon[0], epsilon[1])
    cdef const double[::1] view
    kept = []
    for s, side in enumerate((a, b)):
        if len(side) > 2:
            raise ValueError("a side must have at most two atoms")
        if any(len(array) == 0 for _, _, array in side):
            raise ValueError("an atom must have a weight for each count")
        sides[s].atoms = len(side)
        room[s] = 1
        for j, (loss, start, array) in enumerate(side):
            view = array
            kept.append(view)
            sides[s].losses[j] = fp_dd(loss[0], loss[1])
            sides[s].first[j], sides[s].size[j] = start, view.shape[0]
            sides[s].weights[j] = &view[0]
        if len(side) == 2:
            room[s] = min(sides[s].size[0], sides[s].size[1])
    cdef double[::1] work = np.empty(3 * (room[0] + room[1]))
    with nogil:
        fp_type_splits(&sides[0], &sides[1], k, first, size, room[0], room[1], &work[0], level, theta, &total)
    return result(&total)
