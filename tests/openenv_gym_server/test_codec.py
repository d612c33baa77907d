"""Tests of ``openenv_gym_server.codec``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jsonschema
import numpy as np
import pytest

from openenv_gym.errors import InvalidActionError, ValueMappingError
from openenv_gym.types import Observation, State
from openenv_gym_server.codec import ModelCodec
from tests.text_envs import Heard, Say


@dataclass
class Move:
    direction: int
    mask: np.ndarray | None = None


@dataclass
class Seen:
    view: np.ndarray
    reward: float = 0.0
    done: bool = False


def test_an_action_is_validated_by_its_model() -> None:
    action = ModelCodec(Say, Heard).decode_action({"message": "x", "volume": "NaN"})
    assert isinstance(action, Say)
    assert action.volume != action.volume
    with pytest.raises(InvalidActionError) as caught:
        ModelCodec(Say, Heard).decode_action({"volume": "loud"})
    assert caught.value.errors is not None
    assert [fault["loc"] for fault in caught.value.errors] == [["message"], ["volume"]]


def test_an_action_may_be_a_dataclass_and_refuses_unknown_fields() -> None:
    codec = ModelCodec(Move, Seen)
    action = codec.decode_action({"direction": 2})
    assert isinstance(action, Move)
    assert action.direction == 2
    with pytest.raises(InvalidActionError):
        codec.decode_action({"direction": 2, "speed": 3})


def test_reward_and_done_travel_beside_the_observation() -> None:
    envelope = ModelCodec(Say, Heard).encode_observation(
        Heard(echo="x", reward=1, done=True, metadata={"truncated": True})
    )
    assert envelope.observation == {"metadata": {"truncated": True}, "echo": "x", "extra": None}
    assert (envelope.reward, envelope.done, envelope.metadata) == (1, True, {"truncated": True})


def test_an_observation_may_be_a_dataclass_or_a_dict() -> None:
    codec = ModelCodec(Move, Seen)
    envelope = codec.encode_observation(Seen(np.array([1.0, np.inf]), np.float32(0.5), np.bool_(True)))  # type: ignore[arg-type]
    assert envelope.observation == {"view": [1.0, "Infinity"]}
    assert (envelope.reward, envelope.done) == (0.5, True)
    envelope = codec.encode_observation({"view": [1], "reward": float("nan"), "metadata": {"a": 1}})
    assert envelope.observation == {"view": [1], "metadata": {"a": 1}}
    assert (envelope.reward, envelope.metadata) == (None, {"a": 1, "reward": "NaN"})


@pytest.mark.parametrize("observation", [None, "text", 5, (1, {}), Seen])
def test_anything_else_is_no_observation(observation: Any) -> None:
    with pytest.raises(ValueMappingError):
        ModelCodec(Say, Heard).encode_observation(observation)


def test_a_state_keeps_its_extra_fields() -> None:
    codec = ModelCodec(Say, Heard)
    assert codec.encode_state(State.model_validate({"episode_id": "a", "board": np.zeros(2)})) == {
        "episode_id": "a",
        "step_count": 0,
        "board": [0.0, 0.0],
    }
    assert codec.encode_state({"a": 1}) == {"a": 1}
    with pytest.raises(ValueMappingError):
        codec.encode_state(5)


def test_the_schema_accepts_what_is_sent() -> None:
    codec = ModelCodec(Say, Heard)
    schema: Any = codec.schema()
    jsonschema.validate({"message": "x"}, schema["action"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"message": 5}, schema["action"])
    jsonschema.validate(codec.encode_observation(Heard(echo="x")).observation, schema["observation"])
    jsonschema.validate(codec.encode_state(State()), schema["state"])
    assert schema["reset_observation"] == schema["observation"]
    assert (
        ModelCodec(Say, Heard, reset_observation_cls=Observation).schema()["reset_observation"] != schema["observation"]
    )


def test_a_callers_change_of_the_schema_is_its_own() -> None:
    codec = ModelCodec(Say, Heard)
    codec.schema().clear()
    assert set(codec.schema()) == {"action", "observation", "state", "reset_observation"}
