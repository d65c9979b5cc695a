"""Attacks that know the batch, in a module that worker processes can import, and the records that they know."""

from types import SimpleNamespace

import numpy as np

RECORDS, LABELS = np.random.default_rng(4).random((40, 5)), np.arange(40) % 3
POOL, BATCH = np.arange(5, 17), np.array([2, 9])  # batch: records 7 and 14


class HalfOfThem:
    """An attack that knows the batch and names each record of it with probability 1/2, or else a random point."""

    def __repr__(self):
        return "HalfOfThem()"

    def reconstruct(self, updates, rng):
        truth = RECORDS[POOL[BATCH]]
        return SimpleNamespace(records=np.where(rng.random((2, 1)) < 0.5, truth, 5 + rng.random((2, 5))))


class Everything:
    """An attack that knows the batch."""

    def reconstruct(self, updates, rng):
        return SimpleNamespace(records=RECORDS[POOL[BATCH]][::-1])


class Guesses:
    """An attack that names two records of the pool at random."""

    def reconstruct(self, updates, rng):
        return SimpleNamespace(records=RECORDS[POOL[rng.choice(POOL.size, 2, replace=False)]])


class WrongOnes:
    """An attack that always names the same two records, which are not in the batch."""

    def reconstruct(self, updates, rng):
        return SimpleNamespace(records=RECORDS[POOL[[0, 1]]])
