/* Interim scalar functions with their final names; replaced by vectorising ones. */
#ifndef FP_MATH_H
#define FP_MATH_H
#include "fp_dispatch.h"
#include <math.h>
#include "fp_elementary.h"
FP_INLINE double fp_erfc(double x) { return erfc(x); }
FP_INLINE double fp_erfcx(double x)
{
    if (x < 25.0) return exp(x * x) * erfc(x);
    return 0.56418958354775628695 / x * (1.0 - 0.5 / (x * x) + 0.75 / (x * x * x * x));
}
/* Mills ratio of the standard normal law: (1 - Phi(x)) / phi(x) */
FP_INLINE double fp_mills(double x) { return 1.2533141373155002512 * fp_erfcx(x * 0.70710678118654752440); }
FP_INLINE double fp_ndtr(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
FP_INLINE double fp_log_ndtr(double x) { return x < -1.0 ? log(0.5 * fp_erfcx(-x * 0.70710678118654752440)) - 0.5 * x * x : log1p(-0.5 * erfc(x * 0.70710678118654752440)); }
FP_INLINE double fp_log1mexp(double x) { return x > -0.6931471805599453 ? log(-expm1(x)) : log1p(-exp(x)); } /* log(1 - e^x), x <= 0 */
FP_INLINE double fp_logaddexp(double a, double b) { double m = a > b ? a : b, d = a > b ? b - a : a - b; return m + log1p(exp(d)); }
/* Phi(b) - Phi(a), no cancellation, a <= b */
FP_INLINE double fp_ndtr_diff(double a, double b) { return a > 0 ? 0.5 * (erfc(a * 0.70710678118654752440) - erfc(b * 0.70710678118654752440)) : 0.5 * (erfc(-b * 0.70710678118654752440) - erfc(-a * 0.70710678118654752440)); }
#endif
