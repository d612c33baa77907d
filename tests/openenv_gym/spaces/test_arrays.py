"""The codecs of arrays, small and large: at the edges of their dtypes, at their bounds, in their shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, MultiBinary, MultiDiscrete

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces import codec_for
from openenv_gym.spaces.arrays import FEW

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


SIZES = (2, FEW, FEW + 1, 300)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("dtype", "low", "high", "outside"),
    [
        ("float32", -1, 1, [1.5, -2, "NaN", "Infinity"]),
        ("float32", -math.inf, 1, [1.5, "NaN", "Infinity"]),
        ("float64", 0, math.inf, [-5e-324, "NaN", "-Infinity"]),
        ("float64", -math.inf, math.inf, ["NaN"]),
        ("uint8", 0, 254, [255]),
        ("uint8", 1, 255, [0]),
        ("int64", -(2**63), 3, [4, 2**63 - 1]),
        ("bool", 0, 0, [True]),
        ("bool", 1, 1, [False]),
    ],
)
def test_a_member_is_told_from_what_is_outside(size: int, dtype: str, low: Any, high: Any, outside: list[Any]) -> None:
    kind = np.dtype(dtype)
    space = Box(np.full(size, low, kind), np.full(size, high, kind), dtype=kind)  # type: ignore[call-overload]
    codec = codec_for(space)
    inside = codec.encode(space.low if kind.kind != "f" else np.clip(np.zeros(size, kind), space.low, space.high))
    assert codec.decode_member(inside) in space
    for leaf in outside:
        value = [*inside[:-1], leaf]
        assert codec.decode(value) not in space
        with pytest.raises(ValueMappingError) as caught:
            codec.decode_member(value)
        assert caught.value.path == f"$[{size - 1}]"


@pytest.mark.parametrize("size", SIZES)
def test_the_bounds_of_each_element_are_its_own(size: int) -> None:
    space = MultiDiscrete(np.arange(1, size + 1), start=np.arange(size))
    codec = codec_for(space)
    highest = (2 * np.arange(size)).tolist()
    assert codec.decode_member(highest).tolist() == highest
    with pytest.raises(ValueMappingError) as caught:
        codec.decode_member([*highest[:-1], highest[-1] + 1])
    assert caught.value.path == f"$[{size - 1}]"
    assert f"from {size - 1} to {highest[-1]}" in str(caught.value)


@pytest.mark.parametrize("size", SIZES)
def test_a_binary_is_zero_or_one(size: int) -> None:
    codec = codec_for(MultiBinary(size))
    assert codec.decode_member([1] * size).tolist() == [1] * size
    with pytest.raises(ValueMappingError, match="from 0 to 1") as caught:
        codec.decode_member([*[0] * (size - 1), 2])
    assert caught.value.path == f"$[{size - 1}]"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("dtype", "good", "read", "bad"),
    [
        ("float32", 3, 3.0, [True, None, "x", [], 10**400]),
        ("int16", 3.0, 3, [True, None, "3", 0.5, 2.0**60, [], 2**15]),
        ("uint8", 3.0, 3, [True, None, -1, 256, 2**70]),
        ("bool", True, True, [1, 0, None, "true"]),
    ],
)
def test_a_leaf_of_another_type_is_refused_at_its_place(
    size: int, dtype: str, good: Any, read: Any, bad: list[Any]
) -> None:
    kind = np.dtype(dtype)
    limits = (-math.inf, math.inf) if kind.kind == "f" else (0, 1)
    codec = codec_for(Box(*(np.full(size, limit, kind) for limit in limits), dtype=kind))  # type: ignore[call-overload]
    rest = [type(read)(1)] * (size - 1)
    decoded = codec.decode([*rest, good])
    assert (decoded.dtype, decoded[-1]) == (kind, read)
    for leaf in bad:
        with pytest.raises(ValueMappingError) as caught:
            codec.decode([*rest, leaf])
        assert caught.value.path == f"$[{size - 1}]"


@pytest.mark.parametrize("size", SIZES)
def test_what_is_not_finite_is_spelled_and_read_in_its_place(size: int) -> None:
    codec = codec_for(Box(-math.inf, math.inf, (size,), np.float32))
    values = np.zeros(size, np.float32)
    values[-1] = np.nan
    encoded = codec.encode(values)
    assert encoded == [*[0.0] * (size - 1), "NaN"]
    assert np.array_equal(codec.decode(encoded), values, equal_nan=True)


@pytest.mark.parametrize("value", [[[]] * 100_000, [[[]] * 2] * 2, [[0, 0, 0], [0, 0]], [[0] * 3, [[]] * 3]])
def test_a_value_of_another_shape_is_refused_before_its_leaves_are_looked_at(value: Any) -> None:
    codec = codec_for(Box(0, 1, (2, 3), np.float32))
    with pytest.raises(ValueMappingError):
        codec.decode(value)
