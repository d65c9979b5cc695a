/* The table of the ufuncs of the binary channel, with every instruction set's loops. */
#ifndef FP_BINARY_CHANNEL_UFUNCS_H
#define FP_BINARY_CHANNEL_UFUNCS_H

#include "channel/fp_binary_channel.h"
#include "common/fp_ufunc.h"

#define FP_LOOPS "channel/fp_binary_channel_loops.h"
#include "common/fp_variants.h"

FP_BINARY_CHANNEL_FUNCTIONS(FP_SCALAR)

static fp_ufunc fp_binary_channel_ufuncs[] = {
    FP_BINARY_CHANNEL_FUNCTIONS(FP_UFUNC)
};

enum { FP_BINARY_CHANNEL_UFUNCS = sizeof fp_binary_channel_ufuncs / sizeof fp_binary_channel_ufuncs[0] };

#endif
