/* The loops of this room in the order they build on each other; included once per instruction set. */
#include "fp_vector_loops.h"
#include "fp_beliefs_loops.h"
