"""Tests of ``openenv_gym.tool_spaces``, with a server of tools of either make."""

from __future__ import annotations

import json
from collections.abc import Iterator

import gymnasium
import pytest
from gymnasium.spaces import Dict
from openenv.core.env_server import CallToolAction as StockCallToolAction

from openenv_gym import UnicodeText
from openenv_gym.errors import ValueMappingError
from openenv_gym.tool_spaces import call_space, encode_call, is_tool_call, observation_text
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction
from openenv_gym.types import Observation
from openenv_gym_server import MCPEnvironment, create_app, tool
from tests.openenv_gym_envs.echo.stock_echo import stock_app
from tests.serving import serve


class Calculator(MCPEnvironment):
    def reset(self, seed: int | None = None) -> Observation:
        return Observation(reward=0.0, metadata={"hint": "add"})

    @tool
    def add(self, a: int, b: int) -> int:
        return a + b


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with serve(create_app(Calculator, CallToolAction, CallToolObservation, env_name="calculator")) as url:
        yield url


def test_a_sample_is_a_call() -> None:
    assert encode_call(call_space().sample())["arguments"] == {}


@pytest.mark.parametrize("action", [CallToolAction, StockCallToolAction])
def test_the_schema_of_a_call_is_known_of_either_make(action: type[CallToolAction]) -> None:
    assert is_tool_call(action.model_json_schema())


@pytest.mark.parametrize("schema", [ListToolsAction.model_json_schema(), {}, None, {"properties": {"tool_name": {}}}])
def test_another_schema_is_no_call(schema: dict[str, object] | None) -> None:
    assert not is_tool_call(schema)


@pytest.mark.parametrize("arguments", ["", "[1]", "nothing", '{"a": NaN}'])
def test_arguments_that_are_no_object_are_refused_before_anything_is_sent(arguments: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        encode_call({"tool_name": "add", "arguments": arguments})
    assert caught.value.path == "$.arguments"


@pytest.mark.parametrize("action", ["add", {"tool_name": "add"}, {"tool_name": "a", "arguments": "{}", "b": ""}, None])
def test_an_action_of_another_shape_is_refused(action: object) -> None:
    with pytest.raises(ValueMappingError, match="tool_name"):
        encode_call(action)


def test_a_server_of_tools_is_played_through_gymnasium(ours: str) -> None:
    with gymnasium.make("openenv/remote-v0", base_url=ours) as env:
        assert env.action_space == call_space() == Dict(tool_name=UnicodeText(), arguments=UnicodeText())
        assert env.observation_space == UnicodeText()
        observation, info = env.reset(seed=0)
        assert (json.loads(observation), info) == ({"metadata": {"hint": "add"}}, {"hint": "add"})
        observation, reward, *_ = env.step({"tool_name": "add", "arguments": '{"a": 1, "b": 2}'})
        answer = json.loads(observation)
        assert (answer["tool_name"], answer["result"]["data"], answer["error"], reward) == ("add", 3, None, 0.0)
        observation, *_ = env.step({"tool_name": "nothing", "arguments": "{}"})
        assert json.loads(observation)["error"]["error_type"] == "tool_not_found"


def test_openenvs_own_echo_is_played_through_gymnasium() -> None:
    with serve(stock_app()) as url, gymnasium.make("openenv/remote-v0", base_url=url) as env:
        env.reset(seed=0)
        observation, *_ = env.step({"tool_name": "echo_message", "arguments": '{"message": "hello"}'})
        assert json.loads(observation)["result"]["data"] == "hello"


def test_an_observation_is_its_json_text() -> None:
    assert observation_text({"b": 1, "a": ["ü"]}) == '{"b":1,"a":["ü"]}'
