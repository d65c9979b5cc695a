/* The loops of this room in the order they build on each other; included once per instruction set. */
#include "fp_lanes_loops.h"
#include "fp_ratio_loops.h"
#include "fp_pieces_loops.h"
#include "fp_hockey_set_loops.h"
#include "fp_scaled_loops.h"
#include "fp_hockey_sum_loops.h"
#include "fp_hockey_loops.h"
