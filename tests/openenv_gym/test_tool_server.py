"""Tests of ``openenv_gym.tool_server``."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import ClientSession, McpError, types
from mcp.server.session import ServerSession
from mcp.shared.memory import create_connected_server_and_client_session

from openenv_gym import tool_server as module
from openenv_gym.tool_server import tool_server


class Doors:
    """Tools of one connection; ``turn`` is what calls wait for."""

    def __init__(self) -> None:
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.turn = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.closed = False

    async def list_tools(self) -> list[types.Tool]:
        return [types.Tool(name="look", inputSchema={"type": "object"})]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        self.called.append((name, arguments))
        try:
            await self.turn.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return types.CallToolResult(content=[types.TextContent(type="text", text="a door")])


def conversation(converse: Callable[[ClientSession, Doors], Awaitable[None]]) -> Doors:
    doors: list[Doors] = []

    @asynccontextmanager
    async def open_tools() -> AsyncIterator[Doors]:
        doors.append(Doors())
        yield doors[0]
        doors[0].closed = True

    async def main() -> None:
        server = tool_server("doors", open_tools, "Mind the step.")
        async with create_connected_server_and_client_session(server) as client:
            await asyncio.wait_for(converse(client, doors[0]), 20)

    asyncio.run(main())
    return doors[0]


def test_tools_are_those_of_the_connection_and_end_with_it() -> None:
    async def converse(client: ClientSession, doors: Doors) -> None:
        doors.turn.set()
        assert [each.name for each in (await client.list_tools()).tools] == ["look"]
        assert (await client.call_tool("look", {"direction": "north"})).content[0].text == "a door"
        await client.call_tool("look")

    doors = conversation(converse)
    assert doors.called == [("look", {"direction": "north"}), ("look", {})]
    assert doors.closed


def test_a_cursor_is_refused() -> None:
    async def converse(client: ClientSession, _: Doors) -> None:
        with pytest.raises(McpError) as caught:
            await client.list_tools(params=types.PaginatedRequestParams(cursor="2"))
        assert caught.value.error.code == types.INVALID_PARAMS

    conversation(converse)


def test_a_client_that_asks_hears_of_progress_until_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRESS_EVERY_S", 0.01)
    heard: list[float] = []

    async def converse(client: ClientSession, doors: Doors) -> None:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            assert total is None
            assert message is not None
            assert message.startswith("look")
            heard.append(progress)
            if len(heard) == 3:
                doors.turn.set()

        await client.call_tool("look", progress_callback=hear)
        told = len(heard)
        await client.send_ping()
        assert len(heard) == told

    conversation(converse)
    assert heard == sorted(set(heard))


def test_a_client_that_cannot_be_told_of_progress_has_its_answer_and_nobody_complains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PROGRESS_EVERY_S", 0.01)
    complaints: list[Any] = []

    async def converse(client: ClientSession, doors: Doors) -> None:
        async def fail(*args: object, **more: object) -> None:
            doors.turn.set()
            raise OSError("it has left")

        async def hear(*_: object) -> None:
            raise AssertionError("nothing was told")

        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        monkeypatch.setattr(ServerSession, "send_progress_notification", fail)
        assert (await client.call_tool("look", progress_callback=hear)).isError is False
        gc.collect()

    conversation(converse)
    assert complaints == []


def test_a_cancelled_request_cancels_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRESS_EVERY_S", 0.01)

    async def converse(client: ClientSession, doors: Doors) -> None:
        heard = asyncio.Event()

        async def hear(*_: object) -> None:
            heard.set()

        call = asyncio.create_task(client.call_tool("look", progress_callback=hear))
        await heard.wait()
        cancelled = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=1))
        await client.send_notification(types.ClientNotification(cancelled))
        with pytest.raises(McpError, match="cancel"):
            await call
        await doors.cancelled.wait()

    conversation(converse)
