/* When a kernel stops before it is done. About every FP_STOP_CHECK_SECONDS a kernel asks its caller whether Python
 * received a signal that raises, as Ctrl-C does, and compares the clock with a deadline. The headers know no
 * Python: fp_interrupt.pxi holds the function that they call. The answer is remembered, so that every enclosing
 * loop leaves at once. */
/* bounds: none - nanoseconds in seconds, and how often a kernel checks */
#ifndef FP_STOP_TOKEN_H
#define FP_STOP_TOKEN_H

#include <math.h>
#include <stddef.h>
#include <time.h>

#define FP_STOP_CHECK_SECONDS 0.05 /* between two checks */
#define FP_STOP_CHECK_TERMS 65536  /* terms of some nanoseconds each, between two readings of the clock */

/* Whether the caller wants the kernel to stop. */
typedef int (*fp_interrupted)(void);
enum { FP_INTERRUPTED = -2, FP_EXPIRED = -3 };

static inline double fp_seconds(void) /* as time.monotonic() */
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct {
    fp_interrupted interrupted; /* NULL: nothing interrupts the kernel */
    double deadline;            /* by fp_seconds; INFINITY: none */
    double next;                /* time of the next call of `interrupted` */
    ptrdiff_t terms;            /* terms since the last reading of the clock */
    int status;                 /* 0, FP_INTERRUPTED or FP_EXPIRED */
} fp_stop_token;

static inline fp_stop_token fp_stop_token_make(fp_interrupted interrupted, double deadline)
{
    return (fp_stop_token){interrupted, deadline, 0.0, 0, 0};
}

/* Count `terms` more terms; returns 0, or the reason to stop. A NULL token never stops. */
static inline int fp_stop_requested(fp_stop_token *stop, ptrdiff_t terms)
{
    if (!stop)
        return 0;
    stop->terms += terms;
    if (stop->status || stop->terms < FP_STOP_CHECK_TERMS)
        return stop->status;
    stop->terms = 0;
    double now = fp_seconds();
    if (now > stop->deadline)
        stop->status = FP_EXPIRED;
    if (now >= stop->next) {
        stop->next = now + FP_STOP_CHECK_SECONDS;
        if (stop->interrupted && stop->interrupted())
            stop->status = FP_INTERRUPTED;
    }
    return stop->status;
}

#endif
