"""Is a count of misses what an interval of a stated confidence may have?

An interval that misses with probability at most a gives Binomial(runs, a) misses or fewer. The region allows what such
a count exceeds with probability ``FALSE``: a test that fails says that the interval misses too often, and is wrong once
in 1 / FALSE sound tests.
"""

from scipy import stats

FALSE = 1e-7  # a suite of a thousand such counts fails falsely once in ten thousand


def allowed(runs, confidence):
    """The most misses that an interval which holds may show."""
    return int(stats.binom.isf(FALSE, runs, 1.0 - confidence))


def surely_fails(misses, runs, confidence):
    """Whether the count shows that the interval misses more often than it says."""
    return misses > allowed(runs, confidence)
