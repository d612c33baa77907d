"""Sample to bytes and back: bit for bit, and safe against any bytes."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, GraphInstance, MultiBinary, OneOf, Sequence, Space, Text, Tuple
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import SpaceMappingError, ValueMappingError
from openenv_gym.spaces import BufferCodec, UnicodeText, pack, unpack
from tests.openenv_gym.spaces.strategies import DISCRETE_HAS_DTYPE, assert_same_sample, samples, spaces, typed_error


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_any_sample_comes_back_through_bytes_to_the_last_bit(space: Space[Any], seed: int) -> None:
    sample = samples(space, np.random.default_rng(seed))
    assert_same_sample(unpack(space, pack(space, sample)), sample)


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32), st.data())
def test_damaged_bytes_are_a_sample_or_a_typed_error(space: Space[Any], seed: int, data: st.DataObject) -> None:
    packed = bytearray(pack(space, samples(space, np.random.default_rng(seed))))
    if packed and data.draw(st.booleans()):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(packed[: data.draw(st.integers(0, len(packed)))]) + data.draw(st.binary(max_size=3))
    with typed_error(ValueMappingError):
        unpack(space, damaged)


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_bytes_cut_short_or_left_over_are_a_typed_error(space: Space[Any], seed: int) -> None:
    packed = pack(space, samples(space, np.random.default_rng(seed)))
    with pytest.raises(ValueMappingError):
        unpack(space, packed + b"\0")
    if packed:
        with pytest.raises(ValueMappingError):
            unpack(space, packed[:-1])


@pytest.mark.parametrize(
    ("space", "sample", "packed"),
    [
        (Box(0, 1, (2,), ">f4"), np.array([1, -0.0], ">f4"), "0000803f 00000080"),
        (Box(0, 1, (2,), bool), np.array([True, False]), "01 00"),
        *([(Discrete(3, start=5, dtype="int16"), np.int16(6), "0600")] if DISCRETE_HAS_DTYPE else []),
        (Discrete(3), 2, "0200000000000000"),
        (UnicodeText(), "é", "02000000 c3a9"),
        (Dict([("b", Box(0, 2, (), np.uint8)), ("a", Box(0, 9, (), np.uint8))]), {"a": 7, "b": 1}, "01 07"),
        (Sequence(Box(0, 9, (), np.uint8)), (np.uint8(7), np.uint8(8)), "02000000 07 08"),
        (Sequence(Box(0, 9, (), np.uint8), stack=True), np.array([7, 8], np.uint8), "02000000 07 08"),
        (Sequence(Tuple([])), ((), ()), "02000000 00 00"),
        (OneOf([Text(1), Box(0, 9, (), np.uint8)]), (1, np.uint8(7)), "01000000 07"),
        (
            Graph(Box(0, 9, (), np.uint8), Box(0, 9, (), np.uint8)),
            GraphInstance(np.array([1, 2], np.uint8), np.array([3], np.uint8), np.array([[0, 1]])),
            "03 02000000 01 02 01000000 03 01000000 00000000 01000000",
        ),
        (Graph(Box(0, 1, (1,), np.int8), None), GraphInstance(np.ones((1, 1), np.int8), None, None), "00 01000000 01"),
    ],
)
def test_the_layout_is_this(space: Space[Any], sample: Any, packed: str) -> None:
    assert pack(space, sample).hex() == packed.replace(" ", "")
    assert pack(space, unpack(space, bytes.fromhex(packed))).hex() == packed.replace(" ", "")


def test_nan_payloads_survive() -> None:
    space = Box(-math.inf, math.inf, (1,), np.float32)
    payload = np.frombuffer(bytes.fromhex("123480ff"), np.float32)
    assert unpack(space, pack(space, payload)).tobytes() == payload.tobytes()


@pytest.mark.parametrize("count", [1, 2**31, 2**32 - 1])
@pytest.mark.parametrize(
    "space",
    [
        Sequence(Tuple([])),
        Sequence(Box(0, 1, (0,))),
        Sequence(Text(3)),
        Sequence(Box(0, 1, (1000,))),
        UnicodeText(),
        Graph(Discrete(2), None),
    ],
)
def test_a_length_beyond_the_buffer_is_refused_before_anything_is_allocated(space: Space[Any], count: int) -> None:
    flags = b"\0" if isinstance(space, Graph) else b""
    with pytest.raises(ValueMappingError):
        unpack(space, flags + struct.pack("<I", count))


@pytest.mark.parametrize(
    ("space", "packed", "path"),
    [
        (Box(0, 1, (1,), bool), b"\2", "$"),
        (UnicodeText(), b"\1\0\0\0\xff", "$"),
        (OneOf([Discrete(2)]), b"\1\0\0\0", "$[0]"),
        (Sequence(Tuple([])), b"\1\0\0\0\1", "$[0]"),
        (Graph(Discrete(2), None), b"\4", "$"),
        (Graph(Discrete(2), None), b"\1", "$.edges"),
        (Dict(a=Tuple([Discrete(2)])), b"", "$.a[0]"),
    ],
)
def test_bytes_that_are_none_of_the_space_are_refused_with_their_path(
    space: Space[Any], packed: bytes, path: str
) -> None:
    with pytest.raises(ValueMappingError) as caught:
        unpack(space, packed)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("space", "sample", "path"),
    [
        (Box(0, 1, (2,)), np.zeros(3, np.float32), "$"),
        (Box(0, 1, (2,)), np.zeros(2), "$"),
        (Discrete(2), np.int32(1), "$"),
        (Discrete(2), 2**63, "$"),
        (Discrete(2), 1.5, "$"),
        (Discrete(2), "1", "$"),
        (Text(3), "\ud800", "$"),
        (Dict(a=Discrete(2)), {}, "$"),
        (Dict(a=Discrete(2)), {"a": np.int8(1)}, "$.a"),
        (Tuple([Discrete(2)]), (), "$"),
        (Tuple([Discrete(2)]), 3, "$"),
        (Sequence(Discrete(2)), 3, "$"),
        (Sequence(Discrete(2), stack=True), 3, "$"),
        (OneOf([Discrete(2)]), 3, "$"),
        (OneOf([Discrete(2)]), (1, 2), "$[0]"),
        (OneOf([Discrete(2)]), ("0", 2), "$[0]"),
        (Graph(Discrete(2), None), 3, "$"),
        (Graph(Discrete(2), None), (np.array([1]), np.array([1]), None), "$.edges"),
        (Graph(Discrete(2), None), (None, None, None), "$.nodes"),
        (Graph(Discrete(2), None), (np.array([1]), None, np.array([1, 2])), "$.edge_links[0]"),
        (Graph(Discrete(2), None), (np.array([1]), None, "no"), "$.edge_links"),
        (Graph(Discrete(2), None), (np.array([1]), None, np.array([[0, 2**40]])), "$.edge_links"),
        (Box(0, 1, (2,)), [[1], [2, 3]], "$"),
    ],
)
def test_a_sample_of_another_structure_or_dtype_is_refused_with_its_path(
    space: Space[Any], sample: Any, path: str
) -> None:
    with pytest.raises(ValueMappingError) as caught:
        pack(space, sample)
    assert caught.value.path == path


def test_an_unknown_space_is_refused_both_ways() -> None:
    class Fancy(Discrete):
        pass

    with pytest.raises(SpaceMappingError):
        pack(Fancy(2), 1)
    with pytest.raises(SpaceMappingError):
        unpack(Fancy(2), b"")


def test_unpacked_arrays_can_be_written_to() -> None:
    for dtype in (np.float32, ">f4", bool):
        space = Box(0, 1, (2,), dtype)
        unpack(space, memoryview(pack(space, np.zeros(2, dtype)))).fill(1)


def test_a_space_is_looked_at_once_for_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Dict(a=UnicodeText(), b=Sequence(UnicodeText()))
    codec = BufferCodec(space)
    monkeypatch.setattr("openenv_gym.spaces.buffers.codec_for", None)
    sample = {"a": "x", "b": ("y", "z")}
    assert codec.unpack(codec.pack(sample)) == sample


@pytest.mark.parametrize("space", [Box(0, 1, (2,)), MultiBinary(3), Box(0, 1, (2,), np.dtype(">f4"))])
def test_arrays_have_the_very_dtype_of_their_space(space):
    for whole in (space, Sequence(space)):
        codec = BufferCodec(whole)
        sample = space.sample()
        read = codec.unpack(codec.pack(sample if whole is space else (sample,)))
        assert (read if whole is space else read[0]).dtype is space.dtype
