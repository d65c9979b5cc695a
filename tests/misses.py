"""How often intervals miss the truth, with no more seeds than tell.

A correct engine misses more often than ``most`` says with a chance ``alarm``. One that misses with the chance ``seen``
is found half the time, and one that misses more often more surely. A count ends early where an engine at ``seen`` would
have missed more often than that with a probability of 0.99, which costs a few hundredths of the power; most intervals
miss less often than they may, and are done after a third of the seeds.
"""

from itertools import count

import numpy as np
from scipy.stats import beta, binom

__all__ = ["assert_few_misses", "seen"]

LOOK, DOUBT = 20, 0.01


def most(trials, level, alarm):
    """The largest count of misses that is no alarm."""
    return next(k for k in count() if binom.sf(k, trials, 1.0 - level) < alarm)


def seen(trials, level, alarm):
    """The chance of a miss that is found half the time."""
    limit = most(trials, level, alarm)
    return float(beta.ppf(0.5, limit + 1, trials - limit)) if limit < trials else 1.0


def assert_few_misses(missed, seeds, level, alarm, what):
    """Fail where ``missed(seed)``, or an entry of it, is true for more of the seeds than chance explains."""
    limit, far = most(len(seeds), level, alarm), seen(len(seeds), level, alarm)
    misses = np.zeros(1, int)
    for done, seed in enumerate(seeds, 1):
        misses = misses + np.atleast_1d(missed(seed))
        assert misses.max() <= limit, f"{what}: {misses} of the first {done} intervals at {level} miss"
        if done % LOOK == 0 and binom.cdf(misses.max(), done, far) <= DOUBT:
            return
