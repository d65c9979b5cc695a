"""Sums over coordinates of two normal distributions; the mathematics is in csrc/composition/fp_gaussian_sums.h."""

import numpy as np

cdef extern from "composition/fp_gaussian_sums.h" nogil:
    int FP_GAUSSIAN_COLUMNS
    void fp_gaussian_sums(ptrdiff_t, const double *, const double *, ptrdiff_t, const double *, const double *,
                          const double *, const double *, const double *, const double *, int, double *)


def coordinate_sums(const double[::1] re, const double[::1] im, const double[:, ::1] rows, bint angles):
    """The columns of fp_gaussian_sums at the points re + i im; the rows are y, w2, n, b, error2 and e."""
    if re.shape[0] != im.shape[0] or rows.shape[0] != 6 or not rows.shape[1]:
        raise ValueError("points must have two parts each, and coordinates six rows")
    found = np.empty((FP_GAUSSIAN_COLUMNS, re.shape[0]))
    cdef double[:, ::1] out = found
    if re.shape[0]:
        with nogil:
            fp_gaussian_sums(re.shape[0], &re[0], &im[0], rows.shape[1], &rows[0, 0], &rows[1, 0], &rows[2, 0],
                             &rows[3, 0], &rows[4, 0], &rows[5, 0], angles, &out[0, 0])
    return found
