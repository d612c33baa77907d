"""Every client of tools on every server in every mode: one test. What only one pair shows is in the files beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import fastmcp
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from openenv.core.mcp_client import MCPToolClient as StockToolClient

from openenv_gym.errors import InvalidActionError
from openenv_gym.mcp_client import MCPToolClient
from tests.interop.test_mcp_clients import MODES, server

Played = tuple[set[str], list[Any]]


async def stock(url: str) -> Played:
    async with StockToolClient(url) as client:
        names = {tool.name for tool in await client.list_tools()}
        return names, [await client.call_tool("write", text="a", times=2), await client.call_tool("read")]


async def simulation(url: str) -> Played:
    async with MCPToolClient(url, mode="simulation") as client:
        await client.reset()
        names = {tool.name for tool in await client.list_tools()}
        return names, [await client.call_tool("write", text="a", times=2), await client.call_tool("read")]


async def production(url: str) -> Played:
    async with MCPToolClient(url, mode="production") as client:
        names = {tool.name for tool in await client.list_tools()}
        return names, [await client.call_tool("write", text="a", times=2), await client.call_tool("read")]


async def official(url: str) -> Played:
    async with (
        streamable_http_client(f"{url}/mcp") as (received, sent, _),
        ClientSession(received, sent) as client,
    ):
        await client.initialize()
        names = {tool.name for tool in (await client.list_tools()).tools}
        given = [await client.call_tool("write", {"text": "a", "times": 2}), await client.call_tool("read")]
        return names, [each.structuredContent["result"] for each in given if each.structuredContent]


async def fast(url: str) -> Played:
    async with fastmcp.Client(f"{url}/mcp") as client:
        names = {tool.name for tool in await client.list_tools()}
        given = [await client.call_tool("write", {"text": "a", "times": 2}), await client.call_tool("read")]
        return names, [each.data for each in given]


OF_OPENENV: dict[str, Callable[[str], Awaitable[Played]]] = {
    "stock client": stock,
    "our client in simulation": simulation,
    "our client in production": production,
}
OF_THE_STANDARD: dict[str, Callable[[str], Awaitable[Played]]] = {"official client": official, "fastmcp client": fast}
CLIENTS = OF_OPENENV | OF_THE_STANDARD
CASES = [(name, make, mode) for name in OF_OPENENV for make in ("ours", "stock") for mode in MODES]
CASES += [(name, "ours", mode) for name in OF_THE_STANDARD for mode in MODES]


@pytest.mark.parametrize(("name", "make", "mode"), CASES)
def test_the_tools_are_listed_and_called(name: str, make: str, mode: str) -> None:
    async def play(url: str) -> Played:
        return await CLIENTS[name](url)

    with server(make, mode) as (url, _):
        if (name, make, mode) == ("our client in simulation", "ours", "production"):
            with pytest.raises(InvalidActionError, match="production"):
                asyncio.run(play(url))
            return
        names, values = asyncio.run(play(url))
    assert values == [2, ["a", "a"]]
    # On its own server the stock client lists nothing where a tool has no description.
    assert {"write", "read", "find"} <= names or (name, make, names) == ("stock client", "stock", set())
