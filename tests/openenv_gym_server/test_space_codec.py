"""A Gymnasium environment's actions and observations as OpenEnv JSON."""

import math

import jsonschema
import numpy as np
import pytest
from gymnasium import spaces

from openenv_gym.errors import InvalidActionError, ValueMappingError
from openenv_gym.json_text import encode_json
from openenv_gym.spaces import space_from_json
from openenv_gym_server.space_codec import GymObservation, SpaceCodec, _walk
from tests.exactness.synthetic import SPACES

ARM = spaces.Dict(
    {
        "joints": spaces.Box(-1.0, 1.0, (3,), np.float32),
        "a.b[0]": spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3, start=5)]),
    }
)
GOOD = {"joints": [0.0, 0.5, -1.0], "a.b[0]": [1, 7]}


def codec(action_space=None, observation_space=None):
    action_space = spaces.Discrete(4) if action_space is None else action_space
    if observation_space is None:
        observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    return SpaceCodec(action_space, observation_space, "Test-v0")


def refusal(data, action_space=None):
    with pytest.raises(InvalidActionError) as caught:
        codec(action_space).decode_action(data)
    assert caught.value.code == "VALIDATION_ERROR"
    assert all(error.keys() >= {"type", "loc", "msg", "input"} for error in caught.value.errors)
    encode_json(caught.value.errors)
    return caught.value.errors


def test_an_action_has_the_type_of_its_space():
    action = codec().decode_action({"action": 3})
    assert type(action) is np.int64
    assert action == 3


def test_openenvs_own_metadata_is_accepted_and_ignored():
    assert codec().decode_action({"action": 1, "metadata": {"why": "stock clients send it"}}) == 1
    assert refusal({"action": 1, "metadata": 3})[0]["loc"] == ["metadata"]


def test_a_missing_action_is_named():
    (error,) = refusal({})
    assert (error["type"], error["loc"]) == ("missing", ["action"])


def test_every_unknown_field_is_named():
    errors = refusal({"actoin": 1, "extra": [1]})
    assert [(error["type"], error["loc"]) for error in errors] == [
        ("missing", ["action"]),
        ("extra_forbidden", ["actoin"]),
        ("extra_forbidden", ["extra"]),
    ]


@pytest.mark.parametrize(
    ("change", "loc", "culprit"),
    [
        ({"joints": [0.0, 0.5, 3.5]}, ["action", "joints", 2], 3.5),
        ({"joints": [0.0, "NaN", 0.5]}, ["action", "joints", 1], "NaN"),
        ({"joints": [0.0, None, 0.5]}, ["action", "joints", 1], None),
        ({"joints": [0.0, 0.5]}, ["action", "joints"], [0.0, 0.5]),
        ({"joints": "no"}, ["action", "joints"], "no"),
        ({"a.b[0]": [1, 4]}, ["action", "a.b[0]", 1], 4),
        ({"a.b[0]": [1.5, 7]}, ["action", "a.b[0]", 0], 1.5),
        ({"a.b[0]": [True, 7]}, ["action", "a.b[0]", 0], True),
    ],
)
def test_a_value_outside_the_space_is_refused_with_its_path(change, loc, culprit):
    (error,) = refusal({"action": {**GOOD, **change}}, ARM)
    assert error["loc"] == loc
    assert error["input"] == culprit or (error["input"] != error["input"] and culprit != culprit)


@pytest.mark.parametrize("value", [4, -1, 1.5, "1", None, [1], {}, True, 2**80])
def test_what_is_no_action_of_a_discrete_space_is_refused(value):
    (error,) = refusal({"action": value})
    assert error["loc"] == ["action"]


def test_missing_and_unknown_keys_inside_an_action_are_refused():
    assert refusal({"action": {"joints": [0, 0, 0]}}, ARM)[0]["loc"] == ["action"]
    assert refusal({"action": {**GOOD, "more": 1}}, ARM)[0]["loc"] == ["action"]


