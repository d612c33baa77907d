"""Binary frames: their bytes, both ways, and what no frame may be."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import ProtocolError, ValueMappingError
from openenv_gym.frames import Final, Kind, Stepped, read_frame, read_outcome, write_frame, write_outcome

HEADER = struct.Struct("<BBHIQ")
IDS = st.integers(0, 2**64 - 1)


def outcome(flags: int, body: bytes, count: int = 2) -> Any:
    return read_outcome(read_frame(HEADER.pack(1, 3, flags, count, 9) + body))


def counted(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


@given(
    st.sampled_from(Kind),
    IDS,
    st.none() | st.lists(st.integers(0, 2**32 - 1), max_size=5),
    st.lists(st.binary(max_size=9), max_size=3),
)
def test_a_frame_comes_back_as_it_was_written(
    kind: Kind, request_id: int, env_ids: list[int] | None, parts: list[bytes]
) -> None:
    count = 3 if env_ids is None else len(env_ids)
    packed = read_frame(write_frame(kind, request_id, count, env_ids, parts))
    assert (packed.kind, packed.id, packed.count, packed.body) == (kind, request_id, count, b"".join(parts))
    assert (None if packed.env_ids is None else packed.env_ids.tolist()) == env_ids


def test_ids_are_int64_and_arrays_may_be_parts() -> None:
    rows = np.array([[1, 2], [3, 4]], "<i4")
    packed = read_frame(write_frame(Kind.STEP, 1, 2, np.array([7, 5]), [rows]))
    assert packed.env_ids is not None
    assert (packed.env_ids.dtype, packed.env_ids.tolist()) == (np.int64, [7, 5])
    assert packed.body == rows.tobytes()


@pytest.mark.parametrize("env_ids", [[0], [0, -1], [0, 2**32], [[0, 1]]])
def test_ids_that_are_not_as_many_as_the_environments_or_too_large_are_refused(env_ids: Any) -> None:
    with pytest.raises(ValueError, match="ids of environments"):
        write_frame(Kind.STEP, 1, 2, env_ids, [])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\1" * 15,
        HEADER.pack(2, 2, 0, 1, 0),
        HEADER.pack(1, 0, 0, 1, 0),
        HEADER.pack(1, 4, 0, 1, 0),
        HEADER.pack(1, 2, 2, 1, 0),
        HEADER.pack(1, 1, 0x8000, 1, 0),
        HEADER.pack(1, 3, 32, 1, 0),
        HEADER.pack(1, 2, 1, 2, 0) + bytes(7),
        HEADER.pack(1, 2, 32, 1, 0) + bytes(3),
        HEADER.pack(1, 2, 64, 1, 0) + bytes(8),
        HEADER.pack(1, 2, 96, 1, 0) + bytes(11),
        HEADER.pack(1, 2, 1, 2**32 - 1, 0) + bytes(64),
    ],
)
def test_a_frame_of_another_make_is_refused_with_its_start(payload: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_frame(payload)
    assert caught.value.received == payload[:32].hex()


def test_an_outcome_comes_back_with_all_its_parts() -> None:
    stepped = (np.array([0.5, -0.0, np.inf]), [True, False, False], np.array([False, True, False]))
    frame = write_outcome(
        5,
        3,
        [4, 9, 2],
        observations=[b"obs", b"ervations"],
        stepped=stepped,
        info={"lives": [3, None, 1]},
        notes=["mind the gap"],
        final=([0, 1], [b"last", b"ones"]),
    )
    packed = read_frame(frame)
    read = read_outcome(packed)
    assert (packed.id, packed.count) == (5, 3)
    assert read.observations == b"observations"
    assert isinstance(read.stepped, Stepped)
    assert read.stepped.rewards.tobytes() == stepped[0].tobytes()
    assert (read.stepped.rewards.dtype, read.stepped.terminations.dtype) == (np.float64, np.bool_)
    assert read.stepped.terminations.tolist() == [True, False, False]
    assert read.stepped.truncations.tolist() == [False, True, False]
    assert (read.info, read.notes) == ({"lives": [3, None, 1]}, ["mind the gap"])
    assert isinstance(read.final, Final)
    assert (read.final.rows.tolist(), bytes(read.final.observations)) == ([0, 1], b"lastones")


def test_an_outcome_of_a_reset_has_observations_alone() -> None:
    read = read_outcome(read_frame(write_outcome(5, 2, None, observations=[b"ab"], info={}, notes=[])))
    assert (bytes(read.observations), read.stepped, read.info, read.notes, read.final) == (b"ab", None, None, [], None)


def test_the_arrays_of_an_outcome_may_be_written_to() -> None:
    frame = write_outcome(5, 1, None, observations=[], stepped=([1], [True], [True]))
    stepped = read_outcome(read_frame(frame)).stepped
    assert stepped is not None
    stepped.rewards[0], stepped.terminations[0], stepped.truncations[0] = 2, False, False
    again = read_outcome(read_frame(frame)).stepped
    assert again is not None
    assert (again.rewards[0], again.terminations[0], again.truncations[0]) == (1, True, True)


def test_an_outcome_of_no_environments_is_read() -> None:
    read = read_outcome(read_frame(write_outcome(5, 0, [], observations=[], stepped=([], [], []), final=([], []))))
    assert read.stepped is not None
    assert read.final is not None
    assert (read.stepped.rewards.size, read.final.rows.size) == (0, 0)


@pytest.mark.parametrize("stepped", [([1.0], [True], [True]), ([1.0, 2.0], [True, True], True)])
def test_rewards_and_flags_of_another_number_are_not_written(stepped: Any) -> None:
    with pytest.raises(ValueError, match="2 environments"):
        write_outcome(1, 2, None, observations=[], stepped=stepped)


def test_an_info_without_json_is_not_written() -> None:
    with pytest.raises(ValueMappingError):
        write_outcome(1, 1, None, observations=[], info={"a": float("nan")})


@pytest.mark.parametrize(
    ("flags", "body"),
    [
        (2, bytes(19)),
        (2, bytes(16) + b"\0\1\2\0"),
        (4, b"\1\0"),
        (4, counted(b"{}")[:-1]),
        (4, counted(b"{")),
        (8, counted(b"{}")),
        (8, counted(b"[1]")),
        (8, counted(b"[")),
        (16, struct.pack("<I", 1)),
        (16, struct.pack("<II", 1, 2) + counted(b"")),
        (16, struct.pack("<III", 2, 1, 1) + counted(b"")),
        (16, struct.pack("<III", 2, 1, 0) + counted(b"")),
        (16, struct.pack("<II", 1, 0) + struct.pack("<I", 4)),
        (16, struct.pack("<I", 2**32 - 1)),
    ],
)
def test_an_outcome_that_cannot_be_is_refused(flags: int, body: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        outcome(flags, body)
    assert caught.value.received is not None


def test_what_is_no_outcome_is_not_read_as_one() -> None:
    with pytest.raises(ProtocolError):
        read_outcome(read_frame(write_frame(Kind.STEP, 1, 1, None, [])))


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=80),
    st.integers(0, 31),
    st.integers(0, 2**32 - 1) | st.integers(0, 3),
    st.sampled_from([1, 1, 1, 1, 2]),
    st.sampled_from([3, 3, 3, 1, 2, 4]),
)
def test_any_bytes_are_a_frame_or_a_typed_error(body: bytes, flags: int, count: int, version: int, kind: int) -> None:
    for payload in (body, HEADER.pack(version, kind, flags, count, 1) + body):
        try:
            packed = read_frame(payload)
            read_outcome(packed)
        except ProtocolError:
            continue


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_outcome_is_an_outcome_or_a_typed_error(data: st.DataObject) -> None:
    frame = bytearray(
        write_outcome(
            1,
            2,
            [0, 1],
            observations=[b"obs"],
            stepped=([1, 2], [True, False], [False, True]),
            info={"a": 1},
            notes=["n"],
            final=([1], [b"f"]),
        )
    )
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(frame[: data.draw(st.integers(0, len(frame)))])
    try:
        read_outcome(read_frame(cut))
    except ProtocolError:
        return


@pytest.mark.parametrize("flags", [0, 1, 2, 4, 8, 16, 31])
def test_a_count_beyond_the_bytes_allocates_nothing(flags: int) -> None:
    payload = HEADER.pack(1, 3, flags, 2**32 - 1, 1) + b"\xff" * 64
    tracemalloc.start()
    try:
        if flags:
            with pytest.raises(ProtocolError):
                read_outcome(read_frame(payload))
        else:
            assert bytes(read_outcome(read_frame(payload)).observations) == b"\xff" * 64
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
