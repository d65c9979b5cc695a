/* From a scalar function to a NumPy ufunc: block kernels, the one strided loop around them, and the table.
 *
 * A subject that offers ufuncs has a list of them: the number of inputs, one to four, the name, and the function of
 * single numbers.
 *
 *     #define FP_SPECIAL_FUNCTIONS(F) F(1, erfc, fp_erfc) F(2, ndtr_difference, fp_ndtr_diff) ...
 *
 * Its header of loops, included once per instruction set (fp_variants.h), makes the loops of the list,
 *
 *     FP_SPECIAL_FUNCTIONS(FP_LOOP)
 *
 * and its header of ufuncs, after all variants are included, the table and the functions of single numbers, which other
 * compiled code calls:
 *
 *     FP_SPECIAL_FUNCTIONS(FP_SCALAR)
 *     static fp_ufunc fp_special_ufuncs[] = { FP_SPECIAL_FUNCTIONS(FP_UFUNC) };
 *
 * A function of single numbers runs the block kernel on one element, so that its bits are those of the ufunc.
 *
 * FP_LOOP_k defines a block kernel: contiguous doubles in, contiguous doubles out, the scalar function inlined and
 * vectorised.  fp_ufunc_loop has the signature NumPy asks of a loop (npy_intp is ptrdiff_t) and drives it: contiguous
 * operands go to the kernel as they are, stride-0 operands are spread once, others are copied in blocks that stay in
 * the first-level cache.  The mathematics is thus compiled once per function and instruction set.  Outputs may be
 * the very memory of an input; NumPy itself takes care of any other overlap.
 *
 * Branch-free code evaluates both sides of a choice, so the floating-point flags say nothing: they are put back as
 * they were and NumPy never warns.  Outside its domain a function returns NaN.
 *
 * A loop works in pieces of FP_UFUNC_CHUNK elements and asks between them whether to stop (fp_stop_token.h): the
 * exception is then pending, NumPy raises it when the loops return, and what they left in the result is never seen.
 * Until then every further loop of the same call asks first, and returns at once. A generalised ufunc does not ask:
 * NumPy does not look for what is pending there.
 */
#ifndef FP_UFUNC_H
#define FP_UFUNC_H

#include <fenv.h>
#include <stddef.h>

#include "common/fp_dispatch.h"
#include "common/fp_stop_token.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
typedef unsigned int fp_flags;
static inline fp_flags fp_flags_save(void) { return _mm_getcsr(); }
static inline void fp_flags_restore(fp_flags held) { _mm_setcsr(held); }
#else
typedef fenv_t fp_flags;
static inline fp_flags fp_flags_save(void)
{
    fenv_t held;
    fegetenv(&held);
    return held;
}
static inline void fp_flags_restore(fp_flags held) { fesetenv(&held); }
#endif

enum { FP_BLOCK = 256, FP_MAX_INPUTS = 4, FP_MAX_OPERANDS = 16, FP_UFUNC_CHUNK = 16384 };

typedef void fp_kernel(const double *const *in, double *out, ptrdiff_t n);
typedef void fp_ufunc_function(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data);

typedef struct {
    const char *name;
    int inputs, outputs;
    const char *signature; /* of a generalised ufunc, else NULL */
    fp_ufunc_function *loop;
    void *variants[3]; /* by FP_ISA_*: an fp_kernel, or the function that the loop of a generalised ufunc calls */
    void *scalar;      /* the function of single numbers, or NULL */
    void *bounds;      /* the function of single numbers that writes a value with its bounds, or NULL */
    void **selected;      /* where that function looks for the kernel of this machine */
    /* NumPy keeps pointers to these */
    fp_ufunc_function *functions[1];
    void *data[1];
    char types[FP_MAX_OPERANDS];
} fp_ufunc;

#define FP_LOOP_1(stem, scalar)                                                                                        \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        const double *a = in[0];                                                                                       \
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++) out[i] = scalar(a[i]);                                  \
    }

#define FP_LOOP_2(stem, scalar)                                                                                        \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        const double *a = in[0], *b = in[1];                                                                           \
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++) out[i] = scalar(a[i], b[i]);                            \
    }

#define FP_LOOP_3(stem, scalar)                                                                                        \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        const double *a = in[0], *b = in[1], *c = in[2];                                                               \
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++) out[i] = scalar(a[i], b[i], c[i]);                      \
    }

#define FP_LOOP_4(stem, scalar)                                                                                        \
    static void FP_NAME(stem)(const double *const *in, double *out, ptrdiff_t n)                                       \
    {                                                                                                                  \
        const double *a = in[0], *b = in[1], *c = in[2], *d = in[3];                                                   \
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++) out[i] = scalar(a[i], b[i], c[i], d[i]);                \
    }

#define FP_LOOP(count, stem, scalar) FP_LOOP_##count(stem, scalar)

#if FP_HAVE_VARIANTS
#define FP_VARIANTS(stem) {(void *)stem##_baseline, (void *)stem##_avx2, (void *)stem##_avx512}
#else
#define FP_VARIANTS(stem) {(void *)stem##_baseline, (void *)stem##_baseline, (void *)stem##_baseline}
#endif

