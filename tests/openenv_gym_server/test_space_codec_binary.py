"""A Gymnasium environment's actions and observations as binary frames: what their JSON says."""

import msgspec
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from openenv_gym.errors import InvalidActionError, ValueMappingError
from openenv_gym.frames import Kind, read_frame, read_outcome
from openenv_gym.info import decode_exact
from openenv_gym.spaces import pack
from openenv_gym_server.space_codec import GymObservation, SpaceCodec


def packed_outcome(codec, observation, *notes):
    packed = read_frame(codec.pack_observation(observation, 7, notes))
    assert (packed.kind, packed.id, packed.count, packed.env_ids) == (Kind.OUTCOME, 7, 1, None)
    return read_outcome(packed)


def test_a_binary_action_has_its_spaces_dtype_and_shape():
    codec = SpaceCodec(Box(-1, 1, (2,), np.float32), Discrete(2), "Demo-v0")
    action = codec.unpack_action(memoryview(np.array([0.5, -1], "<f4").tobytes()))
    assert (action.dtype, action.tolist()) == (np.float32, [0.5, -1.0])
    action[0] = 0


@pytest.mark.parametrize("body", [b"", b"\0" * 7, b"\0" * 9])
def test_a_binary_action_of_other_bytes_is_refused(body):
    with pytest.raises(InvalidActionError) as caught:
        SpaceCodec(Discrete(2), Discrete(2), "Demo-v0").unpack_action(memoryview(body))
    assert caught.value.errors[0]["loc"] == ["action"]


def test_a_binary_action_outside_its_space_is_refused_as_its_json_is():
    codec = SpaceCodec(Dict(move=Discrete(2)), Discrete(2), "Demo-v0")
    with pytest.raises(InvalidActionError) as text:
        codec.decode_action({"action": {"move": 5}})
    with pytest.raises(InvalidActionError) as binary:
        codec.unpack_action(memoryview(pack(Discrete(2), 5)))
    assert binary.value.errors == text.value.errors
    assert binary.value.message == text.value.message


def test_a_binary_outcome_has_observation_reward_flags_info_and_notes():
    codec = SpaceCodec(Discrete(2), Box(0, 255, (2,), np.uint8), "Demo-v0")
    outcome = packed_outcome(
        codec, GymObservation([1, 2], 0.5, True, False, {"n": np.int8(3)}, ("first",), early=True), "second"
    )
    assert bytes(outcome.observations) == b"\1\2"
    assert [values.tolist() for values in msgspec.structs.astuple(outcome.stepped)] == [[0.5], [True], [False]]
    assert decode_exact(outcome.info) == {"n": np.int8(3)}
    assert outcome.notes[0] == "first"
    assert "was cast" in outcome.notes[1]
    assert outcome.notes[2] == "second"


def test_a_binary_outcome_of_a_reset_has_no_reward():
    codec = SpaceCodec(Discrete(2), Discrete(3, start=5), "Demo-v0")
    outcome = packed_outcome(codec, GymObservation(6))
    assert (outcome.stepped, outcome.info, outcome.notes) == (None, None, [])
    assert bytes(outcome.observations) == pack(Discrete(3), 6)


def test_an_observation_that_does_not_fit_is_not_packed():
    codec = SpaceCodec(Discrete(2), Box(0, 255, (2,), np.uint8), "Demo-v0")
    with pytest.raises(ValueMappingError) as caught:
        codec.pack_observation(GymObservation([1, 256], 0.0), 1)
    assert caught.value.path == "$.obs[1]"
    with pytest.raises(ValueMappingError) as encoded:
        codec.encode_observation(GymObservation([1, 256], 0.0))
    assert str(encoded.value) == str(caught.value)
