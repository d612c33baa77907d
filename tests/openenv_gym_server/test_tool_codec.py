"""Tool actions beside an application's own, and what is said of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from openenv.core.env_server.mcp_types import CallToolAction as StockCall

from openenv_gym.errors import InvalidActionError
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, ToolError
from openenv_gym.types import Action, Observation
from openenv_gym_server.codec import ModelCodec
from openenv_gym_server.tool_codec import ToolCodec, called_tool
from tests.text_envs import Heard, Say

CALL = {"type": "call_tool", "tool_name": "look", "arguments": {"a": 1}}


@dataclass
class Plain:
    word: str = ""


@pytest.mark.parametrize("action_cls", [Action, CallToolAction, ListToolsAction, Say, Plain])
def test_tool_actions_are_understood_whatever_class_the_others_have(action_cls: type[Any]) -> None:
    codec = ToolCodec(action_cls, Observation)
    call = codec.decode_action(CALL)
    assert isinstance(call, CallToolAction)
    assert (call.tool_name, call.arguments) == ("look", {"a": 1})
    assert isinstance(codec.decode_action({"type": "list_tools"}), ListToolsAction)


def test_other_actions_are_of_the_given_class() -> None:
    assert ToolCodec(Say, Heard).decode_action({"message": "hello"}) == Say(message="hello")
    assert type(ToolCodec(Action, Heard).decode_action({})) is Action
    # As in OpenEnv, where that class is the application's, a call need not say that it is one.
    assert isinstance(ToolCodec(CallToolAction, Heard).decode_action({"tool_name": "look"}), CallToolAction)


def test_a_class_of_calls_of_ones_own_is_the_class_of_calls() -> None:
    class Urgent(CallToolAction):
        priority: int = 0

    action = ToolCodec(Urgent, Observation).decode_action(CALL | {"priority": 3})
    assert isinstance(action, Urgent)
    assert action.priority == 3


@pytest.mark.parametrize(
    "data",
    [
        {"type": "call_tool"},
        CALL | {"extra": 1},
        CALL | {"tool_name": 3},
        CALL | {"arguments": [1]},
        {"type": "list_tools", "extra": 1},
        {"type": "unheard_of"},
        {"type": ["call_tool"]},
    ],
)
def test_a_bad_tool_action_is_refused_with_its_faults(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidActionError) as caught:
        ToolCodec(Action, Observation).decode_action(data)
    assert caught.value.errors


def test_an_observation_of_a_call_is_encoded_as_any_model_is() -> None:
    for observation in (
        CallToolObservation(tool_name="look", result={"data": [1, 2]}, reward=1, done=True, metadata={"a": 1}),
        CallToolObservation(tool_name="look", error=ToolError(error_type="timeout", message="late"), reward=None),
        CallToolObservation(tool_name="look", result=float("nan"), reward=float("nan")),
    ):
        ours = ToolCodec(Action, Observation).encode_observation(observation)
        usual = ModelCodec(Action, Observation).encode_observation(observation)
        assert ours == usual


def test_an_observation_of_another_class_is_encoded_by_its_class() -> None:
    class More(CallToolObservation):
        more: int = 1

    assert ToolCodec(Action, Observation).encode_observation(More(tool_name="x")).observation["more"] == 1
    assert ToolCodec(Action, Observation).encode_observation(Heard(echo="x")).observation["echo"] == "x"


def test_the_schema_of_actions_is_the_given_class_as_in_openenv() -> None:
    properties = ToolCodec(CallToolAction, CallToolObservation).schema()["action"]["properties"]
    assert set(properties) == set(StockCall.model_json_schema()["properties"])


def test_the_called_tool_is_told_by_the_data() -> None:
    assert called_tool(CALL) == "look"
    assert called_tool({"tool_name": "look"}) == "look"
    for data in ({"type": "list_tools"}, {"message": "x"}, {"tool_name": 3}, {"type": "x", "tool_name": "look"}):
        assert called_tool(data) is None


def test_an_action_without_a_type_is_a_call_only_where_the_applications_class_is_one_of_calls() -> None:
    class Chosen(Action):
        tool_name: str

    for codec, name in ((ToolCodec(CallToolAction, Observation), "look"), (ToolCodec(Chosen, Observation), None)):
        assert codec.called_tool({"tool_name": "look"}) == name
        assert codec.called_tool(CALL) == "look"
