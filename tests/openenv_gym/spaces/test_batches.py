"""Batches of samples: as Gymnasium lays them out, and of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Dict, Space, Tuple
from gymnasium.vector.utils import concatenate, create_empty_array
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.spaces.batches import stack, unstack
from tests.openenv_gym.spaces.strategies import assert_same_sample, samples, spaces


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(1, 3), st.integers(0, 2**32))
def test_a_batch_is_what_gymnasium_makes_of_the_samples(space: Space[Any], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = [samples(space, rng) for _ in range(count)]
    assert_same_sample(stack(space, items), concatenate(space, items, create_empty_array(space, count)))


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 3), st.integers(0, 2**32))
def test_a_batch_taken_apart_and_put_together_is_the_same(space: Space[Any], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch = stack(space, [samples(space, rng) for _ in range(count)])
    assert_same_sample(stack(space, unstack(space, batch)), batch)


def test_no_batch_is_taken_apart_with_an_error() -> None:
    from gymnasium.spaces import Dict, Discrete, Tuple

    for space, batch in ((Discrete(2), 3), (Tuple([Discrete(2)]), ()), (Dict(a=Discrete(2)), {})):
        with pytest.raises((TypeError, IndexError, KeyError)):
            unstack(space, batch)


def test_samples_that_hold_nothing_come_in_the_number_that_is_said() -> None:
    space = Tuple([Dict({})])
    assert unstack(space, ({},)) == []
    assert unstack(space, ({},), 3) == [({},)] * 3
