"""The clients that people have, on our server in both modes: the official SDK's and FastMCP's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import fastmcp
import pytest
from fastmcp.exceptions import ToolError
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client

from openenv_gym_envs.echo.app import create_app
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings
from tests.interop.mcp_playground import MODES, playground
from tests.serving import serve
from tests.sockets import until


@pytest.fixture(scope="module", params=MODES)
def echo(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    with serve(create_app(ServerSettings(mode=request.param))) as url:
        yield url, request.param == "simulation"


@asynccontextmanager
async def official(url: str) -> AsyncIterator[ClientSession]:
    async with (
        streamable_http_client(f"{url}/mcp") as (received, sent, _),
        ClientSession(received, sent) as client,
    ):
        await client.initialize()
        yield client


def test_the_official_client_lists_and_calls(echo: tuple[str, bool]) -> None:
    url, rewarded = echo

    async def play() -> None:
        async with official(url) as client:
            await client.send_ping()
            tools = (await client.list_tools()).tools
            assert [each.name for each in tools] == ["echo_message", "echo_with_length"]
            # The client holds the structured result to the tool's output schema.
            given = await client.call_tool("echo_message", {"message": "Hello, World!"})
            assert given.isError is False
            assert [each.text for each in given.content] == ["Hello, World!"]
            assert given.structuredContent is not None
            assert given.structuredContent["result"] == "Hello, World!"
            assert given.structuredContent.keys() == (
                {"result", "reward", "terminated", "truncated"} if rewarded else {"result"}
            )
            assert (await client.call_tool("echo_message", {"message": 5})).isError is True
            with pytest.raises(McpError, match="no_such_tool"):
                await client.call_tool("no_such_tool")

    asyncio.run(play())


def test_fastmcps_client_gives_the_tools_plain_value(echo: tuple[str, bool]) -> None:
    async def play() -> None:
        async with fastmcp.Client(f"{echo[0]}/mcp") as client:
            assert await client.ping()
            assert len(await client.list_tools()) == 2
            assert (await client.call_tool("echo_message", {"message": "Hello"})).data == "Hello"
            assert (await client.call_tool("echo_with_length", {"message": "Hello"})).data == {
                "message": "Hello",
                "length": 5,
            }
            with pytest.raises(ToolError, match="message"):
                await client.call_tool("echo_message", {"message": 5})

    asyncio.run(play())


def test_many_clients_at_once_have_an_environment_each_and_leave_none() -> None:
    async def count(url: str, times: int) -> list[Any]:
        async with official(url) as client:
            given = [await client.call_tool("next_number") for _ in range(times)]
            return [each.content[0].text for each in given]

    async def play(url: str) -> list[list[Any]]:
        return await asyncio.gather(*(count(url, 3) for _ in range(12)))

    with playground("production", max_concurrent_envs=12) as (url, server):
        assert asyncio.run(play(url)) == [["1", "2", "3"]] * 12
        until(lambda: server.active_sessions == 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_gymnasium_environment_is_played_to_its_end(mode: str) -> None:
    async def play(url: str) -> list[Any]:
        async with official(url) as client:
            names = {each.name for each in (await client.list_tools()).tools}
            assert {"act", "observe"} <= names
            return [await client.call_tool("act", {"action": action}) for action in (2, 2, 1, 1, 1, 2, 0)]

    app = create_gym_app("FrozenLake-v1", settings=ServerSettings(mode=mode), env_kwargs={"is_slippery": False})
    with serve(app) as url:
        *_, goal, after = asyncio.run(play(url))
    assert goal.structuredContent is not None
    assert goal.structuredContent["result"] == 15
    if mode == "simulation":
        assert (goal.structuredContent["reward"], goal.structuredContent["terminated"]) == (1.0, True)
    else:
        assert "reward" not in goal.structuredContent
        assert after.isError is True
        assert "the episode is over" in after.content[0].text
