/* Inner products of rows that are padded to a multiple of FP_LANES: eight lanes, whatever the width of a vector. */
#ifndef FP_PADDED_ROWS_H
#define FP_PADDED_ROWS_H

#include "common/fp_lanes.h"

#define FP_ROW_WIDTH_baseline 2
#define FP_ROW_WIDTH_avx2 4
#define FP_ROW_WIDTH_avx512 8

#define FP_LOOPS "leakage/fp_padded_rows_loops.h"
#include "common/fp_variants.h"

#endif
