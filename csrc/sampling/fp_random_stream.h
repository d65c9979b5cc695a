/* Streams of random bits: eight lanes of SFC64.
 *
 * SFC64 is Chris Doty-Humphrey's small fast chaotic generator (PractRand, public domain; also in NumPy), written from
 * its recurrence: output a + b + counter; a <- b ^ (b >> 11); b <- c + (c << 3); c <- rotl(c, 24) + output;
 * counter <- counter + 1.  Any state is a good one, and no cycle is shorter than 2^64.
 *
 * A stream is four words of a SeedSequence.  Lane l starts from outputs l + 1 of four SplitMix64 generators (Steele,
 * Lea and Flood 2014) that start at these words, one for each word of the state, and drops its first FP_WARM_UP
 * outputs. Element 8 j + l of a stream is output j of lane l.  The work is on integers: equal on every instruction
 * set. */
#ifndef FP_RANDOM_STREAM_H
#define FP_RANDOM_STREAM_H

#include <stdint.h>

#include "common/fp_lanes.h"

#define FP_SEED_WORDS 4
#define FP_WARM_UP 16

typedef struct {
    uint64_t a[FP_LANES], b[FP_LANES], c[FP_LANES], counter[FP_LANES];
} fp_stream;

/* output number i of the SplitMix64 generator that starts at word */
FP_INLINE uint64_t fp_splitmix(uint64_t word, uint64_t i)
{
    uint64_t x = word + i * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The next FP_LANES outputs of a stream. */
FP_INLINE void fp_stream_next(fp_stream *restrict s, uint64_t *restrict out)
{
    for (int l = 0; l < FP_LANES; l++) {
        const uint64_t output = s->a[l] + s->b[l] + s->counter[l]++;
        s->a[l] = s->b[l] ^ (s->b[l] >> 11);
        s->b[l] = s->c[l] + (s->c[l] << 3);
        s->c[l] = ((s->c[l] << 24) | (s->c[l] >> 40)) + output;
        out[l] = output;
    }
}

/* A number in (0, 1) from 64 random bits. */
/* bound: none - 52 random bits as a number */
#define FP_STREAM_LAST_BIT 0x1p-52
FP_INLINE double fp_stream_uniform(uint64_t bits)
{
    return ((double)(int64_t)(bits >> 12) + 0.5) * FP_STREAM_LAST_BIT;
}

static inline void fp_stream_seed(fp_stream *s, const uint64_t *words)
{
    uint64_t dropped[FP_LANES];
    for (int l = 0; l < FP_LANES; l++) {
        s->a[l] = fp_splitmix(words[0], l + 1);
        s->b[l] = fp_splitmix(words[1], l + 1);
        s->c[l] = fp_splitmix(words[2], l + 1);
        s->counter[l] = fp_splitmix(words[3], l + 1);
    }
    for (int i = 0; i < FP_WARM_UP; i++)
        fp_stream_next(s, dropped);
}

#endif
