"""The numeric codecs at the edges of their dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces import codec_for
from openenv_gym.spaces.leaves import spell_float

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">u8")
FLOATS = ("float16", "float32", "float64", ">f4")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_limits_of_an_integer_dtype_travel_and_what_is_beyond_does_not(dtype: str) -> None:
    limits = np.iinfo(dtype)
    ends = [int(limits.min), int(limits.max)]
    space = Box(np.full(2, ends[0], dtype), np.full(2, ends[1], dtype), dtype=dtype)  # type: ignore[call-overload]
    codec = codec_for(space)
    assert codec.encode(np.array(ends, dtype)) == ends
    assert codec.encode(ends) == ends
    decoded = codec.decode(ends)
    assert decoded.dtype == np.dtype(dtype)
    assert decoded.tolist() == ends
    for beyond in ([ends[0] - 1, 0], [ends[1] + 1, 0]):
        with pytest.raises(ValueMappingError) as caught:
            codec.decode(beyond)
        assert caught.value.path == "$[0]"
        with pytest.raises(ValueMappingError):
            codec.encode(beyond)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_edges_of_a_floating_dtype_travel_bit_for_bit(dtype: str) -> None:
    info = np.finfo(dtype)
    values = np.array(
        [0.0, -0.0, info.max, info.min, info.tiny, info.smallest_subnormal, info.eps, np.inf, -np.inf], dtype
    )
    codec = codec_for(Box(-math.inf, math.inf, values.shape, np.dtype(dtype)))  # type: ignore[arg-type]
    assert codec.decode(codec.encode(values)).tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_number_beyond_the_dtype_is_an_overflow_and_an_infinity_is_not(dtype: str) -> None:
    codec = codec_for(Box(-math.inf, math.inf, (2,), np.dtype(dtype)))  # type: ignore[arg-type]
    assert codec.decode(["Infinity", "-Infinity"]).tolist() == [math.inf, -math.inf]
    with pytest.raises(ValueMappingError) as caught:
        codec.decode([0.0, 1e300])
    assert caught.value.path == "$[1]"


@pytest.mark.parametrize(
    ("value", "spelled"), [(1.5, 1.5), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_what_json_has_no_number_for_is_spelled(value: float, spelled: Any) -> None:
    assert spell_float(value) == spelled


def test_a_float_beyond_exact_integers_is_no_integer() -> None:
    codec = codec_for(Discrete(2))
    assert codec.decode(2.0**53) == 2**53
    with pytest.raises(ValueMappingError):
        codec.decode(2.0**54)
