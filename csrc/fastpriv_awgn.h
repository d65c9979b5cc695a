/* The capacity under a peak-power constraint for C; beside what fastpriv.h says, it takes memory and gives it back.
 *
 * A header of its own because it is large and asks for more of the compiler: GNU C11 (-std=gnu11), not C++.
 */
#ifndef FASTPRIV_AWGN_H
#define FASTPRIV_AWGN_H

#include "fastpriv.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed between inlined functions alone */
#include "awgn/fp_awgn.h"
#define FP_ISA header
#include "awgn/fp_awgn_solver.h"
#undef FP_ISA
#pragma GCC diagnostic pop

/* Capacity in nats of Y = X + N(0, I_d), ||X|| <= radius, to the relative width rtol */
static inline fastpriv_bounds fastpriv_awgn_capacity(double dimension, double radius, double rtol)
{
    double found[3];
    fp_awgn_bounds_header(dimension, radius, rtol, found);
    const fastpriv_bounds out = {found[0], found[1], found[2]};
    return out;
}

#endif
