/* The loops of this room in the order they build on each other; included once per instruction set. */
#include "fp_sphere_loops.h"

#include "fp_awgn_grid_loops.h"
#include "fp_awgn_bounds_loops.h"
#include "fp_awgn_scan_loops.h"
#include "fp_awgn_weights_loops.h"
#include "fp_awgn_shape_loops.h"
#include "fp_awgn_loops.h"