#define FP_UFUNC(count, stem, ...)                                                                                     \
    {.name = #stem, .inputs = count, .outputs = 1, .loop = fp_ufunc_loop_##count, .variants = FP_VARIANTS(stem),                     \
     .scalar = (void *)stem##_scalar, .selected = &stem##_selected},
/* A ufunc with a loop of its own; `core` is the signature of a generalised one, else NULL */
#define FP_OWN_UFUNC(stem, nin, nout, core, own_loop)                                                                  \
    {                                                                                                                  \
        .name = #stem, .inputs = nin, .outputs = nout, .signature = core, .loop = own_loop,                            \
        .variants = FP_VARIANTS(stem)                                                                                  \
    }

#define FP_SCALAR(count, stem, ...)                                                                                    \
    static void *stem##_selected;                                                                                      \
    FP_SCALAR_##count(stem)
#define FP_SCALAR_1(stem) static double stem##_scalar(double a) { FP_SCALAR_CALL(stem, &a) }
#define FP_SCALAR_2(stem) static double stem##_scalar(double a, double b) { FP_SCALAR_CALL(stem, &a, &b) }
#define FP_SCALAR_3(stem) static double stem##_scalar(double a, double b, double c) { FP_SCALAR_CALL(stem, &a, &b, &c) }
#define FP_SCALAR_4(stem)                                                                                              \
    static double stem##_scalar(double a, double b, double c, double d) { FP_SCALAR_CALL(stem, &a, &b, &c, &d) }
#define FP_SCALAR_CALL(stem, ...)                                                                                      \
    const double *const in[] = {__VA_ARGS__};                                                                          \
    double out;                                                                                                        \
    ((fp_kernel *)stem##_selected)(in, &out, 1);                                                                       \
    return out;

/* Whether an exception is pending or a signal raises one; set when the table is registered. */
static fp_interrupted fp_ufunc_interrupted;

/* Count elements done in this thread; returns whether to stop. */
static inline int fp_ufunc_stop_requested(ptrdiff_t elements)
{
    static _Thread_local double next = 0.0;
    static _Thread_local ptrdiff_t done = 0;
    done += elements;
    if (done < FP_UFUNC_CHUNK)
        return 0;
    double now = fp_seconds();
    if (now >= next) {
        if (fp_ufunc_interrupted && fp_ufunc_interrupted())
            return 1; /* and it checks again in the next loop */
        next = now + FP_STOP_CHECK_SECONDS;
    }
    done = 0;
    return 0;
}

FP_INLINE void fp_ufunc_chunk(char **args, ptrdiff_t n, const ptrdiff_t *steps, fp_kernel *kernel, const int inputs)
{
    const ptrdiff_t width = sizeof(double);
    const double *in[FP_MAX_INPUTS];
    int contiguous = steps[inputs] == width;
    for (int k = 0; k < inputs; k++) {
        in[k] = (const double *)args[k];
        contiguous = contiguous && steps[k] == width;
    }
    if (contiguous) {
        kernel(in, (double *)args[inputs], n);
    } else {
        double staged[FP_MAX_INPUTS + 1][FP_BLOCK];
        for (int k = 0; k < inputs; k++)
            if (steps[k] == 0)
                for (ptrdiff_t i = 0; i < FP_BLOCK && i < n; i++)
                    staged[k][i] = *(const double *)args[k];
        for (ptrdiff_t start = 0; start < n; start += FP_BLOCK) {
            const ptrdiff_t m = n - start < FP_BLOCK ? n - start : FP_BLOCK;
            for (int k = 0; k < inputs; k++) {
                const char *from = args[k] + start * steps[k];
                in[k] = staged[k];
                if (steps[k] == width)
                    in[k] = (const double *)from;
                else if (steps[k] != 0)
                    for (ptrdiff_t i = 0; i < m; i++)
                        staged[k][i] = *(const double *)(from + i * steps[k]);
            }
            char *to = args[inputs] + start * steps[inputs];
            if (steps[inputs] == width) {
                kernel(in, (double *)to, m);
            } else {
                kernel(in, staged[inputs], m);
                for (ptrdiff_t i = 0; i < m; i++)
                    *(double *)(to + i * steps[inputs]) = staged[inputs][i];
            }
        }
    }
}

FP_INLINE void fp_ufunc_loop(char **args, ptrdiff_t n, const ptrdiff_t *steps, fp_kernel *kernel, const int inputs)
{
    const fp_flags held = fp_flags_save();
    char *part[FP_MAX_INPUTS + 1];
    for (ptrdiff_t start = 0; start < n; start += FP_UFUNC_CHUNK) {
        const ptrdiff_t m = n - start < FP_UFUNC_CHUNK ? n - start : FP_UFUNC_CHUNK;
        for (int k = 0; k <= inputs; k++)
            part[k] = args[k] + start * steps[k];
        if (fp_ufunc_stop_requested(m))
            break;
        fp_ufunc_chunk(part, m, steps, kernel, inputs);
    }
    fp_flags_restore(held);
}

#define FP_UNUSED __attribute__((unused)) static /* a module need not have functions of every number of inputs */

FP_UNUSED void fp_ufunc_loop_1(char **args, const ptrdiff_t *n, const ptrdiff_t *steps, void *kernel)
{
    fp_ufunc_loop(args, n[0], steps, (fp_kernel *)kernel, 1);
}

FP_UNUSED void fp_ufunc_loop_2(char **args, const ptrdiff_t *n, const ptrdiff_t *steps, void *kernel)
{
    fp_ufunc_loop(args, n[0], steps, (fp_kernel *)kernel, 2);
}

FP_UNUSED void fp_ufunc_loop_3(char **args, const ptrdiff_t *n, const ptrdiff_t *steps, void *kernel)
{
    fp_ufunc_loop(args, n[0], steps, (fp_kernel *)kernel, 3);
}

__attribute__((unused)) static void fp_ufunc_loop_4(char **args, const ptrdiff_t *n, const ptrdiff_t *steps,
                                                    void *kernel)
{
    fp_ufunc_loop(args, n[0], steps, (fp_kernel *)kernel, 4);
}

/* Functions of three numbers with a value, a lower and an upper bound: a kernel takes strides in bytes.
 *
 *     #define FP_X_BOUNDED(F) F(stem) ...
 *     FP_X_BOUNDED(FP_BOUNDED_SCALAR)
 *     static fp_ufunc fp_x_ufuncs[] = { FP_X_BOUNDED(FP_BOUNDED_UFUNC) };
 *
 * FP_BOUNDED_SLOW_UFUNC hears a signal between any two elements, for functions that may take a second. */
typedef void fp_bounded_kernel(char **args, ptrdiff_t count, const ptrdiff_t *steps);

FP_INLINE void fp_bounded_chunks(char **args, ptrdiff_t count, const ptrdiff_t *steps, void *kernel,
                                 const ptrdiff_t chunk)
{
    const fp_flags held = fp_flags_save();
    char *part[6];
    for (ptrdiff_t start = 0; start < count; start += chunk) {
        const ptrdiff_t left = count - start, n = left < chunk ? left : chunk;
        for (int k = 0; k < 6; k++)
            part[k] = args[k] + start * steps[k];
        if (fp_ufunc_stop_requested(chunk == 1 ? FP_UFUNC_CHUNK : n))
            break;
        ((fp_bounded_kernel *)kernel)(part, n, steps);
    }
    fp_flags_restore(held);
}

FP_UNUSED void fp_bounded_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel)
{
    fp_bounded_chunks(args, dimensions[0], steps, kernel, FP_UFUNC_CHUNK);
}

FP_UNUSED void fp_bounded_slow_loop(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *kernel)
{
    fp_bounded_chunks(args, dimensions[0], steps, kernel, 1);
}

#define FP_BOUNDED_SCALAR(stem)                                                                                        \
    static void *stem##_selected;                                                                                      \
    static void stem##_bounds(double a, double b, double c, double *found)                                             \
    {                                                                                                                  \
        static const ptrdiff_t steps[6] = {0};                                                                         \
        char *args[] = {(char *)&a, (char *)&b, (char *)&c, (char *)found, (char *)(found + 1), (char *)(found + 2)};  \
        ((fp_bounded_kernel *)stem##_selected)(args, 1, steps);                                                        \
    }                                                                                                                  \
    static double stem##_scalar(double a, double b, double c)                                                          \
    {                                                                                                                  \
        double found[3];                                                                                               \
        stem##_bounds(a, b, c, found);                                                                                 \
        return found[0];                                                                                               \
    }
#define FP_BOUNDED_WITH(stem, own_loop)                                                                                \
    {.name = #stem, .inputs = 3, .outputs = 3, .loop = own_loop, .variants = FP_VARIANTS(stem),                        \
     .scalar = (void *)stem##_scalar, .bounds = (void *)stem##_bounds, .selected = &stem##_selected},
#define FP_BOUNDED_UFUNC(stem) FP_BOUNDED_WITH(stem, fp_bounded_loop)
#define FP_BOUNDED_SLOW_UFUNC(stem) FP_BOUNDED_WITH(stem, fp_bounded_slow_loop)

/* The type of the functions that write a value with its bounds, and the types of the other functions of single numbers, as
 * Cython writes them, by the number of inputs. */
FP_UNUSED const char *const fp_bounds_signature = "void (double, double, double, double *)";
FP_UNUSED const char *const fp_ufunc_signatures[FP_MAX_INPUTS + 1] = {
    "", "double (double)", "double (double, double)", "double (double, double, double)",
    "double (double, double, double, double)"};

/* Choose the variant and fill in what NumPy keeps; `type` is the type number of double in NumPy. */
static inline void fp_ufunc_prepare(fp_ufunc *ufunc, char type)
{
    ufunc->functions[0] = ufunc->loop;
    ufunc->data[0] = ufunc->variants[fp_isa()];
    if (ufunc->selected)
        *ufunc->selected = ufunc->data[0];
    for (int k = 0; k < ufunc->inputs + ufunc->outputs; k++)
        ufunc->types[k] = type;
}

#endif
