"""Rows of batches, taken and put together."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from gymnasium.vector.utils import concatenate, create_empty_array

from openenv_gym.spaces.batches import batch_length
from openenv_gym.vector_batches import join_batches, samples_of, store_batch, take_rows
from tests.exactness.compare import assert_same_value
from tests.exactness.synthetic import SPACES

COUNT = 5
NAMES = [name for name in SPACES if name != "TupleEmpty"]


def samples_and_batch(name):
    space = SPACES[name]()
    space.seed(1)
    samples = [space.sample() for _ in range(COUNT)]
    return space, samples, concatenate(space, samples, create_empty_array(space, COUNT))


def batch_of(space, samples):
    return concatenate(space, samples, create_empty_array(space, len(samples)))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_gymnasiums_batches(name):
    space, samples, batch = samples_and_batch(name)
    assert batch_length(space, batch) == COUNT
    assert_same_value(batch_of(space, samples[1:3]), take_rows(space, batch, slice(1, 3)))
    order = np.array([4, 0, 2])
    assert_same_value(batch_of(space, [samples[row] for row in order]), take_rows(space, batch, order))


@pytest.mark.parametrize("name", NAMES)
def test_every_row_by_itself_is_a_sample(name):
    space, samples, batch = samples_and_batch(name)
    assert_same_value(samples, samples_of(space, batch, COUNT))


@pytest.mark.parametrize("name", NAMES)
def test_parts_make_the_whole(name):
    space, _, batch = samples_and_batch(name)
    parts = [take_rows(space, batch, index) for index in (slice(0, 1), slice(1, 4), slice(4, 5))]
    assert_same_value(batch, join_batches(space, parts))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_goes_into_the_arrays_of_another(name):
    space, samples, batch = samples_and_batch(name)
    target = batch_of(space, samples[::-1])
    stored = store_batch(space, target, batch)
    assert_same_value(batch, stored)
    if isinstance(target, np.ndarray):
        assert stored is target


def test_lists_stand_for_arrays():
    assert take_rows(Discrete(5), [4, 3, 2], slice(1, 3)).tolist() == [3, 2]
    assert samples_of(Discrete(5), [4, 3], 2) == [4, 3]


def test_a_space_that_holds_nothing_has_no_length():
    assert batch_length(Tuple([]), ()) is None
    assert batch_length(Dict({"a": Tuple([]), "b": Text(3)}), {"a": (), "b": ("x", "y")}) == 2
    assert samples_of(Tuple([]), (), 2) == [(), ()]


def test_too_few_samples_are_an_error():
    with pytest.raises(ValueError, match="expected 3 samples, got 2"):
        samples_of(Text(3), ("a", "b"), 3)


def test_joined_arrays_keep_the_byte_order_of_their_space():
    space = Box(0, 1, (1,), np.dtype(">f4"))
    joined = join_batches(space, [np.zeros((1, 1), space.dtype), np.ones((2, 1), space.dtype)])
    assert joined.dtype.str == ">f4"
    assert joined.ravel().tolist() == [0, 1, 1]
