"""Clients for tools on servers with tools, every make of each in every mode; and what crossed the wire for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openenv.core.env_server.http_server import create_app as create_stock_app
from openenv.core.env_server.mcp_types import CallToolAction as StockCall
from openenv.core.env_server.mcp_types import CallToolObservation as StockCalled
from openenv.core.mcp_client import MCPToolClient as StockToolClient

from openenv_gym.errors import CapacityError, InvalidActionError, ModeError, SessionLostError, ToolCallError
from openenv_gym.mcp_client import MCPToolClient
from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_server import create_app
from tests.interop.recording import Recorder
from tests.openenv_gym_server.test_mcp_environment_stock import NativeNotes, environment_written_for_openenv
from tests.serving import serve

MODES = ("simulation", "production")
WAIT_S = 10.0
FAILURES = [
    ("unknown", {}, "tool_not_found"),
    ("write", {}, "invalid_args"),
    ("write", {"text": "a", "extra": 1}, "invalid_args"),
    ("fail", {"text": "on purpose"}, "execution_error"),
]


@contextmanager
def server(make: str, mode: str, **more: Any) -> Iterator[tuple[str, Recorder]]:
    if make == "stock":
        app = create_stock_app(environment_written_for_openenv(), StockCall, StockCalled, mode=mode, **more)
    else:
        app = create_app(NativeNotes, CallToolAction, CallToolObservation, mode=mode, **more)
    recorder = Recorder(app)
    with serve(recorder) as url:
        yield url, recorder


@pytest.fixture(scope="module", params=[(make, mode) for make in ("ours", "stock") for mode in MODES], ids=" ".join)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, str, Recorder]]:
    make, mode = request.param
    with server(make, mode, max_concurrent_envs=8) as (url, recorder):
        yield make, mode, url, recorder


@pytest.fixture(params=["awaited", "blocking"])
def style(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def play(client: Any, *, begin: bool) -> list[Any]:
    """What an agent does, with any client that is awaited."""
    async with client:
        if begin:
            await client.reset()
        tools = await client.list_tools()
        names = sorted(tool.name for tool in tools)
        return [names, await client.call_tool("write", text="a", times=2), await client.call_tool("read")]


def play_blocking(client: Any, *, begin: bool) -> list[Any]:
    with client:
        if begin:
            client.reset()
        names = sorted(tool.name for tool in client.list_tools())
        return [names, client.call_tool("write", text="a", times=2), client.call_tool("read")]


def played(style: str, client: Any, *, begin: bool) -> list[Any]:
    if style == "awaited":
        return asyncio.run(play(client, begin=begin))
    return play_blocking(client.sync(), begin=begin)


def test_in_production_tools_alone_cross_the_wire_by_post(served: Any, style: str) -> None:
    _, _, url, recorder = served
    recorder.clear()
    names, count, notes = played(style, MCPToolClient(url, mode="Production"), begin=False)
    assert {"write", "read", "find"} <= set(names)
    assert (count, notes) == (2, ["a", "a"])
    assert recorder.methods == [
        "openenv/session/create",
        "tools/list",
        "tools/call",
        "tools/call",
        "openenv/session/close",
    ]
    assert {(method, path) for method, path, _ in recorder.requests} == {("POST", "/mcp")}
    assert (recorder.handshakes, recorder.frames) == ([], [])
    # One connection, kept.
    assert len(set(recorder.connections)) == 1


def test_in_simulation_tools_are_steps_over_ws(served: Any, style: str) -> None:
    make, mode, url, recorder = served
    recorder.clear()
    client = MCPToolClient(url, mode="SIMULATION")
    if (make, mode) == ("ours", "production"):
        # Stock servers leave the way open in production.
        with pytest.raises(InvalidActionError, match="production"):
            played(style, client, begin=True)
        return
    names, count, notes = played(style, client, begin=True)
    assert {"write", "read", "find"} <= set(names)
    assert (count, notes) == (2, ["a", "a"])
    spoken = [kind for kind in recorder.types if not kind.startswith("x-")]
    assert spoken == ["reset", "list_tools", "call_tool", "call_tool", "close"]
    assert recorder.requests == []
    assert recorder.handshakes == ["/ws"]


def test_the_stock_client_gets_the_same(served: Any) -> None:
    make, _, url, _ = served
    names, *values = asyncio.run(play(MCPToolClient(url, mode="production"), begin=False))
    stock_names, *stock_values = asyncio.run(play(StockToolClient(url), begin=False))
    assert stock_values == values
    # On its own server the stock client lists nothing where a tool has no description.
    assert stock_names == (names if make == "ours" else [])


@pytest.mark.parametrize(("name", "arguments", "kind"), FAILURES)
def test_failures_are_of_distinct_kinds_in_both_modes(served: Any, name: str, arguments: Any, kind: str) -> None:
    make, mode, url, _ = served
    for client_mode in MODES:
        if (make, mode, client_mode) == ("ours", "production", "simulation"):
            continue
        with MCPToolClient(url, mode=client_mode).sync() as client:
            if client_mode == "simulation":
                client.reset()
            with pytest.raises(ToolCallError) as caught:
                client.call_tool(name, **arguments)
            assert (caught.value.error_type, caught.value.tool_name) == (kind, name)
            assert client.call_tool("read") == []


def test_reset_step_and_state_are_not_there_in_production(served: Any) -> None:
    _, _, url, recorder = served
    recorder.clear()
    client = MCPToolClient(url, mode="production").sync()
    for call in (client.reset, lambda: client.step(CallToolAction(tool_name="read")), client.state):
        with pytest.raises(ModeError) as caught:
            call()
        assert caught.value.mode == "production"
    assert (recorder.requests, recorder.handshakes) == ([], [])
    client.close()


def test_first_calls_at_once_make_one_session(served: Any) -> None:
    _, _, url, recorder = served
    recorder.clear()
    client = MCPToolClient(url, mode="production")

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(client.call_tool("write", text=str(n)) for n in range(6)))

    counts: list[int] = []
    face = client.sync()
    threads = [threading.Thread(target=lambda: counts.append(face.call_tool("write", text="t"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    counts += asyncio.run(all_at_once())
    for thread in threads:
        thread.join(WAIT_S)
    assert sorted(counts) == list(range(1, 11))
    assert recorder.methods.count("openenv/session/create") == 1
    face.close()
    assert recorder.methods[-1] == "openenv/session/close"


def test_sessions_are_apart(served: Any) -> None:
    _, _, url, _ = served
    first = MCPToolClient(url, mode="production")

    async def main() -> Any:
        async with first:
            second = await first.new_session()
            await first.call_tool("write", text="a")
            return await first.call_tool("read"), await second.call_tool("read")

    assert asyncio.run(main()) == (["a"], [])


@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_session_frees_its_place_and_a_full_server_says_so(make: str) -> None:
    with server(make, "production", max_concurrent_envs=1) as (url, _):
        first, second = (MCPToolClient(url, mode="production").sync() for _ in range(2))
        first.connect()
        with pytest.raises(CapacityError) as caught:
            second.connect()
        assert (caught.value.active_sessions, caught.value.max_sessions) == (1, 1)
        first.close()
        second.connect()
        assert second.call_tool("read") == []
        second.close()


@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_session_that_is_gone_is_told_and_never_replaced_in_silence(make: str) -> None:
    with server(make, "production") as (url, _):
        client = MCPToolClient(url, mode="production").sync()
        client.call_tool("write", text="a")
        thief = MCPToolClient(url, mode="production", session_id=client.async_client._mcp.session_id)
        # Closed by somebody else.
        asyncio.run(close_on_server(thief))
        for _ in range(2):
            with pytest.raises(SessionLostError):
                client.call_tool("read")
        client.connect()
        assert client.call_tool("read") == []
        client.close()


async def close_on_server(client: MCPToolClient) -> None:
    await client.connect()
    mcp = client._mcp
    await mcp._ask("openenv/session/close", {"session_id": mcp.session_id}, WAIT_S)
    await client.close()
