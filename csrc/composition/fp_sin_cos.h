/* Sine and cosine up to a common sign: of y reduced modulo pi to [-pi/2, pi/2], for |y| <= 2^28.
 *
 * Taylor polynomials to degrees 21 and 22, whose remainders on [-pi/2, pi/2] are below 2e-18; pi in four parts of
 * which the first three have 26 bits at most, so that their products with integers below 2^27 are exact. So are the
 * first two differences, multiples of the last bit of y or of 2^-50 and below 8; the last two are rounded once each.
 *
 * Bounds, proved by tools/proofs: absolute error of the sine 5.9e-16 and of the cosine 5.6e-16, and for |y| <= 1.57,
 * which is not reduced, relative error of the sine 3.7e-16.
 */
/* bounds: proved by proofs/trigonometric - errors of sines and cosines */
#ifndef FP_SIN_COS_H
#define FP_SIN_COS_H

#include "common/fp_dispatch.h"

#define FP_LARGEST_ANGLE 268435456.0 /* 2^28 */

FP_INLINE void fp_sin_cos_mod_pi(double y, double *sine, double *cosine)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    const double turns = (y * 0.31830988618379067154 + shift) - shift;
    const double near = (y - turns * 0x1.921fb5p+1) - turns * 0x1.110b46p-25;
    const double r = (near - turns * 0x1.1a6262p-53) - turns * 0x1.3145c06e0e689p-77;
    const double x = r * r;
    double s = -1.9572941063391262e-20, c = -8.8967913924505741e-22;
    s = s * x + 8.2206352466243295e-18, c = c * x + 4.1103176233121648e-19;
    s = s * x + -2.8114572543455206e-15, c = c * x + -1.5619206968586225e-16;
    s = s * x + 7.6471637318198164e-13, c = c * x + 4.7794773323873853e-14;
    s = s * x + -1.6059043836821613e-10, c = c * x + -1.1470745597729725e-11;
    s = s * x + 2.5052108385441719e-08, c = c * x + 2.08767569878681e-09;
    s = s * x + -2.7557319223985893e-06, c = c * x + -2.7557319223985888e-07;
    s = s * x + 0.00019841269841269841, c = c * x + 2.4801587301587302e-05;
    s = s * x + -0.0083333333333333332, c = c * x + -0.0013888888888888889;
    s = s * x + 0.16666666666666666, c = c * x + 0.041666666666666664;
    *sine = r - r * x * s;
    *cosine = 1.0 - (0.5 * x - x * x * c);
}

#endif
