"""Tests of ``openenv_gym_server.space_rows``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.spaces import BatchCodec, codec_for
from openenv_gym_server.space_codec import SpaceCodec
from openenv_gym_server.space_rows import LARGE_ROW, SpaceRows, in_row
from tests.exactness.compare import assert_same_value
from tests.exactness.synthetic import SPACES

BOX = spaces.Box(-1, 1, (2,), np.float32)


def rows_of(action: spaces.Space[Any], observation: spaces.Space[Any] = BOX, count: int = 3) -> SpaceRows:
    return SpaceRows(SpaceCodec(action, observation, "Demo-v0"), action, observation, count)


def packed(space: spaces.Space[Any], batch: Any, count: int) -> memoryview:
    return memoryview(b"".join(BatchCodec(space).pack(batch, count)))  # type: ignore[arg-type]


def loc_of(caught: pytest.ExceptionInfo[InvalidActionError]) -> list[Any]:
    assert caught.value.errors is not None
    return caught.value.errors[0]["loc"]


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (spaces.Discrete(3, start=-1), [-1, 1, 0], [-1, 2, 0]),
        (spaces.MultiDiscrete([2, 3]), [[0, 1]] * 3, [[0, 1], [2, 0], [0, 0]]),
        (spaces.MultiBinary(2), [[0, 1]] * 3, [[0, 1], [2, 0], [0, 0]]),
        (BOX, [[0, 1]] * 3, [[0, 1], [0, np.nan], [0, 0]]),
    ],
)
@pytest.mark.parametrize("count", [3, 4])
def test_an_action_outside_the_space_is_refused_in_the_same_words_as_text_and_as_bytes(
    space: spaces.Space[Any], good: Any, bad: Any, count: int
) -> None:
    rows = rows_of(space, count=count)
    batch = np.array(good, space.dtype)
    assert_same_value(rows.batch(packed(space, batch, 3), 3), batch)
    with pytest.raises(InvalidActionError) as binary:
        rows.batch(packed(space, np.array(bad, space.dtype), 3), 3)
    assert loc_of(binary)[:4] == ["data", "actions", 1, "action"]
    with pytest.raises(InvalidActionError) as text:
        rows.actions([{"action": codec_for(space).encode(np.array(row, space.dtype))} for row in bad])
    assert (str(text.value), text.value.errors) == (str(binary.value), binary.value.errors)


def test_bytes_that_are_no_batch_are_refused() -> None:
    rows = rows_of(spaces.Discrete(3))
    for body in (b"", b"\0" * 23, b"\0" * 25):
        with pytest.raises(InvalidActionError) as caught:
            rows.batch(memoryview(body), 3)
        assert loc_of(caught) == ["data", "actions"]


def test_a_batch_of_texts_is_one_of_members() -> None:
    space = spaces.Text(3)
    rows = rows_of(space)
    assert rows.batch(packed(space, ("a", "b", "c"), 3), 3) == ("a", "b", "c")
    with pytest.raises(InvalidActionError) as caught:
        rows.batch(packed(space, ("a", "b", "long"), 3), 3)
    assert loc_of(caught)[2] == 2


@pytest.mark.parametrize("name", SPACES)
def test_observations_of_every_space_are_the_batch_that_the_client_reads(name: str) -> None:
    space = SPACES[name]()
    space.seed(3)
    samples = [space.sample() for _ in range(3)]
    rows = rows_of(spaces.Discrete(2), space)
    body = b"".join(rows.parts(samples, 3, range(3)))  # type: ignore[arg-type]
    found = rows.each_observation(BatchCodec(space).unpack(body, 3), 3)
    for sample, row, fields in zip(samples, found, rows.fields(samples, range(3)), strict=True):
        assert fields == {"obs": codec_for(space).encode(row)} == {"obs": codec_for(space).encode(sample)}


@pytest.mark.parametrize(
    ("shape", "odd"),
    [
        ((2,), np.zeros(3, np.float32)),
        ((2,), np.zeros((2, 1), np.float32)),
        ((2, 3), np.zeros((2, 4), np.float32)),
        ((2,), np.float32(1)),
        ((2,), np.array(1, np.float32)),
        ((2,), None),
        ((2,), "text"),
        ((LARGE_ROW,), np.zeros(3, np.float32)),
    ],
)
def test_an_observation_of_another_shape_names_its_environment(shape: tuple[int, ...], odd: Any) -> None:
    space = spaces.Box(-1, 1, shape, np.float32)
    good = np.zeros(shape, np.float32)
    rows = rows_of(spaces.Discrete(2), space)
    for give in (rows.fields, lambda observations, ids: rows.parts(observations, 3, ids)):
        with pytest.raises(EnvironmentExecutionError, match="already advanced") as caught:
            give([good, good, odd], [7, 8, 9])
        assert caught.value.env_index == 9


def test_shapes_whose_lengths_make_up_for_one_another_are_refused() -> None:
    rows = rows_of(spaces.Discrete(2))
    with pytest.raises(EnvironmentExecutionError) as caught:
        rows.parts([np.zeros(1, np.float32), np.zeros(3, np.float32)], 2, [0, 1])
    assert caught.value.env_index == 0


@pytest.mark.parametrize("length", [2, LARGE_ROW])
def test_observations_of_another_dtype_or_layout_are_cast(length: int) -> None:
    space = spaces.Box(-1, 1, (length, 2), np.float32)
    rows = rows_of(spaces.Discrete(2), space)
    plain = np.linspace(0, 1, 2 * length, dtype=np.float32).reshape(length, 2)
    expected = plain.tobytes() * 2
    for other in (plain.astype(np.float64), np.asfortranarray(plain), plain.tolist(), plain.astype(">f4")):
        assert b"".join(rows.parts([plain, other], 2, [0, 1])) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, 5, None, {"a": 1, "c": 2}])
def test_an_observation_of_another_structure_names_its_environment(odd: Any) -> None:
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Discrete(3)})
    rows = rows_of(spaces.Discrete(2), space)
    with pytest.raises(EnvironmentExecutionError) as caught:
        rows.parts([{"a": 1, "b": 2}, odd], 2, [4, 6])
    assert caught.value.env_index == 6
    pairs = rows_of(spaces.Discrete(2), spaces.Tuple([spaces.Discrete(3), spaces.Discrete(3)]))
    with pytest.raises(EnvironmentExecutionError) as caught:
        pairs.parts([(1, 2), (1, 2, 0)], 2, [4, 6])
    assert caught.value.env_index == 6


def test_a_cast_is_noted_once() -> None:
    rows = rows_of(spaces.Discrete(2))
    assert rows.notes(np.zeros(2, np.float32)) == []
    assert "was cast" in rows.notes(np.zeros(2))[0]
    assert rows.notes(np.zeros(2)) == []


def test_a_refusal_in_an_environments_own_words_gets_its_place() -> None:
    error = in_row(InvalidActionError("not now"), 2)
    assert error.errors is not None
    assert error.errors[0]["loc"] == ["data", "actions", 2]
    assert "not now" in str(error)


def test_actions_are_joined_as_a_vector_environment_takes_them() -> None:
    rows = rows_of(spaces.Tuple([spaces.Discrete(3), spaces.Text(2)]))
    joined = rows.joined_actions([(1, "a"), (2, "b")])
    assert_same_value(joined, (np.array([1, 2]), ("a", "b")))
    assert rows.each_action(joined, 2) == [(1, "a"), (2, "b")]
