"""Roots and streams: what is accepted, what is the same again, what is refused."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator, RandomState, SeedSequence

from fastpriv import DomainError
from fastpriv.base import random_streams


def stream(rng, *key):
    return random_streams.stream_words(random_streams.root(rng), key, 4).tolist()


@pytest.mark.parametrize(
    "rng", [0, 7, 2**200, np.int32(7), np.uint64(7), [1, 2], (1, 2**40), np.array([3, 4]), range(2), SeedSequence(5)]
)
def test_what_names_a_root_gives_the_same_streams_again(rng):
    assert stream(rng, 1, 2) == stream(rng, 1, 2)


def test_none_takes_fresh_entropy():
    assert stream(None) != stream(None)


@pytest.mark.parametrize("make", [lambda: Generator(PCG64(3)), lambda: PCG64(3), lambda: np.random.default_rng(3)])
def test_a_generator_gives_another_root_every_time_and_the_same_ones_from_the_same_state(make):
    one, two = make(), make()
    first, second = stream(one), stream(one)
    assert first != second
    assert [first, second] == [stream(two), stream(two)]


def test_a_generator_is_asked_for_128_bits():
    root = random_streams.root(Generator(PCG64(3)))
    assert len(root.entropy) == 4
    assert all(0 <= word < 2**32 for word in root.entropy)


def test_integers_and_sequences_are_those_of_seed_sequence():
    found = random_streams.stream_words(random_streams.root(7), (), 3)
    assert found.tolist() == SeedSequence(7).generate_state(3, np.uint64).tolist()
    assert stream([1, 2], 5) == SeedSequence([1, 2], spawn_key=(5,)).generate_state(4, np.uint64).tolist()


def test_keys_are_streams_of_their_own():
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (2**31,)]
    assert len({tuple(stream(3, *key)) for key in keys}) == len(keys)


def test_the_place_of_a_seed_sequence_in_its_tree_counts():
    parent = SeedSequence(9, pool_size=8)
    one, two = parent.spawn(2)
    assert len({tuple(stream(rng, 0)) for rng in (SeedSequence(9), parent, one, two)}) == 4
    assert stream(one, 4) == stream(SeedSequence(9, spawn_key=(0,), pool_size=8), 4)
    assert stream(parent, 5) == stream(parent, 5)
    assert parent.n_children_spawned == 2


def test_words_are_a_prefix_of_more_words():
    root = random_streams.root(1)
    words = random_streams.stream_words(root, (2,), 9)
    assert words[:4].tolist() == random_streams.stream_words(root, (2,), 4).tolist()
    assert random_streams.stream_words(root, (2,), 4).dtype == np.uint64


@pytest.mark.parametrize(
    "rng", [-1, True, 1.0, "1", b"1", [], [1, -1], [1, 2.0], [True], [[1]], np.array([[1]]), np.array([1.5]), {1},
            object, RandomState(1), np.random]
)
def test_anything_else_is_refused(rng):
    with pytest.raises(DomainError, match=r"rng must be None, an integer of at least 0, .*; got .*\. Pass an integer"):
        random_streams.root(rng)
