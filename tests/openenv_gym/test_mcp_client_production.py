"""``MCPToolClient`` in production: its mode, its session and its limits. What crosses the wire: ``tests/interop``."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from openenv_gym.errors import (
    ModeError,
    ProviderError,
    SessionStateError,
    SettingsError,
    ToolCallError,
    UnreachableError,
)
from openenv_gym.mcp_client import MCPToolClient
from openenv_gym.tools import CallToolAction, CallToolObservation, Tool
from openenv_gym_server import create_app
from tests.openenv_gym_server.test_mcp_environment_stock import NativeNotes
from tests.serving import serve

NOWHERE = "http://127.0.0.1:1"


RELEASE = threading.Event()


class Point(BaseModel):
    x: float
    label: str = "here"


@dataclasses.dataclass
class Pair:
    x: float
    label: str


class Patient(NativeNotes):
    """Has a tool that waits until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.tool(name="hang")(self._hang)
        self.tool(name="fields")(self._fields)

    def _hang(self) -> bool:
        return RELEASE.wait(10.0)

    def _fields(self, given: dict[str, Any]) -> dict[str, Any]:
        return given


@pytest.fixture(scope="module")
def notes():
    with serve(create_app(Patient, CallToolAction, CallToolObservation, max_concurrent_envs=8)) as url:
        yield url


def test_the_mode_is_the_argument_before_the_variable_before_simulation(monkeypatch):
    assert not MCPToolClient(NOWHERE).use_production_mode
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "Production")
    assert MCPToolClient(NOWHERE).use_production_mode
    client = MCPToolClient(NOWHERE, mode="SIMULATION")
    assert (client.mode, client.use_production_mode) == ("simulation", False)
    with pytest.raises(SettingsError, match="'simulation' or 'production'"):
        MCPToolClient(NOWHERE, mode="training")


@pytest.mark.parametrize("face", ["awaited", "blocking"])
def test_the_mode_is_set_before_connecting_and_not_after(notes, face):
    client = MCPToolClient(notes)
    shown = client if face == "awaited" else client.sync()
    shown.use_production_mode = True
    assert (client.mode, shown.use_production_mode) == ("production", True)
    shown.tool_timeout_s = 3.0
    assert (client.tool_timeout_s, shown.tool_timeout_s) == (3.0, 3.0)
    with client.sync() as env:
        assert env.call_tool("who", a=1) == "production" or env.has_tool("who")
        shown.use_production_mode = True
        with pytest.raises(SessionStateError, match="disconnect") as caught:
            shown.use_production_mode = False
        assert caught.value.state == "connected"
        env.disconnect()
        shown.use_production_mode = False
        env.reset()
        with pytest.raises(SessionStateError):
            shown.use_production_mode = True
        assert env.call_tool("read") == []


def test_tools_are_listed_in_full_and_remembered(notes):
    with MCPToolClient(notes, mode="production").sync() as client:
        tools = client.list_tools()
        assert all(isinstance(tool, Tool) for tool in tools)
        tools.clear()
        assert client.list_tools()
        assert client.get_tool("write").input_schema["required"] == ["text"]
        assert client.list_tools(use_cache=False)
        assert not client.has_tool("unknown")


def test_an_argument_may_be_called_name_and_none_is_nothing(notes):
    with MCPToolClient(notes, mode="production").sync() as client:
        assert client.call_tool("wait") is None
        assert client.call_tool(name="write", text="a") == 1
        with pytest.raises(TypeError, match="name of a tool first"):
            client.call_tool(text="x")


@pytest.mark.parametrize("mode", ["simulation", "production"])
@pytest.mark.parametrize("given", [Point(x=0.5), Pair(0.5, "here"), {"x": 0.5, "label": "here"}])
def test_models_among_the_arguments_travel_as_their_fields(notes, mode, given):
    with MCPToolClient(notes, mode=mode).sync() as client:
        if mode == "simulation":
            client.reset()
        assert client.call_tool("fields", given=given) == {"x": 0.5, "label": "here"}


