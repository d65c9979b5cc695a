"""Random and Sobol normals, and samples of mixtures made of them; the mathematics is in csrc/sampling/fp_draw.h.

Every shape is checked before a kernel runs, so that no kernel reads or writes beyond its arrays.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "sampling/fp_draw.h" nogil:
    ctypedef struct fp_affine_map:
        long d, n
        int form
        const double *means
        const double *spreads
        const double *z
        double *x
        const int32_t *component
    void fp_draw_choose()
    void fp_draw_bits(const uint64_t *, long, uint64_t *)
    void fp_draw_uniforms(const uint64_t *, long, double *)
    void fp_draw_normals(const uint64_t *, int, long, long, double *)
    void fp_draw_sobol_bits(const uint64_t *, int, const uint64_t *, uint64_t, long, long, uint64_t *)
    void fp_draw_sobol_normals(const uint64_t *, int, const uint64_t *, uint64_t, long, long, double *)
    void fp_draw_scramble(const uint64_t *, const uint64_t *, int, long, uint64_t *, uint64_t *)
    int fp_draw_components_in_range(const int32_t *, long, long)
    void fp_draw_runs(const int64_t *, long, int64_t, long, int32_t *)
    void fp_draw_affine_map(fp_affine_map *, long)
    int FP_SEED_WORDS

fp_draw_choose()

SEED_WORDS = FP_SEED_WORDS


cdef int _fit(bint good, str what) except -1:
    if not good:
        raise ValueError(f"shapes must fit: {what}")
    return 0


def bits(const uint64_t[::1] words, uint64_t[::1] out):
    """Fill ``out`` with the stream of ``SEED_WORDS`` words."""
    _fit(words.shape[0] == SEED_WORDS, "words (SEED_WORDS,)")
    if out.shape[0]:
        with nogil:
            fp_draw_bits(&words[0], out.shape[0], &out[0])


def uniforms(const uint64_t[::1] words, double[::1] out):
    """Fill ``out`` with uniforms in [2**-53, 1 - 2**-53]."""
    _fit(words.shape[0] == SEED_WORDS, "words (SEED_WORDS,)")
    if out.shape[0]:
        with nogil:
            fp_draw_uniforms(&words[0], out.shape[0], &out[0])


def normals(const uint64_t[::1] words, bint antithetic, double[:, ::1] out):
    """Fill ``out`` (d, n) with normals; when antithetic, n is even and column 2 j + 1 is minus column 2 j."""
    _fit(words.shape[0] == SEED_WORDS and not (antithetic and out.shape[1] % 2), "words (SEED_WORDS,), out (d, n), n even")
    if out.shape[0] and out.shape[1]:
        with nogil:
            fp_draw_normals(&words[0], antithetic, out.shape[0], out.shape[1], &out[0, 0])


def sobol_bits(const uint64_t[:, ::1] columns, const uint64_t[::1] shifts, uint64_t first, uint64_t[:, ::1] out):
    """Fill ``out`` (d, n) with the points first to first + n - 1 as 64 binary digits."""
    _fit(columns.shape[0] == shifts.shape[0] == out.shape[0] and 0 < columns.shape[1] <= 64,
         "columns (d, bits), shifts (d,), out (d, n), bits <= 64")
    if out.shape[0] and out.shape[1]:
        with nogil:
            fp_draw_sobol_bits(&columns[0, 0], <int>columns.shape[1], &shifts[0], first, out.shape[0], out.shape[1],
                               &out[0, 0])


def sobol_normals(const uint64_t[:, ::1] columns, const uint64_t[::1] shifts, uint64_t first, double[:, ::1] out):
    """Fill ``out`` (d, n) with the points first to first + n - 1, each coordinate through the normal quantile."""
    _fit(columns.shape[0] == shifts.shape[0] == out.shape[0] and 0 < columns.shape[1] <= 64,
         "columns (d, bits), shifts (d,), out (d, n), bits <= 64")
    if out.shape[0] and out.shape[1]:
        with nogil:
            fp_draw_sobol_normals(&columns[0, 0], <int>columns.shape[1], &shifts[0], first, out.shape[0], out.shape[1],
                                  &out[0, 0])


def scramble(const uint64_t[::1] words, const uint64_t[:, ::1] generators, uint64_t[:, ::1] columns,
             uint64_t[::1] shifts):
    """Fill ``columns`` and ``shifts`` with a random linear scramble of ``generators`` and a digital shift."""
    _fit(words.shape[0] == SEED_WORDS and generators.shape[0] == columns.shape[0] == shifts.shape[0]
         and 0 < generators.shape[1] == columns.shape[1] <= 64, "words (SEED_WORDS,), generators and columns (d, bits)")
    if shifts.shape[0]:
        with nogil:
            fp_draw_scramble(&words[0], &generators[0, 0], <int>generators.shape[1], generators.shape[0],
                             &columns[0, 0], &shifts[0])


def component_runs(const int64_t[::1] bounds, int64_t first, int32_t[::1] out):
    """Fill ``out`` with the components of samples first, first + 1, ...: sample i has as many bounds <= i.

    ``bounds`` rise, and the last one is beyond all samples.
    """
    _fit(bounds.shape[0] > 0 and 0 <= first and first + out.shape[0] <= bounds[bounds.shape[0] - 1],
         "bounds (k,), first + out.size at most the last bound")
    with nogil:
        fp_draw_runs(&bounds[0], bounds.shape[0], first, out.shape[0], &out[0] if out.shape[0] else NULL)


def affine_map(int form, const double[:, ::1] means, spreads, const int32_t[::1] component, const double[:, ::1] z,
          double[:, ::1] out):
    """Fill ``out`` (d, n) with means[c] + spreads[c] z, c = component[column]; ``out`` may be ``z``.

    ``spreads`` is (k,) for form 0, (k, d) for form 1, (k or 1, d (d + 1) / 2) rows of lower factors for form 2.
    """
    cdef fp_affine_map work
    cdef const double[::1] flat = spreads.reshape(-1)
    cdef long k = means.shape[0], d = means.shape[1], factors = 1
    cdef int inside
    if form == 2:
        factors = spreads.shape[0]
    _fit(0 <= form <= 2 and z.shape[0] == d == out.shape[0] and z.shape[1] == component.shape[0] == out.shape[1]
         and factors in (1, k) and flat.shape[0] == (k, k * d, factors * (d * (d + 1) // 2))[form],
         "means (k, d), spreads by form, component (n,), z and out (d, n)")
    work.form = form
    work.d = d
    work.n = component.shape[0]
    if d == 0 or work.n == 0:
        return
    work.means, work.spreads, work.z = &means[0, 0], &flat[0], &z[0, 0]
    work.x, work.component = &out[0, 0], &component[0]
    with nogil:
        inside = fp_draw_components_in_range(work.component, work.n, k)
        if inside:
            fp_draw_affine_map(&work, factors)
    _fit(inside, "component in 0 to k - 1")
