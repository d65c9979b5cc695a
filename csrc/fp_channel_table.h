/* The table of the ufuncs of the binary channel, with every instruction set's loops. */
#ifndef FP_CHANNEL_TABLE_H
#define FP_CHANNEL_TABLE_H

#include "fp_channel.h"
#include "fp_ufunc.h"

#define FP_LOOPS "fp_channel_loops.h"
#include "fp_variants.h"

static fp_ufunc fp_channel_table[] = {
    FP_UFUNC_1(binary_entropy),
    FP_UFUNC_2(binary_entropy_with_complement),
    FP_UFUNC_2(bac_capacity),
    FP_UFUNC_4(bac_capacity_with_complements),
};

enum { FP_CHANNEL_SIZE = sizeof fp_channel_table / sizeof fp_channel_table[0] };

#endif
