"""``MCPToolClient``: tools listed and called through steps, on this project's server and on OpenEnv's own."""

import asyncio
import inspect
from typing import Any

import pytest
from openenv.core.env_server.http_server import create_app as create_stock_app
from openenv.core.env_server.mcp_types import CallToolAction as StockCall
from openenv.core.env_server.mcp_types import CallToolObservation as StockCalled
from openenv.core.mcp_client import MCPToolClient as StockToolClient

from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    ProtocolError,
    SessionStateError,
    ToolCallError,
    ValueMappingError,
)
from openenv_gym.mcp_client import CalledToolObservation, MCPToolClient, OpenObservation, plain_value
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation, Tool
from openenv_gym.types import Action, State
from openenv_gym_server import create_app
from tests.openenv_gym_server.test_mcp_environment_stock import (
    CHANGED,
    NativeNotes,
    environment_written_for_openenv,
)
from tests.serving import serve
from tests.text_envs import Echo, Heard, Say


@pytest.fixture(scope="module", params=["ours", "written for OpenEnv", "stock"])
def notes(request):
    if request.param == "stock":
        app = create_stock_app(environment_written_for_openenv(), StockCall, StockCalled)
    else:
        env = NativeNotes if request.param == "ours" else environment_written_for_openenv(CHANGED)
        app = create_app(env, CallToolAction, CallToolObservation)
    with serve(app) as url:
        yield url


def test_tools_are_listed_and_called(notes):
    async def main():
        async with MCPToolClient(notes) as client:
            first = (await client.reset(episode_id="mine")).observation
            assert isinstance(first, OpenObservation)
            assert first.metadata == {"message": "ready"}
            tools = await client.list_tools()
            assert all(isinstance(tool, Tool) for tool in tools)
            assert {"write", "read", "find", "wait", "fail", "who", "clear"} == {tool.name for tool in tools}
            assert await client.call_tool("write", text="a", times=2) == 2
            assert await client.call_tool("read") == ["a", "a"]
            assert await client.call_tool("find", text="a") == {"found": True, "exact": False}
            assert await client.call_tool("wait") is None
            assert await client.call_tool("who", a=1) == "simulation"
            assert (await client.get_tool("write")).input_schema["required"] == ["text"]
            assert not await client.has_tool("unknown")
            state = await client.state()
            assert isinstance(state, State)
            return state

    assert asyncio.run(main()).episode_id == "mine"


def test_the_same_without_await(notes):
    with MCPToolClient(notes).sync() as client:
        client.reset()
        assert client.call_tool("write", text="a") == 1
        assert client.has_tool("read")


def test_an_action_may_be_stepped_instead(notes):
    with MCPToolClient(notes).sync() as client:
        client.reset()
        result = client.step(CallToolAction(tool_name="write", arguments={"text": "a"}))
        assert isinstance(result.observation, CalledToolObservation)
        assert (result.observation.result, result.observation.tool_result["data"]) == (1, 1)
        assert (result.reward, result.done, result.observation.reward) == (0.5, False, 0.5)
        assert isinstance(client.step(ListToolsAction()).observation, ListToolsObservation)
        failed = client.step({"type": "call_tool", "tool_name": "unknown"}).observation
        assert failed.error.error_type == "tool_not_found"
        assert failed.result is None


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("unknown", {}, "tool_not_found"),
        ("write", {}, "invalid_args"),
        ("write", {"text": "a", "extra": 1}, "invalid_args"),
        ("fail", {"text": "on purpose"}, "execution_error"),
    ],
)
def test_a_call_that_failed_is_raised_with_its_kind(notes, name, arguments, kind):
    with MCPToolClient(notes).sync() as client:
        client.reset()
        with pytest.raises(ToolCallError, match=name) as caught:
            client.call_tool(name, **arguments)
        assert (caught.value.error_type, caught.value.tool_name) == (kind, name)
        assert client.call_tool("read") == []


def test_listing_is_remembered_until_it_is_asked_for_again(notes):
    with MCPToolClient(notes).sync() as client:
        client.reset()
        first = client.list_tools()
        first.clear()
        before = client.state().step_count
        assert client.list_tools()
        assert client.state().step_count == before
        assert client.list_tools(use_cache=False)


def test_nothing_comes_before_the_first_reset(notes):
    with MCPToolClient(notes).sync() as client:
        for ask in (client.list_tools, lambda: client.call_tool("read")):
            with pytest.raises(SessionStateError):
                ask()


def test_an_argument_may_be_called_name():
    app = create_app(Greeting, CallToolAction, CallToolObservation)
    with serve(app) as url, MCPToolClient(url).sync() as client:
        client.reset()
        assert client.call_tool("greet", name="Claude") == "Hello, Claude!"
        with pytest.raises(TypeError, match="name of a tool first"):
            client.call_tool(text="x")


