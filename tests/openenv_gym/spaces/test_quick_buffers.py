"""The quick way between a sample and its bytes is the long way, wherever it is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces.buffers import Reader, write_sample
from openenv_gym.spaces.quick_buffers import QuickBuffer
from tests.openenv_gym.spaces.strategies import (
    assert_same_sample,
    boxes,
    discretes,
    multi_binaries,
    multi_discretes,
    samples,
)

Leaf = Box | Discrete | MultiBinary | MultiDiscrete


def long_way(space: Leaf, sample: Any) -> bytes:
    parts: list[Any] = []
    write_sample(space, sample, "$", parts.append)
    return b"".join(bytes(memoryview(part).tobytes()) for part in parts)


@settings(max_examples=100, deadline=None)
@given(st.one_of(boxes(), discretes(), multi_binaries(), multi_discretes()), st.integers(0, 2**32))
def test_it_gives_the_bytes_and_the_sample_of_the_long_way(space: Leaf, seed: int) -> None:
    quick, sample = QuickBuffer(space), samples(space, np.random.default_rng(seed))
    data = long_way(space, sample)
    assert quick.size == len(data)
    packed = quick.pack(sample)
    # A big-endian array has first to be turned round.
    assert packed is None or memoryview(packed).tobytes() == data
    assert (packed is None) is (space.dtype != space.dtype.newbyteorder("<") and not isinstance(space, Discrete))
    assert_same_sample(quick.unpack(data), Reader(data).read(space, "$"))


@pytest.mark.parametrize(
    ("space", "sample"),
    [
        (Discrete(3), 2.0),
        (Discrete(3), True),
        (Discrete(3), np.int32(1)),
        (Discrete(3), np.array(1)),
        (Discrete(3), 2**63),
        (Box(0, 1, (2,), np.float32), [0.0, 1.0]),
        (Box(0, 1, (2,), np.float32), np.zeros(2)),
        (Box(0, 1, (2,), np.float32), np.zeros(3, np.float32)),
        (MultiBinary(2), np.array([True, False])),
    ],
)
def test_what_is_not_as_it_must_be_takes_a_closer_look(space: Leaf, sample: Any) -> None:
    assert QuickBuffer(space).pack(sample) is None


def test_a_boolean_is_a_byte_of_0_or_1() -> None:
    with pytest.raises(ValueMappingError) as caught:
        QuickBuffer(Box(0, 1, (2,), bool)).unpack(b"\0\2")
    assert caught.value.path == "$"