def test_a_refusal_stays_small_when_the_action_is_large():
    (error,) = refusal({"action": [0.0] * 100_000}, spaces.Box(-1.0, 1.0, (3,), np.float32))
    assert len(encode_json(error)) < 5_000


def test_a_path_is_followed_as_far_as_the_value_goes():
    assert _walk({"": {"a.b": [[1]]}}, "..a.b[0][0]") == (["", "a.b", 0, 0], 1)
    assert _walk([1], "[5]") == ([], [1])
    assert _walk(1, ".x") == ([], 1)


def test_an_observation_is_an_envelope_with_the_whole_five_tuple():
    envelope = codec().encode_observation(
        GymObservation(np.array([0.5, -1], np.float32), 2.5, terminated=False, truncated=True, info={"k": [1, "x"]})
    )
    assert envelope.observation == {"obs": [0.5, -1.0]}
    assert envelope.reward == 2.5
    assert envelope.done is True
    assert envelope.metadata == {"terminated": False, "truncated": True, "info": {"k": [1, "x"]}}


def test_a_reset_has_no_reward():
    envelope = codec().encode_observation(GymObservation([0.0, 0.0]))
    assert envelope.reward is None
    assert envelope.done is False
    assert envelope.metadata == {"terminated": False, "truncated": False, "info": {}}


@pytest.mark.parametrize(("reward", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_reward_that_is_not_finite_is_null_and_named_in_the_metadata(reward, name):
    envelope = codec().encode_observation(GymObservation([0.0, 0.0], reward))
    assert envelope.reward is None
    assert envelope.metadata["reward"] == name


def test_an_info_that_plain_json_would_change_travels_exactly_too():
    envelope = codec().encode_observation(GymObservation([0.0, 0.0], 0.0, info={"n": np.int64(3)}))
    assert envelope.metadata["info"] == {"n": 3}
    assert "x-gymnasium-info" in envelope.metadata


def test_warnings_ride_in_the_metadata():
    envelope = codec().encode_observation(GymObservation([0.0, 0.0], warnings=("hear me",)))
    assert envelope.metadata["x-warnings"] == ["hear me"]


def test_an_observation_that_does_not_fit_is_an_error_with_its_path():
    with pytest.raises(ValueMappingError) as caught:
        codec().encode_observation(GymObservation(["x", 0.0]))
    assert caught.value.path.startswith("$.obs")


def test_a_cast_early_in_an_episode_is_noted_once_a_session():
    both = codec()

    def warnings_of(obs, early):
        return both.encode_observation(GymObservation(obs, early=early)).metadata.get("x-warnings", [])

    assert warnings_of(np.zeros(2, np.float32), early=True) == []
    assert warnings_of(np.zeros(2), early=False) == []
    (note,) = warnings_of(np.zeros(2), early=True)
    assert "float64" in note
    assert warnings_of(np.zeros(2), early=True) == []


def test_the_state_is_a_json_object_as_it_is():
    state = {"episode_id": "e", "step_count": 2, "env_id": "Test-v0"}
    assert codec().encode_state(state) == state
    jsonschema.validate(state, codec().schema()["state"])


@pytest.mark.parametrize("name", SPACES)
def test_what_is_sent_validates_against_the_schema_which_carries_the_space(name):
    space = SPACES[name]()
    space.seed(0)
    both = codec(space, space)
    schema = both.schema()
    for part, field in (("action", "action"), ("observation", "obs")):
        jsonschema.Draft202012Validator.check_schema(schema[part])
        assert schema[part]["required"] == [field]
        assert space_from_json(schema[part]["properties"][field]["x-gymnasium-space"]) == space
    for _ in range(5):
        observation = both.encode_observation(GymObservation(space.sample())).observation
        jsonschema.validate(observation, schema["observation"])
        jsonschema.validate({"action": observation["obs"]}, schema["action"])
        both.decode_action({"action": observation["obs"]})