class Greeting(NativeNotes):
    def _greet(self, name: str) -> str:
        return f"Hello, {name}!"

    def __init__(self) -> None:
        super().__init__()
        self.tool(name="greet")(self._greet)


def test_an_environment_without_tools_refuses():
    with serve(create_app(Echo, Say, Heard)) as url, MCPToolClient(url).sync() as client:
        client.reset()
        with pytest.raises(InvalidActionError):
            client.list_tools()
        assert client.step(Say(message="hello")).observation.echo == "hello"


class Answering(MCPToolClient):
    """Answers by itself."""

    def __init__(self, observation, **outside):
        super().__init__("http://127.0.0.1:1")
        self.payload = {"observation": observation, "reward": None, "done": False, **outside}

    async def step(self, action, **kwargs):
        return self._parse_result(self.payload)


def test_a_server_that_answers_something_else_is_told():
    with pytest.raises(ProtocolError, match="another kind"):
        asyncio.run(Answering({"x": 1}).list_tools())
    with pytest.raises(ProtocolError, match="CalledToolObservation"):
        asyncio.run(Answering({"tool_name": 3}).list_tools())
    with pytest.raises(EnvironmentExecutionError, match="no such list"):
        asyncio.run(Answering({"tools": [], "metadata": {"error": "no such list"}}).list_tools())
    # An environment may answer a call in its own way.
    assert asyncio.run(Answering({"x": 1}).call_tool("look")).x == 1


def test_metadata_is_the_envelopes_or_the_observations_own():
    outside = Answering({"x": 1, "metadata": {"a": 1}}, metadata={"a": 2}).payload
    client = MCPToolClient("http://127.0.0.1:1")
    result = client._parse_result(outside)
    assert (result.observation.metadata, result.metadata) == ({"a": 2}, {"a": 2})
    del outside["metadata"]
    result = client._parse_result(outside)
    assert (result.observation.metadata, result.metadata) == ({"a": 1}, None)


def test_actions_are_written_as_openenv_writes_them():
    payload = MCPToolClient("http://127.0.0.1:1")._step_payload
    assert payload(ListToolsAction()) == {"type": "list_tools"}
    assert payload(CallToolAction(tool_name="a")) == {"type": "call_tool", "tool_name": "a", "arguments": {}}
    assert payload(CallToolAction(tool_name="a", metadata={"b": 1}))["metadata"] == {"b": 1}
    assert payload(Action()) == {"metadata": {}}
    assert payload({"a": 1}) == {"a": 1}
    with pytest.raises(ValueMappingError, match="got int"):
        payload(3)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"data": 3, "structured_content": {"result": 3}}, 3),
        ({"data": None, "structured_content": {"result": None}, "content": [{"text": "null"}]}, None),
        ({"data": None, "content": [{"text": "[1]"}, {"type": "image"}, {"text": "b"}]}, "[1]\nb"),
        ({"data": None, "content": []}, None),
        ({"data": None, "content": None}, None),
        ({"value": 3}, {"value": 3}),
        (3, 3),
        (None, None),
    ],
)
def test_the_plain_value_is_found_in_a_result(result, value):
    assert plain_value(result) == value


def test_arguments_by_position_are_in_the_order_of_openenvs_own_client():
    ours, theirs = inspect.signature(MCPToolClient).parameters, inspect.signature(StockToolClient).parameters
    by_position = [name for name, each in ours.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert by_position == list(theirs)[: len(by_position)]
    defaults = {name: ours[name].default for name in by_position[1:]}
    assert defaults == {name: theirs[name].default for name in by_position[1:]}
    client = MCPToolClient("http://127.0.0.1:1", 1.0, 2.0, 3.0, 4.0, max_message_size_mb=5.0)
    settings = client._settings
    assert (settings.connect_timeout_s, settings.step_timeout_s) == (1.0, 2.0)
    assert (settings.keepalive_interval_s, settings.keepalive_timeout_s) == (3.0, 4.0)
    assert settings.max_message_size_mb == 5.0


class Table(Action):
    table: dict[Any, Any]


def test_keys_that_are_one_in_json_are_refused(notes):
    twice = {1: "a", "1": "b"}
    with MCPToolClient(notes).sync() as client:
        client.reset()
        for action in (CallToolAction(tool_name="find", arguments={"text": twice}), Table(table=twice), {"x": twice}):
            with pytest.raises(ValueMappingError, match="keys that differ"):
                client.step(action)
        with pytest.raises(ValueMappingError, match="keys that differ"):
            client.call_tool("find", text=[twice])
