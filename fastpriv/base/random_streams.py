"""The one owner of random streams: one root a call, and below it a stream for every key.

A key is a tuple of non-negative integers, such as (stage, replicate, tile). The numbers of a stream depend on root and
key alone, so work may be done in any order and by any number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DomainError
from .numerics import WordArray
from .remedies import shown

__all__ = ["RNGLike", "checked", "generator", "root", "stream", "stream_words"]

if TYPE_CHECKING:  # ``numpy.random`` takes longer to load than most answers, and is loaded when it is used
    from numpy.random import BitGenerator, Generator, SeedSequence

    RNGLike = int | Sequence[int] | SeedSequence | BitGenerator | Generator | None  # what ``rng=`` takes (SPEC 7)
else:
    RNGLike = Any


def checked(rng: Any) -> None:
    """Check a seed without taking numbers from a generator."""
    if rng is not None and not isinstance(rng, (np.random.BitGenerator, np.random.Generator)):
        root(rng)


def root(rng: Any) -> SeedSequence:
    """The root of all streams of one call.

    None takes fresh entropy of the system. An integer, a sequence of integers or a SeedSequence names the root, so that
    equal ones give equal streams. 128 bits are drawn from a Generator or BitGenerator, so two calls with it have
    different roots.
    """
    from numpy.random import BitGenerator, Generator, SeedSequence

    if rng is None:
        return SeedSequence()
    if isinstance(rng, SeedSequence):
        return rng
    if isinstance(rng, BitGenerator):
        rng = Generator(rng)
    if isinstance(rng, Generator):
        return SeedSequence([int(word) for word in rng.integers(0, 2**32, size=4, dtype=np.uint64)])
    if _is_natural(rng):
        return SeedSequence(int(rng))
    if isinstance(rng, np.ndarray) and rng.ndim == 1:
        rng = rng.tolist()
    if isinstance(rng, Sequence) and not isinstance(rng, (str, bytes)) and len(rng) and all(map(_is_natural, rng)):
        return SeedSequence([int(word) for word in rng])
    raise DomainError(
        "rng must be None, an integer of at least 0, a sequence of these, a SeedSequence, Generator or BitGenerator; "
        f"got {shown(rng)}. Pass an integer for results that can be repeated."
    )


def generator(rng: RNGLike) -> Generator:
    """The Generator itself, or a new one from the root of anything else that ``rng=`` takes."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(root(rng))


def stream(root: SeedSequence, *key: int) -> SeedSequence:
    """The stream with this key."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)


def stream_words(root: SeedSequence, key: tuple[int, ...], count: int) -> WordArray:
    """The first ``count`` words of 64 bits of the stream with this key."""
    return np.asarray(stream(root, *key).generate_state(count, np.uint64), dtype=np.uint64)


def _is_natural(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)
