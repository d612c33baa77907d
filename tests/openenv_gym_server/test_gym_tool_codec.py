"""Calls of tools beside actions of the Space, as JSON."""

import math

import pytest
from gymnasium.spaces import Discrete

from openenv_gym.errors import InvalidActionError, ValueMappingError
from openenv_gym.tools import CallToolAction, CallToolObservation, DescribedTool, ListToolsAction, ListToolsObservation
from openenv_gym_server.gym_tool_codec import GymToolCodec
from openenv_gym_server.space_codec import GymObservation, SpaceCodec


@pytest.fixture
def codec():
    return GymToolCodec(Discrete(2), Discrete(3), "Test-v0")


def test_actions_of_the_space_are_read_as_without_tools(codec):
    assert codec.decode_action({"action": 1}) == 1
    assert codec.decode_action({"action": 0, "metadata": {"note": "mine"}}) == 0


def test_calls_of_tools_are_told_by_their_type(codec):
    call = codec.decode_action({"type": "call_tool", "tool_name": "act", "arguments": {"action": 1}})
    assert (type(call), call.tool_name, call.arguments) == (CallToolAction, "act", {"action": 1})
    assert type(codec.decode_action({"type": "list_tools"})) is ListToolsAction


@pytest.mark.parametrize(
    ("data", "at"),
    [
        ({"type": "call_tool"}, ["tool_name"]),
        ({"type": "call_tool", "tool_name": "act", "arguments": [1]}, ["arguments"]),
        ({"type": "list_tools", "more": 1}, ["more"]),
        ({"type": "call_tool", "tool_name": "act", "action": 1}, ["type"]),
        ({"type": "call_a_tool", "tool_name": "act"}, ["action"]),
        ({"tool_name": "act"}, ["action"]),
        ({"type": {}}, ["action"]),
        ({}, ["action"]),
        ({"action": 2}, ["action"]),
    ],
    ids=str,
)
def test_what_is_neither_is_refused_at_its_place(codec, data, at):
    with pytest.raises(InvalidActionError) as caught:
        codec.decode_action(data)
    assert caught.value.errors[0]["loc"] == at


def test_observations_of_the_space_are_written_as_without_tools(codec):
    observation = GymObservation(2, 0.5, True, False, {"a": 1})
    plain = SpaceCodec(Discrete(2), Discrete(3), "Test-v0")
    assert codec.encode_observation(observation) == plain.encode_observation(observation)
    assert codec.schema() == plain.schema()


def test_a_call_is_written_with_what_belongs_to_its_step(codec):
    observation = CallToolObservation(
        tool_name="act", result={"data": 2}, reward=0.5, done=True, metadata={"terminated": True}
    )
    outcome = codec.encode_observation(observation)
    assert outcome.observation == {"tool_name": "act", "result": {"data": 2}, "error": None}
    assert (outcome.reward, outcome.done, outcome.metadata) == (0.5, True, {"terminated": True})


def test_an_error_is_written_with_its_kind(codec):
    observation = CallToolObservation(tool_name="act", error={"error_type": "timeout", "message": "late"})
    assert codec.encode_observation(observation).observation["error"] == {"error_type": "timeout", "message": "late"}


def test_a_reward_that_is_not_finite_is_a_word_beside_it(codec):
    outcome = codec.encode_observation(CallToolObservation(tool_name="act", reward=math.nan))
    assert (outcome.reward, outcome.metadata) == (None, {"reward": "NaN"})


def test_a_reward_of_an_author_that_is_no_number_is_an_error(codec):
    observation = CallToolObservation(tool_name="act")
    object.__setattr__(observation, "reward", "much")
    with pytest.raises(ValueMappingError):
        codec.encode_observation(observation)


def test_a_list_of_tools_is_written_as_openenv_has_it(codec):
    tool = DescribedTool(name="act", description="Act.", input_schema={}, output_schema={"type": "object"})
    outcome = codec.encode_observation(ListToolsObservation(tools=[tool]))
    assert outcome.observation == {"tools": [{"name": "act", "description": "Act.", "input_schema": {}}]}