def test_after_close_only_connect_helps(notes):
    client = MCPToolClient(notes, mode="production").sync()
    assert client.call_tool("write", text="a") == 1
    client.close()
    client.close()
    for ask in (lambda: client.call_tool("read"), lambda: client.list_tools(use_cache=False)):
        with pytest.raises(SessionStateError, match=r"connect\(\)"):
            ask()
    with client:
        assert client.call_tool("read") == []
        client.forget_episode()
        assert client.call_tool("read") == []


def test_a_session_goes_on_under_another_loop_and_under_none(notes):
    client = MCPToolClient(notes, mode="production")
    assert asyncio.run(client.call_tool("write", text="a")) == 1
    assert client.sync().call_tool("write", text="b") == 2
    assert asyncio.run(client.call_tool("read")) == ["a", "b"]
    asyncio.run(client.close())


@pytest.mark.parametrize("limit", [0, -1, True, "1", float("inf")])
def test_a_limit_that_cannot_be_is_refused(limit):
    with pytest.raises(SettingsError) as caught:
        MCPToolClient(NOWHERE, tool_timeout_s=limit)
    assert caught.value.setting == "tool_timeout_s"


def test_a_tool_has_the_clients_limit_and_the_session_goes_on(notes):
    with MCPToolClient(notes, mode="production", tool_timeout_s=0.1).sync() as client:
        with pytest.raises(ToolCallError) as caught:
            client.call_tool("hang")
        assert caught.value.error_type == "timeout"
        RELEASE.set()
        client.tool_timeout_s = None
        assert client.call_tool("hang") is True


def test_in_simulation_too(notes):
    with MCPToolClient(notes, tool_timeout_s=20.0).sync() as client:
        client.reset()
        assert client.call_tool("read") == []


def test_copies_and_pickles_have_sessions_of_their_own(notes):
    client = MCPToolClient(notes, mode="production", tool_timeout_s=9.0)
    with client.sync() as first:
        assert first.call_tool("write", text="a") == 1
        for other in (copy.copy(client), pickle.loads(pickle.dumps(client))):
            assert (other.mode, other.tool_timeout_s) == ("production", 9.0)
            with other.sync() as second:
                assert second.call_tool("read") == []


def test_a_server_that_does_not_answer_is_named():
    client = MCPToolClient(NOWHERE, mode="production")
    for ask in (client.connect, client.list_tools, lambda: client.call_tool("look"), client.new_session):
        with pytest.raises(UnreachableError, match="nothing listens"):
            asyncio.run(ask())
    asyncio.run(client.close())


class Provider:
    """Starts nothing, and notes what it was asked."""

    def __init__(self, url):
        self.url = url
        self.calls = []

    def start(self, *_, **__):
        self.calls.append("start")
        return self.url

    def wait_for_ready(self, *_, **__):
        self.calls.append("ready")

    def stop(self):
        self.calls.append("stop")


def test_a_provider_is_started_by_the_first_call_and_stopped_by_close(notes):
    provider = Provider(notes)
    client = MCPToolClient(provider=provider, mode="production").sync()
    assert client.call_tool("write", text="a") == 1
    assert provider.calls == ["start", "ready"]
    client.close()
    assert provider.calls == ["start", "ready", "stop"]


def test_what_was_begun_for_a_connection_that_fails_is_undone():
    provider = Provider(NOWHERE)
    client = MCPToolClient(provider=provider, mode="production").sync()
    for ask in (client.connect, lambda: client.call_tool("look")):
        with pytest.raises(UnreachableError):
            ask()
    assert provider.calls == ["start", "ready", "stop"] * 2


def test_a_provider_that_fails_is_told():
    class Failing(Provider):
        def start(self, *_, **__):
            raise ProviderError("no container")

    with pytest.raises(ProviderError, match="no container"):
        MCPToolClient(provider=Failing(NOWHERE), mode="production").sync().connect()


def test_control_is_a_mode_error_before_anything_is_sent():
    client = MCPToolClient(NOWHERE, mode="production").sync()
    for ask in (client.reset, lambda: client.step({}), client.state):
        with pytest.raises(ModeError, match="call_tool"):
            ask()
