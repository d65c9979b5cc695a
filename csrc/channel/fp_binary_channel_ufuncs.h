/* The table of the ufuncs of the binary channel, with every instruction set's loops. */
#ifndef FP_BINARY_CHANNEL_UFUNCS_H
#define FP_BINARY_CHANNEL_UFUNCS_H

#include "channel/fp_binary_channel.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "channel/fp_binary_channel_loops.h"
#include "common/fp_variants.h"

#define FP_BINARY_CHANNEL_FUNCTIONS(F)   \
    F(1, binary_entropy)                 \
    F(2, binary_entropy_with_complement) \
    F(2, bac_capacity)                   \
    F(4, bac_capacity_with_complements)

FP_BINARY_CHANNEL_FUNCTIONS(FP_SCALAR)

static fp_ufunc fp_binary_channel_ufuncs[] = {
    FP_BINARY_CHANNEL_FUNCTIONS(FP_UFUNC)
};

enum { FP_BINARY_CHANNEL_UFUNCS = sizeof fp_binary_channel_ufuncs / sizeof fp_binary_channel_ufuncs[0] };

#endif
