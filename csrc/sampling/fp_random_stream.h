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

static inline void fp_stream_seed(fp_stream *s, const uint64_t *words)
{
    for (int l = 0; l < FP_LANES; l++) {
        uint64_t a = fp_splitmix(words[0], l + 1), b = fp_splitmix(words[1], l + 1);
        uint64_t c = fp_splitmix(words[2], l + 1), counter = fp_splitmix(words[3], l + 1);
        for (int i = 0; i < FP_WARM_UP; i++) {
            const uint64_t output = a + b + counter++;
            a = b ^ (b >> 11);
            b = c + (c << 3);
            c = ((c << 24) | (c >> 40)) + output;
        }
        s->a[l] = a;
        s->b[l] = b;
        s->c[l] = c;
        s->counter[l] = counter;
    }
}

#endif
