"""Batches to bytes and back: as Gymnasium lays them out, bit for bit, and safe against any bytes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)
from gymnasium.vector.utils import concatenate, create_empty_array
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import SpaceMappingError, ValueMappingError
from openenv_gym.frames import Part
from openenv_gym.spaces import BatchCodec, codec_for, pack
from openenv_gym.spaces.batches import stack, unstack
from tests.openenv_gym.spaces.strategies import assert_same_sample, samples, spaces, typed_error

COUNTS = st.integers(0, 4)


def joined(parts: list[Part]) -> bytes:
    return b"".join(bytes(memoryview(part).cast("B")) if len(memoryview(part).tobytes()) else b"" for part in parts)


def batch_of(space: Space[Any], count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return stack(space, [samples(space, rng) for _ in range(count)])


@settings(max_examples=100, deadline=None)
@given(spaces(), COUNTS, st.integers(0, 2**32))
def test_any_batch_comes_back_through_bytes_to_the_last_bit(space: Space[Any], count: int, seed: int) -> None:
    batch, codec = batch_of(space, count, seed), BatchCodec(space)
    assert_same_sample(codec.unpack(joined(codec.pack(batch, count)), count), batch)


@settings(max_examples=60, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_a_batch_of_one_is_the_layout_of_its_sample(space: Space[Any], seed: int) -> None:
    sample = samples(space, np.random.default_rng(seed))
    assert joined(BatchCodec(space).pack(stack(space, [sample]), 1)) == pack(space, sample)


@pytest.mark.parametrize(
    "space",
    [
        Box(-1, 1, (2, 3), np.float32),
        Discrete(5, start=-2),
        MultiBinary([2, 2]),
        MultiDiscrete([3, 4]),
        Text(5),
        Dict(b=Discrete(3), a=Dict(x=Box(0, 255, (4,), np.uint8), y=Text(3))),
        Tuple((Discrete(3), Tuple((Text(2), MultiBinary(3))))),
        Sequence(Discrete(4)),
        Graph(Box(-1, 1, (2,), np.float32), Discrete(2)),
        OneOf((Discrete(2), Text(2))),
    ],
)
def test_a_batch_is_laid_out_as_gymnasium_does_it(space: Space[Any]) -> None:
    space.seed(3)
    drawn = [space.sample() for _ in range(3)]
    theirs = concatenate(space, drawn, create_empty_array(space, 3))
    codec = BatchCodec(space)
    assert_same_sample(codec.unpack(joined(codec.pack(theirs, 3)), 3), theirs)


@settings(max_examples=60, deadline=None)
@given(spaces(), COUNTS, st.integers(0, 2**32))
def test_a_batch_is_read_into_the_arrays_of_another(space: Space[Any], count: int, seed: int) -> None:
    batch, codec = batch_of(space, count, seed), BatchCodec(space)
    out = batch_of(space, count, seed + 1)
    read = codec.unpack(joined(codec.pack(batch, count)), count, out)
    assert_same_sample(read, batch)
    assert all(one is two for one, two in zip(_arrays(read), _arrays(out), strict=True))


def _arrays(batch: Any) -> list[np.ndarray]:
    if isinstance(batch, np.ndarray):
        return [batch]
    if isinstance(batch, dict):
        return [array for part in batch.values() for array in _arrays(part)]
    return []


def test_a_batch_is_read_into_some_rows_of_a_larger_one() -> None:
    codec = BatchCodec(Box(0, 255, (2,), np.uint8))
    whole = np.zeros((4, 2), np.uint8)
    codec.unpack(bytes([1, 2, 3, 4]), 2, whole[1:3])
    assert whole.tolist() == [[0, 0], [1, 2], [3, 4], [0, 0]]


def test_arrays_are_their_own_and_may_be_written_to() -> None:
    data = bytearray(b"\1\2")
    batch = BatchCodec(Box(0, 9, (), np.uint8)).unpack(data, 2)
    batch[0] = 7
    assert data == b"\1\2"


def test_an_array_as_it_must_be_is_not_copied_to_be_packed() -> None:
    batch = np.zeros((3, 2), np.float32)
    (part,) = BatchCodec(Box(-1, 1, (2,), np.float32)).pack(batch, 3)
    assert part is batch


def test_rows_that_lie_apart_in_memory_are_packed_in_order() -> None:
    batch = np.arange(12, dtype=np.uint8).reshape(6, 2)[::2]
    assert joined(BatchCodec(Box(0, 255, (2,), np.uint8)).pack(batch, 3)) == bytes([0, 1, 4, 5, 8, 9])


def test_another_byte_order_is_no_other_dtype() -> None:
    codec = BatchCodec(Box(0, 9, (), np.int32))
    assert joined(codec.pack(np.array([1, 2], ">i4"), 2)) == bytes([1, 0, 0, 0, 2, 0, 0, 0])


@pytest.mark.parametrize(
    ("space", "batch", "path"),
    [
        (Discrete(3), np.array([1, 2, 0]), "$"),
        (Discrete(3), np.array([1, 2], np.int32), "$"),
        (Box(0, 1, (2,)), [[1, 2], [3]], "$"),
        (Dict(a=Discrete(2)), {"b": np.array([0, 1])}, "$"),
        (Dict(a=Discrete(2)), 3, "$"),
        (Dict(a=Discrete(2)), {"a": np.array([0])}, "$.a"),
        (Tuple([Discrete(2)]), (), "$"),
        (Tuple([Discrete(2)]), 3, "$"),
        (Tuple([Discrete(2)]), (np.array([0]),), "$[0]"),
        (Text(2), ("a",), "$"),
        (Text(2), ("a", 3), "$[1]"),
        (Text(2), "ab", "$"),
    ],
)
def test_another_structure_shape_or_dtype_is_not_packed(space: Space[Any], batch: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        BatchCodec(space).pack(batch, 2)
    assert caught.value.path == path


@pytest.mark.parametrize("data", [b"\0", b"\0\1\0", b"\0\2"])
def test_bytes_that_are_no_batch_are_refused(data: bytes) -> None:
    with pytest.raises(ValueMappingError) as caught:
        BatchCodec(Box(0, 1, (), bool)).unpack(data, 2)
    assert caught.value.path == "$"


def test_a_space_of_another_type_is_refused() -> None:
    with pytest.raises(SpaceMappingError) as caught:
        BatchCodec(Dict(a=Tuple([Space()])))
    assert caught.value.path == "$.a[0]"


@settings(max_examples=100, deadline=None)
@given(spaces(), COUNTS, st.integers(0, 2**32), st.data())
def test_damaged_bytes_are_a_batch_or_a_typed_error(
    space: Space[Any], count: int, seed: int, data: st.DataObject
) -> None:
    codec = BatchCodec(space)
    packed = bytearray(joined(codec.pack(batch_of(space, count, seed), count)))
    if packed and data.draw(st.booleans()):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(packed[: data.draw(st.integers(0, len(packed)))]) + data.draw(st.binary(max_size=3))
    with typed_error(ValueMappingError):
        codec.unpack(damaged, data.draw(COUNTS))


@pytest.mark.parametrize(
    "space", [Discrete(2), Box(0, 255, (84, 84), np.uint8), Text(3), Sequence(Tuple([])), Graph(Discrete(2), None)]
)
def test_a_count_beyond_the_bytes_allocates_nothing(space: Space[Any]) -> None:
    codec = BatchCodec(space)
    tracemalloc.start()
    try:
        with pytest.raises(ValueMappingError):
            codec.unpack(b"\0" * 64, 2**32 - 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


# ------------------------------------------------------------------------------------------------- what is cast


@settings(max_examples=100, deadline=None)
@given(spaces(), COUNTS, st.integers(0, 2**32))
def test_a_batch_that_fits_conforms_as_it_is(space: Space[Any], count: int, seed: int) -> None:
    batch = batch_of(space, count, seed)
    assert_same_sample(BatchCodec(space).conform(batch, count), batch, payloads=False)


@pytest.mark.parametrize(
    ("space", "batch"),
    [
        (Discrete(3), [1, 2]),
        (Discrete(3), (np.int8(1), 2.0)),
        (Discrete(3), np.array([1.0, 2.0])),
        (Discrete(3), np.array([1, 2], np.uint8)),
        (Discrete(3), np.array([True, False])),
        (MultiDiscrete([3, 3]), np.array([[1, 2], [0, 1]], np.int32)),
        (MultiBinary(2), [[1, 0], [True, False]]),
        (Box(0, 255, (2,), np.uint8), np.array([[1, 255], [0, 3]])),
        (Box(0, 255, (2,), np.uint8), [np.array([1, 255], np.uint8), [0.0, 3]]),
        (Box(0, 255, (2,), np.uint8), [np.array([1, 255], np.uint8), (np.True_, 3.0)]),
        (Box(0, 255, (2,), np.uint8), [[1, 255], [0, 3.0]]),
        (Box(-1, 1, (2,), np.float32), np.array([[0.1, 1e300], [-0.0, np.inf]])),
        (Box(-1, 1, (2,), np.float32), [[1, 0], [0.5, -1]]),
        (Box(-1, 1, (2,), ">f4"), np.array([[1, 0], [0.5, -1]], np.float32)),
        (Box(0, 1, (2,), bool), np.array([[1, 0], [0, 1]])),
        (Dict(a=Discrete(3), b=Text(3)), {"b": ["x", "y"], "a": [1, 2]}),
        (Tuple([Discrete(3), Tuple([Discrete(2)])]), [[1, 2], [[0, 1]]]),
        (Sequence(Discrete(3)), [[1, 2], np.array([], int)]),
        (OneOf((Discrete(3), Text(2))), [(0, 1.0), [1, "x"]]),
        (Graph(Discrete(3), None), (GraphInstance(np.array([1.0]), None, None),) * 2),
    ],
)
def test_what_json_would_cast_is_cast_to_the_same_bits(space: Space[Any], batch: Any) -> None:
    codec, single = BatchCodec(space), codec_for(space)
    conformed = codec.conform(batch, 2)
    joined(codec.pack(conformed, 2))
    rows = [single.decode(single.encode(row)) for row in unstack(space, batch)]
    assert_same_sample(conformed, stack(space, rows))


@pytest.mark.parametrize(
    ("space", "batch", "path"),
    [
        (Discrete(3), [1], "$"),
        (Discrete(3), 3, "$"),
        (Discrete(3), [1, 0.5], "$[1]"),
        (Discrete(3), [1, "x"], "$[1]"),
        (Box(0, 255, (2,), np.uint8), np.array([[0, 0], [0, 256]]), "$[1][1]"),
        (Box(0, 255, (2,), np.uint8), np.array([[0, 0], [-1, 0]]), "$[1][0]"),
        (Box(0, 1, (2,), np.float32), [[0, 0], [0]], "$[1]"),
        (Box(0, 1, (2,), bool), [[1, 0], [0, 2]], "$[1][1]"),
        (Dict(a=Discrete(2)), {"b": [0, 1]}, "$"),
        (Dict(a=Discrete(2)), ({"a": 0}, {"a": 1}), "$"),
        (Dict(a=Discrete(2)), {"a": [0, None]}, "$.a[1]"),
        (Tuple([Discrete(2)]), 3, "$"),
        (Tuple([Discrete(2)]), ([0, None],), "$[0][1]"),
        (Text(3), "ab", "$"),
        (Text(3), ("a", "b", "c"), "$"),
        (Text(3), ("a", 3), "$[1]"),
    ],
)
def test_what_json_would_refuse_is_refused_with_its_path(space: Space[Any], batch: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        BatchCodec(space).conform(batch, 2)
    assert caught.value.path == path


def test_an_empty_batch_conforms() -> None:
    assert BatchCodec(Discrete(3)).conform(np.empty(0, np.int32), 0).dtype == np.int64


def test_what_fits_is_packed_as_it_is_and_all_else_cast_first():
    codec = BatchCodec(Discrete(5))
    batch = np.array([4, 0])
    assert codec.pack_fitting(batch, 2)[0] is batch
    for other in ([4, 0], batch.astype(np.int8), np.array([4, 7, 0, 7])[::2]):
        assert b"".join(codec.pack_fitting(other, 2)) == batch.tobytes()
    with pytest.raises(ValueMappingError):
        codec.pack_fitting([4, 0], 3)


def test_dictionaries_are_written_to_where_a_batch_is_given():
    codec = BatchCodec(Dict({"a": Discrete(5)}))
    data = b"".join(codec.pack({"a": np.array([4, 0])}, 2))
    given = {"a": np.zeros(2, np.int64)}
    array = given["a"]
    assert codec.unpack(data, 2, given) is given
    assert given["a"] is array
    assert array.tolist() == [4, 0]


@pytest.mark.parametrize("space", [Box(0, 1, (2,)), Discrete(3), MultiBinary(3), Box(0, 1, (2,), np.dtype(">f4"))])
def test_arrays_have_the_very_dtype_of_their_space(space):
    batch = batch_of(space, 2, 0)
    codec = BatchCodec(space)
    assert codec.unpack(joined(codec.pack(batch, 2)), 2).dtype is space.dtype
    nested = BatchCodec(Dict(a=Tuple([space])))
    assert nested.unpack(joined(nested.pack({"a": (batch,)}, 2)), 2)["a"][0].dtype is space.dtype
